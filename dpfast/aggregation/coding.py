"""From the key columns of a block to each row's slot in a table, the size of which the public keys fix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from dpfast.aggregation.blocks import Block, iterate_blocks, share_blocks
from dpfast.aggregation.strings import StringNumbers
from dpfast.errors import ParameterError, Words
from dpfast.kernels.grouping.counting import (
    UNKNOWN,
    add_key_codes,
    count_codes_at_once,
    count_slots,
    drop_slots,
    find_bins,
    is_counting,
    look_up_slots,
    mark_within,
)
from dpfast.kernels.grouping.factorizing import EMPTY, find_codes, insert_codes

__all__ = ["CodedKeys", "KeyCoder", "code_bins", "duplicate_keys"]

_MOST_CELLS = 1 << 22
_CELLS_PER_KEY = 16
_MOST_CODES = 1 << 63


@dataclass(frozen=True)
class CodedKeys:
    """One column of public keys as integers, and how the data's column becomes the same integers.

    Attributes
    ----------
    codes
        The keys' codes, integers of at most 64 bits or Booleans in their physical form; null is the null key.
    edges
        The edges of bins (float64), if the column is binned: the code is the bin's number, null outside.
    strings
        The numbers of the keys' strings, if the column is of strings: the code is the string's number.

    """

    codes: pl.Series
    edges: np.ndarray | None = None
    strings: StringNumbers | None = None

    @property
    def digits(self) -> tuple[int, int, bool]:
        """Return (lowest key, number of values up to the largest, whether null is a key)."""
        lowest, largest = self.codes.min(), self.codes.max()
        if lowest is None:
            return 0, 0, len(self.codes) > 0
        return int(lowest), int(largest) - int(lowest) + 1, self.codes.null_count() > 0  # type: ignore[arg-type]

    def read(self, block: Block, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the codes of the data's column (int64) and where they are not null (uint8)."""
        codes, valid = self.read_nullable(block, name)
        return codes, block.ones if valid is None else valid

    def read_nullable(self, block: Block, name: str) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the same, with None where no row of the whole column is null."""
        if self.edges is not None:
            find_bins(block.floats(name), block.validity(name), self.edges, block.numbers, block.flags)
            return block.numbers, block.flags
        if self.strings is not None:
            return self.strings.find(block, name), block.validity_of_nullable(name)
        return block.view_integers(name), block.validity_of_nullable(name)


class KeyCoder:
    """Code rows by public keys: the same slot where all key columns are equal, nulls included.

    Guarantee (Soundness rule 19): the range of slots comes from the keys alone; a row whose key is none of
    them gets a slot of at least ``slots``, which the counting kernels take for the trash, or one that no key
    has.

    The code of a row is a mixed-radix number: each column's digit is its value less the smallest key, or one
    more than the largest for null. If there are few possible codes (at most 2**22, or 16 a key), the code
    itself is the slot; else the slot is the code's place in a hash table of the keys' codes.

    Parameters
    ----------
    columns
        The keys, one entry per column, read from the data's columns ``key0``, ``key1``, ...; there may be
        none, which is one slot for all rows.
    keys
        The number of keys.
    hashed
        Whether to use the hash table; None to choose.

    Raises
    ------
    ParameterError
        If a key is there twice.
    OverflowError
        If the codes do not fit into 63 bits; ``fits`` says so before.

    """

    def __init__(self, columns: Sequence[CodedKeys], keys: int, *, hashed: bool | None = None) -> None:
        if not self.fits(columns):
            raise OverflowError("the keys' codes do not fit into 63 bits")
        self.keys = keys
        self._columns = list(columns)
        self._radices: list[tuple[np.uint64, np.uint64, np.uint64, np.uint64]] = []
        cells = 1
        for column in columns:
            lowest, size, null = column.digits
            null_code = np.uint64(size * cells) if null else UNKNOWN
            self._radices.append((np.uint64(lowest % 2**64), np.uint64(size), np.uint64(cells), null_code))
            cells *= size + null
        few = cells <= max(_MOST_CELLS, _CELLS_PER_KEY * keys)
        self.hashed = not few if hashed is None else hashed

        codes = self._encode_keys()
        self._table: np.ndarray | None = None
        if self.hashed:
            self.slots = 1 << (2 * keys).bit_length()
            self._key_slots = np.empty(keys, np.int64)
            self._table = np.full(self.slots, EMPTY)
            distinct = insert_codes(codes, self._table, self._key_slots)
        else:
            self.slots = cells
            self._key_slots = codes.view(np.int64)
            distinct = is_counting(codes) or _all_distinct(codes, cells)
        if not distinct:
            raise duplicate_keys()
        self._dense = self.slots == keys and is_counting(self._key_slots.view(np.uint64))
        self._ends = _ends(self._columns) if self._dense and not self.hashed else None

    @staticmethod
    def fits(columns: Sequence[CodedKeys]) -> bool:
        """Return whether the mixed-radix codes fit into 63 bits."""
        cells = 1
        for column in columns:
            _, size, null = column.digits
            cells *= size + null
        return cells < _MOST_CODES

    def slots_of(self, block: Block) -> np.ndarray:
        """Return the slot of each row of a block (uint64, good until the block moves on)."""
        return self.read_slots(block, [f"key{i}" for i in range(len(self._columns))])

    @property
    def is_one_group(self) -> bool:
        """Whether there is no key column, and so one slot for all rows."""
        return not self._columns

    def count_rows(self, block: Block, table: np.ndarray, seen: np.ndarray | None = None) -> None:
        """Add 1 to the slot of each row of a block in a table of `slots` + 1 entries, of rows that are ``seen``."""
        if self.is_one_group:
            table[0] += block.rows if seen is None else np.count_nonzero(seen)
            return
        if self._table is None and len(self._columns) == 1:
            values, valid = self._columns[0].read_nullable(block, "key0")
            lowest, size, _, null_slot = self._radices[0]
            count_codes_at_once(values, valid, seen, lowest, size, null_slot, table)
            return
        slots = self.slots_of(block)
        if seen is not None:
            drop_slots(seen, slots)
        count_slots(slots, table)

    def mark(self, block: Block, marks: np.ndarray) -> np.ndarray:
        """Write 1 (uint8) for each row that has one of the keys, else 0, and return that."""
        if self._ends is not None:
            marks[:] = 1
            mark_within(block.view_integers("key0"), block.validity_of_nullable("key0"), *self._ends, marks)
        elif self._columns:
            rows = np.empty(block.rows, np.int32)
            look_up_slots(self.slots_of(block), self._places, rows)
            np.greater_equal(rows, 0, out=marks.view(np.bool_))
        else:
            marks[:] = 1
        return marks

    @cached_property
    def _places(self) -> np.ndarray:
        """The key of each slot, as `key_rows` returns it."""
        return self.key_rows()

    def read_slots(self, block: Block, names: Sequence[str]) -> np.ndarray:
        """Return the slot of each row by columns of these names (uint64, good until slots are read again)."""
        codes, slots = block.codes
        codes[:] = 0
        for column, radix, name in zip(self._columns, self._radices, names, strict=True):
            values, valid = column.read(block, name)
            add_key_codes(values, valid, *radix, codes)
        if self._table is None:
            return codes
        find_codes(codes, self._table, slots)
        return slots

    def gather(self, table: Any) -> Any:
        """Return the entries of a table (or points by slot) in the order of the keys."""
        return table[: self.keys] if self._dense else table[self._key_slots]

    def key_rows(self) -> np.ndarray:
        """Return the key of each slot by its row among the keys (int32), -1 for slots of none."""
        rows = np.full(self.slots, -1, np.int32)
        rows[self._key_slots] = np.arange(self.keys, dtype=np.int32)
        return rows

    def rows_of(self, frame: pl.DataFrame, out: np.ndarray) -> None:
        """Write the row of each row's key among the keys (int32), -1 if its key is none of them."""
        key_rows = self.key_rows()

        def look_up(block: Block, start: int, stop: int) -> None:
            for _ in block.walk(start, stop):
                look_up_slots(self.slots_of(block), key_rows, out[block.start : block.stop])

        share_blocks(frame, 64, look_up)

    def _encode_keys(self) -> np.ndarray:
        """Return the code of each key (uint64)."""
        codes = np.zeros(self.keys, np.uint64)
        if self._columns:
            frame = pl.DataFrame([column.codes.alias(f"key{i}") for i, column in enumerate(self._columns)])
            for block in iterate_blocks(frame):
                out = codes[block.start : block.stop]
                for i, radix in enumerate(self._radices):
                    add_key_codes(block.integers(f"key{i}"), block.validity(f"key{i}"), *radix, out)
        return codes


