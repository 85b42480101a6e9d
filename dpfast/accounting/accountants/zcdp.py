"""Zero-concentrated differential privacy (Bun, Steinke 2016): one number rho per event, added up."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb
from numpy.typing import ArrayLike

from dpfast.accounting.accountants import basic
from dpfast.accounting.accountants.accountant import (
    Events,
    TargetDelta,
    TargetEpsilon,
    checked_delta,
    checked_epsilon,
    dearest,
    nearly,
    pair_total,
)
from dpfast.accounting.accountants.capped import Converted
from dpfast.accounting.events import Partitioned, PoissonSubsampled, Single, runs
from dpfast.accounting.facts import FACTS
from dpfast.accounting.formulas import rhos
from dpfast.accounting.work import spend
from dpfast.errors import ParameterError
from dpfast.exact.amounts import UNITS_PER_ONE
from dpfast.exact.balls import (
    ball,
    ceiling_units,
    float_above,
    units_above,
    units_below,
    working_precision,
)
from dpfast.exact.elementary import Floats
from dpfast.exact.units import Units, in_blocks, parameter_arrays, units_of_floats

__all__ = ["ZCDP", "claimed", "cost", "largest_rho", "largest_rho_of_units", "rho_units"]


# What one rho is worth in the units of `work`.
_COST_WORK = 3e3


@lru_cache(maxsize=4096)
def _cost(event: Single) -> tuple[int, int]:
    spend(_COST_WORK)
    if isinstance(event, Partitioned):
        return dearest(event, cost)
    if isinstance(event, PoissonSubsampled) and not basic.Basic.applies(event):
        return cost(event.event)
    facts = FACTS[type(event)]
    if facts.concentrated is not None:
        return ceiling_units(facts.concentrated(event)), 0
    if facts.rho is None or facts.epsilon is None:
        return claimed(*basic.cost(event))
    with working_precision():
        return units_above(facts.rho(ball(facts.epsilon(event)))), 0


def claimed(epsilon_units: int, delta_units: int) -> tuple[int, int]:
    """Return what anything that is (epsilon, delta)-private costs, for amounts in units of 1e-18; see `cost`.

    Examples
    --------
    >>> from dpfast.accounting.events import DiscreteLaplace
    >>> claimed(10**18, 0) == cost(DiscreteLaplace(scale=1.0))
    True

    """
    with working_precision():
        return units_above(rhos.pure(ball(Fraction(epsilon_units, UNITS_PER_ONE)))), delta_units


def cost(event: Events) -> tuple[int, int]:
    """Return what an event costs in zero-concentrated privacy, in whole units of 1e-18, rounded up.

    Guarantee
        The event is delta-approximately rho-zCDP, and so is any sequence of events at the sums of their costs,
        even if each is chosen after seeing the answers before it, as long as the sums stay within what was
        fixed at the start (Bun, Steinke 2016, lemma 8.2; Whitehouse, Ramdas, Rogers, Wu 2023). With
        e the event's epsilon, rho is

        - e + exp(-e) - 1 for continuous Laplace noise;
        - e tanh(e/2) for everything else that has an epsilon, delta beside it: it post-processes randomized
          response, apart from an event of probability delta (Kairouz, Oh, Viswanath 2015), whose
          (a - 1) D_a = ln cosh(e (a - 1/2)) - ln cosh(e/2) is concave in a (a - 1), since ln cosh sqrt is
          (Steinke 2024, differentialprivacy.org/pdp-to-zcdp);
        - x - 1 - ln x, x = e / (exp(e) - 1), for the exponential mechanism's index. Proof: D_a / a is at most
          the largest mean of K'' over a triangle on [0, a] with its peak at 1, where K'' is a symmetric bell
          (Dong, Durfee, Rogers 2020: two losses, e apart). Triangles spread as a grows, in the dispersive
          order, and so the largest mean falls: it is largest at a = 1, the relative entropy;
        - sensitivity**2 / (2 scale**2) for Gaussian noise (Bun, Steinke 2016, proposition 1.6).

        The parts of a `Partitioned` cost the larger of each coordinate. A Poisson sample is amplified where the
        event has an epsilon; elsewhere it costs what the event does (quasi-convexity).

    Returns
    -------
    tuple
        Units of rho and units of delta.

    Examples
    --------
    >>> from dpfast.accounting.events import DiscreteLaplace, Laplace
    >>> cost(Laplace(scale=1.0)), cost(DiscreteLaplace(scale=1.0))
    ((367879441171442322, 0), (462117157260009759, 0))

    """
    return pair_total(event, _cost)


def _epsilon_ball(rho: arb, delta: arb, excess: arb) -> arb:
    """Return epsilon by way of the order 1 + excess (Canonne, Kamath, Steinke 2020, proposition 12)."""
    order = 1 + excess
    return rho * order - (order * delta).log() / excess + (excess / order).log()


def _root(increasing: Callable[[float], float], low: float, high: float) -> float:
    """Return roughly where an increasing function crosses 0, by halving."""
    for _ in range(70):
        middle = (low + high) / 2
        low, high = (low, middle) if increasing(middle) >= 0.0 else (middle, high)
    return high


def _log1p_exp(t: float) -> float:
    return t + math.log1p(math.exp(-t)) if t > 0 else math.log1p(math.exp(t))


def _best_excess(rho: float, delta: Fraction) -> float:
    """Return about the best order less 1 for epsilon: a**2 rho + ln(1 + a) = ln(1 / delta)."""
    log_delta = float(_log(delta))
    t = _root(lambda t: math.exp(2 * t) * rho + _log1p_exp(t) + log_delta, -300.0, 300.0)
    return math.exp(t)


def _log(x: Fraction) -> float:
    with working_precision():
        return float(ball(x).log().mid())


@dataclass(frozen=True, repr=False)
class ZCDP(Converted):
    """The sum of all rho, converted at the best order.

    Guarantee
        Each rho is that of `dpfast.accounting.accountants.zcdp.cost`. From rho to (epsilon, delta) by Canonne,
        Kamath, Steinke 2020, proposition 12, at an order that is found in floats and then evaluated in balls: every
        order gives a valid figure. Deltas of events are added beside (Bun, Steinke 2016, section 8).

    Attributes
    ----------
    rho_units, delta_units
        The sums, in units of 1e-18.

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.accounting.zcdp(dpf.accounting.events.Gaussian(scale=1.0)).epsilon(delta=1e-6), 7)
    5.2215344

    """

    events: InitVar[Events]
    rho_units: int = field(init=False)
    delta_units: int = field(init=False)

    def __post_init__(self, events: Events) -> None:
        listed = tuple(event.times(count) for event, count in runs(events).items())
        rho_units, delta_units = cost(listed)
        self._set(rho_units=rho_units, delta_units=delta_units)
        self._keep_sums(listed)

    @property
    def _told(self) -> dict[str, float]:
        return {"rho": nearly(self.rho_units), "delta": nearly(self.delta_units)}

    @property
    def _is_nothing(self) -> bool:
        return self.rho_units == 0

    def _epsilon_beside(self, slack: Fraction) -> float:
        """Return the least over orders a of rho a + ln(1/(a s))/(a - 1) + ln(1 - 1/a), s the slack."""
        excess = _best_excess(nearly(self.rho_units), slack)
        with working_precision():
            rho = ball(Fraction(self.rho_units, UNITS_PER_ONE))
            return max(0.0, float_above(_epsilon_ball(rho, ball(slack), ball(excess))))

    def _delta_beside(self, target: Fraction) -> arb:
        """Return the least over orders a of exp((a - 1)(rho a - epsilon)) (1 - 1/a)**a / (a - 1)."""
        near, most = nearly(self.rho_units), float(target)
        t = _root(lambda t: (1 + 2 * math.exp(t)) * near - most + t - _log1p_exp(t), -300.0, 300.0)
        excess, rho = ball(math.exp(t)), ball(Fraction(self.rho_units, UNITS_PER_ONE))
        order = 1 + excess
        return (excess * (rho * order - ball(target)) - excess.log() + order * (excess / order).log()).exp()


def largest_rho(epsilon: TargetEpsilon, delta: TargetDelta) -> int:
    """Return the rho that a budget of (epsilon, delta) buys, in whole units of 1e-18, rounded down.

    Guarantee
        rho-zCDP implies (epsilon, delta) at the figure returned (Canonne, Kamath, Steinke 2020, proposition 12,
        solved for rho at one order, in balls). As the budget of a filter it may be spent adaptively: every
        sequence of events whose costs add up to no more is (epsilon, delta)-private (Whitehouse, Ramdas,
        Rogers, Wu 2023).

    Parameters
    ----------
    epsilon, delta
        The budget; deltas of events are apart from this delta. Floats are read as written.

    Returns
    -------
    int
        Units of rho: 0 if there is none.

    Examples
    --------
    >>> round(largest_rho(5.2215345, 1e-6) / 1e18, 7)
    0.5

    """
    target, slack = checked_epsilon(epsilon), checked_delta(delta)
    if target == 0 or slack == 0:
        return 0
    most, log_delta = float(target), _log(slack)

    def slope(t: float) -> float:
        a = math.exp(t)
        rho = (most + (log_delta + _log1p_exp(t)) / a - t + _log1p_exp(t)) / (1 + a)
        return a * a * rho + _log1p_exp(t) + log_delta

    excess = math.exp(_root(slope, -100.0, 100.0))
    with working_precision():
        zero = _epsilon_ball(ball(0), ball(slack), ball(excess))
        return units_below((ball(target) - zero) / (1 + ball(excess)))


def largest_rho_of_units(epsilon: int, delta: int) -> int:
    """Return `largest_rho` of a budget in units of 1e-18."""
    return largest_rho(Fraction(epsilon, UNITS_PER_ONE), Fraction(delta, UNITS_PER_ONE))


# Vectorised ---------------------------------------------------------------------------------------------------

#: More than the relative error of every column in `rhos`.
_INFLATION = 1.0 + 2.0**-40


def _rounded_up(rho: Floats) -> Units:
    return units_of_floats(np.nextafter(rho * _INFLATION, np.inf), "parameters")


def rho_units(kind: type, **parameters: ArrayLike) -> Units:
    """Return the rho of many events of one kind, in whole units of 1e-18, rounded up.

    Guarantee
        No amount is below the rho of `cost` for the same event, nor above it by more than a relative 2**-38
        and a unit: computed in additions, multiplications and divisions of floats with a proved error
        (`dpfast.exact.elementary`), then raised by more than it.

    Parameters
    ----------
    kind
        A class of events, for example `Laplace`; not `PoissonSubsampled`, `Partitioned`, nor what has a delta.
    parameters
        The fields of the events, as numbers or one-dimensional arrays of one length.

    Raises
    ------
    ParameterError
        The kind has no such formula or no such field, or some number is not positive and finite, or some rho
        is above 2**53.

    Examples
    --------
    >>> from dpfast.accounting.events import Gaussian
    >>> round(rho_units(Gaussian, scale=[10.0, 20.0]).total() / 1e18, 9)
    0.00625

    """
    facts = FACTS.get(kind)
    if facts is None or facts.rhos is None:
        raise ParameterError("kind", kind, "a class of events with a rho of its own", "use cost, event by event")
    rho = facts.rhos
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return in_blocks(lambda *fields: _rounded_up(rho(*fields)), parameter_arrays(kind, parameters))
