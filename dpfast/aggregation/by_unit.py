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

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from dpfast.aggregation import memory
from dpfast.aggregation.blocks import Block
from dpfast.aggregation.contributions import Contribution
from dpfast.aggregation.grouping import Words
from dpfast.aggregation.guarding import check_rows
from dpfast.aggregation.holdings import Holdings
from dpfast.aggregation.kept_groups import KeptGroups
from dpfast.aggregation.losses import LossCounts, Losses, losses_of
from dpfast.aggregation.private import Private
from dpfast.aggregation.scatter import Scatter, feed, stands, value_exprs
from dpfast.aggregation.sources import Source
from dpfast.aggregation.spilling import SpillFile, find_folder
from dpfast.aggregation.unit_figures import UnitFigures
from dpfast.aggregation.unit_sums import UnitSums, sum_pairs
from dpfast.aggregation.units import BoundedRows, UnitNumbers, bound_contributions
from dpfast.kernels.grouping.bounding import choose_rows
from dpfast.randomness import SystemRandom

__all__ = ["KeptFigures", "UnitRows", "aggregate_by_unit", "sum_by_unit"]

_PARTS = 128
_FLUSHES = 8
_SLICE_ROWS = 1 << 17
_ROW_BYTES = 96
"""What a row of a part takes at most beside its values: unit, group, both sorted, and the tables of units."""


@dataclass(frozen=True)
class UnitRows:
    """Rows to be bounded and aggregated.

    Attributes
    ----------
    source
        The data.
    columns
        The expressions of the keys' columns, and of the unit, named ``unit``.
    find_groups
        Writes each row's group (int32, -1 for none) from a batch of these columns.
    groups
        All groups are below this.
    contributions
        What rows add.
    max_groups, max_rows
        What a unit keeps.
    lists_groups
        Whether the groups that each unit keeps are wanted.
    tells_losses
        Whether it is wanted how much units lose.

    """

    source: Source
    columns: Sequence[pl.Expr]
    find_groups: Callable[[pl.DataFrame, np.ndarray], None]
    groups: int
    contributions: Sequence[Contribution]
    max_groups: int
    max_rows: int
    lists_groups: bool = False
    tells_losses: bool = False

    @property
    def exprs(self) -> list[pl.Expr]:
        """All columns that are read."""
        return [*self.columns, *value_exprs(self.contributions)]

    @property
    def marks_rows(self) -> bool:
        """Whether the rows kept are wanted, not only their numbers."""
        return any(contribution.way not in ("rows", "units") for contribution in self.contributions)


class _OutgrownError(Exception):
    """Rows take more than the memory that they may."""


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


def aggregate_by_unit(rows: UnitRows, words: Words) -> KeptFigures:
    """Bound what each unit contributes, and return what is left."""
    room = memory.room_for_rows()
    folder = find_folder()
    tables = _Tables(rows)
    try:
        # Where nothing can be spilled, memory is used as far as it goes.
        units, number, groups, values = _read_rows(rows, room if folder is not None else None)
    except _OutgrownError:
        pass
    else:
        tables.add(units, number, groups, values, words)
        return tables.results()
    assert folder is not None
    tables = _Tables(rows, folder)
    with SpillFile(folder) as file:
        parts = _Parts(file, room)
        check_rows(rows.source, feed(rows.source, rows.exprs, _dealer(rows, parts), in_order=True))
        for part in parts.finish():
            _settle(part, file, room, tables, words)
    return tables.results()


def sum_by_unit(rows: UnitRows) -> UnitSums:
    """Return what each unit adds to each group, of all rows, which stay in memory."""
    units, number, groups, values = _read_rows(rows, None)
    return sum_pairs(units, number, groups, rows.groups, values, rows.contributions)


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

    def add(self, units: np.ndarray, number: int, groups: np.ndarray, values: pl.DataFrame, words: Words) -> None:
        """Bound rows that are all rows of their units, and add what is kept."""
        rows = self.rows
        bounded = bound_contributions(
            units,
            number,
            groups,
            rows.groups,
            rows.max_groups,
            rows.max_rows,
            words,
            mark_rows=rows.marks_rows,
            list_groups=rows.lists_groups or bool(self.of_units),
            tell_losses=rows.tells_losses,
            tell_order=bool(self.of_units),
        )
        if bounded.order is not None and bounded.holdings is not None:
            self.of_units.add(bounded.order, bounded.holdings, values)
        self.count(bounded.units, bounded.rows)
        if bounded.losses is not None:
            self.lose(bounded.losses, words)
        if bounded.holdings is not None:
            self.hold(bounded.holdings)
        self.scatter(groups, values)

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


