"""Multiplicative weights: a histogram learnt from linear queries, one update after the other."""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Number, Threads
from dpfast.columns.declarations import as_array
from dpfast.errors import ParameterError, Words
from dpfast.kernels.weights import cells as kernels
from dpfast.showing import Facts, Shown
from dpfast.threads import thread_count
from dpfast.weights.declarations import TOTAL, Eta, Histogram, Shape, Total
from dpfast.weights.given_queries import GivenQuery, OptionalQuery, linear_query
from dpfast.weights.linear_queries import LARGEST_ETA, blocks_of, sum_of, total_of
from dpfast.weights.slab_queries import checked_shape

__all__ = [
    "LearntHistogram",
    "Weights",
    "checked_eta",
    "checked_weights",
    "inspected_sum",
    "refuse_weights",
]

#: Cells below which a second thread costs more than it saves.
CELLS_PER_THREAD = 2**22
#: After so many updates of a few cells the sum is taken afresh: it has lost 12 bits or so.
_LONGEST_UNSUMMED = 4096


def checked_eta(eta: Eta, table: tuple[int, ...] | None, largest: float, argument: str = "eta") -> Any:
    """Return eta as a float, or those of a table as an array of its shape."""
    allowed = "a finite number" if largest == math.inf else f"a number from {-largest:g} to {largest:g}"
    mend = "" if largest == math.inf else "use dpfast.weights.log_weights.LogWeights for larger ones"
    limit = min(largest, sys.float_info.max)
    if table is None:
        return Number(-limit, limit, mend=mend).read(argument, eta)
    array = as_array(eta, argument)
    try:
        etas = np.broadcast_to(array.astype(np.float64), table) if array.dtype.kind in "iuf" else None
    except ValueError:
        etas = None
    if etas is None:
        raise ParameterError(argument, eta, f"one number, or an array of shape {table}")
    # No comparison holds for NaN.
    if not (etas.min(initial=0.0) >= -limit and etas.max(initial=0.0) <= limit):
        raise ParameterError(argument, Words("an array"), f"{allowed} everywhere", mend)
    return etas


def checked_weights(given: Any, argument: str) -> NDArray[np.float64]:
    """Return a copy of a histogram of numbers of 0 or more, not all of them 0, as float64 in C order."""
    array = as_array(given, argument)
    if array.dtype.kind not in "biuf":
        raise ParameterError(argument, Words(f"of type {array.dtype}"), "of integers or floats")
    weights = np.array(array, np.float64, order="C")
    inspected_sum(weights.reshape(-1), argument)
    return weights


def inspected_sum(weights: NDArray[np.float64], argument: str) -> float:
    """Return the sum of weights; raise if one is negative or NaN, or if the sum is not positive and finite."""
    sums = np.empty(blocks_of(weights.size))
    signed = kernels.inspect_blocks(weights, sums)
    total = total_of(sums)
    refuse_weights(weights, signed, total, argument)
    return total


def refuse_weights(weights: NDArray[np.float64], signed: bool, totals: Any, argument: str) -> None:
    """Raise if a weight is negative or NaN, or if a sum of them is not positive and finite.

    ``signed`` says whether some weight has a minus sign, which -0.0 may have.
    """
    if signed and (weights < 0.0).any():
        raise ParameterError(argument, Words("an array with a negative number"), "made of numbers of 0 or more")
    least, most = (totals, totals) if isinstance(totals, float) else (totals.min(), totals.max())
    if not (least > 0.0 and most < math.inf):
        raise ParameterError(
            argument, Words("an array of zeros, or with NaN or infinities"), "of a positive finite sum"
        )


