"""From a frame and public parameters to exact int64 aggregates per group, before any noise.

Three ways lead to the same figures. With public keys, rows are scattered into a table (integers, dates,
Booleans, categoricals, bins and strings all become integers in a known range or have a place in a hash table).
Without, or where the keys' codes do not fit into 63 bits, Polars groups. With a privacy unit, what each unit
contributes is bounded first, which needs each row's unit and group (8 bytes a row) and the measured columns in
memory, or on the disk where they outgrow their share of it (`dpfast.aggregation.by_unit`); in the other cases a file
is never loaded whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from dpfast.aggregation.blocks import Block
from dpfast.aggregation.by_unit import aggregate_by_unit, sum_by_unit
from dpfast.aggregation.coding import KeyCoder
from dpfast.aggregation.contributions import ROWS, Contribution
from dpfast.aggregation.filtering import native_filter
from dpfast.aggregation.found_values import FoundValues, with_values
from dpfast.aggregation.grouping import Aggregates, Columns, Grouping, Words, find_columns
from dpfast.aggregation.guarding import check_rows, read_guarded
from dpfast.aggregation.keys import KeyColumn, PublicKeys, adopt_keys, column_of, label_keys
from dpfast.aggregation.memory import check_memory, room_for_rows
from dpfast.aggregation.native import bin_keys, find_keys, group_natively, join_to_keys, match_rows, read_measure
from dpfast.aggregation.passing import Passing, PassingSlots
from dpfast.aggregation.private import Private
from dpfast.aggregation.protocols import Engine, is_engine
from dpfast.aggregation.pushed import PushedAggregation, push_down
from dpfast.aggregation.rereading import kept_for_more
from dpfast.aggregation.scatter import Scatter, feed, pick, stands, value_exprs
from dpfast.aggregation.sources import Source
from dpfast.aggregation.spilling import check_disk
from dpfast.aggregation.surveying import place_by_unit, place_rows, survey_by_unit
from dpfast.aggregation.unit_rows import UnitRows
from dpfast.errors import DpfastError, ParameterError
from dpfast.queries import Measure

__all__ = ["Aggregation", "Prepared", "aggregate", "prepare"]

_MOST_GROUPS = 2**31 - 1

_UNPACKED = 4
#: A row of text, and what a row that is kept takes while its point waits for those of its group.
_LEAST_BYTES_PER_ROW, _BYTES_PER_POINT = 2, 12
"""How many times as large as their files rows in memory are taken to be, when it is judged if they fit."""


def aggregate(
    source: Source | Engine | pl.DataFrame | pl.LazyFrame,
    grouping: Grouping,
    measures: Sequence[Measure],
    words: Words,
) -> Aggregates:
    """Return exact aggregates: ``prepare`` and ``Aggregation.run`` in one call."""
    return prepare(source, grouping, measures).run(words)


def prepare(
    source: Source | Engine | pl.DataFrame | pl.LazyFrame, grouping: Grouping, measures: Sequence[Measure]
) -> Prepared:
    """Check all that can be checked without reading a row, and choose a route.

    Guarantee: only the schema and the parameters are looked at, so this may be done before the charge; what
    follows in ``Aggregation.run`` raises no error that depends on a value (Soundness rule 12). This assumes that
    a LazyFrame's own expressions are total (no strict casts, no Python functions that raise): whether one of
    them fails is one bit about the data.

    Parameters
    ----------
    source
        What ``open_source`` or ``open_data`` gives, or a frame. An engine aggregates by itself.
    grouping
        The groups and the privacy unit.
    measures
        What is aggregated.

    Raises
    ------
    ColumnError
        If a column is missing or of a dtype that does not serve.
    ParameterError
        If the public keys are not unique, or not values of the data's dtypes, or a measure could overflow; or an
        engine cannot compute a measure.

    """
    if is_engine(source):
        return push_down(source, grouping, measures)
    if isinstance(source, (pl.DataFrame, pl.LazyFrame)):
        source = Source(source)
    if not isinstance(source, Source):
        raise ParameterError("source", source, "what open_source gives")
    schema = source.schema()
    measured = [name for measure in measures for name in measure.columns]
    source.require([*map(column_of, grouping.by), *measured, grouping.privacy_unit])
    source.require(() if grouping.where is None else grouping.where.columns)
    columns = find_columns(schema, grouping, measures)
    if grouping.where is not None and not _stands_in_memory(source):
        source = source.filtered(native_filter(grouping.where, schema))
    public = columns.public
    coder = None if public is None else _code(public)
    if public is not None and coder is None:
        public.refuse_duplicates()
    return Aggregation(source, grouping, columns.keys, columns.contributions, columns.unit, public, coder)


@dataclass(frozen=True, repr=False)
class Aggregation(Private):
    """A checked aggregation that can be run; it holds the source and no figure of it.

    It cannot be pickled or copied, and its ``repr`` shows public facts only.

    Attributes
    ----------
    source, grouping, columns, contributions, unit
        What is aggregated, and the expressions for it. A source in memory has all rows, any other those that pass.
    public, coder
        The public keys and the coder that finds them, None where there are none or they cannot be coded.
    lists_groups
        Whether to tell which keys each unit holds, of keys found in the data.
    tells_losses
        Whether to tell how much units lose where they are bounded.
    surveys_units
        Whether to tell how many groups units have, and how many rows there, in place of all measures.
    surveys_values
        Whether to tell, of measures of points, where one row of each unit lies, in place of all else.

    """

    source: Source
    grouping: Grouping
    columns: list[KeyColumn]
    contributions: list[Contribution]
    unit: pl.Expr | None
    public: PublicKeys | None
    coder: KeyCoder | None
    lists_groups: bool = False
    tells_losses: bool = False
    surveys_units: bool = False
    surveys_values: bool = False

    @property
    def groups(self) -> int | None:
        """How many public groups there are."""
        return None if self.public is None else self.public.given.height

    @property
    def route(self) -> str:
        """How the rows find their groups: ``"slots"``, ``"hashed"`` or ``"native"``."""
        if self.coder is None:
            return "native"
        return "hashed" if self.coder.hashed else "slots"

    def __repr__(self) -> str:
        names = [column.name for column in self.columns]
        return f"Aggregation(by={names}, measures={len(self.contributions)}, route={self.route!r})"

    def without_rows(self) -> Aggregation:
        """Return one that holds no data, of which all that is told is the same."""
        return replace(self, source=Source(pl.DataFrame()))

    def no_keys(self) -> pl.DataFrame:
        """Return the key columns of the aggregates without a row: they depend on schema and parameters alone."""
        return Columns(self.columns, self.contributions, self.unit, self.public).no_keys()

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
        cells = (contribution.measure for contribution in self.contributions)
        # Of what units contribute, also three numbers of a unit that is handled by itself.
        numbers = sum(one.points if one.kind == "bins" else 4 if one.of_units else 1 for one in cells)
        tables = groups * (8 * numbers + 48) + 4 * slots
        check_memory(tables)
        lists = sum(contribution.measure.kind in ("points", "distinct", "found") for contribution in self.contributions)
        if lists:
            check_memory(tables + _BYTES_PER_POINT * lists * self._most_rows_kept(), "points of quantiles")
        size = sum(pin.size for pin in self.source.pins)
        if self.grouping.by_unit:
            check_memory(tables + _UNPACKED * size, "rows of all units")
        elif _UNPACKED * size > room_for_rows():
            check_disk(size)

    def _most_rows_kept(self) -> int:
        """Return how many rows of files units keep at most; 0 for data in memory, which are as large themselves."""
        if not self.source.pins:
            return 0
        rows = self.source.count_known_rows()
        if rows is None:
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
        return read_guarded(self.source, lambda: self._run_over(words))

    def _run_over(self, words: Words) -> Aggregates:
        """Return the aggregates of rows that may be read once only."""
        if self.source.repeatable or not self._reads_twice:
            return self._run(words)
        with kept_for_more(self.source, self.names) as source:
            return replace(self, source=source)._run(words)

    @property
    def about(self) -> tuple[object, ...]:
        """Which rows and groups are meant: the same of aggregations whose rows have the same groups."""
        return self.grouping.by, id(self.grouping.keys), self.grouping.where, self.grouping.privacy_unit

    @property
    def sorts(self) -> object:
        """What it is about, if it asks for rows unit by unit and for which rows they are."""
        marks = any(contribution.way != "rows" for contribution in self.contributions)
        return self.about if marks and self.unit is not None else None

    @property
    def names(self) -> set[str]:
        """The names of the columns that are read, but for those that only decide which rows count."""
        named = [*map(column_of, self.grouping.by), self.grouping.privacy_unit]
        named += [name for contribution in self.contributions for name in contribution.measure.columns]
        return {name for name in named if name is not None}

    @property
    def _reads_twice(self) -> bool:
        """Whether rows are read a second time, or may be: to find their keys, or where they outgrow memory."""
        lists = any(contribution.measure.has_cells for contribution in self.contributions)
        found = any(contribution.measure.kind == "found" for contribution in self.contributions)
        return self.unit is not None or found or (self.public is None and lists)

    def _run(self, words: Words) -> Aggregates:
        if not any(contribution.measure.kind == "found" for contribution in self.contributions):
            return self._run_known(words)
        contributions, values = with_values(self._rows.frame, self.contributions)
        exact = replace(self, contributions=contributions)._run_known(words)
        for place, known in values.items():
            exact.measures[place] = FoundValues(known, exact.measures[place])
        return exact

    @cached_property
    def _rows(self) -> Source:
        """The rows that pass. Those in memory are filtered here, as most routes find them where they stand."""
        where = self.grouping.where
        if where is None or not _stands_in_memory(self.source):
            return self.source
        return self.source.filtered(native_filter(where, self.source.schema()))

    def _run_known(self, words: Words) -> Aggregates:
        """Return the aggregates, contributions knowing the values that they count."""
        if self.grouping.by_unit:
            return self._sum_by_unit()
        if self.surveys_units:
            public, coder = self._numbered_keys()
            return Aggregates(public.given, None, [], survey=survey_by_unit(self._unit_rows(public, coder)))
        if self.surveys_values:
            return self._place(words)
        if self.unit is not None:
            return self._run_by_unit(words)
        if self.public is not None and self.coder is not None:
            return Aggregates(self.public.given, None, self._scatter(self.public, self.coder, self.contributions))
        if self.public is None and any(contribution.measure.has_cells for contribution in self.contributions):
            # Lists made by the engine cost more than a first pass that finds the keys.
            found, coder = self._find_keys()
            if coder is not None:
                *measures, rows = self._scatter(found, coder, [*self.contributions, ROWS])
                return Aggregates(found.given, rows, measures)
        return self._run_natively()

    def _place(self, words: Words) -> Aggregates:
        """Return where values lie, of rows with a public key."""
        assert self.public is not None
        rows = self._unit_rows(self.public, self.coder)
        keyed = bool(self.columns) or self.grouping.where is not None
        found = place_rows(rows, keyed=keyed) if self.unit is None else place_by_unit(rows, words)
        return Aggregates(self.public.given, None, list(found))

    def _find_keys(self) -> tuple[PublicKeys, KeyCoder | None]:
        """Return the keys found in the data as if they were public, and their coder."""
        found = adopt_keys(find_keys(*bin_keys(self._rows.frame, self.columns, [])), self.columns)
        return found, _code(found)

    def _scatter(self, keys: PublicKeys, coder: KeyCoder, contributions: Sequence[Contribution]) -> list[Any]:
        """Return the measures of these keys."""
        exprs = [*keys.coded_exprs, *value_exprs(contributions)]
        passing = self._passing(exprs)
        if passing is not None:
            assert isinstance(self.source.frame, pl.DataFrame)
            columns = pick(self.source.frame, exprs).get_columns() if exprs else []
            scatter = PassingSlots(coder, passing).scatter(contributions)
            scatter.add(pl.DataFrame([*columns, *passing.columns(self.source.frame)]))
            return [coder.gather(table) for table in scatter.tables()]
        if not exprs and self._rows.unfiltered is not None and self._rows.blocks is None:
            # Rows that pass are only counted: the engine needs no column of them.
            rows = self._rows.frame.lazy().select(pl.len()).collect(engine="streaming").item()
            return [np.full(1, rows, np.int64) for _ in contributions]
        scatter = Scatter(coder.slots, coder.slots_of, contributions, count_rows=coder.count_rows)
        check_rows(self._rows, feed(self._rows, exprs, scatter.add))
        return [coder.gather(table) for table in scatter.tables()]

    def _passing(self, exprs: Sequence[pl.Expr]) -> Passing | None:
        """Return how it is found which rows pass, where all stand in memory; None for all, and for copies of some."""
        where = self.grouping.where
        if where is None or not _stands_in_memory(self.source):
            return None
        return Passing.of(where, self.source.schema()) if not exprs or stands(exprs) else None

    def _run_natively(self) -> Aggregates:
        """Let Polars group."""
        if self.public is not None:
            grouped = group_natively(self._rows.frame, self.public.native_exprs, self.contributions)
            grouped = join_to_keys(grouped, self.public)
        else:
            grouped = group_natively(*bin_keys(self._rows.frame, self.columns, self.contributions), self.contributions)
        rows = grouped["rows"].to_numpy()
        measures = [
            rows if contribution.native is None else read_measure(grouped[f"measure{i}"], contribution.measure)
            for i, contribution in enumerate(self.contributions)
        ]
        if self.public is not None:
            return Aggregates(self.public.given, None, measures)
        found = label_keys(grouped.select(grouped.columns[: len(self.columns)]), self.columns)
        return Aggregates(found, rows, measures)

    def _numbered_keys(self) -> tuple[PublicKeys, KeyCoder | None]:
        """Return the keys that rows may have, public or found, and their coder."""
        public, coder = self.public, self.coder
        if public is None and self.source.remembered is not None:
            public, coder = self.source.remembered.find(("keys", self.about), self._find_keys)
        elif public is None:
            public, coder = self._find_keys()
        if public.given.height > _MOST_GROUPS:
            raise DpfastError("groups are too many to be numbered: there may be 2**31 - 1 at most")
        return public, coder

    def _run_by_unit(self, words: Words) -> Aggregates:
        """Bound what each unit contributes, then aggregate what is left."""
        public, coder = self._numbered_keys()
        found = aggregate_by_unit(self._unit_rows(public, coder), words)
        units = found.kept.units
        if self.public is not None:
            return Aggregates(public.given, units, found.measures, losses=found.losses)
        kept = units > 0
        places = (np.cumsum(kept) - 1).astype(np.int32)
        return Aggregates(
            public.given.filter(kept),
            units[kept],
            [column[kept] for column in found.measures],
            () if found.holdings is None else found.holdings.renumbered(places),
            losses=found.losses,
        )

    def _sum_by_unit(self) -> Aggregates:
        """Add up what each unit has in each group; all rows count."""
        assert self.public is not None
        sums = sum_by_unit(self._unit_rows(self.public, self.coder))
        return Aggregates(self.public.given, None, [], by_unit=sums)

    def _unit_rows(self, public: PublicKeys, coder: KeyCoder | None) -> UnitRows:
        """Return the rows to be bounded or surveyed, and how their groups are found."""
        exprs = public.native_exprs if coder is None else public.coded_exprs
        names = [f"key{i}" for i in range(len(exprs))]
        columns = [*exprs, *([] if self.unit is None else [self.unit])]
        passing = self._passing([*columns, *value_exprs(self.contributions)])
        if passing is not None and passing.ranges is not None:
            columns, source = [*columns, *passing.exprs], self.source
        else:
            passing, source = None, self._rows

        def find_groups(batch: pl.DataFrame, out: np.ndarray) -> None:
            if not names:
                out[:] = 0
            elif coder is None:
                match_rows(batch.select(names), public, out)
            else:
                coder.rows_of(batch.select(names), out)
            if passing is not None:
                passing.drop(batch, out)

        def mark(block: Block, marks: np.ndarray) -> None:
            assert coder is not None
            coder.mark(block, marks)
            if passing is not None:
                marks &= passing.mark(block, block.flags)

        return UnitRows(
            source,
            columns,
            find_groups,
            public.given.height,
            self.contributions,
            self.grouping.max_groups or 1,
            self.grouping.max_rows_per_group or 1,
            self.lists_groups,
            self.tells_losses,
            None if coder is None else mark,
            self.about,
        )


def _stands_in_memory(source: Source) -> bool:
    """Return whether all rows are there, in a frame."""
    return isinstance(source.frame, pl.DataFrame) and source.blocks is None


def _code(public: PublicKeys) -> KeyCoder | None:
    """Return the coder of these keys, or None if they cannot be coded."""
    if public.coded is None or not KeyCoder.fits(public.coded):
        return None
    return KeyCoder(public.coded, public.given.height)


#: An aggregation that was checked, of rows or by an engine.
Prepared: TypeAlias = Aggregation | PushedAggregation
