"""The most common candidate of every group: the exponential mechanism with counts of rows as scores.

What it costs. Of the rows of a privacy unit, at most R are in each of at most G groups. Let d_g be the vector by which
the counts of group g change between neighbours, over the candidates. With a * count as the exponent, the probability of
one group's answer changes by a factor between exp(a min d_g) / N and exp(a max d_g) / N, N the change of the sum of the
weights, so that its logarithm has the range a (max d_g - min d_g), and lies within it of 0: the group's answer costs no
more than that epsilon (its bounded range, Durfee, Rogers 2019).

- A unit that is added has c_g >= 0 rows by candidate, their sum at most R, so that the range is a R at most, in each of
  G groups. With a = epsilon / R that is epsilon in each of G: counts are monotonic.
- A unit that is replaced takes c_g away and brings c'_g: max d_g <= max c'_g and min d_g >= -max c_g, so that the range
  is 2 a R at most: R rows may move from one candidate to another. Hence a = epsilon / (2 R). Where the unit is in the
  group on one side only, the range is a R, half as much. There are as many groups it may leave as enter; pair these. A
  pair's answers are independent, so that their ranges add up, to epsilon: G draws at epsilon stand for all of them,
  and not 2 G.

The answers of all groups are independent given the data, and of a group that no row changes nothing changes.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpfast.accounting.privacy_unit import Neighbors
from dpfast.aggregation.grouped_points import GroupedPoints
from dpfast.kernels.grouping.by_group import count_points
from dpfast.kernels.selection.argmax import GUMBEL
from dpfast.mechanisms.selection.argmax import select_rows, slopes
from dpfast.mechanisms.selection.candidates import borrow_candidates
from dpfast.mechanisms.selection.error_bounds import selection_error
from dpfast.randomness import RandomSource

__all__ = ["count_error", "count_slope", "draw_modes"]

#: Counts that are made of points are made so many at a time.
STRETCH_CELLS = 1 << 22

_MOST_ROWS = 2**38


def count_slope(epsilon: float, rows: int, neighbors: Neighbors) -> float:
    """Return what counts are multiplied by: epsilon / rows, or epsilon / (2 rows) for replaced units, rounded down.

    Examples
    --------
    >>> count_slope(1.0, 4, "add_remove"), count_slope(1.0, 4, "replace")
    (0.25, 0.125)

    """
    slope = slopes(epsilon, float(rows), neighbors == "add_remove", 1)
    assert isinstance(slope, float)
    return slope


def count_error(candidates: int, epsilon: float, rows: int, neighbors: Neighbors, miss: float) -> int:
    """Return how many rows fewer the answer has than the most common candidate, with probability at least 1 - ``miss``.

    It is an upper bound: that of `dpfast.selection_error` with ``exact=True``, for counts that are whole numbers.

    Examples
    --------
    >>> count_error(10, 1.0, 1, "add_remove", 0.05), count_error(1, 1.0, 1, "add_remove", 0.05)
    (5, 0)

    """
    monotonic = neighbors == "add_remove"
    error = selection_error(candidates, epsilon, float(rows), monotonic, miss=miss, exact=True)
    return max(min(math.ceil(error) - 1, _MOST_ROWS), 0)


def draw_modes(
    counts: NDArray[np.int64] | GroupedPoints, candidates: int, slope: float, source: RandomSource
) -> NDArray[np.int64]:
    """Return the place of every group's selected candidate.

    Guarantee
        Candidate i of a group is selected with probability proportional to exp(slope * count), exactly; one word is
        read for each candidate of each group, whatever the counts are.

    Parameters
    ----------
    counts
        Rows by group and candidate; or each row's candidate, numbered from 1, by group.
    candidates
        How many there are.
    slope
        What `count_slope` gives.
    source
        Where keys come from.

    """
    if not isinstance(counts, GroupedPoints):
        return _select(counts, slope, source)
    groups = len(counts)
    drawn = np.empty(groups, np.int64)
    step = max(STRETCH_CELLS // candidates, 1)
    for first in range(0, groups, step):
        part = counts[first : first + step]
        table = np.zeros((len(part), candidates), np.int64)
        count_points(part.points, part.starts, part.stops, table)
        drawn[first : first + step] = _select(table, slope, source)
    return drawn


def _select(counts: NDArray[np.int64], slope: float, source: RandomSource) -> NDArray[np.int64]:
    candidates = borrow_candidates(counts)
    return candidates.places(select_rows(candidates, slope, GUMBEL, source))
