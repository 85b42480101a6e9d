"""Exact counts of many marginals in one pass over the records, however many cells the whole domain has."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.aggregation.blocks import Block, share_blocks
from dpfast.domain.joint_tables import MOST_CELLS, RECORDS, plan_tables
from dpfast.kernels.grouping.marginal_counting import add_sums, count_tables, keep_known

__all__ = ["Codes", "MarginalCounter", "Places"]

#: Records are added to tables of 32 bits each; so many of them fit.
_MOST_RECORDS = 2**32 - 1
#: Cells of so many records are found at a time.
_CELLS = 4096
#: The most memory that tables of several threads take together.
_MOST_BYTES = 1 << 26

#: Codes of columns, a row for each: of 8 bits, or of 16 or 32 where a column has more of them.
Codes: TypeAlias = NDArray[np.uint8 | np.uint16 | np.uint32]
#: For each attribute the rows of codes that it is added to, and what they are multiplied by before.
Places: TypeAlias = list[list[tuple[int, int]]]


@dataclass
class _Scratch:
    """What one thread counts in.

    Attributes
    ----------
    tables
        The cells of all tables.
    records
        How many records they hold.
    codes, known
        Room for a block's.
    other, words
        The second table that small ones are counted by, and the cells of a few records, four in a word.

    """

    tables: NDArray[np.uint32]
    records: int
    codes: Codes
    known: NDArray[np.uint8]
    other: NDArray[np.uint32] = field(default_factory=lambda: np.empty(MOST_CELLS, np.uint32))
    words: NDArray[np.uint64] = field(default_factory=lambda: np.empty(_CELLS // 4, np.uint64))


def _codes_for(number: int) -> type[np.uint8 | np.uint16 | np.uint32]:
    """Return the narrowest dtype that holds so many codes."""
    return np.uint8 if number <= 1 << 8 else np.uint16 if number <= 1 << 16 else np.uint32


class MarginalCounter:
    """Counts of some sets of attributes, made batch by batch.

    Parameters
    ----------
    sizes
        How many values each attribute has.
    sets
        The attributes of each marginal, ascending.
    read_codes
        Adds the attributes of a block's records to columns of codes, and sets the flags of these records: 0 for what is
        in no cell.
    threads
        How many share the rows at most; None for as many as their tables fit into memory well.

    """

    def __init__(
        self,
        sizes: Sequence[int],
        sets: Sequence[tuple[int, ...]],
        read_codes: Callable[[Block, Places, Codes, NDArray[np.uint8]], None],
        threads: int | None,
    ) -> None:
        self._plan = plan = plan_tables(sizes, sets)
        self._members = np.array([column for table in plan.tables for column in table], np.int64)
        self._starts = np.concatenate([[0], np.cumsum([len(table) for table in plan.tables])]).astype(np.int64)
        self._ends = np.cumsum([math.prod(sizes[attribute] for attribute in held) for held in sets], dtype=np.int64)
        # Attributes that no marginal has are read as well: they decide which records are known.
        spare = len(plan.columns)
        self._places: Places = [plan.factors(attribute) or [(spare, 0)] for attribute in range(len(sizes))]
        self._rows = spare + 1
        self._codes = _codes_for(int(max(plan.lengths, default=0)))
        self._read_codes = read_codes
        self._free: list[_Scratch] = []
        self._blocks: list[Block] = []
        self._sums: NDArray[np.int64] | None = None
        self._summing = threading.Lock()
        fitting = max(1, _MOST_BYTES // max(1, 4 * int(plan.offsets[-1])))
        #: So many threads count at most.
        self.threads = min(fitting if threads is None else min(threads, fitting), pl.thread_pool_size())
        self._room = threading.Semaphore(self.threads)

    def add(self, batch: pl.DataFrame) -> None:
        """Count the rows of a batch; several threads may add at once."""
        share_blocks(batch, self.threads, self._work, self._blocks, rows=RECORDS)

    def tables(self) -> list[NDArray[np.int64]]:
        """Return the marginals' counts, each in one dimension; nothing can be added afterwards."""
        while self._free:
            scratch = self._free.pop()
            if self._free and scratch.records + self._free[-1].records <= _MOST_RECORDS:
                self._free[-1].tables += scratch.tables
                self._free[-1].records += scratch.records
            else:
                self._sum(scratch)
        sums = np.zeros(int(self._ends[-1]), np.int64) if self._sums is None else self._sums
        return np.split(sums, self._ends[:-1])

    def _work(self, block: Block, start: int, stop: int) -> None:
        # Each thread that counts has tables of its own: however many add, no more count than tables fit into memory.
        with self._room:
            scratch = self._taken(block.room)
            self._count(block, start, stop, scratch)
            self._free.append(scratch)

    def _count(self, block: Block, start: int, stop: int, scratch: _Scratch) -> None:
        plan = self._plan
        for _ in block.walk(start, stop):
            rows = block.stop - block.start
            if scratch.records + rows > _MOST_RECORDS:
                self._sum(scratch)
            codes, known = scratch.codes, scratch.known[:rows]
            self._read_codes(block, self._places, codes, known)
            kept = keep_known(known, codes)
            scratch.records += kept
            count_tables(
                codes,
                kept,
                self._members,
                self._starts,
                plan.lengths,
                plan.offsets,
                scratch.tables,
                scratch.other,
                scratch.words.view(np.uint16),
                scratch.words,
            )

    def _taken(self, room: int) -> _Scratch:
        """Return what is free to be counted in, with room for so many records."""
        try:
            scratch = self._free.pop()
        except IndexError:
            tables = np.zeros(int(self._plan.offsets[-1]), np.uint32)
            scratch = _Scratch(tables, 0, np.empty((self._rows, 0), self._codes), np.empty(0, np.uint8))
        if scratch.known.size < room:
            scratch.codes, scratch.known = np.empty((self._rows, room), self._codes), np.empty(room, np.uint8)
        return scratch

    def _sum(self, scratch: _Scratch) -> None:
        """Add what a thread has counted to the marginals, and let it begin anew."""
        plan = self._plan
        with self._summing:
            if self._sums is None:
                self._sums = np.zeros(int(self._ends[-1]), np.int64)
            start = 0
            for marginal, stop in enumerate(self._ends.tolist()):
                home = plan.homes[marginal]
                table = scratch.tables[plan.offsets[home] : plan.offsets[home + 1]]
                sizes, strides = plan.strides(marginal)
                add_sums(table, sizes, strides, np.zeros(sizes.size, np.int64), self._sums[start:stop])
                start = stop
        scratch.tables[:] = 0
        scratch.records = 0
