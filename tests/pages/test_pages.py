"""Pages without a browser: where they are written, and what they say of every kind of release and ledger."""

from __future__ import annotations

import math
import os
import pickle
import re
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest

import dpfast as dpf
from dpfast.accounting.budget import Amounts, ConcentratedAmounts
from dpfast.charts.ticks import round_ticks
from dpfast.errors import LedgerError, ParameterError
from dpfast.pages.promise import chance_words, guess_bound, promise

from .released import EVIL, answers, counts, every_value, no_group

#: What closes itself.
VOID = {"meta", "line", "rect", "circle"}


class Tags(HTMLParser):
    """All tags are closed in their order, no attribute runs or loads anything, and no name stands twice."""

    def __init__(self, html):
        super().__init__()
        self.opened, self.text, self.names = [], [], []
        self.feed(html)
        self.close()
        assert self.opened == []
        assert len(self.names) == len(set(self.names))

    def handle_starttag(self, tag, attributes):
        assert tag not in {"script", "link", "img", "iframe", "object", "form", "base"}
        for name, value in attributes:
            assert not name.startswith("on")
            assert name not in {"style", "src"}
            assert name != "href" or value.startswith("#")
            self.names += [value] if name == "id" else []
        if tag not in VOID:
            self.opened.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.opened.pop()

    def handle_endtag(self, tag):
        assert self.opened.pop() == tag

    def handle_data(self, data):
        if self.opened and self.opened[-1] != "style":
            self.text.append(data)


def read(path):
    tags = Tags(path.read_text())
    return " ".join(" ".join(tags.text).split())


RELEASES = {
    "values": every_value,
    "one group": lambda: counts(1),
    "many": lambda: counts(2500),
    "no group": no_group,
    "ranges": lambda: answers(dpf.workloads.all_range(12), 12),
    "cells": lambda: answers(dpf.workloads.identity(5), 5),
    "marginals": lambda: answers(dpf.workloads.marginals((2, 2), 1), 4),
    "adaptive": lambda: answers(dpf.workloads.prefix(60), 60, strategy="adaptive"),
    "rho": lambda: counts(3, epsilon=None, rho=0.01, ledger=dpf.Ledger(2, 1e-6, accountant="zcdp")),
    "rho of a ledger of divergences": lambda: counts(
        3, epsilon=None, rho=0.01, ledger=dpf.Ledger(2, 1e-6, accountant="rdp")
    ),
    "odometer": lambda: counts(3, ledger=dpf.Ledger(delta=1e-6, accountant="odometer")),
}


@pytest.mark.parametrize("kind", RELEASES)
def test_every_kind_of_release_has_a_page(kind, tmp_path):
    release = RELEASES[kind]()
    text = read(release.report(tmp_path / "page.html"))
    for said in ("What is promised", "Budget", "How it was made", "Versions"):
        assert said in text
    # Sums of divergences have an order each, and what an odometer shows is no sum.
    rows = {"rho of a ledger of divergences": ["The whole budget", "Left"], "odometer": ["Spent before", "Spent after"]}
    assert all(row in text for row in rows.get(kind, ["Spent before", "This release", "Left afterwards"]))
    assert bool(re.search(r"Left [\d.]+%", text)) == (kind != "odometer")
    if release.why_empty is not None:
        assert release.why_empty[1:] in text
    assert "nan" not in text.lower().split()


def test_text_of_others_is_text(tmp_path):
    html = every_value(dpf.Ledger(epsilon=4, dataset=EVIL)).report(tmp_path / "page.html").read_text()
    assert "<script" not in html
    assert "&lt;script&gt;alert(1)" in html
    assert "x" * 200 not in html


def test_names_begin_no_line_and_turn_no_text(tmp_path):
    """A page shows a charge once, and what follows a name in its own direction."""
    forged = "x\n  charge        epsilon 0.0001, before any data is read"
    turned = "\u202eunit\x00"
    frame = pl.DataFrame({"k": [1, 2], forged: [1.0, 2.0], turned: [1, 2]})
    total, keys = dpf.sum(forged, bounds=(0, 1)), frame.select("k")
    asked = {"privacy_unit": turned, "max_groups": 1, "max_rows_per_group": 1, "epsilon": 1.0}
    release = dpf.release(frame, "k", n=total, keys=keys, **asked, ledger=dpf.Ledger(epsilon=1, dataset=turned))
    assert [line for line in release.explain().splitlines() if line.startswith("  charge")] == [
        "  charge        epsilon 1.0, delta 0.0, before any data is read"
    ]
    html = release.report(tmp_path / "page.html").read_text()
    assert "\u202e" not in html
    assert "\x00" not in html
    assert "\\u202eunit\\x00" in html


