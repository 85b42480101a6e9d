"""Subset selection: a report is a set of categories, of one size."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpfast.columns import Column
from dpfast.columns.fresh import fresh_array
from dpfast.kernels.local.bitsets import draw_subsets
from dpfast.local.bits import masks_of
from dpfast.local.estimates import Support, support_spread
from dpfast.local.oracle import SupportOracle, response_support, truth_threshold
from dpfast.local.reports import codes_of
from dpfast.local.unary_encoding import count_bitsets
from dpfast.randomness import Keystream, Purpose, RandomSource
from dpfast.threads import share, thread_count

__all__ = ["SubsetSelection"]

_ROWS = 4096
_WORDS = 2**15


class SubsetSelection(SupportOracle):
    """Report a set of m categories in which the own one is more probably than others: of least variance of all.

    Guarantee
        Every row is (epsilon, 0)-differentially private in the local model: for any two contents of a row, nulls and
        values outside the list among them, no report's probabilities differ by more than a factor exp(epsilon). A
        report holds the own category with probability P, which is a multiple of 2**-64, and otherwise every choice of
        the others is as probable, exactly. So a set has probability P / C(k - 1, m - 1) if it holds the own category
        and (1 - P) / C(k - 1, m) if it does not; their ratio is P (k - m) / ((1 - P) m), at most exp(epsilon) since P
        is rounded down (`dpfast.local.oracle.truth_threshold`). A row of no category reports every set of m with one
        probability between the two, and counts as 1 / k of a row of each.

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
    A report is a row of bytes as for `dpfast.OptimizedUnaryEncoding`. m is that of least variance, about
    k / (exp(epsilon) + 1); with m = 1 this is randomized response. For epsilon below 2**-62 or so the ratio is at most
    1 + 2**-62 instead of 1: see there why that is enough.

    References
    ----------
    Ye, Barg (2018). Wang, Huang, Wang, Nie, Xu, Yang, Li, Qiao (2016).

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast.testing import SeededRandom
    >>> oracle = SubsetSelection(20, epsilon=1.0)
    >>> oracle.members, round(oracle.variance, 4)
    (5, 3.2238)
    >>> reports = oracle.randomize(np.arange(20_000) % 10, random=SeededRandom(1))
    >>> oracle.estimate(reports)["frequency"].round(1).to_list()[:3]
    [0.1, 0.1, 0.1]

    """

    most: ClassVar[int] = 2**16

    @cached_property
    def members(self) -> int:
        """How many categories a report holds, m."""
        near = int(self.size * response_support(self.exactly, 1)[1])
        sizes = [size for size in (near, near + 1) if 1 <= size < self.size]
        return min(sizes, key=lambda size: support_spread(self._support(size), population=False).constant)

    @cached_property
    def support(self) -> Support:
        """The probability that a report supports its own value, and that it supports another one."""
        return self._support(self.members)

    def _support(self, members: int) -> Support:
        own = Fraction(truth_threshold(self.exactly, members, self.size), 2**64)
        other = (own * (members - 1) + (1 - own) * members) / (self.size - 1)
        return Support(float(own), float(other), float(own - other))

    @property
    def report_bytes(self) -> int:
        """The size of a report."""
        return -(-self.size // 8)

    def _draw(self, column: Column, source: RandomSource, threads: object) -> NDArray[Any]:
        length, chunks = column.length, -(-self.size // 64)
        released = fresh_array(length * self.report_bytes, np.dtype(np.uint8)).reshape(length, self.report_bytes)
        keystream, blocks = Keystream(source.key()), -(-length // _ROWS)
        truth = np.uint64(truth_threshold(self.exactly, self.members, self.size))
        # Any probability is right here; this one leaves least to mend.
        leading = masks_of(min(round(256 * self.members / self.size), 255))

        def work(numbers: Iterator[int]) -> None:
            words = keystream.words(Purpose.NOISE)
            buffer, scratch = np.empty(max(_WORDS, 4 * (1 + 8 * chunks)), np.uint64), np.zeros(chunks, np.uint64)
            for block in numbers:
                start = block * _ROWS
                values = codes_of(column, start, min(start + _ROWS, length))
                state, part = np.zeros(5, np.int64), released[start : start + _ROWS]
                refill = 0
                while state[0] < len(part):
                    words.fill(block + refill * blocks, buffer)
                    refill += 1
                    size = np.uint64(self.size)
                    draw_subsets(buffer, values, size, self.members, truth, leading, state, scratch, part)

        share(work, blocks, thread_count(threads, length * chunks))
        return released

    def _counts(self, reports: Any, wanted: NDArray[np.int64] | None, threads: object) -> tuple[int, NDArray[np.int64]]:
        return count_bitsets(reports, self.size, wanted, threads)
