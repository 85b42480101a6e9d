"""How rows are grouped, and what comes of it: exact figures, before any noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from dpfast.accounting.privacy_unit import BOUND
from dpfast.aggregation.contributions import Contribution, plan_contributions
from dpfast.aggregation.filtering import check_filter
from dpfast.aggregation.kept_groups import KeptGroups
from dpfast.aggregation.keys import KeyColumn, KeyEntry, PublicKeys, label_keys, plan_keys, prepare_keys
from dpfast.aggregation.losses import LossCounts
from dpfast.aggregation.private import Private
from dpfast.aggregation.sources import missing_column, refuse_pattern
from dpfast.aggregation.unit_sums import UnitSums
from dpfast.aggregation.unit_survey import UnitSurvey
from dpfast.aggregation.units import express_unit
from dpfast.columns.tables import rows_alone
from dpfast.errors import ColumnError
from dpfast.queries import Bins, Measure
from dpfast.rows.calendars import Calendar
from dpfast.rows.filters import Filter

__all__ = ["Aggregates", "Columns", "Grouping", "Words", "find_columns"]

#: ``words(n)`` returns n fresh uniform uint64.
Words: TypeAlias = Callable[[int], np.ndarray]


@dataclass(frozen=True)
class Grouping:
    """How rows are grouped, and what one privacy unit may contribute.

    Parameters
    ----------
    by
        The key columns: a name, ``Bins`` of a numeric column, or a part of dates. None at all is one group of all rows.
    keys
        The public keys, one column per entry of ``by``; None for the keys that the data holds. Keys may have
        another dtype of the same kind than the data: strings and categoricals, integers of any width.
    privacy_unit
        The column that names whose row it is; None if every row is a unit of its own.
    max_groups, max_rows_per_group
        What a unit keeps at most; both are needed with ``privacy_unit``, and mean nothing without.
    population
        How many units there are at most, where that is public: no more memory is asked for than they need.
    by_unit
        Whether figures of every pair of a unit and a group are wanted, of all rows, in place of bounds: for
        mechanisms that bound a unit as a whole.
    where
        Which rows count: all others are dropped before anything else. None for all.

    Raises
    ------
    ParameterError
        If ``privacy_unit`` lacks a bound (Soundness rule 15), or a bound is no whole number of at least 1.

    """

    by: tuple[KeyEntry, ...]
    keys: pl.DataFrame | None = None
    privacy_unit: str | None = None
    max_groups: int | None = None
    max_rows_per_group: int | None = None
    population: int | None = None
    by_unit: bool = False
    where: Filter | None = None

    def __post_init__(self) -> None:
        if isinstance(self.by, (str, Bins, Calendar)):
            object.__setattr__(self, "by", (self.by,))
        object.__setattr__(self, "by", tuple(self.by))
        if self.privacy_unit is None or self.by_unit:
            return
        for name in ("max_groups", "max_rows_per_group"):
            BOUND.read(name, getattr(self, name))


@dataclass(repr=False)
class Aggregates(Private):
    """Exact aggregates: private until noise is added, and never to leave the process.

    Attributes
    ----------
    keys
        One row per group. Public keys as they were given, row by row. Otherwise the keys found in the data, in
        no particular order: they are private, and so are the bytes behind them, which may hold keys of dropped
        rows; keys that are released are built anew (Soundness rule 20).
    units : int64
        The distinct units that kept rows in each group, or the rows where the row is the unit. None where it
        would be the rows of public keys, which ``Measure("rows")`` gives.
    measures : int64
        One array per measure, in order, aligned with ``keys``; to be read only, they may share memory. For points
        ``GroupedPoints``, as long as ``keys``; for choices the same, or a row of counts for each key.
    holdings
        Which keys each unit holds, in parts of different units; none unless `Aggregation.lists_groups`.
    by_unit
        What each unit adds, where `Grouping.by_unit` asks for it: then there are no measures.
    losses
        How many units lose how much where they are bounded; None unless `Aggregation.tells_losses`.
    survey
        What units have before they are bounded; None unless `Aggregation.surveys_units`: then there are no measures.

    """

    keys: pl.DataFrame
    units: np.ndarray | None
    measures: list[Any]
    holdings: KeptGroups | tuple[()] = ()
    by_unit: UnitSums | None = None
    losses: LossCounts | None = None
    survey: UnitSurvey | None = None

    def __repr__(self) -> str:
        return f"Aggregates({len(self.measures)} measures, private)"


@dataclass(frozen=True)
class Columns:
    """What a grouping and its measures read of a schema.

    Attributes
    ----------
    keys, contributions, unit
        The key columns, what rows add, and the expression of the unit.
    public
        The public keys, None where keys are found in the data.

    """

    keys: list[KeyColumn]
    contributions: list[Contribution]
    unit: pl.Expr | None
    public: PublicKeys | None

    def no_keys(self) -> pl.DataFrame:
        """Return the key columns of aggregates without a row: they depend on schema and parameters alone."""
        if self.public is not None:
            return self.public.given.clear()
        # Polars groups a column without values as one of Booleans.
        dtypes = [pl.Boolean() if column.dtype == pl.Null else column.dtype for column in self.keys]
        found = {f"key{i}": pl.Series([], dtype=dtype) for i, dtype in enumerate(dtypes)}
        return label_keys(pl.DataFrame(found), self.keys)


def find_columns(schema: pl.Schema, grouping: Grouping, measures: Sequence[Measure]) -> Columns:
    """Return the columns that are read, or refuse them; no row is looked at, and whether keys are unique neither.

    Raises
    ------
    ColumnError
        If a column is missing or of a dtype that does not serve.
    ParameterError
        If a public key is no value of the data's dtype, or a measure could overflow.

    """
    if not schema:
        raise ColumnError("the data has no columns")
    if grouping.where is not None:
        check_filter(grouping.where, schema)
    keys = plan_keys(grouping.by, schema)
    contributions = plan_contributions(measures, schema)
    unit = None
    if grouping.privacy_unit is not None:
        if grouping.privacy_unit not in schema:
            raise missing_column(grouping.privacy_unit, schema.names(), "privacy_unit")
        refuse_pattern(grouping.privacy_unit)
        unit = express_unit(grouping.privacy_unit, schema[grouping.privacy_unit]).alias("unit")
    given = grouping.keys
    if given is None and not keys:
        given = rows_alone(1)
    return Columns(keys, contributions, unit, None if given is None else prepare_keys(given, keys))
