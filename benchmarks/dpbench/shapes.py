"""Made-up histograms with the scale and the share of empty cells of those in DPBench.

Nothing here is real: from the published tables come only how many rows a histogram has and how many of its cells are
empty, and both are met exactly. What it looks like (bells, Zipf's law, round numbers, bursts, steps, clusters) is made
up from a fixed seed to resemble what such columns look like.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["LINES", "PLANES", "Shape", "coarsened", "histogram", "sampled"]

Density = Callable[[np.random.Generator, NDArray[np.float64]], NDArray[np.float64]]

CELLS = 4096
SIDE = 256


def bell(center: float, width: float) -> Density:
    """A normal density with a long right tail."""
    return lambda generator, x: np.exp(-0.5 * ((x - center) / (width * (1.0 + 0.8 * (x > center)))) ** 2)


def decay(length: float) -> Density:
    """An exponential decrease from the left."""
    return lambda generator, x: np.exp(-x / length)


def zipf(power: float) -> Density:
    """Zipf's law in the order of the cells."""
    return lambda generator, x: (1.0 + x * x.size) ** -power


def round_numbers(every: int, height: float) -> Density:
    """Peaks at multiples of a cell number and lower ones at multiples of ten times less."""

    def density(generator: np.random.Generator, x: NDArray[np.float64]) -> NDArray[np.float64]:
        cell = np.arange(x.size)
        small = max(1, every // 10)
        return 0.02 + height * (cell % every == 0) + 0.1 * height * (cell % small == 0)

    return density


def bursts(count: int, width: float) -> Density:
    """Sudden rises that fade."""

    def density(generator: np.random.Generator, x: NDArray[np.float64]) -> NDArray[np.float64]:
        starts, heights = generator.random(count), generator.pareto(1.2, count)
        after = x[:, None] - starts
        return 0.01 + (heights * np.where(after >= 0, np.exp(-np.abs(after) / width), 0.0)).sum(axis=1)

    return density


def steps(count: int) -> Density:
    """Constant pieces of lengths and heights drawn at random."""

    def density(generator: np.random.Generator, x: NDArray[np.float64]) -> NDArray[np.float64]:
        edges = np.sort(generator.random(count - 1))
        return generator.lognormal(0.0, 1.0, count)[np.searchsorted(edges, x)]

    return density


def spikes(count: int, power: float) -> Density:
    """A few cells at random that follow Zipf's law, and next to nothing elsewhere."""

    def density(generator: np.random.Generator, x: NDArray[np.float64]) -> NDArray[np.float64]:
        heights = np.full(x.size, 1e-5)
        heights[generator.permutation(x.size)[:count]] += np.arange(1, count + 1) ** -power
        return heights

    return density


def jitter(width: float) -> Density:
    """Independent factors, one for each cell."""
    return lambda generator, x: generator.lognormal(0.0, width, x.size)


def times(*densities: Density) -> Density:
    """The product of densities."""
    return lambda generator, x: np.prod([density(generator, x) for density in densities], axis=0)


def mixed(*parts: tuple[float, Density]) -> Density:
    """A mixture: each density, normalised, with its weight."""

    def density(generator: np.random.Generator, x: NDArray[np.float64]) -> NDArray[np.float64]:
        values = [(weight, part(generator, x)) for weight, part in parts]
        return np.sum([weight * value / value.sum() for weight, value in values], axis=0)

    return density


def clusters(count: int, width: float, power: float) -> Density:
    """Round clusters in the plane, their masses by Zipf's law; cells in the order of rows of `SIDE`."""

    def density(generator: np.random.Generator, x: NDArray[np.float64]) -> NDArray[np.float64]:
        side = np.arange(SIDE) / SIDE
        total = np.full((SIDE, SIDE), 1e-7)
        for rank in range(1, count + 1):
            (row, column), spread = generator.random(2), width * generator.lognormal(0.0, 0.7)
            there = np.exp(-0.5 * ((side - row) / spread) ** 2)[:, None] * np.exp(
                -0.5 * ((side - column) / spread) ** 2
            )
            total += rank**-power * there / there.sum()
        return total.ravel()

    return density


def streets(every: int) -> Density:
    """A grid of streets, some busier than others."""

    def density(generator: np.random.Generator, x: NDArray[np.float64]) -> NDArray[np.float64]:
        cell = np.arange(SIDE)
        rows = np.where(cell % every == 0, generator.lognormal(0.0, 1.0, SIDE), 0.02)
        columns = np.where(cell % every == every // 2, generator.lognormal(0.0, 1.0, SIDE), 0.02)
        return np.maximum(rows[:, None], columns[None, :]).ravel()

    return density


def axes(power: float) -> Density:
    """Two heavy-tailed attributes that are mostly zero together: mass on the axes."""

    def density(generator: np.random.Generator, x: NDArray[np.float64]) -> NDArray[np.float64]:
        cell = 1.0 + np.arange(SIDE)
        spread = cell[:, None] ** -power * cell[None, :] ** -power
        values = spread / spread.sum() * generator.lognormal(0.0, 1.5, (SIDE, SIDE))
        values[0, 0] += 5.0 * values.sum()
        return values.ravel()

    return density


@dataclass(frozen=True)
class Shape:
    """A histogram to make up.

    Attributes
    ----------
    name
        The published histogram whose scale and share of empty cells this one has.
    scale
        How many rows.
    empty
        The share of empty cells.
    density
        What it looks like.
    scattered
        Whether empty cells lie among the others, rarer where the density is high; else they are those of least density.
    seed
        Fixes what is drawn at random.

    """

    name: str
    scale: int
    empty: float
    density: Density
    scattered: bool
    seed: int
    shape: tuple[int, ...] = (CELLS,)


LINES = [
    Shape("HEPTH", 347_414, 0.2117, times(zipf(1.1), jitter(0.3)), True, 1),
    Shape("INCOME", 20_787_122, 0.4497, times(decay(0.15), round_numbers(100, 1.0)), False, 2),
    Shape("MEDCOST", 9_415, 0.7480, times(decay(0.2), jitter(0.8)), True, 3),
    Shape("NETTRACE", 25_714, 0.9661, mixed((0.9, zipf(1.4)), (0.1, spikes(120, 0.8))), True, 4),
    Shape("PATENT", 27_948_226, 0.0620, times(bell(0.35, 0.16), jitter(0.15)), False, 5),
    Shape("SEARCH", 335_889, 0.5103, times(bursts(40, 0.01), jitter(0.5)), True, 6),
    Shape("BIDS-FJ", 1_901_799, 0.0, times(steps(60), jitter(0.4)), False, 7),
    Shape("BIDS-FM", 2_126_344, 0.0, times(steps(45), jitter(0.4)), False, 8),
    Shape("BIDS-ALL", 7_655_502, 0.0, times(steps(80), jitter(0.3)), False, 9),
    Shape("MD-SAL", 135_727, 0.8313, times(bell(0.2, 0.06), round_numbers(40, 0.5), jitter(0.7)), True, 10),
    Shape("MD-SAL-FA", 100_534, 0.8318, times(bell(0.22, 0.05), round_numbers(40, 0.7), jitter(0.7)), True, 11),
    Shape("LC-REQ-F1", 3_737_472, 0.6157, times(bell(0.25, 0.2), round_numbers(50, 1.0)), False, 12),
    Shape("LC-REQ-F2", 198_045, 0.6760, times(bell(0.3, 0.2), round_numbers(50, 1.0)), False, 13),
    Shape("LC-REQ-ALL", 3_999_425, 0.6016, times(bell(0.25, 0.2), round_numbers(50, 0.8)), False, 14),
    Shape("LC-DTIR-F1", 3_336_740, 0.0, bell(0.45, 0.2), False, 15),
    Shape("LC-DTIR-F2", 189_827, 0.1191, times(bell(0.4, 0.18), jitter(0.2)), False, 16),
    Shape("LC-DTIR-ALL", 3_589_119, 0.0, bell(0.44, 0.2), False, 17),
    Shape("ADULT", 17_665, 0.9800, spikes(82, 1.1), False, 18),
]
"""In one dimension, of 4,096 cells."""

_PLANE = (SIDE, SIDE)
PLANES = [
    Shape("ADULT-2D", 32_561, 0.9984, axes(1.6), True, 21, _PLANE),
    Shape("BJ-CABS", 4_268_780, 0.8200, mixed((0.7, clusters(12, 0.08, 0.6)), (0.3, streets(16))), True, 22, _PLANE),
    Shape("GOWALLA", 6_442_863, 0.9466, clusters(60, 0.015, 1.0), True, 23, _PLANE),
    Shape("SF-CABS-S", 464_040, 0.9740, times(clusters(6, 0.06, 0.8), streets(12)), True, 24, _PLANE),
    Shape("STROKE", 19_435, 0.9609, times(clusters(1, 0.12, 1.0), jitter(1.0)), True, 25, _PLANE),
]
"""In two dimensions, of 256 x 256 cells."""


@cache
def histogram(shape: Shape) -> NDArray[np.int64]:
    """Return the counts: they sum to the scale, and exactly round(empty * cells) of them are 0."""
    generator = np.random.default_rng(shape.seed)
    cells = int(np.prod(shape.shape))
    density = np.maximum(shape.density(generator, np.arange(cells) / cells), 1e-12)
    full = cells - round(shape.empty * cells)
    # The cells with the largest keys: of log density alone, or with Gumbel noise, which draws without replacement.
    keys = np.log(density) + (generator.gumbel(size=cells) if shape.scattered else 0.0)
    chosen = np.argsort(-keys, kind="stable")[:full]
    share = density[chosen] / density[chosen].sum() * (shape.scale - full)
    counts = np.floor(share).astype(np.int64)
    # The rows that rounding down left over go where most was cut off.
    counts[np.argsort(counts - share, kind="stable")[: shape.scale - full - int(counts.sum())]] += 1
    result = np.zeros(cells, np.int64)
    result[chosen] = 1 + counts
    result.setflags(write=False)
    return result.reshape(shape.shape)


def coarsened(counts: NDArray[np.int64], side: int) -> NDArray[np.int64]:
    """Return a histogram with ``side`` cells along each attribute, neighbouring cells summed."""
    for axis in range(counts.ndim):
        starts = np.arange(side) * counts.shape[axis] // side
        counts = np.add.reduceat(counts, starts, axis=axis)
    return counts


def sampled(counts: NDArray[np.int64], scale: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Return a histogram of ``scale`` rows drawn with replacement from the rows of another."""
    flat = counts.ravel()
    return generator.multinomial(scale, flat / flat.sum()).astype(np.int64).reshape(counts.shape)
