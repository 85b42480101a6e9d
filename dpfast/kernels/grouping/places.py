"""Count how many values lie between edges, where the values stand: in two short passes over a block, whatever they are.

A value's distance from a centre, its bits in the order of floats, decides its cell: rounding keeps the order of values.
Cells are counted. Only what lies in a cell with an edge is compared with the edges there, as it is.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import inlined, kernel
from dpfast.kernels.intrinsics import bits_of_f64

__all__ = ["count_cells", "find_cells", "fold_cells", "order_distances"]

_SIGN = np.uint64(1 << 63)
_SIGN_BIT = np.int64(63)
_ONE, _NOWHERE = np.uint64(1), np.uint64(0)


@inlined
def _ordered(distance):
    """Return a float's bits in the order of floats, as uint64; zeros of both signs alike."""
    bits = bits_of_f64(distance + 0.0)
    return bits ^ (np.uint64(np.int64(bits) >> _SIGN_BIT) | _SIGN)


@kernel
def order_distances(values, centre, out):
    """Write the bits of each value's distance from the centre (float64) in the order of floats (uint64)."""
    for i in range(len(out)):
        out[i] = _ordered(np.float64(values[i]) - centre)


@kernel
def find_cells(values, valid, centre, low, shift, last, out):
    """Write each value's cell from 1 on; 0 for NaN, and for what does not count.

    Parameters
    ----------
    values : float64 or int64
        What is counted.
    valid : uint8
        Which of them count.
    centre : float64
        What distances are taken from.
    low, shift, last : uint64
        Where cells begin, as ordered bits; their width, as a power of two; and the last one, less 1. What lies beyond
        is in the first and in the last cell.
    out : uint32
        Written to.
    """
    for i in range(len(out)):
        place = _ordered(np.float64(values[i]) - centre)
        cell = min((max(place, low) - low) >> shift, last) + _ONE
        out[i] = np.uint32(cell if (valid[i] != 0) & (values[i] == values[i]) else _NOWHERE)


@kernel
def count_cells(values, cells, edges, below, table, counts):
    """Count values by their cells, those in a cell with an edge by how many edges they reach.

    Parameters
    ----------
    values, cells
        As of `find_cells`.
    edges : of the same type as values
        Increasing.
    below : int16, one for each cell and one more
        How many edges lie below the cell. There is none in the first one, of what does not count.
    table : int64, one for each cell
        Added to.
    counts : int64, one more than edges
        Of values in cells with edges: added to, by the number of edges up to the value.
    """
    for i in range(len(cells)):
        cell = cells[i]
        table[cell] += 1
        reached, most = np.int64(below[cell]), np.int64(below[cell + np.uint32(1)])
        if reached < most:
            x = values[i]
            while reached < most:
                middle = (reached + most) >> 1
                if x >= edges[middle]:
                    reached = middle + 1
                else:
                    most = middle
            counts[reached] += 1


@kernel
def fold_cells(below, table, counts):
    """Add to ``counts`` what is in cells without an edge, but for the first one."""
    for cell in range(1, len(table)):
        if below[cell] == below[cell + 1]:
            counts[below[cell]] += table[cell]


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
