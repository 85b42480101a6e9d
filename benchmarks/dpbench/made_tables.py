"""Made-up tables of three attributes and more: from a generator and a shape to how likely each cell is.

Each is a family: the same idea at any shape. Nothing here is real.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

__all__ = ["MADE_TABLES", "SHAPES"]

Weights = NDArray[np.float64]
Shape = tuple[int, ...]
Table = Callable[[np.random.Generator, Shape], Weights]

#: The shapes that each family is made in.
SHAPES: tuple[Shape, ...] = ((24, 16, 10), (12, 10, 8, 6), (8, 6, 5, 4, 3, 2))


def _product(columns: Iterable[Weights]) -> Weights:
    """Return a table whose attributes are independent."""
    weights = np.ones(())
    for column in columns:
        weights = np.multiply.outer(weights, column)
    return weights


def _zipf(generator: np.random.Generator, size: int, power: float) -> Weights:
    """Return Zipf's law in a random order."""
    return generator.permutation((1.0 + np.arange(size)) ** -power)


def _classes(generator: np.random.Generator, shape: Shape, count: int, evenness: float) -> Weights:
    """Return a mixture of tables with independent attributes, which are the more peaked the less even they are."""
    weights = np.zeros(shape)
    for share in generator.dirichlet(np.ones(count)):
        weights += share * _product(generator.dirichlet(np.full(size, evenness)) for size in shape)
    return weights


def _places(shape: Shape) -> list[Weights]:
    """Return where each cell lies along each axis, from 0 to 1."""
    return list(np.meshgrid(*((0.5 + np.arange(size)) / size for size in shape), indexing="ij"))


def even_table(generator: np.random.Generator, shape: Shape) -> Weights:
    """All cells alike."""
    return np.ones(shape)


def independent_attributes(generator: np.random.Generator, shape: Shape) -> Weights:
    """Attributes of Zipf's law that know nothing of each other."""
    return _product(_zipf(generator, size, 1.0) for size in shape)


def few_classes(generator: np.random.Generator, shape: Shape) -> Weights:
    """Five kinds of people, within which attributes are independent."""
    return _classes(generator, shape, 5, 0.5)


def many_classes(generator: np.random.Generator, shape: Shape) -> Weights:
    """Sixty kinds of people, each nearly alike."""
    return _classes(generator, shape, 60, 0.1)


def rare_class(generator: np.random.Generator, shape: Shape) -> Weights:
    """One in a hundred is unlike all others."""
    common, rare = (_classes(generator, shape, 1, evenness) for evenness in (2.0, 0.05))
    return 0.99 * common + 0.01 * rare


def chain_of_attributes(generator: np.random.Generator, shape: Shape) -> Weights:
    """Each attribute follows the one before it."""
    weights = generator.dirichlet(np.ones(shape[0]))
    for before, size in pairwise(shape):
        weights = weights[..., None] * generator.dirichlet(np.full(size, 0.3), before)
    return weights


def functions_of_the_first(generator: np.random.Generator, shape: Shape) -> Weights:
    """All other attributes are functions of the first one, but for one record in twenty."""
    weights = np.full(shape, 0.05 / math.prod(shape))
    others = [generator.integers(0, size, shape[0]) for size in shape[1:]]
    weights[(np.arange(shape[0]), *others)] += 0.95 * generator.dirichlet(np.ones(shape[0]))
    return weights


def one_common_record(generator: np.random.Generator, shape: Shape) -> Weights:
    """Three in five are all alike, the others anything."""
    weights = np.full(shape, 0.4 / math.prod(shape))
    weights[tuple(generator.integers(0, shape))] += 0.6
    return weights


def few_kinds_of_records(generator: np.random.Generator, shape: Shape) -> Weights:
    """Thirty kinds of records, by Zipf's law."""
    weights = np.zeros(shape)
    cells = generator.choice(weights.size, 30, replace=False)
    weights.reshape(-1)[cells] = 1.0 / (1.0 + np.arange(30))
    return weights


def mostly_nothing(generator: np.random.Generator, shape: Shape) -> Weights:
    """Nearly every attribute of nearly everybody is the first value; those who have one other have several."""
    idle = _product(np.where(np.arange(size) == 0, 0.98, 0.02 / size) for size in shape)
    active = _product(np.where(np.arange(size) == 0, 0.3, (1.0 + np.arange(size)) ** -1.0) for size in shape)
    return 0.9 * idle / idle.sum() + 0.1 * active / active.sum()


def one_trend(generator: np.random.Generator, shape: Shape) -> Weights:
    """Ordered attributes that rise and fall together."""
    places = _places(shape)
    middle = sum(places) / len(places)
    apart = sum((place - middle) ** 2 for place in places)
    return np.exp(-apart / 0.03 - (middle - 0.4) ** 2 / 0.1)


def two_populations(generator: np.random.Generator, shape: Shape) -> Weights:
    """Two populations that share no value of any attribute."""
    lower, upper = (
        _product(np.where((np.arange(size) < size // 2) == first, _zipf(generator, size, 0.7), 0.0) for size in shape)
        for first in (True, False)
    )
    return lower / lower.sum() + 0.5 * upper / upper.sum()


def heavy_cells(generator: np.random.Generator, shape: Shape) -> Weights:
    """Cells that know nothing of each other, some a thousand times as heavy as others."""
    return generator.lognormal(0.0, 2.0, shape)


def disturbed_products(generator: np.random.Generator, shape: Shape) -> Weights:
    """Skewed attributes that are nearly independent."""
    return _product(_zipf(generator, size, 1.2) for size in shape) * generator.lognormal(0.0, 0.7, shape)


def impossible_combinations(generator: np.random.Generator, shape: Shape) -> Weights:
    """Seven in ten combinations of any two attributes that follow each other never occur."""
    weights = _product(_zipf(generator, size, 0.8) for size in shape)
    for axis in range(len(shape) - 1):
        allowed = generator.random(shape[axis : axis + 2]) < 0.3
        allowed[0, 0] = True
        weights = weights * allowed.reshape((1,) * axis + allowed.shape + (1,) * (len(shape) - axis - 2))
    weights[(0,) * len(shape)] += 1e-6
    return weights


def bumps(generator: np.random.Generator, shape: Shape) -> Weights:
    """Six round bumps among ordered attributes."""
    places, weights = _places(shape), np.zeros(shape)
    for _ in range(6):
        middle, width = generator.random(len(shape)), 0.08 + 0.1 * generator.random()
        apart = sum((place - own) ** 2 for place, own in zip(places, middle, strict=True))
        weights += generator.random() * np.exp(-apart / (2 * width * width))
    return weights


MADE_TABLES: dict[str, Table] = {
    made.__name__.replace("_", " "): made
    for made in (
        even_table,
        independent_attributes,
        few_classes,
        many_classes,
        rare_class,
        chain_of_attributes,
        functions_of_the_first,
        one_common_record,
        few_kinds_of_records,
        mostly_nothing,
        one_trend,
        two_populations,
        heavy_cells,
        disturbed_products,
        impossible_combinations,
        bumps,
    )
}
"""The families by name."""
