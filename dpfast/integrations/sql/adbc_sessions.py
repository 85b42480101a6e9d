"""ADBC connections, which supply rows as Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from dpfast.aggregation.arrow_streams import polars_schema
from dpfast.aggregation.private import Private
from dpfast.errors import DpfastError, ParameterError, Words
from dpfast.integrations.sql.dialects import POSTGRESQL
from dpfast.integrations.sql.naming import from_clause

__all__ = ["AdbcQuery"]

_LONGEST_NAME = 63


class AdbcQuery(Private):
    """A table or query of an ADBC connection, as rows; see `dpfast.aggregation.protocols.Rows` and ``Database``.

    They are read once, so that they are of one snapshot; what is needed twice waits here. The driver has to know the
    columns of a query without running it, as that of PostgreSQL does.
    """

    repeatable = False

    def __init__(self, connection: Any, query: str) -> None:
        self._connection = connection
        self._source = from_clause(query, POSTGRESQL.identifier, _LONGEST_NAME)
        self._schema: pl.Schema | None = None
        self._refused: Mapping[str, str] = {}

    def rows(self) -> AdbcQuery:
        """Return the rows: this object."""
        self._schema, self._refused = self._describe()
        return self

    def engine(self) -> None:
        """Return None: ADBC binds no lists of keys."""

    @property
    def refused(self) -> Mapping[str, str]:
        """Columns that Polars cannot hold."""
        return self._refused

    def schema(self) -> pl.Schema:
        """Return the columns."""
        assert self._schema is not None
        return self._schema

    def _describe(self) -> tuple[pl.Schema, dict[str, str]]:
        try:
            with self._connection.cursor() as cursor:
                schema = cursor.adbc_execute_schema(f"SELECT * FROM {self._source} AS dpf_source")
        except Exception as error:
            kind = type(error).__name__
        else:
            return polars_schema(schema, "query")
        if kind == "NotSupportedError":
            # A stream of such a driver is no way out: its types are those of the first rows.
            mend = "for SQLite, open it with sqlite3: dpf.sql(sqlite3.connect(path), query)"
            allowed = "of a driver that tells the columns of a query"
            raise ParameterError("connection", Words("one that does not"), allowed, mend)
        mend = "; if an earlier statement failed, call connection.rollback()" if kind == "ProgrammingError" else ""
        raise DpfastError(f"the database refuses the query, or is not there ({kind}){mend}")

    def check(self) -> None:
        """Refuse a query that has other columns by now, or a connection that is closed."""
        if self._describe()[0] != self._schema:
            raise ParameterError("data", Words("with other columns"), "the same as when it was planned", "plan again")

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield the driver's batches."""
        names = ", ".join(f"dpf_source.{POSTGRESQL.identifier(name)}" for name in columns)
        with self._connection.cursor() as cursor:
            cursor.execute(f"SELECT {names} FROM {self._source} AS dpf_source")
            yield from cursor.fetch_record_batch()