def _ends(columns: Sequence[CodedKeys]) -> tuple[np.int64, np.int64] | None:
    """Return the first and the last of dense keys that are whole numbers in one column; None for others."""
    if len(columns) != 1 or columns[0].edges is not None or columns[0].strings is not None:
        return None
    lowest, size, null = columns[0].digits
    return None if null or lowest + size > 2**63 else (np.int64(lowest), np.int64(lowest + size - 1))


def code_bins(column: pl.Series, edges: np.ndarray) -> pl.Series:
    """Return the number of each value's bin (UInt32), null outside the bins."""
    numbers, inside = np.empty(len(column), np.uint32), np.empty(len(column), np.bool_)
    for block in iterate_blocks(column.alias("x").to_frame()):
        find_bins(block.floats("x"), block.validity("x"), edges, block.numbers, block.flags)
        numbers[block.start : block.stop] = block.numbers
        inside[block.start : block.stop] = block.flags
    return pl.select(pl.when(pl.Series(inside)).then(pl.Series(numbers))).to_series()


def duplicate_keys() -> ParameterError:
    """Return the error for keys that are not unique."""
    return ParameterError(
        "keys",
        Words("a repeated row"),
        "unique after casting to the data's dtypes",
        "write keys.unique(maintain_order=True)",
    )


def _all_distinct(codes: np.ndarray, cells: int) -> bool:
    """Return whether no code (all below ``cells``) is there twice."""
    counts = np.zeros(cells + 1, np.int64)
    count_slots(codes, counts)
    return bool(counts.max() <= 1)
