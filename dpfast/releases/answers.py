"""Noisy measures -> what a release shows of a query: value, scale and interval. All of it is post-processing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.columns.candidates import as_series
from dpfast.columns.values import ValueKind
from dpfast.queries import DistributionQuery, QuantileQuery
from dpfast.releases.distribution_answers import answer_distribution
from dpfast.releases.mean_noise import MeanNoise
from dpfast.releases.moment_answers import answer_spread
from dpfast.releases.planned_queries import (
    Combined,
    DrawnModes,
    DrawnQuantiles,
    DrawnTogether,
    NoisyMeasure,
    PlannedQuery,
)
from dpfast.releases.ranked_values import DrawnValues, ShownValues

__all__ = ["answer"]

#: An interval misses the true value with this probability.
_MISS = 0.05


def answer(planned: PlannedQuery, noisy: Sequence[Any]) -> list[pl.Series]:
    """Return a query's value, scale and interval columns: post-processing of the noisy measures."""
    part, total = planned.parts[0], noisy[0]
    columns: tuple[pl.Series | NDArray[Any], ...]
    if isinstance(part, DrawnValues):
        columns = _values(part, total)
    elif isinstance(part, DrawnModes):
        winners = as_series(part.measure.candidates).gather(total)
        columns = winners, np.full(len(total), part.reach(_MISS))
    elif isinstance(part, (DrawnQuantiles, DrawnTogether)):
        assert isinstance(planned.query, QuantileQuery)
        grid = part.measure.grid
        points = (planned.query.values.points(total[:, place], grid) for place in planned.query.order)
        columns = (*points, np.full(len(total), part.reach(_MISS)))
    elif isinstance(planned.query, DistributionQuery):
        assert isinstance(part, NoisyMeasure)
        columns = answer_distribution(part, planned.query, total, _MISS)
    elif planned.query.kind in ("mean", "proportion"):
        columns = _mean(planned, *noisy)
    elif planned.query.kind in ("variance", "std", "covariance"):
        columns = answer_spread(planned, noisy, _MISS)
    else:
        reach = part.steps(_MISS)
        values, exponent = planned.query.values, part.measure.step_exponent
        scale = pl.Series(values.distances(np.array([part.scale * part.step]))).new_from_index(0, total.size)
        if type(values) is ValueKind and values.whole and exponent == 0 and _is_far_from_ends(total, reach):
            # Counts, of which there may be very many: no column is copied.
            shown = pl.Series(total)
            columns = shown, scale, shown - reach, shown + reach
        else:
            lower, upper = (values.sums(_saturating(total, move), exponent) for move in (-reach, reach))
            columns = values.sums(total, exponent), scale, lower, upper
    if planned.sampled is not None:
        columns = *columns, *planned.sampled.interval(planned.query, planned.parts, noisy)
    return [
        column.alias(name) if isinstance(column, pl.Series) else pl.Series(name, column)
        for name, column in zip(planned.columns, columns, strict=True)
    ]


def _values(part: DrawnValues, shown: ShownValues) -> tuple[pl.Series | NDArray[Any], ...]:
    """Return lists of values, of their noisy numbers of rows, the scale, and lists of both ends of intervals."""
    reach, rows = part.steps(_MISS), shown.rows
    counts, low, high = (shown.lists(pl.Series(_saturating(rows, move))) for move in (0, -reach, reach))
    return shown.lists(shown.values), counts, np.full(shown.groups, part.scale), low, high


def _is_far_from_ends(values: NDArray[np.int64], move: int) -> bool:
    """Return whether what is moved by so much up or down stays an int64."""
    return max(move, abs(int(values.max(initial=0))), abs(int(values.min(initial=0)))) < 2**62


def _saturating(values: NDArray[np.int64], move: int) -> NDArray[np.int64]:
    limits = np.iinfo(np.int64)
    # Of a norm that was chosen very large the noise may reach beyond every int64.
    move = max(min(move, limits.max), -limits.max)
    moved = np.minimum(values, limits.max - move) if move >= 0 else np.maximum(values, limits.min - move)
    moved += move
    return moved


def _mean(
    planned: PlannedQuery, total: NDArray[np.int64], count: NDArray[np.int64]
) -> tuple[pl.Series | NDArray[Any], ...]:
    """Return a mean and its interval from the noisy sum of differences to the middle and the noisy count.

    Where the noise leaves nothing of a group, because two of its standard deviations reach half the width of the
    bounds, the mean of all groups together is shown (Spark: of a block of groups). The quotient would be one of the
    bounds, most of the time; the interval is that of the quotient, and says how little is known of the group.

    The interval is that of `MeanNoise`.
    """
    summed, counted = planned.parts
    assert isinstance(summed, NoisyMeasure)
    assert isinstance(counted, (NoisyMeasure, Combined))
    # All of it from the middle of the bounds on, in the whole numbers that the values are.
    values, (low, high) = planned.query.values, planned.query.limits()
    step = 2.0**summed.measure.step_exponent
    middle = summed.measure.centre * Fraction(step)
    noise = MeanNoise(summed.noises(step), counted.noises(1.0), float(max(high - middle, middle - low)))
    sums, counts = (total * step).astype(np.float64), count.astype(np.float64)
    rows = np.maximum(counts, 1.0)
    lower, upper = noise.interval(sums, counts, _MISS)
    together = np.clip(sums.sum() / max(float(counts.sum()), 1.0), float(low - middle), float(high - middle))
    deviation = math.hypot(summed.deviation * step, together * counted.deviation)
    value = np.where(2 * deviation < rows * float(high - low) / 2, sums / rows, together)
    shown = (values.near(middle, beyond, low, high) for beyond in (np.clip(value, lower, upper), lower, upper))
    value_shown, lower_shown, upper_shown = shown
    return value_shown, values.distances(summed.scale * summed.step / rows), lower_shown, upper_shown
