"""Joint quantiles in plans: when they are drawn together, what is charged and explained, and every route to them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.accounting.events import DiscreteLaplace, ExponentialMechanism
from dpfast.exact.balls import as_written

from .test_plans import KEYS, ROUTES, exact_ranks, flights, run

DECILES = [k / 10 for k in range(9, 0, -1)]
QUERIES = {
    "delay": dpf.quantile("dep_delay", DECILES, bounds=(-30, 300)),
    "air": dpf.quantile("air_time", [0.2, 0.4, 0.6, 0.8], bounds=(0, 8)),
}


def deciles(**arguments):
    return dpf.plan(flights(), "carrier", keys=KEYS, delay=QUERIES["delay"], **{"privacy_unit": "row", **arguments})


@pytest.mark.parametrize("route", ROUTES)
def test_every_route_draws_near_the_exact_quantiles(route):
    """At a large epsilon drawn points are near the quantiles in every group, nulls left out.

    Each query has epsilon 30: a noisy number of rows of scale .267, and ranks that stray by r in all with a weight of
    exp(-13 r). A ninth decile is 6.3 ranks off if that number is 7 off, which a group's is with probability 8e-12; with
    all other ways, in 8 groups, below 1e-9.
    """
    casts, arguments, by = ROUTES[route]
    data = flights().cast(casts)
    unit = arguments.get("max_rows_per_group", 1) * arguments.get("max_groups", 1)
    # Keys that are selected have a third of it.
    epsilon = (90.0 if "delta" in arguments else 60.0) * unit
    plan = dpf.plan(data, by, **{"privacy_unit": "row", **QUERIES, **arguments}, epsilon=epsilon)
    frame = plan.to_frame()
    assert frame["kernel"].to_list() == ["joint quantiles"] * 2
    released = plan.run(dpf.Ledger(epsilon=1e6, delta=0.5)).frame
    assert released["delay_p90"].dtype == pl.Int64
    assert released["air_p20"].dtype == pl.Float64
    if by and "day" in released.columns:
        data = data.with_columns(pl.when(pl.col("day") < 3).then(0).otherwise(3).alias("day"))
    seen = 0
    for row in released.iter_rows(named=True):
        own = data.filter([pl.col(name) == row[name] for name in ("carrier", "day", "far") if name in row] or True)
        if own.height < 200:
            continue
        seen += 1
        for name, q in (("delay_p10", 0.1), ("delay_p50", 0.5), ("delay_p90", 0.9)):
            assert exact_ranks(own["dep_delay"].drop_nulls().to_numpy(), row[name], q) <= 6
        hours = own["air_time"].to_numpy().astype(np.float64).clip(0, 8)
        assert exact_ranks(hours, row["air_p40"], 0.4) <= 6
    assert seen


def test_empty_data_are_charged_and_released():
    """Soundness rule 12: an empty frame costs the same; its quantiles are between the bounds."""
    ledger = dpf.Ledger(epsilon=2)
    released = dpf.release(
        flights().clear(), "carrier", keys=KEYS, **{"privacy_unit": "row", **QUERIES}, epsilon=1, ledger=ledger
    ).frame
    assert released.height == 5
    assert released["delay_p50"].is_between(-30, 300).all()
    assert ledger.spent.epsilon == pytest.approx(1)


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize(("unit", "groups"), [({}, 1), ({"privacy_unit": "tailnum", "max_groups": 3}, 3)], ids=str)
def test_charges(unit, groups, relation):
    """One number of rows and one draw for every group that a unit pays for, together no more than the budget."""
    rows = {"max_rows_per_group": 4} if unit else {}
    plan = deciles(epsilon=1, neighbors=relation, **unit, **rows)
    counted, drawn = plan._blueprint.charges
    assert counted.count == drawn.count == groups
    assert isinstance(counted.event, DiscreteLaplace)
    assert isinstance(drawn.event, ExponentialMechanism)
    assert counted.event.sensitivity == (4 if unit else 1) * (1 if relation == "add_remove" else 2)
    cost = Fraction(counted.event.sensitivity) / Fraction(counted.event.scale) + as_written(drawn.event.epsilon)
    assert 1 - Fraction(1, 10**9) < cost * groups <= 1
    ledger = dpf.Ledger(epsilon=1, neighbors=relation)
    plan.run(ledger)
    assert ledger.spent.epsilon == pytest.approx(1)
    assert ledger.spent.epsilon <= 1


def test_rho_and_extreme_budgets_draw_by_halves():
    """zCDP adds up squares, which levels of a tree serve better; a tiny epsilon would need windows of all data."""
    assert deciles(rho=0.1).to_frame()["kernel"].to_list() == ["quantiles"]
    assert deciles(epsilon=0.001).to_frame()["kernel"].to_list() == ["quantiles"]
    assert deciles(epsilon=1).to_frame()["kernel"].to_list() == ["joint quantiles"]


def test_a_ledger_that_adds_up_rho_takes_both_events():
    ledger = dpf.Ledger(epsilon=8, delta=1e-6, accountant="zcdp")
    deciles(epsilon=1).run(ledger)
    # (7 / 8)**2 / 8 of the selection, and below (1 / 8)**2 / 2 of the count.
    assert 0.095 < ledger.spent.rho < 0.105


def test_what_a_plan_says():
    plan = deciles(epsilon=1, privacy_unit="tailnum", max_groups=2, max_rows_per_group=3)
    text = plan.explain()
    assert "score sensitivity 3 ranks = 3 rows x 1; 9 quantiles together, with a noisy number of rows of scale" in text
    assert "a unit pays for 2 draws" in text
    assert "joint quantiles" in text
    frame = plan.to_frame()
    assert "DiscreteLaplace" in frame["event"][0]
    assert "ExponentialMechanism" in frame["event"][0]
    assert frame["epsilon"][0] == pytest.approx(1)
    assert plan.error(0.05)["one"].to_list() == frame["error95"].to_list()
    released = plan.run(dpf.Ledger(epsilon=1)).frame
    assert released["delay_ranks"].to_list() == frame["error95"].to_list() * 5


def test_released_quantiles_stray_as_rarely_as_stated():
    """The bound is a worst case: none of 200 groups of 400 values comes near it. False-failure rate below 1e-12."""
    size, groups = 400, 200
    values = np.arange(size) * 7 % 1000
    data = pl.DataFrame({"g": np.repeat(np.arange(groups), size), "x": np.tile(values, groups)})
    keys = pl.DataFrame({"g": np.arange(groups)})
    query = dpf.quantile("x", [0.2, 0.4, 0.6, 0.8], bounds=(0, 1000))
    released = run(data, "g", x=query, keys=keys, epsilon=2)
    for row in released.iter_rows(named=True):
        assert max(exact_ranks(values, row[f"x_p{round(100 * q)}"], q) for q in (0.2, 0.4, 0.6, 0.8)) <= row["x_ranks"]
