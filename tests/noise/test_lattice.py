"""What is released is a function of one integer: no bit below the grid, no -0.0, saturation instead of wrapping."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dpfast as dpf
from dpfast.columns import borrow
from dpfast.mechanisms.noise.lattice import grid_exponent, lattice_for
from dpfast.testing import SeededRandom

from .goodness import rejects

MECHANISMS = [dpf.laplace, dpf.gaussian]
VALUES = [0.0, -0.0, 0.1, 1e-300, 1.0, -1.0, 2.0**20, 5e-324, -5e-324, 2.0**-1074 * 3, 1e300, -1e300, 1 / 3, 1e15]
ROWS = 20_000


def released(mechanism, x, scale, seed, dtype="float64", rows=ROWS):
    return mechanism(np.full(rows, x, dtype), scale, random=SeededRandom(seed))


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("x", VALUES)
@pytest.mark.parametrize("scale", [1.0, 0.3, 1e-250, 1e200])
def test_every_float_is_a_multiple_of_the_grid(mechanism, x, scale, seed):
    """Soundness rule 7; Mironov (2012): supports of neighbouring inputs are the same."""
    noisy = released(mechanism, x, scale, seed)
    grid = math.ldexp(1.0, grid_exponent(scale))
    assert np.isfinite(noisy).all()
    if abs(x) < 2.0**53 * grid:
        steps = noisy / grid
        assert np.array_equal(steps, np.rint(steps))
        assert np.array_equal(steps * grid, noisy)
    assert not (np.signbit(noisy) & (noisy == 0)).any()
    # What is above the grid by 2**53 and more is a float64 anyway, and a multiple of the grid.
    assert all(math.fmod(value, grid) == 0 for value in noisy[:50].tolist())


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_no_negative_zero(mechanism, seed):
    """Soundness rule 7: zeros come in one form, in both precisions and where float32 underflows."""
    for dtype, x, scale in (("float64", -0.0, 2.0**-960), ("float32", -0.0, 1e-3), ("float32", -0.0, 1e-60)):
        noisy = released(mechanism, x, scale, seed, dtype, 3_000_000 if scale == 1e-3 else ROWS)
        assert not (np.signbit(noisy) & (noisy == 0)).any()
    # Values that lie on the grid and noise that takes them back to zero.
    grid = math.ldexp(1.0, grid_exponent(1.0))
    x = -np.arange(200_000) * grid
    noisy = mechanism(x, 1.0, random=SeededRandom(seed))
    assert not (np.signbit(noisy) & (noisy == 0)).any()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("scale", [1.0, 0.7, 1e-3])
def test_the_output_is_a_function_of_its_integer(dtype, scale, seed):
    """Soundness rule 7: values with one sum of integers give one result, whatever their own bits were."""
    grid = math.ldexp(1.0, grid_exponent(scale))
    lattice = lattice_for(np.dtype(dtype), scale, discrete=True)
    generator = np.random.default_rng(seed)
    total = generator.integers(-(2**22), 2**22, 4000)
    first, second = (generator.integers(-(2**21), 2**21, 4000).astype(np.int32) for _ in range(2))
    results = []
    for noise in (first, second):
        # A value anywhere inside its cell, not only on the grid point.
        values = ((total - noise) * grid + generator.uniform(-0.49, 0.49, 4000) * grid).astype(dtype)
        nearest = np.rint(values.astype(np.float64) / grid).astype(np.int64)
        moved = (total - nearest).astype(np.int32)
        out = np.empty(4000, dtype)
        lattice.join(values, lattice.rows(0, 4000, None), moved, out)
        results.append(out.tobytes())
    assert results[0] == results[1]


def low_bits_below_the_grid(noisy):
    """Return the share of outputs with a bit below 2**-53: what a porous sampler shows near zero."""
    return float(np.mean(noisy * 2.0**53 != np.rint(noisy * 2.0**53)))


def test_naive_floats_fail_the_same_check(seed):
    """The control: NumPy's Laplace noise puts about 28.6% of outputs near x = 0 below 2**-53, and 0% at x = 1."""
    generator = np.random.default_rng(seed)
    near_zero, at_one = (x + generator.laplace(0, 1, 400_000) for x in (0.0, 1.0))
    assert 0.2 < low_bits_below_the_grid(near_zero) < 0.4
    assert low_bits_below_the_grid(at_one) < low_bits_below_the_grid(near_zero) / 4
    grid = math.ldexp(1.0, grid_exponent(1.0))
    assert np.mean(at_one / grid != np.rint(at_one / grid)) > 0.99
    for x in (0.0, 1.0):
        assert low_bits_below_the_grid(released(dpf.laplace, x, 1.0, seed)) == 0


def low_bits_are_uniform(noisy, grid, bits=6):
    steps = np.rint(noisy / grid).astype(np.int64)
    counts = np.bincount(steps & (2**bits - 1), minlength=2**bits)
    return rejects([(f"low bits {k}", int(count), noisy.size, 2.0**-bits) for k, count in enumerate(counts)])


