"""Intervals for the population that privacy units were drawn from, by noisy measures alone: post-processing.

What is covered. The data are rows of privacy units that were drawn independently of each other, all in the same way:
with replacement, or from a population so large that it makes no difference; a given number of them, or a Poisson one.
x_i is what unit i adds to a group's measure, after bounds on groups, rows and values, and S is the sum of all x_i. The
interval of a count or a sum holds the mean of S over all samples that might have been drawn. That of a mean or a
proportion holds the ratio of the means of two such measures: the mean of the population's rows, as they are bounded.
Each interval holds its figure with probability 0.95 at least, noise and sample taken together, for every population,
however small the group; nothing is approximated by a normal distribution. Between units nothing is known but the
bounds that were declared, so that intervals are wide where a unit may have many rows.

Of what units contribute themselves R is 1, and the mean is that of the population's units.

Counts and sums. Let x_i lie between 0 and B, and m be the mean of S. By Chernoff's bound S is at most s < m, and at
least s > m, but with probability exp(-(m - s + s ln(s / m)) / B). So m lies where that exponent is at most ln(1 / p),
but for a probability p on either side. The exact S is within the reach of the noise but for its own probability, and
the ends rise with S.

Means. Let v lie between l and h, R rows a unit at most, m be the mean of the population's rows and N the mean of their
number. Z_i, the sum of v - m over the rows of unit i, has mean 0, is at most R (h - l), and the sum of its variances is
at most R N (h - m) (m - l), as the square of a sum of k <= R terms is at most R times that of their squares, whose mean
is at most (h - m) (m - l) (Bhatia, Davis 2000). By Bernstein's inequality the sum of all Z_i is beyond
sqrt(2 t R N (h - m) (m - l)) + R (h - l) t / 3, t = ln(2 / p), but with probability p. With the noise of the sum and of
the number of rows, which m - (l + h) / 2 multiplies, all m that are not refuted lie between the roots of a quadratic.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Choice
from dpfast.errors import ParameterError
from dpfast.queries import Measure, Query
from dpfast.releases.mean_noise import MeanNoise

__all__ = [
    "POPULATION",
    "AskedInterval",
    "Sampled",
    "has_population_interval",
    "read_sampled",
    "refuse_other_figures",
    "refuse_population",
]

#: What a query's name is followed by in the columns of these intervals.
POPULATION = ("_population_lower", "_population_upper")
#: An interval misses with this probability, of which noise and sample have equal parts.
_MISS = 0.05
_COUNTS, _MEANS = ("count", "filtered_count", "units"), ("mean", "proportion")
_STEPS = 60
#: More than what rounding moves a root by.
_WIDER = 1e-9

#: What intervals cover.
AskedInterval: TypeAlias = Annotated[Literal["noise", "population"], Choice(("noise", "population"))]
_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Sampled:
    """How units were sampled: how many rows each may have in a group.

    Attributes
    ----------
    rows
        At most; 1 where each row is a unit.

    """

    rows: int

    def interval(
        self, query: Query, parts: Sequence[Any], noisy: Sequence[NDArray[np.int64]]
    ) -> tuple[_Floats, _Floats]:
        """Return the ends of the intervals of all groups.

        Parameters
        ----------
        query
            What is asked: `has_population_interval`.
        parts
            What it is answered from, with its noise.
        noisy
            What was drawn of these.

        """
        if query.kind in _MEANS:
            return self._of_means(query, parts, noisy)
        (part,), (drawn,) = parts, noisy
        low, high = _row_bounds(part.measure)
        reach, values = part.reach(_MISS / 2), drawn.astype(np.float64) * part.step
        sign = -1.0 if low < 0 else 1.0
        rows = self._rows_of(part.measure)
        largest, side = rows * max(abs(low), abs(high)), math.log(4 / _MISS)
        low_end, high_end = (
            _lowest_mean(np.maximum(sign * values - reach, 0.0), largest * side),
            _highest_mean(np.maximum(sign * values + reach, 0.0), largest * side),
        )
        return (low_end, high_end) if sign > 0 else (-high_end, -low_end)

    def _rows_of(self, measure: Measure) -> int:
        """Return how often a unit adds to a measure: once to what it contributes itself."""
        return 1 if measure.of_units or measure.kind == "units" else self.rows

    def _of_means(
        self, query: Query, parts: Sequence[Any], noisy: Sequence[NDArray[np.int64]]
    ) -> tuple[_Floats, _Floats]:
        """Return the interval of a mean: four events have a fourth of the probability to miss each."""
        summed, counted = parts
        each = self._rows_of(summed.measure)
        lowest, highest = query.limits()
        miss = _MISS / 4
        # Of differences to the centre that the sum is of.
        low, high = _row_bounds(summed.measure)
        middle, width = (low + high) / 2, high - low
        off = counted.reach(miss)
        noise = MeanNoise(summed.noises(summed.step), counted.noises(1.0), width / 2).together(miss)
        count = noisy[1].astype(np.float64)
        sums = noisy[0].astype(np.float64) * summed.step - middle * count
        most = _highest_mean(np.maximum(count + off, 0.0), each * math.log(1 / miss))
        t = math.log(2 / miss)
        known = count - off > 0
        rows = np.where(known, count, 1.0)
        linear = noise + each * width * t / 3
        spread = 2 * t * each * most
        ends = []
        for side in (-1.0, 1.0):
            # In units of half the width about the middle: (rows (q - m))**2 <= spread (1 - m) (1 + m).
            q = (sums + side * linear) / rows / (width / 2)
            a, b, c = rows**2 + spread, rows**2 * q, rows**2 * q**2 - spread
            root = np.sqrt(np.maximum(b**2 - a * c, 0.0))
            end = (b + side * root) / a
            end = np.where((b**2 - a * c >= 0) & known, end, side)
            # Where the line meets the bound before the root does, nothing is refuted.
            end = np.where(side * q >= 1.0, side, end)
            mean = end * (1 + _WIDER) * (width / 2) + middle + summed.measure.centre * summed.step
            ends.append(np.clip(mean + side * _WIDER * width, float(lowest), float(highest)))
        return ends[0], ends[1]


def has_population_interval(query: Query) -> bool:
    """Return whether these intervals are known for a query."""
    return query.kind in (*_COUNTS, "sum", *_MEANS)


def read_sampled(interval: str, queries: Mapping[str, Query], rows: int) -> Sampled | None:
    """Return how units were sampled where intervals for a population are asked for, and known for what is asked."""
    if interval == "noise":
        return None
    if not any(map(has_population_interval, queries.values())):
        raise ParameterError("interval", interval, '"noise" where no count, sum, mean or proportion is asked')
    return Sampled(rows)


def refuse_other_figures(interval: str, queries: Mapping[str, Query]) -> None:
    """Refuse these intervals for figures of decimals, dates and times, and of sums whose terms may cancel."""
    for name, query in queries.items():
        _refuse_both_signs(interval, name, query)
        if query.values.tick != 1 and has_population_interval(query) and query.kind not in _COUNTS:
            allowed = f'"noise" for the column {query.column!r} of decimals, dates or times'
            raise ParameterError("interval", interval, allowed, "cast it to a number")


def refuse_population(interval: str, why: str) -> None:
    """Refuse these intervals where they are not known."""
    if interval != "noise":
        raise ParameterError("interval", interval, f'"noise" {why}')


def _refuse_both_signs(interval: str, name: str, query: Query) -> None:
    """Refuse a sum of which terms may cancel each other: how many there are would have to be known."""
    if query.kind == "sum" and query.limits()[0] < 0 < query.limits()[1]:
        allowed = '"noise" for a sum with bounds on both sides of 0'
        raise ParameterError("interval", interval, allowed, f"ask for a mean and a count in place of {name}")


def _row_bounds(measure: Measure) -> tuple[float, float]:
    low, high = measure.extremes
    step = 2.0**measure.step_exponent
    return (0.0, 1.0) if measure.kind == "units" else (low * step, high * step)


def _highest_mean(s: _Floats, limit: float) -> _Floats:
    """Return the largest m with m - s + s ln(s / m) <= limit."""
    known = np.maximum(s, limit * 1e-12)
    # From above the root of a convex function: Newton's steps in u = ln(m / s) come down to it.
    u = np.log1p((2 * limit + np.sqrt(2 * known * limit)) / known)
    for _ in range(_STEPS):
        u = np.maximum(u - (_excess(u) - limit / known) / np.maximum(np.expm1(u), 1e-300), 0.0)
    # It rises with s.
    highest: _Floats = known * np.exp(u) * (1 + _WIDER)
    return highest


def _lowest_mean(s: _Floats, limit: float) -> _Floats:
    """Return the least m with m - s + s ln(s / m) <= limit."""
    known = np.maximum(s, limit * 1e-2)
    u = -1.0 - limit / known
    for _ in range(_STEPS):
        u = np.minimum(u - (_excess(u) - limit / known) / np.minimum(np.expm1(u), -1e-300), 0.0)
    # Of less than a hundredth of the limit it is below exp(-100) of it.
    lowest: _Floats = np.where(s > known * 0.999, known * np.exp(u), 0.0) * (1 - _WIDER)
    return lowest


def _excess(u: _Floats) -> _Floats:
    """Return exp(u) - 1 - u, by its series where the difference would be lost in rounding."""
    near = u**2 / 2 * (1 + u / 3 * (1 + u / 4 * (1 + u / 5)))
    excess: _Floats = np.where(np.abs(u) < 1e-3, near, np.expm1(u) - u)
    return excess
