"""A ledger without a bound on epsilon, which says at any time what was spent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpfast.accounting.budget import Amounts
from dpfast.accounting.odometer import odometer_epsilon
from dpfast.errors import BudgetExceededError
from dpfast.exact.amounts import UNITS_PER_ONE, to_decimal, to_float
from dpfast.exact.balls import round_up
from dpfast.ledger.charges import Item
from dpfast.ledger.costs import NO_EPSILON, plain_cost, rho_cost

__all__ = ["Odometer"]


@dataclass(frozen=True, slots=True)
class Odometer:
    """No bound on epsilon: rhos add up as in zCDP, and what they amount to so far holds whenever one stops.

    Guarantee
        With probability at least 1 - delta the loss of all answers so far is, at every time, at most the epsilon
        of `shown`. Delta has two parts, both fixed at creation: the conversion's, at which the sum of rho is read
        (`dpfast.accounting.odometer`), and the rest, which bounds the sum of the deltas of approximate events;
        what would exceed it is refused.

        Proof. Replace each approximate event by one without a delta that agrees with it but for an event of
        probability at most delta_i, given the answers before it. All agree but for an event of probability at most
        the expectation of the sum of delta_i, which is at most its bound, however they were chosen. Without a
        bound on every path the sum on the path taken says nothing of that expectation: an analyst may spend a large
        delta_i only after a rare answer (Rogers, Roth, Ullman, Vadhan 2016). The plain sum of epsilons bounds the
        loss too, for certain and at all times, so the smaller of both holds.
    """

    accountant: ClassVar[str] = "odometer"
    delta_units: int
    conversion_units: int

    @property
    def total(self) -> Amounts:
        """No bound on epsilon."""
        return Amounts(math.inf, to_float(self.delta_units))

    @property
    def terms(self) -> tuple[int, ...]:
        """What a store keeps, for `filter_of`: no epsilon, delta, and the conversion's part of it."""
        return 0, self.delta_units, self.conversion_units

    @property
    def nothing(self) -> tuple[int, ...]:
        """The cost of no query: rho, delta, plain epsilon."""
        return 0, 0, 0

    @property
    def event_delta_units(self) -> int:
        """What the deltas of all events together may come to, whatever is asked."""
        return self.delta_units - self.conversion_units

    def cost(self, item: Item) -> tuple[int, ...]:
        """Return what a charge costs."""
        return *rho_cost(item), plain_cost(item)

    def admits(self, spent: Sequence[int]) -> bool:
        """Return whether so much may be spent: any rho, but deltas within their bound."""
        return spent[1] <= self.event_delta_units

    def shown(self, spent: Sequence[int]) -> Amounts:
        """Return the (epsilon, delta) of everything so far."""
        rho = math.nextafter(to_float(spent[0]), math.inf) if spent[0] else 0.0
        epsilon = odometer_epsilon(rho, Fraction(self.conversion_units, UNITS_PER_ONE))
        if spent[2] < NO_EPSILON:
            epsilon = min(epsilon, round_up(Fraction(spent[2], UNITS_PER_ONE)))
        return Amounts(epsilon, to_float(self.delta_units))

    def left(self, spent: Sequence[int]) -> Amounts:
        """Return what remains: any epsilon, and what events may still have of delta."""
        return Amounts(math.inf, to_float(self.event_delta_units - spent[1]))

    def refusal(self, cost: Sequence[int], spent: Sequence[int]) -> BudgetExceededError:
        """Return the error for a charge whose delta does not fit."""
        return BudgetExceededError(
            f"delta {to_decimal(cost[1])} was asked, but delta {to_decimal(self.event_delta_units - spent[1])} is left "
            "for events; nothing was charged: ask for no more than is left, or set more of delta aside at creation by "
            "a smaller conversion_delta"
        )
