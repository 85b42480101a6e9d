"""Tables of Ibis, by their SQL and the connection behind them."""

from __future__ import annotations

from typing import Any

import polars as pl

from dpfast.aggregation.protocols import Database
from dpfast.errors import ParameterError, Words

__all__ = ["open_ibis_table"]


def open_ibis_table(table: Any) -> Database:
    """Return the database behind a table of Ibis.

    Raises
    ------
    ParameterError
        If its backend is none of DuckDB, PostgreSQL and SQLite, or it has none, or if it needs an `ibis.memtable`.

    """
    import ibis

    try:
        backend, query = table.get_backend(), str(ibis.to_sql(table))
    except ibis.common.exceptions.IbisError:
        backend, query = None, ""
    name = getattr(backend, "name", "none")
    if table.op().find(ibis.expr.operations.InMemoryTable):
        mend = "write it into the database first: connection.create_table(name, memtable)"
        raise ParameterError("data", Words("of a memtable, which is in no database"), "of tables of one database", mend)
    if name == "duckdb":
        from dpfast.integrations.sql.duckdb_sessions import DuckDBQuery

        return DuckDBQuery(backend.con, query)
    if name == "postgres":
        from dpfast.integrations.sql.postgresql_sessions import PostgreSQLQuery

        return PostgreSQLQuery(backend.con, query)
    if name == "sqlite":
        from dpfast.integrations.sql.sqlite_sessions import SQLiteQuery

        return SQLiteQuery(backend.con, query, _declared(table.schema()))
    mend = "give its rows: table.to_pyarrow_batches()"
    raise ParameterError("data", Words(f"a table of the backend {name}"), "of DuckDB, PostgreSQL or SQLite", mend)


def _declared(schema: Any) -> dict[str, pl.DataType]:
    """Return the dtypes that SQLite does not know."""
    kinds: dict[str, pl.DataType] = {}
    for name, dtype in schema.items():
        if dtype.is_integer() or dtype.is_boolean():
            kinds[name] = pl.Int64()
        elif dtype.is_floating():
            kinds[name] = pl.Float64()
        elif dtype.is_string():
            kinds[name] = pl.String()
    return kinds
