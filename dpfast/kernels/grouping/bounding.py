"""Bound what each privacy unit contributes: at most so many groups, at most so many rows in each.

Rows are sorted by unit first (a counting sort), so that one unit's rows lie together; each unit is then
handled by itself, from its own rows and words that no other unit reads.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import kernel
from dpfast.kernels.grouping.surveying import count_by_group
from dpfast.kernels.intrinsics import high_product

__all__ = ["bound_units", "choose_rows", "count_unit_rows", "sort_by_unit"]


@kernel
def choose_rows(groups, wanted, counts, words):
    """Keep some of one unit's next rows: selection sampling in each group; -1 is written for rows not kept.

    Parameters
    ----------
    groups : int32
        Each row's group, 0 <= g < len(wanted).
    wanted, counts : int64, one per group
        The rows still wanted and still to come, these included; both are brought up to date.
    words : uint64
        Fresh uniform words, one for each row, each read at most once.
    """
    for j in range(len(groups)):
        group = groups[j]
        keep = wanted[group] == counts[group]
        if not keep and wanted[group] > 0:
            keep = high_product(words[j], np.uint64(counts[group])) < np.uint64(wanted[group])
        counts[group] -= 1
        if keep:
            wanted[group] -= 1
        else:
            groups[j] = -1


@kernel
def count_unit_rows(units, groups, starts):
    """Count each unit's rows with a unit and a group (both int32, -1: none) into ``starts[unit + 1]``."""
    number = len(starts) - 1
    for i in range(len(units)):
        unit = units[i]
        if unit >= 0 and unit < number and groups[i] >= 0:
            starts[unit + 1] += 1


@kernel
def sort_by_unit(units, groups, first, cursors, sorted_groups, sorted_rows):
    """Write the groups (int32) unit by unit; ``cursors`` holds each unit's next place and moves on.

    ``sorted_rows`` gets the row that each group comes from, counted from ``first`` on, unless it is None.
    """
    number = len(cursors)
    for i in range(len(units)):
        unit = units[i]
        if unit >= 0 and unit < number and groups[i] >= 0:
            place = cursors[unit]
            sorted_groups[place] = groups[i]
            if sorted_rows is not None:
                sorted_rows[place] = first + i
            cursors[unit] = place + 1


@kernel
def bound_units(
    unit,
    last,
    starts,
    sorted_groups,
    sorted_rows,
    max_groups,
    max_rows,
    words,
    last_unit,
    place,
    distinct,
    counts,
    wanted,
    unit_table,
    row_table,
    row_groups,
    held,
    kept_rows,
    all_groups,
):
    """Choose what each unit keeps, from ``unit`` on to before ``last``, until the words are used up.

    A unit with more than ``max_groups`` groups keeps a uniform subset: the first steps of a Fisher-Yates
    shuffle, one word each. Of a kept group with more than ``max_rows`` rows it keeps ``max_rows``, chosen by
    selection sampling (Fan, Muller, Rezucha 1962; Knuth 3.4.2 S), one word a row; that is done only if the
    caller wants to know the rows (``sorted_rows`` is not empty), as a count needs only their number.

    Parameters
    ----------
    unit, last
        The unit to begin with, and the one to end before.
    starts : int64, units + 1
        Where each unit's rows begin in ``sorted_groups``.
    sorted_groups : int32
        Groups 0 <= g < len(unit_table) - 1, unit by unit.
    sorted_rows : int32 or int64
        The row behind each of them, or empty.
    max_groups : int
        The most groups that a unit keeps, at least 1.
    max_rows : int
        The most rows that it keeps in each, at least 1.
    words : uint64
        Fresh uniform words, each read at most once.
    last_unit, place, distinct, counts
        Scratch, as in `count_by_group`; -1 in ``last_unit``, and in ``place`` for groups that a unit does not keep.
    wanted : int64
        Scratch, as long as the most groups that a unit may have.
    unit_table, row_table : int64, one per group and the trash
        Kept units and kept rows are added here.
    row_groups : int32
        Each row's group; set to -1 for rows not kept, if ``sorted_rows`` is given.
    held : int64, one per unit, or empty
        If given: where the groups that the unit keeps end in ``sorted_groups``, which they overwrite from its start
        on, unit by unit.
    kept_rows, all_groups : int64, one per unit, or empty
        If given: how many rows the unit keeps, and how many groups it has before any is left out.

    Returns
    -------
    The first unit that is not done: call again from there with fresh words.
    """
    choosing_rows = len(sorted_rows) > 0
    listing = len(held) > 0
    telling = len(kept_rows) > 0
    listed = held[unit - 1] if listing and unit > 0 else 0
    used = 0
    while unit < last:
        start, stop = starts[unit], starts[unit + 1]
        rows = stop - start
        needed = min(max_groups, rows) if rows > max_groups else 0
        if choosing_rows and rows > max_rows:
            needed += rows
        if used + needed > len(words):
            break

        groups = count_by_group(unit, sorted_groups[start:stop], last_unit, place, distinct, counts)
        kept = groups
        if groups > max_groups:
            kept = max_groups
            for k in range(kept):
                chosen = k + np.int64(high_product(words[used], np.uint64(groups - k)))
                used += 1
                distinct[k], distinct[chosen] = distinct[chosen], distinct[k]
                counts[k], counts[chosen] = counts[chosen], counts[k]

        for k in range(kept):
            wanted[k] = min(counts[k], max_rows)
            unit_table[distinct[k]] += 1
            row_table[distinct[k]] += wanted[k]
        if telling:
            all_groups[unit] = groups
            for k in range(kept):
                kept_rows[unit] += wanted[k]

        if choosing_rows:
            for k in range(kept):
                place[distinct[k]] = k
            for k in range(kept, groups):
                place[distinct[k]] = -1
            for j in range(start, stop):
                k = place[sorted_groups[j]]
                if k < 0:
                    row_groups[sorted_rows[j]] = -1
                    continue
                # Keep this row with probability (rows still wanted) / (rows still to come).
                keep = wanted[k] == counts[k]
                if not keep and wanted[k] > 0:
                    keep = high_product(words[used], np.uint64(counts[k])) < np.uint64(wanted[k])
                    used += 1
                counts[k] -= 1
                if keep:
                    wanted[k] -= 1
                else:
                    row_groups[sorted_rows[j]] = -1
        if listing:
            # A unit keeps no more groups than it has rows: what is overwritten has been read.
            for k in range(kept):
                sorted_groups[listed + k] = distinct[k]
            listed += kept
            held[unit] = listed
        unit += 1
    return unit


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
