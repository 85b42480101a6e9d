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
from dpfast.kernels.noise.offsets import discrete_offset, discrete_offset_from_one
from dpfast.kernels.wide_floats import power_of_two

__all__ = ["prepare_discrete", "prepare_grid", "prepare_multiples"]

_EXPONENT = np.uint64(52)
_NONE, _SOME = np.uint64(0), np.uint64(1)


@kernel
def prepare_discrete(scale, scales, offsets):
    """Set each row's ``scales`` to its scale and ``offsets`` to scale * c - 1/2 (float64, or float32 for both).

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
        scales[i] = b * power_of_two(-k)
        offsets[i] = discrete_offset(b) if k == 0 else 0.0


# Stamp of all kernel sources (scripts/stamp_kernels.py): 725c5de447cbb0dc