class LearntHistogram(Shown, ABC):
    """A histogram that multiplicative weights learn: its shape, its total, and a float64 for each cell."""

    #: The weights, or their logarithms.
    _kept: NDArray[np.float64]

    def __init__(self, shape: Shape, total: Total = 1.0, *, initial: Histogram = None, threads: Threads = None) -> None:
        self.shape = checked_shape(shape)
        self.total = TOTAL.read("total", total)
        self.cells = math.prod(self.shape)
        self._workers = thread_count(threads, self.cells, CELLS_PER_THREAD)
        weights = None if initial is None else checked_weights(initial, "initial")
        if weights is not None and weights.shape not in {self.shape, (self.cells,)}:
            raise ParameterError("initial", Words(f"of shape {weights.shape}"), f"of shape {self.shape}")
        self._begin(None if weights is None else weights.reshape(-1))

    @abstractmethod
    def _begin(self, weights: NDArray[np.float64] | None) -> None:
        """Begin with weights, which are owned; None for equal ones."""

    def copy(self) -> Self:
        """Return weights that are updated independently of these."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._kept = self._kept.copy()
        return other

    def _facts(self) -> Facts:
        return [("shape", self.shape), ("total", self.total)]


class Weights(LearntHistogram):
    """A histogram that multiplicative weights learn, kept as weights up to a factor.

    An update costs one pass over the cells that the query touches: the sum of the new weights comes with it, and the
    division by that sum waits for the next pass. Everything here is floating-point post-processing of what was
    released: give it noisy answers, never exact private ones.

    Guarantee
        None of its own: it keeps what privacy the etas and the queries have.

    Parameters
    ----------
    shape
        The number of cells, or the number along each attribute.
    total
        What all cells together count: n, if that is public, else a noisy n.
    initial
        A histogram to begin with, of the shape, up to a factor; without one all cells are equal.
    threads
        How many threads share a pass; None uses all cores where that pays. Results do not depend on it.

    Raises
    ------
    ParameterError
        The shape, the total or the initial histogram is not as above.

    Examples
    --------
    >>> weights = Weights(4, total=100.0)
    >>> weights.update((0, 2), math.log(3.0))
    >>> round(weights.answer((0, 1)), 6), weights.histogram().round(6).tolist()
    (37.5, [37.5, 37.5, 12.5, 12.5])

    """

    _sum: float
    _unsummed: int

    def _begin(self, weights: NDArray[np.float64] | None) -> None:
        self._kept = np.full(self.cells, 1.0 / self.cells) if weights is None else weights
        self._sum_afresh()

    def update(
        self, query: GivenQuery, eta: Eta, then: OptionalQuery = None
    ) -> Any:  # a number, an array for a table, or None: as ``then`` is
        """Multiply every cell by exp(eta * its coefficient), and all of them so that their total stays.

        Parameters
        ----------
        query
            A `dpfast.weights.linear_queries.LinearQuery`; or an array of coefficients from 0 to 1, one for each
            cell (bool, integers 0 and 1, or floats), which is checked at every call; or a pair (start, stop).
        eta
            A number from -500 to 500; for a table of queries one for each, or one for all.
        then
            A query to answer afterwards, in the same pass where it is of the same kind.

        Returns
        -------
        float, numpy.ndarray or None
            The answer of ``then``, or None without it.

        Raises
        ------
        ParameterError
            The query is over another shape or has a coefficient outside [0, 1], the eta is not as above, or the
            weights left are all 0 or add up to more than a float64 can hold. The weights stay as they were, except in
            the last case.

        """
        query = linear_query(query, self.shape)
        etas = checked_eta(eta, query.table, LARGEST_ETA)
        following = None if then is None else linear_query(then, self.shape, "then")
        answer = None
        if not kernels.LOWEST_SUM < self._sum < kernels.HIGHEST_SUM:
            kernels.divide(self._kept, self._sum)
            self._sum_afresh()
        if query.is_sparse:
            self._sum = query.multiply(self._kept, self._sum, etas, self._workers)
            self._unsummed += 1
            if self._unsummed >= _LONGEST_UNSUMMED:
                self._sum_afresh()
            if following is not None:
                answer = following.answer(self._kept, self._workers)
        elif following is None:
            self._sum = query.multiply(self._kept, self._sum, etas, self._workers)
            self._unsummed = 0
        else:
            self._sum, answer = query.multiply_and_answer(self._kept, self._sum, etas, following, self._workers)
            self._unsummed = 0
        if not 0.0 < self._sum < math.inf:
            raise ParameterError("eta", eta, "such that some weight is left", "use LogWeights, or smaller etas")
        return None if answer is None else answer * (self.total / self._sum)

    def _sum_afresh(self) -> None:
        self._sum = sum_of(self._kept, self._workers)
        self._unsummed = 0

    def answer(self, query: GivenQuery) -> Any:  # as the query is
        """Return the query's answer to the histogram: a float, or an array for a table of queries."""
        query = linear_query(query, self.shape)
        return query.answer(self._kept, self._workers) * (self.total / self._sum)

    def histogram(self) -> NDArray[np.float64]:
        """Return the cells as a new array of the shape; they add up to the total."""
        cells: NDArray[np.float64] = (self._kept * (self.total / self._sum)).reshape(self.shape)
        return cells
