"""Whoever reads a database while another reads one: nobody waits for ever, and nothing is read before the charge."""

from __future__ import annotations

import threading

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import dpfast as dpf
from dpfast.errors import DpfastError, ParameterError
from dpfast.integrations.sql import turns

from .barrier import IS_OLD

KEYS = pl.DataFrame({"k": ["a"]})
TABLE = "CREATE TABLE t AS SELECT 'a' AS k, i AS x FROM range(1000) r(i)"
ASKED = {"by": "k", "keys": KEYS, "n": dpf.count(), "epsilon": 1000.0}


def a_ledger():
    return dpf.Ledger(epsilon=1e5, delta=1e-3)


def in_thread(work):
    """Return what work returns or raises; a thread that hangs fails the test."""
    found = []

    def run():
        try:
            found.append(work())
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(120)
    assert found, "still running"
    return found[0]


def a_connection():
    connection = duckdb.connect()
    connection.execute(TABLE)
    return connection


@pytest.mark.parametrize("engine", ["rows", "sql"])
@pytest.mark.parametrize("given", ["relation", "query"])
def test_a_relation_that_reads_a_release_of_another_connection(engine, given):
    outer, inner = a_connection(), a_connection()
    ledger = a_ledger()

    def work():
        figures = dpf.plan(dpf.sql(inner, "t"), **{"privacy_unit": "row", **ASKED}).lazy(ledger)
        query = "SELECT t.k, t.x, f.n FROM t JOIN figures f USING (k)"
        if given == "query":
            outer.register("figures", figures)
        data = outer.sql(query) if given == "relation" else dpf.sql(outer, query)
        return dpf.release(data, ledger=ledger, engine=engine, **{"privacy_unit": "row", **ASKED}).frame["n"].item()

    assert in_thread(work) == 1000
    assert ledger.spent.epsilon == 2000


@pytest.mark.skipif(IS_OLD, reason="Polars before 2.0 fails where DuckDB asks for the schema")
def test_a_relation_that_reads_a_release_of_its_own_connection(monkeypatch):
    """The inner release is refused before its charge; the outer one, which cannot know, ends in fixed words."""
    monkeypatch.setattr(turns, "_BEFORE_THE_CHARGE", 0.2)
    connection, ledger, inner = a_connection(), a_ledger(), a_ledger()

    def work():
        figures = dpf.plan(dpf.sql(connection, "t"), **{"privacy_unit": "row", **ASKED}).lazy(inner)  # noqa: F841
        relation = connection.sql("SELECT t.k, t.x, f.n FROM t JOIN figures f USING (k)")
        return dpf.release(relation, ledger=ledger, engine="rows", **{"privacy_unit": "row", **ASKED})

    error = in_thread(work)
    assert isinstance(error, DpfastError)
    assert "cannot be read to its end" in str(error)
    assert (inner.spent.epsilon, ledger.spent.epsilon) == (0, 1000)
    # The connection is free again.
    dpf.release(dpf.sql(connection, "t"), ledger=inner, **{"privacy_unit": "row", **ASKED})


@pytest.mark.parametrize("shared", ["connection", "cursors"])
@pytest.mark.parametrize("given", ["relation", "query"])
def test_threads(shared, given):
    connection = a_connection()
    connection.execute("INSERT INTO t SELECT 'a', i FROM range(300000) r(i)")
    found = []

    def work(plan):
        found.append(plan.run(a_ledger()).frame["n"].item())

    threads = []
    for engine in ("rows", "sql") * 3:
        mine = connection if shared == "connection" else connection.cursor()
        plan = dpf.plan(
            mine.table("t") if given == "relation" else dpf.sql(mine, "t"),
            engine=engine,
            **{"privacy_unit": "row", **ASKED},
        )
        threads.append(threading.Thread(target=work, args=(plan,), daemon=True))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert found == [301_000] * 6


@pytest.mark.parametrize("engine", ["rows", "sql"])
def test_a_connection_with_an_open_result_is_refused_before_the_charge(engine):
    connection, ledger = a_connection(), a_ledger()
    plans = [
        dpf.plan(data, engine=engine, **{"privacy_unit": "row", **ASKED})
        for data in (connection.table("t"), dpf.sql(connection, "t"))
    ]
    reader = connection.sql("SELECT i FROM range(1000000) r(i)").to_arrow_reader(1000)
    next(reader)
    for plan in plans:
        with pytest.raises(ParameterError, match=r"connection.*open result.*cursor"):
            plan.run(ledger)
    assert ledger.spent.epsilon == 0
    # The result of the user is whole.
    assert sum(batch.num_rows for batch in reader) == 999_000
    plans[0].run(ledger)


