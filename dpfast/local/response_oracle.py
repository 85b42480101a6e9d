"""Randomized response as a frequency oracle."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Threads
from dpfast.columns import BLOCK_ROWS, Column
from dpfast.errors import ColumnError
from dpfast.local.categories import Responses, borrow_responses
from dpfast.local.estimates import Support
from dpfast.local.oracle import SupportOracle, response_support
from dpfast.local.randomized_response import randomized_response
from dpfast.local.reports import codes_of
from dpfast.randomness import Random, RandomSource

__all__ = ["RandomizedResponse"]


class RandomizedResponse(SupportOracle):
    """Answer with a category: the best oracle for few of them, and the one whose reports people understand.

    Guarantee
        That of `dpfast.randomized_response`, which draws the reports: (epsilon, 0)-differential privacy in the local
        model for every row. A row of no category answers each evenly, so that it counts as 1 / k of a row of each.

    Parameters
    ----------
    categories, epsilon
        As for `dpfast.randomized_response`.

    Raises
    ------
    ParameterError
        As there.

    Notes
    -----
    A report names its own category with p = e / W, and each other with q = 1 / W, where e = exp(epsilon) and
    W = e + k - 1. A share y of reports estimates the frequency (y - q) / (p - q); for Warner's coins, p = 3/4 and
    q = 1/4, that is 2 y - 1/2. n times its variance is (k - 2 + e) / (e - 1)**2 near frequency 0.

    References
    ----------
    Warner (1965). Kairouz, Bonawitz, Ramage (2016). Wang, Blocki, Li, Jha (2017), section 4. Dwork, Roth (2014),
    section 2.3.

    Examples
    --------
    >>> oracle = RandomizedResponse(["yes", "no"], 1.0986122886681098)
    >>> frame = oracle.estimate(["yes"] * 400 + ["no"] * 600, population=True)
    >>> frame["frequency"].round(9).to_list(), round(frame["standard_error"][0] ** 2, 9)
    ([0.3, 0.7], 0.00096)
    >>> from dpfast.testing import SeededRandom
    >>> oracle.randomize(["yes", "no", "no"], random=SeededRandom(2)).tolist()
    ['yes', 'no', 'no']

    """

    @cached_property
    def support(self) -> Support:
        """The probability that a report supports its own value, and that it supports another one."""
        return response_support(self.exactly, self.size - 1)

    @property
    def report_bytes(self) -> int:
        """The size of a report, as a number of the fewest whole bytes."""
        return -(-(self.size - 1).bit_length() // 8)

    def randomize(self, values: Responses, *, random: Random = None, threads: Threads = None) -> Any:
        """Return an answer for every row, drawn by that row alone.

        Parameters
        ----------
        values, random, threads
            As for `dpfast.randomized_response`.

        Returns
        -------
        same kind as ``values``
            As there.

        """
        return randomized_response(values, self._read, self.epsilon, random=random, threads=threads)

    def _draw(self, column: Column, source: RandomSource, threads: object) -> NDArray[Any]:
        raise NotImplementedError  # answers are categories, not numbers

    def _counts(self, reports: Any, wanted: NDArray[np.int64] | None, threads: object) -> tuple[int, NDArray[np.int64]]:
        try:
            column = borrow_responses(reports, self._read)
        except ColumnError as error:
            raise ColumnError(str(error).replace("values", "reports", 1)) from None
        counts = np.zeros(self.size, np.int64)
        for start in range(0, column.length, BLOCK_ROWS):
            codes = codes_of(column, start, min(start + BLOCK_ROWS, column.length))
            if codes.size and not (int(codes.min()) >= 0 and int(codes.max()) < self.size):
                raise ColumnError("reports must be categories alone, as randomize returns them; filter the others out")
            found = np.bincount(codes)
            counts[: found.size] += found
        return column.length, counts if wanted is None else counts[wanted]
