"""What is refused before the charge says what to do, and quotes no value; names of ours are in nobody's way."""

from __future__ import annotations

import sqlite3
from importlib import metadata

import polars as pl
import pytest

import dpfast as dpf
from dpfast.aggregation.protocols import GroupQuery
from dpfast.errors import ColumnError, DpfastError, ParameterError
from dpfast.integrations.sql.dialects import DIALECTS
from dpfast.integrations.sql.template import write
from dpfast.queries import Measure

from .sql_databases import NAMES

ROWS = pl.DataFrame({"u": ["p", "q", "q"], "k": ["a", "a", "b"], "x": [1.0, 2.0, 3.0]})
KEYS = pl.DataFrame({"k": ["a", "b"]})
ASKED = {"by": "k", "keys": KEYS, "s": dpf.sum("x", bounds=(0, 8)), "epsilon": 9e5, "engine": "sql"}
UNIT = {"privacy_unit": "u", "max_groups": 5, "max_rows_per_group": 5}
OURS = ["rows", "pairs", "all_pairs", "public", "large", "chosen", "crowded", "ordered", "groups", "source", "values"]


def a_ledger():
    return dpf.Ledger(epsilon=1e6, delta=1e-3)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("table", [*(f"dpf_{ours}" for ours in OURS), "DPF0_rows", "dpf_values_of_source"])
def test_tables_that_are_named_like_ours(databases, name, table):
    connection = databases.connections[name]
    databases.fill(name, ROWS, table)
    connection.execute(f'CREATE VIEW "a view" AS SELECT * FROM "{table}"')
    for query in (
        table,
        f'SELECT * FROM "{table}"',
        'WITH dpf_rows AS (SELECT * FROM "a view") SELECT * FROM dpf_rows',
    ):
        for unit in ({}, UNIT):
            released = dpf.release(
                dpf.sql(connection, query), ledger=a_ledger(), **{"privacy_unit": "row", **ASKED, **unit}
            ).frame
            assert [round(value) for value in released["s"]] == [3, 3]
    if name == "DuckDB":
        released = dpf.release(connection.table(table), ledger=a_ledger(), **ASKED, **UNIT).frame
        assert [round(value) for value in released["s"]] == [3, 3]


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_columns_that_are_named_like_ours(dialect):
    """The user's words stay as they are."""
    column = "dpf_values_of_source dpf_rows DPF0_x"
    query = GroupQuery((column,), (Measure("rows"),))
    sql = write(dialect, "dpf_rows", {column: pl.Int64()}, query).sql
    assert dialect.identifier(column) in sql
    assert "FROM dpf_rows AS dpf_source" in sql
    assert "dpf1_rows" in sql


def test_functions_that_postgresql_calls_when_it_plans(databases):
    connection = databases.postgresql
    databases.fill("PostgreSQL", pl.DataFrame({"k": ["secret"], "x": [1.0]}))
    for state in ("42000", "42P01", "22000", "P0001"):
        connection.execute(
            "CREATE OR REPLACE FUNCTION told() RETURNS double precision LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN "
            f"RAISE EXCEPTION 'told %', (SELECT k FROM rides) USING ERRCODE = '{state}'; END $$"
        )
        ledger = a_ledger()
        with pytest.raises(DpfastError, match=state) as caught:
            dpf.release(
                dpf.sql(connection, "SELECT k, x + told() AS x FROM rides"),
                ledger=ledger,
                **{"privacy_unit": "row", **ASKED},
            )
        assert "secret" not in str(caught.value)
        assert "told" not in str(caught.value)
        assert ledger.spent.epsilon == 0
    # What PostgreSQL says of names is shown.
    with pytest.raises(DpfastError, match='column "nothing" does not exist'):
        dpf.plan(dpf.sql(connection, "SELECT nothing FROM rides"), **{"privacy_unit": "row", **ASKED})


def test_adbc_of_sqlite_is_sent_to_sqlite3(tmp_path):
    adbc = pytest.importorskip("adbc_driver_sqlite.dbapi")
    with sqlite3.connect(tmp_path / "a.sqlite") as writing:
        writing.execute("CREATE TABLE t (k TEXT, x INTEGER)")
    with adbc.connect(str(tmp_path / "a.sqlite")) as connection:
        with pytest.raises(ParameterError, match=r"dpf\.sql\(sqlite3\.connect") as caught:
            dpf.plan(dpf.sql(connection, "t"), n=dpf.count(), privacy_unit="row", epsilon=1.0)
        assert "fetch_record_batch" not in str(caught.value)


