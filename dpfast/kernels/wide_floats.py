"""Floats whose exponent is an integer of its own: products and sums of weights that no double could hold.

A number is a pair (m, e) and means m 2**e, with m = 0 or 1 <= m < 2. None is negative, so that sums lose nothing by
cancellation: every result is off by a relative error, and these add up.

Error, u = 2**-53. A product rounds once: u. A sum rounds once, and leaves out a term below 2**-200 of the other: 1.01u.
`wide_decay`: x / 16 is exact, its exponential is within 4u (decay.py), and four squarings make 16 times 4u of that and
15 roundings: 79u. Beyond LARGEST_DECAY it returns 0, which is less than 2**-11818 too little.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import inlined, kernel
from dpfast.kernels.decay import decay_f64
from dpfast.kernels.intrinsics import bit_and, bit_or, bits_of_f64, f64_from_bits, shift_left, shift_right

__all__ = ["LARGEST_DECAY", "NOTHING", "power_of_two", "wide_decay", "wide_of", "wide_product", "wide_sum"]

LARGEST_DECAY = 8192.0
"""Exponentials of less are 0."""
NOTHING = -(2**40)
"""The exponent of 0: below all others, so that a sum leaves it out."""
_NEGLIGIBLE = -200
_BIAS = 1023
_MANTISSA_BITS, _FRACTION, _ONE = np.uint64(52), np.uint64(2**52 - 1), np.uint64(1023 << 52)


@inlined
def power_of_two(exponent):
    """Return 2.0**exponent for -1000 <= exponent <= 1000."""
    return f64_from_bits(shift_left(np.uint64(exponent + _BIAS), _MANTISSA_BITS))


@kernel
def wide_of(number):
    """Return a float, 0 or more and not subnormal, as a pair."""
    if number == 0.0:
        return 0.0, NOTHING
    bits = bits_of_f64(number)
    mantissa = f64_from_bits(bit_or(bit_and(bits, _FRACTION), _ONE))
    return mantissa, np.int64(shift_right(bits, _MANTISSA_BITS)) - _BIAS


@kernel
def wide_product(m, e, other_m, other_e):
    """Return the product of two pairs."""
    m *= other_m
    if m == 0.0:
        return 0.0, NOTHING
    e += other_e
    if m >= 2.0:
        return 0.5 * m, e + 1
    return m, e


@kernel
def wide_sum(m, e, other_m, other_e):
    """Return the sum of two pairs."""
    if e < other_e:
        m, e, other_m, other_e = other_m, other_e, m, e
    apart = other_e - e
    if apart < _NEGLIGIBLE or other_m == 0.0:
        return m, e
    m += other_m * power_of_two(apart)
    if m >= 2.0:
        return 0.5 * m, e + 1
    return m, e


@kernel
def wide_decay(slope, distance):
    """Return exp(-slope * distance) for a float and an integer, neither negative."""
    x = slope * np.float64(distance)
    if not x <= LARGEST_DECAY:
        return 0.0, NOTHING
    m, e = wide_of(decay_f64(0.0625 * x))
    for _ in range(4):
        m, e = wide_product(m, e, m, e)
    return m, e


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
