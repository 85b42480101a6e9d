"""Values sorted by group: a counting sort in two passes, the first of which meets the rows block by block."""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import kernel

__all__ = ["count_points", "narrow_points", "sort_points"]


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
def count_points(points, starts, stops, counts):
    """Add 1 to ``counts[g, point - 1]`` for each point of each group g, from 1 on; others than the columns are left."""
    for g in range(starts.size):
        for j in range(starts[g], stops[g]):
            place = points[j] - 1
            if 0 <= place < counts.shape[1]:
                counts[g, place] += 1


# Stamp of all kernel sources (scripts/stamp_kernels.py): 5976c1dd0601eb29
