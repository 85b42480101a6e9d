"""The offset of discrete Laplace noise, scale * c - 1/2 with c = ln(2 / (1 + exp(-1 / scale))).

Two forms of one function: with z = 1 / (2 scale), scale * c - 1/2 = -ln(cosh z) / (2 z), which is a short
polynomial times z for scales from 1 on; and the formula itself for all scales. See laplace.py for its use.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import inlined
from dpfast.kernels.intrinsics import (
    bits_of_f64,
    f64_from_bits,
    fused_multiply_add,
    polynomial,
    shift_left,
    subtract,
)
from dpfast.kernels.logarithm import minus_log_f64

__all__ = [
    "EXPONENTIAL",
    "LOG_COSH",
    "LOG_COSH_F32",
    "discrete_offset",
    "discrete_offset_from_one",
    "discrete_offset_from_one_f32",
]

# Minimax in r on [-ln(2)/2, ln(2)/2] for exp(-r); off by less than 2**-56.
EXPONENTIAL = (
    1.0,
    -1.0,
    0.5000000000000019,
    -0.1666666666666668,
    0.04166666666648809,
    -0.008333333333319601,
    0.0013888888952314812,
    -0.00019841269890047143,
    2.480148548228773e-05,
    -2.7557240918547625e-06,
    2.763263965412376e-07,
    -2.511003761756205e-08,
)
_LOG2_E, _LN2 = 1.4426950408889634, 0.6931471805599453
_LARGEST_POWER = 700.0
_EXPONENT, _BIAS = np.uint64(52), np.uint64(1023)
_SHIFTER, _SHIFTER_BITS = 1.5 * 2**52, np.uint64(0x4338000000000000)


@inlined
def discrete_offset(scale):
    """Return scale * c - 1/2 with c = ln(2 / (1 + q)), q = exp(-1 / scale), and c off by at most 5u.

    u = 2**-53. With t = 1/scale (off by u t), q = exp(-r) 2**-k is off by q (1.4u + u t) <= 2u q + 0.4u: one
    rounding in r, one in Horner's last step, the others below 0.4u. M = (1 + q) / 2 in [1/2, 1] is then off by
    at most (2u q + 0.4u) / 2 + u / 2, which moves -ln M by at most 2u over that range, and its own error is
    5u c <= 3.5u less where c is small: together below 5u. The fused last step rounds once, u / 4.
    """
    t = min(1.0 / scale, _LARGEST_POWER)
    shifted = fused_multiply_add(t, _LOG2_E, _SHIFTER)
    k = subtract(bits_of_f64(shifted), _SHIFTER_BITS)
    r = fused_multiply_add(shifted - _SHIFTER, -_LN2, t)
    power = f64_from_bits(shift_left(subtract(_BIAS, k), _EXPONENT))
    mean = fused_multiply_add(polynomial(r, EXPONENTIAL) * power, 0.5, 0.5)
    c, _ = minus_log_f64(bits_of_f64(mean), 1.0)
    return fused_multiply_add(scale, c, -0.5)


# Minimax in w on [0, 1/4] for ln(cosh(sqrt w)) / (2 w); off by less than 1.23e-16.
LOG_COSH = (
    0.2499999999999999,
    -0.04166666666659106,
    0.011111111103022963,
    -0.0033730155390326285,
    0.0010934674947434603,
    -0.00036922024793816806,
    0.0001277263344426284,
    -4.3174654021631805e-05,
    1.1029260319222466e-05,
)


@inlined
def discrete_offset_from_one(scale):
    """Return scale * c - 1/2 for scale >= 1, off by at most 1.2u.

    u = 2**-53. z = 1 / (2 scale) <= 1/2 is rounded once, its square twice more, the polynomial below 2u of its
    value, the product once: 5u of a value of at most 0.1201, and half the polynomial's own error of 1.1u.
    """
    z = 0.5 / scale
    return -z * polynomial(z * z, LOG_COSH)


# Minimax in w on [0, 1/4] for ln(cosh(sqrt w)) / (2 w), rounded to float32; off by less than 3.1e-8.
LOG_COSH_F32 = (0.2499999701976776, -0.04166311025619507, 0.011038171127438545, -0.002886059693992138)
_ROUNDED_F32 = tuple(np.float32(coefficient) for coefficient in LOG_COSH_F32)
_HALF_F32 = np.float32(0.5)


@inlined
def discrete_offset_from_one_f32(scale):
    """Return scale * c - 1/2 in float32 for a scale >= 1 that was rounded to float32, off by at most u.

    u = 2**-24. z is off by 2u z (the scale's rounding and the quotient's), which moves the value, at most 0.1201, by at
    most 2u times it. The polynomial is off by 0.52u of its own error and less than 0.2u in its operations (the last one
    rounds a value below 1/4: u / 8), times z <= 1/2; the product rounds a value below 1/8: u / 16. Together 0.67u.
    """
    z = _HALF_F32 / scale
    return -z * polynomial(z * z, _ROUNDED_F32)


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
