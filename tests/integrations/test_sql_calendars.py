"""Parts of dates and timestamps in databases are those of dpfast."""

from __future__ import annotations

import datetime
import random

import polars as pl
import pytest

pytest.importorskip("duckdb")
pytest.importorskip("psycopg")

import dpfast as dpf
from dpfast.aggregation import Grouping, aggregate, open_data
from dpfast.errors import ColumnError
from dpfast.queries import Measure
from dpfast.rows.calendars import PARTS

START = datetime.datetime(1, 1, 2)
SPAN = int((datetime.datetime(9999, 12, 31) - START).total_seconds())


def no_words(number):
    raise AssertionError("nothing is bounded")


def moments(rows, seed=4):
    draw = random.Random(seed)
    found = [
        START + datetime.timedelta(seconds=draw.randrange(SPAN), microseconds=draw.randrange(10**6))
        for _ in range(rows)
    ]
    ends = [START, datetime.datetime(9999, 12, 30, 23, 59, 59, 999_999), datetime.datetime(1969, 12, 31, 23), None]
    ends += [datetime.datetime.min, datetime.datetime.max, datetime.datetime(9999, 12, 31)]
    frame = pl.DataFrame({"at": [*found, *ends]}, schema={"at": pl.Datetime("us")})
    return frame.with_columns(day=pl.col("at").dt.date(), u=pl.int_range(pl.len()) % 40)


@pytest.mark.parametrize("name", ["DuckDB", "PostgreSQL"])
def test_parts_are_the_same(databases, name):
    frame = moments(300)
    database = open_data(databases.of(name, frame), engine="sql")
    for column in ("at", "day"):
        for part in PARTS:
            if (column, part) == ("day", "hour"):
                continue
            grouping = Grouping((dpf.calendar(column, part), column))
            ours, theirs = (aggregate(data, grouping, [Measure("rows")], no_words) for data in (frame, database))
            assert ours.keys.sort(column).equals(theirs.keys.sort(column)), part


@pytest.mark.parametrize("name", ["DuckDB", "PostgreSQL"])
def test_a_release_by_part(databases, name):
    frame = moments(200)
    month = dpf.calendar("at", "month")
    keys = pl.DataFrame({month.name: [*month.labels, None]})
    asked = {"keys": keys, "n": dpf.count(), "epsilon": 1000.0, "privacy_unit": "u"}
    asked |= {"max_groups": 20, "max_rows_per_group": 100, "where": dpf.column("at") >= "1970-01-01"}
    ours = dpf.release(frame, month, ledger=dpf.Ledger(epsilon=1000), **asked).frame
    database = databases.of(name, frame)
    theirs = dpf.release(database, month, ledger=dpf.Ledger(epsilon=1000), engine="sql", **asked).frame
    # The scale is 2: what a unit has is kept whole.
    assert ours.schema == theirs.schema
    assert (ours["n"] - theirs["n"]).abs().max() < 100
    assert ours["at_month"].equals(theirs["at_month"])


def test_clocks_of_other_zones_are_refused(databases):
    connection = databases.duckdb
    connection.execute("SET TimeZone = 'Europe/Berlin'")
    data = dpf.sql(connection, "SELECT TIMESTAMPTZ '2024-01-01 00:00:00+00' AS at")
    ledger = dpf.Ledger(epsilon=1.0, delta=1e-6)
    with pytest.raises(ColumnError, match="what clocks in Europe/Berlin show"):
        dpf.release(
            data,
            dpf.calendar("at", "hour"),
            n=dpf.count(),
            privacy_unit="row",
            epsilon=1.0,
            delta=1e-6,
            engine="sql",
            ledger=ledger,
        )
    assert ledger.remaining.epsilon == 1.0
