"""Noise on histograms of privacy units that are drawn one after the other, each after a look at those before.

Guarantee
    In each histogram a unit is counted in one cell at most, so that one unit more or fewer changes one count by 1, and
    a replaced one two. Or it is shared among cells, with parts that are at least 0 and add up to one count at most: by
    a replaced unit these move by 2 in L1, and by the root of 2 in L2, as two vectors without a negative part are no
    more than a right angle apart. Which cells the next one has, and its part, may depend on what was drawn before. By
    epsilon, a histogram of part p has Laplace noise that is (p epsilon, 0)-private for every such choice, and parts add
    up to 1 at most: together they are epsilon-private (Dwork, Roth 2014, theorem 3.16, whose proof holds for queries
    that are chosen on the way). By rho, each has Gaussian noise that is (p rho)-zCDP, and these add up too (Bun,
    Steinke 2016, lemma 2.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpfast.accounting.budget import Budget
from dpfast.accounting.events import Pure, ZeroConcentrated
from dpfast.errors import ParameterError
from dpfast.exact.amounts import UNITS_PER_ONE
from dpfast.exact.balls import as_written, written_below
from dpfast.ledger import Charge
from dpfast.mechanisms.noise.integer_noise import IntegerNoise, gaussian_of_rho, laplace_of_epsilon
from dpfast.randomness import SystemRandom

__all__ = ["SurveyNoise", "Surveyor", "plan_surveys"]

#: Noisy counts are cut off here, so that no sum of them leaves an int64.
_FAR = 2**36
#: The least part of what is spent on one thing that is chosen which a histogram may get: a plan is refused where that
#: has no noise that can be drawn.
_LEAST = Fraction(1, 1000)
#: Into so many parts the count of one unit may be divided.
_FINEST = 2**24


@dataclass(frozen=True)
class SurveyNoise:
    """What all histograms together may cost.

    Attributes
    ----------
    budget
        Of epsilon or rho, without delta: no more than the charge's event says.
    moved
        How many counts of a histogram neighbours change by 1: 1, or 2 where a unit is replaced.
    charge
        What is paid.

    """

    budget: Budget
    moved: int
    charge: Charge

    def of_part(self, part: Fraction, whole: int = 1) -> IntegerNoise:
        """Return the noise on each count of a histogram that gets this part of the budget.

        ``whole`` is what one unit counts for: it may be shared among several counts.
        """
        units = int(self.budget.units * part)
        if units < 1:
            raise ParameterError(self.budget.kind, float(self.budget.amount), "larger: surveys would get nothing")
        if self.budget.kind == "epsilon":
            return laplace_of_epsilon(self.moved * whole, units)
        # Counts that are changed by 1 each: so many squares of 1.
        return gaussian_of_rho(self.moved * whole**2, units)

    @property
    def mechanism(self) -> str:
        """Which noise it is."""
        return "Laplace" if self.budget.kind == "epsilon" else "Gaussian"


class Surveyor:
    """Draws noisy histograms within a part of what surveys may cost.

    Parameters
    ----------
    noise
        What all surveyors together have.
    part
        What this one has of it.

    """

    def __init__(self, noise: SurveyNoise, part: Fraction) -> None:
        self._noise, self._part = noise, part
        #: What is left of the surveyor's own part, from 1 down to 0.
        self.left = Fraction(1)

    def draw(
        self, counts: NDArray[np.int64], part: Fraction | None = None, *, whole: int = 1
    ) -> tuple[NDArray[np.int64], IntegerNoise]:
        """Return noisy counts, and the noise that is on each.

        Parameters
        ----------
        counts
            A histogram in which each unit is counted once at most.
        part
            What it costs, of the surveyor's own part; by default all that is left.
        whole
            What each unit adds to all counts together at most, and never less than 0 to any; 2**24 at most.

        """
        part = self.left if part is None else part
        assert 0 < part <= self.left, "surveys would cost more than they were charged"
        self.left -= part
        noise = self._noise.of_part(self._part * part, whole)
        noisy = np.clip(noise.add(counts, SystemRandom()), -_FAR * whole, _FAR * whole)
        return noisy.astype(np.int64), noise


def plan_surveys(whole: Budget, share: Budget, moved: int, questions: int, description: str) -> SurveyNoise:
    """Return what surveys may cost at a share of the whole budget, whose delta they leave alone, and their charge.

    Raises
    ------
    ParameterError
        The share is too small to choose so many things.

    """
    # The event holds its amount as a float: what is drawn costs no more than that float denotes.
    amount = written_below(share.units)
    too_small = ParameterError(
        whole.kind,
        float(whole.amount),
        "larger: too little of it would be left for what is chosen privately",
        f'raise {whole.kind}, or give numbers in place of "auto"',
    )
    if not amount > 0:
        raise too_small
    units = int(as_written(amount) * UNITS_PER_ONE)
    budget = Budget(share.kind, units)
    if share.kind == "epsilon":
        charge = Charge(share.units, 0, description, Pure(amount))
    else:
        charge = concentrated_charge(units, description)
    noise = SurveyNoise(budget, moved, charge)
    try:
        noise.of_part(_LEAST / questions, _FINEST)
    except ParameterError:
        raise too_small from None
    return noise


def concentrated_charge(units: int, description: str) -> Charge:
    """Return the charge of anything that is rho-zCDP, for ledgers that add up rho or divergences."""
    return Charge(0, 0, description, ZeroConcentrated(written_below(units)))
