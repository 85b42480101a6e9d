"""Columns as physical numbers, read block by block from Polars' own memory.

A block is copied, widened, into scratch that stays in the cache; kernels see int64, float64, uint64 and uint8
arrays only, whatever the dtype, the chunks, the slices and the null masks of the frame are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import polars as pl

from dpfast.kernels.grouping.counting import saturate_wide
from dpfast.kernels.grouping.factorizing import INLINE, LONG, clean_views
from dpfast.threads import share

__all__ = ["BLOCK_ROWS", "Block", "iterate_blocks", "share_blocks"]

BLOCK_ROWS = 1 << 16
_ROWS_PER_THREAD = 1 << 18
_LENGTH = np.uint64(2**32 - 1)

_WIDTHS = {"Int": (8, 16, 32, 64), "UInt": (8, 16, 32, 64), "Float": (16, 32, 64)}
_NAMES = [f"{kind}{bits}" for kind, widths in _WIDTHS.items() for bits in widths]
#: Older versions of Polars have no Float16.
_NUMBERS: dict[type[pl.DataType], type[np.generic]] = {
    getattr(pl, name): np.dtype(name.lower()).type for name in _NAMES if hasattr(pl, name)
}


class PhysicalColumn:
    """One column in its physical form: Arrow's buffers, shared, chunk by chunk.

    Parameters
    ----------
    series
        Of any dtype whose physical form is an integer of at most 64 bits, a float or a Boolean; or String,
        whose values are its views, two uint64 each; or a decimal, whose values are its last places, those beyond int64
        the largest or smallest int64. Arrow's buffers stay alive as long as this object.

    """

    def __init__(self, series: pl.Series) -> None:
        self.nullable = series.null_count() > 0
        self.series = series
        # Polars takes its time to find that a column is physical already.
        self._wide = isinstance(series.dtype, pl.Decimal)
        physical = series if self._wide or type(series.dtype) in _NUMBERS else series.to_physical()
        self._starts = [0]
        self._chunks: list[tuple[np.ndarray, int, np.ndarray | None, int]] = []
        if not self.nullable and physical.n_chunks() == 1 and type(physical.dtype) in _NUMBERS and len(physical):
            # As most columns are: the way below takes four times as long, and comes once for each batch of a file.
            self._starts.append(len(physical))
            self._chunks.append((physical.to_numpy(allow_copy=False), -1, None, 0))
            return
        boolean, text = physical.dtype == pl.Boolean, physical.dtype == pl.String
        start = 0
        for chunk in physical.get_chunks():
            if len(chunk) == 0:
                continue
            array = chunk.to_arrow(compat_level=pl.CompatLevel.newest())
            validity, values = array.buffers()[:2]
            offset, length = array.offset, len(array)
            first = -1
            numbers: np.ndarray
            if boolean:
                numbers, first = np.frombuffer(values, np.uint8), offset
            elif text:
                numbers = np.frombuffer(values, np.uint64, 2 * length, 16 * offset).reshape(length, 2)
            elif self._wide:
                numbers = np.frombuffer(values, np.int64, 2 * length, 16 * offset).reshape(length, 2)
                # One type for the kernel, whoever made the buffer.
                numbers.setflags(write=False)
            else:
                number = np.dtype(_NUMBERS[type(physical.dtype)])
                numbers = np.frombuffer(values, number, length, number.itemsize * offset)
            bits = None if validity is None or array.null_count == 0 else np.frombuffer(validity, np.uint8)
            self._chunks.append((numbers, first, bits, offset))
            start += length
            self._starts.append(start)

    def read_values(self, start: int, stop: int, out: np.ndarray) -> None:
        """Copy rows ``start .. stop - 1`` into ``out``; what stands under a null is any number."""
        for numbers, first, _, _, low, high, place in self._pieces(start, stop):
            if self._wide:
                saturate_wide(numbers[low:high], out[place : place + high - low])
                continue
            piece = numbers[low:high] if first < 0 else _unpack_bits(numbers, first + low, high - low)
            np.copyto(out[place : place + high - low], piece, casting="unsafe")

    def stretch(self, start: int, stop: int, dtype: type[np.generic] | None = None) -> np.ndarray | None:
        """Return rows ``start .. stop - 1`` as they stand in Arrow's memory; None if they do not as this dtype.

        Without a dtype they are numbers of any.
        """
        chunk = bisect_right(self._starts, start) - 1
        if start >= stop or self._starts[chunk + 1] < stop:
            return None
        numbers, first, _, _ = self._chunks[chunk]
        if first >= 0 or self._wide or numbers.ndim > 1 or (dtype is not None and numbers.dtype != dtype):
            return None
        return numbers[start - self._starts[chunk] : stop - self._starts[chunk]]

    def read_validity(self, start: int, stop: int, out: np.ndarray) -> None:
        """Write 1 (uint8) for each row that is not null, else 0."""
        for _, _, bits, offset, low, high, place in self._pieces(start, stop):
            valid = 1 if bits is None else _unpack_bits(bits, offset + low, high - low)
            out[place : place + high - low] = valid

    def _pieces(self, start: int, stop: int) -> Iterator[tuple[np.ndarray, int, np.ndarray | None, int, int, int, int]]:
        """Yield each chunk that the rows touch, the rows within it and where they go."""
        row = start
        while row < stop:
            index = bisect_right(self._starts, row) - 1
            origin, end = self._starts[index], min(self._starts[index + 1], stop)
            yield *self._chunks[index], row - origin, end - origin, row - start
            row = end


def _unpack_bits(bits: np.ndarray, first: int, number: int) -> np.ndarray:
    """Return ``number`` bits from bit ``first`` on, one uint8 each."""
    unpacked = np.unpackbits(bits[first >> 3 : (first + number + 7) >> 3], bitorder="little")
    return unpacked[first & 7 : (first & 7) + number]


class Block:
    """Some consecutive rows of a frame, moved on from block to block.

    Arrays that its methods return are good until the next call of the same method. The scratch belongs to
    this object: one per thread. It serves one frame after another, as fresh memory takes longer than the work on it.
    """

    def __init__(self, room: int) -> None:
        self.start = self.stop = 0
        self.room = room
        self._columns: dict[str, PhysicalColumn] = {}
        self._made: dict[str, np.ndarray] = {}

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.stop - self.start

    def integers(self, column: str) -> np.ndarray:
        """Return an integer or Boolean column as int64 (a uint64 by its bits)."""
        return self.read_integers(column, self._scratch("integers", np.int64))

    def view_integers(self, column: str) -> np.ndarray:
        """Return the same, not to be written to: the column's own memory where it is of int64."""
        found = self._columns[column].stretch(self.start, self.stop, np.int64)
        return self.integers(column) if found is None else found

    def view_bytes(self, column: str) -> np.ndarray | None:
        """Return a column of uint8, not to be written to: its own memory; None where it is not in one piece there."""
        return self._columns[column].stretch(self.start, self.stop, np.uint8)

    def read_integers(self, column: str, out: np.ndarray) -> np.ndarray:
        """Write an integer or Boolean column as int64 into ``out`` and return that."""
        return self._copied(column, out)

    def floats(self, column: str) -> np.ndarray:
        """Return a column of floats or integers as float64."""
        return self._copied(column, self._scratch("floats", np.float64))

    def view_floats(self, column: str) -> np.ndarray:
        """Return the same, not to be written to: the column's own memory where it is of float64."""
        found = self._columns[column].stretch(self.start, self.stop, np.float64)
        return self.floats(column) if found is None else found

    def view_numbers(self, column: str, *, floats: bool) -> np.ndarray:
        """Return a column of numbers, not to be written to: its own memory where it is in one piece there.

        Else they are copied, as float64 if they are ``floats``, or int64.
        """
        found = self._columns[column].stretch(self.start, self.stop)
        if found is not None:
            return found
        return self.floats(column) if floats else self.integers(column)

    def views(self, column: str, long: pl.DataType) -> np.ndarray:
        """Return a String column as two uint64 a row, equal just when the strings are.

        A string of up to 12 bytes is its Arrow view. A longer one is its number in the dtype ``long``, an
        Enum or Categorical; all that ``long`` lacks look alike, and like no string that it has.
        """
        views = self._copied(column, self._scratch("views", np.uint64, 2))
        if clean_views(views):
            places = np.flatnonzero((views[:, 0] & _LENGTH) > INLINE)
            strings = self._columns[column].series.slice(self.start, self.rows).gather(places)
            numbers = strings.cast(long, strict=False).to_physical().cast(pl.UInt64)
            views[places, 0] = LONG
            views[places, 1] = numbers.fill_null(2**64 - 1).to_numpy()
        return views

    def validity(self, column: str) -> np.ndarray:
        """Return 1 where the column is not null, else 0, as uint8."""
        found = self.validity_of_nullable(column)
        return self.ones if found is None else found

    def validity_of_nullable(self, column: str) -> np.ndarray | None:
        """Return the same, None where nothing is null in the whole column: for kernels that then read less."""
        if not self._columns[column].nullable:
            return None
        out = self._scratch("validity", np.uint8)
        self._columns[column].read_validity(self.start, self.stop, out)
        return out

    @property
    def numbers(self) -> np.ndarray:
        """Scratch for numbers found for the rows (int64)."""
        return self._scratch("numbers", np.int64)

    @property
    def filled(self) -> np.ndarray:
        """Scratch for what the rows add (int64)."""
        return self._scratch("filled", np.int64)

    @property
    def flags(self) -> np.ndarray:
        """Scratch for marks on the rows (uint8)."""
        return self._scratch("flags", np.uint8)

    @property
    def marks(self) -> np.ndarray:
        """Scratch for which rows count (uint8)."""
        return self._scratch("marks", np.uint8)

    @property
    def ones(self) -> np.ndarray:
        """A mark for every row (uint8), not to be written to."""
        if "ones" not in self._made:
            self._made["ones"] = np.ones(self.room, np.uint8)
        return self._scratch("ones", np.uint8)

    @property
    def codes(self) -> tuple[np.ndarray, np.ndarray]:
        """Scratch for the rows' codes, twice (uint64)."""
        return self._scratch("codes", np.uint64), self._scratch("other codes", np.uint64)

    @property
    def slots(self) -> np.ndarray:
        """Scratch for the rows' slots, where they are made of several codes (uint64)."""
        return self._scratch("slots", np.uint64)

    def _scratch(self, name: str, dtype: type[np.generic], *wide: int) -> np.ndarray:
        """Return an array of this name with an entry for every row, which is made when it is first asked for."""
        made = self._made.get(name)
        if made is None:
            made = self._made[name] = np.empty((self.room, *wide), dtype)
        return made[: self.rows]

    def _copied(self, column: str, out: np.ndarray) -> np.ndarray:
        self._columns[column].read_values(self.start, self.stop, out)
        return out

    @contextmanager
    def over(self, columns: dict[str, PhysicalColumn]) -> Iterator[None]:
        """Read these columns meanwhile."""
        self._columns = columns
        try:
            yield
        finally:
            self._columns = {}

    def walk(self, start: int, stop: int) -> Iterator[Block]:
        """Move over the rows ``start .. stop - 1`` and yield this object at each step."""
        rows = max(self.room, 1)
        for row in range(start, stop, rows):
            self.start, self.stop = row, min(row + rows, stop)
            yield self


