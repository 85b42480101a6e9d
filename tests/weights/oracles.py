"""Multiplicative weights written out: every coefficient as a number, nothing from the package's kernels."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpfast.weights.linear_queries import BitQuery, DenseQuery, LevelQuery
from dpfast.weights.query_tables import Marginal, Ranges
from dpfast.weights.slab_queries import BoxQuery, MarginalCell, RangeQuery

SHAPES = [
    (1,),
    (5,),
    (64,),
    (4096,),
    (9001,),
    (3, 4, 5),
    (2,) * 13,
    (40, 3, 50),
    (7, 700),
    (300, 7),
    (20, 1, 3, 1),
    (1009, 2),
    (5000, 3),
]


@dataclass(frozen=True)
class Places:
    """A marginal's coefficients: for each cell which of the marginal's cells it belongs to."""

    places: np.ndarray
    sizes: tuple

    def dense(self):
        cells = np.arange(math.prod(self.sizes))
        return (cells[:, None] == self.places).reshape(*self.sizes, -1)


def queries(shape, generator):
    """Return pairs of a query of every kind and its coefficients, as the definition says."""
    cells = math.prod(shape)
    axes = np.indices(shape).reshape(len(shape), -1)
    bits = generator.random(cells) < 0.5
    floats = generator.random(cells)
    levels, few = generator.integers(0, 256, cells), generator.integers(0, 3, cells)
    start, stop = sorted(generator.integers(0, cells + 1, 2).tolist())
    lower = [int(generator.integers(0, size + 1)) for size in shape]
    upper = [int(generator.integers(low, size + 1)) for low, size in zip(lower, shape, strict=True)]
    kept = tuple(np.flatnonzero(generator.random(len(shape)) < 0.5).tolist())
    values = tuple(int(generator.integers(0, shape[place])) for place in kept)
    numbers = np.arange(cells)
    inside = np.all([(low <= axis) & (axis < up) for low, up, axis in zip(lower, upper, axes, strict=True)], axis=0)
    cell = np.all([axes[place] == value for place, value in zip(kept, values, strict=True)], axis=0)
    cell = np.broadcast_to(cell, cells)
    sizes = tuple(shape[place] for place in kept)
    places = np.ravel_multi_index([axes[place] for place in kept], sizes) if kept else np.zeros(cells, int)
    starts, stops = np.array([start, 0, start]), np.array([stop, stop, cells])
    return [
        (bits, bits),
        (bits.reshape(shape).astype(np.uint8), bits),
        (bits.astype(np.int64), bits),
        (floats, floats),
        (floats.astype(np.float32), floats.astype(np.float32)),
        (DenseQuery(floats), floats),
        (BitQuery(np.packbits(bits, bitorder="little"), cells), bits),
        (LevelQuery(levels.astype(np.uint8)), levels / 255),
        (LevelQuery(few.astype(np.uint8), [0.0, 0.25, 1.0]), np.array([0.0, 0.25, 1.0])[few]),
        ((start, stop), (start <= numbers) & (numbers < stop)),
        (RangeQuery(start, start), np.zeros(cells)),
        (BoxQuery(shape, lower, upper), inside),
        (MarginalCell(shape, kept, values), cell),
        (Marginal(shape, kept), Places(places, sizes)),
        (Ranges(starts, stops), (starts[:, None] <= numbers) & (numbers < stops[:, None])),
    ]


def updated(histogram, coefficients, eta):
    """Return the histogram times exp(eta * coefficient), with the total that it had."""
    if isinstance(coefficients, Places):
        exponents = eta.reshape(-1)[coefficients.places]
    else:
        exponents = np.tensordot(eta, np.asarray(coefficients, float), axes=np.ndim(eta))
    new = histogram * np.exp(exponents - exponents.max()).reshape(histogram.shape)
    return new * (histogram.sum() / new.sum())


def answers(histogram, coefficients):
    """Return the sums of the histogram's cells, each times its coefficient."""
    cells = histogram.reshape(-1)
    if isinstance(coefficients, Places):
        sizes = coefficients.sizes
        return np.bincount(coefficients.places, cells, math.prod(sizes)).reshape(sizes)
    return np.asarray(coefficients, float) @ cells
