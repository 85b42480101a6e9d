"""Count how many values lie between edges, where the values stand: a few look-ups for each, whatever the edges are.

A value's distance from a centre, its bits in the order of floats, decides a cell of a table. A cell without an edge
tells how many edges lie below; one with a single edge tells which, and the value is compared with it; one with more
edges has a smaller table of its own. Rounding a distance keeps the order of values: only the edges within a cell are in
doubt, and values are compared with these as they are.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import inlined, kernel
from dpfast.kernels.intrinsics import bits_of_f64

__all__ = ["ALIKE", "WAYS", "count_between", "order_distances"]

WAYS = 4
"""Tables of counts that take turns: adding to what was just added to costs more."""

ALIKE = np.uint64(64)
"""The width of a table whose edges are as far from the centre, as far as floats tell: they are looked at in turn."""

_SIGN = np.uint64(1 << 63)
_SIGN_BIT = np.int64(63)
_TURNS = np.uint64(WAYS - 1)
_ONE = np.uint64(1)


@inlined
def _ordered(distance):
    """Return a float's bits in the order of floats, as uint64; zeros of both signs alike."""
    bits = bits_of_f64(distance + 0.0)
    return bits ^ (np.uint64(np.int64(bits) >> _SIGN_BIT) | _SIGN)


@kernel
def order_distances(values, centre, out):
    """Write the bits of each value's distance from the centre in the order of floats (uint64)."""
    for i in range(len(out)):
        out[i] = _ordered(np.float64(values[i] - centre))


@kernel
def count_between(values, valid, least, most, centre, edges, lows, shifts, lasts, firsts, table, counts):
    """Add 1 to the count of the number of edges up to a value, for each value that is there.

    Parameters
    ----------
    values : float64 or int64
        NaN counts nowhere.
    valid : uint8
        0 where a value does not count.
    least, most, centre : of the same type
        Values beyond count as these; and their distances from the centre are numbers of this type.
    edges : of the same type
        Increasing, and one more that no value up to ``most`` reaches.
    lows, shifts, lasts, firsts : uint64, one for each table
        Where a table begins, as ordered bits; the width of its cells, as a power of two, or `ALIKE`; its last cell; and
        where it stands in ``table``, or how many edges lie below those that are alike.
    table : int16
        How many edges lie below a cell, where one edge at most lies in it; else the number of the next table, as
        -1 - number.
    counts : int64, `WAYS` times (edges + 1)
        Added to.
    """
    width = np.uint64(len(counts) // WAYS)
    low, shift, last = lows[0], shifts[0], lasts[0]
    for i in range(len(values)):
        x = values[i]
        if valid[i] == 0 or x != x:
            continue
        x = min(max(x, least), most)
        place = _ordered(np.float64(x - centre))
        found = table[min((max(place, low) - low) >> shift, last)]
        reached = np.uint64(found)
        while found < 0:
            own = np.uint64(-1 - np.int64(found))
            if shifts[own] == ALIKE:
                reached = firsts[own]
                while x >= edges[reached]:
                    reached += _ONE
                break
            found = table[firsts[own] + min((max(place, lows[own]) - lows[own]) >> shifts[own], lasts[own])]
            reached = np.uint64(found)
        reached += np.uint64(x >= edges[reached])
        counts[(np.uint64(i) & _TURNS) * width + reached] += 1


# Stamp of all kernel sources (scripts/stamp_kernels.py): 401c3451e208972c
