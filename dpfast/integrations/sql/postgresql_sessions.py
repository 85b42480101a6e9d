"""PostgreSQL by psycopg, which aggregates.

A release is one statement, and so of one snapshot. It runs in a transaction of its own, or in a savepoint of the one
that is open: what fails leaves the connection as it was.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import polars as pl

from dpfast.aggregation.private import Private
from dpfast.errors import DpfastError, ParameterError, Words
from dpfast.integrations.sql.dialects import POSTGRESQL, Dialect
from dpfast.integrations.sql.engine import SqlEngine, refused
from dpfast.integrations.sql.naming import from_clause
from dpfast.integrations.sql.template import Statement

__all__ = ["PostgreSQLQuery"]

_Answer = TypeVar("_Answer")

_LONGEST_NAME = 63
_OLDEST = 140000

#: The dtypes of PostgreSQL's types, by their numbers, which never change.
_DTYPES: dict[int, pl.DataType] = {
    16: pl.Boolean(),
    20: pl.Int64(),
    21: pl.Int16(),
    23: pl.Int32(),
    700: pl.Float32(),
    701: pl.Float64(),
    **dict.fromkeys((25, 1042, 1043), pl.String()),
    1082: pl.Date(),
    1114: pl.Datetime("us"),
    1184: pl.Datetime("us", "UTC"),
}
_NUMERIC = 1700


def _dtype(column: Any) -> pl.DataType:
    """Return a column's dtype; where PostgreSQL does not say how many places a number has, one that it is not asked by.

    Their number stands in a column's type, and is lost where something is computed of it.
    """
    precision, scale = column.precision, column.scale
    if column.type_code == _NUMERIC:
        return pl.Decimal(precision, scale) if precision and 0 <= scale <= precision <= 38 else pl.Decimal(38, 0)
    return _DTYPES.get(column.type_code, pl.Binary())


class _Session:
    """A connection that aggregates; see `dpfast.integrations.sql.engine.Session`."""

    dialect: Dialect = POSTGRESQL
    written = False

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    def _execute(self, sql: str, parameters: Any, read: Callable[[Any], _Answer]) -> _Answer:
        from psycopg import RawCursor
        from psycopg.rows import tuple_row
        from psycopg.types.numeric import IntLoader
        from psycopg.types.string import TextLoader

        with self._lock, self._connection.transaction(), RawCursor(self._connection, row_factory=tuple_row) as cursor:
            # Whatever loaders the connection has been given.
            cursor.adapters.register_loader("int8", IntLoader)
            cursor.adapters.register_loader("text", TextLoader)
            cursor.execute(sql, parameters, prepare=False)
            return read(cursor)

    def _before(self, sql: str, parameters: Any, read: Callable[[Any], _Answer]) -> _Answer:
        """Return what PostgreSQL says before any row is read; its words where they are of names and syntax."""
        import psycopg

        try:
            return self._execute(sql, parameters, read)
        except psycopg.Error as error:
            state, diagnosis = error.sqlstate or "", error.diag
            # Only what comes from reading the statement has a place in it. A function that PostgreSQL calls while it
            # plans, as it is labelled IMMUTABLE, may say anything, and is named in the context.
            named = diagnosis.statement_position and not diagnosis.context and not diagnosis.internal_query
            text = str(error) if state.startswith("42") and named else f"{type(error).__name__} {state}"
        raise refused("PostgreSQL", text)

    def describe(self, source: str) -> pl.Schema:
        """Return the columns; those of types that cannot be used are there to be refused by name."""
        columns = self._before(
            f"SELECT * FROM {source} AS dpf_source LIMIT 0",
            None,
            lambda cursor: [(column.name, _dtype(column)) for column in cursor.description],
        )
        names = [name for name, _ in columns]
        if len(set(names)) < len(names):
            raise DpfastError(
                "PostgreSQL refuses the query: two of its columns have one name; rename one of them with AS"
            )
        return pl.Schema(dict(columns))

    def refuse(self) -> None:
        """Refuse a connection that is closed, busy, in a transaction that failed, or of another encoding than UTF-8."""
        from psycopg.pq import PipelineStatus, TransactionStatus

        connection = self._connection
        if connection.closed or connection.broken:
            raise ParameterError("connection", Words("a closed one"), "an open connection to PostgreSQL")
        status = connection.info.transaction_status
        if status == TransactionStatus.INERROR:
            mend = "call connection.rollback() first"
            raise ParameterError("connection", Words("one whose transaction failed"), "ready for a statement", mend)
        if status == TransactionStatus.ACTIVE or connection.pgconn.pipeline_status != PipelineStatus.OFF:
            raise ParameterError("connection", Words("a busy one"), "ready for a statement", "use another connection")
        if connection.info.server_version < _OLDEST:
            raise ParameterError("connection", connection.info.server_version, "to PostgreSQL 14 or later")
        encodings = [connection.info.parameter_status(f"{side}_encoding") for side in ("server", "client")]
        if encodings != ["UTF8", "UTF8"]:
            raise ParameterError("connection", Words(f"of {encodings}"), "of a server and a client that use UTF8")
        self._before("SELECT 1", None, lambda cursor: None)

    def explain(self, statement: Statement) -> None:
        """Let PostgreSQL plan the statement: it may not be allowed."""
        self._before(f"EXPLAIN {statement.sql}", statement.parameters, lambda cursor: None)

    def fetch(self, statement: Statement) -> pl.DataFrame:
        """Return the result."""
        rows = self._execute(statement.sql, statement.parameters, lambda cursor: cursor.fetchall())
        return statement.frame(rows, strings=pl.String())


class PostgreSQLQuery(Private):
    """A table or query of a psycopg connection; see `dpfast.aggregation.protocols.Database`."""

    def __init__(self, connection: Any, query: str) -> None:
        self._session = _Session(connection)
        self._source = from_clause(query, POSTGRESQL.identifier, _LONGEST_NAME)

    def rows(self) -> None:
        """Return None: rows of PostgreSQL are read through ADBC."""

    def engine(self) -> SqlEngine:
        """Return what aggregates."""
        return SqlEngine(self._session, self._source)
