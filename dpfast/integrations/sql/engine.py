"""A database that aggregates: the template, asked through a session of whatever database it is."""

from __future__ import annotations

from typing import Any, Protocol

import polars as pl

from dpfast.aggregation.keys import plan_keys
from dpfast.aggregation.private import Private
from dpfast.aggregation.protocols import GroupQuery
from dpfast.columns.values import Decimals
from dpfast.errors import ColumnError, DpfastError, ParameterError, Words
from dpfast.integrations.sql.checking import check_figures
from dpfast.integrations.sql.dialects import Dialect, Kind
from dpfast.integrations.sql.template import Statement, write

__all__ = ["Session", "SqlEngine"]


class Session(Protocol):
    """What the engine asks of a connection."""

    @property
    def dialect(self) -> Dialect:
        """The engine's words."""

    @property
    def written(self) -> bool:
        """Whether values are written into the statement, as text that no value can leave."""

    def describe(self, source: str) -> pl.Schema:
        """Return the columns of what may follow FROM; no row is read."""

    def refuse(self) -> None:
        """Refuse a connection that is closed, or in a state in which nothing can be asked."""

    def explain(self, statement: Statement) -> None:
        """Let the database read the statement, but none of its rows."""

    def fetch(self, statement: Statement) -> pl.DataFrame:
        """Return the result: integers, and strings or their UTF-8."""


class SqlEngine(Private):
    """Aggregates by SQL; see `dpfast.aggregation.protocols.Engine`.

    Parameters
    ----------
    session
        The connection.
    source
        What follows FROM.

    """

    def __init__(self, session: Session, source: str) -> None:
        self._session, self._source = session, source
        session.refuse()
        self._schema = session.describe(source)
        refuse_ambiguous(self._schema.names(), folds_case=session.dialect.folds_case)

    @property
    def name(self) -> str:
        """The database's name."""
        return self._session.dialect.name

    def schema(self) -> pl.Schema:
        """Return the columns and their dtypes."""
        return self._schema

    def check(self, query: GroupQuery | None = None) -> None:
        """Refuse an engine that cannot be reached, computes otherwise than it must, or cannot be asked this."""
        session = self._session
        session.refuse()
        if session.describe(self._source) != self._schema:
            raise ParameterError("data", Words("with other columns"), "the same as when it was planned", "plan again")
        failed = False
        try:
            check_figures(session.dialect, self._ask)
        except DpfastError:
            raise
        except Exception:
            failed = True
        if failed:
            raise refused(self.name, "a public table of constants cannot be aggregated there")
        if query is not None:
            session.explain(self._write(query))

    def aggregate(self, query: GroupQuery) -> Any:
        """Return the groups as an Arrow table."""
        return self._read(self._write(query), _dtypes(query, self._schema)).to_arrow()

    def _write(self, query: GroupQuery) -> Statement:
        return write(self._session.dialect, self._source, self._schema, query, written=self._session.written)

    def _ask(self, source: str, schema: pl.Schema, query: GroupQuery) -> pl.DataFrame:
        """Return the groups of a query of public constants."""
        statement = write(self._session.dialect, source, schema, query, written=self._session.written)
        return self._read(statement, _dtypes(query, schema))

    def _read(self, statement: Statement, dtypes: list[pl.DataType]) -> pl.DataFrame:
        found = self._session.fetch(statement)
        keys = [
            _key(found[f"key{i}"], kind, dtype)
            for i, (kind, dtype) in enumerate(zip(statement.kinds, dtypes, strict=True))
        ]
        figures = found.select(pl.exclude([f"key{i}" for i in range(len(keys))])).cast(pl.Int64)
        whole = pl.DataFrame([*keys, *figures.get_columns()])
        # Bytes that are no UTF-8 are no key; that depends on the key alone.
        readable = pl.Series([True]).new_from_index(0, whole.height)
        for key in keys:
            readable &= found[key.name].is_null() | key.is_not_null()
        return whole.filter(readable)


def _dtypes(query: GroupQuery, schema: pl.Schema) -> list[pl.DataType]:
    return [key.dtype for key in plan_keys(query.keys, schema)]


def _key(values: pl.Series, kind: Kind, dtype: pl.DataType) -> pl.Series:
    """Return keys in the dtype of their column."""
    if kind == "string":
        if values.dtype == pl.Binary:
            values = pl.Series(values.name, [_text(value) for value in values], dtype=pl.String)
        return values.cast(pl.String)
    if isinstance(dtype, pl.Decimal):
        return Decimals(scale=dtype.scale).of_places(values.cast(pl.Int64)).alias(values.name).cast(dtype)
    if kind == "date":
        return values.cast(pl.Int32).cast(dtype)
    if kind == "boolean":
        return values.cast(pl.Int64).cast(pl.Boolean).cast(dtype)
    return values.cast(pl.UInt64 if kind == "unsigned" else pl.Int64).cast(dtype)


def _text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def refuse_ambiguous(names: list[str], *, folds_case: bool) -> None:
    """Refuse columns of one name: databases take one for the other."""
    seen: dict[str, str] = {}
    for name in names:
        folded = name.casefold() if folds_case else name
        if folded in seen:
            raise ColumnError(f"the columns {seen[folded]!r} and {name!r} have one name; rename one of them with AS")
        seen[folded] = name


def refused(name: str, text: str) -> DpfastError:
    """Return the error for what a database says before any row is read."""
    return DpfastError(f"{name} refuses the query: {' '.join(text.split())[:300]}")
