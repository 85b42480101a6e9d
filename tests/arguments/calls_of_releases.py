"""Right calls of plans, releases, answers and accountants."""

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import dp_accounting
import polars as pl

import dpfast as dpf
from dpfast.accounting.events import Gaussian, Pure

from .calls import Call

FRAME = pl.DataFrame({"k": ["a", "b"] * 50, "u": range(100), "v": [1.0, 2.0] * 50})
KEYS = pl.DataFrame({"k": ["a", "b"]})
FILE = Path(mkdtemp()) / "trips.csv"
FRAME.write_csv(FILE)
SCHEMA = {"k": pl.String, "u": pl.Int64}
UNIT = {"privacy_unit": "u", "max_groups": 2, "max_rows_per_group": 2}
ROWS = {"n": dpf.count(), "privacy_unit": "row"}
QUERIES = {"n": dpf.count(), "m": dpf.mean("v", bounds=(0, 1))}
ASKED: dict[str, dict[str, Any]] = {
    "groups": {"data": FRAME, "by": "k", "epsilon": 1.0, "delta": 1e-6, **UNIT, **QUERIES},
    "groups by rho": {"data": FRAME, "by": ["k"], "rho": 0.5, "delta": 1e-6, **UNIT, **QUERIES},
    "public groups": {"data": FRAME, "by": "k", "keys": KEYS, "privacy_unit": "row", "epsilon": 1.0, **QUERIES},
    "a file": {"data": FILE, "by": "k", "keys": KEYS, "epsilon": 1.0, "schema": SCHEMA, **ROWS},
    "a workload": {
        "data": FRAME,
        "by": "k",
        "keys": KEYS,
        "workload": dpf.workloads.identity(2),
        "epsilon": 1.0,
        "privacy_unit": "row",
    },
}
NUMBERS = pl.DataFrame({"count": [1200, 87, 310], "epsilon": [0.1, 0.2, 0.7], "names": [["a"], ["b"], ["c"]]})
LISTS = pl.DataFrame({"count": [[90, 300], [700, 20]], "names": [["a", "b"]] * 2, "epsilon": [0.1, 0.2]})


def of(call: str, function: Any, /, **given: Any) -> Call:
    """Return a call of what changes none of its arguments."""
    return Call(call, function, lambda: dict(given))


def a_ledger() -> dpf.Ledger:
    return dpf.Ledger(epsilon=1000, delta=0.5)


def of_plan(name: str, **given: Any) -> Call:
    """Return a call of a method of a plan that is made afresh, since it runs once."""
    function = getattr(type(dpf.plan(**ASKED["groups"])), name)
    return Call(f"Plan.{name}", function, lambda: {"self": dpf.plan(**ASKED["public groups"]), **given})


RELEASE = dpf.release(**ASKED["public groups"], ledger=a_ledger())
WORKLOAD = dpf.release(**ASKED["a workload"], ledger=a_ledger())
WISHED = {"epsilon": None, "error": {"n": 50, "m": ("mean", 0.1, 500)}, "budget": 10.0}
PREVIEW = dpf.preview(dpf.plan(**ASKED["public groups"]), repeats=2)
RELEASES = [
    *(of(f"plan of {kind}", dpf.plan, **asked) for kind, asked in ASKED.items()),
    *(
        Call(f"release of {kind}", dpf.release, lambda asked=asked: {**asked, "ledger": a_ledger()})
        for kind, asked in ASKED.items()
        if "rho" not in asked
    ),
    of("plan by its error", dpf.plan, **{**ASKED["public groups"], **WISHED}),
    of("plan of a workload by its error", dpf.plan, **{**ASKED["a workload"], "epsilon": None, "error": 3.0}),
    Call(
        "release by its error",
        dpf.release,
        lambda: {**ASKED["public groups"], **WISHED, "ledger": a_ledger()},
    ),
    of("preview", dpf.preview, plan=dpf.plan(**ASKED["groups"]), rows=200, groups=3, units=40, repeats=2),
    of("preview of sizes", dpf.preview, plan=dpf.plan(**ASKED["groups"]), sizes=[50, 5], repeats=2),
    of("preview of a sample", dpf.preview, plan=dpf.plan(**ASKED["groups"]), sample=FRAME.head(50), repeats=2),
    of("Preview.plot", PREVIEW.plot, query="m", top=3),
    of_plan("error"),
    of_plan("explain"),
    Call("Plan.run", type(dpf.plan(**ASKED["groups"])).run, lambda: {**of_plan("run").given(), "ledger": a_ledger()}),
    Call("Plan.lazy", type(dpf.plan(**ASKED["groups"])).lazy, lambda: {**of_plan("run").given(), "ledger": a_ledger()}),
    of("Release.plot", RELEASE.plot, query="m", top=3),
    of("Release.plot of a workload", WORKLOAD.plot),
    of("Release.report", RELEASE.report, path=Path(mkdtemp()) / "page.html", overwrite=True),
    of_plan("plot_error", epsilon=[0.5, 1.0]),
]
ANSWERS = [
    Call(f"answer {what}", dpf.answer, lambda given=given: {"value": "count", "ledger": a_ledger(), **given})
    for what, given in {
        "numbers": {"table": NUMBERS, "epsilon": "epsilon", "delta": 1e-6},
        "an Arrow table": {"table": NUMBERS.to_arrow(), "epsilon": 0.1},
        "by weight": {"table": NUMBERS, "epsilon": 0.1, "weight": "epsilon"},
        "by errors": {"table": NUMBERS, "error": 30},
        "lists": {"table": LISTS, "epsilon": "epsilon", "candidates": "names", "k": 2},
    }.items()
]
EVENTS = {
    "advanced": [Pure(0.1).times(100)],
    "basic": [Pure(0.1).times(100)],
    "gdp": [Gaussian(10.0).times(100)],
    "optimal": [Pure(0.1).times(100)],
    "pld": [Gaussian(10.0).times(100)],
    "rdp": [Gaussian(10.0).times(100)],
    "zcdp": [Gaussian(10.0).times(100)],
}
ACCOUNTANTS = [
    call
    for name, events in EVENTS.items()
    for accountant in [getattr(dpf.accounting, name)]
    for call in (
        of(name, accountant, events=events),
        of(f"{name}.applies", accountant.applies, events=events),
        of(f"{name}.epsilon", accountant(events).epsilon, delta=1e-6),
        of(f"{name}.delta", accountant(events).delta, epsilon=1.0),
    )
]
EXCHANGE = [
    of("to_dp_accounting", dpf.accounting.to_dp_accounting, event=Gaussian(1.0)),
    of("from_dp_accounting", dpf.accounting.from_dp_accounting, event=dp_accounting.GaussianDpEvent(1.0)),
]
CALLS = [*RELEASES, *ANSWERS, *ACCOUNTANTS, *EXCHANGE]
