"""Additive noise on a column: chunk by chunk, drawn by a kernel, finished exactly where it does not decide.

The way of a chunk: keystream -> noise rounded on the grid, or UNDECIDED -> the undecided ones again from more
bits of the same words, first by a compiled kernel and then in ball arithmetic -> values and noise together.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpfast.columns import BLOCK_ROWS, Column
from dpfast.columns.fresh import fresh_array
from dpfast.errors import DataError, ParameterError
from dpfast.kernels import joining
from dpfast.kernels.laplace import UNDECIDED
from dpfast.mechanisms.lattice import Lattice, Rows
from dpfast.randomness import Keystream, Purpose, RandomSource, SystemRandom

__all__ = ["Buffers", "Noise", "Tail", "add_noise", "in_threads", "random_source", "thread_count"]

#: Rows below which a second thread costs more than it saves.
_ROWS_PER_THREAD = 2 * BLOCK_ROWS


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


class Tail:
    """The infinite bits of one word: those a kernel read, then blocks of the keystream's continuation.

    Parameters
    ----------
    keystream
        The kernel call's keystream.
    word
        The word's index in the call.
    leading, known
        The bits that were read, as an integer, and how many.

    """

    __slots__ = ("_bits", "_depth", "_keystream", "_length", "_word", "known")

    def __init__(self, keystream: Keystream, word: int, leading: int, known: int) -> None:
        self._keystream = keystream
        self._word = word
        self._bits = leading
        self._length = self.known = known
        self._depth = 0

    def leading(self, count: int) -> int:
        """Return the first ``count`` bits as an integer."""
        while self._length < count:
            block = self._keystream.extension((self._word,), self._depth)
            self._bits = (self._bits << 128) | int.from_bytes(block, "big")
            self._length += 128
            self._depth += 1
        return self._bits >> (self._length - count)


class Noise(Protocol):
    """A kind of noise: how a chunk of words becomes rounded noise."""

    def word_bytes(self, rows: int) -> int:
        """Return the bytes of keystream that a chunk of so many rows needs."""

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

    def refine(
        self, words: NDArray[np.uint8], values: NDArray[Any], undecided: NDArray[np.int64], start: int
    ) -> Iterator[tuple[int, int]]:
        """Yield (row, noise) for undecided rows of the chunk that begins at row ``start``: exact, of any size."""


def random_source(random: object) -> RandomSource:
    """Return the source of keys: the operating system, unless a test gives another."""
    if random is None:
        return SystemRandom()
    if not callable(getattr(random, "key", None)):
        raise ParameterError(
            "random", random, "None or a dpfast.testing.SeededRandom", "leave it out for secure randomness"
        )
    return random  # type: ignore[return-value]


def thread_count(threads: object, rows: int) -> int:
    """Return how many threads to use for a column; ``None`` means as many as pay."""
    if threads is None:
        if rows < 2 * _ROWS_PER_THREAD:
            return 1
        available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return max(1, min(available, rows // _ROWS_PER_THREAD))
    if isinstance(threads, bool) or not isinstance(threads, (int, np.integer)) or threads < 1:
        raise ParameterError("threads", threads, "a whole number of at least 1", "leave it out to use all cores")
    return max(1, min(int(threads), -(-rows // BLOCK_ROWS)))


def add_noise(
    column: Column,
    lattice: Lattice,
    noise: Noise,
    keystream: Keystream,
    threads: object = None,
    *,
    refine_all: bool = False,
) -> NDArray[Any]:
    """Return the column's values on the lattice with noise added, zeros under nulls.

    Parameters
    ----------
    column
        The borrowed values.
    lattice
        The grid of released values and the scale of the noise in its units.
    noise
        The kind of noise.
    keystream
        The words of this call, which no other call uses.
    threads
        How many threads share the chunks, or None. The result does not depend on it.
    refine_all
        Treat every sample as undecided: the slow, exact path, which must agree with the fast one.

    Raises
    ------
    DataError
        A value that is not null is NaN or infinite.

    """
    length = column.length
    workers = thread_count(threads, length)
    released = fresh_array(length, lattice.released)
    chunks = -(-length // BLOCK_ROWS)
    buffer_rows = min(length, BLOCK_ROWS)
    chunk_numbers, taking = iter(range(chunks)), threading.Lock()
    failed = threading.Event()

    def work() -> None:
        words = keystream.words(Purpose.NOISE)
        scratch = Buffers(buffer_rows)
        word_bytes = np.empty(noise.word_bytes(buffer_rows), np.uint8)
        while not failed.is_set():
            with taking:
                chunk = next(chunk_numbers, None)
            if chunk is None:
                break
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
                    _refuse_non_finite(values, undecided, start, failed)
                for row, exact in noise.refine(chunk_words, values, undecided, start):
                    together[row] = lattice.place(values[row], start + row, exact)
            if missing is not None:
                joining.zero_missing(missing, together)

    in_threads(work, workers, failed)
    return released


def in_threads(work: Callable[[], None], workers: int, failed: threading.Event) -> None:
    """Run ``work`` in as many threads, this one among them; ``failed`` tells all of one's error, which is raised."""
    errors: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)
            failed.set()

    others = [threading.Thread(target=guarded, daemon=True) for _ in range(workers - 1)]
    for thread in others:
        thread.start()
    guarded()
    for thread in others:
        thread.join()
    if errors:
        raise errors[0]


def _refuse_non_finite(values: NDArray[Any], undecided: NDArray[np.int64], start: int, failed: threading.Event) -> None:
    """Raise if a value is not finite: a kernel leaves every such row undecided."""
    finite = np.isfinite(values[undecided])
    if not finite.all():
        failed.set()
        row = start + int(undecided[np.argmin(finite)])
        message = (
            f"values must be finite, but row {row} is NaN or infinite; replace it first by a fixed number "
            "(or use dpf.release, which has a rule for it)"
        )
        raise DataError(message)
