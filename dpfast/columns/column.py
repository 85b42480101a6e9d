"""A borrowed column: native chunks of values, with the validity bits beside them."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["BLOCK_ROWS", "NATIVE_DTYPES", "Bitmap", "Column", "GiveBack"]

#: Rows that a kernel handles at a time: few enough for their words and noise to stay in a cache, and enough for
#: two threads not to wait for each other between kernels. A multiple of 8, so that the validity bits of a block
#: fill whole bytes.
BLOCK_ROWS = 131_072

#: The element types that kernels are compiled for. A key is looked up by value, so that the platform's second
#: name for a type (``longlong`` beside ``long``) maps to the one that the kernels know.
NATIVE_DTYPES: dict[np.dtype[Any], np.dtype[Any]] = {
    np.dtype(name): np.dtype(name) for name in ("int64", "int32", "uint32", "float64", "float32")
}

#: Validity bits as Arrow keeps them (least significant bit first, 1 for a value), and the first row's bit.
Bitmap: TypeAlias = tuple[NDArray[np.uint8], int]

#: What wraps a fresh buffer, its fresh validity bits and the number of nulls in the kind that was given.
GiveBack: TypeAlias = Callable[[NDArray[Any], "NDArray[np.uint8] | None", int], Any]


class Column:
    """Rows borrowed from a user's column; made by `borrow`.

    Guarantee
        Nothing here writes to the borrowed memory or outlives it: every block is read-only and keeps its
        owner alive. A Column may be read by several threads. Values under nulls are whatever the owner left
        there; ``missing`` says where they are and a kernel must write zeros for them.

    Attributes
    ----------
    length
        The number of scalars; an array of several dimensions counts as flattened in C order.
    dtype
        The native NumPy type of the values: int64, int32, uint32, float64 or float32.
    null_count
        The number of nulls. NaN is a value, not a null.

    Examples
    --------
    >>> import polars as pl
    >>> from dpfast.columns import borrow
    >>> column = borrow(pl.Series("delay", [4, None, 7]))
    >>> column.length, column.dtype, column.null_count
    (3, dtype('int64'), 1)
    >>> column.missing(0, 3)
    array([False,  True, False])

    """

    __slots__ = ("_bitmaps", "_chunks", "_give_back", "_only", "_starts", "dtype", "length", "null_count")

    def __init__(
        self,
        dtype: np.dtype[Any],
        chunks: Sequence[NDArray[Any]],
        give_back: GiveBack,
        bitmaps: Sequence[Bitmap | None] = (),
        null_count: int = 0,
    ) -> None:
        self.dtype = dtype
        self.null_count = null_count
        self._give_back = give_back
        self._bitmaps = bitmaps
        if len(chunks) == 1:
            only = chunks[0]
            self._only: NDArray[Any] | None = only
            self._chunks = chunks
            self._starts = [0]
            self.length = len(only)
            if not only.flags.aligned:
                self._only = only = only.copy()
            only.setflags(write=False)
            return
        self._chunks = [chunk if chunk.flags.aligned else chunk.copy() for chunk in chunks]
        self._only = None if chunks else np.empty(0, dtype)
        self._starts = []
        self.length = 0
        for chunk in self._chunks:
            # One array type (read-only) for every block of every kind means one compiled kernel.
            chunk.setflags(write=False)
            self._starts.append(self.length)
            self.length += len(chunk)

    def block(self, start: int, stop: int, scratch: Callable[[], NDArray[Any]] | None = None) -> NDArray[Any]:
        """Return the rows from ``start`` up to, not including, ``stop``.

        The result is one-dimensional, contiguous, aligned, native and read-only. It is a view of the borrowed
        memory, except where the rows lie in more than one chunk: then it is a copy of these rows.

        Parameters
        ----------
        start, stop
            Rows, with 0 <= start <= stop <= length.
        scratch
            Gives memory for such a copy, of the column's type and as long; None to make it afresh.

        """
        if self._only is not None:
            return self._only[start:stop]
        first = bisect_right(self._starts, start) - 1
        chunk = self._chunks[first]
        offset = self._starts[first]
        if stop - offset <= len(chunk):
            return chunk[start - offset : stop - offset]
        pieces = [self._chunks[index][low:high] for index, low, high in self._pieces(start, stop)]
        # Fresh memory takes longer than the copy.
        crossing = np.concatenate(pieces, out=None if scratch is None else scratch()[: stop - start])
        crossing.setflags(write=False)
        return crossing

    def take(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Return a fresh array of the values of chosen rows, in ascending order of their numbers."""
        if self._only is not None:
            return self._only[rows]
        starts = np.searchsorted(rows, [*self._starts, self.length])
        pieces = zip(self._chunks, self._starts, itertools.pairwise(starts.tolist()), strict=True)
        return np.concatenate([chunk[rows[low:high] - offset] for chunk, offset, (low, high) in pieces])

    def missing(self, start: int, stop: int) -> NDArray[np.bool_] | None:
        """Return where the rows from ``start`` up to ``stop`` are null, or None where none of them is.

        Parameters
        ----------
        start, stop
            Rows, with 0 <= start <= stop <= length.

        Returns
        -------
        numpy.ndarray or None
            A fresh array of bool, True where the row is null.

        """
        if self.null_count == 0:
            return None
        missing: NDArray[np.bool_] | None = None
        for index, low, high in self._pieces(start, stop):
            bitmap = self._bitmaps[index]
            if bitmap is None:
                continue
            bits, first_bit = bitmap
            low_bit, high_bit = first_bit + low, first_bit + high
            whole_bytes = bits[low_bit // 8 : (high_bit + 7) // 8]
            valid = np.unpackbits(whole_bytes, bitorder="little")[low_bit % 8 :][: high - low]
            if valid.all():
                continue
            if missing is None:
                missing = np.zeros(stop - start, np.bool_)
            row = self._starts[index] + low - start
            np.equal(valid, 0, out=missing[row : row + high - low])
        return missing

    def rebuild(self, noised: NDArray[Any]) -> Any:
        """Wrap fresh values in the kind that was borrowed: same name, same shape, nulls in the same rows.

        Guarantee
            The result holds the memory of ``noised`` without a copy (pandas columns with nulls and Python
            numbers excepted) and no memory of the borrowed column. Validity bits are written afresh, start at
            bit 0 and end in zeros, so that a slice does not carry its parent's.

        Parameters
        ----------
        noised
            A one-dimensional contiguous native array with one entry per row and zeros under nulls, which the
            caller gives away: nobody writes to it afterwards. Its dtype decides the dtype of the result.

        Raises
        ------
        ValueError
            ``noised`` does not have one entry per row, or is not contiguous: a mistake of the caller.

        """
        self._check(noised)
        return self._give_back(noised, self._fresh_validity(), self.null_count)

    def rebuild_without_nulls(self, noised: NDArray[Any]) -> Any:
        """Wrap fresh values as `rebuild` does, where a row that was null has a value as well."""
        self._check(noised)
        return self._give_back(noised, None, 0)

    def _check(self, noised: NDArray[Any]) -> None:
        if noised.shape != (self.length,) or not noised.flags.c_contiguous or noised.dtype not in NATIVE_DTYPES:
            message = f"noised must be a contiguous native array of {self.length} rows"
            raise ValueError(message)

    def _pieces(self, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """Yield (chunk, first row, last row + 1), rows counted in the chunk, for every chunk in the range."""
        index = bisect_right(self._starts, start) - 1
        while start < stop:
            offset = self._starts[index]
            high = min(stop - offset, len(self._chunks[index]))
            yield index, start - offset, high
            start = offset + high
            index += 1

    def _fresh_validity(self) -> NDArray[np.uint8] | None:
        if self.null_count == 0:
            return None
        whole_bytes = (self.length + 7) // 8
        only = self._bitmaps[0] if len(self._bitmaps) == 1 else None
        if only is not None and only[1] % 8 == 0:
            validity = only[0][only[1] // 8 :][:whole_bytes].copy()
        else:
            validity = np.full(whole_bytes, 0xFF, np.uint8)
            for start in range(0, self.length, BLOCK_ROWS):
                stop = min(start + BLOCK_ROWS, self.length)
                missing = self.missing(start, stop)
                if missing is not None:
                    validity[start // 8 : (stop + 7) // 8] = np.packbits(~missing, bitorder="little")
        if self.length % 8:
            # The rest of the last byte belongs to no row: a copied byte has the parent's rows there.
            validity[-1] &= (1 << self.length % 8) - 1
        return validity
