"""Releases of sums and means of privacy units: what they show, with whatever they are combined."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
import dpfast.integrations.polars
from dpfast.errors import ColumnError, ParameterError

KEYS = pl.DataFrame({"k": ["a", "b", "none such"]})
SUM, MEAN = dpf.sum("x", unit_bounds=(-3, 8)), dpf.mean("x", bounds=(-4, 6), per="unit")
UNIT = {"privacy_unit": "u", "max_groups": 2}


def rows(units=200, each=7):
    generator = np.random.default_rng(20_261_123)
    number = units * each
    return pl.DataFrame(
        {
            "u": generator.integers(0, units, number),
            "k": generator.choice(["a", "b"], number),
            "x": generator.normal(1, 4, number),
        }
    )


def exact(frame):
    x = pl.col("x")
    pairs = frame.group_by("u", "k").agg(s=x.sum().clip(-3, 8), m=x.clip(-4, 6).mean())
    return pairs.group_by("k").agg(pl.col("s").sum(), pl.col("m").mean()).sort("k")


def released(frame, **asked):
    ledger = dpf.Ledger(epsilon=10**6, delta=0.1, accountant="zcdp" if "rho" in asked else "basic")
    return dpf.release(frame, by="k", ledger=ledger, **{**UNIT, **asked})


@pytest.mark.parametrize(
    "asked",
    [
        {"keys": KEYS, "epsilon": 1e5},
        {"keys": KEYS, "epsilon": 1e5, "neighbors": "replace"},
        {"epsilon": 1e5, "delta": 1e-3},
        {"epsilon": 1e5, "delta": 1e-3, "key_selection": "weighted"},
        {"keys": KEYS, "rho": 1e5, "mechanism": "gaussian"},
        {"keys": KEYS, "epsilon": 1e5, "n": dpf.count(), "t": dpf.sum("x", bounds=(0, 1)), "max_rows_per_group": 1},
        {"keys": KEYS, "epsilon": 1e5, "d": dpf.units(), "report_cut": 0.3},
        {"keys": KEYS, "error": {"s": 0.1, "m": ("mean", 0.01, 100)}},
    ],
)
def test_with_next_to_no_noise_figures_are_exact(asked):
    """Noise beyond what is allowed here has a probability below 1e-12."""
    frame = rows()
    shown = released(frame, s=SUM, m=MEAN, **asked).frame.filter(pl.col("k") != "none such").sort("k")
    wanted = exact(frame)
    assert np.allclose(shown["s"], wanted["s"], atol=1)
    assert np.allclose(shown["m"], wanted["m"], atol=0.05)
    assert shown["s_scale"].max() < 0.1


def test_the_noise_knows_of_no_rows():
    """One scale for any number of rows, and less than that of bounded rows."""
    few = dpf.plan(rows(), by="k", keys=KEYS, s=SUM, max_rows_per_group=1, epsilon=1, **UNIT).to_frame()
    many = dpf.plan(rows(), by="k", keys=KEYS, s=SUM, max_rows_per_group=50, epsilon=1, **UNIT).to_frame()
    left_out = dpf.plan(rows(), by="k", keys=KEYS, s=SUM, epsilon=1, **UNIT)
    scale = left_out.to_frame()["scale"].item()
    assert few["scale"].item() == many["scale"].item() == scale == pytest.approx(2 * 8)
    assert "at most 2 groups and all rows in each are kept" in left_out.explain()
    replaced = dpf.plan(rows(), by="k", keys=KEYS, s=SUM, epsilon=1, neighbors="replace", **UNIT).to_frame()
    assert replaced["scale"].item() == pytest.approx(4 * 8)


@pytest.mark.parametrize(("rows_kept", "of_sum", "of_mean"), [
    (None, ", whatever rows it has there;", ", whatever rows it has there;"), (1, ";", ";"),
    (4, "; 4 rows of at most 2 each would be as much;", "; 4 rows of it would be 4 times as much;"),
])  # fmt: skip
@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
def test_plans_say_what_bounds_on_rows_would_cost(rows_kept, of_sum, of_mean, neighbors):
    means = dpf.mean("x", bounds=(0, 8), per="unit")
    plan = dpf.plan(
        rows(), "k", keys=KEYS, s=SUM, m=means, max_rows_per_group=rows_kept, epsilon=1, neighbors=neighbors, **UNIT
    )
    twice = "2 (replaced) x " if neighbors == "replace" else ""
    text = plan.explain()
    assert f"= {twice}2 groups x 8 a unit{of_sum} laplace" in text
    assert f"= {twice}2 groups x 4 a unit{of_mean} laplace" in text
    assert f"= {twice}2 groups x 1 a unit{of_mean} laplace" in text


def test_populations_and_corrected_figures():
    """Which half of the pairs is kept is drawn: of 20,000 units, what is corrected has a deviation of 1%.

    It is off by 15% with a probability below 1e-30. Nothing else here is decided by chance.
    """
    frame = rows()
    above = dpf.sum("x", unit_bounds=(0, 8))
    shown = released(frame, keys=KEYS, s=above, m=MEAN, epsilon=1e4, interval="population").frame
    assert (shown["s_population_lower"] < shown["s_lower"])[:2].all()
    assert (shown["m_population_upper"] >= shown["m_upper"]).all()
    # A tenth of what 7 rows of a unit would need.
    rows_bounded = dpf.sum("x", bounds=(0, 8))
    wide = released(
        frame, keys=KEYS, s=rows_bounded, epsilon=1e4, interval="population", max_rows_per_group=70
    ).frame  # fmt: skip
    width = [float((one["s_population_upper"] - one["s_population_lower"])[0]) for one in (shown, wide)]
    assert width[0] < width[1] / 2
    with pytest.raises(ParameterError, match="bounds on both sides of 0"):
        released(frame, keys=KEYS, s=SUM, epsilon=1, interval="population")
    frame = rows(20_000)
    cut = released(frame, keys=KEYS, s=above, epsilon=1e4, report_cut=0.4, max_groups=1)
    assert cut.cut is not None
    # Half of the pairs are kept.
    whole = frame.group_by("u", "k").agg(pl.col("x").sum().clip(0, 8)).group_by("k").agg(pl.col("x").sum()).sort("k")
    assert cut.frame["s_corrected"][:2].to_numpy() == pytest.approx(whole["x"].to_numpy(), rel=0.15)


def test_a_preview_sets_means_of_units_beside_those_of_units():
    """A unit with very many rows is one of many: the mean of rows is far from that of units."""
    frame = pl.DataFrame({"u": [0] * 900 + list(range(1, 101)), "k": ["a"] * 1000, "x": [5.0] * 900 + [0.0] * 100})
    plan = dpf.plan(frame, by="k", keys=KEYS[:1], s=SUM, m=MEAN, epsilon=1e4, **UNIT)
    shown = dpf.preview(plan, frame.clone(), repeats=2).frame
    figures = dict(zip(shown["query"] if "query" in shown.columns else shown["figure"], shown["bias"], strict=True))
    assert abs(figures["m"]) < 0.02
    assert figures["s"] == pytest.approx(8 - 4500, abs=1)
    assert dpf.preview(plan, rows=500, units=100).frame.height == 2


def test_what_is_refused_is_refused_before_any_charge():
    frame = rows()
    for asked, words in (
        ({"n": dpf.count()}, "max_rows_per_group must be a whole number"),
        ({"max_groups": None}, "max_groups must be a whole number"),
    ):
        with pytest.raises(ParameterError, match=words):
            dpf.plan(frame, by="k", keys=KEYS, s=SUM, **{**UNIT, "epsilon": 1, **asked})
    with pytest.raises(ParameterError, match="left out where unit_bounds is given"):
        dpf.sum("x", bounds=(0, 1), unit_bounds=(0, 1))
    with pytest.raises(ColumnError, match="cannot sum the column 'k'"):
        dpf.plan(frame, s=dpf.sum("k", unit_bounds=(0, 1)), epsilon=1, **UNIT)
    dates = pl.DataFrame({"u": [1], "d": [pl.date_range(pl.date(2020, 1, 1), pl.date(2020, 1, 1), eager=True)[0]]})
    with pytest.raises(ColumnError, match="only durations add up"):
        dpf.plan(dates, s=dpf.sum("d", unit_bounds=(0, 1)), epsilon=1, **UNIT)


@pytest.mark.parametrize(
    "limits", [{"max_groups": "auto"}, {"max_groups": "auto", "max_rows_per_group": "auto"}], ids=str
)
@pytest.mark.parametrize("keys", [KEYS, None], ids=["public", "selected"])
def test_limits_are_chosen_for_units_too(limits, keys):
    """Nothing that units add depends on how many rows they have, so that no limit on these is asked for."""
    asked = {"privacy_unit": "u", "s": SUM, "m": MEAN, "epsilon": 1.0, "delta": 1e-6, **limits}
    plan = dpf.plan(rows(), by="k", keys=keys, **asked)
    release = plan.run(dpf.Ledger(epsilon=1.0, delta=1e-6))
    assert set(release.chosen) == set(limits)
    assert release.frame.schema == plan._blueprint.schema()


def test_the_namespace_asks_the_same():
    column = pl.col("x").dpf
    assert column.sum(unit_bounds=(-3, 8)) == SUM
    assert column.mean(bounds=(-4, 6), per="unit") == MEAN
    assert repr(SUM) == repr(eval(repr(SUM), {"UnitQuery": type(SUM)}))
    assert dpfast.integrations.polars is not None


def test_missing_infinite_and_cancelling_values():
    """Nothing is added where there is no value, not even a bound above 0; infinities cancel, as large values do."""
    frame = pl.DataFrame(
        {
            "u": [1, 1, 2, 2, 3, 3, 4],
            "x": [None, math.nan, math.inf, -math.inf, 1e300, 2.5, 100.0],
        }
    )
    ledger = dpf.Ledger(epsilon=10**6)
    asked = {"above": dpf.sum("x", unit_bounds=(2, 8)), "m": dpf.mean("x", bounds=(0, 10), per="unit")}
    shown = dpf.release(frame, **asked, **UNIT, epsilon=1e6, ledger=ledger).frame
    # Units 2, 3 and 4 add 2, 8 and 8; their means are 5, 6.25 and 10.
    assert shown["above"].item() == pytest.approx(18, abs=0.01)
    assert shown["m"].item() == pytest.approx((5 + 6.25 + 10) / 3, abs=0.01)
