"""Aggregate by scattering: each row adds to its slot in a table whose size the keys fix."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import numpy as np
import polars as pl

from dpfast.aggregation.blocks import BLOCK_ROWS, Block, share_blocks
from dpfast.aggregation.contributions import Contribution
from dpfast.aggregation.grouped_points import Collector, GroupedPoints, count_different
from dpfast.aggregation.scans import Source
from dpfast.kernels.grouping.counting import add_to_slots, count_choices, count_slots, narrow_slots
from dpfast.queries import Measure
from dpfast.threads import Crew

__all__ = ["Scatter", "feed", "pick", "stands", "value_exprs"]

_CACHE_BYTES = 1 << 22
"""What may be assumed to stay in the processor's last cache: the tables of all threads together."""

_STRETCH_ROWS = 1 << 21
#: Stretches for each thread.
_PARTS = 4

_TABLES = ("choices", "found", "bins")
"""What is counted in a row of numbers for each slot."""

_MOST_CODES = 1 << 62
_MOST_CELLS, _MOST_FOUND = 1 << 27, 1 << 24
"""With more cells of (slot, candidate) the rows themselves are kept, which take 8 bytes each, and sorted by slot.

Of values that are found in the data nobody knows beforehand how many there are, so that their tables stay small."""


def value_exprs(contributions: Sequence[Contribution]) -> list[pl.Expr]:
    """Return the columns that the measures read, named ``value0``, ``value1``, ... by the measure's place.

    Of several parts the second one is named ``value0_1``.
    """
    return [
        part.block.alias(f"value{i}" + f"_{place}" * bool(place))
        for i, contribution in enumerate(contributions)
        for place, part in enumerate(contribution.parts or (contribution,))
        if part.block is not None
    ]


def feed(
    source: Source,
    exprs: Sequence[pl.Expr],
    use: Callable[[pl.DataFrame], None],
    *,
    in_order: bool = False,
    threads: int = 1,
) -> int:
    """Call ``use`` with the expressions' columns and return the rows: at once where they stand, else by batches.

    The engine runs native expressions only, over the columns that they name, and the batches are dropped as they are
    used, so that a file is never in memory whole. They come one at a time, as the engine's threads finish them or
    ``in_order``; ``use`` is called in those threads. With several ``threads`` it is called in so many others, perhaps
    in several at once, while the engine reads on.

    Whatever fails, in the engine or in ``use``, is raised here, panics as BaseException: Polars'
    ``collect_batches`` ends as if complete when a thread of it panics (V, Polars 2.1), which loses rows.
    """
    if not exprs:
        # Only the number of rows matters; a selection without columns would forget it.
        exprs = [pl.first().is_null().alias("row")]
    standing = stands(exprs)
    if isinstance(source.frame, pl.DataFrame) and standing:
        use(pick(source.frame, exprs))
        return source.frame.height
    lock, rows = threading.Lock(), 0
    if source.blocks is not None:
        # The engine would pass them from thread to thread, and cut them up.
        named = {name for expr in exprs for name in expr.meta.root_names()}
        for block in source.blocks(sorted(named) or source.schema().names()[:1]):
            use(pick(block, exprs) if standing else block.select(exprs))
            rows += block.height
        return rows

    crew = Crew(use, threads)
    hand = crew.hand if threads > 1 else use

    def take(batch: pl.DataFrame) -> None:
        nonlocal rows
        with lock:
            hand(batch)
            rows += batch.height

    try:
        source.frame.lazy().select(exprs).sink_batches(take, maintain_order=in_order, engine="streaming")
    finally:
        # What failed in another thread is raised as it was, not as the engine tells it.
        crew.finish()
    return rows


def stands(exprs: Sequence[pl.Expr]) -> bool:
    """Return whether expressions only name columns, so that selecting them from a DataFrame copies nothing."""
    return bool(exprs) and all(expr.meta.undo_aliases().meta.is_column() for expr in exprs)


def pick(frame: pl.DataFrame, exprs: Sequence[pl.Expr]) -> pl.DataFrame:
    """Return what expressions that only name columns select, without the engine, which takes its time to start."""
    metas = [expr.meta for expr in exprs]
    return pl.DataFrame(
        [frame.get_column(meta.undo_aliases().meta.output_name()).alias(meta.output_name()) for meta in metas]
    )


Table: TypeAlias = "np.ndarray | Collector"


