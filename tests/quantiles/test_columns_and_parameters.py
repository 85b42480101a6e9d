"""What `dpf.quantiles` takes, in which form it answers, and what it refuses in one line."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.columns.grid import public_grid
from dpfast.errors import ColumnError, ParameterError
from dpfast.mechanisms.quantiles.quantiles import place_points

SURE = {"epsilon": 1000}
NO_ROWS = np.empty(0, np.int64)


def test_missing_values_do_not_count():
    """Nulls and NaN are dropped, infinities clipped: the declared rule."""
    values = pl.Series([None, float("nan"), 3.0, 3.0, 3.0, float("inf"), float("-inf"), None])
    assert dpf.quantiles(values, [0.0, 0.5, 1.0], bounds=(0, 8), grid=1, **SURE).tolist() == [0.0, 3.0, 8.0]


def test_rows_of_no_group_are_dropped():
    ids = pl.Series([0, 0, 1, None, -1, 2, 10**12])
    values = pl.Series([1, 1, 6, 9, 9, 9, 9])
    drawn = dpf.quantiles(values, 0.5, bounds=(0, 10), groups=ids, group_count=2, **SURE)
    assert drawn.tolist() == [1, 6]
    assert drawn.dtype == np.int64


def test_an_empty_group_is_uniform():
    """n = 0: all scores are 0. 4,000 draws among 4 points; each is missed with probability 10**-499."""
    drawn = dpf.quantiles([], 0.5, bounds=(1, 4), epsilon=5, groups=NO_ROWS, group_count=4000, grid=1)
    assert set(drawn.tolist()) == {1.0, 2.0, 3.0, 4.0}
    assert drawn.dtype == np.float64
    assert dpf.quantiles([], [0.5], bounds=(0, 4), epsilon=5, groups=NO_ROWS, group_count=0).shape == (0, 1)


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint32", "float64", "float32"])
def test_types_and_shapes(dtype):
    values = np.arange(1000).astype(dtype)
    one = dpf.quantiles(values, 0.5, bounds=(0, 2000), **SURE)
    assert abs(one - 500) < 3
    assert type(one) is (float if dtype.startswith("float") else int)
    several = dpf.quantiles(values, (0.75, 0.25), bounds=(0, 2000), **SURE)
    assert several.shape == (2,)
    assert several == pytest.approx([750, 250], abs=3)
    table = dpf.quantiles(values, [0.5], bounds=(0, 2000), groups=np.zeros(1000, int), group_count=3, **SURE)
    assert table.shape == (3, 1)
    assert table[0, 0] == pytest.approx(500, abs=3)


def test_grids():
    assert public_grid((0.0, 600.0), None, whole=True).points == 601
    assert public_grid((0.0, 600.0), 0.25, whole=False).points == 2401
    assert public_grid((0.0, 1e15), None, whole=True).points == 10**15 + 1
    assert public_grid((-1e18, 1e18), None, whole=True).points <= 2**60
    near = public_grid((1e9, 1e9 + 1e-3), None, whole=False)
    assert near.points > 1000
    assert not near.doublings, "no closer than floats"
    drawn = dpf.quantiles([7, 8, 9] * 99, 0.5, bounds=(0, 100), grid=4, **SURE)
    assert drawn == 8
    assert isinstance(drawn, int)
    assert dpf.quantiles([7] * 99, 0.5, bounds=(0, 100), grid=0.5, **SURE) == 7.0


@pytest.mark.parametrize("exponent", [-3, 0, 1, 5])
def test_values_go_to_the_nearest_point(exponent):
    grid = public_grid((-100.0, 500.0), 2.0**exponent, whole=False)
    integers = np.array([-(2**63), -101, -100, -7, 0, 3, 5, 499, 500, 501, 2**63 - 1])
    out = np.empty(integers.size, np.int64)
    place_points(integers, None, grid, out)
    clipped = np.clip(integers.astype(object), grid.lower * 2.0**exponent, grid.upper * 2.0**exponent)
    for value, point in zip(clipped, out, strict=True):
        nearest = (Fraction(int(point) + grid.lower - 1)) * Fraction(2) ** exponent
        assert abs(nearest - Fraction(value)) <= Fraction(2) ** exponent / 2
    floats = np.array([np.nan, -np.inf, np.inf, 3.25, -1e308, 1e-320])
    place_points(floats, np.zeros(6, bool), grid, out[:6])
    assert out[0] == 0
    assert out[1] == out[4] == 1
    assert out[2] == grid.points


@pytest.mark.parametrize("exponent", [28, 40, 61])
def test_integers_up_to_the_ends_of_int64(exponent):
    """Nothing wraps around or is clipped before the bounds; one half rounds up."""
    grid = public_grid((-(2.0**63), 2.0**62), 2.0**exponent, whole=True)
    ends = [-(2**63), -(2**63) + 1, -(2**62) - 1, -(2**62), 2**62 - 1, 2**62, 2**63 - 1]
    half = 2 ** (exponent - 1)
    values = np.array([*ends, 0, half - 1, half, -half - 1, -half], np.int64)
    points = np.empty(values.size, np.int64)
    place_points(values, None, grid, points)
    expected = [min((value + half) // 2**exponent, grid.upper) - grid.lower + 1 for value in values.tolist()]
    assert points.tolist() == expected
    drawn = dpf.quantiles([-(2**63)] * 9, 0.5, bounds=(-(2.0**63), 2.0**62), grid=2.0**exponent, **SURE)
    assert drawn == -(2**63)


def test_q_is_read_to_seven_decimals():
    for q in (0.1, Decimal("0.1"), Fraction(1, 10), np.float64(0.1), np.float32(0.1)):
        assert dpf.quantiles(np.arange(100), q, bounds=(0, 100), **SURE) == pytest.approx(10, abs=2)


BAD = [
    ({"q": [0.5, 0.5]}, "to seven decimals"),
    ({"bounds": (0, 1e19)}, "bounds must be such that all points are at least"),
    ({"bounds": (-1e300, 1e300)}, "bounds must be such that all points are at least"),
    ({"bounds": (0, 2**65), "grid": 2.0**64}, "bounds must be such that all points are at least"),
    ({"grid": 2.0**-51}, "grid must be coarser"),
    ({"grid": 1024}, "grid must be such that"),
    ({"group_count": 3}, "group_count must be left out"),
    ({"groups": [0, 1, 1]}, "group_count must be a whole number"),
    ({"groups": [0, 1, 1], "group_count": -1}, "group_count must be a whole number"),
]


@pytest.mark.parametrize(("change", "message"), BAD, ids=[str(change) for change, _ in BAD])
def test_bad_parameters_are_refused_in_one_line(change, message):
    parameters = {"values": [1, 2, 3], "q": 0.5, "bounds": (0, 10), "epsilon": 1.0} | change
    with pytest.raises(ParameterError, match=message) as caught:
        dpf.quantiles(parameters.pop("values"), parameters.pop("q"), **parameters)
    assert "\n" not in str(caught.value)


def test_bad_columns_are_refused():
    for groups in ([0.5, 1.0, 2.0], [0, 1]):
        with pytest.raises(ColumnError, match="groups must"):
            dpf.quantiles([1, 2, 3], 0.5, bounds=(0, 9), epsilon=1, groups=groups, group_count=2)
    with pytest.raises(ColumnError):
        dpf.quantiles(["a"], 0.5, bounds=(0, 9), epsilon=1)
