"""What a user can hold says what it is: shortly, in the same words for all private data, and escaped in a notebook."""

from __future__ import annotations

import inspect
import re

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.accounting.events import Gaussian, Pure
from dpfast.aggregation.sources import open_source
from dpfast.domain.domain import Domain
from dpfast.integrations.expressions import Expressions
from dpfast.integrations.polars import Frames

from .calls import every_call

LONGEST = 3000
MODULES = (dpf, dpf.accounting, dpf.attacks, dpf.auditing, dpf.stability, dpf.strategies, dpf.weights, dpf.workloads)
EVIL = "<script>alert(1)</script>"


def held_by(thing, found, depth=0):
    """Add what is held by a result: its public attributes, and what stands in lists, each class once."""
    if isinstance(thing, (list, tuple)) and len(thing) < 50:
        for one in thing:
            held_by(one, found, depth + 1)
    kind = type(thing)
    if not kind.__module__.startswith("dpfast") or kind in found:
        return
    found[kind] = thing
    for name in dir(thing) if depth < 3 else ():
        attribute = inspect.getattr_static(kind, name, None)
        if not name.startswith("_") and (isinstance(attribute, property) or not callable(attribute)):
            try:
                held_by(getattr(thing, name), found, depth + 1)
            except dpf.errors.DpfastError:  # a release by group has no histogram
                continue


@pytest.fixture(scope="module")
def objects():
    """Return an object of every class that right calls of all public functions take, are methods of, or return."""
    found = {}
    for call in every_call():
        given = call.given()
        held_by([getattr(call.function, "__self__", None), *given.values()], found)
        unnamed = [one.name for one in call.signature.parameters.values() if one.kind is one.VAR_POSITIONAL]
        listed = [given.pop(name) for name in unnamed]
        if call.name == "ContinualCounter.save":
            continue  # it is kept in one file for good, and another test calls it
        held_by(call.function(*listed, **given), found)
    return found


def test_every_public_class_has_a_repr_of_its_own(objects):
    public = {getattr(module, name) for module in MODULES for name in module.__all__}
    classes = {one for one in public if inspect.isclass(one) and not inspect.isabstract(one)} | set(objects)
    ours = {one for one in classes if one.__module__.startswith("dpfast") and not getattr(one, "_is_protocol", False)}
    assert len(ours) > 80
    assert {one for one in ours if one.__repr__ is object.__repr__} == set()


def test_what_is_shown_is_short_and_has_no_address_and_no_array(objects):
    for kind, thing in objects.items():
        text = repr(thing)
        assert 3 < len(text) < LONGEST, kind
        assert not re.search(r"0x[0-9a-f]{6,}|\barray\(", text), kind
        if hasattr(thing, "_repr_html_"):
            assert len(thing._repr_html_()) < 10 * LONGEST, kind


@pytest.mark.parametrize("name", ["advanced", "basic", "gdp", "optimal", "pld", "rdp", "zcdp"])
def test_accountants_show_what_they_added_up_in_plain_numbers(name):
    """Of hardly anything, and of more than any float64 holds: no figure is in whole units of 1e-18."""
    tried = {"gdp": Gaussian(2.0)} if name == "gdp" else {"pure": Pure(1e-9), "many": Pure(0.5).times(1000)}
    for event in tried.values():
        text = repr(getattr(dpf.accounting, name)(event))
        assert re.fullmatch(r"[A-Za-z]+\((\w+=[\d.e+-]+(, )?)+\)", text)
        assert not re.search(r"\d{9}", text)


def a_frame(rows):
    """Return rows of data whose column names and keys are of somebody who means no good."""
    return pl.DataFrame({EVIL: [EVIL, "b"] * rows, "u": range(2 * rows), "v": np.linspace(0, 1, 2 * rows)})


def evil_plan(rows=50, **more):
    queries = {f"{EVIL} n": dpf.count(), "m": dpf.mean("v", bounds=(0, 1)), "q": dpf.mode(EVIL, candidates=[EVIL, "b"])}
    keys = pl.DataFrame({EVIL: [EVIL, "b"]})
    return dpf.plan(a_frame(rows), EVIL, keys=keys, epsilon=0.5, privacy_unit="row", **queries, **more)


