"""Values and noise added in float64: the nearest integer, how far the sum is from it, and rows that are not near."""

from __future__ import annotations

from fractions import Fraction

import numba
import numpy as np
import pytest

from dpfast.kernels.noise import sums
from dpfast.mechanisms.noise.lattice import Powers

from .drawing import read_only

LARGEST = {"float64": float(np.finfo(np.float64).max), "float32": float(np.finfo(np.float32).max)}

compiled = numba.njit(error_model="numpy", fastmath=False)


@compiled
def add(values, inverse, grid, drawn, largest, released, distances):
    sums.sum_block(values, inverse, grid, drawn, largest, released, distances)


def block(reach, dtype, seed):
    """Return positions up to ``reach`` grids and noise up to 2**18: at random, whole, and half-way between integers."""
    generator = np.random.default_rng(seed)
    positions = np.exp2(generator.uniform(-60, np.log2(reach) - 0.01, 3000)) * generator.choice([-1, 1], 3000)
    drawn = (np.exp2(generator.uniform(-30, 17.9, 3000)) * generator.choice([-1, 1], 3000)).astype(np.float32)
    positions[::3] = np.rint(positions[::3])
    drawn[::6] = np.trunc(drawn[::6]) + np.float32(0.5)
    positions[:4], drawn[:4] = [0.0, -0.0, 0.5, -0.5], 0.0
    return positions.astype(dtype), drawn


@pytest.mark.parametrize("per_row", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("reach", [2.0**20, 2.0**35, 2.0**36, 2.0**49])
@pytest.mark.parametrize("exponent", [-9, -100, 60])
def test_sums_against_fractions(exponent, reach, dtype, per_row, seed):
    """Soundness rules 4, 5 and 7: y + v is within LIMIT_ROOM / 2 of the integer and the distance that are claimed."""
    grid = 2.0**exponent
    positions, drawn = block(reach, dtype, seed)
    values = read_only((positions * np.array(grid, dtype)).astype(dtype))
    given = tuple(read_only(np.full(values.size, x)) for x in (1 / grid, grid)) if per_row else (1 / grid, grid)
    released, distances = np.full(values.size, np.nan, dtype), np.empty(values.size, np.float32)
    add(values, *given, drawn, LARGEST[dtype], released, distances)
    assert not (np.signbit(released) & (released == 0)).any()
    worst = Fraction(0)
    for x, v, one, distance in zip(values.tolist(), drawn.tolist(), released.tolist(), distances.tolist(), strict=True):
        total = Fraction(x) / Fraction(grid) + Fraction(v)
        nearest = round(total - Fraction(distance))
        worst = max(worst, abs(total - nearest - Fraction(distance)))
        if dtype == "float64":
            assert Fraction(one) == nearest * Fraction(grid)
        else:
            assert one == float(np.float32(float(nearest * Fraction(grid))))
    print(f"worst error 2**{np.log2(float(worst) or 2**-99):.2f}")
    assert worst <= Fraction(sums.LIMIT_ROOM) / 2
    assert (np.abs(distances) <= 0.5).all()


@pytest.mark.parametrize("end", [2.0**35, 2.0**36])
@pytest.mark.parametrize("sign", [1, -1])
def test_sums_at_the_ends_of_what_is_close(sign, end):
    """Each row a block of its own: sums within a few units of an end, and just off what float64 has there."""
    steps = np.array([-1.5, -1, -0.5, -0.25, 0, 0.25, 0.5, 1, 1.5])
    drawn = (steps[:, None] + np.array([-1, -0.75, -0.5, 0, 0.5, 0.75, 1]) * 2.0**-17).astype(np.float32).ravel()
    for whole in (end - 1, end, end + 1):
        for v in drawn:
            released, distances = np.empty(1), np.empty(1, np.float32)
            add(read_only(np.array([sign * whole])), 1.0, 1.0, np.array([v]), 0.0, released, distances)
            total = Fraction(sign * whole) + Fraction(float(v))
            error = abs(total - Fraction(float(released[0])) - Fraction(float(distances[0])))
            assert error <= Fraction(sums.LIMIT_ROOM) / 2


@pytest.mark.parametrize("reach", [2.0**20, 2.0**49])
def test_noise_alone(reach, seed):
    """Without a grid the integer nearest to the sum is released less the integer nearest to the value."""
    positions, drawn = block(reach, "float64", seed)
    noise, released = np.empty(positions.size, np.int32), np.empty(positions.size)
    distances, same = np.empty((2, positions.size), np.float32)
    values = read_only(positions)
    add(values, 1.0, None, drawn, 0.0, noise, distances)
    sums._sum_near(values, 1.0, 1.0, drawn, LARGEST["float64"], released, same)
    assert np.array_equal(released, np.rint(positions) + noise)
    assert np.array_equal(distances, same)


@pytest.mark.parametrize("one", [2.0**50, -(2.0**50), 2.0**51, -(2.0**52), 2.0**60, 1e300, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("grid", [1.0, None])
def test_one_value_that_is_far_is_found(one, grid):
    """Soundness rule 5: nothing is said of such a row, and all is said of the others."""
    values = np.linspace(-9, 9, 100)
    values[37] = one
    released = np.empty(100) if grid else np.empty(100, np.int32)
    drawn, distances = np.zeros((2, 100), np.float32)
    add(read_only(values), 1.0, grid, drawn, LARGEST["float64"], released, distances)
    assert np.flatnonzero(np.isnan(distances)).tolist() == [37]
    others = np.arange(100) != 37
    assert np.array_equal(released[others], np.rint(values)[others] if grid else np.zeros(99))


def test_float32_saturates():
    """A grid so large that a sum may pass the largest number: nothing becomes infinite."""
    largest = LARGEST["float32"]
    grid = 2.0 ** (np.frexp(largest)[1] - 14)
    values = read_only(np.array([largest, -largest, 0.0], np.float32))
    released, distances = np.empty((2, 3), np.float32)
    add(values, 1 / grid, grid, np.float32([2**16, -(2**16), 2**16]), largest, released, distances)
    assert released.tolist() == [largest, -largest, largest]


def test_grids_of_float64_are_never_so_large():
    """What `sums.py` supposes of float64: 2**51 times a grid is far from the largest number."""
    assert Powers(2.0**960, np.dtype(np.float64)).rows(0, 1, None).grid * 2.0**51 < 2.0**1020


def test_what_is_open():
    """NaN opens a row, as a distance that is its limit does."""
    distances = np.float32([0.0, 0.25, -0.25, 0.25, np.nan, 0.1, 0.1])
    limits = np.float32([0.1, 0.25, 0.3, 0.2, 0.4, np.nan, -np.inf])
    marks = np.full(7, 9, np.uint8)
    sums.mark_open(distances, limits, marks)
    assert marks.tolist() == [0, 1, 0, 1, 1, 1, 1]
