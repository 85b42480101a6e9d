"""Values sorted by group: a counting sort in two passes, the first of which meets the rows block by block."""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import kernel

__all__ = ["STAGED", "count_codes", "count_points", "narrow_points", "release_staged", "sort_points", "sort_staged"]

STAGED = 8
"""Points that wait for each other, to be written into the same line of the cache at once."""

# Random codes that fill half of a table lie about one step from their place; more than these are somebody's design.
_MOST_STEPS = 64


@kernel
def narrow_points(slots, points, trash, out_slots, out_points, counts):
    """Write each row's slot (uint32) and point, and add 1 to ``counts[slot]`` (int64, ``trash`` + 1 entries).

    ``points`` are int64, 0 where there is none; such rows, and those with a slot of ``trash`` or more, are trash.
    """
    for i in range(points.size):
        point = points[i]
        slot = min(np.uint64(slots[i]), trash)
        slot = slot if point != 0 else trash
        out_slots[i] = slot
        out_points[i] = point
        counts[slot] += 1


@kernel
def sort_points(slots, points, trash, cursors, out):
    """Write the points slot by slot, trash left out; ``cursors`` (int64) holds each slot's next place and moves on."""
    for i in range(points.size):
        slot = slots[i]
        if slot < trash:
            out[cursors[slot]] = points[i]
            cursors[slot] += 1


@kernel
def sort_staged(slots, points, trash, starts, cursors, stage, out):
    """Sort points as `sort_points` does, but let a slot's points wait in its row of ``stage`` until they fill it.

    ``starts`` holds each slot's first place. `release_staged` writes what is left at the end.
    """
    for i in range(points.size):
        slot = slots[i]
        if slot < trash:
            place = cursors[slot]
            waiting = place % STAGED
            stage[slot, waiting] = points[i]
            cursors[slot] = place + 1
            if waiting == STAGED - 1:
                begin = place - waiting
                if begin >= starts[slot]:
                    for j in range(STAGED):
                        out[begin + j] = stage[slot, j]
                else:
                    for j in range(starts[slot] - begin, STAGED):
                        out[begin + j] = stage[slot, j]


@kernel
def release_staged(starts, cursors, stage, out):
    """Write the points that wait."""
    for slot in range(cursors.size):
        begin = cursors[slot] - cursors[slot] % STAGED
        for place in range(max(begin, starts[slot]), cursors[slot]):
            out[place] = stage[slot, place - begin]


@kernel
def count_codes(codes, table, most):
    """Return how many different codes there are, or -1 if they are more than ``most`` or crowd a place.

    ``codes`` are int64 and above 0, hashes of values. ``table`` (int64) is zero, and of a power of two.
    """
    last = table.size - 1
    found = 0
    for i in range(codes.size):
        code = codes[i]
        place, steps = code & last, 0
        while table[place] != code:
            if table[place] == 0:
                if found == most:
                    return -1
                table[place] = code
                found += 1
            elif steps == _MOST_STEPS:
                return -1
            else:
                place = (place + 1) & last
                steps += 1
    return found


@kernel
def count_points(points, starts, stops, counts):
    """Add 1 to ``counts[g, point - 1]`` for each point of each group g, from 1 on; others than the columns are left."""
    for g in range(starts.size):
        for j in range(starts[g], stops[g]):
            place = points[j] - 1
            if 0 <= place < counts.shape[1]:
                counts[g, place] += 1


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