def _read_rows(rows: UnitRows, room: int | None) -> tuple[np.ndarray, int, np.ndarray, pl.DataFrame]:
    """Return each row's unit and group (int32, -1 for none), the number of units, and the measured columns.

    Raises
    ------
    _OutgrownError
        If they take more than ``room`` bytes.

    """
    frame = rows.source.frame
    whole = isinstance(frame, pl.DataFrame) and stands(rows.exprs)
    numbers = UnitNumbers(whole=whole)
    units: list[np.ndarray] = []
    groups: list[np.ndarray] = []
    values: list[pl.DataFrame] = []
    count = taken = 0

    def read(batch: pl.DataFrame) -> None:
        nonlocal count, taken
        value = _values_of(batch)
        count += batch.height
        # What stands in memory already is not taken anew.
        taken += 0 if whole else int(value.estimated_size())
        unit, group = np.empty(batch.height, np.int32), np.empty(batch.height, np.int32)
        # Unit and group, and both again as they are joined or sorted.
        if room is not None and 16 * count + taken + numbers.nbytes > room:
            raise _OutgrownError
        numbers.number(batch["unit"], unit)
        rows.find_groups(batch, group)
        units.append(unit)
        groups.append(group)
        values.append(value)

    # In order, so that what a unit keeps is a function of the frame and the words, and of no thread's speed.
    check_rows(rows.source, feed(rows.source, rows.exprs, read, in_order=True))
    numbers.finish()
    if not units:
        nothing = np.empty(0, np.int32)
        return nothing, 0, nothing, pl.DataFrame()
    if len(units) == 1:
        return units[0], numbers.known, groups[0], values[0]
    together = np.concatenate(units), numbers.known, np.concatenate(groups)
    return *together, pl.concat(values, rechunk=False)


def _values_of(batch: pl.DataFrame) -> pl.DataFrame:
    return batch.select([name for name in batch.columns if name.startswith("value")])


@dataclass
class _Part:
    """Rows of some units, all rows of each: where they are, and what they take."""

    blocks: list[tuple[int, int]] = field(default_factory=list)
    rows: int = 0
    bytes: int = 0
    #: The one unit of all rows so far, in a frame of one row; None before the first and with the second.
    unit: Any = None
    is_lone: bool = True

    @property
    def need(self) -> int:
        """How much memory it takes to bound the rows at once."""
        return _ROW_BYTES * self.rows + 2 * self.bytes

    def note(self, frame: pl.DataFrame) -> None:
        """Count rows that are added."""
        self.rows += frame.height
        self.bytes += int(frame.estimated_size())
        if self.is_lone:
            unit = frame["unit"]
            self.unit = unit[0] if self.unit is None else self.unit
            self.is_lone = bool((unit == self.unit).all())


class _Parts:
    """Rows dealt out by a hash of their unit.

    The hash has a fresh seed, so that data cannot be made to crowd a part, and its last value is for ``crowding``,
    a unit that was seen to have very many rows.
    """

    def __init__(self, file: SpillFile, room: int, crowding: Any = None) -> None:
        self._file = file
        self._flush_bytes = room // _FLUSHES
        self._crowding = crowding
        self._seed = int.from_bytes(SystemRandom().key()[:8], "little")
        self._parts = [_Part() for _ in range(_PARTS + 1)]
        self._waiting: list[pl.DataFrame] = []
        self._bytes = 0

    def add(self, frame: pl.DataFrame) -> None:
        """Add rows of the columns ``unit``, ``group`` and values; written down when enough are together."""
        if frame.height:
            self._waiting.append(frame)
            self._bytes += int(frame.estimated_size())
        if self._bytes > self._flush_bytes:
            self._flush()

    def finish(self) -> list[_Part]:
        """Return the parts that have rows; nothing can be added afterwards."""
        self._flush()
        parts, self._parts = self._parts, []
        return [part for part in parts if part.rows]

    def _flush(self) -> None:
        if not self._waiting:
            return
        frame = pl.concat(self._waiting)
        self._waiting, self._bytes = [], 0
        part = pl.col("unit").hash(self._seed) % _PARTS
        if self._crowding is not None:
            part = pl.when(pl.col("unit") == self._crowding).then(_PARTS).otherwise(part)
        frame = frame.with_columns(part.cast(pl.UInt8).alias("part"))
        for piece in frame.partition_by("part", maintain_order=True):
            place = self._parts[piece["part"][0]]
            piece = piece.drop("part")
            place.note(piece)
            place.blocks.append(self._file.write(piece))


