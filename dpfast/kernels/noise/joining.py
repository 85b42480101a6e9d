"""Values and rounded noise together on the output grid.

A mechanism releases N * grid, N = round((x + noise) / grid). With x / grid = i + f, i an integer and
|f| <= 1/2, N = i + n where n = round(f + noise / grid) comes certified from a drawing kernel. (Where float32 draws the
noise of floats, sums.py finds N at once.) What is stored
is a function of the integer N alone: saturated at the type's bounds, rounded to the type, never wrapped and
never -0.0, so that the last bits carry nothing of x (Mironov 2012; Haney et al. 2022).
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import inlined, kernel
from dpfast.kernels.intrinsics import (
    absolute,
    add,
    bit_and,
    bit_or,
    bit_xor,
    choose,
    round_half_even,
    spread_sign,
)
from dpfast.kernels.noise.fractions import nearest_multiple
from dpfast.kernels.parameters import at

__all__ = [
    "add_noise",
    "join_grid",
    "join_multiples",
    "joined_on_grid",
    "joined_on_ones",
    "zero_missing",
]

_LARGEST_I64 = np.int64(2**63 - 1)
_SMALLEST_I64 = np.int64(-(2**63))
_ZERO_64 = np.int64(0)
_NO_BITS, _QUARTER, _TOP_BIT = np.uint64(0), np.uint64(1 << 62), np.uint64(1 << 63)
# From 2**1000 on a multiple of the grid stays itself whatever the noise.
_UNCHANGED_FROM = 2.0**1000


@inlined
def joined_on_ones(value, noise, smallest, largest):
    """Return value + noise, saturating, within the limits (int64)."""
    x = np.int64(value)
    n = np.int64(noise)
    total = add(x, n)
    overflow = bit_and(bit_xor(x, total), bit_xor(n, total)) < _ZERO_64
    total = choose(overflow, bit_xor(spread_sign(x), _LARGEST_I64), total)
    return min(max(total, smallest), largest)


@inlined
def joined_on_grid(value, inverse_grid, grid, noise, largest):
    """Return N * grid, N = round_half_even(value / grid) + noise, within [-largest, largest] (float64)."""
    x = np.float64(value)
    q = x * inverse_grid
    total = (round_half_even(q) + np.float64(noise)) * grid
    total = choose(absolute(q) < _UNCHANGED_FROM, total, x)
    return min(max(total, -largest), largest)


@kernel
def add_noise(values, noise, smallest, largest, released):
    """Release integers on the grid of ones: ``values + noise``, saturating, clipped to [smallest, largest].

    ``values`` is int64, int32 or uint32, ``noise`` int32, ``released`` int64 or int32 as the limits allow.
    """
    if smallest == _SMALLEST_I64 and largest == _LARGEST_I64:
        far = _NO_BITS
        for i in range(released.size):
            x = np.int64(values[i])
            far = bit_or(far, add(np.uint64(x), _QUARTER))
            released[i] = add(x, np.int64(noise[i]))
        # Every value is in [-2**62, 2**62): no sum can overflow.
        if far < _TOP_BIT:
            return
    for i in range(released.size):
        released[i] = joined_on_ones(values[i], noise[i], smallest, largest)


@kernel
def join_multiples(values, shift, noise, smallest, largest, released):
    """Release integers on a grid of 2**shift: (round(x / 2**shift) + noise) * 2**shift, saturating."""
    for i in range(released.size):
        x = np.int64(values[i])
        k = at(shift, i)
        multiple = nearest_multiple(x, k)
        n = np.int64(noise[i])
        total = add(multiple, n)
        # Only a shift of 0 can overflow here: 2**62 + 1 + 2**31 stays below 2**63.
        overflow = bit_and(bit_xor(multiple, total), bit_xor(n, total)) < _ZERO_64
        total = choose(overflow, bit_xor(spread_sign(multiple), _LARGEST_I64), total)
        total = min(max(total, _SMALLEST_I64 >> k), _LARGEST_I64 >> k) << k
        released[i] = min(max(total, smallest), largest)


@kernel
def join_grid(values, inverse_grid, grid, noise, largest, released):
    """Release floats on a grid: N * grid, N = round_half_even(x / grid) + noise, within [-largest, largest].

    The sum of the two integers and the product round to nearest, which makes the result a function of N.
    Adding 0.0 turns -0.0 into 0.0.
    """
    for i in range(released.size):
        total = joined_on_grid(values[i], at(inverse_grid, i), at(grid, i), noise[i], largest)
        released[i] = released.dtype.type(total) + released.dtype.type(0.0)


@kernel
def zero_missing(missing, released):
    """Write zeros where ``missing`` (bool) holds, so that nothing stands under a null."""
    for i in range(released.size):
        if missing[i]:
            released[i] = 0


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
