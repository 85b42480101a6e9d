"""A budget -> shares in whole units, and the noise and the selections that these buy, with the charges for them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, TypeAlias

import numpy as np

from dpfast.accounting.accountants import basic, gdp, zcdp
from dpfast.accounting.budget import Budget, Kind
from dpfast.accounting.events import (
    ExponentialMechanism,
    PermuteAndFlip,
    Pure,
    Single,
)
from dpfast.accounting.sensitivity import Sensitivity
from dpfast.arguments import Special, no_numbers
from dpfast.errors import ParameterError
from dpfast.exact.amounts import UNITS_PER_ONE, to_float
from dpfast.exact.balls import as_written, written_below
from dpfast.ledger import Charge
from dpfast.ledger.payment import Payment
from dpfast.ledger.receipt import Receipt
from dpfast.mechanisms.noise.integer_noise import IntegerNoise, declared_amounts, gaussian_of_rho, laplace_of_epsilon

__all__ = ["SHARE", "Selection", "Share", "SharedBudget", "noise_for", "positive_share", "read_share", "selection_for"]

_MEND = "raise it, or measure less often"
_EVENTS: dict[str, Callable[[float], Single]] = {
    "exponential": ExponentialMechanism,
    "permute_and_flip": PermuteAndFlip,
    "sparse_vector": Pure,
}
#: More would change nothing, as weights are below exp(-700) already.
_LARGEST_SELECTION = 1e6


@dataclass(frozen=True, slots=True)
class SharedBudget:
    """A budget that several measurements of the same records share.

    Attributes
    ----------
    given
        What the user gave.
    split
        What is split among the measurements: an epsilon without a delta, or a rho.

    """

    given: Budget
    split: Budget

    @classmethod
    def of(cls, given: Budget, measurements: int, moved: int, *, by_gdp: bool = False) -> SharedBudget:
        """Decide what is split, by the number of measurements and of cells that neighbours change in each.

        Guarantee
            What is split costs at most ``given``: it is the same, or its epsilon alone, or the largest rho that is
            (epsilon, delta)-private (Canonne, Kamath, Steinke 2020), rounded down.

            ``by_gdp``, for what a rho buys as Gaussian noise alone, rho is the larger mu**2 / 2 of the mu-GDP that is
            (epsilon, delta)-private (`gdp.largest_rho_of_units`). Their variances may depend on earlier noisy counts.
            Proof. Between neighbours a measurement moves by s_t, its noise has the deviation sigma_t, and the sum of
            s_t**2 / sigma_t**2 never exceeds mu**2. The likelihood ratio of all measurements is that of a Brownian
            motion, with drift 1 or without, which is watched up to a time that is this sum: each of them is told by the
            motion over an interval of length s_t**2 / sigma_t**2, and noise that does not depend on the data. Who
            watches up to the time mu**2 sees no less, and tells the two apart as well as who sees N(0, 1) or N(mu, 1):
            this is mu-GDP (Dong, Roth, Su 2022, definition 2.6 and lemma 2.9).

        With a delta the choice is between k measurements with Laplace noise of scale k m / epsilon, m being the cells
        that change, and with Gaussian noise of variance k m / 2 rho: whichever noise has less variance.
        """
        if given.kind == "rho" or not given.delta_units:
            return cls(given, given)
        largest = gdp.largest_rho_of_units if by_gdp else zcdp.largest_rho_of_units
        units = largest(given.units, given.delta_units)
        # 2 (k m / epsilon)**2 against k m / (2 rho)
        gaussian = units and 4 * measurements * moved * units * UNITS_PER_ONE > given.units**2
        return cls(given, Budget("rho", units) if gaussian else Budget("epsilon", given.units))

    @property
    def is_converted(self) -> bool:
        """Whether a rho is split in place of the epsilon and delta that were given."""
        return self.split.kind != self.given.kind

    @property
    def charged(self) -> Budget:
        """What is spent when all of it is: the delta only where it buys something."""
        return self.given if self.is_converted else self.split

    def adds_up_epsilons(self, payment: Payment) -> bool:
        """Whether a ledger adds up epsilons, so that a rho in their place is charged as a whole or not at all."""
        return self.is_converted and payment.ledger is not None and payment.ledger.accountant == "basic"

    def charge(self, payment: Payment, charges: Sequence[Charge], description: str) -> Receipt | None:
        """Charge a ledger for everything at once, and return what it said of it; None without a ledger.

        A ledger that adds up epsilons is charged (epsilon, delta) where a rho was split; others, what will be drawn.
        """
        if self.adds_up_epsilons(payment):
            return payment.pay([Charge(self.given.units, self.given.delta_units, description)])
        return payment.pay(charges)


@dataclass(frozen=True, slots=True)
class Selection:
    """One private selection's epsilon; ``charge`` is for all of them."""

    epsilon: float
    charge: Charge


