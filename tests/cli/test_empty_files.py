"""Every command that reads private files ends well on files of no rows, of one, and of rows of nobody."""

from __future__ import annotations

import polars as pl
import pytest

import dpfast as dpf

from .conftest import BOUNDS, SCHEMA

DATA = ["empty", "one", "nobody"]
BUDGET = ["--ledger", "ledger.db", "--budget-epsilon", "9", "--budget-delta", "1e-5"]
QUERIES = ["--count", "--sum", "fare:0:50", "--mean", "fare:0:50", "--quantile", "fare:0:50:0.25,0.5"]
QUERIES += ["--mode", "hour:1,2,3"]


@pytest.fixture
def files(folder, trips):
    """Return a folder with few trips in every format, by how many they are, and with a column of an enum."""
    cities = pl.Enum(["SECRET-CITY", "Lima", *sorted(trips["city"].unique())])
    few = {
        "empty": trips.head(0),
        "one": trips.head(1),
        "nobody": trips.head(5).with_columns(rider=pl.lit(None, pl.Int64)),
    }
    for name, frame in {**few, "many": trips}.items():
        frame.write_parquet(f"{name}.parquet")
        frame.write_csv(f"{name}.csv")
        frame.with_columns(pl.col("city").cast(cities)).write_ipc(f"{name}.arrow")
    return folder


@pytest.mark.parametrize("suffix", ["parquet", "csv", "arrow"])
def test_releases_of_next_to_nothing(files, run, suffix):
    """Keys given or selected; the columns and dtypes are those of many rows."""
    schema = ["--schema", SCHEMA] if suffix == "csv" else []
    for i, keys in enumerate(([], ["--keys", "keys.parquet"])):
        delta = [] if keys else ["--delta", "1e-6"]
        asked = ["--by", "city", *QUERIES, *BOUNDS, *keys, *schema, "--epsilon", "1", *delta, *BUDGET, "--dataset", "d"]
        seen = {}
        for data in ["many", *DATA]:
            out = f"{data}-{i}.parquet"
            result = run("release", f"{data}.{suffix}", *asked, "--out", out)
            assert (result.exit_code, result.stderr) == (0, ""), data
            seen[data] = pl.read_parquet(out)
            assert seen[data].schema == seen["many"].schema
            assert seen[data]["city"].dtype == pl.String
            assert b"SECRET" not in (files / out).read_bytes()
        heights = [seen[data].height for data in DATA]
        assert heights == [3, 3, 3] if keys else (heights[0], heights[2]) == (0, 0)


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".arrow", ".json", ".ndjson"])
def test_no_category_of_an_enum_is_written(files, run, suffix):
    """In no format; a file of Arrow holds the dtypes, and an enum's dtype all of its values."""
    result = run("release", "many.arrow", "--by", "city", "--count", "--unit", "row", "--epsilon", "5",
                 "--delta", "1e-6", *BUDGET, "--out", f"out{suffix}")  # fmt: skip
    assert (result.exit_code, result.stderr) == (0, "")
    written = (files / f"out{suffix}").read_bytes()
    assert b"Oslo" in written
    assert b"SECRET" not in written
    assert "SECRET" not in result.stdout


def test_records_made_of_next_to_nothing(files, run):
    asked = [
        "--columns",
        "city,hour",
        "--values",
        "city:Oslo,Rome",
        "--bins",
        "hour:0,12,24",
        "--epsilon",
        "1",
        *BUDGET,
    ]
    for data in DATA:
        for rows in ([], ["--rows", "5"]):
            out = f"{data}-{len(rows)}.parquet"
            result = run("synthesize", f"{data}.parquet", *asked, *rows, "--dataset", "d", "--out", out)
            assert (result.exit_code, result.stderr) == (0, ""), data
            made = pl.read_parquet(out)
            assert made.schema == {"city": pl.String, "hour": pl.Int64}
            assert made.height == 5 or not rows


def test_tables_of_missing_values(files, run):
    dpf.Ledger.open("ledger.db", epsilon=9).close()
    table = pl.DataFrame({"name": ["a", "b"], "count": pl.Series([None, None], dtype=pl.Int64)})
    table.write_parquet("queries.parquet")
    asked = [
        "queries.parquet",
        "--value",
        "count",
        "--epsilon",
        "1",
        "--ledger",
        "ledger.db",
        "--out",
        "answers.parquet",
    ]
    result = run("answer", *asked)
    assert (result.exit_code, result.stderr) == (0, "")
    assert pl.read_parquet("answers.parquet")["answer"].null_count() == 0