@pytest.mark.parametrize("amount", [{"rho": 0.1}, {"rho": 0.3}, {"epsilon": 0.1}, {"epsilon": 0.7}])
def test_amounts_are_written_as_they_were_asked(amount, tmp_path):
    """Shares are rounded down, but nobody asked for a rho of 0.09999999999999999."""
    frame = pl.DataFrame({"k": ["a", "b"] * 50, "v": [0.5] * 100})
    queries = {"n": dpf.count(), "m": dpf.mean("v", bounds=(0, 1)), "s": dpf.sum("v", bounds=(0, 1))}
    plan = dpf.plan(frame, "k", keys=frame.head(2).select("k"), privacy_unit="row", **queries, **amount)
    ledger = dpf.Ledger(9, 1e-6, accountant="zcdp" if "rho" in amount else "basic")
    release = plan.run(ledger)
    shown = [repr(plan), plan.explain(), repr(release), release._repr_html_(), repr(ledger)]
    shown += [read(release.report(tmp_path / "page.html")), read(ledger.write_report(tmp_path / "ledger.html"))]
    assert not any(re.search(r"\d\.\d*(?:9{6}|[1-9]0{6}[1-9])\d*", text) for text in shown)


def test_the_promise_is_that_of_the_definition():
    """Soundness: delta is added to the chance of every set; it is no chance that the loss exceeds epsilon.

    Of Gaussian noise of the least scale for (1, 1e-6) the loss exceeds 1 with probability 2e-5.
    """
    said = " ".join(promise(Amounts(1.0, 1e-6), "one row", "add_remove"))
    assert "changes the chance of any set of results by at most a factor of 2.72, plus one in 1,000,000" in said
    assert "apart from" not in said


def test_an_allotment_and_a_ledger_with_partitions_have_pages(tmp_path):
    """Null keys, too; a release from an allotment shows the allotment's budget."""
    ledger = dpf.Ledger(epsilon=2, dataset="d")
    frame = pl.DataFrame({"k": ["a", None, "b"] * 50})
    keys = pl.DataFrame({"k": ["a", None]})
    asked = {"keys": keys, "n": dpf.count(), "privacy_unit": "row", "epsilon": 0.5}
    allotted = ledger.allot("team", epsilon=1)
    text = read(dpf.release(frame, "k", **asked, ledger=allotted).report(tmp_path / "release.html"))
    assert "(null)" in text
    assert "The whole budget 1 0 Spent before 0 0 This release 0.5 0 Left afterwards 0.5 0" in text
    assert "team" in read(allotted.write_report(tmp_path / "allotment.html"))
    ledger.partition("regions", keys=keys["k"].drop_nulls(), epsilon=0.5, units_in_one_partition=True)
    assert "Spent 75%" in read(ledger.write_report(tmp_path / "ledger.html"))


def test_the_budget_before_and_after_is_that_of_the_charge(tmp_path):
    """Whoever charges the ledger afterwards, and wherever the release is read."""
    ledger = dpf.Ledger.open(tmp_path / "ledger.db", epsilon=2)
    first, second = counts(3, ledger=ledger, epsilon=0.5), counts(3, ledger=ledger, epsilon=0.25)
    ledger.close()
    for release, before, after in ((first, "0", "1.5"), (second, "0.5", "1.25")):
        text = read(pickle.loads(pickle.dumps(release)).report(tmp_path / "page.html", overwrite=True))
        assert f"Spent before {before} 0 This release {release.spent.epsilon:g} 0 Left afterwards {after} 0" in text


def test_a_page_replaces_no_file_but_a_page(tmp_path):
    ledger = dpf.Ledger.open(tmp_path / "ledger.html", epsilon=2, dataset="d")
    release = counts(2, ledger=dpf.Ledger(epsilon=1))
    before = (tmp_path / "ledger.html").read_bytes()
    os.symlink(tmp_path / "ledger.html", tmp_path / "link.html")
    for write in (release.report, ledger.write_report):
        for name in ("ledger.html", "link.html"):
            with pytest.raises(ParameterError, match="and this file is none"):
                write(tmp_path / name, overwrite=True)
        page = write(tmp_path / f"{write.__name__}.html")
        with pytest.raises(ParameterError, match="this file exists: give another name, or overwrite=True"):
            write(page)
        assert write(page, overwrite=True) == page
        for place, message in (
            (tmp_path / "no such folder" / "a.html", "create the folder first"),
            (tmp_path / "a.txt", r"ends in \.html or \.htm"),
        ):
            with pytest.raises(ParameterError, match=message):
                write(place)
        (tmp_path / "folder.html").mkdir(exist_ok=True)
        with pytest.raises(ParameterError, match="not a folder's"):
            write(tmp_path / "folder.html")
    assert (tmp_path / "ledger.html").read_bytes() == before
    assert sorted(path.suffix for path in tmp_path.iterdir() if path.name.startswith(".")) == []


