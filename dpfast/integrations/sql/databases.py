"""From what a user gives to a database: a connection with a query, a relation of DuckDB, a table of Ibis."""

from __future__ import annotations

import sqlite3
from typing import Annotated, Any, Protocol, TypeAlias

from dpfast.aggregation.protocols import Database
from dpfast.aggregation.sources import Schema
from dpfast.arguments import Special, Text
from dpfast.errors import ParameterError, Words

__all__ = ["find_database", "sql"]

_QUERY = Text("a table's name or a SELECT")


class _HasCursor(Protocol):
    """What connections of all libraries have."""

    def cursor(self) -> Any:
        """Return what runs statements."""


Connection: TypeAlias = Annotated[_HasCursor, Special(lambda: (5, "connection", None, object(), sqlite3))]
QueryText: TypeAlias = Annotated[str, _QUERY]

_DUCKDB = {"duckdb", "_duckdb"}
_LIBRARIES = {*_DUCKDB, "psycopg", "sqlite3", "adbc_driver_manager"}
_ALLOWED = "a connection of duckdb, psycopg, sqlite3 or ADBC"


def sql(connection: Connection, query: QueryText, *, schema: Schema = None) -> Database:
    """Return a table or query of a database, for `dpfast.release` and `dpfast.plan`.

    Nothing is read here. ``engine="sql"`` lets the database aggregate, so that no row leaves it: one statement bounds
    what each privacy unit contributes, clips and rounds values to fixed point, and sums them by group. Its figures are
    those that dpfast computes of the same rows, bit for bit; which groups and rows a unit keeps where it has too many
    is chosen otherwise, but equally on all databases. Before anything is charged, a small public table goes through the
    same statement, and a database that differs by a bit is refused.

    Guarantee
    ---------
    That of the release. What the database logs and shows to its administrators is outside of it: they may see the
    statement with the public keys and the salt of the choice, which harm no guarantee, and the exact figures. The query
    must be total, and treat each unit's rows by themselves: no error, ``LIMIT`` or window may depend on rows of
    other units, and nothing on ``random()``. Functions in it must be labelled truly: PostgreSQL calls those that are
    labelled IMMUTABLE before the charge, when it plans the statement.

    Parameters
    ----------
    connection
        An open connection of duckdb, psycopg (PostgreSQL 14 or later, UTF-8), sqlite3, or of ADBC, which gives rows
        alone. A connection that may only read will do; with ``PRAGMA query_only=1``, SQLite can be asked for tables and
        views by their names alone. It must not be used by another thread during a release; one of sqlite3 should be
        opened with ``check_same_thread=False``, as Polars may collect a release in a thread of its own.
    query
        The name of a table or view as it is stored, its parts divided by dots, or a SELECT, which is used as
        ``FROM (query)``.
    schema
        For SQLite alone: Int64, Float64 or String for columns whose types no table declares, as those that are
        computed. A value of another kind counts as null.

    Returns
    -------
    Database
        What `dpfast.release` takes as data.

    Raises
    ------
    ParameterError
        If the connection is of another kind, or the query neither a name nor a SELECT.

    Notes
    -----
    Numbers, strings, Booleans, dates and timestamps of microseconds can be used; of others a release says to cast them.
    Strings are compared byte by byte, whatever the collation. At most 2**20 public keys are sent to a database.

    Dates and timestamps of all years are values, wherever they are aggregated: ``infinity`` is after all others and
    ``-infinity`` before them, so that sums and means clip them to the bounds. Timestamps after January 294247, which
    have no number of microseconds, are like ``infinity``. Only parts of `dpfast.calendar` are null outside the years 1
    to 9999. Over ADBC, PostgreSQL's driver hands over ``infinity``, and timestamps after January 294247, as years long
    before our era: turn them into others in the query, as with ``LEAST(valid_to, TIMESTAMP '9999-12-31')``.

    Examples
    --------
    >>> import sqlite3
    >>> import polars as pl
    >>> import dpfast as dpf
    >>> connection = sqlite3.connect(":memory:")
    >>> _ = connection.execute("CREATE TABLE rides (zone TEXT, fare REAL)")
    >>> _ = connection.execute("INSERT INTO rides VALUES ('north', 12.5), ('south', 8.0)")
    >>> keys = pl.DataFrame({"zone": ["north", "south"]})
    >>> release = dpf.release(
    ...     dpf.sql(connection, "rides"),
    ...     by="zone",
    ...     keys=keys,
    ...     rides=dpf.count(),
    ...     privacy_unit="row",
    ...     epsilon=1.0,
    ...     ledger=dpf.Ledger(epsilon=1.0),
    ...     engine="sql",
    ... )
    >>> release.frame.columns[:2]
    ['zone', 'rides']
    """
    library = _library(connection)
    if library is None:
        raise ParameterError("connection", Words(f"a {type(connection).__name__}"), _ALLOWED)
    text = _QUERY.read("query", query)
    if isinstance(connection, sqlite3.Connection):
        from dpfast.integrations.sql.sqlite_sessions import SQLiteQuery

        return SQLiteQuery(connection, text, {} if schema is None else schema)
    if schema is not None:
        raise ParameterError("schema", schema, "left out", "only SQLite does not know the types of its columns")
    if library in _DUCKDB:
        from dpfast.integrations.sql.duckdb_sessions import DuckDBQuery

        return DuckDBQuery(connection, text)
    if library == "psycopg":
        from dpfast.integrations.sql.postgresql_sessions import PostgreSQLQuery

        return PostgreSQLQuery(connection, text)
    from dpfast.integrations.sql.adbc_sessions import AdbcQuery

    return AdbcQuery(connection, text)


def _library(connection: object) -> str | None:
    """Return the library that a connection is of; asynchronous ones are of none."""
    for kind in type(connection).__mro__:
        root = kind.__module__.partition(".")[0]
        if kind.__name__ == ("DuckDBPyConnection" if root in _DUCKDB else "Connection") and root in _LIBRARIES:
            return root
    return None


def _module(data: object) -> str:
    return type(data).__module__.partition(".")[0]


def find_database(data: object) -> Database | None:
    """Return the database behind a relation of DuckDB or a table of Ibis, or None."""
    root = _module(data)
    if root in _DUCKDB and type(data).__name__ == "DuckDBPyRelation":
        from dpfast.integrations.sql.duckdb_sessions import DuckDBRelation

        return DuckDBRelation(data)
    # A join is a kind of table.
    if root == "ibis" and any(kind.__name__ == "Table" for kind in type(data).__mro__):
        from dpfast.integrations.sql.ibis_tables import open_ibis_table

        return open_ibis_table(data)
    return None
