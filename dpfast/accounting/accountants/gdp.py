"""Gaussian noise alone: the exact privacy profile of any number of Gaussian mechanisms."""

from __future__ import annotations

import math
from dataclasses import InitVar, dataclass, field
from fractions import Fraction

from flint import arb

from dpfast.accounting.accountants import zcdp
from dpfast.accounting.accountants.accountant import (
    Accountant,
    Events,
    nearly,
    refused,
    smallest_epsilon,
)
from dpfast.accounting.events import Partitioned, Single, runs
from dpfast.accounting.facts import FACTS
from dpfast.exact.amounts import UNITS_PER_ONE
from dpfast.exact.balls import ball, float_above, units_below, working_precision, written_below

__all__ = ["GDP", "SQUARED_UNITS_PER_ONE", "cost", "largest_bounded_range", "largest_rho_of_units"]

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


def largest_rho_of_units(epsilon: int, delta: int) -> int:
    """Return the largest rho in whole units of 1e-18, so that sqrt(2 rho)-GDP is (epsilon, delta)-private.

    Guarantee
        What is mu-Gaussian differentially private, with mu**2 / 2 of at most this rho, is (epsilon, delta)-private by
        the profile of `GDP` (Dong, Roth, Su 2022, corollary 2.13), evaluated in balls. It is at least
        `zcdp.largest_rho_of_units`, which bounds the same profile by its moments.

    Parameters
    ----------
    epsilon, delta
        The budget in units of 1e-18.

    Returns
    -------
    int
        Within 2**-50 of the largest; 0 where there is no delta.

    Examples
    --------
    >>> [round(largest(10**18, 10**12) / 1e18, 6) for largest in (largest_rho_of_units, zcdp.largest_rho_of_units)]
    [0.028014, 0.024356]

    """
    low = zcdp.largest_rho_of_units(epsilon, delta)
    most, target = Fraction(delta, UNITS_PER_ONE), Fraction(epsilon, UNITS_PER_ONE)

    def fits(rho: int) -> bool:
        return Fraction(_delta(2 * rho * (SQUARED_UNITS_PER_ONE // UNITS_PER_ONE), target)) <= most

    if not low or not fits(low):
        return 0
    high = 2 * low
    while fits(high):
        low, high = high, 2 * high
    while high - low > max(1, low >> 50):
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def largest_bounded_range(rho: int) -> float:
    """Return the largest epsilon of a selection of bounded range that a rho = mu**2 / 2 pays for, in GDP.

    Guarantee
        A mechanism of range epsilon, as the exponential mechanism is, is sqrt(pi / 8) epsilon-GDP, so that its
        mu**2 / 2 is pi epsilon**2 / 16. The result is a float whose decimal costs at most the rho.

        Proof. The likelihood ratio of neighbours lies between exp(t - epsilon) and exp(t) for some t (Dong, Durfee,
        Rogers 2020). An event has probabilities p and q with p <= exp(t) q and 1 - p >= exp(t - epsilon) (1 - q): their
        log odds are at most epsilon apart. Let u(x) = 1 / (1 + exp(-x)), I = phi(Phi^-1(u)). The slope of Phi^-1(u(x))
        is u (1 - u) / I, and at most its value at u = 1/2, which is sqrt(2 pi) / 4 = sqrt(pi / 8): g(u) = I(u) -
        c u (1 - u), with c = 4 / sqrt(2 pi), has g'' = 2 c - 1 / I, which rises on (0, 1/2]. So g is first concave and
        then convex there; it is 0 at 0, and 0 with slope 0 at 1/2. Where it is convex it lies above that tangent, and
        where it is concave above a chord between values of at least 0. Hence Phi^-1(p) <= Phi^-1(q) + sqrt(pi / 8)
        epsilon for every event, which is mu-GDP (Dong, Roth, Su 2022, definition 2.6).

    Parameters
    ----------
    rho
        In units of 1e-18.

    Examples
    --------
    >>> round(largest_bounded_range(10**15), 6)
    0.071365

    """
    with working_precision():
        return written_below(units_below((16 * ball(Fraction(rho, UNITS_PER_ONE)) / arb.pi()).sqrt()))


def _normal_tail(x: arb) -> arb:
    """Return the probability that a normal variable is above x."""
    return (x / arb(2).sqrt()).erfc() / 2


def _mu(squared_units: int) -> arb:
    return ball(Fraction(squared_units, SQUARED_UNITS_PER_ONE)).sqrt()


def _delta(squared_units: int, target: Fraction) -> float:
    """Return the least delta of an epsilon, rounded up."""
    if squared_units == 0:
        return 0.0
    with working_precision():
        mu, epsilon = _mu(squared_units), ball(target)
        shift = epsilon / mu
        above, beside = _normal_tail(shift - mu / 2), epsilon.exp() * _normal_tail(shift + mu / 2)
        # Where it overflows, leaving out what is subtracted leaves an upper bound.
        return min(1.0, float_above(above - beside if beside.is_finite() else above))


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
        return _mu(self.squared_units)

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
        return _delta(self.squared_units, target)
