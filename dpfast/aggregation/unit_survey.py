"""What privacy units have, as a small table: how many groups, and how many rows in each. Exact, and merged by adding.

A unit with g groups is counted in one row of the table, that of g: once as a unit, and in the columns of the numbers of
rows that it has in its groups, a g-th for each group. So one unit more or fewer changes one row, by one unit there and
by shares that are at least 0 and add up to 1 at most: that is all that depends on it, whatever it has.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpfast.aggregation.private import Private
from dpfast.aggregation.unit_orders import UnitOrder, shares_of_rows
from dpfast.kernels.grouping.surveying import survey_units
from dpfast.threads import in_stretches, thread_count

__all__ = ["GROUP_POINTS", "ROW_POINTS", "WHOLE", "UnitSurvey"]

#: A unit's one count, in whole parts: 2**31 units have 2**55 of them.
WHOLE = 2**24
#: Of these, shares have the factor 2**18, and weights the factor 2**6.
_SHARES, _WEIGHTS = 2**18, 2**6


def _points(most: int) -> NDArray[np.int64]:
    """Return powers of two, and the middle between each two, up to below a number."""
    powers = (1 << place for place in range(most.bit_length()))
    found = sorted({point for power in powers for point in (power, power + power // 2) if point < most})
    return np.array(found, np.int64)


#: The least numbers of groups, and of rows in a group, of the table's rows and columns; beyond the last all are one.
GROUP_POINTS, ROW_POINTS = _points(2**31), _points(2**38)
#: Smaller numbers, as most are, have their place looked up: both kinds begin with the same points.
_LOOKED_UP = (np.searchsorted(ROW_POINTS, np.arange(1 << 12), side="right") - 1).clip(0).astype(np.uint8)
#: Tables of each thread's own stay in the cache.
_MOST_SHARED = 1 << 16


class UnitSurvey(Private):
    """What units have: exact and private.

    Attributes
    ----------
    units : int64
        How many units have so many groups.
    shares : int64
        A row for each of these, a column for every number of rows: units, in parts of 2**18, by the rows in their
        groups.

    """

    def __init__(self) -> None:
        self.units = np.zeros(GROUP_POINTS.size, np.int64)
        self.shares = np.zeros((GROUP_POINTS.size, ROW_POINTS.size), np.int64)

    def add_units(self, order: UnitOrder, keys: int) -> None:
        """Count units, of which all rows are given unit by unit; all groups are below ``keys``."""
        threads = thread_count(None, order.groups.size) if keys <= _MOST_SHARED else 1
        shares_of = shares_of_rows(order, threads)

        def count(first: int, last: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
            units, shares = np.zeros_like(self.units), np.zeros_like(self.shares)
            last_unit, place = np.full(keys, -1, np.int32), np.empty(keys, np.int32)
            most = max(min(order.longest, keys), 1)
            scratch = last_unit, place, np.empty(most, np.int32), np.empty(most, np.int64)
            points = GROUP_POINTS, ROW_POINTS, _LOOKED_UP
            survey_units(*shares_of[first], order.starts, order.groups, _SHARES, *points, *scratch, units, shares)
            return units, shares

        for units, shares in in_stretches(count, threads, threads):
            self.units += units
            self.shares += shares

    def add_unit(self, rows: NDArray[np.int64]) -> None:
        """Count one unit, that has these numbers of rows in its groups, at least 1 each."""
        if rows.size:
            place = _place(rows.size, GROUP_POINTS)
            self.units[place] += 1
            # Rounded down, so that a unit's shares add up to no more than it.
            np.add.at(self.shares[place], [_place(int(number), ROW_POINTS) for number in rows], _SHARES // rows.size)

    def by_groups(self) -> NDArray[np.int64]:
        """Return how many units have so many groups, in parts of `WHOLE`; one unit adds to one of them."""
        return self.units * WHOLE

    def by_rows(self, max_groups: int) -> NDArray[np.int64]:
        """Return pairs of a unit and a group by their rows, as many as units keep, in parts of ``max_groups * WHOLE``.

        A unit of g groups counts for min(g, max_groups) pairs, for a little fewer where the table has one row for
        several g. So it adds no more than ``max_groups`` pairs: 1 `WHOLE`, of numbers that are at least 0.
        """
        kept = np.minimum(GROUP_POINTS, max_groups)
        weights = _WEIGHTS * kept // max_groups
        found: NDArray[np.int64] = weights @ self.shares
        return found


def _place(number: int, points: NDArray[np.int64]) -> int:
    """Return the place of the last point that a number reaches; both are at least 1."""
    return int(np.searchsorted(points, number, side="right")) - 1
