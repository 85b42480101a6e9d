"""Marginals with noise, without most of it, and cells that have them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpfast.mechanisms.noise.integer_noise import IntegerNoise
from dpfast.strategies.marginals import MarginalTables
from dpfast.synthesis.histograms.denoising import denoised
from dpfast.synthesis.histograms.levels import drawn_to_none
from dpfast.synthesis.histograms.whole_numbers import is_rare

__all__ = ["cells_of_tables"]

Floats = NDArray[np.float64]

#: By this part of the deviation of a table's sum all its cells together are moved, to see what becomes of the sum.
_STEP = 0.1
#: Of larger tables the noise is taken out once, not three times: their sums are taken to have all of their noise.
_LARGEST_MOVED = 2**16


def cells_of_tables(
    strategy: MarginalTables,
    noisy: Sequence[NDArray[np.int64]],
    noise: IntegerNoise,
    records: tuple[float, float] | None,
    threads: int | None = None,
) -> Floats:
    """Return cells whose marginals are what the tables of a strategy are expected to hold, given all with noise.

    Each table is a histogram of its own, and `denoised` takes the noise out of it. Where no attribute is in two tables
    the cells are the product of all tables, scaled to the same total: 0 or more. That is the mean of what all tables
    and ``records`` say, each by its precision. Else they are the least squares of `MarginalTables.reconstruct`, and
    may be negative. Nothing is looked at but what was measured and paid for.

    Parameters
    ----------
    strategy, noisy, noise
        What was measured, each number with noise, and the noise.
    records
        What else is known of the number of records, and the variance of that; None for nothing.
    threads
        How many threads share the work.

    """
    share, public = strategy.share_attributes, records is not None and records[1] == 0.0
    tables, totals = [], [] if records is None else [records]
    for attributes, weight, column in zip(strategy.attributes, strategy.weights, noisy, strict=True):
        shape = tuple(strategy.shape[axis] for axis in attributes)
        table = np.asarray(column, np.float64).reshape(shape) / weight
        variance = table.size * (noise.deviation / weight) ** 2
        if attributes and not (share or public):
            variance = min(_variance_of_sum(table, noise, threads, weight), variance)
        if attributes:
            table = denoised(table, noise, threads, weight)
        tables.append(table)
        totals.append((float(table.sum()), variance))
    if share:
        return strategy.reconstruct([weight * table for weight, table in zip(strategy.weights, tables, strict=True)])
    total = _mean(totals)
    cells = np.full(strategy.shape, total / strategy.cells)
    for attributes, table in zip(strategy.attributes, tables, strict=True):
        if attributes and table.sum() > 0.0:
            sides = [side if axis in attributes else 1 for axis, side in enumerate(strategy.shape)]
            cells *= table.reshape(sides) * (table.size / table.sum())
    return cells


def _variance_of_sum(noisy: Floats, noise: IntegerNoise, threads: int | None, weight: int) -> float:
    """Return how far the sum of a table is off once the noise is taken out of its cells, as a variance.

    Where most cells are empty the sum of the others has little noise. For Gaussian noise of variance v, the covariance
    of what cells hold, given all of the noisy ones, is v times the derivative of what they are expected to hold
    (Robbins 1956; Efron 2011). So the variance of their sum is v times by how much it grows when all noisy cells do.
    For Laplace noise, and as what is learned of a table's pieces moves too, it is a guess. Nothing but the total's
    precision depends on it. It is not below what one cell has.
    """
    deviation = noise.deviation / weight
    if noisy.size > _LARGEST_MOVED or is_rare(noise, weight):
        return noisy.size * deviation**2
    step = _STEP * deviation / math.sqrt(noisy.size)
    less, more = (float(denoised(noisy + by, noise, threads, weight).sum()) for by in (-step, step))
    return max((more - less) / (2.0 * step), 1.0) * deviation**2


def _mean(values: Sequence[tuple[float, float]]) -> float:
    """Return the mean of numbers by the precision of each, drawn to 0; one that is exact is taken as it is."""
    exact = [value for value, variance in values if variance == 0.0]
    if exact:
        return max(exact[0], 0.0)
    weights = np.array([1.0 / variance for _, variance in values])
    mean = float(weights @ [value for value, _ in values]) / float(weights.sum())
    return drawn_to_none(mean, 1.0 / float(weights.sum()))
