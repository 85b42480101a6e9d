"""What supplies data: rows to be aggregated here, or an engine that aggregates them where they are.

A plan knows nothing else of a library or a database. Both say their schema without reading data, and both are checked
before the charge; what is read of them after the charge is private, and so is the text of whatever they raise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeGuard

import polars as pl

from dpfast.queries import Bins, Measure
from dpfast.rows.calendars import Calendar
from dpfast.rows.filters import Filter

__all__ = ["Database", "Engine", "GroupQuery", "Rows", "is_database", "is_engine", "is_rows"]


class Rows(Protocol):
    """Rows that are read as Arrow batches."""

    @property
    def repeatable(self) -> bool:
        """Whether `batches` may be called more than once."""

    @property
    def refused(self) -> Mapping[str, str]:
        """Columns that are there and cannot be used, with the line that says why."""

    def schema(self) -> pl.Schema:
        """Return the names and dtypes of the columns that can be used; no row is read."""

    def check(self) -> None:
        """Refuse what cannot be read, or changed since it was opened; called right before the charge.

        Raises
        ------
        ParameterError
            With a line that depends on public facts alone.

        """

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield Arrow record batches of these columns, in this order, of any length."""


@dataclass(frozen=True)
class GroupQuery:
    """What an engine computes, exactly: a row for every group.

    The result is one Arrow table with the columns ``key0``, ``key1``, ..., then ``units``, then ``measure0``,
    ``measure1``, ..., in any order of rows. No two rows have the same keys.

    - ``key{i}``: the column's value, null being a key like any other; of bins the number of the bin, from 0, null for
      values outside, NaN and null; of calendars the part, null for what they do not show.
    - ``units`` (int64): the distinct units that kept rows in the group; where each row is a unit, its rows.
    - ``measure{i}`` (int64): the sum over the kept rows of what `dpfast.queries.Measure` says that a row contributes,
      bit for bit; of what units contribute themselves, the sum over the units that keep the group, all of whose rows
      there count.

    Attributes
    ----------
    keys
        The key columns; none is one group of all rows.
    measures
        Of the kinds ``"rows"``, ``"units"``, ``"values"``, ``"sum"``, ``"matches"``, ``"product"``, ``"unit_sum"``,
        ``"unit_mean"`` and ``"unit_values"``, the last three with a unit alone, and ``"bins"``, of a single one.
    unit
        The column that names whose row it is; rows where it is null are dropped. None where each row is a unit: then
        nothing is bounded.
    max_groups, max_rows_per_group
        What a unit keeps at most. Which of its groups, and which of its rows there, is a function of the unit's own
        rows and ``salt``: for every salt the sensitivities of Soundness rule 14 hold, as the units that two
        neighbouring data share keep the same rows in both.
    public
        With a unit, the keys that may be kept, under the names ``key0``, ``key1``, ...: rows of others are dropped
        before anything is chosen. None if all may. Without a unit always None: others are dropped from the result.
    salt
        32 fresh random bytes.
    where
        Which rows count: all others are dropped before anything else. None for all.

    """

    keys: tuple[str | Bins | Calendar, ...]
    measures: tuple[Measure, ...]
    unit: str | None = None
    max_groups: int = 1
    max_rows_per_group: int = 1
    public: pl.DataFrame | None = None
    salt: bytes = field(default=b"", repr=False)
    where: Filter | None = None


class Engine(Protocol):
    """A database that aggregates by group."""

    @property
    def name(self) -> str:
        """What an explanation calls it, such as ``"PostgreSQL"``."""

    def schema(self) -> pl.Schema:
        """Return the names of the columns and the dtypes in which keys come back; no row is read."""

    def check(self, query: GroupQuery) -> None:
        """Refuse an engine that cannot be reached, computes otherwise than it must, or cannot be asked this query.

        It is called right before the charge, with the query that follows, but for the salt.

        Raises
        ------
        ParameterError, DpfastError
            With a line that depends on public facts alone.

        """

    def aggregate(self, query: GroupQuery) -> Any:
        """Return the result as an Arrow table; see `GroupQuery`."""


class Database(Protocol):
    """Data of another library, which may be read as rows, aggregated where it is, or both."""

    def rows(self) -> Rows | None:
        """Return the rows, or None if they cannot be read."""

    def engine(self) -> Engine | None:
        """Return what aggregates, or None if nothing can."""


def is_rows(data: object) -> TypeGuard[Rows]:
    """Return whether an object supplies rows."""
    return _has_methods(data, "schema", "check", "batches")


def is_engine(data: object) -> TypeGuard[Engine]:
    """Return whether an object aggregates."""
    return _has_methods(data, "schema", "check", "aggregate")


def is_database(data: object) -> TypeGuard[Database]:
    """Return whether an object offers rows or an engine."""
    return _has_methods(data, "rows", "engine")


def _has_methods(data: object, *names: str) -> bool:
    """Return whether an object's class has methods; its columns may be attributes of these names."""
    return all(callable(getattr(type(data), name, None)) for name in names)
