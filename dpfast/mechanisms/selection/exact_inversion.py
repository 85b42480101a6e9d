"""Partial sums of the exponential mechanism's weights in ball arithmetic, for the few draws that a kernel leaves open.

Precision and bits grow until the draw is decided, and there is no cap. A boundary between two candidates
is hit exactly with probability zero, so that the loop ends with probability one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from dpfast.mechanisms.noise.exact import Bits, decided, uniform_ball

__all__ = ["ExactSums"]

_GUARD_BITS = 64


class ExactSums:
    """Where U times the sum of all weights exp(a * score) falls among their partial sums.

    With C_i the sum of the first i weights over that of all, candidate i's boundaries are scale * C_i - taken_i and
    scale * C_(i+1) - taken_(i+1); with a scale of 1 and nothing taken, it has the exponential mechanism's
    probability. An alias table has taken an integer number of words from every candidate and leaves the rest.

    Parameters
    ----------
    scores
        All scores, finite.
    slope
        What they are multiplied by.
    first, last
        The candidates that come into question: the draw is known to be one of them.
    scale, taken
        Integers; ``taken`` counts what was taken from each candidate.

    """

    __slots__ = ("_boundaries", "_first", "_head", "_middle", "_precision", "_scale", "_slope", "_tail", "_taken")

    def __init__(
        self,
        scores: NDArray[Any],
        slope: float,
        first: int = 0,
        last: int | None = None,
        *,
        scale: int = 1,
        taken: Sequence[int] = (),
    ) -> None:
        last = scores.size - 1 if last is None else last
        best = scores.max().item()
        self._slope = slope
        # Equal scores have equal weights: counts have few different ones.
        self._head = _multiples(scores[:first], best)
        self._middle = [(score, best) for score in scores[first : last + 1].tolist()]
        self._tail = _multiples(scores[last + 1 :], best)
        self._first = first
        self._scale = scale
        self._taken = list(accumulate(taken, initial=0)) if taken else [0] * (scores.size + 1)
        self._precision = 0
        self._boundaries: list[arb] = []

    def _weight(self, score: float, best: float) -> arb:
        return (arb(self._slope) * (arb(score) - arb(best))).exp()

    def _compute(self, precision: int) -> None:
        """Compute the inner boundaries and the span, times the sum of all weights, to a precision."""
        if precision <= self._precision:
            return
        with ctx.workprec(precision):
            head, tail = (
                sum((count * self._weight(score, best) for score, best, count in part), arb(0))
                for part in (self._head, self._tail)
            )
            upto = list(accumulate((self._weight(*pair) for pair in self._middle), initial=head))
            total = upto[-1] + tail
            taken = self._taken[self._first : self._first + len(upto)]
            self._boundaries = [self._scale * partial - own * total for partial, own in zip(upto, taken, strict=True)]
            self._boundaries.append((self._scale - self._taken[-1]) * total)
        self._precision = precision

    def place(self, bits: Bits) -> int:
        """Return the candidate in whose part U falls, U the number with these bits after the binary point."""

        def candidate(count: int) -> int | None:
            self._compute(count + _GUARD_BITS)
            found = self._search(bits.leading(count), count)
            return None if found is None else self._first + found

        return decided(candidate, bits.known or 64)

    def _search(self, leading: int, count: int) -> int | None:
        """Return the part that holds [leading, leading + 1] * 2**-count of the span, None if two may."""
        target = uniform_ball(leading, count) * self._boundaries[-1]
        low, high = 0, len(self._middle)
        while high - low > 1:
            middle = (low + high) // 2
            if target < self._boundaries[middle]:
                high = middle
            elif target > self._boundaries[middle]:
                low = middle
            else:
                return None
        return low


def _multiples(scores: NDArray[Any], best: float) -> list[tuple[float, float, int]]:
    """Return each different score, the best one, and how often it occurs."""
    different, counts = np.unique(scores, return_counts=True)
    return [(score, best, count) for score, count in zip(different.tolist(), counts.tolist(), strict=True)]
