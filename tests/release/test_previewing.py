"""Previews: of public or made-up rows, never charged, marked as what they are, and right about errors."""

from __future__ import annotations

import math

import polars as pl
import pytest

import dpfast as dpf
from dpfast.errors import ColumnError, ParameterError
from dpfast.releases.made_up import zipf_sizes
from dpfast.releases.preview import MARK
from dpfast.releases.release import Release

from .test_every_route import NEIGHBORS, ROUTES, THIRDS, UNITS, by_of, frame_of, keys_of

FRAME = pl.DataFrame({"k": ["a", "b"] * 50, "u": range(100), "v": [1.0, 2.0] * 50})
KEYS = pl.DataFrame({"k": ["a", "b", "c"]})
UNIT = {"privacy_unit": "u", "max_groups": 1, "max_rows_per_group": 2}
ASKED = {"n": dpf.count(), "m": dpf.mean("v", bounds=(0, 10))}


def a_plan(keys=KEYS, epsilon=1.0, delta=0.0, **given):
    return dpf.plan(FRAME, "k", keys=keys, epsilon=epsilon, delta=delta, **{**UNIT, **ASKED, **given})


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(("given", "unit"), [(True, "rows"), (False, "units")])
def test_every_query_and_key_is_previewed_on_made_up_rows(route, given, unit):
    """A third of the queries with each kind of keys: made-up rows of keys know nothing of what is asked of them."""
    if not given and not ROUTES[route]:
        pytest.skip("one group needs no keys")
    keys = keys_of(route) if given else None
    whose = UNITS[unit] or {"privacy_unit": "row"}
    queries = THIRDS[f"third {(list(ROUTES).index(route) + given) % 3}"]
    frame = frame_of(route, "ordinary")
    plan = dpf.plan(frame, by_of(route), keys=keys, epsilon=50.0, delta=1e-6, **whose, **queries)
    shown = dpf.preview(plan, rows=300, units=100, repeats=2)
    asked = set(queries)
    figures = shown.summary["query"].to_list()
    # Several quantiles have a figure each.
    assert {name for name in asked if not any(one == name or one.startswith(name + "_p") for one in figures)} == set()
    assert shown.frame["rows"].sum() > 0
    assert 0 <= shown.keys_lost <= 1


@pytest.mark.parametrize("neighbors", NEIGHBORS)
@pytest.mark.parametrize("rule", ["optimal", "count", "threshold", "weighted", "iterated", "policy"])
def test_every_rule_of_keys_is_previewed(neighbors, rule):
    """One unit alone is shown with probability delta at most: in 12 cases of 3 draws 3.6e-11.

    A key needs some hundred units to be shown with probability 1/2, as the plan says, and noise of scale 20 at most:
    that one of 1,000 more is missing has a probability below e**-50.
    """
    plan = a_plan(None, delta=1e-12, key_selection=rule, neighbors=neighbors)
    assert plan._blueprint.key_share.needed.most < 1000
    shown = dpf.preview(plan, sizes=[4000, 1], units=2000, repeats=3)
    assert shown.frame.filter(pl.col("rows") == 1)["missing"].to_list() == [1.0, 1.0]
    assert shown.frame.filter(pl.col("rows") == 4000)["missing"].to_list() == [0.0, 0.0]
    assert shown.keys_lost == 0.5


@pytest.mark.parametrize(
    "given", [{"epsilon": None, "rho": 0.5}, {"epsilon": None, "error": {"n": 20, "m": ("mean", 1.0, 50)}}]
)
def test_every_kind_of_budget_is_previewed(given):
    shown = dpf.preview(a_plan(**given), repeats=2)
    assert shown.summary["query"].to_list() == ["n", "m"]


def test_units_that_are_clipped_as_a_whole_are_previewed():
    plan = a_plan(delta=1e-6, max_groups="auto", max_rows_per_group="auto")
    shown = dpf.preview(plan, repeats=2)
    assert shown.rows_cut is None
    assert "all rows count" in repr(shown)