def test_a_turn_is_taken_by_one_at_a_time(monkeypatch):
    monkeypatch.setattr(turns, "_BEFORE_THE_CHARGE", 0.01)
    connection, other = object(), object()
    with turns.turn(connection, charged=True), turns.turn(other):
        with pytest.raises(ParameterError, match="another release"), turns.turn(connection):
            pass
        assert len(turns._LINES) == 2
    assert not turns._LINES
    with turns.turn(connection):
        pass


@pytest.mark.parametrize("optimizer", [True, False])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, spy(x) AS x FROM t",
        "WITH a AS MATERIALIZED (SELECT k, spy(x) AS x FROM t) SELECT * FROM a",
        "SELECT k, max(spy(x)) AS x FROM t GROUP BY k",
        "SELECT k, x FROM t WHERE x > (SELECT avg(spy(x)) FROM t)",
        "SELECT k, x FROM t LIMIT (SELECT max(spy(x)) FROM t)",
        "SELECT k, CAST(k AS BIGINT) + spy(x) AS x FROM t",
    ],
)
def test_no_row_is_read_before_the_charge(optimizer, query):
    connection, calls = a_connection(), []

    def spy(x):
        calls.append(x)
        return x

    connection.create_function("spy", spy, ["BIGINT"], "BIGINT", side_effects=True)
    if not optimizer:
        connection.execute("PRAGMA disable_optimizer")
    for engine in ("rows", "sql"):
        for data in (connection.sql(query), dpf.sql(connection, query)):
            dpf.plan(data, engine=engine, **{"privacy_unit": "row", **ASKED})._blueprint.aggregation.check_source()
    assert not calls


def test_dtypes_under_settings():
    """How columns are handed out depends on settings, which may change after the plan."""
    connection, ledger = a_connection(), a_ledger()
    data = connection.sql("SELECT k, TIMESTAMPTZ '2020-01-01 00:00:00+00' AS x, true AS b, 1::UTINYINT AS u FROM t")
    schema = pl.Schema(pl.DataFrame(data.to_arrow_table()).schema)
    database = dpf.sql(connection, data.sql_query())
    assert dict(database.rows().schema()) == dict(schema)
    plan = dpf.plan(data, **{"privacy_unit": "row", **ASKED})
    connection.execute("SET TimeZone = 'Asia/Tokyo'")
    with pytest.raises(ParameterError, match="other columns"):
        plan.run(ledger)
    assert ledger.spent.epsilon == 0


@pytest.mark.parametrize("form", ["relation", "replaced", "registered"])
@pytest.mark.parametrize("twice", [{}, {"q": dpf.quantile("x", 0.5, bounds=(0, 1000))}, {"keys": None, "delta": 1e-6}])
def test_a_stream_of_arrow_behind_a_relation(form, twice):
    connection = duckdb.connect()
    table = pa.table({"k": ["a"] * 1000, "x": list(range(1000))})
    reader = pa.RecordBatchReader.from_batches(table.schema, iter(table.to_batches(max_chunksize=100)))
    if form == "registered":
        connection.register("given", reader)
    data = connection.from_arrow(reader) if form == "relation" else None
    if data is None:
        data = dpf.sql(connection, "SELECT * FROM given" if form == "registered" else "SELECT * FROM reader")
        if form == "replaced":
            connection.register("reader", reader)
    ledger = a_ledger()
    asked = {**ASKED, "engine": "rows", **twice}
    assert dpf.release(data, ledger=ledger, **{"privacy_unit": "row", **asked}).frame["n"].item() == 1000
    with pytest.raises(DpfastError, match=r"cannot be read to its end|refuses"):
        dpf.release(data, ledger=ledger, **{"privacy_unit": "row", **asked})


@pytest.mark.parametrize("engine", ["rows", "sql"])
def test_two_columns_of_one_name(engine):
    connection = a_connection()
    for query in ("SELECT 'a' AS k, x AS k FROM t", "SELECT k, x, x + 1 AS X FROM t"):
        for make in (lambda q: dpf.sql(connection, q), connection.sql):
            with pytest.raises(DpfastError, match="have one name"):
                dpf.plan(make(query), engine=engine, **{"privacy_unit": "row", **ASKED})


@pytest.mark.parametrize("engine", ["rows", "sql"])
def test_a_pivot_whose_columns_are_values_is_refused(engine):
    connection = a_connection()
    for query in ("SELECT * FROM (PIVOT t ON k USING max(x))", "WITH p AS (PIVOT t ON k USING max(x)) SELECT * FROM p"):
        with pytest.raises(ParameterError, match="PIVOT"):
            dpf.plan(dpf.sql(connection, query), n=dpf.count(), privacy_unit="row", epsilon=1.0, engine=engine)
    named = dpf.sql(connection, "SELECT * FROM (PIVOT t ON k IN ('a') USING max(x) GROUP BY x)")
    asked = {"n": dpf.count(), "epsilon": 1000.0, "engine": engine}
    assert dpf.release(named, ledger=a_ledger(), **{"privacy_unit": "row", **asked}).frame["n"].item() == 1000
