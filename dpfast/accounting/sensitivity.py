"""How far neighbouring data move whole numbers: what noise is scaled by, for every method."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from dpfast.showing import Shown

__all__ = ["Sensitivity"]


@dataclass(frozen=True)
class Sensitivity(Shown):
    """How far a vector of whole numbers can move between neighbouring data, in steps, exactly or from above.

    Attributes
    ----------
    l1
        The L1 sensitivity.
    l2_squared
        The square of the L2 sensitivity.
    l1_reason, l2_reason
        The formulas in numbers, for `Plan.explain`.
    answers
        How many of the numbers can move, each by `largest` at most, where that is known: 1 says nothing.

    """

    l1: int
    l2_squared: int
    l1_reason: str = ""
    l2_reason: str = ""
    answers: int = 1

    @staticmethod
    def of_answers(answers: int, largest: int, l2_squared: int) -> Sensitivity:
        """Return the sensitivity where so many answers can move, each by so much."""
        return Sensitivity(answers * largest, l2_squared, answers=answers)

    @property
    def largest(self) -> int:
        """By how much one answer can move."""
        return self.l1 // self.answers

    def and_total(self, each: int) -> Sensitivity:
        """Return the same with the number of records, times ``each``, as one more answer."""
        return Sensitivity.of_answers(self.answers + 1, max(self.largest, each), self.l2_squared + each**2)

    def of_noise(self, mechanism: Literal["laplace", "gaussian"]) -> tuple[str, float, str]:
        """Return the norm that noise of this kind is scaled by, the sensitivity in it, and its formula."""
        if mechanism == "laplace":
            return "L1", float(self.l1), self.l1_reason
        return "L2", math.sqrt(self.l2_squared), self.l2_reason
