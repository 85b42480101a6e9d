"""Aggregates of what each privacy unit may contribute, within a share of the memory whatever the data's size.

Rows are read once. As long as they take less than a quarter of the memory that is free (`room_for_rows`), they stay
in memory. When they outgrow it, they are read again from the start and dealt out by a hash of their unit to parts in
a nameless encrypted file (`SpillFile`), so that all rows of a unit are in one part and in the frame's order; each part
is then bounded by itself. A part that is still too large is dealt out again by another hash; the rows of one unit
alone, which no hash divides, are bounded as they pass by, from the numbers of rows that the unit has in each group.

Both ways keep the promise of `dpfast.aggregation.units`: what a unit keeps is a function of its own rows and of words
that no other unit reads, and each choice is uniform; so both have the same law. Which part a unit is in decides
nothing but when it is handled. How much is spilled shows in time and on the disk, which are outside the guarantee.

What stays in memory: tables of one number for each group and measure, the keys, of quantiles and modes over very
many cells the points that are kept, 4 to 12 bytes each. The groups that units keep, for keys that are selected by
weights or a policy, go to a second file once rows are spilled, and are read from it part by part, or sorted and merged
(`KeptGroups`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np
import polars as pl

from dpfast.aggregation import memory
from dpfast.aggregation.blocks import Block
from dpfast.aggregation.dealing import Part, Parts
from dpfast.aggregation.grouping import Words
from dpfast.aggregation.guarding import check_rows
from dpfast.aggregation.holdings import Holdings
from dpfast.aggregation.kept_groups import KeptGroups
from dpfast.aggregation.losses import LossCounts, Losses, losses_of
from dpfast.aggregation.private import Private
from dpfast.aggregation.scatter import Scatter, feed
from dpfast.aggregation.spilling import SpillFile, find_folder
from dpfast.aggregation.unit_figures import UnitFigures
from dpfast.aggregation.unit_orders import NumberedRows
from dpfast.aggregation.unit_rows import OutgrownError, UnitRows, read_rows, values_of
from dpfast.aggregation.unit_sums import UnitSums, sum_pairs
from dpfast.aggregation.units import BoundedRows, UnitNumbers, bound_contributions
from dpfast.kernels.grouping.bounding import choose_rows

__all__ = ["KeptFigures", "aggregate_by_unit", "count_lone", "gather", "sum_by_unit"]

_SLICE_ROWS = 1 << 17


@dataclass(frozen=True, repr=False)
class KeptFigures(Private):
    """What is known of the rows that units keep: exact and private.

    Attributes
    ----------
    kept
        How many units and rows are kept in each group.
    holdings, losses
        Which groups units keep, and how many units lose how much, where that is wanted.
    measures
        The measures of the rows kept.

    """

    kept: BoundedRows
    holdings: KeptGroups | None
    losses: LossCounts | None
    measures: list[Any]


class _Gathering(Protocol):
    """What is made of the rows of all units, part by part: all rows of a unit come at once."""

    def add(self, numbered: NumberedRows, values: pl.DataFrame, words: Words) -> None:
        """Add rows that are all rows of their units."""

    def add_lone(self, read: Callable[[], Iterator[pl.DataFrame]], words: Words) -> None:
        """Add the rows of one unit, which may be read more than once."""


def aggregate_by_unit(rows: UnitRows, words: Words) -> KeptFigures:
    """Bound what each unit contributes, and return what is left."""
    return gather(rows, lambda folder: _Tables(rows, folder), words).results()


_Gathered = TypeVar("_Gathered", bound=_Gathering)


def gather(rows: UnitRows, make: Callable[[str | None], _Gathered], words: Words) -> _Gathered:
    """Return what is made of all rows, in memory or part by part; ``make`` gets the folder of what is spilled."""
    room = memory.room_for_rows()
    folder = find_folder()
    made = make(None)
    try:
        # Where nothing can be spilled, memory is used as far as it goes.
        numbered, values = read_rows(rows, room if folder is not None else None)
    except OutgrownError:
        pass
    else:
        made.add(numbered, values, words)
        return made
    assert folder is not None
    made = make(folder)
    with SpillFile(folder) as file:
        parts = Parts(file, room)
        check_rows(rows.source, feed(rows.source, rows.exprs, _dealer(rows, parts), in_order=True))
        for part in parts.finish():
            _settle(part, file, room, made, words)
    return made


def sum_by_unit(rows: UnitRows) -> UnitSums:
    """Return what each unit adds to each group, of all rows, which stay in memory."""
    numbered, values = read_rows(rows, None)
    return sum_pairs(numbered, rows.groups, values, rows.contributions)


class _Tables:
    """What the kept rows of all parts add up to."""

    def __init__(self, rows: UnitRows, folder: str | None = None) -> None:
        self.rows = rows
        self._kept: BoundedRows | None = None
        self._holdings = KeptGroups(folder) if rows.lists_groups else None
        self._losses = LossCounts.of_none(rows.max_groups, rows.max_rows) if rows.tells_losses else None
        self._groups = np.empty(0, np.int32)
        self._scatter = Scatter(rows.groups, self._slots_of, rows.contributions) if rows.marks_rows else None
        self.of_units = UnitFigures(rows.groups, rows.contributions)

    def add(self, numbered: NumberedRows, values: pl.DataFrame, words: Words) -> None:
        """Bound rows that are all rows of their units, and add what is kept."""
        rows, groups = self.rows, numbered.groups
        bounded = bound_contributions(
            numbered.units,
            numbered.number,
            groups,
            rows.groups,
            rows.max_groups,
            rows.max_rows,
            words,
            mark_rows=rows.marks_rows,
            list_groups=rows.lists_groups or bool(self.of_units),
            tell_losses=rows.tells_losses,
            tell_order=bool(self.of_units),
            order=numbered.take_order(rows=rows.marks_rows or bool(self.of_units)),
        )
        if bounded.order is not None and bounded.holdings is not None:
            self.of_units.add(bounded.order, bounded.holdings, values)
        self.count(bounded.units, bounded.rows)
        if bounded.losses is not None:
            self.lose(bounded.losses, words)
        if bounded.holdings is not None:
            self.hold(bounded.holdings)
        self.scatter(groups, values)

    def add_lone(self, read: Callable[[], Iterator[pl.DataFrame]], words: Words) -> None:
        """Bound and add the rows of one unit as they pass by.

        Its groups are chosen as ever, a row standing for each; of a group of n rows the next one is kept with
        probability (rows still wanted) / (rows still to come), by selection sampling, which gives every set of
        ``max_rows`` of the n rows the same chance (Fan, Muller, Rezucha 1962; Knuth, volume 2, algorithm 3.4.2 S).
        """
        rows = self.rows
        counts = count_lone(read(), rows.groups)
        held = np.flatnonzero(counts).astype(np.int32)
        bound_contributions(
            np.zeros(held.size, np.int32), 1, held, rows.groups, rows.max_groups, 1, words, mark_rows=True
        )
        chosen = held[held >= 0]
        kept, wanted = np.zeros(rows.groups, np.int64), np.zeros(rows.groups, np.int64)
        kept[chosen] = 1
        wanted[chosen] = np.minimum(counts[chosen], min(rows.max_rows, 2**62))
        self.count(kept, wanted.copy())
        self.hold(Holdings(np.array([chosen.size]), chosen))
        kept_rows, all_rows, all_groups = (np.array([int(one)]) for one in (wanted.sum(), counts.sum(), held.size))
        self.lose(losses_of(all_rows, kept_rows, all_groups, rows.max_groups), words)
        if self.of_units:
            self.of_units.add_lone(chosen, read())
        if rows.marks_rows:
            for frame in read():
                groups = frame["group"].to_numpy(writable=True)
                choose_rows(groups, wanted, counts, words(max(1, groups.size)))
                self.scatter(groups, values_of(frame))

    def count(self, units: np.ndarray, rows: np.ndarray) -> None:
        """Add the units and rows kept in each group."""
        if self._kept is None:
            self._kept = BoundedRows(units, rows)
            return
        self._kept.units += units
        self._kept.rows += rows

    def hold(self, holdings: Holdings) -> None:
        """Add the groups that units keep, where they are wanted."""
        if self._holdings is not None:
            self._holdings.add(holdings)

    def lose(self, losses: Losses, words: Words) -> None:
        """Add what units lose, where that is wanted."""
        if self._losses is not None:
            self._losses.add(losses, words)

    def scatter(self, groups: np.ndarray, values: pl.DataFrame) -> None:
        """Add the values of rows of these groups, -1 for rows not kept."""
        if self._scatter is not None:
            self._groups = groups
            self._scatter.add(values)

    def results(self) -> KeptFigures:
        """Return the tables; nothing can be added afterwards."""
        if self._kept is None:
            self.count(np.zeros(self.rows.groups, np.int64), np.zeros(self.rows.groups, np.int64))
        assert self._kept is not None
        if self._scatter is None:
            return self._found([self._kept.rows for _ in self.rows.contributions])
        # The scatter knows this object: without that circle the file of holdings goes with the last who reads it.
        scatter, self._scatter = self._scatter, None
        tables = [table[: self.rows.groups] for table in scatter.tables()]
        return self._found(tables)

    def _found(self, tables: list[Any]) -> KeptFigures:
        """Return the tables, with units where these are counted and not rows."""
        assert self._kept is not None
        kinds = (contribution.measure.kind for contribution in self.rows.contributions)
        counted = [self._kept.units if kind == "units" else table for kind, table in zip(kinds, tables, strict=True)]
        return KeptFigures(self._kept, self._holdings, self._losses, self.of_units.put(counted))

    def _slots_of(self, block: Block) -> np.ndarray:
        """Return a block's groups as slots; -1 becomes the largest, the trash."""
        np.copyto(block.numbers, self._groups[block.start : block.stop])
        return block.numbers.view(np.uint64)


