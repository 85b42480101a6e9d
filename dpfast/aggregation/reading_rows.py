"""Rows of any library as a frame that Polars reads batch by batch, so that they never stand in memory whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any, TypeAlias

import polars as pl
from polars.io.plugins import register_io_source

from dpfast.aggregation.memory import room_for_rows
from dpfast.aggregation.private import Private
from dpfast.aggregation.protocols import Rows
from dpfast.aggregation.spilling import SpillFile, find_folder
from dpfast.columns.tables import null_beyond_milliseconds, rows_alone
from dpfast.errors import DpfastError

__all__ = ["BLOCK_ROWS", "Blocks", "KeptRows", "frame_of_blocks", "read_blocks"]

#: From these columns to their rows, block by block.
Blocks: TypeAlias = "Callable[[Sequence[str]], Iterator[pl.DataFrame]]"

#: Engines hand out 2,048 rows at a time: a block of that size costs as much as one of a hundred times as many rows. Of
#: larger blocks less is left in the processor's cache when it is their turn, and no thread is needed for smaller ones.
BLOCK_ROWS = 1 << 18
_MOST_ROWS = 1 << 20
#: Chunks of fewer rows are joined in one.
_LEAST_CHUNK = 1 << 15


def frame_of_blocks(blocks: Blocks, schema: pl.Schema) -> pl.LazyFrame:
    """Return a frame whose rows are read when it is collected, once for each time that it is."""

    def read(
        columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, size: int | None
    ) -> Iterator[pl.DataFrame]:
        # A block without columns would forget how many rows it has.
        wanted = list(schema) if columns is None else columns
        for block in blocks(wanted or list(schema)[:1]):
            found = block if rows is None else block.head(rows)
            rows = None if rows is None else rows - found.height
            found = found if predicate is None else found.filter(predicate)
            yield found.select(wanted) if wanted else rows_alone(found.height)
            if rows == 0:
                return

    return register_io_source(read, schema=schema)


def read_blocks(rows: Rows, schema: pl.Schema, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Yield these columns in blocks of 2**18 to 2**20 + 2**18 rows, the last one apart.

    Raises
    ------
    DpfastError
        If a batch has other columns or types than the schema said.

    """
    import pyarrow as pa

    wanted = {name: schema[name] for name in columns}
    waiting: list[Any] = []
    count = 0

    def block() -> pl.DataFrame:
        table = pa.Table.from_batches(waiting).select(list(columns))
        frame = pl.from_arrow(null_beyond_milliseconds(table), rechunk=False)
        assert isinstance(frame, pl.DataFrame)
        if dict(frame.schema) != wanted:
            raise DpfastError("a batch of the data has other columns or types than the schema said")
        return frame if count >= _LEAST_CHUNK * len(waiting) else frame.rechunk()

    for batch in rows.batches(columns):
        for start in range(0, batch.num_rows, _MOST_ROWS):
            piece = batch.slice(start, _MOST_ROWS)
            waiting.append(piece)
            count += piece.num_rows
            if count >= BLOCK_ROWS:
                yield block()
                waiting.clear()
                count = 0
    if waiting:
        yield block()


class KeptRows(Private, AbstractContextManager["KeptRows"]):
    """Rows that can be read once, kept for a second reading: in memory, or encrypted on the disk.

    Parameters
    ----------
    blocks
        What is read: here, and whole.
    columns
        The columns that are kept.

    """

    def __init__(self, blocks: Blocks, columns: Sequence[str]) -> None:
        self._frames: list[pl.DataFrame] = []
        self._places: list[tuple[int, int]] = []
        self._file: SpillFile | None = None
        with ExitStack() as opened:
            room, folder, taken = room_for_rows(), find_folder(), 0
            for block in blocks(columns):
                taken += int(block.estimated_size())
                self._frames.append(block)
                # Where nothing can be spilled, memory is used as far as it goes.
                if folder is not None and taken > room:
                    self._file = self._file or opened.enter_context(SpillFile(folder))
                    self._places.extend(map(self._file.write, self._frames))
                    self._frames.clear()
                    taken = 0
            self._open = opened.pop_all()

    def frame(self, schema: pl.Schema) -> pl.DataFrame | pl.LazyFrame:
        """Return the rows as one frame, which shares the memory that they are in; lazy if some are on the disk."""
        if self._places or not self._frames:
            return frame_of_blocks(self.read, schema)
        return pl.concat(self._frames, rechunk=False)

    def read(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield some of the columns, block by block, in the order of the rows; before this is closed."""
        for place in self._places:
            assert self._file is not None
            yield self._file.read(place).select(columns)
        for frame in self._frames:
            yield frame.select(columns)

    def __exit__(self, *exception: object) -> None:
        self._frames.clear()
        self._open.close()
