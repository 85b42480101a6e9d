"""From a frame and public parameters to exact int64 aggregates per group, before any noise.

Three ways lead to the same figures. With public keys, rows are scattered into a table (integers, dates,
Booleans, categoricals, bins and strings all become integers in a known range or have a place in a hash table).
Without, or where the keys' codes do not fit into 63 bits, Polars groups. With a privacy unit, what each unit
contributes is bounded first, which needs each row's unit and group (8 bytes a row) and the measured columns in
memory, or on the disk where they outgrow their share of it (`dpfast.aggregation.by_unit`); in the other cases a file
is never loaded whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from dpfast.accounting.privacy_unit import BOUND
from dpfast.aggregation.by_unit import UnitRows, aggregate_by_unit
from dpfast.aggregation.coding import KeyCoder, duplicate_keys
from dpfast.aggregation.contributions import ROWS, Contribution, plan_contributions
from dpfast.aggregation.guarding import check_rows, read_guarded
from dpfast.aggregation.kept_groups import KeptGroups
from dpfast.aggregation.keys import KeyColumn, PublicKeys, adopt_keys, label_keys, name_of, plan_keys, prepare_keys
from dpfast.aggregation.memory import check_memory, room_for_rows
from dpfast.aggregation.native import bin_keys, find_keys, group_natively, join_to_keys, match_rows, read_measure
from dpfast.aggregation.private import Private
from dpfast.aggregation.scatter import Scatter, feed, value_exprs
from dpfast.aggregation.sources import Source, missing_column, refuse_pattern
from dpfast.aggregation.spilling import check_disk
from dpfast.aggregation.units import express_unit
from dpfast.errors import ColumnError, DpfastError, ParameterError
from dpfast.queries import Bins, Measure

__all__ = ["Aggregates", "Aggregation", "Grouping", "aggregate", "prepare"]

Words = Callable[[int], np.ndarray]

_MOST_GROUPS = 2**31 - 1

_UNPACKED = 4
#: A row of text, and what a row that is kept takes while its point waits for those of its group.
_LEAST_BYTES_PER_ROW, _BYTES_PER_POINT = 2, 12
"""How many times as large as their files rows in memory are taken to be, when it is judged if they fit."""


@dataclass(frozen=True)
class Grouping:
    """How rows are grouped, and what one privacy unit may contribute.

    Parameters
    ----------
    by
        The key columns: a name, or ``Bins`` of a numeric column. None at all is one group of all rows.
    keys
        The public keys, one column per entry of ``by``; None for the keys that the data holds. Keys may have
        another dtype of the same kind than the data: strings and categoricals, integers of any width.
    privacy_unit
        The column that names whose row it is; None if every row is a unit of its own.
    max_groups, max_rows_per_group
        What a unit keeps at most; both are needed with ``privacy_unit``, and mean nothing without.
    population
        How many units there are at most, where that is public: no more memory is asked for than they need.

    Raises
    ------
    ParameterError
        If ``privacy_unit`` lacks a bound (Soundness rule 15), or a bound is no whole number of at least 1.

    """

    by: tuple[str | Bins, ...]
    keys: pl.DataFrame | None = None
    privacy_unit: str | None = None
    max_groups: int | None = None
    max_rows_per_group: int | None = None
    population: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.by, (str, Bins)):
            object.__setattr__(self, "by", (self.by,))
        object.__setattr__(self, "by", tuple(self.by))
        if self.privacy_unit is None:
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

    """

    keys: pl.DataFrame
    units: np.ndarray | None
    measures: list[Any]
    holdings: KeptGroups | tuple[()] = ()

    def __repr__(self) -> str:
        return f"Aggregates({len(self.measures)} measures, private)"


def aggregate(
    source: Source | pl.DataFrame | pl.LazyFrame,
    grouping: Grouping,
    measures: Sequence[Measure],
    words: Words,
) -> Aggregates:
    """Return exact aggregates: ``prepare`` and ``Aggregation.run`` in one call."""
    return prepare(source, grouping, measures).run(words)


