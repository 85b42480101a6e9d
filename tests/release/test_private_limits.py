"""Limits on what a unit keeps that are chosen privately: each alone, or both, for all queries and kinds of keys."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.aggregation import memory
from dpfast.aggregation.unit_survey import GROUP_POINTS, ROW_POINTS, WHOLE
from dpfast.errors import DpfastError, ParameterError
from dpfast.mechanisms.clipping import limits as limits_of_units
from dpfast.mechanisms.clipping.limits import Aim, Holdings, Outlook, choose_limits, told_counts, with_tail
from dpfast.mechanisms.noise.integer_noise import gaussian_of_scale, laplace_of_scale
from dpfast.queries import Query
from dpfast.releases.limits_choice import LimitsChoice
from dpfast.releases.staged_blueprint import StagedBlueprint

KEYS = pl.DataFrame({"k": ["a", "b", "c", "e"]})
BOTH = {"max_groups": "auto", "max_rows_per_group": "auto"}
GROUPS = {"max_groups": "auto", "max_rows_per_group": 3}
ROWS = {"max_groups": 2, "max_rows_per_group": "auto"}
QUERIES = {
    "n": dpf.count(),
    "u_n": dpf.units(),
    "s": dpf.sum("x", bounds=(0, 9)),
    "m": dpf.mean("x", bounds=(0, 9)),
    "v": dpf.variance("x", bounds=(0, 9)),
    "h": dpf.histogram("x", [0, 3, 6]),
    "c": dpf.cdf("x", [0, 3, 6]),
    "p": dpf.quantile("x", 0.5, bounds=(0, 9)),
    "d": dpf.count_distinct("x"),
    "o": dpf.mode("x", candidates=[0, 1, 2]),
}


def rows_of(units, seed=0, most=6):
    """Return rows of units of very different numbers, of public and other keys, and null units."""
    generator = np.random.default_rng(seed)
    found = []
    for unit in units:
        for _ in range(int(generator.integers(0, most)) if unit % 7 else int(generator.integers(1, 60))):
            key = "abcdz"[generator.integers(0, 5)]
            found.append({"u": unit if generator.random() < 0.95 else None, "k": key, "x": generator.integers(0, 9)})
    return pl.DataFrame(found, schema={"u": pl.Int64, "k": pl.String, "x": pl.Int64})


def even_rows(units=3000, groups="ab", rows=3):
    """Return units that all have as many rows in each of the same groups."""
    return pl.DataFrame({"u": np.repeat(np.arange(units), rows * len(groups)), "k": list(groups) * (rows * units)})


def a_plan(data, **changed):
    queries = {name: query for name, query in changed.items() if isinstance(query, Query)}
    budget = {} if {"epsilon", "rho"} & set(changed) else {"epsilon": 1.0}
    delta = {} if "rho" in changed and changed.get("keys") is not None else {"delta": 1e-6}
    asked = {"by": "k", "privacy_unit": "u", **delta, **BOTH, **budget, **changed}
    return dpf.plan(data, **(asked if queries else {**asked, "n": dpf.count()}))


@pytest.fixture
def never_mistaken(monkeypatch):
    """Take noise for units with a probability of 1e-15 at each place, and not of 0.005 at the first.

    Where it is taken for them, whatever the budget, limits are larger: 1 in 100 of those below were. There are 600 sums
    of places in the two histograms of a release: one of them is taken for units with a probability below 1e-12.
    """
    monkeypatch.setattr(limits_of_units, "_MISTAKEN", 1e-15)
    monkeypatch.setattr(limits_of_units, "_LEAST", 1e-15)


def run(plan):
    ledger = dpf.Ledger(epsilon=1e6, delta=1e-2, accountant="basic" if plan.rho is None else "zcdp")
    return plan.run(ledger), ledger


@pytest.mark.parametrize("limits", [BOTH, GROUPS, ROWS], ids=["both", "groups", "rows"])
@pytest.mark.parametrize("keys", [KEYS, None], ids=["public", "selected"])
@pytest.mark.parametrize("budget", [{"epsilon": 2.0}, {"rho": 0.5}], ids=["epsilon", "rho"])
@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
def test_every_query_has_limits_that_are_chosen(limits, keys, budget, neighbors):
    plan = a_plan(rows_of(range(300)), keys=keys, neighbors=neighbors, **limits, **budget, **QUERIES)
    assert isinstance(plan._blueprint, StagedBlueprint)
    release, _ = run(plan)
    chosen = release.chosen
    assert set(chosen) == {name for name, limit in limits.items() if limit == "auto"}
    assert all(type(limit) is int and limit >= 1 for limit in chosen.values())
    assert chosen.get("max_groups", 1) <= (4 if keys is not None else 256)
    assert release.frame.schema == plan._blueprint.schema()
    assert release.spent == plan._blueprint.budget
    for name, limit in chosen.items():
        assert f"{name} {limit:,}" in release.explain()


@pytest.mark.parametrize("keys", [KEYS, None], ids=["public", "selected"])
@pytest.mark.parametrize("budget", [{"epsilon": 0.7}, {"rho": 0.03}], ids=["epsilon", "rho"])
def test_the_charge_is_known_beforehand_and_is_the_budget(keys, budget):
    plan = a_plan(rows_of(range(30)), keys=keys, u_n=dpf.units(), **budget)
    assert plan.epsilon == 0.7 if "epsilon" in budget else plan.rho == pytest.approx(0.03, rel=1e-12)
    assert plan.delta <= 1e-6
    spent = []
    for data in (rows_of(range(30)), rows_of(range(400), 1), rows_of([])):
        release, ledger = run(a_plan(data, keys=keys, u_n=dpf.units(), **budget))
        spent.append((release.spent, ledger.remaining))
    assert spent[0] == spent[1] == spent[2]


def test_what_is_said_beforehand():
    said = a_plan(rows_of(range(30)), max_rows_per_group=5).explain()
    assert said.startswith(
        "One privacy unit is all rows with one value of u: at most max_groups groups and 5 rows in each are kept, "
        "chosen at random (max_groups chosen first); "
    )
    assert "chosen first  max_groups: privately, with 0.15 of the budget" in said
    assert "keys          selected privately; how many units one needs follows what is chosen" in said
    frame = a_plan(rows_of(range(30)), keys=KEYS, u_n=dpf.units()).to_frame()
    assert frame["scale"].null_count() == frame.height == 2
    assert a_plan(rows_of(range(30)), keys=KEYS, u_n=dpf.units()).error()["one"].null_count() == 1


@pytest.mark.parametrize("data", [
    rows_of([]), rows_of([7]), rows_of(range(9)).with_columns(u=pl.lit(None, pl.Int64)),
    rows_of(range(9)).with_columns(x=pl.lit(None, pl.Int64)), rows_of(range(9)).with_columns(k=pl.lit("z")),
], ids=["empty", "one unit", "no unit", "no value", "no public key"])  # fmt: skip
@pytest.mark.parametrize("keys", [KEYS, None], ids=["public", "selected"])
@pytest.mark.parametrize("by", ["k", None])
def test_next_to_no_data(data, keys, by):
    """At epsilon 0.1 noise alone tells of units with a probability of 0.02 or so: whatever is chosen, all goes on."""
    plan = a_plan(data, keys=keys if by else None, by=by, epsilon=0.1, u_n=dpf.units(), s=QUERIES["s"])
    release, _ = run(plan)
    assert release.frame.schema == plan._blueprint.schema()
    assert min(release.chosen.values()) >= 1


@pytest.mark.usefixtures("never_mistaken")
def test_what_all_units_have_is_found():
    """Noise of scale 1 / 37 at most on counts of units: one of 140 is off by 1 with probability 140 exp(-37)."""
    release, _ = run(a_plan(even_rows(groups="abc", rows=5), epsilon=1000.0, u_n=dpf.units(), n=dpf.count()))
    assert release.chosen["max_groups"] in (3, 4)
    assert release.chosen["max_rows_per_group"] in (4, 5, 6)
    assert release.frame["u_n"].to_list() == pytest.approx([3000] * 3, abs=2)
    release, _ = run(a_plan(even_rows(groups="a", rows=1), epsilon=1000.0, keys=KEYS, mechanism="laplace"))
    assert release.chosen == {"max_groups": 1, "max_rows_per_group": 1}
    release, _ = run(a_plan(even_rows(groups="ab", rows=9), epsilon=1000.0, keys=KEYS, **{**ROWS, "max_groups": 4}))
    assert 8 <= release.chosen["max_rows_per_group"] <= 11


@pytest.mark.usefixtures("never_mistaken")
def test_units_alone_need_no_rows():
    release, _ = run(a_plan(even_rows(rows=9), keys=KEYS, u_n=dpf.units()))
    assert release.chosen["max_rows_per_group"] == 1


@pytest.mark.usefixtures("never_mistaken")
def test_every_source_is_read_in_both_stages(tmp_path, monkeypatch):
    """Without any noise to speak of, all routes choose the same, and release the same units."""
    data = even_rows(groups="abc", rows=4)
    data.write_parquet(tmp_path / "d.parquet")
    data.write_csv(tmp_path / "d.csv")
    asked = {"epsilon": 3000.0, "u_n": dpf.units(), "n": dpf.count()}
    first, _ = run(a_plan(data, **asked))
    duckdb = pytest.importorskip("duckdb")
    arrow = data.to_arrow()
    sources = [
        data.lazy(), data.to_arrow(), data.to_arrow().to_reader(), data.to_pandas(), tmp_path / "d.parquet",
        duckdb.sql("FROM arrow"), data.with_columns(pl.col("u").cast(pl.String)),
    ]  # fmt: skip
    plans = [a_plan(source, **asked) for source in sources]
    plans.append(a_plan(tmp_path / "d.csv", schema=dict(data.schema), **asked))
    for plan in plans:
        release, _ = run(plan)
        assert release.chosen == first.chosen
        assert release.frame["u_n"].to_list() == pytest.approx([3000] * 3, abs=2)
    monkeypatch.setattr(memory, "room_for_rows", lambda: 100_000)
    for source in (data.lazy(), data.to_arrow().to_reader()):
        assert run(a_plan(source, **asked))[0].chosen == first.chosen
    assert arrow.num_rows == data.height


def test_an_engine_is_refused():
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.connect().sql("SELECT 1 AS u, 'a' AS k, 1::BIGINT AS x")
    with pytest.raises(DpfastError, match='engine must be "rows" where max_groups and max_rows_per_group are chosen'):
        a_plan(relation, engine="sql")
    assert run(a_plan(relation, engine="rows", keys=KEYS))[0].frame.height == 4


@pytest.mark.parametrize(("changed", "words"), [
    ({"max_rows_per_group": None}, "max_rows_per_group must be .* where privacy_unit is given"),
    ({"max_groups": None, "by": "k"}, "max_groups must be .* where privacy_unit is given"),
    ({"privacy_unit": None}, "max_groups must be left out where each row is a unit"),
    ({"privacy_unit": None, "max_groups": 3}, "max_groups must be left out where each row is a unit"),
    ({"privacy_unit": None, "max_groups": None}, "max_rows_per_group must be left out where each row is a unit"),
    ({"privacy_unit": "row"}, "max_groups must be left out where each row is a unit"),
    ({"max_groups": "AUTO"}, 'max_groups must be .*, or "auto"'),
    ({"error": {"n": 9}, "epsilon": None}, "error must be"),
    ({"interval": "population", "max_groups": 3}, "interval must be"),
    ({"keys": KEYS, "key_selection": "count", "u_n": dpf.units()}, "key_selection must be"),
    ({"delta": 0.0}, "delta must be"),
    ({"epsilon": 1e-17}, "epsilon must be"),
], ids=str)  # fmt: skip
def test_what_is_refused(changed, words):
    with pytest.raises(ParameterError, match=words):
        a_plan(rows_of(range(9)), **changed)


def test_a_workload_has_numbers():
    with pytest.raises(ParameterError, match=r"max_groups must be .* here"):
        dpf.plan(
            rows_of(range(9)), "k", keys=KEYS, workload=dpf.workloads.identity(4), privacy_unit="u", epsilon=1, **BOTH
        )


@pytest.mark.parametrize("changed", [
    {"mechanism": "laplace"}, {"split": "optimal"}, {"delta": 0.0}, {"u_n": dpf.units()}, {"m": QUERIES["p"]},
    {"s": dpf.sum("x", bounds=(0, 9)), "split": ("optimal", {"s": 2})},
], ids=lambda changed: "-".join(changed))  # fmt: skip
def test_public_keys_without_clipping_have_limits(changed):
    release, _ = run(a_plan(rows_of(range(99)), keys=KEYS, **changed))
    assert set(release.chosen) == set(BOTH)


def test_public_keys_are_clipped_as_a_whole_where_that_can_be():
    release, _ = run(a_plan(rows_of(range(99)), keys=KEYS))
    assert not release.chosen
    assert "clipped to" in release.explain()


def test_a_small_budget_has_smaller_limits_at_most():
    """The largest limits are those at which there is a plan, whatever else may be chosen."""
    wide = {"s": dpf.sum("x", bounds=(-8e6, 8e6)), "keys": KEYS, "delta": 0.0, **ROWS, "max_groups": 4}
    small, large = (a_plan(rows_of(range(9)), epsilon=epsilon, **wide)._blueprint for epsilon in (3e-7, 1.0))
    assert 1 <= small.choices[0].most_rows < large.choices[0].most_rows
    release, _ = run(a_plan(rows_of(range(9)), epsilon=3e-7, **wide))
    assert release.chosen["max_rows_per_group"] <= small.choices[0].most_rows


def test_cut_is_told_of_what_is_chosen():
    release, _ = run(a_plan(even_rows(), report_cut=0.2, epsilon=100.0))
    assert release.cut is not None
    assert "n_corrected" in release.frame.columns


NOISES = [laplace_of_scale(30.0, 1), gaussian_of_scale(40.0, 1)]


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.mechanism)
def test_noise_alone_is_rarely_taken_for_units(noise):
    """Of the 4,000 draws, each of about 4 sums at 62 places tells by a chance of 0.005 / root(point): 7% at most.

    Many do not, as sums overlap. More than 10% of 4,000 is off by 6 deviations: a probability below 1e-9.
    """
    generator = np.random.default_rng(4)
    shape = 4000, GROUP_POINTS.size
    draws = generator.laplace(0, 30, shape) if noise.mechanism == "laplace" else generator.normal(0, 40, shape)
    told = [told_counts(GROUP_POINTS, row, noise).any() for row in np.rint(draws).astype(np.int64)]
    assert np.mean(told) < 0.1


def holdings(groups, rows, units=10_000.0):
    """Return units that all have so many groups, and so many rows in each."""
    many, shares = np.zeros(GROUP_POINTS.size), np.zeros(ROW_POINTS.size)
    many[list(GROUP_POINTS).index(groups)], shares[list(ROW_POINTS).index(rows)] = units, 1.0
    return Holdings(GROUP_POINTS.astype(float), many, ROW_POINTS.astype(float), shares)


@pytest.mark.parametrize(("aim", "groups", "rows"), [
    (Aim("rows", 1.0), 12, 8), (Aim("units", 1.0), 12, 1), (Aim("rows", 1e9), 1, 1),
    (Aim("rows", math.inf, 2.0), 12, 8),
])  # fmt: skip
def test_the_choice_weighs_noise_and_loss(aim, groups, rows):
    chosen = choose_limits(holdings(12, 8), Outlook([aim], 50), (50, 1000))
    assert groups <= chosen[0] <= groups * 1.2
    assert rows <= chosen[1] <= rows * 1.2


@pytest.mark.parametrize("power", [0.8, 1.2, 2.5])
def test_a_tail_that_falls_by_a_power_goes_on(power):
    """Of 10**6 units those beyond a hundred rows are not told; a part of them, and no more, stands in their place."""
    points = ROW_POINTS[:40]
    above = 1e6 * points**-power
    units = above - np.append(above[1:], 0.0)
    told = np.where(points < 100, units, 0.0)
    found = with_tail(points, told)
    assert found.sum() == pytest.approx(told.sum())
    assert (found >= 0).all()
    last = int(np.flatnonzero(told)[-1])
    # What is beyond the last place is no part of what is told, which makes the tail end sooner than it does.
    assert 0.1 <= found[last + 1 :].sum() / units[last + 1 :].sum() < 1


@pytest.mark.parametrize(
    "told", [[0.0] * 6, [900.0, 0, 0, 0, 0, 0], [0, 0, 0, 900.0, 0, 0], [300.0, 200, 250, 0, 0, 0]]
)
def test_no_tail_is_made_where_units_become_no_fewer(told):
    assert with_tail(ROW_POINTS[:6], np.array(told)).tolist() == told


def test_limits_that_are_given_are_kept():
    outlook = Outlook([Aim("rows", 1.0)], None, (20.0, 30.0))
    assert choose_limits(holdings(12, 8), outlook, (9, 100), (9, None))[0] == 9
    assert choose_limits(holdings(12, 8), outlook, (100, 7), (None, 7))[1] == 7
    assert choose_limits(holdings(1, 1, 0.0), outlook, (100, 100)) == (1, 1)


def test_more_noise_on_keys_means_fewer_groups():
    found = [
        choose_limits(holdings(64, 1), Outlook([Aim("units", 5.0)], None, keys), (256, 1))[0]
        for keys in ((1.0, math.inf), (1e6, math.inf), (1e6, 100.0))
    ]
    assert found[0] >= found[1]
    assert found[2] >= found[1]


def test_parts_of_units_are_paid_for_as_one():
    """What a choice draws is at most what its part of the budget buys for counts of `WHOLE`."""
    plan = a_plan(rows_of(range(9)), epsilon=1.0)._blueprint
    assert isinstance(plan.choices[0], LimitsChoice)
    noise = plan.noise.of_part(Fraction(1, 2), WHOLE)
    assert noise.scale >= WHOLE / 0.075 * (1 - 1e-12)
    replaced = a_plan(rows_of(range(9)), epsilon=1.0, neighbors="replace")._blueprint
    assert replaced.noise.of_part(Fraction(1, 2), WHOLE).scale >= 2 * WHOLE / 0.075 * (1 - 1e-12)
    concentrated = a_plan(rows_of(range(9)), rho=1.0, neighbors="replace")._blueprint
    assert concentrated.noise.of_part(Fraction(1), WHOLE).scale >= WHOLE * math.sqrt(2 / 0.3) * (1 - 1e-9)


@pytest.mark.parametrize("keys", [KEYS, None], ids=["public", "selected"])
def test_bounds_and_limits_are_chosen_together(keys):
    """Limits come first: what bounds cost depends on them."""
    asked = {"keys": keys, "n": dpf.count(), "s": dpf.sum("x", bounds="auto"), "q": dpf.mean("x", bounds="auto")}
    for budget in ({"epsilon": 3.0}, {"rho": 0.5}, {"epsilon": 1e-3}):
        release, _ = run(a_plan(rows_of(range(400)), **asked, **budget))
        assert set(release.chosen) == {"max_groups", "max_rows_per_group", "s", "q"}
        low, high = release.chosen["s"]
        assert low < high


@pytest.mark.parametrize("keys", [KEYS, None], ids=["public", "selected"])
@pytest.mark.parametrize("limits", [BOTH, GROUPS, ROWS], ids=["both", "groups", "rows"])
def test_what_is_chosen_is_previewed(keys, limits):
    plan = a_plan(rows_of(range(9)), keys=keys, u_n=dpf.units(), n=dpf.count(), **limits)
    shown = dpf.preview(plan, repeats=3)
    assert shown.summary["query"].to_list() == ["u_n", "n"]
    assert 0 <= shown.rows_cut < 1


def test_limits_and_bounds_that_are_chosen_together_are_narrowed_together():
    """The bounds' extremes are planned with the largest limits that were found to fit, not with those before."""
    asked = {"m": dpf.mean("x", bounds="auto"), "v": dpf.variance("x", bounds="auto"), "n": dpf.count()}
    for limits in (BOTH, {**GROUPS, "max_rows_per_group": 2}):
        plan = a_plan(rows_of(range(9)), keys=KEYS, epsilon=1e-5, **limits, **asked)
        release, _ = run(plan)
        assert {"m", "v"} < set(release.chosen)


@pytest.mark.parametrize("limits", [BOTH, {"max_groups": 50, "max_rows_per_group": 500}], ids=["chosen", "given"])
@pytest.mark.parametrize("rho", [1e-13, 1e-12, 1e-10])
def test_a_small_rho_is_planned_at_once(rho, limits):
    """What each of many draws costs is rounded up to whole units: what fits is far below the first guess."""
    query = dpf.quantile("x", [0.25, 0.5], bounds=(0, 1))
    assert a_plan(rows_of(range(9)), keys=KEYS, rho=rho, **limits, q=query).rho <= rho * (1 + 1e-9)
