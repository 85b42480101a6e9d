"""Certified Gaussian noise, rounded: ``n = round(scale * Z + fraction)``, Z standard normal.

Box and Muller (1958): from U and V, infinite strings of random bits, R = sqrt(-2 ln U) and the angle
2 pi V give two independent normal values, R cos(2 pi V) and R sin(2 pi V). A kernel reads the first m bits of
each (32, or 48 where a second part of the words is given), computes both values with a bound on the distance
to what the infinite strings would give, and stores ``n`` only where the whole interval rounds to one integer.

The bound for one value, u = 2**-53, E = -ln U off by 5.1u E + 1.0607 width (logarithm.py):

- R = sqrt(2E): half of E's relative error and one rounding, 3.6u R; what the unread bits of U move is
  |sqrt(2E) - sqrt(2E')| = 2|E - E'| / (sqrt(2E) + sqrt(2E')) <= 2.1214 width / R;
- the angle is reduced exactly, in integers, to a quadrant and phi in [-pi/4, pi/4), then phi is off by 2u phi
  (2 pi rounded, one product); with w = phi**2 off by 5u w, sin = phi + phi w S(w) and cos = 1 - w/2 + w**2 C(w),
  S and C minimax polynomials, are off by at most 3u, their polynomials' own errors (below 0.15u) included;
- the unread bits of V move the angle by at most half a cell, pi * 2**-m, and so cos and sin;
- R * cos and its fused product with the scale and sum with the fraction round once each: 2u scale R + u / 2.

Together scale * (R * (8.6u + pi * 2**-m) + 2.1214 width / R) + u, which the code's
``scale * (R * (12u + 3.2 * 2**-m) + 1.65 width * g) + 2u`` exceeds by more than its own rounding; g is the
integer approximation of 1 / sqrt(E) from halving the exponent, which is at most 3.5 percent too small, so that
1.65 g >= 1.65 * 0.965 * sqrt(2) / R = 2.25 / R.
A sample is decided only if 1/2 - |v - n| > bound (NaN fails) and r > 0; |v| < 2**29 by the limit on the scale.

Which rows share a pair. A chunk has blocks of BLOCK_ROWS rows, the last one what is left. Rows j and half + j of a
block are the two values of one pair, half = ceil(rows / 2); of an odd block the last second value is nobody's. The
words of a block begin at the number of its first row: the radii of its pairs, then their angles.
"""

from __future__ import annotations

import numpy as np
from numba import types

from dpfast.kernels.compilation import by_types, inlined, kernel
from dpfast.kernels.intrinsics import (
    absolute,
    add,
    bit_and,
    bit_or,
    bit_xor,
    bits_of_f64,
    choose,
    f64_from_bits,
    f64_from_i52,
    fused_multiply_add,
    i32_from_u64,
    polynomial,
    shift_left,
    shift_right,
    square_root,
    subtract,
    u64_from_u32,
)
from dpfast.kernels.logarithm import exponential_f64
from dpfast.kernels.noise.fractions import fraction_of
from dpfast.kernels.noise.laplace import UNDECIDED
from dpfast.kernels.parameters import at, part

__all__ = ["BLOCK_ROWS", "COSINE", "LARGEST_SCALE", "SINE", "draw_blocks", "draw_gaussian"]

BLOCK_ROWS = 1024
"""Rows pair up within blocks of this many: an even number. With another one the same key gives other noise."""

LARGEST_SCALE = 2.0**25
"""Keeps scale * sqrt(2 * 49 ln 2) below 2**29, so that the noise fits into an int32."""

# Minimax in w on [0, (pi/4)**2] for (sin(phi)/phi - 1)/w and (cos(phi) - 1 + w/2)/w**2, w = phi**2.
SINE = (
    -0.16666666666666666,
    0.008333333333330948,
    -0.00019841269836758574,
    2.755731610255244e-06,
    -2.5051131845003624e-08,
    1.5918129294866608e-10,
)
COSINE = (
    0.041666666666666664,
    -0.0013888888888887398,
    2.480158729876569e-05,
    -2.7557317271729793e-07,
    2.08761462684032e-09,
    -1.1382632425521717e-11,
)

_TURN = 2 * 3.141592653589793 * 2.0**-49
_ZERO, _ONE, _TWO = np.uint64(0), np.uint64(1), np.uint64(2)
_HALF_QUADRANT, _QUADRANT, _TO_SIGN = np.uint64(1 << 46), np.uint64(47), np.uint64(62)
_HALVING = np.uint64(0x5FE6EB50C7B537A9)
_SHIFTER, _SHIFTER_BITS = 1.5 * 2**52, np.uint64(0x4338000000000000)
_ROUNDING, _CONSTANT, _WIDTH = 12 * 2.0**-53, 2 * 2.0**-53, 1.65
_NONE, _SOME = np.uint32(0), np.uint32(1)


@by_types(inline=True)
def _leading_bits(high, low, i):
    """Return (the m leading bits, m + 1, 2**-m, the same bits and half a cell left-aligned in 49)."""
    if isinstance(low, types.NoneType):

        def short(high, low, i):
            r = u64_from_u32(high[i])
            return r, 33.0, 2.0**-32, bit_or(shift_left(r, np.uint64(17)), np.uint64(1 << 16))

        return short

    def long(high, low, i):
        r = bit_or(shift_left(u64_from_u32(high[i]), np.uint64(16)), np.uint64(low[i]))
        return r, 49.0, 2.0**-48, bit_or(shift_left(r, _ONE), _ONE)

    return long


