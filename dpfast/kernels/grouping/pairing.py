"""Number the pairs of a privacy unit and a group that have rows, from rows sorted by unit."""

from __future__ import annotations

from dpfast.kernels.compilation import kernel

__all__ = ["number_pairs"]


@kernel
def number_pairs(starts, sorted_groups, sorted_rows, last_unit, last_pair, pairs, units, groups, rows):
    """Give each row the number of its unit's pair with its group; return how many pairs there are.

    Parameters
    ----------
    starts
        Where each unit's rows begin, and where the last one's end.
    sorted_groups, sorted_rows
        The rows' groups, unit by unit, and which rows they are.
    last_unit, last_pair
        For each group -1, and room for its latest pair.
    pairs
        Written to: each row's pair.
    units, groups, rows
        Written to, as many as there are rows in all: each pair's unit, group and number of rows. Units without a row
        have no number, so that none of them is taken for one.
    """
    number = known = 0
    for unit in range(len(starts) - 1):
        if starts[unit] == starts[unit + 1]:
            continue
        for place in range(starts[unit], starts[unit + 1]):
            group = sorted_groups[place]
            if last_unit[group] != unit:
                last_unit[group] = unit
                last_pair[group] = number
                units[number] = known
                groups[number] = group
                rows[number] = 0
                number += 1
            pair = last_pair[group]
            rows[pair] += 1
            pairs[sorted_rows[place]] = pair
        known += 1
    return number


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
