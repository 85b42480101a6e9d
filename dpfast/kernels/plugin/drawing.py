"""Noise for a chunk of rows by the kernels of `dpfast.kernels.noise`, chosen as the mechanisms choose them.

Which kernel draws changes no released byte: every one certifies its samples, and what none decides is finished from
the same bits. What does is how long words are, and the grid; both follow the rules of mechanisms/noise/lattice.py.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import inlined, kernel
from dpfast.kernels.noise.gaussian import draw_blocks
from dpfast.kernels.noise.joining import add_noise, join_grid, join_multiples
from dpfast.kernels.noise.laplace import LARGEST_NARROW_SCALE, UNDECIDED, draw_laplace_f64
from dpfast.kernels.noise.narrow_laplace import (
    NOISE_WORDS,
    WORK_WORDS,
    release_laplace_on_grids,
    release_laplace_on_ones,
)
from dpfast.kernels.noise.preparation import prepare_discrete, prepare_grid, prepare_multiples
from dpfast.kernels.plugin.layout import LAPLACE
from dpfast.kernels.plugin.memory import (
    f32_array,
    f64_array,
    i32_array,
    i64_array,
    u16_array,
    u32_array,
    u64_array,
)

__all__ = ["SCRATCH_ARRAYS", "draw_multiples", "draw_ones", "draw_powers"]

SCRATCH_ARRAYS = 5
"""How many arrays of eight bytes a row a chunk needs beside words and noise, WORK_WORDS words in front of them."""

LARGEST_ONES_EXPONENT = np.int64(24)
"""Of lattice.py."""

_LARGEST_F64, _LARGEST_F32 = float(np.finfo(np.float64).max), float(np.finfo(np.float32).max)
_SMALLEST_I32, _LARGEST_I32 = np.int64(-(2**31)), np.int64(2**31 - 1)
_SMALLEST_I64, _LARGEST_I64 = np.int64(-(2**63)), np.int64(2**63 - 1)


@inlined
def _marked(work, count, undecided, noise):
    """Mark what is undecided, and wipe the noise of the last block; return how many rows are undecided."""
    for i in range(NOISE_WORDS):
        work[i] = np.uint64(0)
    for k in range(count):
        noise[undecided[k]] = UNDECIDED
    return count


@inlined
def _laplace_on_ones(high, low, scale, offset, work, undecided, noise):
    none = np.int64(0)
    count = release_laplace_on_ones(high, low, scale, offset, None, none, none, work, noise, undecided)
    return _marked(work, count, undecided, noise)


@inlined
def _laplace_on_grids(high, low, scale, values, position, work, undecided, noise):
    count = release_laplace_on_grids(high, low, scale, position, None, values, 0.0, work, noise, undecided)
    return _marked(work, count, undecided, noise)


@kernel
def _draw_ones(operation, short, words, rows, scales, per_row, scratch, noise):
    """Draw for integers on the grid of ones."""
    high = u32_array(words, rows + (rows % 2 if operation != LAPLACE else 0))
    low = u16_array(words + 4 * high.size, high.size)
    given = f64_array(scales, rows if per_row != 0 else 1)
    junk = i32_array(scratch + 16 * rows, 1)
    if operation == LAPLACE:
        work, undecided = u64_array(scratch - 8 * WORK_WORDS, WORK_WORDS), i64_array(scratch, rows)
        if per_row != 0:
            if short != 0:
                return _laplace_on_ones(high, None, given, None, work, undecided, noise)
            return _laplace_on_ones(high, low, given, None, work, undecided, noise)
        wide, offsets = f64_array(scratch + 8 * rows, 1), f64_array(scratch + 16 * rows, 1)
        prepare_discrete(given, wide, offsets)
        scale, offset = wide[0], offsets[0]
        if short != 0:
            return _laplace_on_ones(high, None, scale, offset, work, undecided, noise)
        if scale <= LARGEST_NARROW_SCALE:
            return _laplace_on_ones(high, low, scale, offset, work, undecided, noise)
        return np.int64(draw_laplace_f64(high, low, scale, offset, None, None, noise))
    return np.int64(_draw_gaussian_on_ones(short, high, low, given, per_row, noise, junk))


@kernel
def _draw_gaussian_on_ones(short, high, low, given, per_row, noise, junk):
    if short != 0:
        if per_row != 0:
            return draw_blocks(high, None, given, None, None, noise, junk)
        return draw_blocks(high, None, given[0], None, None, noise, junk)
    if per_row != 0:
        return draw_blocks(high, low, given, None, None, noise, junk)
    return draw_blocks(high, low, given[0], None, None, noise, junk)


@kernel
def _join_ones(form, values, noise, released):
    rows = noise.size
    if form == 0:
        add_noise(i64_array(values, rows), noise, _SMALLEST_I64, _LARGEST_I64, i64_array(released, rows))
    elif form == 1:
        add_noise(i32_array(values, rows), noise, _SMALLEST_I32, _LARGEST_I32, i32_array(released, rows))
    else:
        add_noise(u32_array(values, rows), noise, _SMALLEST_I64, _LARGEST_I64, i64_array(released, rows))


@kernel
def draw_ones(operation, short, words, rows, form, values, scales, per_row, scratch, noise_at, released):
    """Release a chunk of integers with noise on the grid of ones; see the module's docstring."""
    noise = i32_array(noise_at, rows)
    undecided = _draw_ones(operation, short, words, rows, scales, per_row, scratch, noise)
    _join_ones(form, values, noise, released)
    return np.int64(undecided)