def test_a_preview_is_no_release_and_says_so_everywhere(tmp_path):
    shown = dpf.preview(a_plan(), repeats=2)
    assert not isinstance(shown, Release)
    assert not hasattr(shown, "spent")
    assert not hasattr(shown, "entry")
    for text in (repr(shown), shown.explain(), shown._repr_html_()):
        assert MARK in text
    figure = shown.plot(tmp_path / "chart.svg", query="m", top=2)
    drawn = (tmp_path / "chart.svg").read_text()
    title = figure.to_dict()["title"]
    assert "PREVIEW" in title["text"]
    assert "no release, nothing was charged" in " ".join(title["subtitle"])
    assert "nothing was charged" in drawn


def test_a_plan_is_previewed_before_and_after_it_is_charged_and_costs_nothing_more():
    plan, ledger = a_plan(), dpf.Ledger(epsilon=1.0)
    dpf.preview(plan, repeats=2)
    assert ledger.spent.epsilon == 0
    before = plan.run(ledger).frame
    dpf.preview(plan, repeats=2)
    assert ledger.spent.epsilon == 1.0
    assert plan.run(ledger).frame.equals(before)


def test_no_row_of_the_plans_data_is_read():
    def forbidden(_):
        raise AssertionError("a row was read")

    lazy = FRAME.lazy().map_batches(forbidden, schema=FRAME.schema)
    shown = dpf.preview(dpf.plan(lazy, "k", keys=KEYS, epsilon=1.0, **UNIT, **ASKED), repeats=2)
    assert shown.frame.height == 6


