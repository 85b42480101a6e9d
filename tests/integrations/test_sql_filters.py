"""Rows that pass a filter are the same in every database as here, whatever they hold."""

from __future__ import annotations

import datetime
import math
import random

import polars as pl
import pytest

pytest.importorskip("duckdb")
pytest.importorskip("psycopg")

import dpfast as dpf
from dpfast.aggregation import Grouping, aggregate, open_data
from dpfast.errors import ColumnError, ParameterError
from dpfast.queries import Measure
from tests.rows.filters import COLUMNS, frame_of, random_filter

from .sql_databases import NAMES

KINDS = {
    "DuckDB": ["i64", "u64", "f64", "f32", "d", "s", "b", "day", "us"],
    "PostgreSQL": ["i64", "f64", "f32", "d", "s", "b", "day", "us"],
    "SQLite": ["i64", "f64", "s"],
}


def no_words(number):
    raise AssertionError("nothing is bounded")


def rows_of(random, name, rows):
    """Return rows that the database can hold: SQLite's NaN is null, and Polars' moments go further than SQL's."""
    frame = frame_of(rows, random, KINDS[name]).with_row_index("row").cast({"row": pl.Int64})
    if name == "SQLite":
        return frame.with_columns(pl.col("f64").fill_nan(None))
    # What no datetime of Python shows cannot be written into every database.
    inside = pl.col("us").is_between(datetime.datetime.min, datetime.datetime.max)
    return frame.with_columns(us=pl.when(inside).then("us"))


@pytest.mark.parametrize("name", NAMES)
def test_the_same_rows_pass(databases, name, monkeypatch):
    import duckdb

    from . import sql_databases

    types = {pl.UInt64: ("UBIGINT", None, None), pl.Float32: ("FLOAT", "real", "REAL")}
    monkeypatch.setattr(sql_databases, "_TYPES", {**sql_databases._TYPES, **types})
    assert duckdb
    source = random.Random(7)
    frame = rows_of(source, name, 120)
    database = open_data(databases.of(name, frame), engine="sql")
    for _ in range(60):
        where = random_filter(source, KINDS[name])
        grouping = Grouping(("row",), where=where)
        ours, theirs = (aggregate(data, grouping, [Measure("rows")], no_words) for data in (frame, database))
        assert sorted(ours.keys["row"]) == sorted(theirs.keys["row"]), where


@pytest.mark.parametrize("name", NAMES)
def test_every_comparison_with_infinities_and_with_a_nul(databases, name):
    """Each of them by itself: of random filters, few have one."""
    texts = ["", "a", "a\x01", "ab", None]
    frame = pl.DataFrame({"row": range(6), "x": [math.inf, -math.inf, 1.0, -1.0, None, 0.0]})
    frame = frame.with_columns(s=pl.Series([texts[i % 5] for i in range(6)]))
    database = open_data(databases.of(name, frame), engine="sql")
    x, s = dpf.column("x"), dpf.column("s")
    for column, value in [
        *((x, value) for value in (math.inf, -math.inf, 1e308)),
        *((s, f"a{z}") for z in ("\0", "\0b")),
    ]:
        tests = [column == value, column != value, column < value, column <= value, column > value, column >= value]
        for where in [*tests, *(~test for test in tests), column.is_in([value]), column.is_in([value, value])]:
            grouping = Grouping(("row",), where=where)
            ours, theirs = (aggregate(data, grouping, [Measure("rows")], no_words) for data in (frame, database))
            assert sorted(ours.keys["row"]) == sorted(theirs.keys["row"]), where


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_filtered_before_units_are_bounded(databases, name):
    """Each unit has one row that passes beside many that do not: it is always kept. Noise is 0 but for 2e**-1000."""
    frame = pl.DataFrame({"u": [unit for unit in "abcde" for _ in range(9)], "x": [*range(9)] * 5})
    data = databases.of(name, frame)
    asked = {"privacy_unit": "u", "max_groups": 1, "max_rows_per_group": 1, "engine": "sql"}
    keys = pl.DataFrame({"x": [8, 3]})
    release = dpf.release(
        data,
        "x",
        keys=keys,
        where=dpf.column("x") > 7,
        n=dpf.count(),
        epsilon=1000.0,
        ledger=dpf.Ledger(epsilon=1000),
        **asked,
    )
    assert release.frame["n"].to_list() == [5, 0]


def test_what_a_database_cannot_be_asked_is_refused(databases):
    frame = pl.DataFrame({"k": ["a"], "n": [1]})
    data, ledger = databases.of("PostgreSQL", frame), dpf.Ledger(epsilon=1.0)
    asked = {"n": dpf.count(), "privacy_unit": "row", "epsilon": 1.0, "ledger": ledger, "engine": "sql"}
    with pytest.raises(ParameterError, match="at most 1,000 where a database filters"):
        dpf.release(data, where=dpf.column("n").is_in(range(1001)), **asked)
    with pytest.raises(ColumnError, match="where names the column 'none'"):
        dpf.release(data, where=dpf.column("none") == 1, **asked)
    assert ledger.remaining.epsilon == 1.0
    assert set(KINDS["DuckDB"]) <= set(COLUMNS)