@inlined
def _copy(given, taken):
    for i in range(taken.size):
        taken[i] = given[i]


@kernel
def _widen(form, values, rows, wide):
    """Write integers as int64, or floats as float64, at the address ``wide``: exactly."""
    if form == 0:
        _copy(i64_array(values, rows), i64_array(wide, rows))
    elif form == 1:
        _copy(i32_array(values, rows), i64_array(wide, rows))
    elif form == 2:
        _copy(u32_array(values, rows), i64_array(wide, rows))
    elif form == 3:
        _copy(f64_array(values, rows), f64_array(wide, rows))
    else:
        _copy(f32_array(values, rows), f64_array(wide, rows))


@kernel
def draw_multiples(operation, short, words, rows, form, values, scales, per_row, scratch, noise_at, released):
    """Release a chunk of integers with wide noise: multiples of each row's power of two."""
    noise = i32_array(noise_at, rows)
    high = u32_array(words, rows + (rows % 2 if operation != LAPLACE else 0))
    low = u16_array(words + 4 * high.size, high.size)
    given, wide = f64_array(scales, rows if per_row != 0 else 1), i64_array(scratch, rows)
    each, offsets = f64_array(scratch + 8 * rows, rows), f64_array(scratch + 16 * rows, rows)
    shifts, own = i64_array(scratch + 24 * rows, rows), f64_array(scratch + 32 * rows, rows)
    _widen(form, values, rows, scratch)
    for i in range(rows):
        own[i] = given[i if per_row != 0 else 0]
    prepare_multiples(own, LARGEST_ONES_EXPONENT, shifts, each, offsets)
    if operation == LAPLACE:
        undecided = draw_laplace_f64(high, low, each, offsets, wide, shifts, noise)
    else:
        undecided = draw_blocks(high, low, each, wide, shifts, noise, i32_array(scratch + 16 * rows, 1))
    if form == 1:
        join_multiples(wide, shifts, noise, _SMALLEST_I32, _LARGEST_I32, i32_array(released, rows))
    else:
        join_multiples(wide, shifts, noise, _SMALLEST_I64, _LARGEST_I64, i64_array(released, rows))
    return np.int64(undecided)


@kernel
def _join_powers(form, wide, inverse, grid, noise, released):
    if form == 3:
        join_grid(wide, inverse, grid, noise, _LARGEST_F64, f64_array(released, noise.size))
    else:
        join_grid(wide, inverse, grid, noise, _LARGEST_F32, f32_array(released, noise.size))


@kernel
def draw_powers(operation, short, words, rows, form, values, scales, per_row, scratch, noise_at, released):
    """Release a chunk of floats with noise on their grid of powers of two."""
    noise = i32_array(noise_at, rows)
    high = u32_array(words, rows + (rows % 2 if operation != LAPLACE else 0))
    low = u16_array(words + 4 * high.size, high.size)
    given, size = f64_array(scales, rows if per_row != 0 else 1), rows if per_row != 0 else 1
    inverse, grid = f64_array(scratch + 8 * rows, size), f64_array(scratch + 16 * rows, size)
    each, junk = f64_array(scratch + 24 * rows, size), i32_array(scratch + 32 * rows, 1)
    prepare_grid(given, inverse, grid, each)
    work, listed = u64_array(scratch - 8 * WORK_WORDS, WORK_WORDS), i64_array(scratch + 32 * rows, rows)
    own = values
    if form == 4:
        own = scratch
        _widen(form, values, rows, scratch)
    wide = f64_array(own, rows)
    if per_row != 0:
        if operation == LAPLACE:
            undecided = _laplace_on_grids(high, low, each, wide, inverse, work, listed, noise)
        else:
            undecided = np.int64(draw_blocks(high, low, each, wide, inverse, noise, junk))
        _join_powers(form, wide, inverse, grid, noise, released)
        return np.int64(undecided)
    if operation == LAPLACE:
        undecided = _laplace_on_grids(high, low, each[0], wide, inverse[0], work, listed, noise)
    else:
        undecided = np.int64(draw_blocks(high, low, each[0], wide, inverse[0], noise, junk))
    _join_powers(form, wide, inverse[0], grid[0], noise, released)
    return np.int64(undecided)


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
