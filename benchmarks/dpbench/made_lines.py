"""Made-up shapes in one dimension: from a generator and a number of cells to how likely each cell is.

Each is a family: the same idea at any number of cells. Nothing here is real.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from . import shapes

__all__ = ["MADE_LINES"]

Weights = NDArray[np.float64]
Line = Callable[[np.random.Generator, int], Weights]


def _of(density: shapes.Density) -> Line:
    """Return a density over places from 0 to 1 as a family."""
    return lambda generator, cells: density(generator, np.arange(cells) / cells)


def uniform(generator: np.random.Generator, cells: int) -> Weights:
    """All cells alike."""
    return np.ones(cells)


def one_spike(generator: np.random.Generator, cells: int) -> Weights:
    """Everybody in one cell."""
    weights = np.zeros(cells)
    weights[generator.integers(cells)] = 1.0
    return weights


def few_spikes(generator: np.random.Generator, cells: int) -> Weights:
    """Seven cells at random, of heights that differ up to tenfold."""
    weights = np.zeros(cells)
    weights[generator.choice(cells, 7, replace=False)] = np.geomspace(1.0, 10.0, 7)
    return weights


def zipf_spikes(generator: np.random.Generator, cells: int) -> Weights:
    """One cell in fifty, at random, heights by Zipf's law."""
    weights, count = np.zeros(cells), max(4, cells // 50)
    weights[generator.choice(cells, count, replace=False)] = 1.0 / np.arange(1, count + 1)
    return weights


def spikes_on_floor(generator: np.random.Generator, cells: int) -> Weights:
    """Half of the records alike everywhere, half in sixteen cells."""
    weights = np.full(cells, 0.5 / cells)
    weights[generator.choice(cells, 16, replace=False)] += generator.dirichlet(np.ones(16)) / 2
    return weights


def sparse(generator: np.random.Generator, cells: int) -> Weights:
    """One cell in a hundred, anywhere, of very different heights."""
    return np.where(generator.random(cells) < 0.01, 1.0, 0.0) * generator.lognormal(0.0, 1.5, cells) + (
        np.arange(cells) == cells // 3
    )


def sparse_blocks(generator: np.random.Generator, cells: int) -> Weights:
    """A few runs of cells that are alike, and nothing between."""
    weights = np.zeros(cells)
    for start in generator.integers(0, cells, 6):
        weights[start : start + max(2, cells // 60)] += generator.lognormal()
    return weights


def half_empty(generator: np.random.Generator, cells: int) -> Weights:
    """Noise in the left part, nothing in the right one."""
    return generator.lognormal(0.0, 0.6, cells) * (np.arange(cells) < 0.45 * cells)


def zeros_and_a_bell(generator: np.random.Generator, cells: int) -> Weights:
    """Three records of four in the first cell, the others in a bell."""
    weights = shapes.bell(0.4, 0.1)(generator, np.arange(cells) / cells)
    weights /= weights.sum()
    weights[0] += 3.0
    return weights


def heavy_noise(generator: np.random.Generator, cells: int) -> Weights:
    """Independent cells of very different heights."""
    return generator.lognormal(0.0, 2.0, cells)


def zipf_shuffled(generator: np.random.Generator, cells: int) -> Weights:
    """Zipf's law in no order: names, say."""
    return generator.permutation(1.0 / np.arange(1, cells + 1))


def categories(generator: np.random.Generator, cells: int) -> Weights:
    """Categories of gamma-distributed heights, most of them rare."""
    return generator.gamma(0.15, 1.0, cells) + 1e-12


def few_steps(generator: np.random.Generator, cells: int) -> Weights:
    """Eight constant pieces."""
    return shapes.steps(8)(generator, np.arange(cells) / cells)


def many_steps(generator: np.random.Generator, cells: int) -> Weights:
    """Constant pieces of sixteen cells on average."""
    return shapes.steps(max(2, cells // 16))(generator, np.arange(cells) / cells)


def thirds(generator: np.random.Generator, cells: int) -> Weights:
    """Steps whose edges no power of 2 meets."""
    return np.array([1.0, 6.0, 2.0, 0.0, 9.0, 3.0, 0.5])[(7 * np.arange(cells)) // cells]


def rounded_prices(generator: np.random.Generator, cells: int) -> Weights:
    """Prices: a decay, with heaps on round ones and one below."""
    place = np.arange(cells)
    heaps = 1.0 + 12.0 * (place % 10 == 9) + 40.0 * (place % 100 == 99) + 15.0 * (place % 50 == 0)
    return np.exp(-6.0 * place / cells) * heaps * generator.lognormal(0.0, 0.3, cells)


def ages(generator: np.random.Generator, cells: int) -> Weights:
    """Ages in fine units: a plateau that falls off, waves of births, heaps on multiples of five years."""
    years = 100.0 * np.arange(cells) / cells
    plateau = 1.0 / (1.0 + np.exp((years - 75.0) / 6.0)) * (1.0 + 0.25 * np.sin(years / 8.0))
    begins = np.diff(np.floor(years / 5.0), prepend=-1.0) > 0
    return plateau * (1.0 + 1.5 * begins)


def salaries(generator: np.random.Generator, cells: int) -> Weights:
    """Salaries: a lognormal law, a third of it rounded to coarse amounts."""
    place = (1.0 + np.arange(cells)) / cells
    law = np.exp(-0.5 * (np.log(place / 0.2) / 0.6) ** 2) / place
    law /= law.sum()
    coarse, every = np.zeros(cells), max(2, cells // 40)
    np.add.at(coarse, np.arange(cells) // every * every, law)
    return 2 * law + coarse


def comb(generator: np.random.Generator, cells: int) -> Weights:
    """Every second cell empty: units that are twice too fine."""
    return shapes.bell(0.5, 0.2)(generator, np.arange(cells) / cells) * (np.arange(cells) % 2 == 0)


def sawtooth(generator: np.random.Generator, cells: int) -> Weights:
    """Sixteen ramps."""
    return (np.arange(cells) * 16 % cells) / cells + 0.01


def ramp(generator: np.random.Generator, cells: int) -> Weights:
    """A line upwards."""
    return 0.5 + np.arange(cells)


def doubling(generator: np.random.Generator, cells: int) -> Weights:
    """Each of the first cells holds half of what is left."""
    return 0.5 ** np.minimum(np.arange(cells), 1000)


def heavy_tail(generator: np.random.Generator, cells: int) -> Weights:
    """A sharp peak with the tails of Cauchy's law."""
    return 1.0 / (1.0 + ((np.arange(cells) / cells - 0.37) / 0.002) ** 2)


def random_walk(generator: np.random.Generator, cells: int) -> Weights:
    """The exponential of a random walk."""
    return np.exp(np.cumsum(generator.normal(0.0, 3.0 / np.sqrt(cells), cells)))


def cascade(generator: np.random.Generator, cells: int) -> Weights:
    """Halves of halves, each with its random share: rough at every size."""
    weights = np.ones(1)
    while weights.size < cells:
        share = generator.beta(1.5, 1.5, weights.size)
        weights = np.stack([weights * share, weights * (1.0 - share)], axis=1).ravel()
    return weights[:cells]


def days(generator: np.random.Generator, cells: int) -> Weights:
    """Days of years: weekends low, a slow wave, holidays empty."""
    day = np.arange(cells)
    wave = 1.0 + 0.3 * np.sin(2 * np.pi * day / 365.25)
    return wave * np.where(day % 7 >= 5, 0.25, 1.0) * (generator.random(cells) > 0.03)


def hours(generator: np.random.Generator, cells: int) -> Weights:
    """Hours of days: rush hours, quiet nights, slowly more."""
    hour = np.arange(cells) % 24
    rush = np.exp(-0.5 * ((hour - 8) / 1.5) ** 2) + np.exp(-0.5 * ((hour - 17.5) / 2.0) ** 2) + 0.05
    return rush * (1.0 + np.arange(cells) / cells)


def two_ends(generator: np.random.Generator, cells: int) -> Weights:
    """Much at both ends, little in the middle."""
    place = (0.5 + np.arange(cells)) / cells
    return 1.0 / np.sqrt(place * (1.0 - place))


def gaps(generator: np.random.Generator, cells: int) -> Weights:
    """Narrow clusters far apart, on nothing."""
    place, weights = np.arange(cells) / cells, np.zeros(cells)
    for center, height in zip(generator.random(12), 1.0 / np.arange(1, 13), strict=True):
        near = np.exp(-0.5 * ((place - center) / 0.004) ** 2)
        weights += height * near * (near > 1e-6)
    return weights


def orders_of_magnitude(generator: np.random.Generator, cells: int) -> Weights:
    """Blocks of sixteen cells, each block of another order of magnitude."""
    return 10.0 ** generator.uniform(-5.0, 0.0, -(-cells // 16)).repeat(16)[:cells]


def truncated(generator: np.random.Generator, cells: int) -> Weights:
    """A bell whose tail was cut off, and put into the last cell."""
    weights = shapes.bell(0.6, 0.25)(generator, np.arange(cells) / cells)
    weights[-1] += 0.1 * weights.sum()
    return weights


def islands(generator: np.random.Generator, cells: int) -> Weights:
    """Single cells and short noisy runs, a tenth of all."""
    weights = np.zeros(cells)
    while (weights > 0).mean() < 0.1:
        start, length = generator.integers(cells), 1 + generator.geometric(0.15)
        weights[start : start + length] = generator.lognormal(0.0, 1.0, min(length, cells - start))
    return weights


def identifiers(generator: np.random.Generator, cells: int) -> Weights:
    """Identifiers in use: everybody in cells of their own, a third of all in blocks that were handed out."""
    blocks = generator.random(-(-cells // 32)) < 1 / 3
    return blocks.repeat(32)[:cells].astype(float) + (np.arange(cells) == 0)


MADE_LINES: dict[str, Line] = {
    "uniform": uniform,
    "one spike": one_spike,
    "few spikes": few_spikes,
    "zipf spikes": zipf_spikes,
    "spikes on a floor": spikes_on_floor,
    "sparse": sparse,
    "sparse blocks": sparse_blocks,
    "half empty": half_empty,
    "zeros and a bell": zeros_and_a_bell,
    "light noise": _of(shapes.jitter(0.4)),
    "heavy noise": heavy_noise,
    "wide bell": _of(shapes.bell(0.45, 0.2)),
    "narrow bell": _of(shapes.bell(0.6, 0.01)),
    "two bells": _of(shapes.mixed((0.7, shapes.bell(0.25, 0.05)), (0.3, shapes.bell(0.7, 0.1)))),
    "decay": _of(shapes.decay(0.1)),
    "zipf": _of(shapes.zipf(1.1)),
    "zipf shuffled": zipf_shuffled,
    "categories": categories,
    "few steps": few_steps,
    "many steps": many_steps,
    "noisy steps": _of(shapes.times(shapes.steps(30), shapes.jitter(0.5))),
    "thirds": thirds,
    "rounded prices": rounded_prices,
    "ages": ages,
    "salaries": salaries,
    "comb": comb,
    "sawtooth": sawtooth,
    "ramp": ramp,
    "bursts": _of(shapes.bursts(25, 0.008)),
    "doubling": doubling,
    "heavy tail": heavy_tail,
    "random walk": random_walk,
    "cascade": cascade,
    "days": days,
    "hours": hours,
    "two ends": two_ends,
    "gaps": gaps,
    "orders of magnitude": orders_of_magnitude,
    "truncated": truncated,
    "islands": islands,
    "identifiers": identifiers,
    "bell and spikes": _of(shapes.mixed((0.7, shapes.bell(0.4, 0.15)), (0.3, shapes.spikes(20, 0.8)))),
}
"""By name."""
