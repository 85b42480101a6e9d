"""DuckDB: connections and relations, which supply rows as Arrow or aggregate them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import polars as pl

from dpfast.aggregation.private import Private
from dpfast.errors import DpfastError, ParameterError, Words
from dpfast.integrations.sql.dialects import DUCKDB, Dialect
from dpfast.integrations.sql.engine import SqlEngine, refuse_ambiguous, refused
from dpfast.integrations.sql.naming import from_clause
from dpfast.integrations.sql.template import Statement

__all__ = ["DuckDBQuery", "DuckDBRelation", "DuckDBRows"]

_BATCH_ROWS = 1 << 17

#: Another statement on its connection would end a result that is being read, and a relation does not say whose it is:
#: whatever reads from DuckDB waits for this.
_ONE_AT_A_TIME = threading.Lock()

#: Types that mean the same to Polars and to the template; others are to be cast.
_USABLE = frozenset(
    [
        *("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"),
        *(
            "FLOAT",
            "DOUBLE",
            "VARCHAR",
            "DATE",
            "TIMESTAMP",
            "TIMESTAMP_MS",
            "TIMESTAMP_NS",
            "TIMESTAMP WITH TIME ZONE",
        ),
    ]
)


_Answer = TypeVar("_Answer")


def _guarded(run: Callable[[], _Answer]) -> _Answer:
    """Return what DuckDB says before any row is read; its words are shown where they are about names and syntax."""
    import duckdb

    shown = (duckdb.CatalogException, duckdb.ParserException, duckdb.BinderException)
    try:
        return run()
    except DpfastError:
        raise
    except duckdb.Error as error:
        text = str(error) if isinstance(error, shown) else type(error).__name__
    raise refused("DuckDB", text)


def _usable(relation: Any) -> tuple[pl.Schema, dict[str, str]]:
    """Return the columns of a relation that can be used, and the lines about others."""
    refuse_ambiguous(list(relation.columns), folds_case=True)
    kinds = dict(zip(relation.columns, map(str, relation.types), strict=True))
    names = [name for name, kind in kinds.items() if kind in _USABLE or kind.startswith("ENUM(")]
    lines = {
        name: f"the column {name!r} of type {kind[:40]} cannot be used: cast it in the query to a number, a string, "
        "a date or a timestamp"
        for name, kind in kinds.items()
        if name not in names
    }
    if not names:
        return pl.Schema(), lines
    empty = _projected(relation, names).limit(0).to_arrow_table()
    return pl.DataFrame(empty).schema, lines


def _every(relation: Any) -> pl.Schema:
    """Return all columns, those that cannot be used with a dtype that is refused by name."""
    schema, lines = _usable(relation)
    kinds = dict(zip(relation.columns, map(str, relation.types), strict=True))
    dtypes = {"HUGEINT": pl.Int128(), "UHUGEINT": pl.UInt128()}
    others = {
        name: pl.Decimal(38, 0) if kinds[name].startswith("DECIMAL") else dtypes.get(kinds[name], pl.Binary())
        for name in lines
    }
    return pl.Schema({**schema, **others})


def _projected(relation: Any, names: Sequence[str]) -> Any:
    """Return the columns, enumerations as strings."""
    kinds = dict(zip(relation.columns, map(str, relation.types), strict=True))
    return relation.project(
        ", ".join(
            f"CAST({quoted} AS VARCHAR) AS {quoted}" if kinds[name].startswith("ENUM(") else quoted
            for name, quoted in ((name, DUCKDB.identifier(name)) for name in names)
        )
    )


class DuckDBRows(Private):
    """Rows of a relation; see `dpfast.aggregation.protocols.Rows`.

    Parameters
    ----------
    relate
        Returns the relation; nothing is read.

    """

    repeatable = True

    def __init__(self, relate: Callable[[], Any]) -> None:
        self._relate = relate
        self._schema: pl.Schema
        self._refused: Mapping[str, str]
        with _ONE_AT_A_TIME:
            self._schema, self._refused = _guarded(lambda: _usable(relate()))

    @property
    def refused(self) -> Mapping[str, str]:
        """Columns of other types, with what to do."""
        return self._refused

    def schema(self) -> pl.Schema:
        """Return the columns that can be used."""
        return self._schema

    def check(self) -> None:
        """Refuse a relation that has other columns by now, or whose connection is closed."""
        with _ONE_AT_A_TIME:
            schema, _ = _guarded(lambda: _usable(self._relate()))
        if schema != self._schema:
            raise ParameterError("data", Words("with other columns"), "the same as when it was planned", "plan again")

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield batches of at least 2**17 rows, but the last; other reads of DuckDB wait meanwhile."""
        with _ONE_AT_A_TIME:
            yield from _projected(self._relate(), columns).to_arrow_reader(_BATCH_ROWS)


