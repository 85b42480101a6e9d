"""Pages about what synthesis leaves: records, estimates, models and marginals."""

from __future__ import annotations

import itertools
import json
import re
from functools import cache

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.pages.compared import Compared, compared_figures

from .released import EVIL, NAMES, rows
from .test_pages import Tags, read


@cache
def domain():
    values = [name for name in dict.fromkeys(NAMES) if name is not None]
    return dpf.Domain({"k": values, EVIL: 3, "v": dpf.bins("v", [-1, 0, 0.5, 2])}, nulls=["k"])


def people():
    return rows().select("k", pl.col("city of & day").alias(EVIL), "v")


def ledger(accountant="basic"):
    return dpf.Ledger(epsilon=9, delta=1e-5, dataset=EVIL, accountant=accountant)


def records(**more):
    return dpf.synthesize(people(), domain(), **{"epsilon": 1.0, "ledger": ledger(), "rows": 50, **more})


def cells(**more):
    return dpf.estimate_histogram([900, 20, 0, 310], epsilon=1.0, **more)


def fitted():
    """Return marginals that were measured elsewhere, fitted."""
    counts = {names: np.full([domain().shape[domain().names.index(name)] for name in names], 7.5) for names in pairs()}
    return dpf.fit_marginals(domain(), counts, 3.0)


def pairs():
    return list(itertools.combinations(domain().names, 2))


RESULTS = {
    "records": records,
    "records of a model": lambda: records(delta=1e-7),
    "records by rho": lambda: records(epsilon=None, rho=0.1, ledger=ledger("zcdp")),
    "records of one column": lambda: dpf.synthesize(
        people(), dpf.Domain({"v": dpf.bins("v", [0, 1])}), epsilon=1.0, ledger=ledger()
    ),
    "a model": lambda: records(delta=1e-7, ledger=ledger("rdp")).estimate,
    "a model of rare values": lambda: dpf.synthesize(
        pl.DataFrame({"a": [1] * 900, "b": [2] * 900}),
        dpf.Domain({"a": 50, "b": 50}),
        [("a", "b")],
        epsilon=0.5,
        rounds=3,
        ledger=ledger(),
    ),
    "an estimate": lambda: cells(ledger=ledger()),
    "an estimate without a ledger": cells,
    "an estimate by rounds": lambda: dpf.mwem(
        np.arange(8), dpf.workloads.prefix(8), epsilon=1.0, rounds=3, pay="by_round", ledger=ledger()
    ),
    "an estimate of answers": lambda: dpf.projection_mechanism(
        np.arange(8), dpf.workloads.all_range(8), epsilon=1.0, delta=1e-7, ledger=ledger()
    ),
    "marginals": lambda: dpf.release_marginals(people(), domain(), epsilon=1.0, delta=1e-7, ledger=ledger()),
    "fitted marginals": lambda: dpf.release_marginals(
        people(), domain(), epsilon=1.0, delta=1e-7, ledger=ledger()
    ).fit(),
    "fitted marginals without a ledger": fitted,
    "marginals by Laplace noise": lambda: dpf.release_marginals(people(), domain(), epsilon=1.0, ledger=ledger()),
}


@pytest.mark.parametrize("kind", RESULTS)
def test_every_result_of_synthesis_has_a_page(kind, tmp_path):
    made = RESULTS[kind]()
    page = made.report(tmp_path / "page.html")
    text = read(page)
    for said in ("What is promised", "What to keep in mind", "Budget", "How it was made", "Versions"):
        assert said in text
    assert ("Left afterwards" in text) == ("without" not in kind and "by rounds" not in kind)
    assert "nan" not in text.lower().split()
    assert re.findall(r"(?<![\d.,])1 (?!bins)[a-z]+s\b", text.split("Versions")[0]) == []
    html = page.read_text()
    assert "<script" not in html
    assert "x" * 200 not in html
    assert len(html) < 300_000


