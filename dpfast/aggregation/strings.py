"""Numbers for strings: one hash table over their 16-byte Arrow views, as fast as one over integers."""

from __future__ import annotations

import numpy as np
import polars as pl

from dpfast.aggregation.blocks import Block, iterate_blocks
from dpfast.kernels.grouping.factorizing import factorize_views, find_views, reinsert_views

__all__ = ["StringNumbers"]


class StringNumbers:
    """Number distinct strings 0, 1, 2, ... in the order they are met.

    Strings of up to 12 bytes stand in their views and are compared there; longer ones are first numbered by
    Polars in a category space of their own, so that no private string enters the process-wide one.

    Parameters
    ----------
    long
        An Enum with all long strings to be known, or None for a growing category space.

    """

    def __init__(self, long: pl.Enum | None = None) -> None:
        self.known = 0
        self._long = long if long is not None else pl.Categorical(pl.Categories.random())
        # A category space lasts as long as a column in it.
        self._anchor = pl.Series([], dtype=self._long)
        self._table = np.zeros((1 << 12, 3), np.uint64)

    @classmethod
    def of_keys(cls, keys: pl.Series, most_long: int) -> tuple[StringNumbers, pl.Series] | None:
        """Return numbers for a column of keys and each key's number (null where null).

        None if more than ``most_long`` different strings are longer than 12 bytes.
        """
        long = keys.filter(keys.str.len_bytes() > 12).unique()
        if len(long) > most_long:
            return None
        strings = cls(pl.Enum(long))
        numbers = np.empty(len(keys), np.int64)
        for block in iterate_blocks(keys.alias("key").to_frame()):
            strings.number(block, "key", numbers[block.start : block.stop])
        return strings, pl.select(pl.when(keys.is_not_null()).then(pl.Series(numbers))).to_series()

    @property
    def nbytes(self) -> int:
        """How much memory the table takes."""
        return int(self._table.nbytes)

    def number(self, block: Block, column: str, out: np.ndarray) -> None:
        """Write each row's number (int64), new ones for strings not met before, -1 where null."""
        views, valid = block.views(column, self._long), block.validity(column)
        done = 0
        while True:
            step, self.known = factorize_views(views[done:], valid[done:], self.known, self._table, out[done:])
            done += step
            if done == len(out):
                return
            larger = np.zeros((2 * len(self._table), 3), np.uint64)
            reinsert_views(self._table, larger)
            self._table = larger

    def find(self, block: Block, column: str) -> np.ndarray:
        """Return each row's number (int64, in the block's scratch), -1 for strings never numbered and nulls."""
        find_views(block.views(column, self._long), block.validity(column), self._table, block.numbers)
        return block.numbers