def prepare(
    source: Source | pl.DataFrame | pl.LazyFrame, grouping: Grouping, measures: Sequence[Measure]
) -> Aggregation:
    """Check all that can be checked without reading a row, and choose a route.

    Guarantee: only the schema and the parameters are looked at, so this may be done before the charge; what
    follows in ``Aggregation.run`` raises no error that depends on a value (Soundness rule 12). This assumes that
    a LazyFrame's own expressions are total (no strict casts, no Python functions that raise): whether one of
    them fails is one bit about the data.

    Parameters
    ----------
    source
        What ``open_source`` gives, or a frame.
    grouping
        The groups and the privacy unit.
    measures
        What is aggregated.

    Raises
    ------
    ColumnError
        If a column is missing or of a dtype that does not serve.
    ParameterError
        If the public keys are not unique, or not values of the data's dtypes, or a measure could overflow.

    """
    if isinstance(source, (pl.DataFrame, pl.LazyFrame)):
        source = Source(source)
    if not isinstance(source, Source):
        raise ParameterError("source", source, "what open_source gives")
    schema = source.collect_schema()
    if not schema:
        raise ColumnError("the data has no columns")
    source.require([*map(name_of, grouping.by), *(measure.column for measure in measures), grouping.privacy_unit])
    columns = plan_keys(grouping.by, schema)
    contributions = plan_contributions(measures, schema)
    unit = None
    if grouping.privacy_unit is not None:
        if grouping.privacy_unit not in schema:
            raise missing_column(grouping.privacy_unit, schema.names(), "privacy_unit")
        refuse_pattern(grouping.privacy_unit)
        unit = express_unit(grouping.privacy_unit, schema[grouping.privacy_unit]).alias("unit")
    given = grouping.keys
    if given is None and not columns:
        given = pl.DataFrame(height=1)
    public = None if given is None else prepare_keys(given, columns)
    coder = None if public is None else _code(public)
    if public is not None and coder is None and not public.native.is_unique().all():
        raise duplicate_keys()
    return Aggregation(source, grouping, columns, contributions, unit, public, coder)


