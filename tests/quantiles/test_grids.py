"""The default grid of floats: the nearest point by three routes, and bounds too wide by any factor cost nothing."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.aggregation.contributions import plan_contributions
from dpfast.columns.grid import MOST_POINTS, number_of, public_grid
from dpfast.mechanisms.quantiles.quantiles import place_points
from dpfast.queries import points_measure

BOUNDS = [(0.0, 1e9), (-5.0, 5.0), (-1e300, 1e300), (0.0, 1e-200), (-3.0, 1e12), (1e9, 1e9 + 1), (-1e300, 1e-300)]


def numbers(generator):
    """Return floats of every size, and those next to the places where the step doubles."""
    powers = 2.0 ** np.arange(-1074, 1024)
    anywhere = generator.normal(size=500) * 10.0 ** generator.uniform(-310, 307, 500)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1.7e308]
    return np.concatenate(
        [anywhere, powers, -powers, np.nextafter(powers, 0), np.nextafter(powers[:-1], 1e308), special]
    )


@pytest.mark.parametrize("bounds", BOUNDS)
def test_every_route_finds_the_nearest_point(bounds, seed):
    """The kernel, the native expression and rational arithmetic give the same number, and points rise with numbers."""
    grid = public_grid(bounds, None, whole=False)
    assert 2**20 <= grid.points <= 2 * MOST_POINTS
    values = numbers(np.random.default_rng(seed))
    placed = np.empty(values.size, np.int64)
    place_points(values, None, grid, placed)
    limits = {np.inf: grid.upper, -np.inf: grid.lower}
    for value, point in zip(values.tolist(), placed.tolist(), strict=True):
        if np.isnan(value):
            assert point == 0
            continue
        near = limits[value] if np.isinf(value) else number_of(Fraction(value), grid.finest, grid.doublings)
        assert point == min(max(near, grid.lower), grid.upper) - grid.lower + 1
    measure = points_measure(dpf.quantile("x", 0.5, bounds=bounds))
    (contribution,) = plan_contributions([measure], pl.Schema({"x": pl.Float64()}))
    assert pl.DataFrame({"x": values}).select(contribution.native).to_series().to_list() == placed.tolist()
    chosen = np.unique(np.append(placed[placed > 0], [1, grid.points])) + grid.lower - 1
    points = grid.values(chosen)
    assert (np.diff(points) > 0).all()
    assert points[0] == pytest.approx(bounds[0], rel=1e-9)
    assert points[-1] == pytest.approx(bounds[1], rel=1e-9)


@pytest.mark.parametrize("bounds", BOUNDS)
def test_points_near_zero_are_few(bounds):
    """They may not draw quantiles towards zero: at most 2**-25 of all."""
    grid = public_grid(bounds, None, whole=False)
    if grid.doublings:
        near = 2 * (grid.doublings + 2) * 2**16
        assert near < grid.points * 2.0**-25


@pytest.mark.statistical
@pytest.mark.parametrize("bounds", [(0, 1e4), (0, 1e9), (0, 1e12), (0, 1e100), (-1e300, 1e300)])
def test_bounds_may_be_too_wide_by_any_factor(bounds, seed):
    """Medians of lognormal(0, 2): the mean error in ranks is that of Smith's mechanism, about 1 of 20,001.

    Errors have tails like exp(-rank): a mean of 40 above 3 has a probability below 1e-12.
    """
    values = np.exp(np.random.default_rng(seed).normal(0, 2, 20_001))
    groups = np.repeat(np.arange(40), values.size)
    parameters = {"bounds": bounds, "epsilon": 1, "groups": groups, "group_count": 40}
    drawn = dpf.quantiles(np.tile(values, 40), 0.5, **parameters)
    errors = np.abs(np.searchsorted(np.sort(values), drawn) - 10_000)
    print("mean error in ranks", errors.mean())
    assert errors.mean() < 3


def test_plans_say_their_grid():
    frame = pl.DataFrame({"x": [1.0, 2.0]})
    text = dpf.plan(frame, x=dpf.quantile("x", 0.5, bounds=(0, 1e9)), privacy_unit="row", epsilon=1).explain()
    assert "1073741824004194305 points, 9.31323e-10 apart, near 0 closer: 2**16 for each doubling from" in text
    text = dpf.plan(frame, x=dpf.quantile("x", 0.5, bounds=(0, 8), grid=0.5), privacy_unit="row", epsilon=1).explain()
    assert "17 points, 0.5 apart:" in text


def test_releases_on_the_default_grid(seed):
    """Native and block by block, released values are the columns' own: at a huge epsilon the middle value itself."""
    values = np.random.default_rng(seed).normal(0, 1, 1001)
    frame = pl.DataFrame({"x": values, "unit": np.arange(1001)})
    middle = float(np.median(values))
    for unit in ({}, {"privacy_unit": "unit", "max_groups": 1, "max_rows_per_group": 1}):
        plan = dpf.plan(
            frame, x=dpf.quantile("x", 0.5, bounds=(-1e6, 1e6)), epsilon=9e5, **{"privacy_unit": "row", **unit}
        )
        released = plan.run(dpf.Ledger(epsilon=1e6)).frame
        assert released["x"].item() == pytest.approx(middle, abs=1e-9)
