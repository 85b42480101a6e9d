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
from dpfast.domain.impossible import Possible
from dpfast.domain.marginal_counting import Codes, MarginalCounter, Places
from dpfast.domain.reading import Reader, reader_of
from dpfast.domain.shapes import check_size
from dpfast.errors import ColumnError, DpfastError
from dpfast.kernels.grouping.counting import UNKNOWN
from dpfast.kernels.grouping.marginal_counting import BEYOND, add_bytes, add_cells, add_codes
from dpfast.showing import Facts, Shown

__all__ = ["OpenRecords", "open_data", "open_records"]


class OpenRecords(Shown):
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
        self._attributes = tuple(attributes)
        self._shape = tuple(attribute.size for attribute in attributes)
        self._readers = []
        for attribute in attributes:
            if attribute.name not in schema:
                raise missing_column(attribute.name, schema.names(), "the domain")
            self._readers.append(reader_of(attribute, schema[attribute.name], clamps=clamps))

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
        check_size(math.prod(self._shape), "domain", "cells")
        return read_guarded(self.source, lambda: self._count(most))

    def count_marginals(
        self, sets: Sequence[tuple[int, ...]], *, threads: int | None = None, possible: Sequence[Possible] = ()
    ) -> list[NDArray[np.int64]]:
        """Return the exact counts of some sets of attributes, each in one dimension: private.

        A record is in a cell of each of them, or of none: in none if one of its values is in no cell. One pass is made
        over the data, and the domain may have any number of cells.

        Parameters
        ----------
        sets
            The places of the attributes of each marginal.
        threads
            As for `count`.
        possible
            Records in other cells than these are in none.

        Raises
        ------
        DpfastError, MemoryError
            As `count` does.

        """
        return read_guarded(self.source, lambda: self._count_marginals(sets, threads, possible))

    def _count_marginals(
        self, sets: Sequence[tuple[int, ...]], threads: int | None, possible: Sequence[Possible]
    ) -> list[NDArray[np.int64]]:
        def read_codes(block: Block, columns: Places, codes: Codes, known: NDArray[np.uint8]) -> None:
            self._codes_of(block, columns, codes, known)
            for one in possible:
                self._keep_possible(block, one, known)

        counter = MarginalCounter(self._shape, sets, read_codes, threads)
        check_rows(self.source, feed(self.source, self._expressions, counter.add, threads=counter.threads))
        return counter.tables()

    @property
    def _expressions(self) -> list[pl.Expr]:
        return [reader.expression.alias(f"key{i}") for i, reader in enumerate(self._readers)]

    def _count(self, threads: int | None) -> NDArray[np.int64]:
        scatter = Scatter(math.prod(self._shape), self._cells_of, [ROWS], threads)
        check_rows(self.source, feed(self.source, self._expressions, scatter.add))
        (table,) = scatter.tables()
        assert isinstance(table, np.ndarray)
        return table[:-1].reshape(self._shape)

    def _cells_of(self, block: Block) -> np.ndarray:
        """Return the cell of each row (uint64), for rows in none a number beyond all."""
        cells = block.slots
        cells[:] = 0
        stride = math.prod(self._shape)
        for i, (reader, attribute) in enumerate(zip(self._readers, self._attributes, strict=True)):
            stride //= attribute.size
            other = BEYOND if attribute.other is None else np.uint64(attribute.other * stride)
            places, known = _to_read(reader, block, i)
            add_cells(places, known, np.uint64(attribute.declared), np.uint64(stride), other, cells)
        return cells

    def _codes_of(self, block: Block, columns: Places, codes: Codes, known: NDArray[np.uint8]) -> None:
        """Add each attribute's codes to its columns, and set 0 in ``known`` for rows that are in no cell."""
        known[:] = 1
        for i, (reader, attribute) in enumerate(zip(self._readers, self._attributes, strict=True)):
            other = UNKNOWN if attribute.other is None else np.uint64(attribute.other)
            values, valid = reader.read_bytes(block, f"key{i}") or _to_read(reader, block, i)
            for row, factor in columns[i]:
                own = codes[row, : known.size]
                if valid is None and factor < 1 << 8:
                    add_bytes(values, np.uint8(min(attribute.declared, 1 << 8) - 1), np.uint8(factor), own, known)
                    continue
                declared, flags = np.uint64(attribute.declared), block.ones if valid is None else valid
                add_codes(values, flags, declared, other, np.uint64(factor), own, known)

    def _keep_possible(self, block: Block, possible: Possible, known: NDArray[np.uint8]) -> None:
        """Set 0 in ``known`` for rows that are in an impossible cell."""
        cells, declared = np.zeros(known.size, np.uint32), np.ones(known.size, np.uint8)
        for place in possible.attributes:
            attribute = self._attributes[place]
            other = UNKNOWN if attribute.other is None else np.uint64(attribute.other)
            values, valid = _to_read(self._readers[place], block, place)
            size = np.uint64(attribute.size)
            add_codes(values, valid, np.uint64(attribute.declared), other, size, cells, declared)
        # What was not declared has no cell; it is taken out already.
        known &= possible.flags.take(np.where(declared, cells, 0)).view(np.uint8)

    def __reduce__(self) -> NoReturn:
        raise DpfastError("opened records cannot be pickled or copied: they are private")

    def _facts(self) -> Facts:
        """Return the shape of the domain; how many records there are is private."""
        return [("shape", self._shape)]


def _to_read(reader: Reader, block: Block, place: int) -> tuple[np.ndarray, np.ndarray]:
    """Return what a reader says of a block."""
    places, known = reader.read(block, f"key{place}")
    # Some stand in the data's own memory; the kernel is compiled once for all.
    places = places.view()
    places.setflags(write=False)
    return places, known


def open_records(data: Data, schema: Schema, attributes: Sequence[Attribute], *, clamps: bool) -> OpenRecords:
    """Return records that fit attributes by their schema; see `Domain.open`."""
    return OpenRecords(open_data(data, schema), attributes, clamps=clamps)


def open_data(data: Data, schema: Schema) -> Source:
    """Return data opened, a dictionary of columns among them; no row is read."""
    if isinstance(data, Source):
        return data
    return open_source(_as_frame(data) if isinstance(data, dict) else data, schema=schema)


def _as_frame(columns: dict[Any, Any]) -> pl.DataFrame:
    for name, values in columns.items():
        if not _has_dtype(values):
            # The dtype of a list would be made from private values, and with it an error before any charge.
            raise ColumnError(
                f"data must have columns with dtypes of their own, but {str(name)[:60]!r} was of type "
                f"{type(values).__name__}; pass a Series, for example pl.Series(values, dtype=pl.String)"
            )
    try:
        return pl.DataFrame({name: pl.Series(values) for name, values in columns.items()})
    except (TypeError, ValueError, pl.exceptions.PolarsError):
        pass
    # Out here no traceback holds what Polars says, which may show a value.
    raise ColumnError("data must be a frame of columns, but was a dictionary of others; pass a Polars DataFrame")


def _has_dtype(values: object) -> bool:
    """Return whether a column's dtype is known without its values, and all of them convert.

    A text of NumPy's may be none in UTF-8, and a mask would be passed over.
    """
    if isinstance(values, np.ndarray) and not isinstance(values, np.ma.MaskedArray):
        return values.dtype.kind in "biufmM"
    return isinstance(values, pl.Series)