@dataclass(frozen=True, repr=False)
class Aggregation(Private):
    """A checked aggregation that can be run; it holds the source and no figure of it.

    It cannot be pickled or copied, and its ``repr`` shows public facts only.

    Attributes
    ----------
    source, grouping, columns, contributions, unit
        What is aggregated, and the expressions for it.
    public, coder
        The public keys and the coder that finds them, None where there are none or they cannot be coded.
    lists_groups
        Whether to tell which keys each unit holds, of keys found in the data.

    """

    source: Source
    grouping: Grouping
    columns: list[KeyColumn]
    contributions: list[Contribution]
    unit: pl.Expr | None
    public: PublicKeys | None
    coder: KeyCoder | None
    lists_groups: bool = False

    @property
    def route(self) -> str:
        """How the rows find their groups: ``"slots"``, ``"hashed"`` or ``"native"``."""
        if self.coder is None:
            return "native"
        return "hashed" if self.coder.hashed else "slots"

    def __repr__(self) -> str:
        names = [column.name for column in self.columns]
        return f"Aggregation(by={names}, measures={len(self.contributions)}, route={self.route!r})"

    def no_keys(self) -> pl.DataFrame:
        """Return the key columns of the aggregates without a row: they depend on schema and parameters alone."""
        if self.public is not None:
            return self.public.given.clear()
        # Polars groups a column without values as one of Booleans.
        dtypes = [pl.Boolean() if column.dtype == pl.Null else column.dtype for column in self.columns]
        found = {f"key{i}": pl.Series([], dtype=dtype) for i, dtype in enumerate(dtypes)}
        return label_keys(pl.DataFrame(found), self.columns)

    def check_source(self) -> None:
        """Refuse files that changed since they were opened, and what cannot be met; to be called before the charge.

        Raises
        ------
        ParameterError
            If a file was replaced, written to or removed. Files that a user's own LazyFrame scans are not known.
            With a privacy unit also if the tables do not fit into memory, nor the points of quantiles that the
            files' rows may have, or if these rows may not fit and no folder on a disk has as much room as the files
            take. That is judged by the public keys and population, and by the sizes and footers of files alone.

        """
        self.source.check()
        if self.unit is None:
            return
        groups = 1 if self.public is None else self.public.given.height
        slots = groups if self.coder is None else self.coder.slots
        tables = groups * (8 * len(self.contributions) + 48) + 4 * slots
        check_memory(tables)
        lists = sum(contribution.measure.kind == "points" for contribution in self.contributions)
        if lists:
            check_memory(tables + _BYTES_PER_POINT * lists * self._most_rows_kept(), "points of quantiles")
        size = sum(pin.size for pin in self.source.pins)
        if _UNPACKED * size > room_for_rows():
            check_disk(size)

    def _most_rows_kept(self) -> int:
        """Return how many rows of files units keep at most; 0 for data in memory, which are as large themselves."""
        if not self.source.pins:
            return 0
        if self.source.counted:
            rows = int(self.source.frame.lazy().select(pl.len()).collect().item())
        else:
            rows = sum(pin.size for pin in self.source.pins) // _LEAST_BYTES_PER_ROW
        asked = self.grouping
        if asked.population is None or asked.max_groups is None or asked.max_rows_per_group is None:
            return rows
        return min(rows, asked.population * asked.max_groups * asked.max_rows_per_group)

    def run(self, words: Words) -> Aggregates:
        """Return the exact aggregates.

        Parameters
        ----------
        words
            ``words(n)`` returns n fresh uniform uint64 from a secure source; called only with a privacy unit.
            What a unit keeps is private and must not be computable from outside.

        Raises
        ------
        DpfastError, MemoryError
            Of fixed words, if the data cannot be read to its end or changed: see `read_guarded`.

        """
        return read_guarded(self.source, lambda: self._run(words))

    def _run(self, words: Words) -> Aggregates:
        if self.unit is not None:
            return self._run_by_unit(words)
        if self.public is not None and self.coder is not None:
            return Aggregates(self.public.given, None, self._scatter(self.public, self.coder, self.contributions))
        if self.public is None and any(contribution.measure.selects for contribution in self.contributions):
            # Lists made by the engine cost more than a first pass that finds the keys.
            found, coder = self._find_keys()
            if coder is not None:
                *measures, rows = self._scatter(found, coder, [*self.contributions, ROWS])
                return Aggregates(found.given, rows, measures)
        return self._run_natively()

    def _find_keys(self) -> tuple[PublicKeys, KeyCoder | None]:
        """Return the keys found in the data as if they were public, and their coder."""
        found = adopt_keys(find_keys(*bin_keys(self.source.frame, self.columns, [])), self.columns)
        return found, _code(found)

    def _scatter(self, keys: PublicKeys, coder: KeyCoder, contributions: Sequence[Contribution]) -> list[Any]:
        """Return the measures of these keys."""
        scatter = Scatter(coder.slots, coder.slots_of, contributions)
        check_rows(self.source, feed(self.source.frame, [*keys.coded_exprs, *value_exprs(contributions)], scatter.add))
        return [coder.gather(table) for table in scatter.tables()]

    def _run_natively(self) -> Aggregates:
        """Let Polars group."""
        if self.public is not None:
            grouped = group_natively(self.source.frame, self.public.native_exprs, self.contributions)
            grouped = join_to_keys(grouped, self.public)
        else:
            grouped = group_natively(*bin_keys(self.source.frame, self.columns, self.contributions), self.contributions)
        rows = grouped["rows"].to_numpy()
        measures = [
            rows if contribution.native is None else read_measure(grouped[f"measure{i}"])
            for i, contribution in enumerate(self.contributions)
        ]
        if self.public is not None:
            return Aggregates(self.public.given, None, measures)
        found = label_keys(grouped.select(grouped.columns[: len(self.columns)]), self.columns)
        return Aggregates(found, rows, measures)

    def _run_by_unit(self, words: Words) -> Aggregates:
        """Bound what each unit contributes, then aggregate what is left."""
        public, coder = self.public, self.coder
        if public is None:
            public, coder = self._find_keys()
        if public.given.height > _MOST_GROUPS:
            raise DpfastError("groups are too many to be numbered: there may be 2**31 - 1 at most")
        bounded, holdings, measures = aggregate_by_unit(self._unit_rows(public, coder), words)
        if self.public is not None:
            return Aggregates(public.given, bounded.units, measures)
        kept = bounded.units > 0
        places = (np.cumsum(kept) - 1).astype(np.int32)
        return Aggregates(
            public.given.filter(kept),
            bounded.units[kept],
            [column[kept] for column in measures],
            () if holdings is None else holdings.renumbered(places),
        )

    def _unit_rows(self, public: PublicKeys, coder: KeyCoder | None) -> UnitRows:
        """Return the rows to be bounded, and how their groups are found."""
        assert self.unit is not None
        assert self.grouping.max_groups is not None
        assert self.grouping.max_rows_per_group is not None
        exprs = public.native_exprs if coder is None else public.coded_exprs
        names = [f"key{i}" for i in range(len(exprs))]

        def find_groups(batch: pl.DataFrame, out: np.ndarray) -> None:
            if not names:
                out[:] = 0
            elif coder is None:
                match_rows(batch.select(names), public, out)
            else:
                coder.rows_of(batch.select(names), out)

        return UnitRows(
            self.source,
            [*exprs, self.unit],
            find_groups,
            public.given.height,
            self.contributions,
            self.grouping.max_groups,
            self.grouping.max_rows_per_group,
            self.lists_groups,
        )


def _code(public: PublicKeys) -> KeyCoder | None:
    """Return the coder of these keys, or None if they cannot be coded."""
    if public.coded is None or not KeyCoder.fits(public.coded):
        return None
    return KeyCoder(public.coded, public.given.height)
