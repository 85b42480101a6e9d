"""Where a value lies on the output grid: the nearest grid point, and the fraction beyond it.

A float x is near its grid if |x / grid| < 2**50. The sum of x / grid and 1.5 * 2**52, rounded once, then is the integer
nearest to x / grid, the even one of two, beyond 1.5 * 2**52: it takes one operation to find. Almost all columns are
near, and sums.py finds it so. What is here finds it for every value, near or not.
"""

from __future__ import annotations

import numpy as np
from numba import types

from dpfast.kernels.compilation import by_types, inlined
from dpfast.kernels.intrinsics import (
    absolute,
    choose,
    f64_from_i64,
    round_half_even,
)
from dpfast.kernels.wide_floats import power_of_two

__all__ = ["MIDDLE", "fraction_of", "nearest_multiple"]

MIDDLE = 1.5 * 2**52
"""Added to x / grid where a float is near its grid (sums.py)."""

# From 2**53 on a float64 is an integer.
_INTEGERS_FROM = 2.0**53
_ZERO, _ONE = np.int64(0), np.int64(1)


@inlined
def nearest_multiple(x, shift):
    """Return the integer nearest to x / 2**shift, the upper one of two (int64, 0 <= shift <= 61)."""
    floor = x >> shift
    step = _ONE << shift
    rest = x - (floor << shift)
    return floor + choose(rest + rest >= step, _ONE, _ZERO)


@by_types(inline=True)
def fraction_of(value, position):
    """Return what a value lies beyond the nearest grid point, in units of the grid: in [-1/2, 1/2].

    A float (``position`` is 1 / grid, a power of two): exact, except that an underflow of x / grid costs at
    most 2**-1074; NaN if x is NaN or infinite. An integer (``position`` is the shift, grid = 2**shift): off by
    at most 2**-54. Without a position (None) every value is a grid point: 0.0.
    """
    if isinstance(position, types.NoneType):
        return lambda value, position: 0.0
    if isinstance(value, types.Float):

        def of_float(value, position):
            x = np.float64(value)
            q = x * position
            return choose(absolute(q) < _INTEGERS_FROM, q - round_half_even(q), x - x)

        return of_float

    def of_integer(value, position):
        x = np.int64(value)
        rest = x - (nearest_multiple(x, position) << position)
        return f64_from_i64(np.uint64(rest)) * power_of_two(-position)

    return of_integer


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
