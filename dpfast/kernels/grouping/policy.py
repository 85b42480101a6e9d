"""Units in a canonical order, and the sums to which each adds as far as they are below a cutoff.

How far the sums may be from those of exact arithmetic is derived in `dpfast.mechanisms.keys.policy`.
"""

from __future__ import annotations

import math

import numpy as np

from dpfast.kernels.compilation import inlined, kernel

__all__ = ["add_by_policy", "copy_units", "number_units", "order_units"]

_SHORT = 32
_NONE = np.iinfo(np.int64).max
_BITS = 63


@inlined
def _bits_of(largest):
    """Return how many bits a number from 0 to the largest takes."""
    bits = 0
    while largest >> bits > 0:
        bits += 1
    return bits


@kernel
def number_units(stops, groups, longest, singles, keys):
    """Sort every unit's groups, and write a number for each: units by these are in order but for equal beginnings.

    Units of one group are only counted. Units of more groups have lower numbers, units of as many are numbered by the
    first of them, as many as fit, and last comes the unit itself.

    Parameters
    ----------
    stops : int64, units
        Where each unit's groups end in ``groups``; they begin where those of the unit before end.
    groups : int32
        Distinct groups 0 <= g < len(singles), unit by unit: sorted in place.
    longest : int
        How many groups a unit holds at most. There are up to 2**31 - 1 units, and groups.
    singles : int64, one per group
        How many units hold this one alone; added to.
    keys : int64, units
        To be written; units of one group or none have the largest int64.

    Returns
    -------
    How many units have two groups or more, how many groups are in a number, and how many bits the unit takes.
    """
    bits, unit_bits = max(_bits_of(len(singles) - 1), 1), _bits_of(len(stops))
    groups_in_key = min((_BITS - _bits_of(longest) - unit_bits) // bits, longest)
    start, holders = 0, 0
    for unit in range(len(stops)):
        stop = stops[unit]
        if stop - start <= _SHORT:
            for i in range(start + 1, stop):
                group = groups[i]
                j = i
                while j > start and groups[j - 1] > group:
                    groups[j] = groups[j - 1]
                    j -= 1
                groups[j] = group
        else:
            groups[start:stop].sort()
        keys[unit] = _NONE
        if stop - start == 1:
            singles[groups[start]] += 1
        elif stop > start:
            key = longest - (stop - start)
            for i in range(start, start + groups_in_key):
                key = (key << bits) + (groups[i] if i < stop else 0)
            keys[unit] = (key << unit_bits) + unit
            holders += 1
        start = stop
    return holders, groups_in_key, unit_bits


@inlined
def _is_before(groups, start, stop, other):
    """Return whether a unit's sorted groups come before as many of another unit."""
    before = False
    for place in range(start, stop):
        mine, its = groups[place], groups[other + place - start]
        if mine != its:
            before = mine < its
            break
    return before


@kernel
def order_units(keys, groups_in_key, unit_bits, stops, groups, order, scratch):
    """Write units in lexicographic order: runs of them whose groups begin alike are inserted, or merged if long.

    Parameters
    ----------
    keys : int64
        The numbers of units that have two groups or more, sorted.
    groups_in_key, unit_bits, stops, groups
        As `number_units` left and returned them.
    order, scratch : int64, one per key
        To be written, and as scratch memory.
    """
    mask = (1 << unit_bits) - 1
    first = 0
    while first < len(keys):
        key = keys[first] >> unit_bits
        last = first
        while last < len(keys) and keys[last] >> unit_bits == key:
            order[last] = keys[last] & mask
            last += 1
        unit = order[first]
        # How many groups are not in the numbers.
        size = stops[unit] - (stops[unit - 1] if unit > 0 else 0) - groups_in_key
        width = 1 if size > 0 else last - first
        if size > 0 and last - first <= _SHORT:
            for i in range(first + 1, last):
                unit = order[i]
                stop = stops[unit]
                j = i
                while j > first:
                    other = stops[order[j - 1]]
                    if not _is_before(groups, stop - size, stop, other - size):
                        break
                    order[j] = order[j - 1]
                    j -= 1
                order[j] = unit
            width = last - first
        while width < last - first:
            for left in range(first, last, 2 * width):
                middle, right = min(left + width, last), min(left + 2 * width, last)
                i, j = left, middle
                for place in range(left, right):
                    takes_left = j == right
                    if i < middle and j < right:
                        one, other = stops[order[j]], stops[order[i]]
                        # The left one, unless the right one comes before it.
                        takes_left = not _is_before(groups, one - size, one, other - size)
                    if takes_left:
                        scratch[place] = order[i]
                        i += 1
                    else:
                        scratch[place] = order[j]
                        j += 1
            order[first:last] = scratch[first:last]
            width *= 2
        first = last


@kernel
def copy_units(stops, groups, order, new_stops, new_groups):
    """Write units (their groups, and where these end) in another order."""
    place = 0
    for i in range(len(order)):
        unit = order[i]
        for j in range(stops[unit - 1] if unit > 0 else 0, stops[unit]):
            new_groups[place] = groups[j]
            place += 1
        new_stops[i] = place


@inlined
def _precedes(run, other, units, starts, stops, groups):
    """Return whether the next unit of one run comes before that of another."""
    start, other_start = starts[run], starts[other]
    stop = stops[units[run]]
    size, other_size = stop - start, stops[units[other]] - other_start
    return _is_before(groups, start, stop, other_start) if size == other_size else size > other_size


@inlined
def _sift(heap, length, place, units, starts, stops, groups):
    """Let the run at a place of the heap sink to where it belongs."""
    while 2 * place + 1 < length:
        child = 2 * place + 1
        if child + 1 < length and _precedes(heap[child + 1], heap[child], units, starts, stops, groups):
            child += 1
        if not _precedes(heap[child], heap[place], units, starts, stops, groups):
            break
        heap[place], heap[child] = heap[child], heap[place]
        place = child


@kernel
def add_by_policy(units, last_units, starts, stops, groups, heap, cutoff, norm, sums):
    """Let units add to their groups' sums, the first of all runs at a time, until a run has no unit left here.

    A unit adds the vector of what its sums lack to the cutoff, shortened to the norm, in whole steps.

    Parameters
    ----------
    units, last_units : int64, one per run
        The next unit and where the units end that are here, as places in ``stops``. Moved on.
    starts : int64, one per run
        Where the next unit's groups begin in ``groups``. Moved on.
    stops : int64
        Where each unit's groups end in ``groups``.
    groups : int32
        Distinct groups 0 <= g < len(sums), sorted within each unit; the units of each run are in order.
    heap : int64, one per run
        Scratch.
    cutoff : int64
        What no sum exceeds.
    norm : float64
        A whole number of at most 2**49 steps.
    sums : int64, one per group
        From 0 to the cutoff; added to.

    Returns
    -------
    The run that has no unit left here and had one before, -1 if there are none.
    """
    length = 0
    for run in range(len(units)):
        if units[run] < last_units[run]:
            heap[length] = run
            length += 1
    if length == 0:
        return -1
    for place in range(length // 2 - 1, -1, -1):
        _sift(heap, length, place, units, starts, stops, groups)
    while True:
        run = heap[0]
        start, stop = starts[run], stops[units[run]]
        total = 0.0
        for place in range(start, stop):
            gap = np.float64(cutoff - sums[groups[place]])
            total += gap * gap
        if total <= norm * norm:
            for place in range(start, stop):
                sums[groups[place]] = cutoff
        else:
            share = norm / math.sqrt(total)
            for place in range(start, stop):
                lack = cutoff - sums[groups[place]]
                # To the nearest step, and never beyond the cutoff.
                sums[groups[place]] += min(np.int64(np.float64(lack) * share + 0.5), lack)
        units[run] += 1
        starts[run] = stop
        if units[run] == last_units[run]:
            return run
        _sift(heap, length, 0, units, starts, stops, groups)


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
