"""Exact counts of many marginals in one pass over the records, however many cells the whole domain has."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.aggregation.blocks import Block, share_blocks
from dpfast.kernels.grouping.marginal_counting import count_marginals

__all__ = ["MarginalCounter"]

#: Tables of all threads together stay in the last cache.
_CACHE_BYTES = 1 << 22


class MarginalCounter:
    """Tables of some sets of attributes, filled batch by batch.

    Parameters
    ----------
    sizes
        How many values each attribute has.
    sets
        The attributes of each marginal.
    read_codes
        Fills a block's codes, a row for each attribute, and the flags of its rows: 0 for what is in no cell.
    threads
        How many share the rows at most; None for as many as their tables fit into the cache.

    """

    def __init__(
        self,
        sizes: Sequence[int],
        sets: Sequence[tuple[int, ...]],
        read_codes: Callable[[Block, NDArray[np.uint32], NDArray[np.uint8]], None],
        threads: int | None,
    ) -> None:
        self._sizes = np.array(sizes, np.int64)
        self._members = np.array([attribute for held in sets for attribute in held], np.int64)
        self._starts = np.concatenate([[0], np.cumsum([len(held) for held in sets])]).astype(np.int64)
        cells = [math.prod(sizes[attribute] for attribute in held) for held in sets]
        self._offsets = np.concatenate([[0], np.cumsum(cells)]).astype(np.int64)
        self._read_codes = read_codes
        self._free: list[NDArray[np.int64]] = []
        self._blocks: list[Block] = []
        fitting = max(1, _CACHE_BYTES // max(1, 8 * int(self._offsets[-1])))
        self._threads = fitting if threads is None else min(threads, fitting)

    def add(self, batch: pl.DataFrame) -> None:
        """Count the rows of a batch."""
        share_blocks(batch, self._threads, self._work, self._blocks)

    def tables(self) -> list[NDArray[np.int64]]:
        """Return the marginals' counts, each in one dimension."""
        if not self._free:
            return np.split(np.zeros(int(self._offsets[-1]), np.int64), self._offsets[1:-1])
        total = self._free.pop()
        while self._free:
            total += self._free.pop()
        return np.split(total[:-1], self._offsets[1:-1])

    def _work(self, block: Block, start: int, stop: int) -> None:
        try:
            tables = self._free.pop()
        except IndexError:
            tables = np.zeros(int(self._offsets[-1]) + 1, np.int64)
        codes, known = np.empty((self._sizes.size, block.room), np.uint32), np.empty(block.room, np.uint8)
        for _ in block.walk(start, stop):
            rows = block.stop - block.start
            self._read_codes(block, codes, known[:rows])
            count_marginals(codes, known[:rows], self._members, self._starts, self._sizes, self._offsets, tables)
        self._free.append(tables)