def iterate_blocks(frame: pl.DataFrame) -> Iterator[Block]:
    """Yield the frame block by block: the same object, moved on."""
    block = Block(min(BLOCK_ROWS, frame.height))
    with block.over(_read(frame)):
        yield from block.walk(0, frame.height)


def share_blocks(
    frame: pl.DataFrame,
    threads: int,
    work: Callable[[Block, int, int], None],
    kept: list[Block] | None = None,
    *,
    rows: int = BLOCK_ROWS,
    parts: int = 1,
) -> None:
    """Call ``work(block, start, stop)`` for stretches of the frame, in up to so many ``threads``.

    No more threads are used than Polars is allowed, and none for short frames. There are so many ``parts`` for each
    thread: one that has to share its core takes fewer. Blocks are taken out of ``kept``, and put back for the next
    frame; they have room for so many ``rows`` at least.
    """
    height = frame.height
    threads = max(1, min(threads, pl.thread_pool_size(), height // _ROWS_PER_THREAD))
    parts = threads * max(1, min(parts, height // threads // max(rows, 1))) if threads > 1 else 1
    columns = _read(frame)

    def take(numbers: Iterator[int]) -> None:
        block = _taken(kept, min(rows, height))
        with block.over(columns):
            for part in numbers:
                work(block, part * height // parts, (part + 1) * height // parts)
        if kept is not None:
            kept.append(block)

    share(take, parts, threads)


def _taken(kept: list[Block] | None, rows: int) -> Block:
    """Return a block with room for so many rows."""
    try:
        block = kept.pop() if kept else None
    except IndexError:  # another thread was faster
        block = None
    return block if block is not None and block.room >= rows else Block(rows)


def _read(frame: pl.DataFrame) -> dict[str, PhysicalColumn]:
    return {name: PhysicalColumn(frame[name]) for name in frame.columns}
