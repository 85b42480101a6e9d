"""Additive noise on a column: chunk by chunk, drawn by a kernel, finished exactly where it does not decide.

The way of a chunk: keystream -> noise rounded on the grid, or UNDECIDED -> the undecided ones again from more
bits of the same words, first by a compiled kernel and then in ball arithmetic -> values and noise together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.columns import BLOCK_ROWS, Column
from dpfast.columns.fresh import fresh_array
from dpfast.errors import DataError
from dpfast.kernels.keystream import can_fill, fill_words
from dpfast.kernels.noise import joining
from dpfast.kernels.noise.laplace import UNDECIDED
from dpfast.mechanisms.noise.lattice import Lattice
from dpfast.randomness import Keystream, Purpose, Tail
from dpfast.threads import share, thread_count

__all__ = ["NO_ROWS", "Buffers", "Noise", "SingleBlocks", "add_noise", "draw_rows"]

#: What is undecided where nothing is.
NO_ROWS = np.empty(0, np.int64)
NO_ROWS.setflags(write=False)

#: What makes single blocks of a chunk's keystream: round keys, and the counter of its first block.
SingleBlocks: TypeAlias = tuple[NDArray[np.uint64], np.int64]
_NO_BLOCKS: SingleBlocks = (np.empty(0, np.uint64), np.int64(0))


class Buffers:
    """One thread's scratch memory, as long as a chunk and used again for every chunk."""

    __slots__ = ("_arrays", "_bytes", "_rows", "_work")

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._arrays: dict[str, NDArray[Any]] = {}
        self._bytes = np.empty(0, np.uint8)
        self._work = np.empty(0, np.uint64)

    def __call__(self, name: str, dtype: type[np.generic]) -> NDArray[Any]:
        """Return the buffer of a name."""
        array = self._arrays.get(name)
        if array is None:
            array = self._arrays[name] = np.empty(self._rows, dtype)
        return array

    def words(self, size: int) -> NDArray[np.uint8]:
        """Return so many bytes for random words."""
        if self._bytes.size < size:
            self._bytes = np.empty(size, np.uint8)
        return self._bytes[:size]

    def work(self, size: int) -> NDArray[np.uint64]:
        """Return so many words for what a kernel does with a block."""
        if self._work.size < size:
            self._work = np.empty(size, np.uint64)
        return self._work[:size]


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
    by_first_parts
        Whether the first 32 bits of long words decide almost all samples, so that the others need not be made for all.

    Attributes
    ----------
    first_word
        The number, among all words of the key, of the word of a column's first row: above 0 where a key serves several
        columns.

    """

    def __init__(self, lattice: Lattice, keystream: Keystream, *, short: bool, by_first_parts: bool) -> None:
        self.lattice, self.keystream, self.short = lattice, keystream, short
        self.by_first_parts = by_first_parts and not short
        self.first_word = 0

    def words_for(self, rows: int) -> int:
        """Return how many words a chunk of so many rows needs."""
        return rows

    def word_bytes(self, rows: int) -> int:
        """Return the bytes of keystream that a chunk of so many rows needs."""
        return (4 if self.short else 6) * self.words_for(rows)

    def first_bytes(self, rows: int) -> int:
        """Return the bytes of the first 32 bits of all words of a chunk."""
        return 4 * self.words_for(rows)

    def parts(self, words: NDArray[np.uint8], rows: int) -> tuple[NDArray[np.uint32], NDArray[np.uint16] | None]:
        """Return the first 32 bits of a chunk's words, and the 16 that follow, None for short words."""
        first = self.first_bytes(rows)
        return words[:first].view(np.uint32), None if self.short else words[first:].view(np.uint16)

    def parts_by_need(
        self, words: NDArray[np.uint8], rows: int, blocks: SingleBlocks | None
    ) -> tuple[NDArray[np.uint32], Any]:
        """Return a chunk's words as kernels/noise/second_parts.py describes them; without ``blocks`` all are there."""
        high, low = self.parts(words, rows)
        if low is None or not can_fill():
            return high, low
        # One kind for long columns and short ones, so that a kernel is compiled once.
        return high, (low, *(_NO_BLOCKS if blocks is None else blocks))

    def tail(self, index: int, leading: int, known: int, more: int | None) -> Tail:
        """Return all the bits of a word, of which ``known`` are ``leading`` and the next 16 may be ``more``."""
        index += self.first_word
        if more is None:
            return Tail(self.keystream, index, leading, known)
        return Tail(self.keystream, index, leading << 16 | more, known + 16)

    @staticmethod
    def undecided(noise: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return the rows whose noise is UNDECIDED."""
        return np.flatnonzero(noise == UNDECIDED)

    @abstractmethod
    def draw(
        self,
        words: NDArray[np.uint8],
        values: NDArray[Any],
        start: int,
        scratch: Buffers,
        released: NDArray[Any],
        blocks: SingleBlocks | None,
    ) -> NDArray[np.int64]:
        """Set ``released`` to values and noise together; return the rows of the chunk that are not decided.

        The chunk begins at row ``start``. What stands in ``released`` for undecided rows means nothing. If ``blocks``
        are given, ``words`` has the first bytes alone.
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
    kept: list[Buffers] | None = None,
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
    kept
        Scratch memory as long as a chunk, which is taken out, and put back for the next call; None to make it afresh.

    Raises
    ------
    DataError
        A value that is not null is NaN or infinite.

    """
    length = column.length
    released = fresh_array(length, noise.lattice.released)

    def work(numbers: Iterator[int]) -> None:
        words = noise.keystream.words(Purpose.NOISE)
        scratch = Buffers(min(length, BLOCK_ROWS)) if kept is None else _taken(kept)
        joined = partial(scratch, f"joined {column.dtype.char}", column.dtype.type)
        for chunk in numbers:
            start = chunk * BLOCK_ROWS
            stop = min(start + BLOCK_ROWS, length)
            values = column.block(start, stop, joined)
            missing = column.missing(start, stop) if column.null_count else None
            first = noise.first_bytes(stop - start)
            blocks = words.single_blocks(chunk, first) if noise.by_first_parts else None
            chunk_words = scratch.words(noise.word_bytes(stop - start) if blocks is None else first)
            words.fill(chunk, chunk_words)
            draw_rows(
                noise, chunk_words, values, missing, start, scratch, released[start:stop], blocks, refine_all=refine_all
            )
        if kept is not None:
            kept.append(scratch)

    share(work, -(-length // BLOCK_ROWS), thread_count(threads, length))
    return released


def _taken(kept: list[Buffers]) -> Buffers:
    try:
        return kept.pop()
    except IndexError:
        return Buffers(BLOCK_ROWS)


def draw_rows(
    noise: Noise,
    words: NDArray[np.uint8],
    values: NDArray[Any],
    missing: NDArray[np.bool_] | None,
    start: int,
    scratch: Buffers,
    released: NDArray[Any],
    blocks: SingleBlocks | None = None,
    *,
    refine_all: bool = False,
) -> None:
    """Set ``released`` to values with noise from words of their own, and to zeros where they are missing.

    Parameters
    ----------
    noise, refine_all
        As for `add_noise`.
    words
        As many bytes of the keystream as `Noise.word_bytes` says; with ``blocks`` as `Noise.first_bytes` says.
    values, missing
        The values of some rows, read-only, and where they are null, if any is.
    start
        The number of the first row.
    scratch
        This thread's memory, at least as long.
    released
        As many entries of the lattice's type.
    blocks
        What makes the second parts of words where they are needed, if the words are a chunk's.

    """
    undecided = noise.draw(words, values, start, scratch, released, blocks)
    if undecided.size or refine_all:
        if refine_all:
            undecided = np.arange(values.size)
        if missing is not None:
            undecided = undecided[~missing[undecided]]
        if values.dtype.kind == "f":
            _refuse_non_finite(values, undecided, start)
        if blocks is not None and undecided.size:
            words = np.empty(noise.word_bytes(values.size), np.uint8)
            fill_words(*blocks, words)
        for row, exact in noise.refine(words, values, undecided, start):
            released[row] = noise.lattice.place(values[row], start + row, exact)
    if missing is not None:
        joining.zero_missing(missing, released)


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
