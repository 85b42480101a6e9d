"""Prefix sums of histograms, and what ranges and rectangles take from them.

The sum of a rectangle [l, u) is the alternating sum of a table of prefix sums at its 2**d corners, the table having a
row of zeros before the first along every axis. Transposed: coefficients are added at the corners of an empty table,
and its prefix sums have them wherever their rectangles are.

**Rounding.** A prefix sum is made of a total of whole blocks, kept with the rest that its rounding left (two_sum is
exact), and of the sum within the block: with u = 2**-53, S the sum of the magnitudes up to a cell and B that of its
block, the error is at most u S + BLOCK u B, up to terms in u**2, however long the histogram is. Across rows every
column has such a rest. Of integers all rests are zero, which the compiler finds: sums are exact modulo 2**64.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import inlined, kernel

__all__ = [
    "COLUMNS",
    "add_all_range_differences",
    "add_range_differences",
    "add_rectangle_differences",
    "answer_all_ranges",
    "answer_ranges",
    "answer_rectangles",
    "cover_magnitudes",
    "sum_prefixes",
    "sum_prefixes_along",
    "sum_suffixes",
]

BLOCK = 512
"""Cells that are summed without a rest: 4 kB."""

COLUMNS = 1024
"""Columns whose rests are kept at a time: 8 kB."""


@inlined
def two_sum(a, b):
    """Return a + b rounded, and what the rounding left: exactly (Knuth; any magnitudes)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@kernel
def cover_magnitudes(values):
    """Return a number c >= 0 with as many bits as the longest of integers: all lie in [-c - 1, 2c]."""
    bits = np.int64(0)
    for i in range(values.size):
        bits |= values[i] ^ (values[i] >> np.int64(63))
    return bits


@kernel
def sum_prefixes(values, out):
    """Write ``values[0] + ... + values[i]`` to ``out[i]``; both may be the same int64 or float64 array."""
    total = rest = values.dtype.type(0)
    for start in range(0, values.size, BLOCK):
        stop = min(start + BLOCK, values.size)
        within = values.dtype.type(0)
        for i in range(start, stop):
            within += values[i]
            out[i] = within
        for i in range(start, stop):
            out[i] = total + (rest + out[i])
        total, rest = two_sum(total, rest + within)


@kernel
def sum_suffixes(values, out):
    """Write ``values[i] + ... + values[-1]`` to ``out[i]``; both may be the same int64 or float64 array."""
    total = rest = values.dtype.type(0)
    for stop in range(values.size, 0, -BLOCK):
        start = max(stop - BLOCK, 0)
        within = values.dtype.type(0)
        for i in range(stop - 1, start - 1, -1):
            within += values[i]
            out[i] = within
        for i in range(start, stop):
            out[i] = total + (rest + out[i])
        total, rest = two_sum(total, rest + within)


@kernel
def sum_prefixes_along(table, rows, columns, rests):
    """Replace a table of any number of (rows, columns) by its prefix sums along the rows.

    ``table`` in one dimension; ``rests`` COLUMNS numbers of scratch of its type.
    """
    for first in range(0, table.size, rows * columns):
        if columns == 1:
            sum_prefixes(table[first : first + rows], table[first : first + rows])
            continue
        for column in range(0, columns, COLUMNS):
            width = min(COLUMNS, columns - column)
            rests[:width] = 0
            for row in range(1, rows):
                here = first + row * columns + column
                above = table[here - columns : here - columns + width]
                own = table[here : here + width]
                for j in range(width):
                    own[j], rests[j] = two_sum(above[j], own[j] + rests[j])


@kernel
def answer_ranges(prefixes, lower, upper, out):
    """Write the sums over the cells lower[i] to upper[i] - 1; ``prefixes`` begins with a zero."""
    for i in range(out.size):
        out[i] = prefixes[upper[i]] - prefixes[lower[i]]


@kernel
def answer_all_ranges(prefixes, out):
    """Write the sums over all ranges [l, u): by l, then by u; ``prefixes`` begins with a zero."""
    place = 0
    for low in range(prefixes.size - 1):
        for high in range(low + 1, prefixes.size):
            out[place + high - low - 1] = prefixes[high] - prefixes[low]
        place += prefixes.size - 1 - low


@kernel
def add_range_differences(lower, upper, coefficients, out):
    """Add to ``out`` the differences between neighbouring cells of the sum of ranges times their coefficients."""
    for i in range(coefficients.size):
        out[lower[i]] += coefficients[i]
        out[upper[i]] -= coefficients[i]


@kernel
def add_all_range_differences(coefficients, out):
    """Add to ``out`` the differences between neighbouring cells of the sum of all ranges times their coefficients."""
    place = 0
    for low in range(out.size - 1):
        total = 0.0
        for high in range(low + 1, out.size):
            total += coefficients[place + high - low - 1]
            out[high] -= coefficients[place + high - low - 1]
        out[low] += total
        place += out.size - 1 - low


@inlined
def lowest_set(number):
    """Return the place of the lowest bit of a positive number."""
    place = 0
    while (number >> place) & 1 == 0:
        place += 1
    return place


@kernel
def answer_rectangles(prefixes, lower, upper, strides, out):
    """Write the sums over rectangles from lower[i] to upper[i] - 1 along every axis.

    ``prefixes`` is a table in one dimension that begins with zeros along every axis, ``strides`` are its own. Corners
    come in the order of a Gray code: each differs from the last along one axis, and has the other sign.
    """
    axes = strides.size
    for i in range(out.size):
        corner = 0
        for axis in range(axes):
            corner += upper[i, axis] * strides[axis]
        code = 0
        total = prefixes[corner]
        for step in range(1, 1 << axes):
            axis = lowest_set(step)
            code ^= 1 << axis
            shift = (upper[i, axis] - lower[i, axis]) * strides[axis]
            corner += -shift if (code >> axis) & 1 else shift
            total += -prefixes[corner] if step & 1 else prefixes[corner]
        out[i] = total


@kernel
def add_rectangle_differences(lower, upper, coefficients, strides, out):
    """Add coefficients at the corners of rectangles, with alternating signs: `answer_rectangles` transposed."""
    axes = strides.size
    for i in range(coefficients.size):
        corner = 0
        for axis in range(axes):
            corner += lower[i, axis] * strides[axis]
        code = 0
        out[corner] += coefficients[i]
        for step in range(1, 1 << axes):
            axis = lowest_set(step)
            code ^= 1 << axis
            shift = (upper[i, axis] - lower[i, axis]) * strides[axis]
            corner += shift if (code >> axis) & 1 else -shift
            out[corner] += -coefficients[i] if step & 1 else coefficients[i]


# Stamp of all kernel sources (scripts/stamp_kernels.py): 79b73804da46efa4
