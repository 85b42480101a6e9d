"""Rényi differential privacy (Mironov 2017) at a fixed list of orders: one number per order, added up."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from flint import arb
from numpy.typing import NDArray

from dpfast.accounting.accountants import basic, gdp
from dpfast.accounting.accountants.accountant import (
    Events,
    TargetDelta,
    TargetEpsilon,
    checked_delta,
    checked_epsilon,
    nearly,
)
from dpfast.accounting.accountants.capped import Converted
from dpfast.accounting.events import Partitioned, PoissonSubsampled, Single, runs
from dpfast.accounting.facts import FACTS
from dpfast.accounting.formulas import curves
from dpfast.accounting.formulas.subsampled import log_moment_between, log_moments
from dpfast.accounting.work import spend
from dpfast.exact.amounts import UNITS_PER_ONE
from dpfast.exact.balls import (
    ball,
    ceiling_units,
    float_above,
    units_above,
    units_below,
    working_precision,
)

__all__ = ["ORDERS", "RDP", "caps", "claimed", "cost", "filter_caps"]

_LARGEST_SUMMED = 2048
# Under less noise than this, sampling changes no order that matters.
_LARGEST_SQUARED_MU = 10**6
# What one order gets of a filter's delta, those below it and those above it, and how far these lie apart.
_SHARE_OF_ONE, _SHARE_BELOW, _SHARE_ABOVE = Fraction(950, 1000), Fraction(45, 1000), Fraction(5, 1000)
_APART = 1.25


def _orders() -> tuple[float, ...]:
    near_one = [1.01, 1.02, 1.03, 1.05, 1.07, 1.1, 1.15, 1.2, 1.3, 1.4, 1.5, 1.6, 1.75, 1.9]
    small = [n / 10 for n in range(20, 101)]
    far = [float(round(64 * 1.12**n)) for n in range(65)]
    return (*near_one, *small, *map(float, range(11, 64)), *far)


#: The orders, from 1.01 to about 90,000: dense where budgets of a few events or of a million have their best one.
ORDERS: tuple[float, ...] = _orders()
_WHOLE = tuple(int(order) for order in ORDERS if order.is_integer() and order <= _LARGEST_SUMMED)

Curve = tuple[int, ...]


# What a curve is worth in the units of `work`: balls at all orders, and sums over thousands of terms.
_CURVE_WORK, _STRAIGHT_WORK, _SAMPLED_WORK = 1.5e5, 5e4, 3e6


def _curve(formula: Callable[[arb], arb]) -> Curve:
    spend(_CURVE_WORK)
    with working_precision():
        return tuple(units_above(formula(ball(order))) for order in ORDERS)


def _concentrated(rho: Fraction) -> Curve:
    spend(_STRAIGHT_WORK)
    return tuple(ceiling_units(Fraction(order) * rho) for order in ORDERS)


def _sampled_gaussian(rate: Fraction, squared_mu: Fraction) -> Curve:
    """Return the curve of Gaussian noise on a sample.

    Below 2 a chord, since (a - 1) D_a is convex and 0 at 1 (van Erven, Harremoes 2014, corollary 2); beyond the
    last order summed the noise without sampling, since a mixture is never further from its second part than
    the first is (quasi-convexity, theorem 13 there).
    """
    plain = _concentrated(squared_mu / 2)
    if squared_mu > _LARGEST_SQUARED_MU:
        return plain
    spend(_SAMPLED_WORK)
    with working_precision():
        moments = dict(zip(_WHOLE, log_moments(_WHOLE, rate, squared_mu), strict=True))
        curve = list(plain)
        for index, order in enumerate(ORDERS):
            if order > _LARGEST_SUMMED:
                break
            if order < 2.0:
                divergence = moments[2]
            elif order.is_integer():
                divergence = moments[int(order)] / (int(order) - 1)
            else:
                between = log_moment_between(order, rate, squared_mu)
                low, share = moments[math.floor(order)], ball(order - math.floor(order))
                chord = low + share * (moments[math.ceil(order)] - low)
                divergence = (between.min(chord) if between.is_finite() else chord) / (ball(order) - 1)
            curve[index] = min(curve[index], units_above(divergence))
    return tuple(curve)


@lru_cache(maxsize=4096)
def _cost(event: Single) -> tuple[Curve, int]:
    if isinstance(event, Partitioned):
        parts = [cost(part) for part in event.events]
        return tuple(map(max, *(part[0] for part in parts), _NOTHING)), max(part[1] for part in parts)
    if isinstance(event, PoissonSubsampled):
        return _sampled(event)
    facts = FACTS[type(event)]
    if facts.concentrated is not None:
        return _concentrated(facts.concentrated(event)), 0
    if facts.curve is None or facts.epsilon is None:
        return claimed(*basic.cost(event))
    divergence, epsilon = facts.curve, facts.epsilon(event)
    return _curve(lambda order: divergence(order, ball(epsilon), event)), 0


def claimed(epsilon_units: int, delta_units: int) -> tuple[Curve, int]:
    """Return what anything that is (epsilon, delta)-private costs, for amounts in units of 1e-18; see `cost`.

    Examples
    --------
    >>> claimed(10**18, 7)[0][ORDERS.index(2.0)], claimed(10**18, 7)[1]
    (735325664055519225, 7)

    """
    epsilon = Fraction(epsilon_units, UNITS_PER_ONE)
    return _curve(lambda order: curves.randomized_response(order, ball(epsilon))), delta_units


def _sampled(event: PoissonSubsampled) -> tuple[Curve, int]:
    rate, inner = Fraction(event.rate), event.event
    plain, delta_units = cost(inner)
    if rate == 1:
        return plain, delta_units
    if gdp.GDP.applies(inner):
        return _sampled_gaussian(rate, Fraction(gdp.cost(inner), gdp.SQUARED_UNITS_PER_ONE)), 0
    if basic.Basic.applies(inner):
        amplified, fewer_delta_units = claimed(*basic.cost(event))
        # Without a delta both curves hold; with one, each goes with its own.
        return (tuple(map(min, plain, amplified)) if delta_units == 0 else amplified), fewer_delta_units
    return plain, delta_units


_NOTHING: Curve = (0,) * len(ORDERS)


def cost(event: Events) -> tuple[Curve, int]:
    """Return what an event costs at every order of `ORDERS`, in whole units of 1e-18, rounded up.

    Guarantee
        Apart from an event of probability delta, the event is (a, D_a)-Rényi private at every order a, and so
        is any sequence of events at the sums of their costs (Mironov 2017, proposition 1; chosen one after the
        other within a budget fixed at the start: `filter_caps`). The curves are those of `curves`;
        Gaussian noise has a D_a = a sensitivity**2 / (2 scale**2), rho-zCDP a rho. What only has an epsilon is
        taken for randomized response. The parts of a `Partitioned` cost the larger at every order. Gaussian
        noise on a Poisson sample: see `subsampled`; what has an epsilon is amplified as in `basic`; anything
        else on a sample costs what it does without (quasi-convexity).

    Returns
    -------
    tuple
        Units of divergence, one per order, and units of delta.

    Examples
    --------
    >>> from dpfast.accounting.events import Gaussian
    >>> curve, delta_units = cost(Gaussian(scale=1.0))
    >>> curve[ORDERS.index(2.0)], delta_units
    (1000000000000000000, 0)

    """
    totals, deltas = list(_NOTHING), 0
    for single, count in runs(event).items():
        curve, delta_units = _cost(single)
        totals = [total + count * one for total, one in zip(totals, curve, strict=True)]
        deltas += count * delta_units
    return tuple(totals), deltas


_ORDER = np.array(ORDERS)


def _conversion(delta: Fraction) -> NDArray[np.float64]:
    """Return, per order, about what is added to D_a to make an epsilon."""
    with working_precision():
        log_delta = float(ball(delta).log().mid())
    converted: NDArray[np.float64] = np.log1p(-1.0 / _ORDER) - (log_delta + np.log(_ORDER)) / (_ORDER - 1.0)
    return converted


def _conversion_ball(order: float, delta: Fraction) -> arb:
    """Return the same exactly: ln(1/(a delta))/(a - 1) + ln(1 - 1/a)."""
    a = ball(order)
    return (1 - 1 / a).log() - (a * ball(delta)).log() / (a - 1)


@dataclass(frozen=True, repr=False)
class RDP(Converted):
    """The sum of all Rényi curves, converted at the best order.

    Guarantee
        The curves are those of `dpfast.accounting.accountants.rdp.cost`. From D_a to (epsilon, delta) by
        epsilon = D_a + ln(1/(a delta))/(a - 1) + ln(1 - 1/a) (Canonne, Kamath, Steinke 2020, proposition 12), which
        holds at every order; the best of `ORDERS` is found in floats, and the figure evaluated in balls.

    Attributes
    ----------
    curve_units, delta_units
        The sums, in units of 1e-18; one per order, and of the deltas of events.

    Examples
    --------
    >>> import dpfast as dpf
    >>> from dpfast.accounting.events import Gaussian, PoissonSubsampled
    >>> sampled = PoissonSubsampled(Gaussian(scale=1.0), rate=0.01)
    >>> round(dpf.accounting.rdp(sampled.times(1000)).epsilon(delta=1e-5), 3)
    2.101

    """

    events: InitVar[Events]
    curve_units: Curve = field(init=False)
    delta_units: int = field(init=False)

    def __post_init__(self, events: Events) -> None:
        listed = tuple(event.times(count) for event, count in runs(events).items())
        curve_units, delta_units = cost(listed)
        self._set(curve_units=curve_units, delta_units=delta_units)
        self._keep_sums(listed)

    @cached_property
    def _near(self) -> NDArray[np.float64]:
        return np.array([nearly(units) for units in self.curve_units])

    @property
    def _told(self) -> dict[str, float]:
        return {
            "orders": len(self.curve_units),
            "least": nearly(min(self.curve_units)),
            "most": nearly(max(self.curve_units)),
            "delta": nearly(self.delta_units),
        }

    @property
    def _is_nothing(self) -> bool:
        return not any(self.curve_units)

    def _epsilon_beside(self, slack: Fraction) -> float:
        """Return the least epsilon over the orders."""
        best = int(np.argmin(self._near + _conversion(slack)))
        with working_precision():
            divergence = ball(Fraction(self.curve_units[best], UNITS_PER_ONE))
            return max(0.0, float_above(divergence + _conversion_ball(ORDERS[best], slack)))

    def _delta_beside(self, target: Fraction) -> arb:
        """Return the least over the orders of exp((a - 1)(D_a - epsilon)) (1 - 1/a)**a / (a - 1)."""
        with np.errstate(over="ignore"):
            exponents = (_ORDER - 1.0) * (self._near - float(target) + np.log1p(-1.0 / _ORDER))
        best = int(np.argmin(exponents - np.log(_ORDER)))
        a, divergence = ball(ORDERS[best]), ball(Fraction(self.curve_units[best], UNITS_PER_ONE))
        return ((a - 1) * (divergence - ball(target) + (1 - 1 / a).log()) - a.log()).exp()


def caps(epsilon: TargetEpsilon, delta: TargetDelta) -> Curve:
    """Return what a budget of (epsilon, delta) buys at every order, in whole units of 1e-18, rounded down.

    Guarantee
        Events whose costs stay within the cap at one order at least are (epsilon, delta)-private together
        (Canonne, Kamath, Steinke 2020, proposition 12), if they are fixed in advance or the order is; for a
        filter see `filter_caps`. 0 where the order buys nothing.

    Parameters
    ----------
    epsilon, delta
        The budget; deltas of events are apart from this delta. Floats are read as written.

    Examples
    --------
    >>> caps(1.0, 1e-6)[ORDERS.index(32.0)] / 1e18
    0.6978849997608852

    """
    target, slack = checked_epsilon(epsilon), checked_delta(delta)
    if slack == 0:
        return _NOTHING
    return tuple(_cap(order, target, slack) for order in ORDERS)


@lru_cache(maxsize=4096)
def _cap(order: float, target: Fraction, slack: Fraction) -> int:
    with working_precision():
        return units_below(ball(target) - _conversion_ball(order, slack))


def filter_caps(epsilon: TargetEpsilon, delta: TargetDelta) -> Curve:
    """Return caps, in whole units of 1e-18, of which it suffices to keep to some one, whichever.

    Guarantee
        Let every event be chosen after reading all answers before it, as long as at some order the sum of the
        costs stays within its cap. Then all answers together are (epsilon, delta)-private.

        Proof. Let L be the loss and S_a the sum at order a. M_a = exp((a - 1)(L - S_a)) is a supermartingale
        that begins at 1 (Feldman, Zrnic 2021; Lécuyer 2021), and (1 - exp(epsilon - L))+ is at most
        c_a exp((a - 1)(L - epsilon)), c_a = (1 - 1/a)**(a - 1) / a (Canonne, Kamath, Steinke 2020). Which order A is
        within its cap at the end depends on the answers, so that one delta for all orders would not do: an analyst
        can steer to the order at which a large loss is cheapest. So order a has a share w_a of delta, and its cap is
        the conversion's at w_a delta: the real delta is at most the expectation of w_A delta M_A, which is at most
        that of the sum over all a, which is delta.

        The order at which plain noise lasts longest has 95% of delta, so that little is lost there. Of orders
        below it, with a - 1 falling by a fifth or more each time, the j-th has 4.5% / (j (j + 1)); of orders above
        it, with a - 1 growing by a quarter or more, 0.5% / (j (j + 1)); together less than all. Noise on samples,
        whose best order lies below that of plain noise, pays most for this.

    Parameters
    ----------
    epsilon, delta
        The budget; deltas of events are apart from this delta. Floats are read as written.

    Examples
    --------
    >>> largest = [max(cap / order for cap, order in zip(of(1.0, 1e-6), ORDERS)) for of in (caps, filter_caps)]
    >>> round(largest[1] / largest[0], 3)
    0.995

    """
    target, whole = checked_epsilon(epsilon), checked_delta(delta)
    best = int(np.argmax([cap / order for cap, order in zip(caps(target, whole), ORDERS, strict=True)]))
    shares = {best: _SHARE_OF_ONE}
    for side, share in ((range(best - 1, -1, -1), _SHARE_BELOW), (range(best + 1, len(ORDERS)), _SHARE_ABOVE)):
        last, rank = ORDERS[best] - 1.0, 0
        for index in side:
            excess = ORDERS[index] - 1.0
            if max(excess / last, last / excess) >= _APART:
                last, rank = excess, rank + 1
                shares[index] = share / (rank * (rank + 1))
    return tuple(
        _cap(order, target, whole * shares[index]) if index in shares and whole else 0
        for index, order in enumerate(ORDERS)
    )
