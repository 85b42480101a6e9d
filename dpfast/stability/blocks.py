"""Which block a row belongs to: drawn from fresh random words, and from nothing that the rows hold.

Why a privacy unit is in one block, whatever the number of rows is. Under add/remove every unit draws its block by
itself: given the draws of the others, a unit more or fewer changes the block that it is in, and no other. Cutting a
shuffled list into equal pieces would not do, since a row more moves the cuts between all the others. Under replace the
number of rows is public and the same on both sides, and equal pieces of a shuffled list are as good: the new row takes
the place of the old one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpfast.randomness import Purpose, RandomSource, fresh_words
from dpfast.stability.rows import Loaded

__all__ = ["Blocks", "assign_blocks"]


class Blocks:
    """The rows of every block.

    Parameters
    ----------
    numbers
        Each row's block, from 0 on; -1 for none.
    count
        How many blocks there are.

    """

    def __init__(self, numbers: NDArray[np.int64], count: int) -> None:
        # A stable sort of short integers is by their digits, in one pass or two.
        narrow = numbers.astype(np.int16 if count < 2**15 else np.int64)
        self._order = np.argsort(narrow, kind="stable")
        self._starts = np.bincount(numbers + 1, minlength=count + 1).cumsum()

    def rows(self, block: int) -> NDArray[np.int64]:
        """Return the rows of a block, in the order of the data."""
        return self._order[self._starts[block] : self._starts[block + 1]]


def assign_blocks(rows: Loaded, count: int, source: RandomSource, *, equal: bool) -> Blocks:
    """Draw the block of every row, or of every unit; ``equal`` makes blocks of rows of the same size.

    Examples
    --------
    >>> from dpfast.testing import SeededRandom
    >>> rows = Loaded(100, lambda some: some)
    >>> [assign_blocks(rows, 4, SeededRandom(1), equal=True).rows(block).size for block in range(4)]
    [25, 25, 25, 25]

    """
    if rows.units is not None:
        drawn = _drawn(int(rows.units.max(initial=-1)) + 1, count, source)
        return Blocks(np.append(drawn, -1)[rows.units], count)
    if not equal:
        return Blocks(_drawn(rows.count, count, source), count)
    # Words of 64 bits: that two are the same is one chance in 2**64 for each pair, and would do no harm.
    places = np.argsort(fresh_words(source, rows.count, Purpose.BOUNDING))
    numbers = np.empty(rows.count, np.int64)
    numbers[places] = np.arange(rows.count) * count // max(rows.count, 1)
    return Blocks(numbers, count)


def _drawn(number: int, count: int, source: RandomSource) -> NDArray[np.int64]:
    """Return numbers below ``count``, uniform but for 2**-32: privacy asks only that the rows have no part in them."""
    high = fresh_words(source, number, Purpose.BOUNDING) >> np.uint64(32)
    return ((high * np.uint64(count)) >> np.uint64(32)).astype(np.int64)
