"""Cells of few records whose tables share attributes: 0 or more, and near to independent ones where nothing is told.

Least squares of such tables know neither that no cell is negative nor that most tables of few records are about the
products of their columns. The cells here are those of least

    relative entropy to the product of all columns + sum over entries of (m - <q, x>)**2 / (2 c),

with the given number of records, for an entry m of a table, its cells q and a softness c of some deviations of its
noise (`dpfast.graphical.tree_weights` finds them). What m is follows from how well each table's noise was taken out: of
the noisy entries y and the restored ones r the mean y + a (r - y) has the least risk, by Stein's unbiased estimate
of it for normal noise of variance v, where a is (1 - the mean of dr/dy) v / the mean of (y - r)**2. That derivative
is told from what becomes of r when entries are moved, each up or down (Ramani, Blu, Unser 2008).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpfast.graphical.junction_tree import JunctionTree
from dpfast.graphical.tree_weights import Measurement, TreeWeights
from dpfast.mechanisms.noise.integer_noise import IntegerNoise
from dpfast.strategies.marginals import MarginalTables
from dpfast.synthesis.histograms.denoising import denoised
from dpfast.synthesis.histograms.totals import nearest_of_total
from dpfast.synthesis.histograms.whole_numbers import is_rare

__all__ = ["are_near_noise", "fitted_cells"]

Floats = NDArray[np.float64]

#: Up to so many deviations of the noise in a mean entry, cells are fitted; more records are told by least squares.
_FEW = 10.0
#: Walks along all tables, if these take at most so many steps.
_WALKS, _MOST_STEPS, _TOLERANCE = 400, 1 << 31, 1e-5
#: Entries are held by so many deviations of their noise, and by one more where nothing of the restored ones counts.
_FIRMEST = 0.3
#: The part of a deviation by which entries are moved, the least part of its share that a column's value has, and what
#: holds the number of records.
_STEP, _LEAST, _EXACT = 0.2, 1e-6, 1e-9
#: The squares of whole numbers, times it, are spread evenly modulo 1 (Weyl 1916).
_IRRATIONAL = (math.sqrt(5.0) - 1.0) / 2.0


def are_near_noise(strategy: MarginalTables, noise: IntegerNoise, total: float) -> bool:
    """Whether cells are fitted: so many records leave entries near to their noise, and the cells are not too many."""
    entries = [math.prod(strategy.shape[axis] for axis in held) for held in strategy.attributes]
    signal = total * sum(strategy.weights) / sum(entries)
    steps = 2 * _WALKS * len(entries) * strategy.cells
    return signal <= _FEW * noise.deviation and steps <= _MOST_STEPS and not is_rare(noise, max(strategy.weights))


def fitted_cells(
    strategy: MarginalTables,
    noisy: Sequence[Floats],
    restored: Sequence[Floats],
    noise: IntegerNoise,
    total: float,
    threads: int | None,
) -> Floats:
    """Return cells of a given number of records that have about the tables; it is made of released numbers alone.

    Parameters
    ----------
    strategy
        What was measured.
    noisy, restored
        Each table by itself, with its noise and without most of it.
    noise
        Of a table of weight 1.
    total
        The number of records, above 0.
    threads
        How many threads take the noise out of the tables, once more.

    """
    share = _share_of_restored(strategy.weights, noisy, restored, noise, threads)
    mixed = [table + share * (other - table) for table, other in zip(noisy, restored, strict=True)]
    held = tuple(range(len(strategy.shape)))
    measurements = [Measurement((), np.array([total]), _EXACT, _EXACT)]
    for attributes, table, weight in zip(strategy.attributes, mixed, strategy.weights, strict=True):
        if attributes:
            deviation = noise.deviation / weight
            softness = (_FIRMEST + 1.0 - share) * deviation
            measurements.append(Measurement(attributes, table.reshape(-1), deviation**2, softness))
    weights = TreeWeights(JunctionTree(strategy.shape, (held,), (-1,)), total, measurements)
    weights.tables[0][:] = _product(strategy, mixed, total).reshape(-1)
    weights.fit(_WALKS, _TOLERANCE)
    return weights.tables[0].reshape(strategy.shape)


def _share_of_restored(
    weights: Sequence[int],
    noisy: Sequence[Floats],
    restored: Sequence[Floats],
    noise: IntegerNoise,
    threads: int | None,
) -> float:
    """Return the weight of restored entries beside noisy ones, a above."""
    entries, squares, kept = 0, 0.0, 0.0
    for table, other, weight in zip(noisy, restored, weights, strict=True):
        if not table.ndim:
            continue
        deviation = noise.deviation / weight
        moves = _moves(entries, table.size).reshape(table.shape)
        moved = denoised(table + deviation * moves, noise, threads, weight)
        entries += table.size
        squares += float(np.square((table - other) / deviation).sum())
        kept += float((moves * (moved - other)).sum()) / (deviation * _STEP**2)
    return min(max((entries - kept) / max(squares, 1e-9), 0.0), 1.0)


def _moves(before: int, entries: int) -> Floats:
    """Return a step up or down for each entry, without order, and the same in every run."""
    places = np.arange(before, before + entries)
    return np.where(places * places * _IRRATIONAL % 1.0 < 0.5, -_STEP, _STEP)


def _product(strategy: MarginalTables, tables: Sequence[Floats], total: float) -> Floats:
    """Return the product of all columns, each the mean of what tables say of it by its precision."""
    cells = np.full(strategy.shape, total / strategy.cells)
    for axis, side in enumerate(strategy.shape):
        column, precision = np.zeros(side), 0.0
        for attributes, table, weight in zip(strategy.attributes, tables, strategy.weights, strict=True):
            if axis in attributes:
                others = tuple(place for place, held in enumerate(attributes) if held != axis)
                own = weight**2 * side / table.size
                column, precision = column + own * table.sum(axis=others), precision + own
        if precision:
            shares = nearest_of_total(column / precision, total) * (side / total) + _LEAST
            cells *= shares.reshape([-1 if place == axis else 1 for place in range(len(strategy.shape))])
    cells *= total / cells.sum()
    return cells
