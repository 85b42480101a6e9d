"""A made-up table of a census's shape: latent classes, attributes that follow others, skew, and rare values.

Beside it, how far another table is from it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["ROWS", "SIZES", "distance", "make_independent", "make_records", "pairs_and_triples"]

SIZES = (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2)
ROWS = 48_842
#: The attribute that each follows beside its class, or -1.
_FOLLOWS = (-1, 0, -1, 0, 0, 3, 4, -1, 6, 3, -1, 1, 7, 5)
_CLASSES = 12
_LARGEST_PAIR, _LARGEST_TRIPLE = 10**4, 3 * 10**6


def make_records(rows: int = ROWS, seed: int = 16) -> NDArray[np.uint8]:
    """Return codes, a row for each attribute; the law is the same for every seed.

    Each attribute is, half of the time, drawn from its class's own distribution (a peak of random place and width on a
    skewed ground), mostly else from what a fixed random table says of the attribute that it follows, else from the
    ground alone. Gains and losses (the tenth and eleventh) are 0 for nine in ten.
    """
    law, generator = np.random.default_rng(16), np.random.default_rng(seed)
    shares = 1.0 / np.arange(1, _CLASSES + 1) ** 0.8
    classes = generator.choice(_CLASSES, rows, p=shares / shares.sum())
    records = np.empty((len(SIZES), rows), np.uint8)
    for attribute, size in enumerate(SIZES):
        place = np.arange(size)
        ground = 1.0 / (1.0 + law.permutation(size)) ** 1.2
        ground /= ground.sum()
        peaks = law.uniform(0, size, _CLASSES)
        widths = size * law.uniform(0.02, 0.2, _CLASSES) + 0.3
        by_class = np.exp(-0.5 * ((place - peaks[:, None]) / widths[:, None]) ** 2) + 1e-3
        by_class /= by_class.sum(axis=1, keepdims=True)
        drawn = _draw(by_class, classes, generator)
        other = _FOLLOWS[attribute]
        kind = generator.random(rows)
        if other >= 0:
            table = law.dirichlet(np.full(size, 3.0 / size) + ground, SIZES[other])
            drawn = np.where(kind < 0.4, _draw(table, records[other], generator), drawn)
        drawn = np.where(kind > 0.9, generator.choice(size, rows, p=ground), drawn)
        if attribute in (9, 10):
            drawn = np.where(generator.random(rows) < 0.9, 0, drawn)
        records[attribute] = drawn
    return records


def _draw(table: NDArray[np.float64], given: NDArray[np.integer], generator: np.random.Generator) -> NDArray[np.int64]:
    """Return a value for each row from the table's row that is given."""
    sums = np.cumsum(table, axis=1)
    sums[:, -1] = 1.0
    found = np.empty(given.size, np.int64)
    for value in range(len(table)):
        rows = np.flatnonzero(given == value)
        found[rows] = np.searchsorted(sums[value], generator.random(rows.size), side="right")
    return np.minimum(found, table.shape[1] - 1)


def make_independent(records: NDArray[np.uint8], seed: int) -> NDArray[np.uint8]:
    """Return records whose single columns are as they were, each shuffled apart from the others."""
    return np.array([np.random.default_rng([seed, place]).permutation(column) for place, column in enumerate(records)])


def pairs_and_triples() -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Return the sets of columns that errors are measured over: all pairs of few enough cells, and some triples."""
    places = range(len(SIZES))
    pairs = [held for held in itertools.combinations(places, 2) if math.prod(SIZES[a] for a in held) <= _LARGEST_PAIR]
    every = [held for held in itertools.combinations(places, 3) if math.prod(SIZES[a] for a in held) <= _LARGEST_TRIPLE]
    return pairs, every[:: -(-len(every) // 40)]


def _shares(codes: NDArray[np.integer], columns: Sequence[int]) -> NDArray[np.float64]:
    cells = np.zeros(codes.shape[1], np.int64)
    for column in columns:
        cells = cells * SIZES[column] + codes[column]
    counts = np.bincount(cells, minlength=math.prod(SIZES[column] for column in columns))
    return counts / codes.shape[1]


def distance(one: NDArray[np.integer], other: NDArray[np.integer], sets: Sequence[Sequence[int]]) -> float:
    """Return the mean total variation distance of two tables' shares over sets of columns."""
    return float(np.mean([np.abs(_shares(one, held) - _shares(other, held)).sum() / 2 for held in sets]))
