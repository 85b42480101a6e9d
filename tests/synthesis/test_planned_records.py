"""What a plan of synthetic records says before anything is measured is what is measured and charged then."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.errors import ParameterError

SIZES = {"a": 2, "b": 3, "c": 4, "d": 5}


def rows(number, sizes=SIZES):
    return pl.DataFrame({name: np.arange(number) * (k + 1) // 3 % n for k, (name, n) in enumerate(sizes.items())})


def domain(sizes=SIZES, **more):
    return dpf.Domain(dict(sizes), **more)


def ledger_of(accountant):
    return dpf.Ledger(epsilon=1000.0, delta=1e-3, accountant=accountant)


BUDGETS = [{"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-9}, {"rho": 0.1}]


@pytest.mark.parametrize("accountant", ["basic", "zcdp", "rdp"])
@pytest.mark.parametrize("budget", BUDGETS, ids=["epsilon", "delta", "rho"])
@pytest.mark.parametrize("number", [0, 150, 20_000])
@pytest.mark.parametrize("workload", [None, [("a", "b"), ("b", "c", "d")]], ids=["pairs", "named"])
@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
def test_a_plan_says_what_is_measured_and_charged(accountant, budget, number, workload, neighbors):
    if "rho" in budget and accountant == "basic":
        return
    asked = domain(outside="null")
    plan = dpf.plan_synthesis(asked, workload, **budget, neighbors=neighbors, accountant=accountant)
    ledger = ledger_of(accountant)
    made = dpf.synthesize(rows(number), asked, workload, **budget, neighbors=neighbors, ledger=ledger)
    if accountant != "rdp":
        kind = "epsilon" if accountant == "basic" else "rho"
        assert getattr(ledger.spent, kind) == pytest.approx(getattr(plan.charge, kind), rel=1e-9)
    measured = made.estimate.rounds
    if plan.method == "histogram":
        (way,) = plan.to_frame().to_dicts()
        assert measured.height == way["rounds"]
        assert measured["error95"].unique().to_list() == [way["error95"]]
        return
    counted = measured.filter(pl.col("columns").list.len() == 0)
    assert counted.height == (neighbors == "add_remove")
    after = measured[counted.height :]
    matching = []
    for way in plan.to_frame().to_dicts():
        singles = plan.columns(way["from_records"] or 1)["deviation"].to_list()
        if way["method"] == "all at once":
            off = after["deviation"]
            matching.append((off.min(), off.max()) == pytest.approx((way["least_deviation"], way["deviation"])))
        else:
            own = after["deviation"].to_list() == [*singles, *[way["deviation"]] * way["rounds"]]
            matching.append(own and after["error95"][-1] == way["error95"])
    assert sum(matching) == 1


def test_numbers_of_records_are_cut_into_ranges_that_choose_as_the_plan_does():
    plan = dpf.plan_synthesis(domain({f"x{i}": 50 for i in range(12)}), epsilon=1.0, delta=1e-9)
    frame, model = plan.to_frame(), plan._request.plan
    assert frame["from_records"].to_list() == [None, *(end + 1 for end in frame["to_records"][:-1])]
    assert frame["to_records"][-1] is None
    assert frame.height == 4
    for way in frame.to_dicts():
        for number in {way["from_records"] or 1, way["to_records"] or 2**31}:
            assert model.choose(number).rounds == way["rounds"]
            assert model.choose(number).noise.deviation == way["deviation"]


def test_shares_are_the_whole_budget():
    for budget in BUDGETS:
        for workload in (None, [("a", "b")]):
            frame = dpf.plan_synthesis(domain(), workload, **budget).to_frame()
            shares = frame.select(pl.sum_horizontal(pl.col("^.*_share$"))).to_series()
            assert shares.to_list() == pytest.approx([1.0] * frame.height, rel=1e-9)


def test_a_tree_that_is_known_beforehand_has_the_size_that_was_planned():
    plan = dpf.plan_synthesis(domain(), epsilon=5.0, delta=1e-9)
    made = plan.run(rows(50_000), ledger=dpf.Ledger(epsilon=5.0, delta=1e-9))
    assert plan.to_frame()["method"][-1] == "all at once"
    assert plan.to_frame()["megabytes"][-1] == pytest.approx(made.estimate.cells * 8e-6)


def test_a_plan_runs_more_than_once_and_is_charged_each_time():
    plan = dpf.plan_synthesis(domain(), epsilon=1.0, delta=1e-9)
    ledger = dpf.Ledger(epsilon=3.0, delta=1e-6)
    for times in (1, 2):
        assert plan.run(rows(100), ledger=ledger, rows=7).frame.height == 7
        assert ledger.spent.epsilon == times


def test_noise_for_ledgers_that_add_up_otherwise_is_refused_before_the_charge():
    ledger = ledger_of("zcdp")
    plan = dpf.plan_synthesis(domain(), epsilon=1.0, delta=1e-9)
    with pytest.raises(ParameterError, match='ledger must be one with accountant "basic", as was planned'):
        plan.run(rows(10), ledger=ledger)
    assert ledger.history().is_empty()
    # Where there is no delta, the noise is the same for all.
    dpf.plan_synthesis(domain(), epsilon=1.0).run(rows(10), ledger=ledger)


@pytest.mark.parametrize(
    ("sizes", "given", "said"),
    [
        ({"a": 1}, {"epsilon": 0.1}, "each is measured"),
        ({"a": 1}, {"epsilon": 0.1, "delta": 1e-9}, "1 set of columns, of 1 cell"),
        ({"a": 7}, {"rho": 0.1}, "1 marginal"),
        ({f"x{i}": 2 for i in range(64)}, {"epsilon": 1.0}, "a histogram may have 268,435,456 cells at most"),
        ({f"x{i}": 10**6 for i in range(60)}, {"epsilon": 1.0, "max_megabytes": 1_000}, "1.00e+360 cells"),
        ({f"x{i}": 100 for i in range(9)}, {"epsilon": 1.0, "max_megabytes": 0.01}, "of 0.01 MB at most"),
        ({"a": 2, "b": 600, "c": 600}, {"rho": 1.0, "workload": [("a", "b")], "max_megabytes": 0.02}, "0.00962 MB"),
        (SIZES, {"rho": 1.0, "impossible": (dpf.column("a") == 0) & (dpf.column("b") == 1)}, "are impossible"),
        (SIZES, {"epsilon": 1.0, "rounds": 2}, "2 of them are selected and measured"),
        (SIZES, {"epsilon": 1.0, "workload": dpf.workloads.prefix(120)}, None),
    ],
)
def test_edges_are_explained_or_refused(sizes, given, said):
    if said is None:
        with pytest.raises(ParameterError, match="over the cells of the domain"):
            dpf.plan_synthesis(domain(sizes), **given)
        return
    plan = dpf.plan_synthesis(domain(sizes), **given)
    assert said in plan.explain()
    assert len(plan.explain().splitlines()) < 40
    assert repr(plan).startswith("SynthesisPlan(records of ")
    assert "<table>" in plan._repr_html_()
    assert plan.columns(records=1_000).height == len(sizes)
    with pytest.raises(ParameterError, match=r"records must be a whole number from 0 to 2\*\*31, but was None"):
        plan.columns(None)


def test_single_columns_of_marginals_that_are_all_measured_have_sums_of_their_noise():
    plan = dpf.plan_synthesis(domain({"a": 2, "b": 3}), epsilon=1.0)
    off = plan.to_frame()["deviation"][0]
    assert plan.columns(records=10)["deviation"].to_list() == pytest.approx([off * 3**0.5, off * 2**0.5])


def test_names_are_shown_as_text_alone():
    plan = dpf.plan_synthesis(dpf.Domain({"a\x1b[2J": 2, "<b>": 3}), epsilon=1.0, delta=1e-9)
    assert "\x1b" not in plan.explain()
    assert "<b>" not in plan._repr_html_()


def test_a_column_of_one_value_stands_for_no_other():
    """Only sets that hold every column of several values are all of what is measured."""
    domain = dpf.Domain({"one": 1, "many": 5})
    plan = dpf.plan_synthesis(domain, [("one",)], epsilon=1, delta=1e-9)
    assert len(plan.explain().splitlines()) > 5
    assert plan.columns(records=0)["error"].to_list() == [1.0, 1.0]
    rows = pl.DataFrame({"one": [0] * 10_000, "many": [3] * 10_000})
    made = plan.run(rows, ledger=dpf.Ledger(epsilon=1, delta=1e-9))
    # The noise of a count has a deviation below 100: beyond ten of them in none of 10^20 runs.
    assert made.frame["many"].eq(3).mean() > 0.9


def test_an_odometer_is_charged_what_the_plan_says():
    domain, rows = dpf.Domain({"a": 2, "b": 3}), pl.DataFrame({"a": [0, 1] * 50, "b": [0, 1] * 50})
    for workload, kind in ((None, "epsilon"), ([("a", "b")], "rho")):
        plan = dpf.plan_synthesis(domain, workload, epsilon=0.2, accountant="odometer")
        ledger = dpf.Ledger(delta=1e-6, accountant="odometer")
        plan.run(rows, ledger=ledger)
        if kind == "epsilon":
            assert plan.charge.epsilon == ledger.spent.epsilon == 0.2
        else:
            assert plan.charge.rho > 0.0
            assert ledger.spent.epsilon > 0.2


def test_ways_reach_as_far_as_numbers_of_records_are_measured():
    domain = dpf.Domain({f"x{place}": 2 for place in range(3)})
    ways = dpf.plan_synthesis(domain, [("x0", "x1"), ("x1", "x2")], epsilon=1e-9).to_frame()
    assert ways["rounds"].max() > 3
    assert ways["to_records"].to_list()[-1] is None
