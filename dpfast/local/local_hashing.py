"""Optimised local hashing: a report is a random line, and supports the values at which the line is low."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpfast.columns import BLOCK_ROWS, Column
from dpfast.columns.fresh import fresh_array
from dpfast.errors import ColumnError
from dpfast.kernels.local.hashing import PRIME, count_range, count_values, hash_rows
from dpfast.local.estimates import Support
from dpfast.local.oracle import SupportOracle, response_support, truth_threshold
from dpfast.local.reports import codes_of, read_numbers
from dpfast.mechanisms.noise.exact import whole_number_below
from dpfast.randomness import Keystream, Purpose, RandomSource, Tail
from dpfast.threads import share, thread_count

__all__ = ["OptimizedLocalHashing", "count_supports", "hash_block"]

_ROWS = 2**14
#: Values that a thread counts at a time.
_VALUES = 256


class OptimizedLocalHashing(SupportOracle):
    """Report a random hash function and the hash of the own value, by randomized response: 8 bytes for any domain.

    Guarantee
        Every row is (epsilon, 0)-differentially private in the local model: for any two contents of a row, nulls and
        values outside the list among them, no report's probabilities differ by more than a factor exp(epsilon). A
        report is a slope a, uniform whatever the row is, and an offset c, so that (a v + c) mod p is a given number w.
        For every a and v exactly one c belongs to each w, and w is uniform below L with probability T / 2**64, else
        uniform on the p - L others, exactly. So the ratio of any two probabilities is at most T (p - L) /
        ((2**64 - T) L), at most exp(epsilon) since T is rounded down (`dpfast.local.oracle.truth_threshold`). For a row
        of no category w is uniform on all p, in between; such rows count for none.

    Parameters
    ----------
    categories, epsilon
        As for `dpfast.randomized_response`; at most 2**29 - 3 categories.

    Raises
    ------
    ParameterError
        As there, or there are more categories.

    Notes
    -----
    A report is one int64, a * 2**29 + c, with p = 2**29 - 3. Hashes are the p numbers w, of which the lowest
    L = p / (exp(epsilon) + 1), rounded, count as one's own: that is local hashing to g = exp(epsilon) + 1 values, where
    g need not be whole. The hash functions are exactly pairwise independent, so that frequencies are unbiased (but for
    2**-29 of a slope drawn from 29 bits). n times the variance of a frequency near 0 is 4 e / (e - 1)**2, e =
    exp(epsilon). An estimate of k values from n reports takes n k steps, about 0.1 ns each on one core.

    References
    ----------
    Wang, Blocki, Li, Jha (2017), section 4.4. Bassily, Smith (2015). Feldman, Nelson, Nguyen, Talwar (2022), for hashes
    that are points of a geometry.

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast.testing import SeededRandom
    >>> oracle = OptimizedLocalHashing(10**6, epsilon=1.0)
    >>> round(oracle.variance, 5)
    3.68269
    >>> reports = oracle.randomize(np.arange(20_000) % 5 * 100_000, random=SeededRandom(1))
    >>> oracle.estimate(reports, values=[300_000, 0])["frequency"].round(1).to_list()
    [0.2, 0.2]

    """

    most: ClassVar[int] = PRIME

    @cached_property
    def width(self) -> int:
        """How many of the p hashes count as one's own, L."""
        return max(1, min(round(PRIME * response_support(self.exactly, 1)[1]), PRIME - 1))

    @cached_property
    def truth(self) -> int:
        """The probability that a hash is one's own, times 2**64, T."""
        return truth_threshold(self.exactly, self.width, PRIME)

    @cached_property
    def support(self) -> Support:
        """The probability that a report supports its own value, and that it supports another one."""
        own, other = Fraction(self.truth, 2**64), Fraction(self.width, PRIME)
        return Support(float(own), float(other), float(own - other))

    @property
    def report_bytes(self) -> int:
        """The size of a report."""
        return 8

    def _draw(self, column: Column, source: RandomSource, threads: object) -> NDArray[Any]:
        length = column.length
        released = fresh_array(length, np.dtype(np.int64))
        keystream = Keystream(source.key())

        def work(numbers: Iterator[int]) -> None:
            words = keystream.words(Purpose.NOISE)
            buffer = np.empty(3 * min(_ROWS, length), np.uint64)
            for block in numbers:
                start = block * _ROWS
                values = codes_of(column, start, min(start + _ROWS, length))
                drawn, reports = buffer[: 3 * values.size], released[start : start + values.size]
                words.fill(block, drawn)
                hash_block(self, drawn, values, keystream, start, reports)

        share(work, -(-length // _ROWS), thread_count(threads, length))
        return released

    def _counts(self, reports: Any, wanted: NDArray[np.int64] | None, threads: object) -> tuple[int, NDArray[np.int64]]:
        column = read_numbers(reports)
        counts = np.zeros(self.size if wanted is None else wanted.size, np.int64)
        count_supports(column, self.width, wanted, counts, threads)
        return column.length, counts


def hash_block(
    oracle: OptimizedLocalHashing,
    words: NDArray[np.uint64],
    values: NDArray[Any],
    keystream: Keystream,
    first_row: int,
    reports: NDArray[np.int64],
) -> None:
    """Fill ``reports`` from three words a row; rows that they do not decide read more bits of the second one."""
    truth, width, size = oracle.truth, oracle.width, oracle.size
    if not hash_rows(words, values, np.uint64(size), np.uint64(truth), np.uint64(width), reports):
        return
    for row in np.flatnonzero(reports < 0).tolist():
        first, second, third = (int(word) for word in words[3 * row : 3 * row + 3])
        value = int(values[row])
        start, stop = (0, width) if first < truth else (width, PRIME)
        if not 0 <= value < size:
            start, stop, value = 0, PRIME, 0
        tail, slope = Tail(keystream, 3 * (first_row + row) + 1, second, 64), (third >> 35) % PRIME
        reports[row] = slope << 29 | (start + whole_number_below(stop - start, tail) - slope * value) % PRIME


def count_supports(
    column: Column, width: int, wanted: NDArray[np.int64] | None, counts: NDArray[np.int64], threads: object
) -> None:
    """Add to ``counts`` how many reports support each wanted value, or each of 0, 1, and so on.

    Raises
    ------
    ColumnError
        A number is no report.

    """
    blocks = [(start, min(start + BLOCK_ROWS, column.length)) for start in range(0, column.length, BLOCK_ROWS)]
    for start, stop in blocks:
        reports = column.block(start, stop)
        if int(reports.min()) < 0 or int(reports.max()) >= PRIME << 29:
            raise ColumnError("reports must be numbers as randomize returns them; filter the others out")

    def work(numbers: Iterator[int]) -> None:
        for number in numbers:
            first = number * _VALUES
            part = counts[first : first + _VALUES]
            for start, stop in blocks:
                reports = column.block(start, stop)
                if wanted is None:
                    count_range(reports, np.uint64(first), np.uint64(width), part)
                else:
                    count_values(reports, wanted[first : first + _VALUES].astype(np.uint64), np.uint64(width), part)

    share(work, -(-counts.size // _VALUES), thread_count(threads, column.length * counts.size))