def test_adbc_after_a_failed_statement(databases, postgresql):
    adbc = pytest.importorskip("adbc_driver_postgresql.dbapi")
    databases.fill("PostgreSQL", ROWS)
    with adbc.connect(postgresql.url) as connection:
        database = dpf.sql(connection, f"{databases.name}.rides")
        plan = dpf.plan(database, n=dpf.count(), privacy_unit="row", epsilon=1.0)
        with connection.cursor() as cursor, pytest.raises(adbc.Error):
            cursor.execute("nonsense")
        ledger = a_ledger()
        with pytest.raises(DpfastError, match=r"connection\.rollback\(\)"):
            plan.run(ledger)
        assert ledger.spent.epsilon == 0
        connection.rollback()
        plan.run(ledger)


WIDE = "CAST('{}' AS NUMERIC(38, 10))"
#: What is asked of a column of wide decimals, and to what it is to be cast.
USES = {
    "sum": ({"s": dpf.sum("x", bounds=(0, 8))}, ("DOUBLE", "double precision")),
    "proportion": ({"s": dpf.proportion("x", above=1)}, ("DOUBLE", "double precision")),
    "key": ({"by": "x", "keys": pl.DataFrame({"x": ["1.0000000001", "2.5000000000"]})}, ("VARCHAR", "text")),
    "unit": ({"privacy_unit": "x", "max_groups": 1, "max_rows_per_group": 1}, ("VARCHAR", "text")),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", ["DuckDB", "PostgreSQL"])
def test_wide_decimals_are_refused_with_a_cast_that_serves(databases, name, use):
    connection = databases.connections[name]
    rows = ", ".join(f"({WIDE.format(number)})" for number in ("1.0000000001", "2.5", "2.5", "99999999999999999.5"))
    connection.execute(f"CREATE TABLE wide AS SELECT * FROM (VALUES {rows}) AS given (x)")
    asked, types = USES[use]
    asked = {"privacy_unit": "row", "n": dpf.count(), "engine": "sql", "epsilon": 9e5, **asked}
    cast = types[name == "PostgreSQL"]
    plain = {key: value for key, value in asked.items() if key not in ("by", "keys")}
    by_key = {"by": "x", "delta": 1e-6} if use == "key" else {}
    ledger = a_ledger()
    with pytest.raises(ColumnError, match=f"'x' of decimals of more than 18 digits: cast it .*{cast}"):
        dpf.plan(dpf.sql(connection, "wide"), **plain, **by_key).run(ledger)
    assert ledger.history().is_empty()
    query = f"SELECT CAST(x AS {cast}) AS x FROM wide"
    released = dpf.release(dpf.sql(connection, query), ledger=a_ledger(), **asked).frame
    expected = {"sum": [4], "proportion": [4], "key": [1, 2], "unit": [3]}
    assert released["n"].to_list() == expected[use]
    if "s" in released.columns:
        assert released["s"][0] == pytest.approx(14 if use == "sum" else 1, abs=0.01)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.skipif(int(metadata.version("pandas").split(".")[0]) < 3, reason="ibis asks pandas for a later option")
def test_memtables_of_ibis(databases):
    ibis = pytest.importorskip("ibis")
    databases.fill("DuckDB", ROWS)
    connection = ibis.duckdb.from_connection(databases.duckdb)
    memtable = ibis.memtable({"k": ["a", "b"], "y": [1, 2]})
    for table in (memtable, connection.table("rides").join(memtable, "k")):
        with pytest.raises(ParameterError, match=r"memtable.*create_table"):
            dpf.plan(table, n=dpf.count(), privacy_unit="row", epsilon=1.0)
    # A join of tables that are there is asked for where it is.
    databases.duckdb.execute("CREATE TABLE zones AS SELECT 'a' AS k, 2.0 AS y")
    joined = connection.table("rides").join(connection.table("zones"), "k")
    assert round(dpf.release(joined, ledger=a_ledger(), **{"privacy_unit": "row", **ASKED}).frame["s"][0]) == 3
