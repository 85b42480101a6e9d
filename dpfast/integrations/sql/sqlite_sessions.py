"""SQLite, which aggregates.

A value's kind is its own there, whatever its column was declared as. The template takes values of the declared kind
alone: text in a column of integers counts as null, and so does 2.5; integers in a column of floats are floats; a blob
is always null. Booleans are integers, and dates text or numbers: cast them. NaN is null.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
import threading
from collections.abc import Mapping
from typing import Any

import polars as pl

from dpfast.aggregation.private import Private
from dpfast.errors import DpfastError, ParameterError, Words
from dpfast.integrations.sql.dialects import SQLITE, Dialect
from dpfast.integrations.sql.engine import SqlEngine, refused
from dpfast.integrations.sql.naming import from_clause
from dpfast.integrations.sql.template import Statement

__all__ = ["SQLiteQuery"]

_ONE_AT_A_TIME = threading.Lock()
_VIEW = "dpfast_columns"


def _dtype(declared: str) -> pl.DataType:
    """Return what a declared type stands for, by SQLite's rules of affinity; Null for what is not known."""
    declared = declared.upper()
    if "INT" in declared or declared in ("BOOL", "BOOLEAN"):
        return pl.Int64()
    if re.search("CHAR|CLOB|TEXT", declared):
        return pl.String()
    return pl.Float64() if re.search("REAL|FLOA|DOUB", declared) else pl.Binary()


def _hash(text: bytes) -> int:
    return int(hashlib.md5(text, usedforsecurity=False).hexdigest()[:15], 16)


def _bytes(digits: str | None) -> bytes | None:
    return None if digits is None else bytes.fromhex(digits)


class _Session:
    """A connection that aggregates; see `dpfast.integrations.sql.engine.Session`."""

    dialect: Dialect = SQLITE
    written = False

    def __init__(self, connection: sqlite3.Connection, declared: Mapping[str, pl.DataType]) -> None:
        self._connection, self._declared = connection, dict(declared)

    def _execute(self, sql: str, parameters: Any = ()) -> list[Any]:
        cursor = self._connection.cursor()
        cursor.row_factory = None
        try:
            return cursor.execute(sql, parameters).fetchall()
        finally:
            cursor.close()

    def _before(self, sql: str, parameters: Any = ()) -> list[Any]:
        """Return what SQLite says before any row is read: its words are about names and syntax."""
        with _ONE_AT_A_TIME:
            try:
                return self._execute(sql, parameters)
            except sqlite3.Error as error:
                text = str(error)
        raise refused("SQLite", text)

    def describe(self, source: str) -> pl.Schema:
        """Return the columns, by the types that their tables declare."""
        view = f'temp."{_VIEW}"'
        self._before(f"DROP VIEW IF EXISTS {view}")
        self._before(f"CREATE TEMP VIEW {_VIEW} AS SELECT * FROM {source} AS dpf_source")
        try:
            columns = self._before(f"SELECT name, type FROM pragma_table_xinfo('{_VIEW}', 'temp')")
        finally:
            self._before(f"DROP VIEW IF EXISTS {view}")
        unknown = set(self._declared) - {name for name, _ in columns}
        if unknown:
            raise ParameterError("schema", sorted(unknown), f"of the columns {[name for name, _ in columns][:8]}")
        return pl.Schema({name: self._declared.get(name, _dtype(kind)) for name, kind in columns})

    def refuse(self) -> None:
        """Refuse a connection that is closed or another thread's, and a database of UTF-16."""
        if self._connection.text_factory is not str:
            raise ParameterError("connection", Words("one with a text_factory"), "one whose text_factory is str")
        if self._before("PRAGMA encoding") != [("UTF-8",)]:
            raise DpfastError(
                "SQLite databases of UTF-16 are not supported; write it anew with PRAGMA encoding='UTF-8'"
            )
        self._connection.create_function("dpfast_md5", 1, _hash, deterministic=True)
        self._connection.create_function("dpfast_bytes", 1, _bytes, deterministic=True)

    def explain(self, statement: Statement) -> None:
        """Let SQLite compile the statement."""
        self._before(f"EXPLAIN {statement.sql}", statement.parameters)

    def fetch(self, statement: Statement) -> pl.DataFrame:
        """Return the result."""
        with _ONE_AT_A_TIME:
            rows = self._execute(statement.sql, statement.parameters)
        return statement.frame(rows, strings=pl.Binary())


class SQLiteQuery(Private):
    """A table or query of a connection; see `dpfast.aggregation.protocols.Database`."""

    def __init__(
        self, connection: sqlite3.Connection, query: str, declared: Mapping[str, pl.DataType | type[pl.DataType]]
    ) -> None:
        if not isinstance(declared, Mapping) or any(
            not isinstance(name, str) or dtype not in (pl.Int64, pl.Float64, pl.String)
            for name, dtype in declared.items()
        ):
            allowed = "a dict from names of columns to Int64, Float64 or String"
            raise ParameterError("schema", declared, allowed, "cast other columns in the query")
        self._session = _Session(connection, {name: _instance(dtype) for name, dtype in declared.items()})
        self._source = from_clause(query, SQLITE.identifier)

    def rows(self) -> None:
        """Return None: rows of SQLite are not read."""

    def engine(self) -> SqlEngine:
        """Return what aggregates."""
        return SqlEngine(self._session, self._source)


def _instance(dtype: pl.DataType | type[pl.DataType]) -> pl.DataType:
    return dtype() if isinstance(dtype, type) else dtype
