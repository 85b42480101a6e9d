"""Errors that are wished for, previews and intervals of a population on the command line."""

from __future__ import annotations

import json

import polars as pl
import pytest

from .conftest import BOUNDS, one_line

TRIPS = ["trips.parquet", "--by", "city", *BOUNDS]
KEYS = ["--keys", "keys.parquet"]
LEDGER = ["--ledger", "ledger.db", "--budget-epsilon", "5", "--budget-delta", "1e-5", "--out", "out.csv"]


def test_a_release_by_its_errors_is_charged_what_explain_says(folder, run):
    wished = [*TRIPS, *KEYS, "--count", "--mean", "fare:0:60", "--error", "count=40,fare_mean=3:300"]
    explained = json.loads(run("explain", *wished, "--json").stdout)
    assert "wished" in explained["text"]
    told = json.loads(run("release", *wished, *LEDGER, "--json").stdout)
    assert told["ledger"]["charged"]["epsilon"] == pytest.approx(explained["epsilon"])
    shown = pl.read_csv("out.csv")
    assert shown.columns[:3] == ["city", "count", "count_scale"]


def test_errors_may_be_said_one_by_one_and_counted_in_rho(folder, run):
    wished = [
        "explain",
        *TRIPS,
        *KEYS,
        "--count",
        "--sum",
        "fare:0:60",
        "--error",
        "count=40",
        "--error",
        "fare_sum=900",
    ]
    together = [*wished[:-4], "--error", "count=40,fare_sum=900"]
    assert run(*wished).stdout == run(*together).stdout
    assert json.loads(run(*wished, "--budget", "rho", "--json").stdout)["rho"] > 0
    assert json.loads(run(*wished, "--json").stdout)["rho"] is None


@pytest.mark.parametrize("accountant", ["basic", "zcdp", "rdp", "odometer"])
@pytest.mark.parametrize("keys", [KEYS, ["--delta", "1e-7"]], ids=["public", "selected"])
def test_errors_are_counted_as_the_ledger_counts(folder, run, accountant, keys):
    """A ledger that adds up rho is charged the least rho; and what is said of the budget goes before."""
    limits = [] if accountant == "odometer" else ["--epsilon", "9"]
    created = run("ledger", "create", "counts.db", "--accountant", accountant, *limits, "--delta", "1e-3")
    assert created.exit_code == 0, created.stderr
    wished = [*TRIPS, *keys, "--count", "--sum", "fare:0:60", "--error", "count=40,fare_sum=900"]
    ledger = ["--ledger", "counts.db"]
    explained = json.loads(run("explain", *wished, *ledger, "--json").stdout)
    assert (explained["rho"] is None) == (accountant == "basic")
    told = json.loads(run("release", *wished, *ledger, "--out", "out.csv", "--json").stdout)
    kind = "epsilon" if accountant == "basic" else "rho"
    limited = json.loads(run("explain", *wished, "--budget", kind, "--json").stdout)
    assert limited[kind] == explained[kind]
    assert told["ledger"]["accountant"] == accountant
    said = json.loads(run("explain", *wished, *ledger, "--budget", "epsilon:9", "--json").stdout)
    assert said["rho"] is None


def test_a_ledger_that_is_still_to_be_created_counts_epsilon(folder, run):
    wished = [*TRIPS, *KEYS, "--count", "--error", "count=40"]
    assert json.loads(run("explain", *wished, "--ledger", "none.db", "--json").stdout)["rho"] is None
    assert not (folder / "none.db").exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--error", "count=x"], "--error count=x cannot be read; write for example --error count=50"),
        (["--error", "50"], "--error 50 cannot be read"),
        (["--error", "count=5,count=6"], "--error names 'count' twice"),
        (["--error", "other=5"], "error must be made of 'count', 'fare_mean'"),
        (["--error", "count=5"], "also for 'fare_mean'"),
        (["--error", "count=5,fare_mean=3"], "write for example --error fare_mean=3:200"),
        (["--error", "count=5,fare_mean=30:200"], "error['fare_mean'] must be below half of the width"),
        (["--error", "count=5,fare_mean=3:200", "--epsilon", "1"], "epsilon must be left out"),
        (["--error", "count=5,fare_mean=3:200", "--budget", "0.001"], "of a cost within budget, epsilon 0.001"),
        (["--error", "count=5,fare_mean=3:200", "--budget", "x"], "--budget x cannot be read"),
        (["--error", "count=5,fare_mean=3:200", "--budget", "delta:1"], "--budget delta:1 cannot be read"),
        (["--budget", "1", "--epsilon", "1"], "--budget must be left out without --error"),
        ([], "missing option '--epsilon'"),
    ],
)
def test_wishes_that_make_no_sense_are_one_line_and_cost_nothing(folder, run, given, said):
    result = run("release", *TRIPS, *KEYS, "--count", "--mean", "fare:0:60", *given, *LEDGER)
    assert result.exit_code == 2
    assert said in one_line(result)
    assert not (folder / "ledger.db").exists()


