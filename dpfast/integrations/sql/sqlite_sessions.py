"""SQLite, which aggregates.

A value's kind is its own there, whatever its column was declared as. The template takes values of the declared kind
alone: text in a column of integers counts as null, and so does 2.5; integers in a column of floats are floats; a blob
is always null. Booleans are integers, and dates text or numbers: cast them. NaN is null.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import sqlite3
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import polars as pl

from dpfast.aggregation.private import Private
from dpfast.errors import ColumnError, DpfastError, ParameterError, Words
from dpfast.integrations.sql.dialects import SQLITE, Dialect
from dpfast.integrations.sql.engine import SqlEngine, refused
from dpfast.integrations.sql.naming import from_clause
from dpfast.integrations.sql.template import Statement
from dpfast.integrations.sql.turns import turn

__all__ = ["SQLiteQuery"]

_Answer = TypeVar("_Answer")

_PART = re.compile(r'"((?:[^"]|"")*)"')


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
        return self._guarded(lambda: self._execute(sql, parameters))

    def _guarded(self, run: Callable[[], _Answer]) -> _Answer:
        with turn(self._connection):
            try:
                return run()
            except sqlite3.Error as error:
                text = str(error)
        if "same thread" in text:
            mend = "open it with sqlite3.connect(..., check_same_thread=False), as Polars collects in its own threads"
            raise ParameterError("connection", Words("one of another thread"), "one that any thread may use", mend)
        raise refused("SQLite", text)

    def describe(self, source: str) -> pl.Schema:
        """Return the columns, by the types that their tables declare."""
        columns = self._described_query(source) if source.startswith("(") else self._described_table(source)
        names = [name for name, _ in columns]
        given = {name.casefold() for name in names}
        for name in names:
            # In a view the second column of a name has a number.
            first = re.fullmatch(r"(.*):\d+", name, re.S)
            if first and first[1].casefold() in given:
                raise ColumnError(f"two columns of the query have the name {first[1]!r}; rename one of them with AS")
        unknown = set(self._declared) - set(names)
        if unknown:
            raise ParameterError("schema", sorted(unknown), f"of the columns {names[:8]}")
        return pl.Schema({name: self._declared.get(name, _dtype(kind)) for name, kind in columns})

    def _described_table(self, source: str) -> list[Any]:
        """Return the names and types of a table's or view's columns, but those that only hidden ones have."""
        parts = [part.replace('""', '"') for part in _PART.findall(source)]
        marks = "?, ?" if len(parts) == 2 else "?"
        asked = f"SELECT name, type FROM pragma_table_xinfo({marks}) WHERE hidden <> 1"
        columns = self._before(asked, parts[::-1]) if len(parts) <= 2 else []
        if not columns:
            # Let SQLite say what is wrong.
            self._before(f"EXPLAIN SELECT * FROM {source}")
        return columns

    def _described_query(self, source: str) -> list[Any]:
        """Return the names and types of a query's columns: those of a view, which nobody sees."""
        if self._before("PRAGMA query_only") == [(1,)]:
            mend = "name a table or view, or open the database with mode=ro instead"
            raise ParameterError("connection", Words("one with PRAGMA query_only=1"), "without it for a query", mend)
        view = f"dpfast_{secrets.token_hex(8)}"
        self._before(f"CREATE TEMP VIEW {view} AS SELECT * FROM {source} AS dpf_source")
        try:
            return self._before(f"SELECT name, type FROM pragma_table_xinfo('{view}', 'temp')")
        finally:
            self._before(f"DROP VIEW IF EXISTS temp.{view}")

    def refuse(self) -> None:
        """Refuse a connection that is closed or another thread's, and a database of UTF-16."""
        if self._connection.text_factory is not str:
            raise ParameterError("connection", Words("one with a text_factory"), "one whose text_factory is str")
        if self._before("PRAGMA encoding") != [("UTF-8",)]:
            raise DpfastError(
                "SQLite databases of UTF-16 are not supported; write it anew with PRAGMA encoding='UTF-8'"
            )
        # Functions cannot be registered anew while a cursor is open.
        if not self._has_functions():
            self._guarded(self._add_functions)

    def _has_functions(self) -> bool:
        try:
            return self._before("SELECT dpfast_md5(x'61'), dpfast_bytes('61')") == [(_hash(b"a"), b"a")]
        except DpfastError:
            return False

    def _add_functions(self) -> None:
        self._connection.create_function("dpfast_md5", 1, _hash, deterministic=True)
        self._connection.create_function("dpfast_bytes", 1, _bytes, deterministic=True)

    def explain(self, statement: Statement) -> None:
        """Let SQLite compile the statement."""
        self._before(f"EXPLAIN {statement.sql}", statement.parameters)

    def fetch(self, statement: Statement) -> pl.DataFrame:
        """Return the result."""
        with turn(self._connection, charged=True):
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
