"""Certified Laplace noise, rounded: ``n = s * round(scale * E + offset + s * fraction)``.

The first bit of a word is the sign s, the others are the leading bits of U, and E = -ln U (logarithm.py).
With offset = scale * c - 1/2, c = ln(2 / (1 + exp(-1 / scale))) and no fraction this is discrete Laplace
noise, |n| = floor(scale * (E + c)), P(|n| >= k) = 2 q**k / (1 + q), q = exp(-1 / scale): the geometric
mechanism by inversion (Ghosh, Roughgarden, Sundararajan 2009). With offset = 0 and fraction = x - i for an
integer i, i + n is the integer nearest to x + Laplace(scale).

Every kernel computes v, the argument of the rounding, with a bound on its distance from the true one, and
stores ``n`` only if the whole interval around v rounds to one integer; else it stores ``UNDECIDED``, and
returns 1 if it has done so anywhere. A caller must then finish those samples with more bits of the same U.
The true argument is above -1/2 (E > 0, c > 0, |fraction| <= 1/2), so v may be raised to 0 before the test.

The bound, with u the unit roundoff, E off by 5.1u E + (float32 only) 2u (logarithm.py), in units of one:

    scale * (1.0607 * width            the bits not read
             + 5.1u E + u E            E; the product scale * E rounds with the sum
             + u E (float32 only)      scale rounded to float32
             + 2u (float32 only)       the conversion of the word
             + 5u (float64 only))      the offset's c, where it is computed a row at a time (offsets.py)
    + u (1/2 + 1.2)                    the sum's rounding beyond scale * E; the offset's error, or the fraction's

which the code's ``scale * (1.0625 width + 8u E + 4u or 8u) + 2u`` exceeds by more than the 4u of relative error
that its own evaluation can have (4u in float32, 8u in float64).
A sample is decided only if 1/2 - |v - n| > bound (NaN fails), r > 0, and,
by the limits on the scale that the caller keeps, v < 2**13 in float32 and v < 2**31 in float64.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import inlined, kernel
from dpfast.kernels.intrinsics import (
    absolute,
    bit_and,
    bit_or,
    bit_xor,
    bits_of_f32,
    bits_of_f64,
    choose,
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
from dpfast.kernels.noise.joining import add_noise
from dpfast.kernels.noise.offsets import discrete_offset
from dpfast.kernels.parameters import at, part

__all__ = [
    "LARGEST_SCALE_F32",
    "LARGEST_SCALE_F64",
    "UNDECIDED",
    "draw_laplace_f32",
    "draw_laplace_f64",
    "release_laplace_f32",
]

UNDECIDED = np.int32(-(2**31))
"""What stands in place of a sample that the bits read so far do not decide."""

LARGEST_SCALE_F32 = 2.0**8
"""Above, float32 and 31 bits would leave more than one sample in 2**17 to ball arithmetic."""

LARGEST_SCALE_F64 = 2.0**25
"""48 ln(2) * 2**25 + 1 < 2**31: the noise fits into an int32."""

_REST_32 = np.uint32(0x7FFFFFFF)
_REST_64, _TOP_64, _SIGN_64 = np.uint64(0x7FFFFFFF), np.uint64(31), np.uint64(63)
_ZERO_32, _ONE_32 = np.uint32(0), np.uint32(1)
_M_PLUS_ONE_F32, _M_PLUS_ONE_F64 = np.float32(32.0), 48.0
_LOW_BITS = np.uint64(16)
_BLOCK = 1024
_ZERO_64 = np.uint64(0)

# Adding 1.5 * 2**23 (2**52) rounds a float to the nearest integer and leaves it in the low bits.
_SHIFTER_F32 = np.float32(1.5 * 2**23)
_SHIFTER_F64 = 1.5 * 2**52
_SHIFTER_BITS_F32 = np.uint32(0x4B400000)
_SHIFTER_BITS_F64 = np.uint64(0x4338000000000000)

_WIDTH_F32, _RELATIVE_F32, _ABSOLUTE_F32, _CONSTANT_F32 = (
    np.float32(x) for x in (1.0625, 8 * 2.0**-24, 4 * 2.0**-24, 2 * 2.0**-24)
)
_WIDTH_F64, _RELATIVE_F64, _ABSOLUTE_F64, _CONSTANT_F64 = 1.0625, 8 * 2.0**-53, 8 * 2.0**-53, 2 * 2.0**-53
_NOTHING_F32, _HALF_F32, _NOTHING_F64 = np.float32(0.0), np.float32(0.5), 0.0


@inlined
def _discrete_f32(word, scale, offset):
    """Return (n, whether it is decided) for a 32-bit word in float32."""
    r = bit_and(word, _REST_32)
    e, width = exponential_f32(r, _M_PLUS_ONE_F32)
    v = maximum(_NOTHING_F32, fused_multiply_add(scale, e, offset))
    shifted = v + _SHIFTER_F32
    distance = absolute(v - (shifted - _SHIFTER_F32))
    error = fused_multiply_add(width, _WIDTH_F32, _ABSOLUTE_F32)
    error = fused_multiply_add(scale, fused_multiply_add(e, _RELATIVE_F32, error), _CONSTANT_F32)
    decided = ((_HALF_F32 - distance) > error) & (r != _ZERO_32)
    sign = spread_sign(word)
    magnitude = subtract(bits_of_f32(shifted), _SHIFTER_BITS_F32)
    return i32_from_u32(subtract(bit_xor(magnitude, sign), sign)), decided


@inlined
def _laplace_f64(r, m_plus_one, sign, scale, offset, fraction):
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


@kernel
def _draw_block_f32(high, scale, offset, noise):
    undecided = _ZERO_32
    for i in range(noise.size):
        n, decided = _discrete_f32(high[i], at(scale, i), at(offset, i))
        noise[i] = choose(decided, n, UNDECIDED)
        undecided = bit_or(undecided, choose(decided, _ZERO_32, _ONE_32))
    return undecided


@kernel
def draw_laplace_f32(high, scale, offset, exact_scale, noise):
    """Fill ``noise`` (int32) from 32-bit words, sign and 31 bits of U, in float32; see the module's docstring.

    ``scale`` and ``offset`` are float32, one number or one a row; scale <= LARGEST_SCALE_F32. What float32 does
    not decide is computed again from the same bits in float64, with ``exact_scale``, the scale before it was
    rounded to float32.
    """
    undecided = _ZERO_32
    for start in range(0, noise.size, _BLOCK):
        stop = min(start + _BLOCK, noise.size)
        block = noise[start:stop]
        if _draw_block_f32(high[start:stop], part(scale, start, stop), part(offset, start, stop), block) == _ZERO_32:
            continue
        for i in range(block.size):
            if block[i] == UNDECIDED:
                word = u64_from_u32(high[start + i])
                b = at(exact_scale, start + i)
                sign = shift_right(word, _TOP_64)
                n, decided = _laplace_f64(bit_and(word, _REST_64), 32.0, sign, b, discrete_offset(b), 0.0)
                block[i] = choose(decided, n, UNDECIDED)
                undecided = bit_or(undecided, choose(decided, _ZERO_32, _ONE_32))
    return undecided


@kernel
def release_laplace_f32(high, scale, offset, exact_scale, values, smallest, largest, noise, released):
    """Draw as `draw_laplace_f32` and release as `add_noise`: one call for the most common route."""
    undecided = draw_laplace_f32(high, scale, offset, exact_scale, noise)
    add_noise(values, noise, smallest, largest, released)
    return undecided


@kernel
def draw_laplace_f64(high, low, scale, offset, values, position, noise):
    """Fill ``noise`` (int32) from 48-bit words, sign and 47 bits of U, in float64; see the module's docstring.

    ``high`` (uint32) and ``low`` (uint16) are the two parts of the words. ``scale`` and ``offset`` are float64,
    one number or one a row; scale <= LARGEST_SCALE_F64. ``values`` (None if every value is a grid point) have the
    fractions that ``position`` says (fractions.py); a NaN there makes its sample undecided.
    """
    undecided = _ZERO_32
    for i in range(noise.size):
        word = u64_from_u32(high[i])
        r = bit_or(shift_left(bit_and(word, _REST_64), _LOW_BITS), np.uint64(low[i]))
        sign = shift_right(word, _TOP_64)
        n, decided = _laplace_f64(
            r, _M_PLUS_ONE_F64, sign, at(scale, i), at(offset, i), fraction_of(at(values, i), at(position, i))
        )
        noise[i] = choose(decided, n, UNDECIDED)
        undecided = bit_or(undecided, choose(decided, _ZERO_32, _ONE_32))
    return undecided


# Stamp of all kernel sources (scripts/stamp_kernels.py): 725c5de447cbb0dc
