"""What privacy units have, from rows that are sorted by unit, or of which one row of each unit is wanted."""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import inlined, kernel
from dpfast.kernels.intrinsics import high_product

__all__ = ["choose_ranks", "count_by_group", "draw_rows", "survey_units"]


@kernel
def count_by_group(unit, groups, last_unit, place, distinct, counts):
    """Count one unit's rows by group, and return how many groups it has.

    Parameters
    ----------
    unit
        The unit's number.
    groups : int32
        Its rows' groups.
    last_unit : int32, one per group
        -1 at first; then the last unit that was seen in the group.
    place : int32, one per group
        Set to the group's place in ``distinct``.
    distinct, counts : int32, int64
        The unit's groups, in the order they were met, and its rows in each; as long as the most that a unit may have.
    """
    found = 0
    for j in range(len(groups)):
        group = groups[j]
        if last_unit[group] != unit:
            last_unit[group] = unit
            place[group] = found
            distinct[found] = group
            counts[found] = 1
            found += 1
        else:
            counts[place[group]] += 1
    return found


@inlined
def _place(number, points, looked_up):
    """Return the place of the last point that a number reaches; both are at least 1."""
    if number < len(looked_up):
        return np.int64(looked_up[number])
    low, high = np.int64(0), np.int64(len(points))
    while high - low > 1:
        middle = (low + high) >> 1
        if points[middle] <= number:
            low = middle
        else:
            high = middle
    return low


@kernel
def survey_units(
    first,
    last,
    starts,
    sorted_groups,
    whole,
    group_points,
    row_points,
    looked_up,
    last_unit,
    place,
    distinct,
    rows,
    units,
    shares,
):
    """Count units by how many groups they have, and share each among how many rows it has in these.

    Parameters
    ----------
    first, last
        The units from ``first`` to before ``last``.
    starts : int64
        Where each unit's rows begin in ``sorted_groups``, and where the last one's end.
    sorted_groups : int32
        The groups of all rows, unit by unit.
    whole : int64
        What a unit's shares add up to at most: rounded down, so that they never exceed it.
    group_points, row_points, looked_up
        The least numbers of groups and of rows of each row and column, and the places of small numbers.
    last_unit, place, distinct, rows
        Scratch, as in `count_by_group`; -1 in ``last_unit``.
    units, shares : int64
        Added to: a count for each of ``group_points``, and of all pairs with ``row_points``.
    """
    for unit in range(first, last):
        own = sorted_groups[starts[unit] : starts[unit + 1]]
        groups = count_by_group(unit, own, last_unit, place, distinct, rows)
        if groups > 0:
            row, share = _place(groups, group_points, looked_up), whole // groups
            units[row] += 1
            for k in range(groups):
                shares[row, _place(rows[k], row_points, looked_up)] += share


@kernel
def choose_ranks(counts, words, ranks):
    """Choose one of each unit's rows by its rank among them (int64), -1 for units without a row.

    ``words`` are fresh uniform uint64, one for each unit: each rank has a chance within 2**-64 of all others'.
    """
    for unit in range(len(ranks)):
        ranks[unit] = np.int64(high_product(words[unit], np.uint64(counts[unit]))) if counts[unit] > 0 else np.int64(-1)


@kernel
def draw_rows(units, groups, ranks, rows):
    """Write the row whose rank among the rows of its unit was chosen; rows without unit or group (-1) do not count.

    ``ranks`` (int64, one per unit) is used up.
    """
    number = len(ranks)
    for i in range(len(units)):
        unit = units[i]
        if unit >= 0 and unit < number and groups[i] >= 0:
            if ranks[unit] == 0:
                rows[unit] = i
            ranks[unit] -= 1


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