def _dealer(rows: UnitRows, parts: _Parts) -> Callable[[pl.DataFrame], None]:
    """Return the function that deals out a batch's rows which have a unit and a group."""

    def deal(batch: pl.DataFrame) -> None:
        for piece in batch.iter_slices(_SLICE_ROWS):
            group = np.empty(piece.height, np.int32)
            rows.find_groups(piece, group)
            columns = [_physical(piece["unit"]), pl.Series("group", group)]
            columns += [_physical(value) for value in _values_of(piece).get_columns()]
            parts.add(pl.DataFrame(columns).filter(pl.col("unit").is_not_null() & (pl.col("group") >= 0)))

    return deal


def _physical(column: pl.Series) -> pl.Series:
    """Return a column as the numbers that kernels read, or as strings or decimals."""
    return column if isinstance(column.dtype, (pl.String, pl.Decimal)) else column.to_physical()


def _settle(part: _Part, file: SpillFile, room: int, tables: _Tables, words: Words) -> None:
    """Bound and add the rows of one part."""
    if part.need <= room:
        frame = pl.concat(_read_blocks(part, file))
        units, groups = np.empty(frame.height, np.int32), frame["group"].to_numpy(writable=True)
        numbers = UnitNumbers(whole=True)
        numbers.number(frame["unit"], units)
        numbers.finish()
        tables.add(units, numbers.known, groups, _values_of(frame), words)
    elif part.is_lone:
        _keep_lone(part, file, tables, words)
    else:
        # Its most common unit in the first rows may be what crowds it.
        crowding = file.read(part.blocks[0])["unit"].mode(maintain_order=True)[0]
        parts = _Parts(file, room, crowding)
        for frame in _read_blocks(part, file):
            parts.add(frame)
        for smaller in parts.finish():
            _settle(smaller, file, room, tables, words)


def _read_blocks(part: _Part, file: SpillFile) -> Iterator[pl.DataFrame]:
    for place in part.blocks:
        yield file.read(place)


def _keep_lone(part: _Part, file: SpillFile, tables: _Tables, words: Words) -> None:
    """Bound and add the rows of one unit as they pass by.

    Its groups are chosen as ever, a row standing for each; of a group of n rows the next one is kept with
    probability (rows still wanted) / (rows still to come), by selection sampling, which gives every set of
    ``max_rows`` of the n rows the same chance (Fan, Muller, Rezucha 1962; Knuth, volume 2, algorithm 3.4.2 S).
    """
    rows = tables.rows
    counts = np.zeros(rows.groups, np.int64)
    for frame in _read_blocks(part, file):
        found = frame["group"].value_counts()
        counts[found["group"].to_numpy()] += found["count"].to_numpy()
    held = np.flatnonzero(counts).astype(np.int32)
    bound_contributions(np.zeros(held.size, np.int32), 1, held, rows.groups, rows.max_groups, 1, words, mark_rows=True)
    chosen = held[held >= 0]
    kept, wanted = np.zeros(rows.groups, np.int64), np.zeros(rows.groups, np.int64)
    kept[chosen] = 1
    wanted[chosen] = np.minimum(counts[chosen], min(rows.max_rows, 2**62))
    tables.count(kept, wanted.copy())
    tables.hold(Holdings(np.array([chosen.size]), chosen))
    kept_rows, all_rows, all_groups = (np.array([int(one)]) for one in (wanted.sum(), counts.sum(), held.size))
    tables.lose(losses_of(all_rows, kept_rows, all_groups, rows.max_groups), words)
    if tables.of_units:
        tables.of_units.add_lone(chosen, _read_blocks(part, file))
    if rows.marks_rows:
        for frame in _read_blocks(part, file):
            groups = frame["group"].to_numpy(writable=True)
            choose_rows(groups, wanted, counts, words(max(1, groups.size)))
            tables.scatter(groups, _values_of(frame))
