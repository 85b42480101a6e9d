"""Aggregation by an engine, where the rows are: what it is asked, and its answer checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from dpfast.accounting.privacy_unit import BOUND
from dpfast.aggregation.expanding import expanded, gathered, refuse_many
from dpfast.aggregation.grouping import Aggregates, Columns, Grouping, Words, find_columns
from dpfast.aggregation.guarding import without_engine_errors
from dpfast.aggregation.keys import label_keys
from dpfast.aggregation.native import join_to_keys
from dpfast.aggregation.private import Private
from dpfast.aggregation.protocols import Engine, GroupQuery
from dpfast.errors import DpfastError, ParameterError
from dpfast.errors import Words as Shown
from dpfast.queries import Measure

__all__ = ["PushedAggregation", "push_down"]

_SALT_WORDS = 4


def push_down(engine: Engine, grouping: Grouping, measures: Sequence[Measure]) -> PushedAggregation:
    """Check all that can be checked without reading a row; raises what `prepare` does."""
    mend = 'ask for counts, sums and means, or let rows be read: engine="rows"'
    if any(measure.selects for measure in measures):
        raise ParameterError(
            "queries",
            Shown("one that finds quantiles, modes or values in the data"),
            f"such as {engine.name} computes by adding up rows",
            mend,
        )
    if any(measure.kind == "distinct" for measure in measures):
        raise ParameterError(
            "queries",
            Shown("one that counts different values"),
            f"such as {engine.name} computes by adding up rows",
            mend,
        )
    refuse_many(measures, engine.name)
    columns = find_columns(engine.schema(), grouping, measures)
    if columns.public is not None:
        columns.public.refuse_duplicates()
    return PushedAggregation(engine, grouping, columns, tuple(measures))


@dataclass(frozen=True, repr=False)
class PushedAggregation(Private):
    """A checked aggregation that an engine runs: as `dpfast.aggregation.Aggregation`.

    Attributes
    ----------
    engine, grouping, columns, measures
        Who aggregates what.

    """

    engine: Engine
    grouping: Grouping
    columns: Columns
    measures: tuple[Measure, ...]

    @property
    def route(self) -> str:
        """The engine's name."""
        return self.engine.name

    @property
    def groups(self) -> int | None:
        """How many public groups there are."""
        return None if self.columns.public is None else self.columns.public.given.height

    def __repr__(self) -> str:
        return f"PushedAggregation(by={[key.name for key in self.columns.keys]}, measures={len(self.measures)})"

    def no_keys(self) -> pl.DataFrame:
        """Return the key columns of the aggregates without a row."""
        return self.columns.no_keys()

    def check_source(self) -> None:
        """Refuse an engine that does not answer, or computes otherwise than it must; to be called before the charge."""
        self.engine.check(self._query(b""))

    def run(self, words: Words) -> Aggregates:
        """Return the exact aggregates.

        Parameters
        ----------
        words
            As for rows; what a unit keeps is chosen by a salt made of them.

        Raises
        ------
        DpfastError, MemoryError
            Of fixed words, if the engine fails, or its answer is not of the form that was asked for.

        """
        salted = self.grouping.privacy_unit is not None
        query = self._query(words(_SALT_WORDS).astype("<u8").tobytes() if salted else b"")
        return without_engine_errors(self.engine.name, lambda: self._read(self.engine.aggregate(query)))

    def _query(self, salt: bytes) -> GroupQuery:
        if self.grouping.privacy_unit is None:
            return GroupQuery(self.grouping.by, tuple(expanded(self.measures)), where=self.grouping.where)
        public = self.columns.public
        return GroupQuery(
            self.grouping.by,
            tuple(expanded(self.measures)),
            self.grouping.privacy_unit,
            BOUND.read("max_groups", self.grouping.max_groups),
            BOUND.read("max_rows_per_group", self.grouping.max_rows_per_group),
            None if public is None or not self.columns.keys else public.native,
            salt,
            self.grouping.where,
        )

    def _read(self, table: Any) -> Aggregates:
        """Return the aggregates of an engine's answer."""
        frame = pl.DataFrame(table)
        keys = [f"key{i}" for i in range(len(self.columns.keys))]
        numbers = ["units", *(f"measure{i}" for i in range(len(expanded(self.measures))))]
        if set(frame.columns) != {*keys, *numbers}:
            raise DpfastError("the columns are not those that were asked for")
        frame = frame.select(
            *(pl.col(name).cast(key.dtype) for name, key in zip(keys, self.columns.keys, strict=True)), *numbers
        )
        whole = all(frame[name].dtype == pl.Int64 and frame[name].null_count() == 0 for name in numbers)
        if not whole or (frame.select(keys).is_duplicated().any() if keys else frame.height > 1):
            raise DpfastError("the figures are not whole numbers by group")
        by_unit = self.grouping.privacy_unit is not None
        public = self.columns.public
        if public is None:
            frame = frame.filter(pl.col("units") > 0)
        elif keys:
            frame = join_to_keys(frame, public)
        elif frame.height == 0:
            frame = pl.DataFrame({name: np.zeros(1, np.int64) for name in numbers})
        units, *figures = (frame[name].to_numpy() for name in numbers)
        measures: list[Any] = gathered(self.measures, figures)
        if public is not None:
            return Aggregates(public.given, units if by_unit else None, measures)
        return Aggregates(label_keys(frame.select(keys), self.columns.keys), units, measures)
