"""Aggregate by scattering: each row adds to its slot in a table whose size the keys fix."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from dpfast.aggregation.blocks import BLOCK_ROWS, Block, share_blocks
from dpfast.aggregation.contributions import Contribution
from dpfast.kernels.counting import add_to_slots, count_slots, narrow_slots

__all__ = ["Scatter", "feed", "stands", "value_exprs"]

_CACHE_BYTES = 1 << 22
"""What may be assumed to stay in the processor's last cache: the tables of all threads together."""

_STRETCH_ROWS = 1 << 21


def value_exprs(contributions: Sequence[Contribution]) -> list[pl.Expr]:
    """Return the columns that the measures read, named ``value0``, ``value1``, ... by the measure's place."""
    return [
        contribution.block.alias(f"value{i}")
        for i, contribution in enumerate(contributions)
        if contribution.block is not None
    ]


def feed(
    source: pl.DataFrame | pl.LazyFrame,
    exprs: Sequence[pl.Expr],
    use: Callable[[pl.DataFrame], None],
    *,
    in_order: bool = False,
) -> int:
    """Call ``use`` with the expressions' columns and return the rows: at once where they stand, else by batches.

    The engine runs native expressions only, over the columns that they name, and the batches are dropped as
    they are used, so that a file is never in memory whole. They come one at a time, as the engine's threads
    finish them or ``in_order``; ``use`` is called in those threads.

    Whatever fails, in the engine or in ``use``, is raised here, panics as BaseException: Polars'
    ``collect_batches`` ends as if complete when a thread of it panics (V, Polars 2.1), which loses rows.
    """
    if not exprs:
        # Only the number of rows matters; a selection without columns would forget it.
        exprs = [pl.first().is_null().alias("row")]
    if isinstance(source, pl.DataFrame) and stands(exprs):
        use(source.select(exprs))
        return source.height
    lock, rows = threading.Lock(), 0

    def take(batch: pl.DataFrame) -> None:
        nonlocal rows
        with lock:
            use(batch)
            rows += batch.height

    source.lazy().select(exprs).sink_batches(take, maintain_order=in_order, engine="streaming")
    return rows


def stands(exprs: Sequence[pl.Expr]) -> bool:
    """Return whether expressions only name columns, so that selecting them from a DataFrame copies nothing."""
    return bool(exprs) and all(expr.meta.undo_aliases().meta.is_column() for expr in exprs)


class Scatter:
    """Add rows to one int64 table of ``slots + 1`` entries per contribution; the last entry is the trash.

    Sums of integers do not depend on how threads share the rows.

    Parameters
    ----------
    slots
        The number of slots.
    slots_of
        Gives each row's slot as uint64; whatever it gives, no row is written outside the table.
    contributions
        What a row adds.

    """

    def __init__(
        self, slots: int, slots_of: Callable[[Block], np.ndarray], contributions: Sequence[Contribution]
    ) -> None:
        self._slots = slots
        self._slots_of = slots_of
        self._contributions = contributions
        self._free = [self._new_tables()]
        self._threads = max(1, _CACHE_BYTES // max(1, self._free[0].nbytes))

    def add(self, batch: pl.DataFrame) -> None:
        """Add the rows of a batch."""
        share_blocks(batch, self._threads, self._work)

    def tables(self) -> list[np.ndarray]:
        """Return the tables; nothing can be added afterwards."""
        tables = self._free.pop()
        while self._free:
            tables += self._free.pop()
        return list(tables)

    def _new_tables(self) -> np.ndarray:
        return np.zeros((len(self._contributions), self._slots + 1), np.int64)

    def _work(self, block: Block, start: int, stop: int) -> None:
        try:
            tables = self._free.pop()
        except IndexError:
            tables = self._new_tables()
        if len(self._contributions) == 1 or tables.nbytes <= _CACHE_BYTES // 2:
            _scatter_blocks(block, start, stop, tables, self._slots_of, self._contributions)
        else:
            _scatter_stretches(block, start, stop, tables, self._slots_of, self._contributions)
        self._free.append(tables)


def _scatter_blocks(
    block: Block,
    start: int,
    stop: int,
    tables: np.ndarray,
    slots_of: Callable[[Block], np.ndarray],
    contributions: Sequence[Contribution],
) -> None:
    """Add rows to the tables, block by block."""
    filled = np.empty(BLOCK_ROWS, np.int64)
    for _ in block.walk(start, stop):
        slots = slots_of(block)
        for i, contribution in enumerate(contributions):
            _add(block, slots, f"value{i}", contribution, filled, tables[i])


def _scatter_stretches(
    block: Block,
    start: int,
    stop: int,
    tables: np.ndarray,
    slots_of: Callable[[Block], np.ndarray],
    contributions: Sequence[Contribution],
) -> None:
    """Do the same where the tables together do not fit into the cache: one at a time, over many blocks."""
    trash = tables.shape[1] - 1
    filled = np.empty(BLOCK_ROWS, np.int64)
    slots = np.empty(min(stop - start, _STRETCH_ROWS), np.uint32 if trash < 2**32 else np.uint64)
    for low in range(start, stop, _STRETCH_ROWS):
        high = min(low + _STRETCH_ROWS, stop)
        for _ in block.walk(low, high):
            narrow_slots(slots_of(block), np.uint64(trash), slots[block.start - low : block.stop - low])
        for i, contribution in enumerate(contributions):
            for _ in block.walk(low, high):
                part = slots[block.start - low : block.stop - low]
                _add(block, part, f"value{i}", contribution, filled, tables[i])


def _add(
    block: Block,
    slots: np.ndarray,
    column: str,
    contribution: Contribution,
    filled: np.ndarray,
    table: np.ndarray,
) -> None:
    """Add a block's contributions to one table."""
    if contribution.way == "rows":
        count_slots(slots, table)
        return
    contribution.fill(block, column, filled[: block.rows])
    add_to_slots(slots, filled[: block.rows], table)
