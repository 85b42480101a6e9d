"""Marginals with noise, without most of it, and cells that have them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.mechanisms.noise.integer_noise import IntegerNoise
from dpfast.strategies.marginals import MarginalTables
from dpfast.synthesis.histograms.denoising import denoised
from dpfast.synthesis.histograms.levels import drawn_to_none
from dpfast.synthesis.histograms.shared_tables import are_near_noise, fitted_cells
from dpfast.synthesis.histograms.totals import nearest_of_total
from dpfast.synthesis.histograms.whole_numbers import is_rare

__all__ = ["cells_of_tables"]

Floats = NDArray[np.float64]
#: A number and its variance.
Known: TypeAlias = tuple[float, float]

#: By this part of the deviation of a table's sum all its cells together are moved, to see what becomes of the sum.
_STEP = 0.1
#: Of larger tables the noise is taken out once, not three times: their sums are taken to have all of their noise.
_LARGEST_MOVED = 2**16
_SURELY = 2.0


def cells_of_tables(
    strategy: MarginalTables,
    noisy: Sequence[NDArray[np.int64]],
    noise: IntegerNoise,
    records: tuple[float, float] | None,
    threads: int | None = None,
) -> Floats:
    """Return cells whose marginals are what the tables of a strategy are expected to hold, given all with noise.

    Each table is a histogram of its own, and `denoised` takes the noise out of it. Where no attribute is in two tables
    the cells are the product of all tables, each moved to the nearest one of the same total: 0 or more. That total is
    the mean of what all tables and ``records`` say, by `_total`. Else they are, where records are few, those of
    `dpfast.synthesis.histograms.shared_tables`, 0 or more, and otherwise the least squares of
    `MarginalTables.reconstruct`, which may be negative. Nothing is looked at but what was measured and paid for.

    Parameters
    ----------
    strategy, noisy, noise
        What was measured, each number with noise, and the noise.
    records
        What else is known of the number of records, and the variance of that; None for nothing.
    threads
        How many threads share the work.

    """
    sides = [tuple(strategy.shape[axis] for axis in attributes) for attributes in strategy.attributes]
    measured = [
        np.asarray(column, np.float64).reshape(shape) / weight
        for shape, weight, column in zip(sides, strategy.weights, noisy, strict=True)
    ]
    tables = [
        denoised(table, noise, threads, weight) if table.ndim else table
        for table, weight in zip(measured, strategy.weights, strict=True)
    ]
    known = [] if records is None else [records]
    weights = strategy.weights
    sums = [
        (float(table.sum()), table.size * (noise.deviation / weight) ** 2)
        for table, weight in zip(measured, weights, strict=True)
    ]
    if strategy.share_attributes and not are_near_noise(strategy, noise, _mean([*known, *sums])[0]):
        return strategy.reconstruct([weight * table for weight, table in zip(weights, tables, strict=True)])
    # Found only where the number of records follows from them: each takes as long as the table itself, twice.
    variances = (
        _variance_of_sum(table, noise, threads, weight) for table, weight in zip(measured, weights, strict=True)
    )
    total = _total(known, sums, [float(table.sum()) for table in tables], variances)
    if strategy.share_attributes and total > 0.0:
        return fitted_cells(strategy, measured, tables, noise, total, threads)
    cells = np.full(strategy.shape, total / strategy.cells)
    for attributes, table in zip(strategy.attributes, tables, strict=True):
        if attributes and total > 0.0:
            shape = [side if axis in attributes else 1 for axis, side in enumerate(strategy.shape)]
            cells *= nearest_of_total(table.reshape(-1), total).reshape(shape) * (table.size / total)
    return cells


def _variance_of_sum(noisy: Floats, noise: IntegerNoise, threads: int | None, weight: int) -> float:
    """Return how far the sum of a table is off once the noise is taken out of its cells, as a variance.

    Where most cells are empty the sum of the others has little noise. For Gaussian noise of variance v, the covariance
    of what cells hold, given all of the noisy ones, is v times the derivative of what they are expected to hold
    (Robbins 1956; Efron 2011). So the variance of their sum is v times by how much it grows when all noisy cells do.
    For Laplace noise, and as what is learned of a table's pieces moves too, it is a guess. It is not below what one
    cell has. It knows nothing of bias, which `_total` sees: a few records in each of many cells are taken for none.
    """
    deviation = noise.deviation / weight
    if not noisy.ndim or noisy.size > _LARGEST_MOVED or is_rare(noise, weight):
        return noisy.size * deviation**2
    step = _STEP * deviation / math.sqrt(noisy.size)
    less, more = (float(denoised(noisy + by, noise, threads, weight).sum()) for by in (-step, step))
    return max((more - less) / (2.0 * step), 1.0) * deviation**2


def _total(
    known: Sequence[Known], sums: Sequence[Known], restored: Sequence[float], variances: Iterable[float]
) -> float:
    """Return the number of records by what is known of it, and by the sums of tables, by the precision of each.

    Of a table counts the sum as measured, which is right on average, or as restored, whichever has less variance. The
    latter may be biased: where it is further from the mean of all that is unbiased than `_SURELY` of that one's
    deviations, what the square of the difference has beyond those is taken for the square of its bias, and for its
    variance (after DerSimonian, Laird 1986). One table alone is taken as restored: nothing else tells of a bias.
    """
    mean, variance = _mean([*known, *sums])
    if variance == 0.0:
        return max(mean, 0.0)
    if not known and len(sums) == 1:
        return max(restored[0], 0.0)
    best = list(known)
    for noisy, value, own in zip(sums, restored, variances, strict=True):
        biased = max(own, (value - mean) ** 2 - _SURELY**2 * variance)
        best.append((value, biased) if biased < noisy[1] else noisy)
    return drawn_to_none(*_mean(best))


def _mean(values: Sequence[Known]) -> Known:
    """Return the mean of numbers by the precision of each, and its variance; one that is exact is taken as it is."""
    least = min(variance for _, variance in values)
    if least == 0.0:
        return next(value for value, variance in values if variance == 0.0), 0.0
    weights = np.array([least / variance for _, variance in values])
    return float(weights @ [value for value, _ in values]) / float(weights.sum()), least / float(weights.sum())
