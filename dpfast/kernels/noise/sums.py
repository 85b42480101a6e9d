"""Values of float columns and noise in float32 added in float64, rounded to the grid, and how far from it the sum was.

With y = x / grid and the noise v in units of the grid, what is released is the integer nearest to y + v, times the
grid. The functions here return for each row how far the sum is from that integer (distances, float32). The caller knows
how far v may be from the true noise, and so up to which distance the integer is certainly the right one (limits).

A block is close if all its sums are from -2**35 - 1/2 to 2**35. Then y + v is one operation that rounds once, by at
most 2**-18. In a block that is not close, a row is near if |y| < 2**50. Then y is cut into an integer and a fraction,
both exact (fractions.py), and the sum of the fraction and |v| < 2**18 is off by at most 2**-36. Both errors fit into
`LIMIT_ROOM`. A row that is not near either, as one with NaN or infinity, gets NaN as its distance: it counts as open.

The distance of a sum s from its integer r is exact: both are multiples of the last bit of s, and |s - r| <= 1/2. It is
rounded to float32; as limits are float32 themselves, rounding carries no distance past its limit. What is released is a
function of the integer alone: no -0.0, no last bits of x (Mironov 2012).
"""

from __future__ import annotations

import numpy as np
from numba import types

from dpfast.kernels.compilation import by_types, inlined, kernel
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

__all__ = ["LIMIT_ROOM", "mark_open", "sum_block"]

LIMIT_ROOM = 2.0**-17
"""What a bound in float32 adds: 2**-18 for the error of the sum, and more than the rounding of 1/2 less the bound."""

# The bits of MIDDLE less 2**35, and how many numbers from there on are close.
_LEAST_CLOSE, _CLOSE = np.uint64((0x4338 << 48) - (1 << 35)), np.uint64(1 << 36)
_MIDDLE_BITS, _NO_BITS = np.uint64(0x4338 << 48), np.uint64(0)
_NEAR, _UNKNOWN = np.float64(2.0**50), np.float32(np.nan)
_CLOSED, _OPEN = np.uint8(0), np.uint8(1)


@by_types(inline=True)
def _released(total, grid, largest, released):
    """Return an integer times the grid, as it is released; in float64 it is never near the largest number."""
    if released.dtype == types.float64:
        return lambda total, grid, largest, released: total * grid

    def saturated(total, grid, largest, released):
        product = total * grid
        # No min or max: what they do about NaN would be a branch, and the loop scalar.
        product = choose(product > largest, largest, product)
        product = choose(product < -largest, -largest, product)
        # The sum turns a -0.0 that a small number became in float32 into 0.0.
        return released.dtype.type(product) + released.dtype.type(0.0)

    return saturated


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


@inlined
def _known(x, position, distance):
    """Return a row's distance; NaN if the row is not near."""
    return choose(absolute(x * position) < _NEAR, np.float32(distance), _UNKNOWN)


@kernel
def _sum_near(values, inverse, grid, drawn, largest, released, distances):
    """Release the nearest grid points of the near rows of a block."""
    for i in range(released.size):
        x, position = np.float64(values[i]), at(inverse, i)
        placed = fused_multiply_add(x, position, MIDDLE)
        whole = placed - MIDDLE
        rest = fused_multiply_add(x, position, -whole) + np.float64(drawn[i])
        nearest = (rest + MIDDLE) - MIDDLE
        distances[i] = _known(x, position, rest - nearest)
        released[i] = _released(whole + nearest, at(grid, i), largest, released)


@kernel
def _noise_near(values, inverse, drawn, released, distances):
    """Release the noise of near rows alone (int32): how far it moves each value's nearest grid point."""
    for i in range(released.size):
        x, position = np.float64(values[i]), at(inverse, i)
        placed = fused_multiply_add(x, position, MIDDLE)
        rest = fused_multiply_add(x, position, -(placed - MIDDLE)) + np.float64(drawn[i])
        moved = rest + MIDDLE
        distances[i] = _known(x, position, rest - (moved - MIDDLE))
        released[i] = i32_from_u64(subtract(bits_of_f64(moved), _MIDDLE_BITS))


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
        Of the values' type, or int32: out. What stands there for a row whose distance is NaN means nothing.
    distances
        float32: out, how far from an integer each sum was; NaN where nothing is known.

    """
    if isinstance(grid, types.NoneType):
        return lambda values, inverse, grid, drawn, largest, released, distances: _noise_near(
            values, inverse, drawn, released, distances
        )

    def with_values(values, inverse, grid, drawn, largest, released, distances):
        if not _sum_close(values, inverse, grid, drawn, largest, released, distances):
            _sum_near(values, inverse, grid, drawn, largest, released, distances)

    return with_values


@kernel
def mark_open(distances, limits, marks):
    """Mark (uint8) the rows whose distance from an integer is not below their limit for certain."""
    for i in range(distances.size):
        marks[i] = choose(absolute(distances[i]) < limits[i], _CLOSED, _OPEN)


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