def test_what_is_exact_is_what_polars_finds():
    """Epsilon 1e6 for what is exact: the noise of a count is nonzero with probability 2 e**(-1e5) or so."""
    sample = pl.DataFrame(
        {"k": ["a"] * 60 + ["b"] * 40, "u": [i // 5 for i in range(100)], "v": [i / 4 for i in range(100)]}
    )
    asked = {**ASKED, "s": dpf.sum("v", bounds=(0, 10)), "d": dpf.units(), "sd": dpf.std("v", bounds=(0, 10))}
    plan = dpf.plan(FRAME, "k", keys=KEYS.head(2), epsilon=1.0, **UNIT, **asked)
    shown = dpf.preview(plan, sample, repeats=2).frame
    for name, value in {
        "n": pl.len(),
        "m": pl.col("v").mean(),
        "s": pl.col("v").sum(),
        "d": pl.col("u").n_unique(),
        "sd": pl.col("v").std(),
    }.items():
        found = shown.filter(query=name)["exact"].to_list()
        wanted = sample.group_by("k", maintain_order=True).agg(value.cast(pl.Float64).alias("x"))["x"].to_list()
        assert found == pytest.approx(wanted, rel=1e-3), name
    assert shown.filter(query="n")["rows_cut"].to_list() == [pytest.approx(1 - 24 / 60), pytest.approx(1 - 16 / 40)]


def test_deviation_is_noise_and_bias_what_bounds_lose():
    """400 draws of 2 counts of discrete Laplace noise of scale b.

    One of the 800 is beyond 30 b with probability 800 e**-30 = 7.5e-11 at most, and 400 draws of one group are all the
    same with probability below 2**-399, since none of its values has a probability above a half.
    """
    sample = pl.DataFrame({"k": ["a", "b"] * 150, "u": [i % 30 for i in range(300)], "v": [1.0] * 300})
    plan = dpf.plan(FRAME, "k", keys=KEYS.head(2), epsilon=1.0, **UNIT, n=dpf.count())
    shown = dpf.preview(plan, sample, repeats=400)
    scale = plan.to_frame()["scale"].item()
    assert scale == 2.0
    assert all(0 < deviation <= 30 * scale for deviation in shown.frame["deviation"])
    # 30 units keep 2 of 10 rows each, all of them in one group: 30 rows of 150 are left.
    assert shown.rows_cut == pytest.approx(0.8)
    assert all(-120 - 30 * scale <= bias <= -120 + 30 * scale for bias in shown.frame["bias"])
    parts = [shown.summary[name].item() for name in ("bias", "deviation")]
    assert shown.summary["rmse"].item() == pytest.approx(math.hypot(*parts), rel=1e-9)


def test_without_noise_a_preview_is_exact():
    """At an epsilon of 1,000 the noise, of scale 0.002, is nonzero with probability 2 e**-500 a draw."""
    sample = pl.DataFrame({"k": ["a", "b"] * 15, "u": range(30), "v": [1.0] * 30})
    plan = dpf.plan(FRAME, "k", keys=KEYS.head(2), epsilon=1000.0, **UNIT, n=dpf.count())
    shown = dpf.preview(plan, sample, repeats=5)
    assert (
        shown.frame.select("exact", "mean", "bias", "deviation", "rmse", "missing").rows()
        == [(15.0, 15.0, 0.0, 0.0, 0.0, 0.0)] * 2
    )


def test_rows_of_made_up_groups_are_zipf_like():
    assert zipf_sizes(100, 4) == [48, 24, 16, 12]
    assert sum(zipf_sizes(12_345, 678)) == 12_345
    shown = dpf.preview(a_plan(), sizes=[7, 5, 3], repeats=1)
    assert shown.frame.filter(query="n")["rows"].to_list() == [7, 5, 3]


def test_lazy_and_eager_samples_and_enums_are_the_same():
    data = FRAME.with_columns(pl.col("k").cast(pl.Enum(["a", "b", "c"])))
    plan = dpf.plan(data, "k", epsilon=20.0, delta=1e-3, **UNIT, **ASKED)
    for sample in (data.clone(), data.lazy(), None):
        assert dpf.preview(plan, sample, repeats=2).frame["k"].dtype == pl.String


def test_a_group_that_nobody_has_is_previewed_as_well():
    shown = dpf.preview(a_plan(), FRAME.clear(), repeats=2)
    assert shown.frame["rows"].to_list() == [0] * 6
    with pytest.raises(ParameterError, match="sample must be public rows of at least one group"):
        dpf.preview(a_plan(None, delta=1e-6), FRAME.clear(), repeats=2)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"sample": FRAME}, "sample must be public rows"),
        ({"sample": FRAME.clone(), "rows": 5}, "rows must be left out beside a sample"),
        ({"sample": FRAME.clone(), "sizes": [5]}, "sizes must be left out beside a sample"),
        ({"sample": FRAME.with_columns(v=pl.lit(1)).rename({"v": "w"}).clone()}, "column"),
        ({"sizes": [5, 5]}, "sizes must be 3"),
        ({"groups": 2}, "groups must be 3"),
        ({"sizes": [5, 5, 5], "rows": 5}, "rows must be left out beside sizes"),
        ({"repeats": 0}, "repeats must be"),
        ({"plan": dpf.Ledger(epsilon=1)}, "plan must be what dpf.plan returns"),
    ],
)
def test_what_makes_no_preview_is_refused(given, said):
    with pytest.raises((ParameterError, ColumnError), match=said) as caught:
        dpf.preview(**{"plan": a_plan(), **given})
    assert "\n" not in str(caught.value)


def test_a_workload_is_not_previewed():
    plan = dpf.plan(FRAME, "k", keys=KEYS, workload=dpf.workloads.identity(3), privacy_unit="row", epsilon=1.0)
    with pytest.raises(ParameterError, match="plan must be a plan by group"):
        dpf.preview(plan)


def test_modes_alone_have_no_chart():
    plan = dpf.plan(FRAME, "k", keys=KEYS, epsilon=1.0, privacy_unit="row", o=dpf.mode("k", candidates=["a", "b"]))
    shown = dpf.preview(plan, repeats=2)
    assert shown.summary["right"].null_count() == 0
    with pytest.raises(ParameterError, match="query must be a figure that is a number"):
        shown.plot()
