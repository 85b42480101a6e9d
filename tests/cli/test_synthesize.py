"""dpfast synthesize: records like those of files, from declared domains, charged to a ledger."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import date

import polars as pl
import pytest

import dpfast as dpf

from .conftest import one_line

COLUMNS = ["--columns", "city,hour"]
DOMAIN = [*COLUMNS, "--values", "city:Oslo,Rome,Bonn,Graz", "--bins", "hour:0,6,12,18,24"]
LEDGER = ["--ledger", "ledger.db", "--budget-epsilon", "4"]
ASKED = ["trips.parquet", *DOMAIN, "--epsilon", "2", *LEDGER]


@pytest.mark.statistical
def test_records_answer_as_the_data_do(folder, run, trips):
    """False-failure rate below 1e-12: records are as the estimate says, whose 16 cells have noise of scale 0.53.

    A city or a quarter of the day is off by 60 where four cells are off by 28 together, 50 scales.
    """
    result = run("synthesize", *ASKED, "--rows", "1200", "--out", "made.parquet")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0] == "wrote made.parquet: 1,200 records of 2 columns"
    assert lines[1].startswith("measured 1 of 1 marginals over 4 x 4 cells, each answer within ")
    assert lines[2] == "charged ledger.db (entry 1): epsilon 2, delta 0; left: epsilon 2, delta 0"
    made = pl.read_parquet("made.parquet")
    assert made.schema == {"city": pl.String, "hour": pl.Int64}
    true = trips.filter(pl.col("city").str.len_chars() == 4)
    for key in (pl.col("city"), (pl.col("hour") // 6).alias("quarter")):
        one, other = (frame.group_by(key).len().sort(pl.first())["len"].cast(pl.Int64) for frame in (made, true))
        assert (one - other).abs().max() < 60
    assert dpf.Ledger.open("ledger.db").history()["description"].str.contains("mwem on Marginals").all()


def test_undeclared_values_are_counted_under_null_or_left_out(folder, run):
    result = run("synthesize", *ASKED, "--outside", "null", "--neighbors", "replace", "--out", "made.csv")
    assert result.exit_code == 0, result.stderr
    assert "over 5 x 5 cells" in result.stdout
    made = pl.read_csv("made.csv")
    assert abs(made.height - 1201) <= 1
    assert set(made["city"]) - {None} == {"Oslo", "Rome", "Bonn", "Graz"}


@pytest.mark.parametrize("suffix", ["json", "parquet", "arrow"])
def test_a_domain_from_a_file(folder, run, suffix):
    if suffix == "json":
        held = {"city": ["Oslo", "Rome"], "hour": {"bins": [0, 12, 24]}, "other": [1]}
        (folder / "domain.json").write_text(json.dumps(held))
        shape = "2 x 2"
    else:
        table = pl.DataFrame({"city": ["Oslo", "Rome", "Oslo", "Bonn"], "hour": [1, 2, None, 1]})
        (table.write_parquet if suffix == "parquet" else table.write_ipc)(f"domain.{suffix}")
        shape = "3 x 2"
    given = [*COLUMNS, "--domain", f"domain.{suffix}", "--epsilon", "1", *LEDGER, "--out", "made.ndjson"]
    result = run("synthesize", "trips.parquet", *given)
    assert result.exit_code == 0, result.stderr
    assert f"over {shape} cells" in result.stdout


@pytest.mark.parametrize("kind", ["prefix", "ranges", "cells", "marginals:1"])
def test_workloads_of_one_column_from_csv(folder, run, kind):
    given = ["trips.csv", "--schema", "hour=int64", "--columns", "hour", "--bins", "hour:0,6,12,18,24"]
    result = run("synthesize", *given, "--workload", kind, "--epsilon", "1", *LEDGER, "--out", "-", "--rows", "7")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines()[0] == "hour"
    assert len(result.stdout.splitlines()) == 8
    assert "charged ledger.db" in result.stderr


def test_values_are_read_as_the_columns_type(folder, run):
    days = [date(2026, 1, day) for day in (1, 2, 3)]
    pl.DataFrame({"n": [3, 1, 7] * 50, "paid": [True, False, None] * 50, "day": days * 50}).write_parquet("few.parquet")
    values = ["--values", "n:1,3", "--values", "paid:true,false", "--values", "day:2026-01-01,2026-01-02"]
    asked = ["few.parquet", "--columns", "n,paid,day", *values, "--epsilon", "3", *LEDGER]
    result = run("synthesize", *asked, "--rows", "40", "--out", "made.parquet")
    assert result.exit_code == 0, result.stderr
    made = pl.read_parquet("made.parquet")
    assert made.schema == {"n": pl.Int64, "paid": pl.Boolean, "day": pl.Date}
    for wrong, kind in (("paid:yes", "Boolean"), ("day:today", "Date"), ("n:1.5", "Int64")):
        result = run("synthesize", *asked[:3], "--values", wrong, "--epsilon", "1", *LEDGER, "--out", "other.parquet")
        assert (result.exit_code, f"of the column's type {kind}" in one_line(result)) == (2, True)


def test_rho_and_charts(folder, run):
    pytest.importorskip("vl_convert")
    assert run("ledger", "create", "rho.db", "--epsilon", "3", "--delta", "1e-6", "--accountant", "zcdp").exit_code == 0
    asked = ["trips.parquet", *DOMAIN, "--rho", "0.04", "--ledger", "rho.db", "--rows", "5"]
    model = ["--impossible", "hour < 6"]
    for name, more in (("answers.png", []), ("errors.svg", ["--public"]), ("model.svg", model)):
        result = run("synthesize", *asked[:-2], "--rows", "5", "--out", f"{name}.csv", "--plot", name, *more)
        assert result.exit_code == 0, result.stderr
        assert (folder / name).stat().st_size > 1000
        assert "(entry " in result.stdout


def test_the_charge_comes_before_any_row_is_read(folder, run, monkeypatch):
    def count(self, *_):
        assert dpf.Ledger.open("ledger.db").spent.epsilon == 2
        raise dpf.errors.DpfastError("the data could not be read to its end")

    monkeypatch.setattr("dpfast.domain.counting.OpenRecords.count", count)
    result = run("synthesize", *ASKED, "--out", "made.csv")
    assert result.exit_code == 4
    assert "epsilon 2 were charged before and stay spent in ledger.db" in one_line(result)
    assert not (folder / "made.csv").exists()


def test_an_interrupt_ends_the_rounds_and_keeps_what_there_is(folder, run, monkeypatch):
    from dpfast.weights.marginal_model import MarginalModel

    replay = MarginalModel.replay

    def interrupted(self, sweeps):
        os.kill(os.getpid(), signal.SIGINT)
        replay(self, sweeps)

    monkeypatch.setattr(MarginalModel, "replay", interrupted)
    asked = ["trips.parquet", "--columns", "city,hour,rider", *DOMAIN[2:], "--bins", "rider:0,300,600"]
    result = run("synthesize", *asked, "--epsilon", "1", *LEDGER, "--out", "made.csv")
    assert result.exit_code == 0, result.stderr
    assert "measured 1 of 3 marginals" in result.stdout
    assert "ended early: what was not measured is paid for all the same" in result.stdout
    assert (folder / "made.csv").exists()


def test_a_pipe_sees_no_progress(folder, shell):
    result = shell("synthesize", *ASKED, "--out", "made.parquet")
    assert (result.returncode, result.stderr) == (0, "")


MISTAKES = [
    ([*DOMAIN], 2, "missing option '--epsilon'"),
    ([*DOMAIN, "--epsilon", "0"], 2, "--epsilon must be"),
    ([*DOMAIN, "--epsilon", "1", "--rounds", "0"], 2, "--rounds must be a whole number"),
    ([*DOMAIN, "--epsilon", "1", "--rows", "-1"], 2, "--rows must be a whole number"),
    ([*DOMAIN, "--epsilon", "9"], 3, "nothing was charged"),
    ([*DOMAIN, "--rho", "1"], 2, "--rho must be left out"),
    ([*COLUMNS, "--epsilon", "1"], 2, "the values of city, hour are not declared"),
    ([*DOMAIN, "--epsilon", "1", "--columns", "city,city"], 2, "--columns must be different columns"),
    ([*DOMAIN, "--epsilon", "1", "--values", "rider:1"], 2, "--values names 'rider', which --columns does not"),
    ([*DOMAIN, "--epsilon", "1", "--values", "city"], 2, "--values city cannot be read"),
    ([*DOMAIN, "--epsilon", "1", "--values", "hour:1,2"], 2, "twice"),
    ([*COLUMNS, "--values", "city:Oslo,Oslo", "--bins", "hour:0,9", "--epsilon", "1"], 2, "each once"),
    ([*COLUMNS, "--values", "city:Oslo", "--bins", "hour:9,0", "--epsilon", "1"], 2, "increasing"),
    ([*COLUMNS, "--values", "city:Oslo", "--bins", "hour:a,b", "--epsilon", "1"], 2, "increasing"),
    (
        [*COLUMNS, "--values", "city:Oslo", "--values", "hour:a,b", "--epsilon", "1"],
        2,
        "of the column's type Int64",
    ),
    (
        [*COLUMNS, "--bins", "city:0,1", "--bins", "hour:0,9", "--epsilon", "1"],
        2,
        "'city' must hold integers",
    ),
    (["--columns", "town", "--values", "town:Oslo", "--epsilon", "1"], 2, "which the data lacks"),
    ([*DOMAIN, "--epsilon", "1", "--workload", "marginals:3"], 2, "marginals:K with K from 1 to 2"),
    ([*DOMAIN, "--epsilon", "1", "--workload", "best"], 2, "--workload best is not known"),
    ([*DOMAIN, "--epsilon", "1", "--workload", "prefix"], 2, "is for one column"),
    ([*DOMAIN, "--epsilon", "1", "--neighbors", "replace"], 2, "--outside null"),
    ([*DOMAIN, "--epsilon", "1", "--public"], 2, "--public is for --plot"),
    ([*DOMAIN, "--epsilon", "1", "--domain", "none.json"], 4, "there is no file 'none.json'"),
    ([*DOMAIN, "--epsilon", "1", "--domain", "trips.csv"], 2, "must end in one of .json"),
    ([*DOMAIN, "--epsilon", "1", "--domain", "bad.json"], 4, "cannot be read as JSON"),
    ([*DOMAIN, "--epsilon", "1", "--domain", "odd.json"], 2, "must have values"),
    ([*DOMAIN, "--epsilon", "1", "--domain", "bad.parquet"], 4, "cannot be read as .parquet"),
    ([*DOMAIN, "--epsilon", "1", "--plot", "chart.txt"], 2, "--plot 'chart.txt' must end in"),
    ([*DOMAIN, "--epsilon", "1", "--schema", "city=str"], 2, "--schema must be left out"),
]


@pytest.mark.parametrize(("arguments", "code", "told"), MISTAKES)
def test_a_mistake_is_one_line_and_spends_nothing(folder, run, arguments, code, told):
    dpf.Ledger.open("ledger.db", 4.0).close()
    (folder / "bad.json").write_text("{")
    (folder / "bad.parquet").write_text("{")
    (folder / "odd.json").write_text('{"city": {"edges": [1]}}')
    result = run("synthesize", "trips.parquet", *arguments, "--ledger", "ledger.db", "--out", "made.csv")
    assert told in one_line(result), result.stderr
    assert result.exit_code == code
    assert dpf.Ledger.open("ledger.db").spent.epsilon == 0
    assert not (folder / "made.csv").exists()


def test_files_that_cannot_be(folder, run):
    for arguments, code, told in (
        (["none.parquet", *DOMAIN, "--epsilon", "1", *LEDGER, "--out", "made.csv"], 4, "existing file"),
        (
            ["trips.csv", *DOMAIN, "--epsilon", "1", *LEDGER, "--out", "made.csv"],
            2,
            "--schema carrier=str,dep_delay=float64",
        ),
        ([*ASKED, "--out", "trips.parquet", "--overwrite"], 4, "is read or written by this command"),
        (
            ["trips.parquet", *DOMAIN, "--epsilon", "1", "--ledger", "no.db", "--out", "made.csv"],
            4,
            "there is no ledger",
        ),
    ):
        result = run("synthesize", *arguments)
        assert (result.exit_code, told in one_line(result)) == (code, True), result.stderr
    assert not (folder / "ledger.db").exists()


def test_a_process_that_is_killed_while_it_reads_has_paid(folder):
    """No row was read before the charge, which outlives the process; the next one finds the ledger in order."""
    killed = (
        "import os, signal; from dpfast.cli import main; import dpfast.synthesis.fitted.mwem as mwem; "
        "mwem.Rounds.run = lambda *_: os.kill(os.getpid(), signal.SIGKILL); main()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", killed, "synthesize", *ASKED, "--out", "made.csv"], check=False, timeout=1200
    )
    assert ended.returncode == -signal.SIGKILL
    assert not (folder / "made.csv").exists()
    with dpf.Ledger.open("ledger.db") as ledger:
        assert (ledger.spent.epsilon, ledger.remaining.epsilon) == (2, 2)


def test_a_domain_of_too_many_cells_for_memory_gets_a_model(folder, run):
    asked = ["trips.parquet", *COLUMNS, "--domain", "large.json", "--epsilon", "1", *LEDGER, "--out", "made.csv"]
    axes = {"city": [f"city {number}" for number in range(20_000)], "hour": {"bins": list(range(20_001))}}
    (folder / "large.json").write_text(json.dumps(axes))
    for more, message in (
        (["--max-megabytes", "0.1"], "--max-megabytes must be at least 0.32"),
        (["--plot", "errors.png", "--public"], "--public is for the answers of a histogram, but a model is made"),
        (["--workload", "cells"], "--workload cells is not for a model"),
    ):
        result = run("synthesize", *asked, *more)
        assert result.exit_code == 2
        assert message in one_line(result)
        assert not (folder / "ledger.db").exists()
    result = run("synthesize", *asked, "--rows", "50", "--rounds", "2")
    assert result.exit_code == 0, result.output
    assert "a model of" in result.output
    assert pl.read_csv(folder / "made.csv").shape == (50, 2)


def test_more_sets_of_columns_than_can_be_listed_are_refused(folder, run):
    names = [f"x{place}" for place in range(40)]
    pl.DataFrame({name: [0, 1] for name in names}).write_parquet("wide.parquet")
    (folder / "wide.json").write_text(json.dumps({name: [0, 1] for name in names}))
    asked = ["wide.parquet", "--columns", ",".join(names), "--domain", "wide.json", "--workload", "marginals:12"]
    result = run("synthesize", *asked, "--epsilon", "1", *LEDGER, "--out", "made.csv")
    assert result.exit_code == 2
    assert "--workload marginals:12 names more than 1,000,000 sets of columns" in one_line(result)
    assert not (folder / "ledger.db").exists()


def test_combinations_that_no_record_is(folder, run):
    """By a filter and by a table; --nulls makes nulls a category that they may speak of."""
    pl.DataFrame({"city": ["Rome"], "hour": [12]}).write_parquet("never.parquet")
    said = ["--impossible", 'city == "Oslo" and hour < 6', "--impossible", "never.parquet", "--nulls", "city"]
    result = run("synthesize", *ASKED, *said, "--rows", "1000", "--out", "made.parquet")
    assert (result.exit_code, result.stderr) == (0, "")
    made = pl.read_parquet("made.parquet")
    assert made.height == 1000
    assert made.filter(city="Oslo")["hour"].min() >= 6
    assert made.filter((pl.col("city") == "Rome") & pl.col("hour").is_between(12, 17)).is_empty()


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (["--impossible", "hour < 7"], "cuts the bin from 6 to 12"),
        (["--impossible", "hour <"], "cannot be read at character"),
        (["--impossible", "none.parquet"], "there is no file 'none.parquet'"),
        (["--impossible", "hour < 6 or hour >= 6"], "false of some record"),
        (["--impossible", "hour > 1000"], "no declared value of hour passes hour > 1000"),
        (["--impossible", 'city == "x" and hour < 6'], "no declared value of city passes city == 'x'"),
        (["--impossible", "hour < 6", "--plot", "chart.png", "--public"], "leave --public out"),
        (["--nulls", "none"], "--nulls names 'none', which --columns does not"),
    ],
)
def test_mistakes_about_the_impossible_cost_nothing(folder, run, said, words):
    result = run("synthesize", *ASKED, *said, "--out", "made.parquet")
    assert result.exit_code != 0
    assert words in one_line(result)
    assert not (folder / "ledger.db").exists()


def test_values_beyond_the_codes_are_clamped(folder, run, trips):
    """Hours from 12 on are in the last of two bins; at epsilon 50 two cities of them are off by less than 10."""
    asked = [
        "--columns",
        "hour",
        "--bins",
        "hour:0,6,12",
        "--epsilon",
        "50",
        "--ledger",
        "l.db",
        "--budget-epsilon",
        "50",
    ]
    heights = {}
    for outside in ("drop", "clamp"):
        result = run("synthesize", "trips.parquet", *asked, "--outside", outside, "--out", f"{outside}.parquet")
        assert result.exit_code == 0, result.stderr
        heights[outside] = pl.read_parquet(f"{outside}.parquet").height
        (folder / "l.db").unlink()
    within = trips.filter(pl.col("hour") < 12).height
    assert abs(heights["drop"] - within) < 10
    assert abs(heights["clamp"] - trips["hour"].drop_nulls().len()) < 10
    result = run(
        "synthesize", "trips.parquet", *asked, "--outside", "clamp", "--neighbors", "replace", "--out", "n.csv"
    )
    assert "--neighbors replace needs --outside null" in one_line(result)


@pytest.mark.parametrize("more", [[], ["--delta", "1e-9"]], ids=["histogram", "model"])
def test_a_plan_reads_no_row_and_charges_nothing(folder, run, trips, monkeypatch, more):
    trips.write_parquet("trips.parquet")
    dpf.Ledger.open("ledger.db", epsilon=4.0, delta=1e-6).close()
    before = (folder / "ledger.db").read_bytes()

    def refused(*_, **__):
        raise AssertionError("a row was read")

    monkeypatch.setattr("dpfast.domain.counting.OpenRecords.count", refused)
    monkeypatch.setattr("dpfast.domain.counting.OpenRecords.count_marginals", refused)
    asked = ["synthesize", "trips.parquet", *DOMAIN, "--epsilon", "2", *more]
    for where in ([], ["--ledger", "ledger.db", "--out", "made.parquet"]):
        result = run(*asked, *where, "--explain")
        assert result.exit_code == 0, result.stderr
        assert result.stdout.startswith("records of 2 columns, 16 cells, from ")
        assert "charge: epsilon 2, " in result.stdout
    assert (folder / "ledger.db").read_bytes() == before
    assert not (folder / "made.parquet").exists()
    found = json.loads(run(*asked, "--explain", "--json").stdout)
    assert found["ledger"] is None
    assert found["ways"][0]["rounds"] >= 1
    assert "missing option '--ledger' or '--out'; give both, or --explain" in one_line(run(*asked))


def test_a_plan_is_for_what_its_ledger_adds_up(folder, run):
    dpf.Ledger.open("rho.db", epsilon=4.0, delta=1e-6, accountant="zcdp").close()
    result = run("synthesize", *ASKED[:-4], "--delta", "1e-9", "--ledger", "rho.db", "--explain")
    assert result.exit_code == 0, result.stderr
    assert 'in a ledger with accountant "zcdp"' in result.stdout
    assert "charge: rho 0.0" in result.stdout
