"""Exact integer answers of a whole workload, and how far neighbours' answers can lie apart (Soundness rule 25).

Real coefficients are rounded to fixed point first, and what is proved is proved of the rounded queries: their
answers are integers, and so is all that a change of one record can do to them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpfast.accounting.privacy_unit import Neighbors
from dpfast.errors import ParameterError, Words
from dpfast.workloads import Workload
from dpfast.workloads.histograms import clamped

__all__ = ["Change", "ExactAnswers"]

#: Coefficients keep so many bits: the largest is about 2**20 steps.
_COEFFICIENT_BITS = 20
#: The most numbers of a rounded matrix: a gigabyte.
_LARGEST_MATRIX = 2**27
_LARGEST_ANSWER = 2**62


@dataclass(frozen=True)
class Change:
    """What neighbours do to answers, in steps: bounds of the difference of two vectors of integers.

    Attributes
    ----------
    answers
        How many answers can differ.
    largest
        By how much one can.
    l2_squared
        The square of the Euclidean distance.

    """

    answers: int
    largest: int
    l2_squared: int

    def and_total(self, each: int) -> Change:
        """Return the same with the number of records, times ``each``, as one more answer."""
        return Change(self.answers + 1, max(self.largest, each), self.l2_squared + each**2)


class ExactAnswers:
    """A workload's answers as integers: multiples of a step of 2**-bits.

    Guarantee
        `answers` is exact for the queries as rounded to the step (those of integer coefficients as they are), so that
        `change` bounds what neighbours' answers differ by:

        - add_remove: one cell changes by one, and the answers by that cell's column of the rounded matrix;
        - replace: by the difference of two columns. No more answers differ than both have entries; a query's
          answer by its largest coefficient less its least, or 0, which stands for a cell whose count is out of range:
          that does not move while the other one does; the squared distance is at most the sum of those ranges
          squared, at most 4 times a column's square, and at most twice if no coefficient is negative, since
          abs(u - v)**2 = abs(u)**2 + abs(v)**2 - 2 <u, v>.

    Parameters
    ----------
    workload
        The queries, public.

    Attributes
    ----------
    bits
        A step is 2**-bits.
    largest
        The largest absolute coefficient, in steps.
    largest_count
        The most records that a cell may have: answers of more could overflow.

    """

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.bits = 0
        self._matrix: NDArray[np.int64] | None = None
        if workload.binary:
            entries = int(workload.transposed(np.ones(len(workload))).max())
            self._added = Change(entries, 1, entries)
            both = min(2 * entries, len(workload))
            self._replaced = Change(both, 1, both)
            self.largest = 1
        else:
            self.largest = self._measure_matrix()
        # No answer of a histogram of such counts overflows, whatever the counts are.
        self.largest_count = _LARGEST_ANSWER // (self.largest * workload.cells)

    def _measure_matrix(self) -> int:
        """Round the coefficients if they are no integers, and measure their columns; return the largest one."""
        workload = self.workload
        low, high = workload.range
        largest = max(abs(low), abs(high))
        if not 0 < largest < 2.0**40:
            allowed = "one with finite coefficients, not all 0 and none of 2**40 or more"
            raise ParameterError(
                "workload", Words(f"one with coefficients from {low:g} to {high:g}"), allowed, "scale it"
            )
        whole = workload.answer(np.zeros(workload.cells, np.int64)).dtype.kind == "i"
        if not whole:
            numbers = len(workload) * workload.cells
            if numbers > _LARGEST_MATRIX:
                raise ParameterError(
                    "workload",
                    Words(f"one of {numbers:,} real coefficients"),
                    f"one of at most {_LARGEST_MATRIX:,} (8 bytes each), or of integers",
                    "ask fewer queries, or use coarser cells",
                )
            self.bits = _COEFFICIENT_BITS - math.ceil(math.log2(largest))
        entries = np.zeros(workload.cells, np.int64)
        squares = np.zeros(workload.cells, np.float64)
        ranges, rounded, least, most = [], [], 0, 0
        for block in workload.blocks():
            steps = block.astype(np.int64) if whole else np.rint(np.ldexp(block, self.bits)).astype(np.int64)
            entries += np.count_nonzero(steps, axis=0)
            squares += np.square(steps.astype(np.float64)).sum(axis=0)
            ranges.append(np.maximum(steps.max(axis=1), 0) - np.minimum(steps.min(axis=1), 0))
            least, most = min(least, int(steps.min())), max(most, int(steps.max()))
            if not whole:
                rounded.append(steps)
        if not whole:
            self._matrix = np.concatenate(rounded)
        between = np.concatenate(ranges)
        largest = max(most, -least)
        # Sums of floats are within a relative 2**-20 for up to 2**32 of them.
        column = math.ceil(float(squares.max()) * (1 + 2.0**-20))
        apart = min((2 if least >= 0 else 4) * column, sum(int(span) ** 2 for span in between))
        count = int(entries.max())
        self._added = Change(count, largest, column)
        self._replaced = Change(min(2 * count, len(workload)), int(between.max()), apart)
        return largest

    @property
    def step(self) -> float:
        """What one step is worth in an answer."""
        return 2.0**-self.bits

    def change(self, neighbors: Neighbors) -> Change:
        """Return how far the answers of neighbours can lie apart."""
        return self._added if neighbors == "add_remove" else self._replaced

    def counts(self, histogram: NDArray[np.int64], *, charged: bool) -> NDArray[np.int64]:
        """Return counts that can be answered: from 0 to `largest_count`.

        Once a ledger has been charged no error may depend on values: others are moved to the nearest bound, which
        takes neighbours to neighbours or to the same histogram. Without a ledger they are refused.
        """
        return clamped(histogram, self.largest_count, clamp=charged)

    def answers(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the exact answers, in steps."""
        if self._matrix is not None:
            return self._matrix @ counts
        return np.asarray(self.workload.answer(counts), np.int64)