def test_a_place_that_cannot_be_written_is_said_in_one_line(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dpfast.pages.saving.os.replace", refuse)
    with pytest.raises(ParameterError, match="No space left on device") as caught:
        counts(2).report(tmp_path / "page.html")
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("accountant", ["basic", "zcdp", "rdp", "odometer"])
def test_every_ledger_has_a_page_and_a_chart(accountant, tmp_path):
    pytest.importorskip("vl_convert")
    ledger = dpf.Ledger(None if accountant == "odometer" else 4, 1e-6, accountant=accountant, dataset=EVIL)
    assert "Nothing was charged yet." in read(ledger.write_report(tmp_path / "new.html"))
    amount = {"epsilon": 0.5} if accountant in ("basic", "odometer") else {"epsilon": None, "rho": 0.01}
    for _ in range(3):
        counts(2, ledger=ledger, **amount)
    text = read(ledger.write_report(tmp_path / "page.html"))
    assert "Charges 3" in text
    assert "n: count by k" in text
    drawn = ledger.plot(tmp_path / "chart.png").to_dict()
    last = {row["amount"]: row["left"] for row in drawn["data"]["values"]}
    if accountant == "basic":
        assert last == {"epsilon": pytest.approx(0.625), "delta": 1.0}
    if accountant in ("zcdp", "rdp"):
        assert 0.5 < last["rho" if accountant == "zcdp" else "divergence"] < 1.0
    ledger.close()
    with pytest.raises(LedgerError, match="closed"):
        ledger.plot()


def test_a_ledger_of_very_many_charges_is_drawn_with_few_rows():
    pytest.importorskip("altair")
    ledger = dpf.Ledger(epsilon=1000)
    about = {"dataset": "d", "privacy_unit": "row", "neighbors": "replace"}
    charges = [dpf.ledger.Charge.of(0.1 + (place % 2) / 10, 0, f"{place}") for place in range(3000)]
    ledger.charge_many(charges, **about)
    rows = ledger.plot().to_dict()["data"]["values"]
    assert len(rows) <= 5000
    assert rows[0]["charges"] == 0
    assert rows[-1]["charges"] == 3000
    assert rows[-1]["left"] == pytest.approx(1 - 450 / 1000)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.1])
def test_nobody_guesses_better_than_is_said(epsilon, delta):
    """Randomized response that fails with probability delta is as easy to guess as any mechanism, and no easier."""
    right = delta + (1 - delta) * math.exp(epsilon) / (1 + math.exp(epsilon))
    bound = guess_bound(Amounts(epsilon, delta))
    assert bound >= right - 1e-12
    assert bound <= right + 1e-12


@pytest.mark.parametrize("rho", [1e-4, 0.01, 0.1, 0.5, 2.0])
def test_nobody_guesses_better_under_rho_than_is_said(rho):
    """The Gaussian mechanism of sensitivity 1 and variance 1 / (2 rho), by the best test there is."""
    deviation = math.sqrt(1 / (2 * rho))
    right = 0.5 * (1 + math.erf(0.5 / deviation / math.sqrt(2)))
    assert right <= guess_bound(ConcentratedAmounts(rho, 0.0)) < 1.0
    assert guess_bound(ConcentratedAmounts(rho, 0.01)) > guess_bound(ConcentratedAmounts(rho, 0.0))


@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 1.0, 5.3, 10.0, 100.0, 1e6])
def test_factors_and_chances_are_rounded_toward_more_loss(epsilon):
    text = " ".join(promise(Amounts(epsilon, 3.3e-7), "one row", "replace"))
    factor = re.search(r"more than ([\d,.]+) times", text)
    assert factor is None or float(factor[1].replace(",", "")) >= math.exp(epsilon)
    for delta in (1e-6, 3.3e-7, 0.5, 0.07, 1e-18):
        told = re.search(r"one in ([\d,]+)", chance_words(delta))
        assert told is None or 1 / float(told[1].replace(",", "")) >= delta * (1 - 1e-9)


@pytest.mark.parametrize("ends", [(0, 1e-300), (-1e300, 1e300), (5, 5), (0, 0), (1e15, 1e15 + 1), (-3, 0.001)])
def test_ticks_enclose_the_numbers(ends):
    ticks = round_ticks(*map(float, ends))
    assert ticks[0] <= ends[0]
    assert ticks[-1] >= ends[1]
    assert 2 <= len(ticks) <= 7


