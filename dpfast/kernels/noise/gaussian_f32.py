"""Gaussian noise in float32: what gaussian.py computes, from the first 31 bits of U and 32 of V, for small scales.

The angle 2 pi V is a whole number of quarter turns, the first two bits of V, and pi/4 (1 + y) with -1 < y < 1. With
A = cos(pi/4 y), B = sin(pi/4 y), t = -1 where the second bit of V is set, else 1, and s = -1 where the first one is:

    sqrt(2) cos(2 pi V) = s (t A - B),    sqrt(2) sin(2 pi V) = s (A + t B).

With E = -ln U the two values are sqrt(2E) cos and sqrt(2E) sin, hence sqrt(E) s (t A - B) and sqrt(E) s (A + t B).

E. The first 31 bits of U give E within 3.4u E, u = 2**-24, and u (1 + u) and 0.70715 width absolutely (logarithm.py).
If they are all 0, width is infinite, and so is the bound.

sqrt(E). With D = u + 0.7072 width the absolute part, |sqrt(E) - sqrt(E')| <= 1.7u sqrt(E') + D / sqrt(E') for the
computed E', and the root rounds to u sqrt(E'). g is the integer approximation of 1 / sqrt(E') from halving the
exponent, at most 3.5 percent too small: D / sqrt(E') <= 1.0364 D g. If E' = 0, g is 2**63 and the bound stays true:
there sqrt(E) <= sqrt(D) (1 + u).

A and B. y is rounded from 31 bits, by u y, which turns the direction by at most pi/4 u. z = y**2 rounds once.
A = C(z) rounds to u / 2 at last and below 0.4u before, its polynomial is off by 0.56u, z moves it by 0.28u: 1.75u.
B = y S(z), S off by 0.5u at last, below 0.1u before, by 0.09u in its polynomial and by 0.08u from z: 0.8u, and the
product rounds to u / 2: 1.3u. The sum of the two, below 2, rounds to u. So t A - B and A + t B are off by at most 4.1u
beside the turn, which moves them by sqrt(2) pi/4 u = 1.1u, and by the bits of V not read: sqrt(2) pi 2**-32 = 0.02u.

v = scale sqrt(E) (t A - B): the scale is rounded to float32, its product with the root rounds, and the last product
rounds by u of itself. |t A - B| <= sqrt(2), so that in all v is off by

    scale * (sqrt(E) (sqrt(2) (1.7 + 1 + 1 + 1 + 1) + 4.1 + 1.1 + 0.1) u + sqrt(2) 1.0364 D g)

and so by less than scale * (13.4u sqrt(E) + (1.0366 width + 1.466u) g). The code's bound,
``scale * (14u sqrt(E) + (1.04 width + 1.48u) g)``, exceeds it by more than its own rounding can take back (5u of it).
`find_roots` sets what stands in its outer brackets: the spread.

A whole number is decided from v alone, if |v - n| < 1/2 - bound (NaN fails), with u more in the bound: the difference
from 1/2 rounds by u / 4, and scales below 2**-126 are rounded by up to 2**-150, absolutely. |v| < 2**22 by the limit on
the scale, and so v - n is exact. A float of a column is decided where v is added to it in float64 (sums.py), with
`LIMIT_ROOM` more in the bound.
"""

from __future__ import annotations

import numpy as np
from numba import types

from dpfast.kernels.compilation import by_types, inlined, kernel
from dpfast.kernels.intrinsics import (
    absolute,
    add,
    bit_and,
    bit_xor,
    bits_of_f32,
    choose,
    f32_from_bits,
    f32_from_i32,
    fused_multiply_add,
    i32_from_u32,
    polynomial,
    shift_left,
    shift_right,
    square_root,
    subtract,
)
from dpfast.kernels.logarithm import exponential_f32
from dpfast.kernels.noise.sums import LIMIT_ROOM
from dpfast.kernels.parameters import at

__all__ = ["COSINE", "LARGEST_SCALE", "SINE", "draw_numbers", "draw_values", "find_roots"]

LARGEST_SCALE = 2.0**13
"""Above, float32 would leave more than one pair in 30 open."""

# Minimax in z on [0, 1] for sin(pi/4 sqrt z) / sqrt z, weighted by sqrt z, and for cos(pi/4 sqrt z).
SINE = (0.7853981256484985, -0.08074513077735901, 0.002489370759576559, -3.5579418181441724e-05)
COSINE = (1.0, -0.3084245026111603, 0.015850437805056572, -0.00031918685999698937)

_SINE, _COSINE = (tuple(map(np.float32, series)) for series in (SINE, COSINE))