@inlined
def _cosine_and_sine(turns):
    """Return cos and sin of 2 pi turns / 2**49 for a uint64 below 2**49."""
    quadrant = shift_right(add(turns, _HALF_QUADRANT), _QUADRANT)
    phi = f64_from_i52(subtract(turns, shift_left(quadrant, _QUADRANT))) * _TURN
    w = phi * phi
    sine = fused_multiply_add(phi * w, polynomial(w, SINE), phi)
    cosine = fused_multiply_add(w * w, polynomial(w, COSINE), fused_multiply_add(w, -0.5, 1.0))
    odd = bit_and(quadrant, _ONE) != _ZERO
    # The quadrants' (cos, sin), the fifth being the first: (c, s), (-s, c), (-c, -s), (s, -c).
    negative_cosine = shift_left(bit_and(add(quadrant, _ONE), _TWO), _TO_SIGN)
    negative_sine = shift_left(bit_and(quadrant, _TWO), _TO_SIGN)
    turned_cosine = bit_xor(bits_of_f64(choose(odd, sine, cosine)), negative_cosine)
    turned_sine = bit_xor(bits_of_f64(choose(odd, cosine, sine)), negative_sine)
    return f64_from_bits(turned_cosine), f64_from_bits(turned_sine)


@inlined
def _rounded(radius, direction, scale, fraction, spread, certain):
    """Return the rounded noise of one value, or UNDECIDED; ``spread`` bounds the error of radius * direction."""
    v = fused_multiply_add(scale, radius * direction, fraction)
    shifted = v + _SHIFTER
    distance = absolute(v - (shifted - _SHIFTER))
    decided = ((0.5 - distance) > fused_multiply_add(scale, spread, _CONSTANT)) & certain
    return choose(decided, i32_from_u64(subtract(bits_of_f64(shifted), _SHIFTER_BITS)), UNDECIDED)


@kernel
def draw_gaussian(
    radius_high,
    radius_low,
    angle_high,
    angle_low,
    scale,
    other_scale,
    values,
    other_values,
    position,
    other_position,
    noise,
    other_noise,
):
    """Fill ``noise`` with the cosines' values and ``other_noise`` with the sines' (int32, of equal length).

    ``*_high`` is uint32, ``*_low`` uint16 or None; ``scale`` float64, one number or one a row, at most
    LARGEST_SCALE; ``values`` (None if every value is a grid point) have the fractions that ``position`` says
    (fractions.py), and a NaN makes its value undecided. Returns 1 if some value is undecided, else 0.
    """
    undecided = _NONE
    for i in range(noise.size):
        r, bits_plus_one, cell, _ = _leading_bits(radius_high, radius_low, i)
        _, _, _, turns = _leading_bits(angle_high, angle_low, i)
        e, width = exponential_f64(r, bits_plus_one)
        radius = square_root(e + e)
        inverse_root = f64_from_bits(subtract(_HALVING, shift_right(bits_of_f64(e), _ONE)))
        spread = fused_multiply_add(radius, _ROUNDING + 3.2 * cell, _WIDTH * (width * inverse_root))
        cosine, sine = _cosine_and_sine(turns)
        certain = r != _ZERO
        n = _rounded(radius, cosine, at(scale, i), fraction_of(at(values, i), at(position, i)), spread, certain)
        m = _rounded(
            radius, sine, at(other_scale, i), fraction_of(at(other_values, i), at(other_position, i)), spread, certain
        )
        noise[i] = n
        other_noise[i] = m
        either = (n == UNDECIDED) | (m == UNDECIDED)
        undecided = bit_or(undecided, choose(either, _SOME, _NONE))
    return undecided


@kernel
def draw_blocks(high, low, scale, values, position, noise, junk):
    """Fill ``noise`` (int32) for the rows of a chunk, block by block; return 1 if some value is undecided, else 0.

    ``high`` and ``low`` are the chunk's words; ``scale``, ``values`` and ``position`` are those of its rows, as for
    `draw_gaussian`. ``junk`` (int32, one entry) takes the value that is nobody's.
    """
    undecided = _NONE
    for start in range(0, noise.size, BLOCK_ROWS):
        stop = min(start + BLOCK_ROWS, noise.size)
        half = (stop - start + 1) // 2
        middle, whole = start + half, (stop - start) // 2
        last = start + whole
        if whole > 0:
            undecided |= draw_gaussian(
                high[start:last], part(low, start, last), high[middle : middle + whole],
                part(low, middle, middle + whole), part(scale, start, last), part(scale, middle, stop),
                part(values, start, last), part(values, middle, stop), part(position, start, last),
                part(position, middle, stop), noise[start:last], noise[middle:stop],
            )  # fmt: skip
        if half > whole:
            # An odd block's last pair has no second row: the first one's parameters serve twice.
            undecided |= draw_gaussian(
                high[last:middle], part(low, last, middle), high[stop : stop + 1], part(low, stop, stop + 1),
                part(scale, last, middle), part(scale, last, middle), part(values, last, middle),
                part(values, last, middle), part(position, last, middle), part(position, last, middle),
                noise[last:middle], junk,
            )  # fmt: skip
    return undecided


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
