"""DuckDB: connections and relations, which supply rows as Arrow or aggregate them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import polars as pl

from dpfast.aggregation.private import Private
from dpfast.errors import DpfastError, ParameterError, Words
from dpfast.integrations.sql.dialects import DUCKDB, Dialect
from dpfast.integrations.sql.engine import SqlEngine, refuse_ambiguous, refused
from dpfast.integrations.sql.naming import from_clause
from dpfast.integrations.sql.template import Statement
from dpfast.integrations.sql.turns import busy, turn

__all__ = ["DuckDBQuery", "DuckDBRelation", "DuckDBRows"]

#: DuckDB's threads make such batches ahead, while others are aggregated. The memory of larger ones goes back to the
#: system when they are dropped, and fresh memory takes longer than the copy; of smaller ones each takes its time.
_BATCH_ROWS = 1 << 16
_RELATION = "dpfast_relation"

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
        # DuckDB hands out the widest integers as decimals without places.
        *("HUGEINT", "TIMESTAMP_S", "TIME", "TIME_NS", "BLOB", "UUID"),
    ]
)


_Answer = TypeVar("_Answer")


#: Runs a statement on a connection.
_Ask: TypeAlias = "Callable[[str], Any]"


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
    if text == "ResourceInUseException":
        raise busy("one with an open result")
    raise refused("DuckDB", text)


def _usable(relation: Any, ask: _Ask) -> tuple[pl.Schema, dict[str, str]]:
    """Return the columns of a relation that can be used, and the lines about others.

    The relation is not run, not even for no rows: without its optimizer, DuckDB reads all of them for ``LIMIT 0``. The
    connection is asked how it hands out a null of each type, which depends on its settings.
    """
    refuse_ambiguous(list(relation.columns), folds_case=True)
    kinds = dict(zip(relation.columns, map(str, relation.types), strict=True))
    names = [name for name, kind in kinds.items() if kind in _USABLE or kind.startswith(("ENUM(", "DECIMAL("))]
    lines = {
        name: f"the column {name!r} of type {kind[:40]} cannot be used: cast it in the query to a number, a string, "
        "a date or a timestamp"
        for name, kind in kinds.items()
        if name not in names
    }
    types = ["VARCHAR" if kinds[name].startswith("ENUM(") else kinds[name] for name in names]
    nulls = ", ".join(f"CAST(NULL AS {kind}) AS c{i}" for i, kind in enumerate(types))
    dtypes = pl.DataFrame(ask(f"SELECT {nulls or 'NULL'} WHERE 1 = 0").to_arrow_table()).dtypes
    return pl.Schema(dict(zip(names, dtypes, strict=False))), lines


def _every(relation: Any, ask: _Ask) -> pl.Schema:
    """Return all columns, those that cannot be used with a dtype that is refused by name."""
    schema, lines = _usable(relation, ask)
    kinds = dict(zip(relation.columns, map(str, relation.types), strict=True))
    others = {name: pl.UInt128() if kinds[name] == "UHUGEINT" else pl.Binary() for name in lines}
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


class _Connection:
    """A connection, and what is asked of it.

    Parameters
    ----------
    connection
        The connection of DuckDB.

    """

    def __init__(self, connection: Any) -> None:
        self._connection, self.owner = connection, connection

    def ask(self, sql: str, parameters: Sequence[Any] | None = None) -> Any:
        """Return a statement's relation."""
        return self._connection.sql(sql) if parameters is None else self._connection.sql(sql, params=parameters)

    def relate(self, source: str) -> Any:
        """Return the relation of what may follow FROM; nothing is read."""
        query = f"SELECT * FROM {source} AS dpf_source"
        if any("MULTI" in str(statement.type) for statement in self._connection.extract_statements(query)):
            # DuckDB would read the rows to find the columns, before the charge.
            mend = "name its columns: PIVOT ... ON column IN (...)"
            raise ParameterError("query", Words("a PIVOT whose columns are values of the data"), "a SELECT", mend)
        if source.startswith("("):
            # In FROM the second column of a name has another one.
            refuse_ambiguous(list(self._connection.sql(source).columns), folds_case=True)
        return self._connection.sql(query)

    def explain(self, statement: Statement) -> None:
        """Let DuckDB plan a statement."""
        # To draw the plan takes several times as long as to make it.
        self._connection.execute(f"EXPLAIN (FORMAT JSON) {statement.sql}", statement.parameters).fetchall()


