"""Parameters for each row of a chunk, from its scale: grids, and the offsets of discrete Laplace noise."""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import kernel
from dpfast.kernels.intrinsics import (
    bit_or,
    bits_of_f64,
    choose,
    f64_from_bits,
    shift_left,
    shift_right,
    subtract,
)
from dpfast.kernels.noise.offsets import discrete_offset, discrete_offset_from_one, discrete_offset_from_one_f32
from dpfast.kernels.wide_floats import power_of_two

__all__ = ["FINENESS", "LOWEST_EXPONENT", "prepare_discrete", "prepare_grid", "prepare_multiples", "prepare_narrow"]

FINENESS = 10
"""Bits of the noise's scale that a released float has: mechanisms/noise/lattice.py says why."""

LOWEST_EXPONENT = -1000

_EXPONENT, _FINENESS, _LOWEST_BITS = np.uint64(52), np.uint64(FINENESS), np.uint64((1023 + LOWEST_EXPONENT) << 52)
_NONE, _SOME = np.uint64(0), np.uint64(1)


@kernel
def prepare_discrete(scale, scales, offsets):
    """Set each row's ``scales`` to its scale and ``offsets`` to scale * c - 1/2 (float64).

    ``scale`` is float64, read only.
    """
    below_one = _NONE
    for i in range(scale.size):
        below_one = bit_or(below_one, choose(scale[i] < 1.0, _SOME, _NONE))
    if below_one == _NONE:
        for i in range(scale.size):
            b = scale[i]
            scales[i] = b
            offsets[i] = discrete_offset_from_one(b)
    else:
        for i in range(scale.size):
            b = scale[i]
            scales[i] = b
            offsets[i] = discrete_offset(b)


@kernel
def prepare_narrow(scale, largest, scales, offsets):
    """Set each row's ``scales`` to its scale and ``offsets`` to scale * c - 1/2, rounded to float32.

    ``scale`` is float64. Return whether a scale is above ``largest``; then nothing is said of what was set.
    """
    below_one, wide = _NONE, _NONE
    for i in range(scale.size):
        below_one = bit_or(below_one, choose(scale[i] < 1.0, _SOME, _NONE))
        wide = bit_or(wide, choose(scale[i] > largest, _SOME, _NONE))
    if wide != _NONE:
        return True
    if below_one == _NONE:
        for i in range(scale.size):
            b = np.float32(scale[i])
            scales[i] = b
            offsets[i] = discrete_offset_from_one_f32(b)
    else:
        for i in range(scale.size):
            b = scale[i]
            scales[i] = np.float32(b)
            offsets[i] = np.float32(discrete_offset(b))
    return False


@kernel
def prepare_grid(scale, inverse_grid, grid, scales):
    """Set each row's grid to the power of two at or below scale * 2**-FINENESS, not below 2**LOWEST_EXPONENT.

    ``scales`` becomes scale / grid, exactly.
    """
    for i in range(scale.size):
        b = scale[i]
        exponent = shift_left(subtract(shift_right(bits_of_f64(b), _EXPONENT), _FINENESS), _EXPONENT)
        bits = max(exponent, _LOWEST_BITS)
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
        scales[i] = b * power_of_two(-k)
        offsets[i] = discrete_offset(b) if k == 0 else 0.0


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
