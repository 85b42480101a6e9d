"""What units have before they are bounded: how many groups, and how many rows there; and where their values lie."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import polars as pl

from dpfast.aggregation.blocks import Block, share_blocks
from dpfast.aggregation.by_unit import count_lone, gather
from dpfast.aggregation.grouping import Words
from dpfast.aggregation.guarding import check_rows
from dpfast.aggregation.places import Places
from dpfast.aggregation.scatter import feed
from dpfast.aggregation.unit_orders import NumberedRows
from dpfast.aggregation.unit_rows import UnitRows, values_of
from dpfast.aggregation.unit_survey import UnitSurvey
from dpfast.kernels.grouping.bounding import count_unit_rows
from dpfast.kernels.grouping.surveying import choose_ranks, draw_rows

__all__ = ["place_by_unit", "place_rows", "survey_by_unit"]

#: So many units choose a row at once: their words are in memory.
_MOST_WORDS = 1 << 16
#: So many rows look for their groups at once.
_SLICE_ROWS = 1 << 20


def survey_by_unit(rows: UnitRows) -> UnitSurvey:
    """Return how many groups units have, and how many rows in each: all of them count."""
    return gather(rows, lambda folder: _Surveyed(rows), _no_words).survey


def place_by_unit(rows: UnitRows, words: Words) -> list[Places]:
    """Return where one row of each unit lies, by each measure: chosen at random from all its rows that have a group."""
    return gather(rows, lambda folder: _Placed(rows), words).places()


def place_rows(rows: UnitRows, *, keyed: bool) -> list[Places]:
    """Return where rows lie that are units themselves, by each measure: of those that have a group, if ``keyed``."""
    values: list[pl.DataFrame] = []
    seen: list[np.ndarray] = []

    def take(batch: pl.DataFrame) -> None:
        values.append(values_of(batch))
        if keyed:
            seen.append(_seen(batch, rows))

    check_rows(rows.source, feed(rows.source, rows.exprs, take))
    found = []
    for place, contribution in enumerate(rows.contributions):
        columns = [frame[f"value{place}"] for frame in values]
        column = pl.concat(columns, rechunk=False) if columns else pl.Series([], dtype=pl.Int64)
        found.append(Places.of(contribution, column, np.concatenate(seen) if seen else None))
    return found


def _seen(batch: pl.DataFrame, rows: UnitRows) -> np.ndarray:
    """Return 1 for each row of a batch that has a group, else 0 (uint8)."""
    found, mark = np.empty(batch.height, np.uint8), rows.mark
    if mark is None:
        for start in range(0, batch.height, _SLICE_ROWS):
            piece = batch.slice(start, _SLICE_ROWS)
            groups = np.empty(piece.height, np.int32)
            rows.find_groups(piece, groups)
            np.greater_equal(groups, 0, out=found[start : start + piece.height].view(np.bool_))
        return found

    def look(block: Block, start: int, stop: int) -> None:
        for _ in block.walk(start, stop):
            mark(block, found[block.start : block.stop])

    share_blocks(batch.select([name for name in batch.columns if not name.startswith("value")]), 64, look)
    return found


class _Surveyed:
    """How much the units of all parts have."""

    def __init__(self, rows: UnitRows) -> None:
        self.rows = rows
        self.survey = UnitSurvey()

    def add(self, numbered: NumberedRows, values: pl.DataFrame, words: Words) -> None:
        """Count units, all rows of which are given."""
        self.survey.add_units(numbered.order(), self.rows.groups)

    def add_lone(self, read: Callable[[], Iterator[pl.DataFrame]], words: Words) -> None:
        """Count one unit."""
        counts = count_lone(read(), self.rows.groups)
        self.survey.add_unit(counts[counts > 0])


class _Placed:
    """The values of one row of each unit."""

    def __init__(self, rows: UnitRows) -> None:
        self.rows = rows
        self._values: list[pl.DataFrame] = []

    def add(self, numbered: NumberedRows, values: pl.DataFrame, words: Words) -> None:
        """Choose one row of each unit, all rows of which are given."""
        rows = _drawn(numbered, words)
        if rows.size:
            self._values.append(values[rows])

    def add_lone(self, read: Callable[[], Iterator[pl.DataFrame]], words: Words) -> None:
        """Choose one row of one unit."""
        number = sum(frame.height for frame in read())
        rank = np.empty(1, np.int64)
        choose_ranks(np.array([number]), words(1), rank)
        left = int(rank[0])
        for frame in read():
            if 0 <= left < frame.height:
                self._values.append(values_of(frame)[left])
            left -= frame.height

    def places(self) -> list[Places]:
        """Return the places of all measures, of all parts."""
        found = []
        for place, contribution in enumerate(self.rows.contributions):
            columns = [frame[f"value{place}"] for frame in self._values]
            values = pl.concat(columns, rechunk=False) if columns else pl.Series([], dtype=pl.Int64)
            found.append(Places.of(contribution, values))
        return found


def _drawn(numbered: NumberedRows, words: Words) -> np.ndarray:
    """Return one row of each unit that has rows."""
    number = numbered.number
    order = numbered.order(rows=True) if numbered.sorts else None
    if order is None:
        counts = np.zeros(number + 1, np.int64)
        count_unit_rows(numbered.units, numbered.groups, counts)
        counts = counts[1:]
    else:
        counts = np.diff(order.starts)
    ranks = np.empty(number, np.int64)
    for first in range(0, number, _MOST_WORDS):
        last = min(first + _MOST_WORDS, number)
        choose_ranks(counts[first:last], words(last - first), ranks[first:last])
    if order is not None:
        assert order.rows is not None
        return order.rows[(order.starts[:-1] + ranks)[counts > 0]]
    rows = np.full(number, -1, np.int64)
    draw_rows(numbered.units, numbered.groups, ranks, rows)
    return rows[rows >= 0]


def _no_words(count: int) -> np.ndarray:
    raise AssertionError("nothing is chosen at random")
