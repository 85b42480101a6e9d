"""Marginals with noise, without most of it, and cells that have them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpfast.mechanisms.noise.integer_noise import IntegerNoise
from dpfast.strategies.marginals import MarginalTables
from dpfast.synthesis.histograms.denoising import denoised
from dpfast.synthesis.histograms.levels import drawn_to_none

__all__ = ["cells_of_tables"]

Floats = NDArray[np.float64]


def cells_of_tables(
    strategy: MarginalTables,
    noisy: Sequence[NDArray[np.int64]],
    noise: IntegerNoise,
    records: tuple[float, float] | None,
    threads: int | None = None,
) -> Floats:
    """Return cells whose marginals are what the tables of a strategy are expected to hold, given all with noise.

    Each table is a histogram of its own, and `denoised` takes the noise out of it. Where no attribute is in two tables
    the cells are the product of all tables, scaled to the same total: 0 or more. Else they are the least squares of
    `MarginalTables.reconstruct`, and may be negative. Nothing is looked at but what was measured and paid for.

    Parameters
    ----------
    strategy, noisy, noise
        What was measured, each number with noise, and the noise.
    records
        What else is known of the number of records, and the variance of that; None for nothing.
    threads
        How many threads share the work.

    """
    tables, totals = [], [] if records is None else [records]
    for attributes, weight, column in zip(strategy.attributes, strategy.weights, noisy, strict=True):
        shape = tuple(strategy.shape[axis] for axis in attributes)
        table = np.asarray(column, np.float64).reshape(shape) / weight
        if attributes:
            table = denoised(table, noise, threads, weight)
        tables.append(table)
        totals.append((float(table.sum()), table.size * (noise.deviation / weight) ** 2))
    if strategy.share_attributes:
        return strategy.reconstruct([weight * table for weight, table in zip(strategy.weights, tables, strict=True)])
    total = _mean(totals)
    cells = np.full(strategy.shape, total / strategy.cells)
    for attributes, table in zip(strategy.attributes, tables, strict=True):
        if attributes and table.sum() > 0.0:
            sides = [side if axis in attributes else 1 for axis, side in enumerate(strategy.shape)]
            cells *= table.reshape(sides) * (table.size / table.sum())
    return cells


def _mean(values: Sequence[tuple[float, float]]) -> float:
    """Return the mean of numbers by the precision of each, drawn to 0; one that is exact is taken as it is."""
    exact = [value for value, variance in values if variance == 0.0]
    if exact:
        return max(exact[0], 0.0)
    weights = np.array([1.0 / variance for _, variance in values])
    mean = float(weights @ [value for value, _ in values]) / float(weights.sum())
    return drawn_to_none(mean, 1.0 / float(weights.sum()))
