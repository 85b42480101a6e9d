"""Aggregate by scattering: each row adds to its slot in a table whose size the keys fix."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import polars as pl

from dpfast.aggregation.blocks import BLOCK_ROWS, Block, share_blocks
from dpfast.aggregation.contributions import Contribution
from dpfast.kernels.counting import add_to_slots, count_slots, narrow_slots

__all__ = ["project", "scatter", "value_exprs"]

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


def project(
    source: pl.DataFrame | pl.LazyFrame, exprs: Sequence[pl.Expr], *, in_order: bool = False
) -> Iterable[pl.DataFrame]:
    """Yield the expressions' columns: at once where they stand in memory already, else batch by batch.

    The engine runs native expressions only, over the columns that they name; the batches are dropped as they
    are used, so that a file is never in memory whole. They come as the engine's threads finish them, or
    ``in_order``.
    """
    if not exprs:
        # Only the number of rows matters; a selection without columns would forget it.
        exprs = [pl.first().is_null().alias("row")]
    if isinstance(source, pl.DataFrame) and all(_stands(expr) for expr in exprs):
        return [source.select(exprs)]
    return source.lazy().select(exprs).collect_batches(maintain_order=in_order, engine="streaming")


def scatter(
    batches: Iterable[pl.DataFrame],
    slots: int,
    slots_of: Callable[[Block], np.ndarray],
    contributions: Sequence[Contribution],
) -> list[np.ndarray]:
    """Return one int64 table of ``slots + 1`` entries per contribution; the last entry is the trash.

    ``slots_of`` gives each row's slot as uint64; whatever it gives, no row is written outside the table. Sums
    of integers do not depend on how threads share the rows.
    """

    def new_tables() -> np.ndarray:
        return np.zeros((len(contributions), slots + 1), np.int64)

    free = [new_tables()]
    threads = max(1, _CACHE_BYTES // max(1, free[0].nbytes))

    def work(block: Block, start: int, stop: int) -> None:
        try:
            tables = free.pop()
        except IndexError:
            tables = new_tables()
        if len(contributions) == 1 or tables.nbytes <= _CACHE_BYTES // 2:
            _scatter_blocks(block, start, stop, tables, slots_of, contributions)
        else:
            _scatter_stretches(block, start, stop, tables, slots_of, contributions)
        free.append(tables)

    for batch in batches:
        share_blocks(batch, threads, work)
    tables = free.pop()
    for others in free:
        tables += others
    return list(tables)


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


def _stands(expr: pl.Expr) -> bool:
    """Return whether an expression only names a column, so that selecting it copies nothing."""
    return expr.meta.undo_aliases().meta.is_column()
