"""A plan and a release as LazyFrames: one charge, one draw and one value, whatever engines do with them."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import date, datetime
from pathlib import Path

import polars as pl
import pytest

import dpfast as dpf
from dpfast.aggregation.keys import name_of
from dpfast.errors import BudgetExceededError, DpfastError, LedgerError
from dpfast.queries import Bins
from dpfast.releases.lazy import Figures

from .barrier import ASKED, DATA, ENGINES, HEIGHT, IS_OLD, KEYS, MODES, PATTERNS, check


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("source", ["plan", "release"])
def test_every_pattern_charges_and_draws_once(source, mode):
    for pattern in PATTERNS:
        check(pattern, source, mode)


@pytest.mark.parametrize(("threads", "morsel"), [(1, 7), (8, 3), (8, 10**6)])
def test_threads_and_morsels_change_nothing(threads, morsel):
    settings = {
        "POLARS_MAX_THREADS": str(threads),
        "POLARS_IDEAL_MORSEL_SIZE": str(morsel),
        "POLARS_WARN_UNKNOWN_CONFIG": "1",
        "PYTHONPATH": str(Path(dpf.__file__).parents[1]),
    }
    program = Path(__file__).with_name("barrier.py")
    command = [sys.executable, "-W", "error::UserWarning", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | settings, timeout=1200)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(threads), str(len(PATTERNS) * 10)]
    assert "MORSEL" not in done.stderr


@pytest.mark.parametrize("engine", ENGINES)
def test_plans_over_rows_that_hold_figures_of_plans(engine):
    """The engine runs a plan while it runs a plan; each waits for its own, and is charged once."""
    ledger = dpf.Ledger(epsilon=10)
    rows, asked = DATA, {"keys": KEYS, "n": dpf.count(), "privacy_unit": "row", "epsilon": 0.1}
    for _ in range(4):
        figures = rows.dpf.plan("k", **asked).lazy(ledger).select("k", "n")
        rows = DATA.join(figures, on="k").drop("n")
    assert ledger.spent.epsilon == 0
    both = pl.concat([rows, rows.filter(pl.col("k") > 1)])
    assert both.collect(engine=engine).height == 6 * HEIGHT - 6
    assert ledger.spent.epsilon == 0.4


def test_a_refused_charge_within_another_plans_rows_is_told_as_it_is():
    poor, rich = dpf.Ledger(epsilon=0.01), dpf.Ledger(epsilon=1)
    figures = DATA.dpf.plan("k", **{"privacy_unit": "row", **ASKED}).lazy(poor)
    plan = DATA.join(figures, on="k").dpf.plan(n=dpf.count(), privacy_unit="row", epsilon=0.5)
    with pytest.raises(DpfastError if IS_OLD else BudgetExceededError):
        plan.run(rich)
    with pytest.raises(LedgerError, match="failed after it was charged"):
        plan.run(rich)
    assert (poor.spent.epsilon, rich.spent.epsilon) == (0, 0.5)


BY = [
    "i",
    "s",
    "c",
    "e",
    "d",
    "t",
    "b",
    "none",
    "u8",
    ["i", "s"],
    dpf.bins("f", [0, 0.5, 2]),
    dpf.bins("i", [0, 9]),
    None,
]
MANY = pl.DataFrame(
    {
        "i": [1, 2] * 50,
        "s": ["a", "b"] * 50,
        "c": pl.Series(["a", "b"] * 50, dtype=pl.Categorical),
        "e": pl.Series(["a", "b"] * 50, dtype=pl.Enum(["b", "a"])),
        "d": [date(2026, 1, 1), None] * 50,
        "t": [datetime(2026, 1, 1), None] * 50,
        "b": [True, None] * 50,
        "none": pl.Series([None] * 100, dtype=pl.Null),
        "u8": pl.Series([1, 2] * 50, dtype=pl.UInt8),
        "f": [0.25, 0.75] * 50,
        "u": range(100),
    }
)
QUERIES = {
    "n": dpf.count(),
    "whole": dpf.sum("i", bounds=(0, 9)),
    "large": dpf.sum("u", bounds=(0, 2**30)),
    "real": dpf.sum("f", bounds=(0, 1)),
    "m": dpf.mean("f", bounds=(0, 1)),
    "q": dpf.quantile("u8", 0.5, bounds=(0, 9)),
    "p": dpf.quantile("f", [0.75, 0.25], bounds=(0, 1)),
    "text": dpf.mode("s", candidates=["a", "b"]),
    "day": dpf.mode("d", candidates=[date(2026, 1, 1), None]),
    "truth": dpf.mode("b", candidates=[True, False]),
    "number": dpf.mode("i", candidates=[1, 2]),
}


@pytest.mark.parametrize(
    "unit", [{}, {"privacy_unit": "u", "max_groups": 1, "max_rows_per_group": 2}], ids=["row", "u"]
)
@pytest.mark.parametrize("by", BY, ids=str)
def test_the_schema_is_known_before_anything_is_read(by, unit):
    names = [] if by is None else [name_of(entry) for entry in (by if isinstance(by, list) else [by])]
    keys = [None] if by is None or isinstance(by, Bins) else [None, MANY.select(names).unique()]
    for public in keys:
        plan = MANY.lazy().dpf.plan(
            by, keys=public, epsilon=1.0, delta=1e-6, **{"privacy_unit": "row", **unit}, **QUERIES
        )
        ledger = dpf.Ledger(epsilon=1, delta=1e-6)
        schema = plan.lazy(ledger).collect_schema()
        assert ledger.history().height == 0
        assert plan.run(ledger).frame.schema == schema


@pytest.mark.parametrize("strategy", ["auto", "adaptive"])
@pytest.mark.parametrize(
    "workload",
    [
        dpf.workloads.all_range(6),
        dpf.workloads.identity((2, 3)),
        dpf.workloads.marginals((2, 3), 1),
        dpf.workloads.prefix(6) + dpf.workloads.total(6),
        dpf.workloads.kronecker(dpf.workloads.prefix(2), dpf.workloads.all_range(3)),
        dpf.workloads.matrix([[1, 0, 1, 0, 1, 0]], shape=6),
    ],
    ids=repr,
)
def test_the_schema_of_a_workload_is_known_too(workload, strategy):
    domain = dpf.Domain({"i": 2, "u8": 3} if len(workload.shape) == 2 else {"i": 6})
    ledger = dpf.Ledger(epsilon=1)
    plan = MANY.dpf.plan(
        domain.by, keys=domain.frame(), workload=workload, strategy=strategy, privacy_unit="row", epsilon=1.0
    )
    lazy = plan.lazy(ledger)
    schema = lazy.collect_schema()
    assert ledger.spent.epsilon == 0
    assert lazy.collect().schema == schema == plan.run(ledger).frame.schema


@pytest.mark.parametrize("columns", [None, ["s"], ["s", "k"]])
def test_a_slice_is_taken_of_the_rows_that_a_filter_keeps(columns):
    """Polars has not asked for both at once so far; it may."""
    frame = pl.DataFrame({"k": range(10), "s": range(10)})
    figures = Figures(lambda: frame, lambda: frame.schema)
    kept = frame.filter(pl.col("k") > 5)
    (given,) = figures(columns, pl.col("k") > 5, 3, 100)
    assert given.equals(kept.head(3).select(columns or frame.columns))
    (given,) = figures(columns, None, 3, None)
    assert given.equals(frame.head(3).select(columns or frame.columns))
    (given,) = figures(columns, pl.col("k") > 50, None, 1)
    assert given.equals(frame.clear().select(columns or frame.columns))
