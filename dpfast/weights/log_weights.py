"""Multiplicative weights in the log domain: no eta is too large, no cell is lost."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.kernels.weights import logarithms as kernels
from dpfast.kernels.weights.cells import BLOCK
from dpfast.threads import in_parts
from dpfast.weights.declarations import Eta
from dpfast.weights.given_queries import GivenQuery, OptionalQuery, linear_query
from dpfast.weights.histogram_weights import LearntHistogram, checked_eta
from dpfast.weights.linear_queries import blocks_of

__all__ = ["LogWeights"]


class LogWeights(LearntHistogram):
    """What `Weights` are, with their logarithms kept: for large or many etas.

    An update adds to the logarithms, which can neither overflow nor underflow. An answer reads them through the
    exponential, relative to the largest, which takes a few times as long as an answer of `Weights`.

    Guarantee
        None of its own: it keeps what privacy the etas and the queries have.

    Parameters
    ----------
    shape, total, initial, threads
        As for `Weights`; a cell that is 0 initially stays so.

    Raises
    ------
    ParameterError
        The shape, the total or the initial histogram is not as there.

    Examples
    --------
    >>> weights = LogWeights(3, total=100.0)
    >>> weights.update((0, 1), 5000.0)
    >>> weights.update((1, 2), 5000.0 + math.log(3.0))
    >>> weights.histogram().round(6).tolist()
    [25.0, 75.0, 0.0]

    """

    def _begin(self, weights: NDArray[np.float64] | None) -> None:
        with np.errstate(divide="ignore"):
            self._kept = np.zeros(self.cells) if weights is None else np.log(weights)

    def update(self, query: GivenQuery, eta: Eta, then: OptionalQuery = None) -> Any:  # as ``then`` is
        """Multiply every cell by exp(eta * its coefficient), and all of them so that their total stays.

        The parameters, the result and the errors are those of `Weights.update`; eta may be any finite number.
        """
        query = linear_query(query, self.shape)
        etas = checked_eta(eta, query.table, math.inf)
        following = None if then is None else linear_query(then, self.shape, "then")
        query.add(self._kept, etas, self._workers)
        return None if following is None else self.answer(following)

    def answer(self, query: GivenQuery) -> Any:  # as the query is
        """Return the query's answer to the histogram: a float, or an array for a table of queries."""
        query = linear_query(query, self.shape)
        return query.answer(self.histogram().reshape(-1), self._workers)

    def histogram(self) -> NDArray[np.float64]:
        """Return the cells as a new array of the shape; they add up to the total."""
        maxima = np.empty(blocks_of(self.cells))
        sums = np.empty_like(maxima)
        weights = np.empty(self.cells)

        def find(first: int, last: int) -> None:
            kernels.find_highest(self._kept[first * BLOCK : last * BLOCK], maxima[first:last])

        in_parts(find, maxima.size, self._workers)
        highest = float(maxima.max())

        def read(first: int, last: int) -> None:
            own = slice(first * BLOCK, last * BLOCK)
            kernels.read_blocks(self._kept[own], highest, weights[own], sums[first:last])

        in_parts(read, sums.size, self._workers)
        weights *= self.total / sums.sum()
        return weights.reshape(self.shape)
