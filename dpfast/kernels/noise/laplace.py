"""Certified Laplace noise, rounded: ``n = s * round(scale * E + offset + s * fraction)``.

The first bit of a word is the sign s, the others are the leading bits of U, and E = -ln U (logarithm.py).
With offset = scale * c - 1/2, c = ln(2 / (1 + exp(-1 / scale))) and no fraction this is discrete Laplace
noise, |n| = floor(scale * (E + c)), P(|n| >= k) = 2 q**k / (1 + q), q = exp(-1 / scale): the geometric
mechanism by inversion (Ghosh, Roughgarden, Sundararajan 2009). With offset = 0 and fraction = x - i for an
integer i, i + n is the integer nearest to x + Laplace(scale).

Every kernel computes v, the argument of the rounding, with a bound on its distance from the true one, and
decides for ``n`` only if the whole interval around v rounds to one integer. A caller must finish the other samples
with more bits of the same U. float32 and 31 bits come first where they decide most (narrow_laplace.py).
The true argument is above -1/2 (E > 0, c > 0, |fraction| <= 1/2), so v may be raised to 0 before the test.

The bound, with u the unit roundoff and E's error from logarithm.py, in units of one:

    scale * (1.0607 * width            the bits not read, in float64
             + 0.70715 * width         in float32, where E is that of the cell's lower end
             + 5.1u E                  E, in float64
             + 1.1u E + 0.8u           E, in float32
             + u                       the conversion of the word, in float32
             + u E                     the product scale * E rounds with the sum
             + u E                     scale rounded to float32, in float32
             + 5u)                     the offset's c, where it is computed a row at a time, in float64 (offsets.py)
    + u (1/2 + 1.2)                    the sum's rounding beyond scale * E; the offset's error, or the fraction's

In float32 the offset of one scale is rounded, by at most u / 4, that of a row's scale from 1 on is off by u
(offsets.py), and below 1 it is rounded from float64. Fractions of values play no part in float32: s * scale * E is
rounded by itself, by u E as above, and added to the value in float64 (sums.py), with `LIMIT_ROOM` in place of 2u.

The code's ``scale * (0.71875 width + 3.125u E + 1.875u) + 2u`` in float32,
``scale * (1.0625 width + 8u E + 8u) + 2u`` in float64, exceeds that by more than the relative error of at most 8u that
its own evaluation can have, in either order.
A sample is decided only if 1/2 - |v - n| > bound (NaN fails), r > 0 (in float32 width is infinite for r = 0), and,
by the limits on the scale that the caller keeps, v < 2**19 in float32 and v < 2**31 in float64.
In float32 the test is |v - n| < 1/2 - bound: that difference rounds by u / 4 at most, which the code's 2u has to spare.
"""

from __future__ import annotations

import numpy as np
from numba import types

from dpfast.kernels.compilation import by_types, inlined, kernel
from dpfast.kernels.intrinsics import (
    absolute,
    bit_and,
    bit_or,
    bit_xor,
    bits_of_f32,
    bits_of_f64,
    choose,
    f32_from_bits,
    f64_from_bits,
    fused_multiply_add,
    i32_from_u32,
    i32_from_u64,
    maximum,
    shift_left,
    shift_right,
    spread_sign,
    subtract,
    u64_from_u32,
)
from dpfast.kernels.logarithm import exponential_f32, exponential_f64
from dpfast.kernels.noise.fractions import fraction_of
from dpfast.kernels.noise.sums import LIMIT_ROOM
from dpfast.kernels.parameters import at

__all__ = [
    "ALL_BITS",
    "LARGEST_NARROW_SCALE",
    "LARGEST_SCALE_F64",
    "LARGEST_SHORT_SCALE",
    "UNDECIDED",
    "bits_read",
    "draw_laplace_f64",
    "laplace_f32",
    "laplace_f64",
    "laplace_value_f32",
    "leading_bits",
    "with_more_bits",
    "with_second_part",
]

ALL_BITS = 47.0
"""How many bits of U words with second parts have."""

UNDECIDED = np.int32(-(2**31))
"""What stands in place of a sample that the bits read so far do not decide."""

LARGEST_SHORT_SCALE = 2.0**8
"""Above, 31 bits would leave more than one sample in 2**17 to ball arithmetic: words have 48 bits."""

LARGEST_NARROW_SCALE = 2.0**14
"""Above, float32 would leave more than one sample in 40 to float64: that comes first."""

LARGEST_SCALE_F64 = 2.0**25
"""48 ln(2) * 2**25 + 1 < 2**31: the noise fits into an int32."""

_REST_32 = np.uint32(0x7FFFFFFF)
_REST_64, _TOP_64, _SIGN_64 = np.uint64(0x7FFFFFFF), np.uint64(31), np.uint64(63)
_ZERO_32, _ONE_32, _TOP_BIT_32 = np.uint32(0), np.uint32(1), np.uint32(1 << 31)
_LOW_BITS = np.uint64(16)
_ZERO_64 = np.uint64(0)

# Adding 1.5 * 2**23 (2**52) rounds a float to the nearest integer and leaves it in the low bits.
_SHIFTER_F32 = np.float32(1.5 * 2**23)
_SHIFTER_F64 = 1.5 * 2**52
_SHIFTER_BITS_F32 = np.uint32(0x4B400000)
_SHIFTER_BITS_F64 = np.uint64(0x4338000000000000)

