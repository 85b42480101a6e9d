"""float32 first, block by block, releases what float64 alone releases from the same words: every row, every length."""

from __future__ import annotations

import numpy as np
import pytest

from dpfast.kernels.noise import narrow_laplace
from dpfast.kernels.noise.joining import add_noise, join_grid
from dpfast.kernels.noise.laplace import LARGEST_NARROW_SCALE, UNDECIDED, draw_laplace_f64
from dpfast.kernels.noise.narrow_laplace import (
    BLOCK,
    NOISE_WORDS,
    WORK_WORDS,
    release_laplace_on_grids,
    release_laplace_on_ones,
)
from dpfast.kernels.noise.preparation import prepare_discrete, prepare_grid
from dpfast.mechanisms.noise.exact import discrete_offset

from .drawing import all_made, read_only

LENGTHS = [1, 7, 8, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 9, 40 * BLOCK + 3]
SMALLEST, LARGEST = np.int64(-(2**63)), np.int64(2**63 - 1)
LARGEST_FLOAT = float(np.finfo(np.float64).max)


def words_of(rows, seed):
    """Return random words in two parts; a few are 0, or next to it, which nothing decides."""
    generator = np.random.default_rng(seed)
    high, low = generator.integers(0, 2**32, rows, np.uint32), generator.integers(0, 2**16, rows, np.uint16)
    rare = generator.random(rows) < 0.002
    high[rare] &= np.uint32(2**31)
    low[rare & (generator.random(rows) < 0.5)] = 0
    return generator, high, low


def scratch(rows):
    return np.full(WORK_WORDS, 2**64 - 1, np.uint64), np.full(rows, -1, np.int64)


def assert_same(released, found, count, right, noise):
    """The rows that are listed are those that float64 leaves open, once each, and the others are the same."""
    assert sorted(found[:count].tolist()) == np.flatnonzero(noise == UNDECIDED).tolist()
    decided = noise != UNDECIDED
    assert released[decided].tobytes() == right[decided].tobytes()


@pytest.mark.parametrize("rows", LENGTHS)
@pytest.mark.parametrize("scale", [0.01, 0.7, 10.0, 256.0, 9999.9, LARGEST_NARROW_SCALE, "rows", "wide rows"])
def test_integers(rows, scale, seed):
    generator, high, low = words_of(rows, seed)
    values = read_only(generator.integers(-(2**62), 2**62, rows))
    if isinstance(scale, float):
        given, offset = scale, discrete_offset(scale)
        noise = np.empty(rows, np.int32)
        draw_laplace_f64(high, low, given, offset, None, None, noise)
    else:
        # Blocks of narrow scales, of wide ones, and of both.
        wide = np.resize(np.repeat([False, True, False], BLOCK), rows) & (scale == "wide rows")
        wide |= (generator.random(rows) < 1e-3) & (scale == "wide rows")
        given = read_only(np.exp2(np.where(wide, generator.uniform(14, 25, rows), generator.uniform(-4, 14, rows))))
        offset, noise, same, offsets = None, np.empty(rows, np.int32), np.empty(rows), np.empty(rows)
        prepare_discrete(given, same, offsets)
        draw_laplace_f64(high, low, same, offsets, None, None, noise)
    right, released = np.empty(rows, np.int64), np.empty(rows, np.int64)
    add_noise(values, noise, SMALLEST, LARGEST, right)
    work, found = scratch(rows)
    count = release_laplace_on_ones(high, low, given, offset, values, SMALLEST, LARGEST, work, released, found)
    assert_same(released, found, count, right, noise)


@pytest.mark.parametrize("rows", LENGTHS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("per_row", [False, True])
def test_floats(rows, dtype, per_row, seed):
    """What is not finite stays open, and nothing else than by float64 alone."""
    generator, high, low = words_of(rows, seed)
    values = (generator.normal(0, 1e4, rows) * np.exp2(generator.integers(-30, 30, rows))).astype(dtype)
    values[generator.random(rows) < 0.01] = np.nan
    values[generator.random(rows) < 0.01] = -np.inf
    values = read_only(values)
    scales = read_only(np.exp2(generator.uniform(-20, 20, rows)) if per_row else np.full(rows, 3.3))
    inverse, grid, same = np.empty((3, rows))
    prepare_grid(scales, inverse, grid, same)
    noise, right, released = np.empty(rows, np.int32), np.empty(rows, dtype), np.empty(rows, dtype)
    draw_laplace_f64(high, low, same, 0.0, values, read_only(inverse), noise)
    join_grid(values, inverse, grid, noise, LARGEST_FLOAT, right)
    work, found = scratch(rows)
    given = (scales, None, None) if per_row else (float(same[0]), float(inverse[0]), float(grid[0]))
    count = release_laplace_on_grids(high, all_made(low), *given, values, LARGEST_FLOAT, work, released, found)
    assert (noise[~np.isfinite(values)] == UNDECIDED).all()
    assert_same(released, found, count, right, noise)


def test_every_row_open(seed):
    """The list of what is open is as long as it must be, where float32 decides nothing at all."""
    rows = 3 * BLOCK + 5
    _, high, low = words_of(rows, seed)
    values, released = read_only(np.full(rows, np.nan)), np.empty(rows)
    work, found = scratch(rows)
    given = 5000.0, 1.0, 1.0, values, LARGEST_FLOAT
    count = release_laplace_on_grids(high, all_made(low), *given, work, released, found)
    assert count == rows
    assert found.tolist() == list(range(rows))


def test_no_random_bits_stay_in_memory(seed):
    """But the noise of the last block, which the caller wipes: no word or sign, no sample of float64 with its row."""
    rows = 40 * BLOCK
    _, high, low = words_of(rows, seed)
    values, released = read_only(np.zeros(rows)), np.empty(rows)
    work, found = scratch(rows)
    work[:] = 0
    release_laplace_on_grids(high, all_made(low), 5000.0, 1.0, 1.0, values, LARGEST_FLOAT, work, released, found)
    kept = set(work[NOISE_WORDS:].tolist())
    first = (high & np.uint32(2**31 - 1)).astype(np.uint64)
    # Row numbers stay, and a word in 10^5 is as small as one of them.
    large = first >= rows
    secret = set(first[large].tolist()) | set(((first << np.uint64(16)) | low)[large].tolist())
    assert not kept & secret
    assert not work[narrow_laplace._SIGNS : narrow_laplace._OPEN_SCALES].any()
