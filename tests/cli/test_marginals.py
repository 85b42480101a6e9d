"""dpfast marginals: counts of all pairs of columns, with errors that are shown before anything is charged."""

from __future__ import annotations

import json

import polars as pl
import pytest

from dpfast.synthesis.residuals.marginals import MarginalsRelease

from .conftest import one_line

ASKED = ["trips.parquet", "--columns", "city,hour", "--values", "city:Oslo,Rome,Bonn,Graz", "--bins", "hour:0,12,24"]
BUDGET = ["--epsilon", "8", "--delta", "1e-9"]
LEDGER = ["--ledger", "ledger.db", "--budget-epsilon", "20", "--budget-delta", "1e-6"]


def test_counts_are_near_the_data(folder, run, trips):
    """Deviations are about 1: cells are within 10 of the data except with probability 1e-20."""
    result = run("marginals", *ASKED, *BUDGET, *LEDGER, "--workload", "city,hour", "--workload", "marginals:1",
                 "--out", "made.parquet")  # fmt: skip
    assert (result.exit_code, result.stderr) == (0, "")
    assert "wrote made.parquet: 14 counts of 3 marginals" in result.stdout
    assert "charged ledger.db (entry 1): epsilon 8, delta 1e-09" in result.stdout
    made = pl.read_parquet("made.parquet")
    assert made.columns == ["marginal", "city", "hour", "count", "deviation"]
    for city, hour, count in made.filter(marginal="city, hour").select("city", "hour", "count").iter_rows():
        true = trips.filter(pl.col("city") == city, pl.col("hour").is_between(hour, hour + 11)).height
        assert abs(count - true) < 10
    assert made.filter(marginal="hour")["city"].null_count() == 2


def test_errors_are_shown_before_anything_is_charged(folder, run):
    result = run("marginals", *ASKED, *BUDGET, "--explain")
    assert result.exit_code == 0, result.stderr
    assert "1 marginal of 2 columns, 8 counts" in result.stdout
    assert "city, hour (8 cells)" in result.stdout
    assert not (folder / "ledger.db").exists()


def test_files_that_differ_are_named(folder, run, trips):
    (folder / "g").mkdir()
    for name, part in (("1", trips), ("2", trips), ("3", trips.drop("hour"))):
        part.write_parquet(folder / "g" / f"{name}.parquet")
    asked = ["g/*.parquet", *ASKED[1:], *BUDGET, *LEDGER]
    private = ["g/*.parquet", "--columns", "city,hour", "--private", "--epsilon", "1", *LEDGER, "--out", "made.json"]
    for result in (
        run("marginals", *asked, "--out", "made.parquet"),
        run("synthesize", *asked, "--out", "made.parquet"),
        run("domain", *private),
    ):
        assert "the column 'hour' is missing from the file" in one_line(result)
        assert "3.parquet" in one_line(result)
    assert not (folder / "ledger.db").exists()


def test_pairs_that_are_left_out_are_said(folder, run):
    pl.DataFrame({"a": [1, 2], "b": [3, 4]}).write_parquet("wide.parquet")
    edges = ",".join(map(str, range(3001)))
    result = run("marginals", "wide.parquet", "--columns", "a,b", "--bins", f"a:{edges}", "--bins", f"b:{edges}",
                 *BUDGET, *LEDGER, "--out", "made.parquet")  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert "left out: 1 pair of more than 4,194,304 cells: ['a and b']" in result.stdout
    assert pl.read_parquet("made.parquet")["marginal"].unique(maintain_order=True).to_list() == ["a", "b"]


def test_running_sums_and_ranges_are_asked_along_columns(folder, run, trips):
    """Deviations are about 1: sums are within 10 of the data except with probability 1e-20."""
    result = run("marginals", *ASKED, *BUDGET, *LEDGER, "--workload", "city,hour:prefix", "--workload", "city:ranges",
                 "--workload", "marginals:1", "--out", "made.parquet")  # fmt: skip
    assert (result.exit_code, result.stderr) == (0, "")
    assert "wrote made.parquet: 24 answers of 4 marginals" in result.stdout
    made = pl.read_parquet("made.parquet")
    ends = ["city_lower", "city_upper"]
    assert made.columns == ["city_cell", "hour_lower", "hour_upper", *ends, "hour_cell", "answer", "deviation"]
    assert made["deviation"].is_between(0.1, 3).all()
    for cell, upper, answer in made[:8].select("city_cell", "hour_upper", "answer").iter_rows():
        city = ["Oslo", "Rome", "Bonn", "Graz"][cell]
        assert abs(answer - trips.filter(pl.col("city") == city, pl.col("hour") < 12 * upper).height) < 10
    explained = run("marginals", *ASKED, *BUDGET, "--explain", "--workload", "hour:prefix")
    assert "1 marginal of 2 columns, 2 queries" in explained.stdout


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (["--rho", "1"], "rho"),
        ([], "missing option '--epsilon'"),
        ([*BUDGET, "--workload", "marginals:3"], "from 1 to 2"),
        ([*BUDGET, "--workload", "city,none"], "--workload names 'none', which --columns does not"),
        ([*BUDGET, "--workload", "city:sums"], "must ask for a column as age, age:prefix or age:ranges"),
        ([*BUDGET, "--workload", "city,city:prefix"], "--workload must be different columns"),
        ([*BUDGET, "--workload", "none:prefix"], "must be marginals:K"),
        ([*BUDGET, "--workload", "city,none:prefix"], "--workload names 'none', which --columns does not"),
        ([*BUDGET, "--neighbors", "replace"], "--neighbors must be"),
    ],
)
def test_mistakes_cost_nothing(folder, run, said, words):
    result = run("marginals", *ASKED, *said, *LEDGER, "--out", "made.csv")
    assert result.exit_code != 0
    assert words in one_line(result)
    assert not (folder / "made.csv").exists()


def test_fitted_counts_are_nonnegative_and_say_what_they_are(folder, run):
    """Of two columns and their parts a tree has room, of three pairs none: the line says which it is."""
    asked = ["trips.parquet", "--columns", "city,hour,fare", *ASKED[3:], "--bins", "fare:0,10,20,90"]
    result = run("marginals", *asked, *BUDGET, *LEDGER, "--fit", "--out", "made.parquet")
    assert result.exit_code == 0, result.stderr
    assert "approximate: locally consistent, its marginals may belong to no table" in result.stdout
    made = pl.read_parquet("made.parquet")
    assert made.columns == ["marginal", "city", "hour", "fare", "count"]
    assert made["count"].min() >= 0.0
    sums = made.group_by("marginal").agg(pl.col("count").sum())["count"].to_list()
    assert max(sums) - min(sums) < 1.0


def test_what_is_paid_for_is_written_when_the_fit_is_stopped(folder, run, monkeypatch):
    def stopped(*arguments, **keywords):
        raise KeyboardInterrupt

    monkeypatch.setattr(MarginalsRelease, "fit", stopped)
    result = run("marginals", *ASKED, *BUDGET, *LEDGER, "--fit", "--out", "made.parquet")
    assert result.exit_code != 0
    assert "the fit was stopped: these are the counts as they were measured, which are paid for" in result.stdout
    assert pl.read_parquet("made.parquet").columns == ["marginal", "city", "hour", "count", "deviation"]


def test_a_fit_of_one_marginal_belongs_to_a_table(folder, run):
    result = run("marginals", *ASKED, *BUDGET, *LEDGER, "--fit", "--out", "made.csv", "--json")
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)["fit"]
    assert (told["approximate"], told["residual"] < 1.0) == (False, True)
    assert "belong to a table" in told["guarantee"]
