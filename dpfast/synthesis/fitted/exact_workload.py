"""A workload's queries as whole numbers: exact answers, and how far neighbours' answers can lie apart.

Queries of integers are answered as they are. Real coefficients are rounded to whole numbers of steps first, and the
rounded queries are answered. What is proved is proved of these: their answers are integers, which do not depend on the
order of sums, and so is all that a change of one record does to them (Soundness rules 16 and 25).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.accounting.privacy_unit import Neighbors
from dpfast.accounting.sensitivity import Sensitivity
from dpfast.errors import ParameterError, Words
from dpfast.workloads import Workload

__all__ = ["ExactWorkload", "public_steps"]

#: Real coefficients are rounded such that the largest is about 2**_COEFFICIENT_BITS steps.
_COEFFICIENT_BITS = 20
#: Scores of queries of integers are counted in 2**-_SCORE_BITS of a record.
_SCORE_BITS = 8
_LARGEST_ANSWER, _LARGEST_SCORE = 2**62, 2**60
#: So many rounded coefficients are kept at most.
_LARGEST_KEPT = 2**24


class ExactWorkload:
    """A workload's queries with integer answers: multiples of a step of 2**-bits.

    Guarantee
        `answers` is exact for the queries as rounded to the step. With L and H the least and the largest of their
        coefficients or 0, and M the largest absolute one, all in steps, `sensitivity` bounds what neighbours do to all
        answers:

        - add_remove: one cell changes by one, and the answers by that cell's column of the rounded matrix;
        - replace: by the difference of two columns. No more answers differ than both have entries. A query's answer
          differs by its own largest coefficient less its least, or 0, which stands for a cell whose count is out of
          range: that does not move while the other one does. The squared distance is at most the sum of those ranges
          squared, at most 4 times a column's square, and at most twice if no coefficient is negative, since
          abs(u - v)**2 = abs(u)**2 + abs(v)**2 - 2 <u, v>.

        `group_sensitivity` bounds what they do to the answers of one group, of which a cell is in one query at most, or
        to one query where each is a group of its own: by M in one answer for add_remove. For replace by M in two
        answers of a group, or by H - L in one: two cells of a query may have coefficients of opposite signs.

    Parameters
    ----------
    workload
        The queries, public.
    bits
        Real coefficients, of any size, are rounded to multiples of 2**-bits. If None, to multiples of about 2**-20 of
        the largest.

    Attributes
    ----------
    bits
        A step is 2**-bits: 1 for queries of integers.
    score_bits
        Scores count steps of 2**-score_bits of an answer's step.
    largest
        The largest absolute coefficient, in steps.
    offsets
        Group g has the queries offsets[g] to offsets[g + 1].
    largest_count, largest_scored
        The most that a cell may hold, so that no answer overflows, or no score.

    Raises
    ------
    ParameterError
        There is no query or no cell, or the largest coefficient is 0, below 2**-500, infinite, or 2**40 or more.

    """

    def __init__(self, workload: Workload, bits: int | None = None) -> None:
        if len(workload) == 0 or workload.cells == 0:
            raise ParameterError("workload", repr(workload), "of at least one query and one cell")
        low, high = workload.range
        size = max(abs(low), abs(high))
        if bits is None and not 2.0**-500 <= size < 2.0**40:
            allowed = (
                "of queries that ask for something: coefficients not all 0, the largest from 2**-500 to below 2**40"
            )
            raise ParameterError("workload", Words(f"of coefficients from {low:g} to {high:g}"), allowed, "scale it")
        self.workload = workload
        self._whole = workload.binary or workload.answer(np.zeros(workload.cells, np.int64)).dtype.kind == "i"
        if self._whole:
            self.bits = 0
        else:
            self.bits = _COEFFICIENT_BITS - math.ceil(math.log2(size)) if bits is None else bits
        self.score_bits = _SCORE_BITS if self._whole else 0
        self._least, self._most = (round(math.ldexp(bound, self.bits)) for bound in (low, high))
        self.largest = max(abs(self._least), abs(self._most))
        self.grouped = workload.groups is not None
        every = np.arange(len(workload) + 1) if workload.groups is None else workload.groups
        self.offsets = np.asarray(every, np.int64)
        most = max(self.largest, 1) * workload.cells
        self.largest_count, self.largest_scored = _LARGEST_ANSWER // most, (_LARGEST_SCORE >> self.score_bits) // most

    @property
    def step(self) -> float:
        """What one step is worth in an answer."""
        return 2.0**-self.bits

    def answers(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return all answers, exactly, in steps, of counts up to `largest_count`."""
        if self._whole:
            return np.asarray(self.workload.answer(counts), dtype=np.int64)
        return np.concatenate([steps.astype(np.int64) @ counts for steps in self._blocks()])

    def _blocks(self) -> Iterable[NDArray[np.float64]]:
        """Give the rows of the matrix in steps, a few megabytes at a time; of a small matrix they are kept."""
        large = len(self.workload) * self.workload.cells > _LARGEST_KEPT
        return map(self._rounded, self.workload.blocks()) if large else self._kept

    @cached_property
    def _kept(self) -> list[NDArray[np.float64]]:
        return [self._rounded(block) for block in self.workload.blocks()]

    def _rounded(self, block: NDArray[Any]) -> NDArray[np.float64]:
        """Return rows of the matrix in steps: whole numbers below 2**53."""
        steps = block.astype(np.float64)
        if self._whole:
            return steps
        np.rint(np.ldexp(steps, self.bits, out=steps), out=steps)
        # Products of factors can be rounded one way in a row and another in the workload's range: the range decides.
        return np.clip(steps, self._least, self._most, out=steps)

    def sensitivity(self, neighbors: Neighbors) -> Sensitivity:
        """Return how far all answers of neighbours can lie apart together."""
        added, replaced = self._sensitivities
        return added if neighbors == "add_remove" else replaced

    @cached_property
    def _sensitivities(self) -> tuple[Sensitivity, Sensitivity]:
        """Measure all columns: what is added or removed, and what is replaced."""
        workload = self.workload
        if workload.binary:
            entries = int(workload.transposed(np.ones(len(workload))).max())
            both = min(2 * entries, len(workload))
            return Sensitivity.of_answers(entries, 1, entries), Sensitivity.of_answers(both, 1, both)
        counts, squares = np.zeros(workload.cells, np.int64), np.zeros(workload.cells)
        ranges: list[int] = []
        least, most = 0, 0
        for steps in self._blocks():
            least, most = min(least, int(steps.min())), max(most, int(steps.max()))
            counts += np.count_nonzero(steps, axis=0)
            squares += np.square(steps).sum(axis=0)
            ranges += map(int, np.maximum(steps.max(axis=1), 0) - np.minimum(steps.min(axis=1), 0))
        entries = int(counts.max())
        # Sums of floats are within a relative 2**-20 for up to 2**32 of them.
        column = math.ceil(float(squares.max()) * (1 + 2.0**-20))
        apart = min((2 if least >= 0 else 4) * column, sum(span**2 for span in ranges))
        both = min(2 * entries, len(workload))
        return Sensitivity.of_answers(entries, max(most, -least), column), Sensitivity.of_answers(
            both, max(ranges), apart
        )

    def group_sensitivity(self, neighbors: Neighbors) -> Sensitivity:
        """Return how far the answers of one group can lie apart, or of one query: from the range alone."""
        if neighbors == "add_remove":
            return Sensitivity(self.largest, self.largest**2)
        span = max(self._most, 0) - min(self._least, 0)
        if self.grouped:
            return Sensitivity(2 * self.largest, max(2 * self.largest**2, span**2))
        return Sensitivity(span, span**2)

    def score_sensitivity(self, neighbors: Neighbors) -> int:
        """Return what neighbours change in a score at most: see `scores`."""
        return self.group_sensitivity(neighbors).l1 << self.score_bits

    def scores(self, answers: NDArray[np.int64], estimates: NDArray[np.float64], expected: float) -> NDArray[np.int64]:
        """Return every group's score: how far the estimates are from the answers, less what noise would make it.

        Guarantee
            Integers, in steps of 2**-score_bits of an answer's step. For fixed estimates, which are public, neighbours
            change no score by more than 2**score_bits times the l1 of `group_sensitivity`: the score is the sum over
            the group's queries of abs(2**score_bits a_i - e_i) less a constant, with e_i and the constant whole numbers
            made of public ones, and abs(abs(u) - abs(v)) <= abs(u - v) (Soundness rule 25).

        Parameters
        ----------
        answers
            The exact answers, in steps, of counts up to `largest_scored`.
        estimates
            Public estimates of the answers, in records.
        expected
            The mean absolute noise of one measurement, in steps.

        """
        sizes = np.diff(self.offsets)
        # Estimates of absurd size are cut off, so that no sum overflows: of answers all sums are below 2**60.
        limit = np.repeat(np.ldexp(1.0, 61) / sizes, sizes)
        with np.errstate(over="ignore"):
            scaled = np.ldexp(estimates, self.bits + self.score_bits)
        errors: NDArray[np.int64] = np.abs((answers << self.score_bits) - public_steps(scaled, limit))
        if not self.grouped:
            return errors
        penalty = np.minimum(np.ldexp(expected, self.score_bits) * sizes, np.ldexp(1.0, 61))
        scores: NDArray[np.int64] = np.add.reduceat(errors, self.offsets[:-1]) - np.rint(penalty).astype(np.int64)
        return scores


def public_steps(estimates: NDArray[np.float64], limit: Any) -> NDArray[np.int64]:
    """Return public estimates as whole numbers from -limit to limit, a float64 or one for each, up to 2**62.

    Guarantee
        Exact answers are compared with them, and differences of numbers below 2**62 fit. NaN becomes 0. Left to the
        processor it would become an integer beside which a difference of 1 in a private answer turns into one of 2**64.

    Examples
    --------
    >>> public_steps(np.array([2.5, np.nan, np.inf, -1e30]), 2.0**61).tolist()
    [2, 0, 2305843009213693952, -2305843009213693952]

    """
    known = np.where(np.isnan(estimates), 0.0, estimates)
    steps: NDArray[np.int64] = np.rint(np.clip(known, -limit, limit)).astype(np.int64)
    return steps
