"""dpfast domain: values and bins of files, by their schema, by what is declared, and by a private look."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import dpfast as dpf

from .conftest import one_line


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
    assert "rows with other values: counted under null" in result.output
    assert (document["outside"], document["nulls"]) == ("null", [])
    columns = document["columns"]
    assert sorted(columns["sex"]) == ["f", "m"]
    assert columns["works"] == [False, True]
    assert len(columns["age"]["bins"]) >= 4
    made = run(
        *("synthesize", "people.parquet", "--columns", "sex,age,works,day", "--domain", "domain.json"),
        *("--epsilon", "5", "--ledger", "other.db", "--budget-epsilon", "5"),
        *("--rows", "3000", "--out", "made.parquet"),
    )
    assert made.exit_code == 0, made.output
    assert "left out" not in made.output
    records = pl.read_parquet("made.parquet")
    assert records.height == 3_000
    assert records.schema == {"sex": pl.String, "age": pl.Int64, "works": pl.Boolean, "day": pl.Date}


def test_what_is_declared_and_said_by_the_schema_costs_nothing(run):
    given = ("--columns", "works,sex,age", "--values", "sex:f,m", "--bins", "age:0,30,60")
    result = run("domain", "people.parquet", *given, "--out", "domain.json")
    assert result.exit_code == 0, result.output
    assert json.loads(Path("domain.json").read_text()) == {
        "outside": "null",
        "nulls": [],
        "columns": {"works": [False, True], "sex": ["f", "m"], "age": {"bins": [0, 30, 60]}},
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
        (["--out", "d.json", *BUDGET, "--nulls", "nobody"], "--nulls names 'nobody', which --columns does not"),
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


ASKED = ("synthesize", "people.parquet", "--columns", "sex,age", "--domain", "domain.json", "--epsilon", "500")
LEDGER = ("--ledger", "other.db", "--budget-epsilon", "2000", "--out", "made.csv", "--overwrite")
NULLED = {"columns": {"sex": ["f"], "age": {"bins": [0, 30]}}}


@pytest.mark.parametrize(
    ("document", "more", "rows", "told"),
    [
        ({"sex": ["f"], "age": {"bins": [0, 30]}}, [], 340, "values that are not declared in 2 columns, nulls in 2"),
        ({"outside": "drop", **NULLED}, [], 340, "values that are not declared in 2 columns, nulls in 2 columns"),
        ({"outside": "null", "nulls": [], **NULLED}, [], 2_000, None),
        ({"outside": "null", "nulls": [], **NULLED}, ["--outside", "drop"], 340, "left out are rows of 2 kinds"),
        ({"outside": "clamp", **NULLED}, [], 1_000, "not declared in 1 column, nulls in 2 columns; --outside null"),
        ({"outside": "drop", "nulls": ["sex"], **NULLED}, [], 340, "not declared in 2 columns, nulls in 1 column;"),
        ({"outside": "drop", "nulls": ["sex"], **NULLED}, ["--nulls", "sex,age"], 340, "rows of 1 kind, if"),
    ],
)
def test_a_file_says_what_becomes_of_other_values(run, document, more, rows, told):
    """At epsilon 500 the number of records is that of the rows that are counted, within a few."""
    Path("domain.json").write_text(json.dumps(document))
    made = run(*ASKED, *LEDGER, *more)
    assert made.exit_code == 0, made.output
    assert abs(pl.read_csv("made.csv").height - rows) <= 2
    assert ("left out" in made.output) == (told is not None)
    assert (told or "") in made.output


def test_a_column_may_have_the_name_of_a_setting(run):
    """An older file has columns alone: one of them may be called as what a newer file says beside its columns."""
    pl.DataFrame({"outside": ["a", "b"] * 50, "columns": [1, 2] * 50}).write_parquet("odd.parquet")
    given = ("synthesize", "odd.parquet", "--columns", "outside,columns", "--domain", "odd.json", "--epsilon", "50")
    columns = {"outside": ["a", "b"], "columns": [1, 2]}
    for document in (columns, {"outside": "null", "columns": columns}):
        Path("odd.json").write_text(json.dumps(document))
        made = run(*given, *LEDGER)
        assert made.exit_code == 0, made.output


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"outside": "away", **NULLED}, "must be drop, null or clamp, but was away"),
        ({"outside": "null"}, '"columns" of --domain'),
        ({"outside": "null", "nulls": ["job"], **NULLED}, '"nulls" of --domain'),
        ({"outside": "null", "nulls": 5, **NULLED}, '"nulls" of --domain'),
        ({"outside": "null", "null": ["sex"], **NULLED}, 'may hold "outside", "nulls" and "columns", but holds null'),
    ],
)
def test_a_file_that_says_what_cannot_be_is_refused(run, document, message):
    Path("domain.json").write_text(json.dumps(document))
    made = run(*ASKED, *LEDGER)
    assert made.exit_code == 2
    assert message in made.output
    assert not Path("other.db").exists()


def test_durations_come_back(run):
    """A found bin's edges are written as 3600s, and read as durations again."""
    waits = pl.DataFrame({"wait": pl.Series([60 * place for place in range(2_000)]) * 1_000_000})
    waits.with_columns(pl.col("wait").cast(pl.Duration("us"))).write_parquet("waits.parquet")
    result = run("domain", "waits.parquet", *BUDGET, "--number", "4", "--out", "domain.json")
    assert result.exit_code == 0, result.output
    edges = json.loads(Path("domain.json").read_text())["columns"]["wait"]["bins"]
    assert all(edge.endswith("s") for edge in edges)
    made = run(
        *("synthesize", "waits.parquet", "--columns", "wait", "--domain", "domain.json", "--epsilon", "5"),
        *("--ledger", "other.db", "--budget-epsilon", "5", "--rows", "30", "--out", "made.parquet"),
    )
    assert made.exit_code == 0, made.output
    assert pl.read_parquet("made.parquet").schema == {"wait": pl.Duration("us")}


@pytest.mark.parametrize("text", ["[" * 100_000, '{"sex": ["f"], "sex": ["m"], "age": {"bins": [0, 30]}}'])
def test_a_file_without_end_or_with_a_column_twice_is_refused(run, text):
    Path("domain.json").write_text(text)
    made = run(*ASKED, *LEDGER)
    assert made.exit_code != 0
    assert "cannot be read as JSON, with each name once" in one_line(made)
    assert not Path("other.db").exists()