class Scatter:
    """Add rows to one int64 table of ``slots + 1`` entries per contribution; the last entry is the trash.

    Choices and bins are counted in a table of a row for each slot, one number for each candidate or bin. Points, of
    which quantiles are drawn, are collected instead and sorted by slot at the end, and so are choices whose table would
    be too large.

    Sums of integers do not depend on how threads share the rows. Of what units contribute the tables stay at 0.

    Parameters
    ----------
    slots
        The number of slots.
    slots_of
        Gives each row's slot as uint64; whatever it gives, no row is written outside the table.
    contributions
        What a row adds.
    threads
        How many threads share the rows at most; None for as many as their tables fit into the cache.
    count_rows
        Counts the rows of a block in a table at once, where that is faster than by their slots.
    block_rows
        How many rows are read at a time.

    """

    def __init__(
        self,
        slots: int,
        slots_of: Callable[[Block], np.ndarray],
        contributions: Sequence[Contribution],
        threads: int | None = None,
        count_rows: Callable[[Block, np.ndarray], None] | None = None,
        block_rows: int = BLOCK_ROWS,
    ) -> None:
        self._block_rows = block_rows
        self._count_rows = count_rows if [one.way for one in contributions] == ["rows"] else None
        self._slots = slots
        self._slots_of = slots_of
        self._contributions = contributions
        self._bytes = 8 * sum(_width(contribution.measure, slots) * slots + 1 for contribution in contributions)
        self._free = [self._new_tables()]
        self._blocks: list[Block] = []
        fitting = max(1, _CACHE_BYTES // max(1, self._bytes))
        self._threads = fitting if threads is None else min(threads, fitting)

    def add(self, batch: pl.DataFrame) -> None:
        """Add the rows of a batch."""
        share_blocks(batch, self._threads, self._work, self._blocks, rows=self._block_rows, parts=_PARTS)

    def tables(self) -> list[np.ndarray | GroupedPoints]:
        """Return the tables, and points slot by slot; nothing can be added afterwards."""
        by_contribution = zip(*self._free, strict=True)
        self._free = []
        joined = [_join(tables) for tables in by_contribution]
        return [
            # Both lengths in full: without keys there are no slots, and NumPy cannot infer the other from 0 cells.
            count_different(table)
            if contribution.measure.kind == "distinct" and isinstance(table, GroupedPoints)
            else table[:-1].reshape(self._slots, contribution.measure.points)
            if contribution.measure.kind in _TABLES and isinstance(table, np.ndarray)
            else table
            for table, contribution in zip(joined, self._contributions, strict=True)
        ]

    def _new_tables(self) -> list[Table]:
        return [self._new_table(contribution.measure) for contribution in self._contributions]

    def _new_table(self, measure: Measure) -> Table:
        cells = _width(measure, self._slots) * self._slots
        if measure.kind == "distinct":
            return Collector(self._slots, _MOST_CODES)
        lists = measure.kind == "found" and measure.points * self._slots > _MOST_FOUND
        if lists or measure.kind == "points" or (measure.kind == "choices" and cells > _MOST_CELLS):
            return Collector(self._slots, measure.points)
        return np.zeros(cells + 1, np.int64)

    def _work(self, block: Block, start: int, stop: int) -> None:
        try:
            tables = self._free.pop()
        except IndexError:
            tables = self._new_tables()
        fits = len(self._contributions) == 1 or self._bytes <= _CACHE_BYTES // 2
        if self._count_rows is not None:
            for _ in block.walk(start, stop):
                self._count_rows(block, np.asarray(tables[0]))
        # Finding candidates needs the scratch memory that the slots are in.
        elif fits and not any(contribution.coder for contribution in self._contributions):
            for _ in block.walk(start, stop):
                self._add_block(block, self._slots_of(block), range(len(tables)), tables)
        else:
            self._work_by_stretches(block, start, stop, tables, BLOCK_ROWS if fits else _STRETCH_ROWS)
        self._free.append(tables)

    def _work_by_stretches(self, block: Block, start: int, stop: int, tables: Sequence[Table], rows: int) -> None:
        """Add rows with slots copied, so many at a time: where the tables together do not fit into the cache.

        Then they are filled one at a time, over many blocks.
        """
        slots = np.empty(min(stop - start, rows), np.uint32 if self._slots < 2**32 else np.uint64)
        for low in range(start, stop, rows):
            high = min(low + rows, stop)
            for _ in block.walk(low, high):
                part = slots[block.start - low : block.stop - low]
                narrow_slots(self._slots_of(block), np.uint64(self._slots), part)
            for place in range(len(tables)):
                for _ in block.walk(low, high):
                    part = slots[block.start - low : block.stop - low]
                    self._add_block(block, part, (place,), tables)

    def _add_block(self, block: Block, slots: np.ndarray, places: Iterable[int], tables: Sequence[Table]) -> None:
        """Add a block's contributions of these places to their tables."""
        filled = block.filled
        for place in places:
            contribution, table = self._contributions[place], tables[place]
            if contribution.way == "units":
                continue
            if contribution.way == "rows":
                count_slots(slots, table)
                continue
            contribution.fill(block, f"value{place}", filled)
            if isinstance(table, Collector):
                table.add(slots, filled)
            elif contribution.measure.kind in _TABLES:
                count_choices(slots, filled, np.uint64(contribution.measure.points), table)
            else:
                add_to_slots(slots, filled, table)


def _width(measure: Measure, slots: int) -> int:
    """Return how many numbers a measure counts for each slot."""
    if measure.kind == "found" and measure.points * slots > _MOST_FOUND:
        return 1
    return measure.points if measure.kind in _TABLES else 1


def _join(tables: Sequence[Table]) -> np.ndarray | GroupedPoints:
    """Return the tables of all threads as one."""
    collectors = [table for table in tables if isinstance(table, Collector)]
    if collectors:
        return Collector.join(collectors)
    total, *others = (table for table in tables if not isinstance(table, Collector))
    for table in others:
        total += table
    return total