@pytest.mark.statistical
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("x", [0.0, 0.1, 1e-300, 1.0, 2.0**20, 1 / 3])
def test_low_grid_bits_are_uniform_for_every_value(mechanism, x, seed):
    """Haney et al. (2022): the last bits carry nothing of x. False-failure rate 1e-12, n = 10**6.

    The six lowest of 10 bits below the scale: not exactly uniform, but to within a part in 5,000, which moves none of
    64 expected counts by more than 3.2, where their standard deviation is 124.
    """
    assert low_bits_are_uniform(released(mechanism, x, 1.0, seed, rows=1_000_000), 2.0**-10) == ""


def test_low_bits_of_a_sum_rounded_to_floats_are_rejected(seed):
    """The mutant: naive noise around 2**44 leaves 8 bits below the binary point, the last of the grid are zero."""
    noisy = 2.0**44 + np.random.default_rng(seed).laplace(0, 1, 1_000_000)
    assert "low bits" in low_bits_are_uniform(noisy, 2.0**-10)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("scale", [1.0, 1e3, 1e6, 2.0**31, 2.0**60])
def test_int64_saturates(mechanism, scale, seed):
    """Soundness rule 7: at the bounds nothing wraps; half the noise is cut off, half moves inwards."""
    top, bottom = 2**63 - 1, -(2**63)
    shift = max(0, int(math.log2(scale)) - 24)
    highest = (top >> shift) << shift
    reach = int(min(60 * scale, 2**64))
    up, down = (released(mechanism, x, scale, seed, np.int64) for x in (top, bottom))
    assert min(up.tolist()) >= top - reach
    assert up.max() == highest
    assert (up == highest).mean() > 0.4
    assert max(down.tolist()) <= bottom + reach
    assert down.min() == bottom
    assert (down == bottom).mean() > 0.4


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("scale", [1.0, 1e3, 2.0**24, 2.0**25, 2.0**29, 2.0**40, 2.0**60])
def test_int32_saturates(mechanism, scale, seed):
    for x in (2**31 - 1, -(2**31), 0):
        noisy = released(mechanism, x, scale, seed, np.int32)
        wide = released(mechanism, x, scale, seed, np.int64)
        assert noisy.dtype == np.int32
        assert np.array_equal(noisy, np.clip(wide, -(2**31), 2**31 - 1))


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("x", [0, 2**31, 2**32 - 1])
def test_uint32_becomes_int64(mechanism, x, seed):
    """Soundness rule 7: a count cut off at zero would be biased."""
    noisy = released(mechanism, x, 5.0, seed, np.uint32)
    assert noisy.dtype == np.int64
    assert np.array_equal(noisy, released(mechanism, x, 5.0, seed, np.int64))
    assert (noisy < x).any()
    assert (noisy > x).any()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_floats_saturate(mechanism, seed):
    largest = float(np.finfo(np.float32).max)
    up = released(mechanism, largest, 1e37, seed, np.float32)
    assert np.isfinite(up).all()
    assert up.max() == largest
    assert (up == largest).mean() > 0.4
    down = released(mechanism, 0.0, 1e60, seed, np.float32)
    assert ((np.abs(down) == largest) | (down == 0)).all()
    # A grid of at most scale / 1,024 has zero with a chance below .4 / 1,024 for Gaussian noise and .5 / 1,024 for
    # Laplace's: of 20,000 values 9.8 are zero on average, and 60 or more with probability 2e-27.
    assert (down == 0).sum() < 60
    # At scale 2**960 the noise is a millionth of the last bit of the largest float64: it stays, and stays finite.
    assert (released(mechanism, np.finfo(np.float64).max, 2.0**960, seed) == np.finfo(np.float64).max).all()


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("exponent", [25, 26, 31, 40, 52, 60])
@pytest.mark.parametrize("factor", [1.0, 1.7])
def test_wide_noise_on_integers_is_a_multiple_of_the_grid(mechanism, exponent, factor, seed):
    """Soundness rule 6: from 2**25 on the grid is 2**shift, 2**24 <= scale / 2**shift < 2**25."""
    if exponent == 60 and factor > 1:
        return
    shift = exponent - 24
    for x in (0, 1, -1, 12_345_678_901, -(2**62) + 5):
        noisy = released(mechanism, x, factor * 2.0**exponent, seed, np.int64, 2000)
        assert not (noisy & (2**shift - 1)).any()
        assert np.unique(noisy).size > 1500


def test_grids_of_a_scale_per_row_are_those_of_one_scale(seed):
    """The grid of a row depends on its own scale alone."""
    scales = np.exp2(np.random.default_rng(seed).uniform(-900, 900, 5000))
    noisy = dpf.laplace(np.zeros(5000), scales, random=SeededRandom(seed))
    for value, scale in zip(noisy.tolist(), scales.tolist(), strict=True):
        assert math.fmod(value, math.ldexp(1.0, grid_exponent(scale))) == 0
    wide = np.exp2(np.random.default_rng(seed).uniform(0, 60, 5000))
    noisy = dpf.laplace(np.zeros(5000, np.int64), wide, random=SeededRandom(seed))
    for value, scale in zip(noisy.tolist(), wide.tolist(), strict=True):
        assert value % 2 ** max(0, math.floor(math.log2(scale)) - 24) == 0


def test_grid_is_chosen_from_the_scale_alone():
    for dtype in ("float64", "float32", "int64"):
        lattices = [lattice_for(borrow(np.array([x], dtype)).dtype, 3.0, discrete=True) for x in (0, 9)]
        assert lattices[0].rows(0, 1, None).position == lattices[1].rows(0, 1, None).position
