"""Advanced composition: the square root of the number of events, by a bound on the sum of their losses."""

from __future__ import annotations

import math
from dataclasses import InitVar, dataclass, field
from fractions import Fraction
from typing import Annotated, Literal

from flint import arb

from dpfast.accounting.accountants.accountant import Events, nearly
from dpfast.accounting.accountants.basic import cost
from dpfast.accounting.accountants.capped import Converted
from dpfast.accounting.events import runs
from dpfast.accounting.work import spend
from dpfast.arguments import Choice
from dpfast.exact.amounts import UNITS_PER_ONE
from dpfast.exact.balls import ball, float_above, units_above, working_precision

__all__ = ["Advanced"]

DRIFT = Choice(("tanh", "book"))

# What one mean of a loss is worth in the units of `work`.
_DRIFT_WORK = 1e3


@dataclass(frozen=True, repr=False)
class Advanced(Converted):
    """The advanced composition theorem, for events with an epsilon each.

    Guarantee
        epsilon = sqrt(2 ln(1/s) sum e_i**2) + sum e_i m(e_i) and delta = s + sum delta_i, for every s above 0
        (Azuma's inequality on losses within e_i whose mean is at most e_i m(e_i)). ``drift="book"`` takes
        m(e) = exp(e) - 1 (Dwork, Roth 2014, theorem 3.20, there for equal events);
        ``drift="tanh"`` takes m(e) = tanh(e/2), the mean of randomized response (Kairouz, Oh, Viswanath 2015,
        theorem 3.5). The answers may steer later questions, but the parameters of all events are fixed in
        advance (Rogers, Roth, Ullman, Vadhan 2016).

    Attributes
    ----------
    squares
        The sum of e_i**2, in units of 1e-36, exactly.
    drift_units, delta_units
        The sums of e_i m(e_i) and of delta_i, in units of 1e-18.

    Examples
    --------
    >>> import dpfast as dpf
    >>> hundred = dpf.accounting.events.Pure(0.1).times(100)
    >>> [round(dpf.accounting.advanced(hundred, drift=drift).epsilon(1e-6), 5) for drift in ("tanh", "book")]
    [5.75611, 6.30823]

    """

    events: InitVar[Events]
    drift: Annotated[Literal["tanh", "book"], DRIFT] = "tanh"
    squares: int = field(init=False)
    drift_units: int = field(init=False)
    delta_units: int = field(init=False)

    def __post_init__(self, events: Events) -> None:
        DRIFT.read("drift", self.drift)
        counts = runs(events)
        squares = drifts = deltas = 0
        for event, count in counts.items():
            epsilon_units, delta_units = cost(event)
            squares += count * epsilon_units**2
            drifts += count * self._drift_units(epsilon_units)
            deltas += count * delta_units
        self._set(squares=squares, drift_units=drifts, delta_units=deltas)
        self._keep_sums(event.times(count) for event, count in counts.items())

    def _drift_units(self, epsilon_units: int) -> int:
        spend(_DRIFT_WORK)
        with working_precision():
            epsilon = ball(Fraction(epsilon_units, UNITS_PER_ONE))
            return units_above(epsilon * ((epsilon / 2).tanh() if self.drift == "tanh" else epsilon.expm1()))

    @property
    def _told(self) -> dict[str, float]:
        return {
            "norm_of_epsilons": nearly(math.isqrt(self.squares)),
            "drift": nearly(self.drift_units),
            "delta": nearly(self.delta_units),
        }

    @property
    def _is_nothing(self) -> bool:
        return self.squares == 0

    def _epsilon_beside(self, slack: Fraction) -> float:
        with working_precision():
            spread = (-2 * ball(slack).log() * ball(Fraction(self.squares, UNITS_PER_ONE**2))).sqrt()
            return float_above(spread + ball(Fraction(self.drift_units, UNITS_PER_ONE)))

    def _delta_beside(self, target: Fraction) -> arb:
        """Return the theorem's delta; 1 unless the target is above the drift."""
        above = target - Fraction(self.drift_units, UNITS_PER_ONE)
        if above <= 0:
            return ball(1)
        return ball(-(above**2) * UNITS_PER_ONE**2 / (2 * self.squares)).exp()