class TestPlannedErrors:
    def plan(self, **more):
        frame = pl.DataFrame({"k": ["a", "b"] * 5, "v": [1.0, 2.0] * 5})
        keys = frame.select("k").head(2)
        asked = {"n": dpf.count(), "s": dpf.sum("v", bounds=(0, 9)), "privacy_unit": "row", "epsilon": 1.0, **more}
        return dpf.plan(frame, "k", keys=keys, **asked)

    def rows(self, chart):
        return chart.to_dict()["data"]["values"]

    def test_errors_are_those_of_plans(self, tmp_path):
        pytest.importorskip("vl_convert")
        plan, budgets = self.plan(), [0.1, 1.0, 4.0]
        rows = self.rows(plan.plot_error(tmp_path / "errors.png", epsilon=budgets))
        assert {row["query"] for row in rows} == {"n", "s"}
        for row in rows:
            error = self.plan(epsilon=row["budget"]).error().filter(query=row["query"])["one"].item()
            assert row["error"] == pytest.approx(error)
        assert self.rows(plan.plot_error())[0]["budget"] == 0.1
        assert "not run" in repr(plan)

    def test_rho_workloads_and_wishes(self):
        pytest.importorskip("altair")
        cells = {"n": None, "s": None, "workload": dpf.workloads.prefix(2)}
        asked = {name: given for name, given in cells.items() if given is not None}
        frame = pl.DataFrame({"k": ["a", "b"]})
        cells = dpf.plan(frame, "k", keys=frame, privacy_unit="row", rho=0.1, **asked)
        errors = [row["error"] for row in self.rows(cells.plot_error(rho=[0.01, 1]))]
        assert errors[0] == pytest.approx(10 * errors[1], rel=0.2)
        wished = self.plan(epsilon=None, error={"n": 10, "s": 50})
        assert len(self.rows(wished.plot_error())) == 18
        with pytest.raises(ParameterError, match="rho must be left out for a plan by epsilon"):
            self.plan().plot_error(rho=[0.1])

    def test_what_is_not_known_beforehand_is_refused(self):
        pytest.importorskip("altair")
        frame = pl.DataFrame({"k": ["a", "b"]})
        asked = {"keys": frame, "workload": dpf.workloads.prefix(2), "strategy": "adaptive", "epsilon": 1}
        with pytest.raises(ParameterError, match="before the data are seen"):
            dpf.plan(frame, "k", privacy_unit="row", **asked).plot_error()


@pytest.mark.parametrize("third", [Fraction(1, 3), Fraction(2, 3), Fraction(123_456_789_012_345, 10**15)])
def test_what_is_spent_is_shown_rounded_up_and_what_is_left_down(tmp_path, third):
    """On every page and line: nobody reads a smaller loss than was paid, or more than is left."""
    ledger = dpf.Ledger(epsilon=1, dataset="trips")
    made = dpf.estimate_histogram([3, 4], epsilon=third, ledger=ledger)
    paid, scale = Fraction(math.floor(third * 10**18), 10**18), 10**12
    up, down = (f"{end / scale:.12g}" for end in (math.ceil(paid * scale), math.floor((1 - paid) * scale)))
    assert (str(ledger.spent), str(ledger.remaining)) == (f"epsilon {up}, delta 0", f"epsilon {down}, delta 0")
    page = read(ledger.write_report(tmp_path / "ledger.html"))
    released = read(made.report(tmp_path / "page.html"))
    above, below = math.ceil(paid * 1000) / 10, math.floor((1 - paid) * 1000) / 10
    for text in (page, released):
        assert up in text
        assert down in text
        assert f"{below:g}%" in text
    assert f"Spent {above:g}%" in page
    assert f"{above:g}% spent" in ledger._repr_html_()


def test_no_page_rounds_a_budget_by_itself():
    """What shows amounts goes through `amount_text`, `percent_above` and `percent_below`."""
    home = Path(dpf.__file__).parent
    shown = re.compile(r"\{[^{}]*\b(epsilon|rho|delta|divergence|spent|left)\b[^{}.]*:[.\d]*[g%]\}")
    files = [
        *home.glob("ledger/*.py"),
        *home.glob("pages/*.py"),
        home / "charts/lines.py",
        home / "accounting/budget.py",
    ]
    found = {path.name: shown.findall(path.read_text(encoding="utf-8")) for path in files}
    assert {name: lines for name, lines in found.items() if lines} == {}
