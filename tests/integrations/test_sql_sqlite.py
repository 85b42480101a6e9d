"""Connections of sqlite3 in states that a release meets."""

from __future__ import annotations

import sqlite3
import threading

import polars as pl
import pytest

import dpfast as dpf
from dpfast.errors import DpfastError, ParameterError

KEYS = pl.DataFrame({"k": ["a", "b"]})
ASKED = {"by": "k", "keys": KEYS, "n": dpf.count(), "epsilon": 1000.0}
UNIT = {"privacy_unit": "x", "max_groups": 1, "max_rows_per_group": 1}


def a_ledger():
    return dpf.Ledger(epsilon=1e5)


@pytest.fixture
def connection():
    made = sqlite3.connect(":memory:")
    made.execute("CREATE TABLE t (k TEXT, x INTEGER, g AS (x + 1))")
    made.executemany("INSERT INTO t VALUES (?, ?)", [("a", 1), ("a", 2), ("b", 3)])
    yield made
    made.close()


def test_a_connection_of_another_thread(connection):
    ledger = a_ledger()
    plan, found = dpf.plan(dpf.sql(connection, "t"), **{"privacy_unit": "row", **ASKED}), []

    def work():
        try:
            plan.run(ledger)
        except ParameterError as error:
            found.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert "check_same_thread=False" in found[0]
    assert ledger.spent.epsilon == 0
    shared = sqlite3.connect(":memory:", check_same_thread=False)
    shared.executescript("CREATE TABLE t (k TEXT, x INTEGER); INSERT INTO t VALUES ('a', 1)")
    found = (
        dpf.plan(dpf.sql(shared, "t"), **{"privacy_unit": "row", **ASKED}).lazy(a_ledger()).collect(engine="streaming")
    )
    assert found["n"].to_list() == [1, 0]
    shared.close()


@pytest.mark.parametrize("query", ["t", "SELECT * FROM t"])
def test_with_an_open_cursor(connection, query):
    for _ in range(3):
        cursor = connection.execute("SELECT * FROM t")
        cursor.fetchone()
        for unit in ({}, UNIT):
            released = dpf.release(
                dpf.sql(connection, query), ledger=a_ledger(), **{"privacy_unit": "row", **ASKED, **unit}
            )
            assert released.frame["n"].to_list() == [2, 1]
        # The user's result is whole.
        assert len(cursor.fetchall()) == 2


def test_functions_of_the_same_name_are_replaced(connection):
    connection.create_function("dpfast_md5", 1, lambda text: 7)
    assert dpf.release(dpf.sql(connection, "t"), ledger=a_ledger(), **ASKED, **UNIT).frame["n"].to_list() == [2, 1]
    connection.create_function("dpfast_md5", 1, lambda text: 7)
    cursor = connection.execute("SELECT * FROM t")
    cursor.fetchone()
    with pytest.raises(DpfastError, match="SQLite refuses"):
        dpf.plan(dpf.sql(connection, "t"), **{"privacy_unit": "row", **ASKED})


def test_query_only(connection):
    connection.execute("CREATE VIEW v AS SELECT k, x FROM t")
    connection.execute('CREATE TEMP TABLE "o""d.d" (k TEXT, x INTEGER)')
    connection.execute("PRAGMA query_only=1")
    for name, expected in (("t", [2, 1]), ("main.t", [2, 1]), ("v", [2, 1]), ('temp."o""d.d"', [0, 0])):
        released = dpf.release(dpf.sql(connection, name), ledger=a_ledger(), **ASKED, **UNIT)
        assert released.frame["n"].to_list() == expected
    with pytest.raises(ParameterError, match=r"query_only.*mode=ro"):
        dpf.plan(dpf.sql(connection, "SELECT * FROM t"), **{"privacy_unit": "row", **ASKED})
    for name in ("none", "main.none", "a.b.c", "temp.t"):
        with pytest.raises(DpfastError, match="SQLite refuses"):
            dpf.plan(dpf.sql(connection, name), **{"privacy_unit": "row", **ASKED})


def test_text_factory(connection):
    plan = dpf.plan(dpf.sql(connection, "t"), **{"privacy_unit": "row", **ASKED})
    for factory in (bytes, lambda text: text.decode("latin-1")):
        connection.text_factory = factory
        with pytest.raises(ParameterError, match="text_factory is str"):
            plan.run(a_ledger())
        with pytest.raises(ParameterError, match="text_factory is str"):
            dpf.plan(dpf.sql(connection, "t"), **{"privacy_unit": "row", **ASKED})


def test_a_users_view_stays(connection):
    connection.execute("CREATE TEMP VIEW dpfast_columns AS SELECT 1 AS one")
    dpf.release(dpf.sql(connection, "SELECT * FROM t"), ledger=a_ledger(), **{"privacy_unit": "row", **ASKED})
    assert connection.execute("SELECT * FROM dpfast_columns").fetchall() == [(1,)]
    assert connection.execute("SELECT count(*) FROM temp.sqlite_master").fetchone() == (1,)


def test_two_columns_of_one_name(connection):
    for query in ("SELECT k, x, g AS x FROM t", "SELECT k, x, g AS X FROM t", "SELECT * FROM t JOIN t AS o USING (k)"):
        with pytest.raises(DpfastError, match=r"(?i)have the name 'x'"):
            dpf.plan(dpf.sql(connection, query), **{"privacy_unit": "row", **ASKED})


def test_generated_columns_are_columns(connection):
    assert dpf.sql(connection, "t").engine().schema() == {"k": pl.String(), "x": pl.Int64(), "g": pl.Binary()}