def count_lone(frames: Iterator[pl.DataFrame], groups: int) -> np.ndarray:
    """Return how many rows of one unit are in each group."""
    counts = np.zeros(groups, np.int64)
    for frame in frames:
        found = frame["group"].value_counts()
        counts[found["group"].to_numpy()] += found["count"].to_numpy()
    return counts


def _dealer(rows: UnitRows, parts: Parts) -> Callable[[pl.DataFrame], None]:
    """Return the function that deals out a batch's rows which have a unit and a group."""

    def deal(batch: pl.DataFrame) -> None:
        for piece in batch.iter_slices(_SLICE_ROWS):
            group = np.empty(piece.height, np.int32)
            rows.find_groups(piece, group)
            columns = [_physical(piece["unit"]), pl.Series("group", group)]
            columns += [_physical(value) for value in values_of(piece).get_columns()]
            parts.add(pl.DataFrame(columns).filter(pl.col("unit").is_not_null() & (pl.col("group") >= 0)))

    return deal


def _physical(column: pl.Series) -> pl.Series:
    """Return a column as the numbers that kernels read, or as strings or decimals."""
    return column if isinstance(column.dtype, (pl.String, pl.Decimal)) else column.to_physical()


def _settle(part: Part, file: SpillFile, room: int, made: _Gathering, words: Words) -> None:
    """Add the rows of one part."""
    if part.need <= room:
        frame = pl.concat(part.read(file))
        units, groups = np.empty(frame.height, np.int32), frame["group"].to_numpy(writable=True)
        numbers = UnitNumbers(whole=True)
        numbers.number(frame["unit"], units)
        numbers.finish()
        made.add(NumberedRows(units, numbers.known, groups), values_of(frame), words)
    elif part.is_lone:
        made.add_lone(partial(part.read, file), words)
    else:
        # Its most common unit in the first rows may be what crowds it.
        crowding = file.read(part.blocks[0])["unit"].mode().min()  # of several, one that chance does not choose
        parts = Parts(file, room, crowding)
        for frame in part.read(file):
            parts.add(frame)
        for smaller in parts.finish():
            _settle(smaller, file, room, made, words)