def test_records_stand_beside_what_was_measured(tmp_path):
    made = records(delta=1e-7)
    text = read(made.report(tmp_path / "page.html"))
    assert isinstance(made.estimate, dpf.synthesis.graphical.estimate.ModelEstimate)
    for said in ("A few of the records", "Measured, and synthetic", "How far off other counts may be", "(null)"):
        assert said in text
    errors = made.estimate.errors()
    assert errors.height == 3
    assert text.count(" yes ") + text.count(" no ") >= 3
    # Every set once, however often it was measured.
    assert len(re.findall(r'<h3 dir="auto">', (tmp_path / "page.html").read_text())) <= 6


def test_reading_a_page_draws_no_records_but_ten(tmp_path):
    """Records may be very many: those of the object are not drawn for its page."""
    made = records(rows=2**31)
    assert made.report(tmp_path / "page.html").stat().st_size < 200_000
    assert "frame" not in vars(made)


def test_what_was_not_measured_is_said(tmp_path):
    made = records(progress=lambda stage: not stage.startswith("1 of"), delta=1e-7, rounds=3)
    assert not made.estimate.complete
    assert "Not everything was measured that was paid for" in read(made.report(tmp_path / "page.html"))


def test_pages_of_very_many_figures_are_bounded(tmp_path):
    wide = dpf.Domain({f"column {number}": 4 for number in range(60)})
    frame = pl.DataFrame({name: [0, 1, 2, 3] * 50 for name in wide.names})
    asked = {"epsilon": 2.0, "delta": 1e-9, "ledger": dpf.Ledger(epsilon=2, delta=1e-9)}
    made = dpf.synthesize(frame, wide, rounds=15, **asked)
    assert made.report(tmp_path / "wide.html").stat().st_size < 600_000
    counts = np.zeros(10**6, np.int64)
    assert dpf.ahp(counts, epsilon=1.0).report(tmp_path / "cells.html").stat().st_size < 300_000


def test_the_number_of_records_that_was_measured_has_a_name(tmp_path):
    """It is a marginal over no column, of which no domain has labels."""
    asked = dpf.workloads.marginals(domain().shape, attributes=[(), (0,)])
    made = records(workload=asked, rounds=2)
    assert isinstance(made.estimate, dpf.synthesis.estimate.Estimate)
    assert "all of them" in read(made.report(tmp_path / "page.html"))


@pytest.mark.parametrize("cells", [1, 30, 31, 5000])
def test_counts_are_drawn_as_bars_or_on_a_band(cells):
    made = np.arange(cells, dtype=np.float64) - 3
    one = Compared("<b>", [f"<i>{cell}" for cell in range(cells)], made, made + 1, 2.5)
    drawn = "".join(compared_figures([one] * 14))
    assert Tags(drawn).opened == []
    assert "2 more have no chart here" in drawn
    assert ("<ol" in drawn) == (cells <= 30)
    assert len(drawn) < 14 * 60_000


def test_the_command_writes_a_page(tmp_path, monkeypatch):
    from click.testing import CliRunner

    from dpfast.cli.commands import main

    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"a": [0, 1] * 50, "b": ["x", "y"] * 50}).write_parquet("rows.parquet")
    asked = ["synthesize", "rows.parquet", "--columns", "a,b", "--values", "a:0,1", "--values", "b:x,y"]
    asked += ["--epsilon", "1", "--ledger", "l.db", "--budget-epsilon", "4", "--out", "made.csv"]
    for number, more in enumerate(([], ["--delta", "0"])):
        done = CliRunner().invoke(main, [*asked, *more, "--report", "page.html", "--overwrite", "--json"])
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["report"] == "page.html"
        assert "Spent before" in read(tmp_path / "page.html"), number
    (tmp_path / "page.html").write_text("what must not be lost")
    done = CliRunner().invoke(main, [*asked, "--report", "page.html", "--overwrite"])
    assert done.exit_code == 4
    assert "is no page" in done.output
    assert dpf.Ledger.open(tmp_path / "l.db").history().height in (4, 5, 6)
