"""Which rows of a frame in memory pass a filter, found where they are read: no row is copied, or left out of a copy.

Filters that ask for ranges of numbers, dates or times are looked at block by block, beside what else is read of a row.
Of others Polars says first, for all rows, which pass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from dpfast.aggregation.blocks import BLOCK_ROWS, Block, share_blocks
from dpfast.aggregation.coding import KeyCoder
from dpfast.aggregation.contributions import Contribution
from dpfast.aggregation.filtering import Asked, ask, native_filter
from dpfast.aggregation.scatter import Scatter
from dpfast.kernels.grouping.counting import count_within, drop_groups, drop_slots, mark_within
from dpfast.rows.filters import Comparison, Every, Filter

__all__ = ["Passing", "PassingSlots"]

_FLOATS = (pl.Float32, pl.Float64)
_WHOLES = (
    *(pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32),
    *(pl.Date, pl.Datetime, pl.Duration, pl.Time),
)
_FAR = 2**63 - 1
_COUNTED_ROWS = 1 << 19


@dataclass(frozen=True)
class _Range:
    """Numbers of one column from the least to the most, both included: floats, or whole numbers."""

    column: str
    least: float
    most: float
    floats: bool

    def __and__(self, other: _Range) -> _Range:
        """Return what lies in both, of one column."""
        # An end that is NaN has no number on its side, and max and min may lose it.
        ends = self.least, self.most, other.least, other.most
        if any(map(math.isnan, ends)):
            return replace(self, least=math.nan, most=math.nan)
        return replace(self, least=max(self.least, other.least), most=min(self.most, other.most))


@dataclass(frozen=True)
class Passing:
    """How it is found which rows pass.

    Attributes
    ----------
    where
        The filter.
    ranges
        The ranges that together make it, one a column; None where it is of another form.

    """

    where: Filter
    ranges: tuple[_Range, ...] | None

    @classmethod
    def of(cls, where: Filter, schema: pl.Schema) -> Passing:
        """Return how it is found on columns of this schema, which it was checked with."""
        ranges: dict[str, _Range] = {}
        for test in where.parts if isinstance(where, Every) else (where,):
            found = _range(test, schema)
            if found is None:
                return cls(where, None)
            before = ranges.get(found.column)
            ranges[found.column] = found if before is None else before & found
        return cls(where, tuple(ranges.values()))

    @property
    def exprs(self) -> list[pl.Expr]:
        """The columns of the ranges, under names of their own."""
        return [pl.col(one.column).alias(f"where{place}") for place, one in enumerate(self.ranges or ())]

    def columns(self, frame: pl.DataFrame) -> list[pl.Series]:
        """Return the columns that `mark` reads; Polars filters here, if it has to."""
        if self.ranges is not None:
            return [frame[one.column].alias(f"where{place}") for place, one in enumerate(self.ranges)]
        passes = native_filter(self.where, frame.schema).fill_null(False).alias("where0")
        # A literal has one row where the data have none or many.
        found = frame.lazy().with_columns(passes).select("where0").collect(engine="streaming")
        return [found.to_series()]

    def mark(self, block: Block, marks: np.ndarray) -> np.ndarray:
        """Write 1 (uint8) for each row that passes, else 0, and return that."""
        if self.ranges is None:
            return block.read_integers("where0", marks)
        marks[:] = 1
        for place in range(len(self.ranges)):
            mark_within(*self._read(block, place), marks)
        return marks

    def count(self, block: Block) -> int:
        """Return how many rows pass."""
        if self.ranges is None or len(self.ranges) > 1:
            return int(np.count_nonzero(self.mark(block, block.marks)))
        return int(count_within(*self._read(block, 0)))

    def _read(self, block: Block, place: int) -> tuple[np.ndarray, np.ndarray | None, Any, Any]:
        """Return the values of a range's column, which of them are not null (None: all), and the ends."""
        assert self.ranges is not None
        one, name = self.ranges[place], f"where{place}"
        kind = np.float64 if one.floats else np.int64
        values = block.view_numbers(name, floats=one.floats)
        return values, block.validity_of_nullable(name), kind(one.least), kind(one.most)

    def drop(self, frame: pl.DataFrame, groups: np.ndarray) -> None:
        """Take the group (int32) of rows that do not pass, in a frame with these columns."""

        def take(block: Block, start: int, stop: int) -> None:
            for _ in block.walk(start, stop):
                drop_groups(self.mark(block, block.marks), groups[block.start : block.stop])

        share_blocks(frame.select([name for name in frame.columns if name.startswith("where")]), 64, take)


class PassingSlots:
    """Finds the slots of rows that pass, by a coder of keys."""

    def __init__(self, coder: KeyCoder, passing: Passing) -> None:
        self._coder, self._passing = coder, passing

    def scatter(self, contributions: Sequence[Contribution]) -> Scatter:
        """Return what adds up rows that pass: many at a time where they are only counted, as a block takes its time."""
        rows = _COUNTED_ROWS if self._coder.is_one_group else BLOCK_ROWS
        return Scatter(self._coder.slots, self.slots_of, contributions, count_rows=self.count_rows, block_rows=rows)

    def slots_of(self, block: Block) -> np.ndarray:
        """Return the slot of each row of a block; of rows that do not pass, one beyond all (uint64)."""
        marks = self._passing.mark(block, block.marks)
        slots = self._coder.slots_of(block)
        drop_slots(marks, slots)
        return slots

    def count_rows(self, block: Block, table: np.ndarray) -> None:
        """Count the rows of a block that pass."""
        if self._coder.is_one_group:
            table[0] += self._passing.count(block)
            return
        self._coder.count_rows(block, table, self._passing.mark(block, block.marks))


def _range(test: Filter, schema: pl.Schema) -> _Range | None:
    """Return the range that a comparison asks for, None for another filter."""
    if not isinstance(test, Comparison):
        return None
    dtype = schema[test.column]
    asked = ask(test, schema)
    if dtype in _FLOATS:
        return _range_of_floats(asked)
    return _range_of_wholes(asked) if dtype in _WHOLES else None


def _range_of_floats(asked: Asked) -> _Range | None:
    least, most = -math.inf, math.inf
    if asked.asks == "nothing":
        least, most = most, least
    elif asked.asks in ("<", "<=", ">", ">=", "=="):
        limit = float(asked.values[0])
        if asked.asks in (">", ">=", "=="):
            least = _next(limit, math.inf) if asked.asks == ">" else limit
        if asked.asks in ("<", "<=", "=="):
            most = _next(limit, -math.inf) if asked.asks == "<" else limit
    elif asked.asks != "value":
        return None
    return _Range(asked.column, least, most, floats=True)


def _range_of_wholes(asked: Asked) -> _Range | None:
    least, most = -_FAR - 1, _FAR
    if asked.asks == "nothing":
        least, most = most, least
    elif asked.asks in ("<", "<=", ">", ">=", "=="):
        limit = int(asked.values[0])
        if asked.asks in (">", ">=", "=="):
            least = limit + (asked.asks == ">")
        if asked.asks in ("<", "<=", "=="):
            most = limit - (asked.asks == "<")
        if least > _FAR or most < -_FAR - 1:
            least, most = _FAR, -_FAR - 1
    elif asked.asks != "value":
        return None
    return _Range(asked.column, least, most, floats=False)


def _next(limit: float, towards: float) -> float:
    """Return the next float; beyond infinity there is none, and so no number on that side of it."""
    return math.nan if limit == towards else math.nextafter(limit, towards)