def evil_objects():
    ledger = dpf.Ledger(epsilon=8, delta=1e-6, dataset=EVIL)
    yield ledger
    yield ledger.allot(EVIL, epsilon=1)
    plan = evil_plan(dataset=EVIL)
    yield plan
    yield plan.run(ledger)
    yield plan
    keys = pl.DataFrame({EVIL: [EVIL, "b"]})
    asked = {"by": EVIL, "keys": keys, "epsilon": 0.5, "privacy_unit": "row", "dataset": EVIL}
    for strategy in ("auto", "adaptive"):
        cells = dpf.plan(a_frame(50), workload=dpf.workloads.identity(2), strategy=strategy, **asked)
        yield cells
        yield cells.run(ledger)
    domain = Domain({EVIL: [EVIL, "b"]})
    yield dpf.synthesize(a_frame(50), domain, epsilon=0.5, ledger=ledger, dataset=EVIL)
    yield dpf.audit(lambda one: EVIL + one, "a", "b", epsilon=1.0, samples=100)


def test_notebooks_show_names_as_text():
    texts = [thing._repr_html_() for thing in evil_objects()]
    assert not any("<script" in text for text in texts)
    assert sum("&lt;script&gt;alert(1)" in text for text in texts) >= 8


def test_a_plan_shows_queries_charge_and_errors_and_whether_it_ran():
    plan, ledger = evil_plan(), dpf.Ledger(epsilon=1)
    shown = repr(plan)
    assert shown.startswith("Plan: Release of 3 queries by <script>")
    for part in (
        "One privacy unit is one row",
        "charge: epsilon 0.5, delta 0; not run",
        "error95",
        "laplace",
        "\n  m ",
    ):
        assert part in shown
    release = plan.run(ledger)
    assert "run, charged as entry 1" in repr(plan)
    row = release.frame.row(1, named=True)
    assert f"{row['m']:,.6g} [{row['m_lower']:,.6g}, {row['m_upper']:,.6g}]" in repr(release)


@pytest.mark.parametrize(("accountant", "epsilon"), [("basic", 2.0), ("zcdp", 2.0), ("rdp", 2.0), ("odometer", None)])
def test_a_ledger_shows_how_much_is_spent_of_how_much(accountant, epsilon):
    ledger = dpf.Ledger(epsilon, 1e-5, accountant=accountant)
    assert ("[....................] 0% spent, " in repr(ledger)) == (accountant != "odometer" or "%" in repr(ledger))
    dpf.answer(pl.DataFrame({"n": [1]}), value="n", epsilon=0.4, ledger=ledger)
    shown = ledger._repr_html_()
    assert "<td>left</td>" in shown
    if accountant == "basic":
        assert "<Ledger in memory: [####................] 20% spent, epsilon 1.6, delta 1e-05 left of" in repr(ledger)
        assert "width:20.0%" in shown
    ledger.close()
    assert "closed" in repr(ledger)
    assert "closed" in ledger._repr_html_()


def test_long_objects_are_shown_in_part():
    many = pl.DataFrame({"k": range(20_000)})
    queries = {f"query_{number}": dpf.sum("k", bounds=(0, number + 1)) for number in range(60)}
    plan = dpf.plan(many, "k", keys=many, epsilon=60.0, privacy_unit="row", **queries)
    long = [
        dpf.bins("k", range(10_000)),
        dpf.mode("k", candidates=list(range(10_000))),
        dpf.quantile("k", np.linspace(0, 1, 500).tolist(), bounds=(0, 1)),
        dpf.Ledger(epsilon=1, dataset="long " * 1000),
        Frames(pl.DataFrame({f"column {number}": [1] for number in range(2000)})),
        Expressions(pl.sum_horizontal(*(pl.col(f"column {number}") for number in range(500)))),
        dpf.weights.Ranges(list(range(5000)), list(range(1, 5001))),
        dpf.accounting.rdp([Gaussian(1.0 + number) for number in range(500)]),
        plan,
        plan.run(dpf.Ledger(epsilon=60)),
    ]
    for thing in long:
        assert len(repr(thing)) < LONGEST, type(thing)
    assert "and 50 more measures" in repr(plan)
    assert "and 19,990 more rows" in repr(long[-1])
    assert "more columns" in repr(long[-1])


def test_nothing_that_is_shown_depends_on_private_data():
    shown = []
    for rows in (3, 50):
        frame = a_frame(rows)
        opened = Domain({EVIL: [EVIL, "b"]}).open(open_source(frame))
        things = [Frames(frame), Frames(frame.lazy()), evil_plan(rows), opened]
        shown.append([repr(thing) for thing in things])
    assert shown[0] == shown[1]
