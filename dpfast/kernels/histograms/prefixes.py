"""Prefix sums of histograms, and what ranges and rectangles take from them.

The sum of a rectangle [l, u) is the alternating sum of a table of prefix sums at its 2**d corners, the table having a
row of zeros before the first along every axis. Transposed: coefficients are added at the corners of an empty table,
and its prefix sums have them wherever their rectangles are.

**Rounding.** A running sum is kept with the rest that its roundings left (two_sum is exact): with u = 2**-53, S the
sum of the magnitudes and n the number of cells, it errs by at most u times itself and (n u)**2 S, as compensated sums
do (Ogita, Rump, Oishi 2005). Across rows every column has such a rest, to which the next number is added first: at
most 2 u S for every axis more, however long it is. Of integers all rests are zero, which the compiler finds: sums are
exact modulo 2**64.
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
    "sum_and_cover",
    "sum_planes",
    "sum_prefixes",
    "sum_prefixes_along",
    "sum_suffixes",
]

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
    for i in range(values.size):
        total, left = two_sum(total, values[i])
        rest += left
        out[i] = total + rest


@kernel
def sum_and_cover(values, out):
    """Write the prefix sums of int64 numbers to ``out``; return what `cover_magnitudes` does."""
    total = bits = np.int64(0)
    for i in range(values.size):
        bits |= values[i] ^ (values[i] >> np.int64(63))
        total += values[i]
        out[i] = total
    return bits


@kernel
def sum_suffixes(values, out):
    """Write ``values[i] + ... + values[-1]`` to ``out[i]``; both may be the same int64 or float64 array."""
    sum_prefixes(values[::-1], out[::-1])


@inlined
def add_above(table, above, here, width, rests):
    """Add to the numbers from ``here`` on those from ``above`` on; ``rests`` None for integers."""
    if rests is None:
        for j in range(width):
            table[here + j] += table[above + j]
    else:
        for j in range(width):
            table[here + j], rests[j] = two_sum(table[above + j], table[here + j] + rests[j])


@kernel
def sum_prefixes_along(table, rows, columns, rests):
    """Replace a table of any number of (rows, columns) by its prefix sums along the rows.

    ``table`` in one dimension; ``rests`` COLUMNS numbers of scratch for floats, None for integers.
    """
    for first in range(0, table.size, rows * columns):
        if columns == 1:
            sum_prefixes(table[first : first + rows], table[first : first + rows])
            continue
        for column in range(0, columns, COLUMNS):
            width = min(COLUMNS, columns - column)
            if rests is not None:
                rests[:] = 0
            for row in range(1, rows):
                here = first + row * columns + column
                add_above(table, here - columns, here, width, rests)


@kernel
def sum_planes(values, rows, columns, places, rests, out):
    """Write prefix sums along the last two axes into a larger table, with zeros before the first along each.

    Parameters
    ----------
    values
        Planes of (rows, columns), in one dimension.
    rows, columns
        Numbers of cells.
    places
        Where the plane of (rows + 1, columns + 1) of each begins in ``out``.
    rests
        ``columns`` numbers of scratch for floats, None for integers.
    out
        In one dimension; of it only these planes are written, with their zeros.

    """
    for plane in range(places.size):
        if rests is not None:
            rests[:] = 0
        out[places[plane] : places[plane] + columns + 1] = 0
        for row in range(rows):
            first = (plane * rows + row) * columns
            here = places[plane] + (row + 1) * (columns + 1) + 1
            out[here - 1] = 0
            sum_prefixes(values[first : first + columns], out[here : here + columns])
            add_above(out, here - columns - 1, here, columns, rests)


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


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
