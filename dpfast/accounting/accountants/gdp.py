"""Gaussian noise alone: the exact privacy profile of any number of Gaussian mechanisms."""

from __future__ import annotations

import math
from dataclasses import InitVar, dataclass, field
from fractions import Fraction

from flint import arb

from dpfast.accounting.accountants.accountant import (
    Accountant,
    Events,
    nearly,
    refused,
    smallest_epsilon,
)
from dpfast.accounting.events import Partitioned, Single, runs
from dpfast.accounting.facts import FACTS
from dpfast.exact.balls import ball, float_above, working_precision

__all__ = ["GDP", "SQUARED_UNITS_PER_ONE", "cost"]

#: Units of a squared mu: finer than those of rho, for mu itself is their root.
SQUARED_UNITS_PER_ONE: int = 10**36


def _cost(event: Single) -> int:
    if isinstance(event, Partitioned):
        return max(cost(part) for part in event.events)
    squared_mean = FACTS[type(event)].squared_mean
    if squared_mean is None:
        raise refused(event, "Gaussian differential privacy", "Gaussian noise", "ZCDP or RDP")
    squared = squared_mean(event)
    return -(-squared.numerator * SQUARED_UNITS_PER_ONE // squared.denominator)


def cost(event: Events) -> int:
    """Return the squared mu of Gaussian events, in whole units of 1e-36, rounded up.

    Guarantee
        The events are mu-Gaussian differentially private at the root of the sum of (sensitivity / scale)**2,
        and no less (Dong, Roth, Su 2022, theorem 2.7 and corollary 3.3). The parts of a `Partitioned` cost the
        largest.

    Raises
    ------
    ParameterError
        An event is not Gaussian noise.

    Examples
    --------
    >>> from dpfast.accounting.events import Gaussian
    >>> cost(Gaussian(scale=10.0).times(100)) / SQUARED_UNITS_PER_ONE
    1.0

    """
    return sum(count * _cost(one) for one, count in runs(event).items())


def _normal_tail(x: arb) -> arb:
    """Return the probability that a normal variable is above x."""
    return (x / arb(2).sqrt()).erfc() / 2


@dataclass(frozen=True, repr=False)
class GDP(Accountant):
    """The privacy profile of one Gaussian mechanism as strong as all the events.

    Guarantee
        delta = Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu) exactly (Balle, Wang 2018, theorem
        8; Dong, Roth, Su 2022, corollary 2.13), evaluated in balls. The answers may steer later questions; the
        scales are fixed in advance.

    Attributes
    ----------
    squared_units
        mu squared, in units of 1e-36.

    Examples
    --------
    >>> import dpfast as dpf
    >>> hundred = dpf.accounting.events.Gaussian(scale=10.0).times(100)
    >>> round(dpf.accounting.gdp(hundred).epsilon(delta=1e-6), 7)
    4.8865541

    """

    events: InitVar[Events]
    squared_units: int = field(init=False)

    def __post_init__(self, events: Events) -> None:
        self._set(squared_units=cost(events))

    @property
    def mu(self) -> float:
        """The root of the sum of (sensitivity / scale)**2, rounded up."""
        with working_precision():
            return float_above(self._mu())

    def _mu(self) -> arb:
        return ball(Fraction(self.squared_units, SQUARED_UNITS_PER_ONE)).sqrt()

    @property
    def _told(self) -> dict[str, float]:
        return {"mu": nearly(math.isqrt(self.squared_units))}

    def _epsilon(self, target: Fraction) -> float:
        """Return the least epsilon, rounded up; infinity at delta 0 unless there are no events."""
        if target == 0:
            return math.inf if self.squared_units else 0.0
        return smallest_epsilon(lambda epsilon: self._delta(Fraction(epsilon)), target, 1.0)

    def _delta(self, target: Fraction) -> float:
        """Return the least delta, rounded up."""
        if self.squared_units == 0:
            return 0.0
        with working_precision():
            mu, epsilon = self._mu(), ball(target)
            shift = epsilon / mu
            above, beside = _normal_tail(shift - mu / 2), epsilon.exp() * _normal_tail(shift + mu / 2)
            # Where it overflows, leaving out what is subtracted leaves an upper bound.
            return min(1.0, float_above(above - beside if beside.is_finite() else above))
