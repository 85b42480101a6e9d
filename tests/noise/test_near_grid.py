"""Values near their grid, by few operations: the same fractions and floats as by the kernels for all values."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from dpfast.kernels.noise.fractions import find_fractions, fraction_of
from dpfast.kernels.noise.joining import join_grid, join_near_grid
from dpfast.kernels.noise.releasing import release_block_on_grids
from dpfast.mechanisms.noise.lattice import Powers

from .drawing import read_only

LARGEST = {"float64": float(np.finfo(np.float64).max), "float32": float(np.finfo(np.float32).max)}

compiled = numba.njit(error_model="numpy", fastmath=False)


@compiled
def fractions_one_by_one(values, position, fractions):
    for i in range(values.size):
        fractions[i] = np.float32(fraction_of(values[i], position))


@compiled
def release(values, inverse, grid, noise, near, largest, released):
    release_block_on_grids(values, inverse, grid, noise, near, largest, released)


def near_values(dtype, grid, seed):
    """Return values of every size up to 2**50 grids, and such that lie between two grid points, or next to that."""
    generator = np.random.default_rng(seed)
    sizes = np.exp2(generator.uniform(-60, 49.99, 4000)) * generator.choice([-1, 1], 4000)
    halves = generator.integers(-(2**40), 2**40, 2000) + 0.5
    halves[::2] = generator.integers(-3, 3, 1000) + 0.5
    edge = np.array([0.0, -0.0, 2.0**50 - 1, 0.5 - 2**50, 2.0**49, -(2.0**50) + 1])
    positions = np.concatenate([sizes, halves, np.nextafter(halves, np.inf), np.nextafter(halves, -np.inf), edge])
    if dtype == "float32":
        positions = positions[np.abs(positions.astype(dtype).astype(float)) < 2.0**50]
    return (positions * grid).astype(dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("exponent", [-12, -100, 0, 60, "rows"])
def test_fractions_and_floats_are_the_same(exponent, dtype, seed):
    """Bit by bit, with noise of every size of an int32."""
    generator = np.random.default_rng(seed + 1)
    grid = 2.0 ** (-9 if exponent == "rows" else exponent)
    values = read_only(near_values(dtype, grid, seed))
    noise = (generator.integers(-(2**31), 2**31, values.size) >> generator.integers(0, 32, values.size)).astype(
        np.int32
    )
    inverse = 1 / grid
    fractions, right = np.empty((2, values.size), np.float32)
    released, expected = np.empty((2, values.size), dtype)
    fractions_one_by_one(values, inverse, right)
    join_grid(values, inverse, grid, noise, LARGEST[dtype], expected)
    given = (inverse, grid)
    if exponent == "rows":
        given = tuple(read_only(np.full(values.size, x)) for x in given)
    assert find_fractions(values, given[0], fractions)
    assert np.array_equal(fractions, right)
    join_near_grid(values, *given, noise, released)
    assert released.tobytes() == expected.tobytes()


@pytest.mark.parametrize("one", [2.0**50, -(2.0**50) - 1, 2.0**51, -(2.0**52), 2.0**60, 1e300, np.inf, -np.inf, np.nan])
def test_one_value_that_is_far_is_found(one):
    """Then every fraction is found with care; one that is not finite has none."""
    values = np.linspace(-9, 9, 100)
    values[37] = one
    fractions, right = np.empty((2, 100), np.float32)
    assert not find_fractions(read_only(values), 1.0, fractions)
    fractions_one_by_one(read_only(values), 1.0, right)
    assert np.array_equal(fractions, right, equal_nan=True)
    assert np.isnan(fractions[37]) == (not np.isfinite(one))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_near_values_beside_the_largest_number_saturate(dtype):
    """A grid so large that what is near it may pass the largest number: nothing wraps or becomes infinite."""
    largest = LARGEST[dtype]
    grid = 2.0 ** (np.frexp(largest)[1] - 20)
    values = read_only(np.array([largest, -largest, 0.0]).astype(dtype))
    noise, released = np.array([2**30, -(2**30), 2**30], np.int32), np.empty(3, dtype)
    assert find_fractions(values, 1 / grid, np.empty(3, np.float32))
    release(values, 1 / grid, grid, noise, True, largest, released)
    assert released.tolist() == [largest, -largest, largest]


def test_grids_of_float64_are_never_so_large():
    """What `releasing.py` supposes of grids a row: 2**51 times one is a float64, and far from the largest."""
    assert Powers(2.0**960, np.dtype(np.float64)).rows(0, 1, None).grid * 2.0**51 < 2.0**1020
