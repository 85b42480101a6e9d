"""Parameters for each row of a chunk, from its scale: grids, and the offsets of discrete Laplace noise."""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import inlined, kernel
from dpfast.kernels.intrinsics import (
    bits_of_f64,
    f64_from_bits,
    fused_multiply_add,
    shift_left,
    shift_right,
    subtract,
)
from dpfast.kernels.logarithm import minus_log_f64

__all__ = ["EXPONENTIAL", "prepare_discrete", "prepare_grid", "prepare_multiples"]

# Minimax in r on [-ln(2)/2, ln(2)/2] for exp(-r); off by less than 2**-58.
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
_E0, _E1, _E2, _E3, _E4, _E5, _E6, _E7, _E8, _E9, _E10, _E11 = EXPONENTIAL
_LOG2_E, _LN2 = 1.4426950408889634, 0.6931471805599453
_LARGEST_POWER = 700.0
_EXPONENT, _BIAS = np.uint64(52), np.uint64(1023)
_SHIFTER, _SHIFTER_BITS = 1.5 * 2**52, np.uint64(0x4338000000000000)


@inlined
def _discrete_offset(scale):
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
    p = fused_multiply_add(r, _E11, _E10)
    p = fused_multiply_add(r, p, _E9)
    p = fused_multiply_add(r, p, _E8)
    p = fused_multiply_add(r, p, _E7)
    p = fused_multiply_add(r, p, _E6)
    p = fused_multiply_add(r, p, _E5)
    p = fused_multiply_add(r, p, _E4)
    p = fused_multiply_add(r, p, _E3)
    p = fused_multiply_add(r, p, _E2)
    p = fused_multiply_add(r, p, _E1)
    p = fused_multiply_add(r, p, _E0)
    power = f64_from_bits(shift_left(subtract(_BIAS, k), _EXPONENT))
    mean = fused_multiply_add(p * power, 0.5, 0.5)
    c, _ = minus_log_f64(bits_of_f64(mean), 1.0)
    return fused_multiply_add(scale, c, -0.5)


@kernel
def prepare_discrete(scale, scales, offsets):
    """Set each row's ``scales`` to its scale and ``offsets`` to scale * c - 1/2 (float64, or float32 for both).

    ``scale`` is float64, read only.
    """
    for i in range(scale.size):
        b = scale[i]
        scales[i] = b
        offsets[i] = _discrete_offset(b)


@kernel
def prepare_grid(scale, fineness, lowest_bits, inverse_grid, grid, scales):
    """Set each row's grid to the power of two at or below scale * 2**-fineness, not below ``lowest_bits``.

    ``lowest_bits`` are the bits of the lowest grid, ``fineness`` is uint64; ``scales`` becomes scale / grid,
    exactly.
    """
    for i in range(scale.size):
        b = scale[i]
        exponent = shift_left(shift_right(bits_of_f64(b), _EXPONENT) - fineness, _EXPONENT)
        bits = max(exponent, lowest_bits)
        inverse = f64_from_bits(subtract(shift_left(np.uint64(2046), _EXPONENT), bits))
        grid[i] = f64_from_bits(bits)
        inverse_grid[i] = inverse
        scales[i] = b * inverse


@kernel
def prepare_multiples(scale, largest_exponent, shift, scales, offsets):
    """Set each row's grid of integers, 2**shift, so that scale / 2**shift < 2**(largest_exponent + 1).

    A row with shift 0 is discrete: its offset is scale * c - 1/2; another's is 0 (see laplace.py).
    ``largest_exponent`` is int64, ``shift`` too.
    """
    for i in range(scale.size):
        b = scale[i]
        exponent = np.int64(shift_right(bits_of_f64(b), _EXPONENT)) - np.int64(1023)
        k = max(exponent - largest_exponent, np.int64(0))
        shift[i] = k
        scales[i] = b / np.float64(np.int64(1) << k)
        offsets[i] = _discrete_offset(b) if k == 0 else 0.0

# Stamp of all kernel sources (scripts/stamp_kernels.py): 0adbd28310ea3716
