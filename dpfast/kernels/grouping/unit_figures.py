"""Add up what each privacy unit has in each group that it keeps, and add one number of each to the group's.

A sum is held in two int64: its bits from 24 on and the 24 below, each added up by itself. Of whole numbers of at most
2**47 in magnitude, or of differences to a centre below 2**24, both stay below 2**62 for 2**38 rows.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import kernel

__all__ = ["MISSING", "add_rows_of_one", "add_unit", "add_units"]

#: Stands for the value of a row that has none.
MISSING = np.int64(-(1 << 63))
_BITS = np.int64(24)
_MASK = np.int64((1 << 24) - 1)


@kernel
def contributed(high, low, count, averages, shift, lower, upper):
    """Return what a unit of ``count`` > 0 values with the sum ``high * 2**24 + low`` contributes.

    Their mean, rounded to the nearest whole number; else the sum divided by ``2**shift``, 0 <= shift <= 24, rounded to
    the nearest and clipped; halves up. ``low`` is not negative.
    """
    high += low >> _BITS
    low &= _MASK
    if averages:
        total = (high << _BITS) + low
        mean = total // count
        rest = total - mean * count
        return mean + np.int64(rest >= count - rest)
    # Beyond these limits the sum is beyond all bounds, which are below 2**24.
    far = np.int64(1) << shift
    if high > far:
        return upper
    if high < -far - 1:
        return lower
    half = (np.int64(1) << shift) >> np.int64(1)
    return min(max((high << (_BITS - shift)) + ((low + half) >> shift), lower), upper)


@kernel
def add_units(
    first,
    last,
    starts,
    groups,
    rows,
    stops,
    kept,
    values,
    averages,
    shift,
    lower,
    upper,
    owner,
    place,
    sums,
    table,
    counts,
):
    """Add what units contribute to the groups that they keep.

    Parameters
    ----------
    first, last
        The units from ``first`` to before ``last``.
    starts, groups, rows
        Where each unit's rows begin, their groups unit by unit, and which rows they are.
    stops, kept
        Where the groups that each unit keeps end, and these, unit by unit.
    values : int64
        What each row adds, `MISSING` where it has no value.
    averages, shift, lower, upper
        How it is put together: see `contributed`.
    owner, place : one per group
        -1 at first, then the last unit that keeps the group; and the group's place among those that it keeps.
    sums : int64, three times as many as groups that a unit keeps at most
        Scratch.
    table, counts : int64, one per group
        Added to: what units contribute, and how many have a value.
    """
    for unit in range(first, last):
        begin = stops[unit - 1] if unit > 0 else np.int64(0)
        number = stops[unit] - begin
        for k in range(number):
            group = kept[begin + k]
            owner[group] = unit
            place[group] = k
            sums[k, 0] = sums[k, 1] = sums[k, 2] = 0
        for j in range(starts[unit], starts[unit + 1]):
            group = groups[j]
            value = values[rows[j]]
            if owner[group] == unit and value != MISSING:
                k = place[group]
                sums[k, 0] += value >> _BITS
                sums[k, 1] += value & _MASK
                sums[k, 2] += 1
        for k in range(number):
            if sums[k, 2] > 0:
                group = kept[begin + k]
                table[group] += contributed(sums[k, 0], sums[k, 1], sums[k, 2], averages, shift, lower, upper)
                counts[group] += 1


@kernel
def add_rows_of_one(groups, values, sums):
    """Add rows of one unit to the sums of its groups, three numbers each; rows of the group -1 are left out."""
    for j in range(len(groups)):
        group, value = groups[j], values[j]
        if group >= 0 and value != MISSING:
            sums[group, 0] += value >> _BITS
            sums[group, 1] += value & _MASK
            sums[group, 2] += 1


@kernel
def add_unit(sums, averages, shift, lower, upper, table, counts):
    """Add what one unit contributes, whose rows were added up by `add_rows_of_one`."""
    for group in range(len(sums)):
        if sums[group, 2] > 0:
            table[group] += contributed(sums[group, 0], sums[group, 1], sums[group, 2], averages, shift, lower, upper)
            counts[group] += 1


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
