"""Noisy measures -> what a release shows of a query: value, scale and interval. All of it is post-processing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.columns.candidates import as_series
from dpfast.mechanisms.noise.half_widths import half_width
from dpfast.queries import QuantileQuery
from dpfast.releases.planned_queries import DrawnModes, DrawnQuantiles, DrawnTogether, NoisyMeasure, PlannedQuery

__all__ = ["answer"]

#: An interval misses the true value with this probability.
_MISS = 0.05


def answer(planned: PlannedQuery, noisy: Sequence[NDArray[np.int64]]) -> list[pl.Series]:
    """Return a query's value, scale and interval columns: post-processing of the noisy measures."""
    part, total = planned.parts[0], noisy[0]
    columns: tuple[pl.Series | NDArray[Any], ...]
    if isinstance(part, DrawnModes):
        columns = as_series(part.measure.candidates).gather(total), np.full(len(total), part.reach(_MISS))
    elif isinstance(part, (DrawnQuantiles, DrawnTogether)):
        assert isinstance(planned.query, QuantileQuery)
        whole = planned.whole and part.measure.step_exponent >= 0
        values = total * int(part.step) if whole else part.measure.grid.values(total)
        columns = (
            *(values[:, place] for place in planned.query.order),
            np.full(len(total), part.reach(_MISS)),
        )
    elif planned.query.kind == "mean":
        columns = _mean(planned, *noisy)
    else:
        reach = half_width(part.mechanism, part.scale, _MISS)
        step = 1 if planned.whole and part.measure.step_exponent == 0 else part.step
        scale = np.full(total.size, part.scale * part.step)
        columns = (total * step, scale, _saturating(total, -reach) * step, _saturating(total, reach) * step)
    return [pl.Series(name, column) for name, column in zip(planned.columns, columns, strict=True)]


def _saturating(values: NDArray[np.int64], move: int) -> NDArray[np.int64]:
    limits = np.iinfo(np.int64)
    if move >= 0:
        return np.minimum(values, limits.max - move) + move
    return np.maximum(values, limits.min - move) + move


def _mean(planned: PlannedQuery, total: NDArray[np.int64], count: NDArray[np.int64]) -> tuple[NDArray[Any], ...]:
    """Return a mean and its interval from the noisy sum of differences to the middle and the noisy count.

    The interval combines those of sum and count, each missing with half the probability (a union bound).
    """
    summed, counted = planned.parts
    assert isinstance(summed, NoisyMeasure)
    assert isinstance(counted, NoisyMeasure)
    assert planned.query.bounds is not None
    low, high = planned.query.bounds
    middle = summed.measure.centre * summed.step
    reach = half_width(summed.mechanism, summed.scale, _MISS / 2) * summed.step
    reach_of_count = half_width(counted.mechanism, counted.scale, _MISS / 2)
    sums = total * summed.step
    rows = np.maximum(count, 1).astype(np.float64)
    fewest, most = np.maximum(count - float(reach_of_count), 1.0), np.maximum(count + float(reach_of_count), 1.0)
    value = np.clip(middle + sums / rows, low, high)
    lower = middle + np.minimum((sums - reach) / fewest, (sums - reach) / most)
    upper = middle + np.maximum((sums + reach) / fewest, (sums + reach) / most)
    return value, summed.scale * summed.step / rows, np.clip(lower, low, high), np.clip(upper, low, high)
