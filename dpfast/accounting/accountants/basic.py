"""Basic composition: every epsilon and every delta added, exactly."""

from __future__ import annotations

import math
from dataclasses import InitVar, dataclass, field
from fractions import Fraction
from functools import lru_cache

from numpy.typing import ArrayLike

from dpfast.accounting.accountants.accountant import (
    Accountant,
    Events,
    dearest,
    nearly,
    pair_total,
    refused,
)
from dpfast.accounting.events import KeySelection, Partitioned, PoissonSubsampled, Single
from dpfast.accounting.facts import FACTS
from dpfast.errors import ParameterError
from dpfast.exact.amounts import UNITS_PER_ONE
from dpfast.exact.balls import ball, ceiling_units, round_up_written, units_above, working_precision
from dpfast.exact.units import Units, in_blocks, parameter_arrays, units_as_written

__all__ = ["Basic", "cost", "delta_units", "epsilon_units"]


def _amplified(epsilon_units: int, delta_units: int, rate: Fraction) -> tuple[int, int]:
    """Return the cost of an (epsilon, delta)-private mechanism on a Poisson sample.

    epsilon' = ln(1 + q (e**epsilon - 1)) and delta' = q delta (Balle, Barthe, Gaboardi 2018, theorem 8), for
    add/remove neighbours.
    """
    if rate == 1:
        return epsilon_units, delta_units
    smaller = epsilon_units
    if epsilon_units < 10**6 * UNITS_PER_ONE:
        with working_precision():
            grown = ball(Fraction(epsilon_units, UNITS_PER_ONE)).expm1() * ball(rate)
            smaller = min(smaller, units_above(grown.log1p()))
    return smaller, math.ceil(delta_units * rate)


@lru_cache(maxsize=4096)
def _cost(event: Single) -> tuple[int, int]:
    if isinstance(event, PoissonSubsampled):
        return _amplified(*cost(event.event), Fraction(event.rate))
    if isinstance(event, Partitioned):
        return dearest(event, cost)
    facts = FACTS[type(event)]
    if facts.epsilon is None:
        raise refused(event, "basic composition", "events with an epsilon each", "GDP, ZCDP or RDP")
    return ceiling_units(facts.epsilon(event)), 0 if facts.delta is None else ceiling_units(facts.delta(event))


def cost(event: Events) -> tuple[int, int]:
    """Return what an event costs under basic composition, in whole units of 1e-18, rounded up.

    Guarantee
        The event is (epsilon, delta)-private, and so is any sequence of events at the sums of their costs, even
        if each is chosen after seeing the answers before it (Dwork, Roth 2014, theorem B.1; Rogers, Roth,
        Ullman, Vadhan 2016: a budget fixed at the start may be spent adaptively). The parts of a `Partitioned`
        cost the larger of each coordinate (McSherry 2009, theorem 4).

    Returns
    -------
    tuple
        Units of epsilon and units of delta.

    Raises
    ------
    ParameterError
        The event has no epsilon: Gaussian noise, or what is only known to be zero-concentrated.

    Examples
    --------
    >>> from dpfast.accounting.events import Laplace
    >>> cost(Laplace(scale=10.0).times(3))
    (300000000000000000, 0)

    """
    return pair_total(event, _cost)


def epsilon_units(kind: type, **parameters: ArrayLike) -> Units:
    """Return the epsilons of many events of one kind, in whole units of 1e-18, rounded up.

    Guarantee
        No amount is below the epsilon of `cost` for the same event: a quotient of floats is off by less than a
        relative 2**-52, and 2**-51 is added; claimed epsilons are read as `units_as_written` proves.

    Parameters
    ----------
    kind
        A class of events with an epsilon each, for example `Laplace`.
    parameters
        The fields of the events, as numbers or one-dimensional arrays of one length.

    Raises
    ------
    ParameterError
        The kind has no epsilon or no such field, or some number is not positive and finite, or above 2**53.

    Examples
    --------
    >>> from dpfast.accounting.events import Pure
    >>> epsilon_units(Pure, epsilon=[0.1, 0.2]).total()
    300000000000000000

    """
    facts = FACTS.get(kind)
    if facts is None or facts.epsilon_units is None:
        raise ParameterError("kind", kind, "a class of events with an epsilon each", "use zcdp.rho_units")
    if facts.delta is not None:
        parameters.setdefault("delta", 0.5)
    return in_blocks(facts.epsilon_units, parameter_arrays(kind, parameters))


def delta_units(delta: ArrayLike) -> Units:
    """Return the deltas of many events in whole units of 1e-18, rounded up from the decimals they denote.

    Examples
    --------
    >>> delta_units([1e-6, 1e-9]).total()
    1001000000000

    """
    _, deltas = parameter_arrays(KeySelection, {"epsilon": 1.0, "delta": delta})
    return in_blocks(lambda x: units_as_written(x, "delta"), [deltas])


@dataclass(frozen=True, repr=False)
class Basic(Accountant):
    """The sums of all epsilons and all deltas.

    Guarantee
        The events are private at the sums, also where each is chosen after seeing the answers before it: see
        `dpfast.accounting.accountants.basic.cost`. The figures are the exact sums, rounded up once, to a float that
        denotes no smaller decimal.

    Attributes
    ----------
    epsilon_units, delta_units
        The sums, in units of 1e-18.

    Examples
    --------
    >>> import dpfast as dpf
    >>> dpf.accounting.basic(dpf.accounting.events.Pure(0.1).times(100)).epsilon(delta=0)
    10.0

    """

    events: InitVar[Events]
    epsilon_units: int = field(init=False)
    delta_units: int = field(init=False)

    def __post_init__(self, events: Events) -> None:
        epsilon_units, delta_units = cost(events)
        self._set(epsilon_units=epsilon_units, delta_units=delta_units)

    @property
    def _told(self) -> dict[str, float]:
        return {"epsilon": nearly(self.epsilon_units), "delta": nearly(self.delta_units)}

    def _epsilon(self, target: Fraction) -> float:
        """Return the sum of all epsilons if the target reaches the sum of all deltas, else infinity."""
        reached = target * UNITS_PER_ONE >= self.delta_units
        return round_up_written(Fraction(self.epsilon_units, UNITS_PER_ONE)) if reached else math.inf

    def _delta(self, target: Fraction) -> float:
        """Return the sum of all deltas if the target reaches the sum of all epsilons, else 1."""
        reached = target * UNITS_PER_ONE >= self.epsilon_units
        return min(1.0, round_up_written(Fraction(self.delta_units, UNITS_PER_ONE))) if reached else 1.0