class _RelationsConnection:
    """The connection of a relation, which older versions do not show: it is asked through the relation.

    Parameters
    ----------
    relation
        The relation of DuckDB.

    """

    def __init__(self, relation: Any) -> None:
        self._relation = relation
        self.owner = getattr(relation, "_con", None) or relation

    def ask(self, sql: str, parameters: Sequence[Any] | None = None) -> Any:
        """Return a statement's relation; its values are written as digits."""
        return self._relation.query(_RELATION, sql)

    def relate(self, source: str) -> Any:
        """Return the relation."""
        return self._relation

    def explain(self, statement: Statement) -> None:
        """Let DuckDB bind a statement."""
        self.ask(statement.sql).columns  # noqa: B018


class DuckDBRows(Private):
    """Rows of a relation; see `dpfast.aggregation.protocols.Rows`.

    They are read once: a relation may be of a stream of Arrow, and what is read twice may be of two states.

    Parameters
    ----------
    connection, source
        What is read.

    """

    repeatable = False

    def __init__(self, connection: _Connection | _RelationsConnection, source: str) -> None:
        self._connection, self._source = connection, source
        self._schema, self._refused = self._describe()

    @property
    def refused(self) -> Mapping[str, str]:
        """Columns of other types, with what to do."""
        return self._refused

    def schema(self) -> pl.Schema:
        """Return the columns that can be used."""
        return self._schema

    def _describe(self) -> tuple[pl.Schema, dict[str, str]]:
        connection = self._connection
        with turn(connection.owner):
            return _guarded(lambda: _usable(connection.relate(self._source), connection.ask))

    def check(self) -> None:
        """Refuse a relation that has other columns by now, or whose connection is closed or busy."""
        if self._describe()[0] != self._schema:
            raise ParameterError("data", Words("with other columns"), "the same as when it was planned", "plan again")

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield batches of up to 2**16 rows; other reads of this connection wait meanwhile."""
        with turn(self._connection.owner, charged=True):
            yield from _projected(self._connection.relate(self._source), columns).to_arrow_reader(_BATCH_ROWS)


class _Session:
    """What aggregates; see `dpfast.integrations.sql.engine.Session`."""

    dialect: Dialect = DUCKDB

    def __init__(self, connection: _Connection | _RelationsConnection) -> None:
        self._connection = connection
        self.written = isinstance(connection, _RelationsConnection)

    def describe(self, source: str) -> pl.Schema:
        """Return the columns."""
        connection = self._connection
        with turn(connection.owner):
            return _guarded(lambda: _every(connection.relate(source), connection.ask))

    def refuse(self) -> None:
        """Refuse a connection that is closed or busy, or whose transaction failed."""
        with turn(self._connection.owner):
            _guarded(lambda: self._connection.ask("SELECT 1").fetchall())

    def explain(self, statement: Statement) -> None:
        """Let DuckDB read the statement."""
        with turn(self._connection.owner):
            _guarded(lambda: self._connection.explain(statement))

    def fetch(self, statement: Statement) -> pl.DataFrame:
        """Return the result."""
        with turn(self._connection.owner, charged=True):
            return pl.DataFrame(self._connection.ask(statement.sql, statement.parameters).to_arrow_table())


class DuckDBQuery(Private):
    """A table or query of a connection; see `dpfast.aggregation.protocols.Database`."""

    def __init__(self, connection: Any, query: str) -> None:
        self._connection = _Connection(connection)
        self._source = from_clause(query, DUCKDB.identifier)

    def rows(self) -> DuckDBRows:
        """Return its rows."""
        return DuckDBRows(self._connection, self._source)

    def engine(self) -> SqlEngine:
        """Return what aggregates it."""
        return SqlEngine(_Session(self._connection), self._source)


class DuckDBRelation(Private):
    """A relation; see `dpfast.aggregation.protocols.Database`."""

    def __init__(self, relation: Any) -> None:
        self._connection = _RelationsConnection(relation)

    def rows(self) -> DuckDBRows:
        """Return its rows."""
        return DuckDBRows(self._connection, _RELATION)

    def engine(self) -> SqlEngine:
        """Return what aggregates it."""
        return SqlEngine(_Session(self._connection), _RELATION)