def test_answers_have_the_errors_of_a_column(folder, run):
    pl.DataFrame({"n": [5, 6], "within": [30.0, 60.0]}).write_parquet("queries.parquet")
    assert run("ledger", "create", "ledger.db", "--epsilon", "1").exit_code == 0
    result = run(
        "answer",
        "queries.parquet",
        "--value",
        "n",
        "--error",
        "within",
        "--ledger",
        "ledger.db",
        "--out",
        "out.parquet",
    )
    assert result.exit_code == 0
    shown = pl.read_parquet("out.parquet")
    assert ((shown["answer_upper"] - shown["answer_lower"]) / 2).to_list() == [30.0, 60.0]


@pytest.mark.parametrize("keys", [KEYS, ["--delta", "1e-6"]])
def test_a_preview_charges_nothing_and_says_so(folder, run, keys):
    asked = ["preview", *TRIPS, *keys, "--count", "--epsilon", "1"]
    result = run(*asked, "--out", "out.csv", "--plot", "chart.png")
    assert result.exit_code == 0
    assert result.stdout.startswith("PREVIEW on public or made-up rows: no release, nothing was charged\n")
    assert (folder / "chart.png").stat().st_size > 0
    assert {"rows_cut", "missing", "rmse"} <= set(pl.read_csv("out.csv").columns)
    assert not list(folder.glob("*.db"))
    told = json.loads(run(*asked, "--rows", "50", "--made-up-units", "10", "--repeats", "2", "--json").stdout)
    assert told["preview"] is True
    assert told["of"].startswith("50 made-up rows of 10 units")


def test_a_sample_must_not_be_the_data(folder, run):
    asked = ["preview", *TRIPS, *KEYS, "--count", "--epsilon", "1", "--sample"]
    assert "--sample is one of FILES" in one_line(run(*asked, "trips.parquet"))
    pl.read_parquet("trips.parquet").head(100).write_parquet("public.parquet")
    assert "a public sample of 100 rows" in run(*asked, "public.parquet").stdout
    assert "rows must be left out beside a sample" in one_line(run(*asked, "public.parquet", "--rows", "5"))


def test_sizes_are_whole_numbers(folder, run):
    asked = ["preview", *TRIPS, *KEYS, "--count", "--epsilon", "1", "--sizes"]
    assert "in 3 groups" in run(*asked, "50,20,5").stdout
    assert "--sizes cannot be read" in one_line(run(*asked, "50,x"))
    assert "sizes must be 3" in one_line(run(*asked, "50,20"))


def test_a_release_has_the_intervals_of_a_population(folder, run):
    asked = [*TRIPS, *KEYS, "--count", "--epsilon", "1", "--interval", "population"]
    assert run("release", *asked, *LEDGER).exit_code == 0
    assert pl.read_csv("out.csv").columns[3:] == [
        f"count_{end}" for end in ("lower", "upper", "population_lower", "population_upper")
    ]


@pytest.mark.parametrize("option", ["--units", "--count"])
def test_a_number_is_no_name(folder, run, option):
    """Of ``preview --units 4000`` somebody thinks that 4,000 units are made up."""
    line = one_line(run("preview", *TRIPS, *KEYS, option, "4000", "--epsilon", "1"))
    assert f"{option} took the number 4000 for its name" in line
    assert "--made-up-units 4000" in line


def test_wishes_beyond_a_budget_are_told_in_options(folder, run):
    line = one_line(run("explain", *TRIPS, *KEYS, "--count", "--error", "count=0.5", "--budget", "0.1"))
    assert line.startswith("dpfast: --error must be of a cost within budget")
    assert line.endswith("or raise --budget")