_SHIFT_ONE, _SHIFT_TWO, _TOP = np.uint32(1), np.uint32(2), np.uint32(1 << 31)
_HALVING = np.uint32(0x5F3759DF)
_MIDDLE = np.uint32(0x80000002)
_UNIT, _HALF = np.float32(2.0**-31), np.float32(0.5)
_SHIFTER, _SHIFTER_BITS = np.float32(1.5 * 2**23), np.uint32(0x4B400000)
_ROUNDING, _WIDTH, _ABSOLUTE, _CONSTANT, _ROOM = (
    np.float32(x) for x in (14 * 2.0**-24, 1.04, 1.48 * 2.0**-24, 2.0**-24, LIMIT_ROOM)
)
_DECIDED, _OPEN = np.uint8(0), np.uint8(1)


@kernel
def find_roots(words, roots, spreads):
    """Set ``roots`` to sqrt(E) and ``spreads`` to the bound of scale 1 (float32), from the words of U."""
    for i in range(roots.size):
        e, width = exponential_f32(shift_right(words[i], _SHIFT_ONE))
        root = square_root(e)
        inverse_root = f32_from_bits(subtract(_HALVING, shift_right(bits_of_f32(e), _SHIFT_ONE)))
        roots[i] = root
        spreads[i] = fused_multiply_add(root, _ROUNDING, fused_multiply_add(width, _WIDTH, _ABSOLUTE) * inverse_root)


@inlined
def directions(word):
    """Return sqrt(2) cos and sqrt(2) sin of 2 pi V, both times s."""
    y = f32_from_i32(bit_xor(shift_left(word, _SHIFT_TWO), _MIDDLE)) * _UNIT
    z = y * y
    cosine, sine = polynomial(z, _COSINE), y * polynomial(z, _SINE)
    turned = bit_and(add(word, word), _TOP)
    one = f32_from_bits(bit_xor(bits_of_f32(cosine), turned)) - sine
    other = cosine + f32_from_bits(bit_xor(bits_of_f32(sine), turned))
    return one, other


@inlined
def _both_values(word, root, scale, other_scale):
    """Return the noise v of a pair's first row and of its second one."""
    cosine, sine = directions(word)
    sign = bit_and(word, _TOP)
    factor = f32_from_bits(bit_xor(bits_of_f32(scale * root), sign))
    other_factor = f32_from_bits(bit_xor(bits_of_f32(other_scale * root), sign))
    return factor * cosine, other_factor * sine


@inlined
def _rounded(v, limit):
    """Return v rounded to an integer, and whether it is decided: nearer to that than the limit."""
    shifted = v + _SHIFTER
    decided = absolute(v - (shifted - _SHIFTER)) < limit
    return i32_from_u32(subtract(bits_of_f32(shifted), _SHIFTER_BITS)), decided


@by_types(inline=True)
def _other_scale(scales, i, scale):
    """Return the other value's scale: the first one's where there is no other (None)."""
    if isinstance(scales, types.NoneType):
        return lambda scales, i, scale: scale
    return lambda scales, i, scale: scales[i]


@kernel
def draw_numbers(words, roots, spreads, scales, other_scales, noise, other_noise, marks):
    """Fill ``noise`` and ``other_noise`` (int32) and mark the pairs that float32 leaves open (uint8).

    ``words`` are those of V, ``roots`` and ``spreads`` as `find_roots` has set them. ``scales`` is float32, one number
    for all (and None for ``other_scales``) or one a row. What stands in the noise of open pairs means nothing.
    """
    for i in range(noise.size):
        spread, scale = spreads[i], at(scales, i)
        other_scale = _other_scale(other_scales, i, scale)
        v, w = _both_values(words[i], roots[i], scale, other_scale)
        n, decided = _rounded(v, _HALF - fused_multiply_add(scale, spread, _CONSTANT))
        m, other_decided = _rounded(w, _HALF - fused_multiply_add(other_scale, spread, _CONSTANT))
        noise[i] = n
        other_noise[i] = m
        marks[i] = choose(decided & other_decided, _DECIDED, _OPEN)


@by_types(inline=True)
def _set_limit(limits, i, scale, spread):
    """Set the limit of a row's distance from an integer; nothing where there are no limits (None)."""
    if isinstance(limits, types.NoneType):
        return lambda limits, i, scale, spread: None

    def of_row(limits, i, scale, spread):
        limits[i] = _HALF - fused_multiply_add(scale, spread, _ROOM)

    return of_row


@kernel
def draw_values(words, roots, spreads, scales, other_scales, values, other_values, limits, other_limits):
    """Fill ``values`` and ``other_values`` with the noise v of first and of second rows, for `sum_block` (float32).

    ``limits`` and ``other_limits`` become how far from an integer the sum of v and a column's value may be to be
    decided. ``words``, ``roots``, ``spreads``, ``scales`` and ``other_scales`` are as for `draw_numbers`. Where
    ``other_scales`` is None, both rows of a pair have one limit, and ``other_limits`` is None too.
    """
    for i in range(values.size):
        spread, scale = spreads[i], at(scales, i)
        other_scale = _other_scale(other_scales, i, scale)
        v, w = _both_values(words[i], roots[i], scale, other_scale)
        values[i] = v
        other_values[i] = w
        _set_limit(limits, i, scale, spread)
        _set_limit(other_limits, i, other_scale, spread)


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
