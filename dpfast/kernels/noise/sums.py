"""Values of float columns and noise in float32 added in float64, rounded to the grid, and how far from it the sum was.

With y = x / grid and the noise v in units of the grid, what is released is the integer nearest to y + v, times the
grid. The functions here return for each row how far the sum is from that integer (distances, float32). The caller knows
how far v may be from the true noise, and so up to which distance the integer is certainly the right one (limits).

A block is close if all its sums are below 2**36 in magnitude. Then y + v is one operation that rounds once, by at most
2**-18. A block is near if all |y| < 2**50. Then y is cut into an integer and a fraction, both exact (fractions.py), and
the sum of the fraction and |v| < 2**17 is off by at most 2**-36. Both errors fit into `LIMIT_ROOM`. A block that is
neither, as one with NaN or infinities, is not released here: all its rows count as open.

The distance of a sum s from its integer r is exact: both are multiples of the last bit of s, and |s - r| <= 1/2. It is
rounded to float32; as limits are float32 themselves, rounding carries no distance past its limit. What is released is a
function of the integer alone: no -0.0, no last bits of x (Mironov 2012).
"""

from __future__ import annotations

import numpy as np
from numba import types

from dpfast.kernels.compilation import by_types, kernel
from dpfast.kernels.intrinsics import (
    absolute,
    bit_or,
    bits_of_f64,
    choose,
    fused_multiply_add,
    i32_from_u64,
    subtract,
)
from dpfast.kernels.noise.fractions import MIDDLE
from dpfast.kernels.parameters import at

__all__ = ["LIMIT_ROOM", "mark_open", "mark_open_pairs", "sum_block"]

LIMIT_ROOM = 2.0**-17
"""What a bound in float32 adds: 2**-18 for the error of the sum, and more than the rounding of 1/2 less the bound."""

# The bits of MIDDLE less 2**36, and of the lower end of what is near.
_LEAST_CLOSE, _CLOSE = np.uint64((0x4338 << 48) - (1 << 36)), np.uint64(1 << 37)
_LEAST_NEAR, _NEAR = np.uint64(0x4334 << 48), np.uint64(1 << 51)
_MIDDLE_BITS, _NO_BITS = np.uint64(0x4338 << 48), np.uint64(0)
_CLOSED, _OPEN = np.uint8(0), np.uint8(1)


@by_types(inline=True)
def _released(total, grid, largest, released):
    """Return an integer times the grid, as it is released; in float64 it is never near the largest number."""
    if released.dtype == types.float64:
        return lambda total, grid, largest, released: total * grid

    # The sum turns a -0.0 that a small number became in float32 into 0.0.
    return lambda total, grid, largest, released: (
        released.dtype.type(min(max(total * grid, -largest), largest)) + released.dtype.type(0.0)
    )


@kernel
def _sum_close(values, inverse, grid, drawn, largest, released, distances):
    """Release the nearest grid points of a close block; return whether it is close."""
    far = _NO_BITS
    for i in range(released.size):
        total = fused_multiply_add(np.float64(values[i]), at(inverse, i), np.float64(drawn[i]))
        placed = total + MIDDLE
        nearest = placed - MIDDLE
        distances[i] = np.float32(total - nearest)
        far = bit_or(far, subtract(bits_of_f64(placed), _LEAST_CLOSE))
        released[i] = _released(nearest, at(grid, i), largest, released)
    return far < _CLOSE


@kernel
def _sum_near(values, inverse, grid, drawn, largest, released, distances):
    """Release the nearest grid points of a near block; return whether it is near."""
    far = _NO_BITS
    for i in range(released.size):
        x, position = np.float64(values[i]), at(inverse, i)
        placed = fused_multiply_add(x, position, MIDDLE)
        whole = placed - MIDDLE
        rest = fused_multiply_add(x, position, -whole) + np.float64(drawn[i])
        nearest = (rest + MIDDLE) - MIDDLE
        distances[i] = np.float32(rest - nearest)
        far = bit_or(far, subtract(bits_of_f64(placed), _LEAST_NEAR))
        released[i] = _released(whole + nearest, at(grid, i), largest, released)
    return far < _NEAR


@kernel
def _noise_near(values, inverse, drawn, released, distances):
    """Release the noise of a near block alone (int32): how far it moves each value's nearest grid point.

    Returns whether the block is near.
    """
    far = _NO_BITS
    for i in range(released.size):
        x, position = np.float64(values[i]), at(inverse, i)
        placed = fused_multiply_add(x, position, MIDDLE)
        rest = fused_multiply_add(x, position, -(placed - MIDDLE)) + np.float64(drawn[i])
        moved = rest + MIDDLE
        distances[i] = np.float32(rest - (moved - MIDDLE))
        far = bit_or(far, subtract(bits_of_f64(placed), _LEAST_NEAR))
        released[i] = i32_from_u64(subtract(bits_of_f64(moved), _MIDDLE_BITS))
    return far < _NEAR


@by_types(inline=True)
def sum_block(values, inverse, grid, drawn, largest, released, distances):
    """Release a block's values with noise, or its noise alone (int32) where ``grid`` is None.

    Parameters
    ----------
    values, inverse, grid
        float64 or float32; 1 / grid and the grid, numbers or one a row.
    drawn
        The noise in units of the grid (float32).
    largest
        The largest number of the type that is released.
    released
        Of the values' type, or int32: out. If the block is not near, what stands there means nothing.
    distances
        float32: out, how far from an integer each sum was.

    Returns
    -------
    bool
        Whether the block is near.

    """
    if isinstance(grid, types.NoneType):
        return lambda values, inverse, grid, drawn, largest, released, distances: _noise_near(
            values, inverse, drawn, released, distances
        )

    def with_values(values, inverse, grid, drawn, largest, released, distances):
        if _sum_close(values, inverse, grid, drawn, largest, released, distances):
            return True
        return _sum_near(values, inverse, grid, drawn, largest, released, distances)

    return with_values


@kernel
def mark_open(distances, limits, marks):
    """Mark (uint8) the rows whose distance from an integer is not below their limit for certain."""
    for i in range(distances.size):
        marks[i] = choose(absolute(distances[i]) < limits[i], _CLOSED, _OPEN)


@by_types(inline=True)
def _or_same(limits, other_limits, i):
    if isinstance(other_limits, types.NoneType):
        return lambda limits, other_limits, i: limits[i]
    return lambda limits, other_limits, i: other_limits[i]


@kernel
def mark_open_pairs(distances, other_distances, limits, other_limits, marks):
    """Do as `mark_open` for pairs of rows, either of which opens both; they have one limit where the other is None."""
    for i in range(distances.size):
        one = absolute(distances[i]) < limits[i]
        other = absolute(other_distances[i]) < _or_same(limits, other_limits, i)
        marks[i] = choose(one & other, _CLOSED, _OPEN)


# Stamp of all kernel sources (scripts/stamp_kernels.py): a99595a84a066299
