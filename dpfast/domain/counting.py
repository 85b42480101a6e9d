"""Records, opened and not yet read, into exact counts of a histogram's cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.aggregation.blocks import Block
from dpfast.aggregation.contributions import ROWS
from dpfast.aggregation.guarding import check_rows, read_guarded
from dpfast.aggregation.scatter import Scatter, feed
from dpfast.aggregation.sources import Data, Schema, Source, missing_column, open_source
from dpfast.arguments import THREADS, Threads
from dpfast.domain.attributes import Attribute
from dpfast.domain.reading import reader_of
from dpfast.errors import ColumnError, DpfastError
from dpfast.kernels.grouping.counting import UNKNOWN, add_key_codes

__all__ = ["OpenRecords", "open_records"]


class OpenRecords:
    """Records whose columns are known to fit a domain, and of which no row has been read.

    Attributes
    ----------
    source
        The frame or files.

    """

    def __init__(self, source: Source, attributes: Sequence[Attribute], *, clamps: bool) -> None:
        schema = source.schema()
        source.require(attribute.name for attribute in attributes)
        self.source = source
        self._shape = tuple(attribute.size for attribute in attributes)
        self._columns = []
        stride = math.prod(self._shape)
        for attribute in attributes:
            if attribute.name not in schema:
                raise missing_column(attribute.name, schema.names(), "the domain")
            stride //= attribute.size
            reader = reader_of(attribute, schema[attribute.name], clamps=clamps)
            other = UNKNOWN if attribute.other is None else np.uint64(attribute.other * stride)
            self._columns.append((reader, np.uint64(attribute.declared), np.uint64(stride), other))

    def count(self, *, threads: Threads = None) -> NDArray[np.int64]:
        """Return the exact count of every cell, int64: private.

        Files are read in batches, and never stand in memory whole.

        Parameters
        ----------
        threads
            How many threads count at most, beside the engine's own that read files; as many as pay if not given.

        Raises
        ------
        DpfastError
            The data cannot be read to its end, or a file changed since it was opened. The words are fixed.
        MemoryError
            There is not enough memory.

        """
        most = THREADS.read_optional("threads", threads)
        return read_guarded(self.source, lambda: self._count(most))

    def _count(self, threads: int | None) -> NDArray[np.int64]:
        scatter = Scatter(math.prod(self._shape), self._cells_of, [ROWS], threads)
        columns = [reader.expression.alias(f"key{i}") for i, (reader, *_) in enumerate(self._columns)]
        check_rows(self.source, feed(self.source, columns, scatter.add))
        (table,) = scatter.tables()
        assert isinstance(table, np.ndarray)
        return table[:-1].reshape(self._shape)

    def _cells_of(self, block: Block) -> np.ndarray:
        """Return the cell of each row (uint64), for rows in none a number beyond all."""
        cells = block.slots
        cells[:] = 0
        for i, (reader, declared, stride, other) in enumerate(self._columns):
            places, known = reader.read(block, f"key{i}")
            # Some stand in the data's own memory; the kernel is compiled once for all.
            places = places.view()
            places.setflags(write=False)
            add_key_codes(places, known, np.uint64(0), declared, stride, other, cells)
        return cells

    def __reduce__(self) -> NoReturn:
        raise DpfastError("opened records cannot be pickled or copied: they are private")

    def __repr__(self) -> str:
        return f"OpenRecords({' x '.join(f'{length:,}' for length in self._shape)} cells)"


def open_records(data: Data, schema: Schema, attributes: Sequence[Attribute], *, clamps: bool) -> OpenRecords:
    """Return records that fit attributes by their schema; see `Domain.open`."""
    if isinstance(data, dict):
        data = _as_frame(data)
    source = data if isinstance(data, Source) else open_source(data, schema=schema)
    return OpenRecords(source, attributes, clamps=clamps)


def _as_frame(columns: dict[Any, Any]) -> pl.DataFrame:
    try:
        return pl.DataFrame(columns)
    except (TypeError, ValueError, pl.exceptions.PolarsError):
        pass
    # Out here no traceback holds what Polars says, which may show a value.
    raise ColumnError("data must be a frame of columns, but was a dictionary of others; pass a Polars DataFrame")
