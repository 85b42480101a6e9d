"""dpfast domain: values and bins of files, by their schema, by what is declared, and by a private look."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import dpfast as dpf


@pytest.fixture(autouse=True)
def people(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pl.DataFrame(
        {
            "sex": ["f", "m"] * 1_000,
            "age": [place % 90 for place in range(2_000)],
            "works": [True, False] * 1_000,
            "day": pl.Series(range(2_000)).cast(pl.Int32).cast(pl.Date),
        }
    )
    frame.write_parquet("people.parquet")


PRIVATE = ("--private", "--epsilon", "300", "--delta", "1e-9", "--ledger", "ledger.db", "--budget-epsilon", "300")
BUDGET = (*PRIVATE, "--budget-delta", "1e-6")


def test_a_private_domain_is_what_synthesize_reads(run):
    result = run("domain", "people.parquet", *BUDGET, "--number", "4", "--out", "domain.json")
    assert result.exit_code == 0, result.output
    assert "charged ledger.db" in result.output
    document = json.loads(Path("domain.json").read_text())
    assert sorted(document["sex"]) == ["f", "m"]
    assert document["works"] == [False, True]
    assert len(document["age"]["bins"]) >= 4
    made = run(
        *("synthesize", "people.parquet", "--columns", "sex,age,works,day", "--domain", "domain.json"),
        *("--outside", "null", "--epsilon", "5", "--ledger", "other.db", "--budget-epsilon", "5"),
        *("--rows", "3000", "--out", "made.parquet"),
    )
    assert made.exit_code == 0, made.output
    records = pl.read_parquet("made.parquet")
    assert records.height == 3_000
    assert records.schema == {"sex": pl.String, "age": pl.Int64, "works": pl.Boolean, "day": pl.Date}


def test_what_is_declared_and_said_by_the_schema_costs_nothing(run):
    given = ("--columns", "works,sex,age", "--values", "sex:f,m", "--bins", "age:0,30,60")
    result = run("domain", "people.parquet", *given, "--out", "domain.json")
    assert result.exit_code == 0, result.output
    assert json.loads(Path("domain.json").read_text()) == {
        "works": [False, True],
        "sex": ["f", "m"],
        "age": {"bins": [0, 30, 60]},
    }
    result = run("domain", "people.parquet", *given, "--out", "other.json", "--json")
    assert json.loads(result.stdout)["columns"]["sex"] == ["f", "m"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "d.json"], "--private"),
        (["--out", "d.json", "--epsilon", "1"], "--private, which is missing"),
        (["--out", "d.json", "--private"], "--private needs --ledger"),
        (["--out", "d.csv", *BUDGET], "must end in one of .json"),
        (["--out", "d.json", *BUDGET, "--columns", "none such"], "none such"),
        (["--out", "d.json", *BUDGET, "--number", "0"], "--number must be a whole number from 1 to 1000"),
        (["--out", "d.json", *BUDGET, "--listed", "nobody"], "nobody"),
        (["--out", "d.json", *BUDGET[:-4], "--budget-epsilon", "1"], "epsilon"),
    ],
)
def test_mistakes_cost_nothing(run, arguments, message):
    result = run("domain", "people.parquet", *arguments)
    assert result.exit_code in (2, 3, 4)
    assert message in result.output
    assert len(result.output.strip().splitlines()) == 1
    if result.exit_code != 3:
        # What cannot be is found before a ledger is created.
        assert not Path("ledger.db").exists()
    else:
        assert dpf.Ledger.open("ledger.db").spent.epsilon == 0


def test_durations_come_back(run):
    """A found bin's edges are written as 3600s, and read as durations again."""
    waits = pl.DataFrame({"wait": pl.Series([60 * place for place in range(2_000)]) * 1_000_000})
    waits.with_columns(pl.col("wait").cast(pl.Duration("us"))).write_parquet("waits.parquet")
    result = run("domain", "waits.parquet", *BUDGET, "--number", "4", "--out", "domain.json")
    assert result.exit_code == 0, result.output
    edges = json.loads(Path("domain.json").read_text())["wait"]["bins"]
    assert all(edge.endswith("s") for edge in edges)
    made = run(
        *("synthesize", "waits.parquet", "--columns", "wait", "--domain", "domain.json", "--epsilon", "5"),
        *("--ledger", "other.db", "--budget-epsilon", "5", "--rows", "30", "--out", "made.parquet"),
    )
    assert made.exit_code == 0, made.output
    assert pl.read_parquet("made.parquet").schema == {"wait": pl.Duration("us")}