#: A part of a whole, as `read_share` reads it.
SHARE = Special(lambda: (*no_numbers(), 0, 1, 0.0, 1.0, -0.5, 1e-7, 1 - 1e-7, 2.5, [0.5], np.array([0.5]), Fraction(1)))
Share: TypeAlias = Annotated[float | np.floating[Any] | Fraction, SHARE]


def read_share(share: object, argument: str) -> Fraction:
    """Read a part of a whole, above 0 and below 1, as it was written."""
    if isinstance(share, (float, np.floating)) and math.isfinite(share):
        share = as_written(float(share))
    if not isinstance(share, Fraction) or not Fraction(1, 10**6) <= share <= 1 - Fraction(1, 10**6):
        raise ParameterError(argument, share, "a number from 1e-6 to 1 - 1e-6", f"write for example {argument}=0.5")
    return share


def positive_share(units: int, budget: Budget, mend: str) -> int:
    """Return a share in whole units, or refuse a budget that is too small for it."""
    if units < 1:
        raise ParameterError(budget.kind, to_float(budget.units), "large enough for all of its shares", mend)
    return units


def noise_for(kind: Kind, units: int, change: Sensitivity, count: int, description: str) -> tuple[IntegerNoise, Charge]:
    """Return the noise that a share buys for integers, and the charge for drawing it ``count`` times.

    Guarantee
        One draw's event costs at most ``units``: for epsilon, Laplace noise of scale b with l1 / b <= epsilon in
        rationals (Soundness rule 10); for rho, Gaussian noise with l2**2 / (2 sigma**2) <= rho by
        `zcdp.cost`.

    Parameters
    ----------
    kind, units
        The share of one draw.
    change
        What neighbours do to the integers.
    count
        How many draws the charge is for.
    description
        For the ledger.

    """
    if kind == "epsilon":
        noise = laplace_of_epsilon(change.l1, units, mend=_MEND)
        return noise, Charge(units, 0, description, noise.event, count)
    noise = gaussian_of_rho(change.l2_squared, units, mend=_MEND)
    return noise, Charge(*declared_amounts(noise.event), description, noise.event, count)


def selection_for(
    kind: Kind, units: int, mechanism: str, count: int, description: str, *, by_gdp: bool = False
) -> Selection:
    """Return the epsilon of a selection that a share buys, ``count`` times.

    Guarantee
        One selection's event costs at most ``units``: for rho, that of the exponential mechanism by its bounded
        range (at most epsilon**2 / 8), those of permute-and-flip and of a sparse vector as any pure mechanism's
        (Soundness rule 22). ``by_gdp``, for the exponential mechanism alone, rho is mu**2 / 2 of what it is in GDP
        (`gdp.largest_bounded_range`), which is more for one epsilon.

    """
    event_of = _EVENTS[mechanism]
    if by_gdp:
        assert (kind, mechanism) == ("rho", "exponential")
        each = min(gdp.largest_bounded_range(units), _LARGEST_SELECTION)
        return Selection(each, Charge(*basic.cost(event_of(each)), description, event_of(each), count))
    if kind == "epsilon":
        each = written_below(min(units, int(_LARGEST_SELECTION) * UNITS_PER_ONE))
        return Selection(each, Charge(units, 0, description, event_of(each), count))

    def fits(epsilon: float) -> bool:
        return zcdp.cost(event_of(epsilon))[0] <= units

    # Both costs are at most epsilon**2 / 2; bounded range costs epsilon**2 / 8 for small ones.
    low = min(math.sqrt(2.0 * (units / UNITS_PER_ONE)), _LARGEST_SELECTION)
    while not fits(low):
        low *= 1 - 2.0**-40
        if low < 1e-18:
            raise ParameterError("rho", units / UNITS_PER_ONE, "larger, to pay for a selection", "raise rho")
    high = 2.0 * low
    while fits(high) and high < _LARGEST_SELECTION:
        low, high = high, 2.0 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    each = min(low, _LARGEST_SELECTION)
    event = event_of(each)
    return Selection(each, Charge(*basic.cost(event), description, event, count))
