"""Optimised unary encoding: a bit for every category."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpfast.columns import BLOCK_ROWS, Column
from dpfast.columns.fresh import fresh_array
from dpfast.kernels.local.bitsets import count_columns, place_bits
from dpfast.local.bits import BitDraws, lie_chance
from dpfast.local.estimates import Support
from dpfast.local.oracle import SupportOracle, response_support
from dpfast.local.reports import codes_of, read_bitsets
from dpfast.randomness import Keystream, RandomSource
from dpfast.threads import in_stretches, share, thread_count

__all__ = ["OptimizedUnaryEncoding", "count_bitsets"]

_BLOCK_BYTES = BLOCK_ROWS // 8


class OptimizedUnaryEncoding(SupportOracle):
    """Report a bit for every category: a fair coin for the own one, and a coin of 1 / (exp(epsilon) + 1) for others.

    Guarantee
        Every row is (epsilon, 0)-differentially private in the local model: for any two contents of a row, nulls and
        values outside the list among them, no report's probabilities differ by more than a factor e = exp(epsilon).
        With q = 1 / (e + 1) a report's probability is the same product for all contents, but for the own bit, which is
        1/2 instead of q or 1 - q: that is a factor (e + 1) / 2 where the bit is 1 and (e + 1) / (2 e) where it is 0.
        The two differ by the factor e, and a row of no category, all of whose bits are 1 with probability q, has the
        factor 1 between them. Bits are drawn exactly. Rows of no category count for none.

    Parameters
    ----------
    categories, epsilon
        As for `dpfast.randomized_response`; at most 2**16 categories.

    Raises
    ------
    ParameterError
        As there, or there are more categories.

    Notes
    -----
    A report is a row of bytes, ceil(k / 8) of them: an array with one more dimension, or a column of lists of one
    length. n times the variance of a frequency near 0 is 4 e / (e - 1)**2.

    References
    ----------
    Wang, Blocki, Li, Jha (2017), section 4.3. Erlingsson, Pihur, Korolova (2014) for the symmetric form.

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast.testing import SeededRandom
    >>> oracle = OptimizedUnaryEncoding(20, epsilon=1.0)
    >>> round(oracle.variance, 5)
    3.68269
    >>> reports = oracle.randomize(np.arange(20_000) % 10, random=SeededRandom(1))
    >>> reports.shape
    (20000, 3)
    >>> oracle.estimate(reports)["frequency"].round(1).to_list()[:3]
    [0.1, 0.1, 0.1]

    """

    most: ClassVar[int] = 2**16

    @cached_property
    def support(self) -> Support:
        """The probability that a report supports its own value, and that it supports another one."""
        lie, gap = response_support(self.exactly, 1)[1:]
        return Support(0.5, lie, gap / 2)

    @property
    def report_bytes(self) -> int:
        """The size of a report."""
        return -(-self.size // 8)

    def _draw(self, column: Column, source: RandomSource, threads: object) -> NDArray[Any]:
        width = self.report_bytes
        total = column.length * width
        released = fresh_array(total, np.dtype(np.uint8))
        keystream, chance = Keystream(source.key()), lie_chance(self.exactly)

        def work(numbers: Iterator[int]) -> None:
            draws = BitDraws(keystream, chance)
            for block in numbers:
                start = block * _BLOCK_BYTES
                size = min(_BLOCK_BYTES, total - start)
                draws.fill(block, 8 * size)
                first_row = start // width
                values = codes_of(column, first_row, -(-(start + size) // width))
                noise, fair = draws.ones.view(np.uint8)[:size], draws.fair.view(np.uint8)[:size]
                part = released[start : start + size]
                place_bits(noise, fair, start, values, first_row, np.uint64(self.size), width, part)

        share(work, -(-total // _BLOCK_BYTES), thread_count(threads, 8 * total))
        return released.reshape(column.length, width)

    def _counts(self, reports: Any, wanted: NDArray[np.int64] | None, threads: object) -> tuple[int, NDArray[np.int64]]:
        return count_bitsets(reports, self.size, wanted, threads)


def count_bitsets(
    reports: Any, size: int, wanted: NDArray[np.int64] | None, threads: object
) -> tuple[int, NDArray[np.int64]]:
    """Return the number of reports that are bitsets, and in how many each value is."""
    width = -(-size // 8)
    rows = read_bitsets(reports, width)

    def counted(start: int, stop: int) -> NDArray[np.int64]:
        counts = np.zeros(8 * width, np.int64)
        count_columns(rows[start:stop], counts)
        return counts

    parts = in_stretches(counted, len(rows), thread_count(threads, rows.size))
    counts: NDArray[np.int64] = np.sum(parts, axis=0)[:size]
    return len(rows), counts if wanted is None else counts[wanted]
