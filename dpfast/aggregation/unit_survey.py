"""What privacy units have, as a small table: how many groups, and how many rows in each. Exact, and merged by adding.

A unit with g groups is counted in one row of the table, that of g: once as a unit, and in the columns of the numbers of
rows that it has in its groups, a g-th for each group. So one unit more or fewer changes one row, by one unit there and
by shares that are at least 0 and add up to 1 at most: that is all that depends on it, whatever it has.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpfast.aggregation.private import Private

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
#: Smaller numbers of rows, as most are, have their column looked up.
_LOOKED_UP = np.searchsorted(ROW_POINTS, np.arange(1 << 12), side="right") - 1


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

    def add(self, units: NDArray[np.int32], rows: NDArray[np.int64]) -> None:
        """Count units, of which all pairs are given.

        Parameters
        ----------
        units, rows
            Of each pair of a unit and a group that it has rows in, unit by unit: the unit, and how many rows.

        """
        if not units.size:
            return
        groups = np.bincount(units)
        groups = groups[groups > 0]
        places = _places(groups, GROUP_POINTS)
        self.units += np.bincount(places, minlength=GROUP_POINTS.size)
        # Rounded down, so that a unit's shares add up to no more than it.
        cells = np.repeat(places * ROW_POINTS.size, groups)
        cells += _places(rows, ROW_POINTS)
        np.add.at(self.shares.reshape(-1), cells, np.repeat(_SHARES // groups, groups))

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


def _places(numbers: NDArray[np.int64], points: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the place of the last point that each number reaches; both are at least 1."""
    most = _LOOKED_UP.size - 1
    found: NDArray[np.int64] = np.take(_LOOKED_UP, numbers, mode="clip")
    if numbers.max() >= most:
        many = np.flatnonzero(numbers >= most)
        found[many] = np.searchsorted(points, numbers[many], side="right") - 1
    return found