_WIDTH_F32, _RELATIVE_F32, _ABSOLUTE_F32, _CONSTANT_F32, _ROOM_F32 = (
    np.float32(x) for x in (0.71875, 3.125 * 2.0**-24, 1.875 * 2.0**-24, 2 * 2.0**-24, LIMIT_ROOM)
)
_WIDTH_F64, _RELATIVE_F64, _ABSOLUTE_F64, _CONSTANT_F64 = 1.0625, 8 * 2.0**-53, 8 * 2.0**-53, 2 * 2.0**-53
_NOTHING_F32, _HALF_F32, _NOTHING_F64 = np.float32(0.0), np.float32(0.5), 0.0


@by_types(inline=True)
def _error_f32(scales, scale, e, width, constant):
    """Return the bound in float32: of one scale for all, the products with it are made once."""
    if isinstance(scales, types.Array):

        def of_rows(scales, scale, e, width, constant):
            error = fused_multiply_add(width, _WIDTH_F32, _ABSOLUTE_F32)
            return fused_multiply_add(scale, fused_multiply_add(e, _RELATIVE_F32, error), constant)

        return of_rows

    def of_all(scales, scale, e, width, constant):
        error = fused_multiply_add(e, scale * _RELATIVE_F32, fused_multiply_add(scale, _ABSOLUTE_F32, constant))
        return fused_multiply_add(width, scale * _WIDTH_F32, error)

    return of_all


@inlined
def laplace_f32(word, scales, scale, offset):
    """Return (n, whether it is decided) of discrete noise in float32.

    ``scales`` is what ``scale`` is taken from, one number or one a row: it decides by its type how the bound is made.
    """
    e, width = exponential_f32(bit_and(word, _REST_32))
    v = maximum(_NOTHING_F32, fused_multiply_add(scale, e, offset))
    shifted = v + _SHIFTER_F32
    distance = absolute(v - (shifted - _SHIFTER_F32))
    decided = distance < _HALF_F32 - _error_f32(scales, scale, e, width, _CONSTANT_F32)
    sign = spread_sign(word)
    magnitude = subtract(bits_of_f32(shifted), _SHIFTER_BITS_F32)
    return i32_from_u32(subtract(bit_xor(magnitude, sign), sign)), decided


@inlined
def laplace_value_f32(word, scales, scale):
    """Return (s * scale * E, limit) in float32.

    Its sum with a value is decided if it is nearer to an integer than the limit.
    """
    e, width = exponential_f32(bit_and(word, _REST_32))
    v = f32_from_bits(bit_xor(bits_of_f32(scale * e), bit_and(word, _TOP_BIT_32)))
    return v, _HALF_F32 - _error_f32(scales, scale, e, width, _ROOM_F32)


@inlined
def laplace_f64(r, m_plus_one, sign, scale, offset, fraction):
    """Return (n, whether it is decided) for r < 2**m and a sign, 0 or 1 (uint64), in float64."""
    e, width = exponential_f64(r, m_plus_one)
    signed = f64_from_bits(bit_xor(bits_of_f64(fraction), shift_left(sign, _SIGN_64)))
    v = maximum(_NOTHING_F64, fused_multiply_add(scale, e, offset + signed))
    shifted = v + _SHIFTER_F64
    distance = absolute(v - (shifted - _SHIFTER_F64))
    error = fused_multiply_add(width, _WIDTH_F64, _ABSOLUTE_F64)
    error = fused_multiply_add(scale, fused_multiply_add(e, _RELATIVE_F64, error), _CONSTANT_F64)
    decided = ((0.5 - distance) > error) & (r != _ZERO_64)
    magnitude = subtract(bits_of_f64(shifted), _SHIFTER_BITS_F64)
    spread = subtract(_ZERO_64, sign)
    return i32_from_u64(subtract(bit_xor(magnitude, spread), spread)), decided


@by_types(inline=True)
def bits_read(low):
    """Return m, how many bits of U words have: 31 where ``low`` is None, else 47 (float64)."""
    bits = 31.0 if isinstance(low, types.NoneType) else ALL_BITS
    return lambda low: bits


@inlined
def leading_bits(high, i):
    """Return the sign of a word, and its first 31 bits of U."""
    word = u64_from_u32(high[i])
    return shift_right(word, _TOP_64), bit_and(word, _REST_64)


@inlined
def with_second_part(r, part):
    """Return the 47 bits of U of a word, whose first 31 are r and whose second part has the others (uint16)."""
    return bit_or(shift_left(r, _LOW_BITS), np.uint64(part))


@by_types(inline=True)
def with_more_bits(r, low, i):
    """Return the first m bits of U of a word, whose first 31 are r."""
    if isinstance(low, types.NoneType):
        return lambda r, low, i: r
    return lambda r, low, i: with_second_part(r, low[i])


@kernel
def draw_laplace_f64(high, low, scale, offset, values, position, noise):
    """Fill ``noise`` (int32) in float64, with UNDECIDED where it does not decide; return 1 if there is such.

    ``high`` (uint32) and ``low`` (uint16) are the two parts of 48-bit words, a sign and 47 bits of U; with None for
    ``low`` they have 32 bits. ``scale`` and ``offset`` are float64, one number or one a row;
    scale <= LARGEST_SCALE_F64. ``values`` (None if every value is a grid point) have the fractions that ``position``
    says (fractions.py); a NaN there makes its sample undecided.
    """
    undecided, m_plus_one = _ZERO_32, bits_read(low) + 1.0
    for i in range(noise.size):
        sign, first = leading_bits(high, i)
        r = with_more_bits(first, low, i)
        fraction = fraction_of(at(values, i), at(position, i))
        n, decided = laplace_f64(r, m_plus_one, sign, at(scale, i), at(offset, i), fraction)
        noise[i] = choose(decided, n, UNDECIDED)
        undecided = bit_or(undecided, choose(decided, _ZERO_32, _ONE_32))
    return undecided


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
