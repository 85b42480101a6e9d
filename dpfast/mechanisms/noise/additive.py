"""Additive noise on a column: chunk by chunk, drawn by a kernel, finished exactly where it does not decide.

The way of a chunk: keystream -> noise rounded on the grid, or UNDECIDED -> the undecided ones again from more
bits of the same words, first by a compiled kernel and then in ball arithmetic -> values and noise together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.columns import BLOCK_ROWS, Column
from dpfast.columns.fresh import fresh_array
from dpfast.errors import DataError
from dpfast.kernels.noise import joining
from dpfast.kernels.noise.laplace import UNDECIDED
from dpfast.mechanisms.noise.lattice import Lattice, Rows
from dpfast.randomness import Keystream, Purpose, Tail
from dpfast.threads import share, thread_count

__all__ = ["Buffers", "Noise", "add_noise"]


class Buffers:
    """One thread's scratch memory, as long as a chunk and used again for every chunk."""

    __slots__ = ("_arrays", "_rows")

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._arrays: dict[str, NDArray[Any]] = {}

    def __call__(self, name: str, dtype: type[np.generic]) -> NDArray[Any]:
        """Return the buffer of a name."""
        array = self._arrays.get(name)
        if array is None:
            array = self._arrays[name] = np.empty(self._rows, dtype)
        return array


class Noise(ABC):
    """A kind of noise: how a chunk of words becomes rounded noise.

    Parameters
    ----------
    lattice
        The grid of released values and the scale of the noise in its units.
    keystream
        The words of this call, which no other call uses.
    short
        Whether words have 32 bits. Else 16 further bits of every word come after these of all.

    """

    def __init__(self, lattice: Lattice, keystream: Keystream, *, short: bool) -> None:
        self.lattice, self.keystream, self.short = lattice, keystream, short

    def words_for(self, rows: int) -> int:
        """Return how many words a chunk of so many rows needs."""
        return rows

    def word_bytes(self, rows: int) -> int:
        """Return the bytes of keystream that a chunk of so many rows needs."""
        return (4 if self.short else 6) * self.words_for(rows)

    def parts(self, words: NDArray[np.uint8], rows: int) -> tuple[NDArray[np.uint32], NDArray[np.uint16] | None]:
        """Return the first 32 bits of a chunk's words, and the 16 that follow, None for short words."""
        first = 4 * self.words_for(rows)
        return words[:first].view(np.uint32), None if self.short else words[first:].view(np.uint16)

    def tail(self, index: int, leading: int, known: int, more: int | None) -> Tail:
        """Return all the bits of a word, of which ``known`` are ``leading`` and the next 16 may be ``more``."""
        if more is None:
            return Tail(self.keystream, index, leading, known)
        return Tail(self.keystream, index, leading << 16 | more, known + 16)

    @abstractmethod
    def draw(
        self,
        words: NDArray[np.uint8],
        values: NDArray[Any],
        rows: Rows,
        noise: NDArray[np.int32],
        released: NDArray[Any],
    ) -> int:
        """Fill ``noise``, set ``released`` to values and noise together; return whether some is UNDECIDED.

        What stands in ``released`` for UNDECIDED noise means nothing.
        """

    @abstractmethod
    def refine(
        self, words: NDArray[np.uint8], values: NDArray[Any], undecided: NDArray[np.int64], start: int
    ) -> Iterator[tuple[int, int]]:
        """Yield (row, noise) for undecided rows of the chunk that begins at row ``start``: exact, of any size."""


def add_noise(
    column: Column,
    noise: Noise,
    threads: object = None,
    *,
    refine_all: bool = False,
) -> NDArray[Any]:
    """Return the column's values on the lattice with noise added, zeros under nulls.

    Parameters
    ----------
    column
        The borrowed values.
    noise
        The kind of noise, and where its words come from.
    threads
        How many threads share the chunks, or None. The result does not depend on it.
    refine_all
        Treat every sample as undecided: the slow, exact path, which must agree with the fast one.

    Raises
    ------
    DataError
        A value that is not null is NaN or infinite.

    """
    length, lattice = column.length, noise.lattice
    workers = thread_count(threads, length)
    released = fresh_array(length, lattice.released)
    chunks = -(-length // BLOCK_ROWS)
    buffer_rows = min(length, BLOCK_ROWS)

    def work(numbers: Iterator[int]) -> None:
        words = noise.keystream.words(Purpose.NOISE)
        scratch = Buffers(buffer_rows)
        word_bytes = np.empty(noise.word_bytes(buffer_rows), np.uint8)
        for chunk in numbers:
            start = chunk * BLOCK_ROWS
            stop = min(start + BLOCK_ROWS, length)
            rows = stop - start
            values = column.block(start, stop)
            parameters = lattice.rows(start, stop, scratch)
            drawn = scratch("noise", np.int32)[:rows]
            chunk_words = word_bytes[: noise.word_bytes(rows)]
            words.fill(chunk, chunk_words)
            missing = column.missing(start, stop) if column.null_count else None
            together = released[start:stop]
            if noise.draw(chunk_words, values, parameters, drawn, together) or refine_all:
                if refine_all:
                    drawn[:] = UNDECIDED
                if missing is not None:
                    drawn[missing] = 0
                undecided = np.flatnonzero(drawn == UNDECIDED)
                if values.dtype.kind == "f":
                    _refuse_non_finite(values, undecided, start)
                for row, exact in noise.refine(chunk_words, values, undecided, start):
                    together[row] = lattice.place(values[row], start + row, exact)
            if missing is not None:
                joining.zero_missing(missing, together)

    share(work, chunks, workers)
    return released


def _refuse_non_finite(values: NDArray[Any], undecided: NDArray[np.int64], start: int) -> None:
    """Raise if a value is not finite: a kernel leaves every such row undecided."""
    finite = np.isfinite(values[undecided])
    if not finite.all():
        row = start + int(undecided[np.argmin(finite)])
        message = (
            f"values must be finite, but row {row} is NaN or infinite; replace it first by a fixed number "
            "(or use dpf.release, which has a rule for it)"
        )
        raise DataError(message)