class _ConnectionSession:
    """A connection that aggregates; see `dpfast.integrations.sql.engine.Session`."""

    dialect: Dialect = DUCKDB
    written = False

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def describe(self, source: str) -> pl.Schema:
        """Return the columns."""
        query = f"SELECT * FROM {source} AS dpf_source"
        with _ONE_AT_A_TIME:
            return _guarded(lambda: _every(self._connection.sql(query)))

    def refuse(self) -> None:
        """Refuse a connection that is closed, or whose transaction failed."""
        with _ONE_AT_A_TIME:
            _guarded(lambda: self._connection.execute("SELECT 1").fetchall())

    def explain(self, statement: Statement) -> None:
        """Let DuckDB plan the statement."""
        with _ONE_AT_A_TIME:
            _guarded(lambda: self._connection.execute(f"EXPLAIN {statement.sql}", statement.parameters).fetchall())

    def fetch(self, statement: Statement) -> pl.DataFrame:
        """Return the result."""
        with _ONE_AT_A_TIME:
            return pl.DataFrame(self._connection.sql(statement.sql, params=statement.parameters).to_arrow_table())


class _RelationSession:
    """A relation that is aggregated on its own connection, which it does not show: values are written as digits."""

    dialect: Dialect = DUCKDB
    written = True

    def __init__(self, relation: Any) -> None:
        self._relation = relation

    def _query(self, sql: str) -> Any:
        return self._relation.query("dpfast_relation", sql)

    def describe(self, source: str) -> pl.Schema:
        """Return the columns."""
        with _ONE_AT_A_TIME:
            return _guarded(lambda: _every(self._relation))

    def refuse(self) -> None:
        """Refuse a connection that is closed, or whose transaction failed."""
        with _ONE_AT_A_TIME:
            _guarded(lambda: self._query("SELECT 1").fetchall())

    def explain(self, statement: Statement) -> None:
        """Let DuckDB bind the statement."""
        with _ONE_AT_A_TIME:
            _guarded(lambda: self._query(statement.sql).columns)

    def fetch(self, statement: Statement) -> pl.DataFrame:
        """Return the result."""
        with _ONE_AT_A_TIME:
            return pl.DataFrame(self._query(statement.sql).to_arrow_table())


class DuckDBQuery(Private):
    """A table or query of a connection; see `dpfast.aggregation.protocols.Database`."""

    def __init__(self, connection: Any, query: str) -> None:
        self._connection = connection
        self._source = from_clause(query, DUCKDB.identifier)

    def rows(self) -> DuckDBRows:
        """Return its rows."""
        return DuckDBRows(lambda: self._connection.sql(f"SELECT * FROM {self._source} AS dpf_source"))

    def engine(self) -> SqlEngine:
        """Return what aggregates it."""
        return SqlEngine(_ConnectionSession(self._connection), self._source)


class DuckDBRelation(Private):
    """A relation; see `dpfast.aggregation.protocols.Database`."""

    def __init__(self, relation: Any) -> None:
        self._relation = relation

    def rows(self) -> DuckDBRows:
        """Return its rows."""
        return DuckDBRows(lambda: self._relation)

    def engine(self) -> SqlEngine:
        """Return what aggregates it."""
        return SqlEngine(_RelationSession(self._relation), "dpfast_relation")
