"""A million queries calibrated in one pass: charges in whole units, scales rounded up, intervals.

Amounts are units of 1e-18 in two limbs, whole + part * 1e-18. An epsilon is read as it was written: if x is the
float nearest to a decimal of at most 15 digits (with 15, 12 or 9 places for x below 1, 1000 and 10**6), that
decimal is charged; else a float that is surely above x. Proof: n / power is correctly rounded, so if it equals x
then x denotes n / power, and no two decimals of 15 digits share a float (n = 10**15 is 10**6 alone, exactly).

The scale is raised by 2**-50 of itself, which covers its two roundings and the 2**-53 that a decimal may lie below
its float: scale * charge >= sensitivity in the real numbers.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import inlined, kernel
from dpfast.kernels.intrinsics import (
    add,
    bit_and,
    bit_xor,
    bits_of_f64,
    choose,
    fused_multiply_add,
    low_product,
    shift_left,
    shift_right,
    subtract,
)
from dpfast.kernels.parameters import at

__all__ = ["LIMB_BITS", "intervals_of_floats", "intervals_of_integers", "scale_laplace", "sum_amounts"]

#: Sums of parts are kept in two halves, which do not overflow below 2**33 rows.
LIMB_BITS = 30
_LIMB, _LIMB_DOWN = 2.0**LIMB_BITS, 2.0**-LIMB_BITS
_LOW, _HALF = np.uint64((1 << LIMB_BITS) - 1), np.uint64(LIMB_BITS)
_MIDDLE, _BITS_OF_MIDDLE = 2.0**52, np.uint64(0x4330000000000000)
#: The largest float64 below 2**63.
_LARGEST_BELOW = 9223372036854774784.0
_ABOVE, _RAISED = 1.0 + 2.0**-51, 1.0 + 2.0**-50
_UNITS = 1e18
_LARGEST_I64, _SMALLEST_I64, _ZERO = np.int64(2**63 - 1), np.int64(-(2**63)), np.int64(0)
_NONE, _WORD = np.uint64(0), np.uint64(32)


@inlined
def _small(x):
    """Return a whole number (float64, from 0 to 2**52, exclusive) as uint64: AVX2 has no instruction for that."""
    return subtract(bits_of_f64(x + _MIDDLE), _BITS_OF_MIDDLE)


@inlined
def _units_of(x):
    """Return (whole, part) of an amount from 1e-18 to 10**6, uint64.

    The part of an amount of at most 15 digits is its digits behind the point, below 10**15, times 10**3, 10**6 or
    10**9. That of any other amount is a float below 2**60, which two limbs hold exactly. Both are made as first *
    factor + second.
    """
    power = choose(x < 1.0, 1e15, choose(x < 1e3, 1e12, 1e9))
    rest = choose(x < 1.0, 1e3, choose(x < 1e3, 1e6, 1e9))
    n = np.rint(x * power)
    floor = np.floor(x)
    above = x * _ABOVE
    floor_above = np.floor(above)
    # The fraction is exact; its product is within half an ulp, and this ceiling above it.
    fraction = np.ceil((above - floor_above) * _UNITS * _ABOVE)
    written = (n / power == x) & (n <= 1e15)
    high = np.floor(fraction * _LIMB_DOWN)
    first = _small(choose(written, fused_multiply_add(-power, floor, n), high))
    second = _small(choose(written, 0.0, fused_multiply_add(-_LIMB, high, fraction)))
    part = add(low_product(first, _small(choose(written, rest, _LIMB))), second)
    return _small(choose(written, floor, floor_above)), part


@kernel
def sum_amounts(amounts):
    """Return whether all amounts are from 1e-18 to 10**6, and their sum: wholes, high and low bits of the parts.

    ``amounts`` is float64; the parts are split at LIMB_BITS. If an amount is out of range, the sums mean nothing.
    """
    good, wholes, highs, lows = True, _NONE, _NONE, _NONE
    for i in range(amounts.size):
        x = amounts[i]
        good &= (x >= 1e-18) & (x <= 1e6)
        whole, part = _units_of(x)
        wholes = add(wholes, whole)
        highs = add(highs, shift_right(part, _HALF))
        lows = add(lows, bit_and(part, _LOW))
    return good, wholes, highs, lows


@kernel
def scale_laplace(epsilon, sensitivity, scale):
    """Set each row's Laplace scale for its charge; return whether every epsilon and sensitivity is in range.

    ``epsilon`` is float64, from 1e-18 to 10**6; ``sensitivity`` positive and finite, one or one a row.
    """
    good = True
    for i in range(epsilon.size):
        x, s = epsilon[i], at(sensitivity, i)
        good &= (x >= 1e-18) & (x <= 1e6) & (s > 0.0) & (s < np.inf)
        scale[i] = s / x * _RAISED
    return good


@kernel
def intervals_of_integers(answers, scale, reach, lower, upper):
    """Set bounds around integer answers: within ``scale * reach + 1``, saturating at the bounds of int64."""
    for i in range(answers.size):
        x = np.int64(answers[i])
        far = np.floor(fused_multiply_add(at(scale, i), reach, 1.0))
        far = choose(far < _LARGEST_BELOW, far, _LARGEST_BELOW)
        high = np.floor(far * 2.0**-32)
        h = np.int64(add(shift_left(_small(high), _WORD), _small(fused_multiply_add(-(2.0**32), high, far))))
        below, above = add(x, -h), add(x, h)
        below = choose(bit_and(bit_xor(x, -h ^ -1), bit_xor(x, below)) < _ZERO, _SMALLEST_I64, below)
        above = choose(bit_and(bit_xor(x, h ^ -1), bit_xor(x, above)) < _ZERO, _LARGEST_I64, above)
        lower[i], upper[i] = below, above


@kernel
def intervals_of_floats(answers, scale, reach, lower, upper):
    """Set bounds around floating-point answers: within ``scale * reach``."""
    for i in range(answers.size):
        x = np.float64(answers[i])
        h = at(scale, i) * reach
        lower[i], upper[i] = x - h, x + h


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
