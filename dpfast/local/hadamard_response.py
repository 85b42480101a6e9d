"""Hadamard response: a report is a row of the Hadamard matrix and a sign, and a fast transform reads them all."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpfast.columns import BLOCK_ROWS, Column
from dpfast.columns.fresh import fresh_array
from dpfast.errors import ColumnError
from dpfast.kernels.local.hadamard import count_reports, join_reports, sign_codes, transform
from dpfast.local.bits import answer_bits
from dpfast.local.estimates import Spread
from dpfast.local.oracle import FrequencyOracle, response_support
from dpfast.local.reports import codes_of, read_numbers
from dpfast.local.responses import answer_rows, weights_of
from dpfast.randomness import Keystream, Purpose, RandomSource
from dpfast.threads import in_stretches, share, thread_count

__all__ = ["HadamardResponse"]

#: Reports of a stretch that one table of uint32 is sure to hold.
_MOST_OF_A_TABLE = 2**31


class HadamardResponse(FrequencyOracle):
    """Report an entry of the Hadamard matrix, its sign by randomized response: 4 bytes, and the fastest to read.

    Guarantee
        Every row is (epsilon, 0)-differentially private in the local model: for any two contents of a row, nulls and
        values outside the list among them, no report's probabilities differ by more than a factor exp(epsilon). A
        report is a number j, uniform whatever the row is, and the answer of `dpfast.randomized_response` for one of
        2 B codes that j and the row's value give; that mechanism's guarantee is this one's. A row of no category
        answers each code evenly, and counts for none.

    Parameters
    ----------
    categories, epsilon
        As for `dpfast.randomized_response`; at most 2**28 categories.

    Raises
    ------
    ParameterError
        As there, or there are more categories.

    Notes
    -----
    Values are parted into B blocks of b = 2**r each; v has the block c = v >> r and the column x = v mod b. Its code
    for the row j of the matrix is (c, sign of H[j, x]). With p and q the probabilities of the own code and of another
    one, the sum over a block's reports of their sign times H[j, x] has the mean n f (p - q), f the frequency, since
    columns are orthogonal; the transform gives all of them by b log b additions. With B = 1, which is best for epsilon
    up to 1.3 or so, n times the variance near frequency 0 is ((e + 1) / (e - 1))**2, e = exp(epsilon), larger by 1 than
    that of `dpfast.OptimizedLocalHashing`; B is the power of two of least variance where blocks are equally frequent.
    An estimate takes n steps and k log k, not n k.

    References
    ----------
    Acharya, Sun, Zhang (2019). Bassily, Nissim, Stemmer, Thakurta (2017) for B = 1.

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast.testing import SeededRandom
    >>> oracle = HadamardResponse(4096, epsilon=1.0)
    >>> oracle.blocks, round(oracle.variance, 4)
    (1, 4.6827)
    >>> reports = oracle.randomize(np.arange(20_000) % 5, random=SeededRandom(1))
    >>> oracle.estimate(reports, values=[4, 0])["frequency"].round(1).to_list()
    [0.2, 0.2]

    """

    most: ClassVar[int] = 2**28

    @cached_property
    def blocks(self) -> int:
        """How many blocks of values there are, B."""
        powers = [1 << power for power in range((self.size - 1).bit_length() + 1)]
        return min(powers, key=lambda power: (self._variance(power), power))

    @property
    def rank(self) -> int:
        """The matrix has 2**rank rows."""
        return (self.size - 1).bit_length() - (self.blocks.bit_length() - 1)

    @property
    def variance(self) -> float:
        """The variance of a frequency near 0, times the number of reports, where blocks are equally frequent."""
        return self._variance(self.blocks)

    @property
    def report_bytes(self) -> int:
        """The size of a report."""
        return 4

    def _variance(self, blocks: int) -> float:
        _, other, gap = response_support(self.exactly, 2 * blocks - 1)
        return (2 * other + gap / blocks) / gap**2

    def _draw(self, column: Column, source: RandomSource, threads: object) -> NDArray[Any]:
        length = column.length
        codes = fresh_array(length, np.dtype(np.int32))
        words = fresh_array(length, np.dtype(np.uint32))
        keystream = Keystream(source.key())
        count = thread_count(threads, length)

        def work(numbers: Any) -> None:
            reader = keystream.words(Purpose.NOISE)
            for block in numbers:
                rows = slice(block * BLOCK_ROWS, min((block + 1) * BLOCK_ROWS, length))
                reader.fill(block, words[rows])
                sign_codes(
                    words[rows], codes_of(column, rows.start, rows.stop), np.uint64(self.size), self.rank, codes[rows]
                )

        share(work, -(-length // BLOCK_ROWS), count)
        kinds = 2 * self.blocks
        own = Column(codes.dtype, (codes,), lambda *_: None)
        if kinds == 2:
            answers = answer_bits(own, self.exactly, source, threads)
        else:
            answers = answer_rows(own, weights_of(self.exactly, kinds), source, threads)
        released = words.view(np.int32)
        join_reports(words, answers, self.rank, np.uint64(kinds), released)
        return released

    def _estimated(
        self, reports: Any, wanted: NDArray[np.int64] | None, population: bool, threads: object
    ) -> tuple[int, NDArray[np.float64], Spread]:
        column, kinds = read_numbers(reports), 2 * self.blocks
        counts = _count(column, kinds << self.rank, threads).reshape(-1, kinds)
        rows, gap = max(column.length, 1), response_support(self.exactly, kinds - 1).gap
        numbers = np.arange(self.size) if wanted is None else wanted
        sums = np.empty((self.blocks, len(counts)), np.int64)
        for block in range(self.blocks):
            # A code is odd where the sign is -1.
            sums[block] = counts[:, 2 * block] - counts[:, 2 * block + 1]
            transform(sums[block])
        seen = counts.reshape(len(counts), self.blocks, 2).sum(axis=(0, 2)) / rows
        spread = Spread((seen / gap**2)[numbers >> self.rank], *((0.0, -1.0) if population else (-1.0, 0.0)))
        return column.length, sums.reshape(-1)[numbers] / (rows * gap), spread


def _count(column: Column, places: int, threads: object) -> NDArray[np.int64]:
    """Return how often each number below ``places`` is in a column.

    Raises
    ------
    ColumnError
        Another number is.

    """

    def counted(start: int, stop: int) -> NDArray[np.int64]:
        counts, outside = np.zeros(places, np.int64), 0
        for first in range(start, stop, _MOST_OF_A_TABLE):
            tables = np.zeros((4, places), np.uint32)
            last = min(first + _MOST_OF_A_TABLE, stop)
            for begin in range(first, last, BLOCK_ROWS):
                outside += count_reports(column.block(begin, min(begin + BLOCK_ROWS, last)), tables)
            counts += tables.sum(axis=0, dtype=np.int64)
        if outside:
            raise ColumnError("reports must be numbers as randomize returns them; filter the others out")
        return counts

    parts = in_stretches(counted, column.length, thread_count(threads, column.length))
    total: NDArray[np.int64] = np.sum(parts, axis=0)
    return total
