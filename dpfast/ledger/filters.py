"""Privacy filters: what a charge costs, and whether it still fits, by one way of adding up.

A filter is fixed when its ledger is created. It stays valid however the queries are chosen, even by somebody who
reads every answer before the next question: the sums it keeps are of costs that may depend on the answers before
them, held below a bound that was fixed before the first one.

What holds of an analyst who chooses deltas, orders and kinds of mechanisms by the answers so far:

- Deltas add up to a bound fixed at creation, in every filter and in the odometer. A delta shown at the end of one
  path would be no bound: another path may spend more, and what counts is the expectation over all paths.
- Rho, or the divergences of every order, and the plain epsilons beside them: a charge is admitted while *either*
  stays within its own bound. Which of them that is may depend on the answers, and yet this is free. Proof: on the
  paths that end within the plain bound, where every event has an epsilon, the loss is at most epsilon apart from
  the events' deltas, for certain; they add nothing to E(1 - exp(epsilon - loss))+. On all others the sum of rho is
  within its bound, and there E(1 - exp(epsilon - loss))+ is at most the conversion delta times the expectation of a
  non-negative supermartingale that begins at 1 (Whitehouse, Ramdas, Rogers, Wu 2023; `rdp.filter_caps`), restricted
  to these paths.
- No other smaller of two accountants is free. The conversion's part of delta is not given back to events on paths that
  the plain sums keep: such a path may spend it all, and another one the conversion, so together more than delta. And
  the tightest curve of what happened to run is no bound at all (`dpfast.ledger.history.report`).
"""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpfast.accounting.accountants import rdp, zcdp
from dpfast.accounting.budget import Amounts, ConcentratedAmounts, RenyiAmounts, ShownAmounts, amount_text, read_budget
from dpfast.accounting.events import ZeroConcentrated
from dpfast.accounting.odometer import odometer_epsilon
from dpfast.arguments import Choice
from dpfast.errors import BudgetExceededError, LedgerError, ParameterError
from dpfast.exact.amounts import UNITS_PER_ONE, exact_text, to_float
from dpfast.exact.balls import round_up
from dpfast.ledger.charges import Charge, ChargeColumns, Item
from dpfast.ledger.costs import NO_EPSILON, plain_cost, rho_cost, times

__all__ = [
    "ACCOUNTANT",
    "Basic",
    "Concentrated",
    "Filter",
    "Odometer",
    "Renyi",
    "allotment_of",
    "filter_of",
    "refuse_rho",
]

ACCOUNTANT = Choice(("basic", "zcdp", "rdp", "odometer"))


@dataclass(frozen=True, slots=True)
class Filter(ABC):
    """A way of adding up, with its bounds; all amounts are units of 1e-18."""

    accountant: ClassVar[str]
    #: What the first sum is of, and how it is shown with a delta beside it.
    unit: ClassVar[str] = "epsilon"
    amounts: ClassVar[type[Amounts | ConcentratedAmounts]] = Amounts
    epsilon_units: int
    delta_units: int

    @property
    def total(self) -> Amounts:
        """The (epsilon, delta) that all answers together keep."""
        return Amounts(to_float(self.epsilon_units), to_float(self.delta_units))

    @property
    def terms(self) -> tuple[int, ...]:
        """What a store keeps, for `filter_of`."""
        return self.epsilon_units, self.delta_units

    @property
    def nothing(self) -> tuple[int, ...]:
        """The cost of no query."""
        return 0, 0

    @property
    def event_delta_units(self) -> int:
        """A bound on the sum of the deltas of all events, whatever is asked."""
        return self.delta_units

    @abstractmethod
    def cost(self, item: Item) -> tuple[int, ...]:
        """Return what a charge costs, its queries taken together, rounded up."""

    @abstractmethod
    def admits(self, spent: Sequence[int]) -> bool:
        """Return whether so much may be spent."""

    def room(self, spent: Sequence[int]) -> tuple[int, int]:
        """Return what is left of the first sum, and of delta."""
        return self.epsilon_units - spent[0], self.event_delta_units - spent[1]

    def shown(self, spent: Sequence[int]) -> ShownAmounts:
        """Return an amount for people."""
        return self.amounts(to_float(spent[0]), to_float(spent[1]))

    def left(self, spent: Sequence[int]) -> ShownAmounts:
        """Return what remains, for people."""
        return self.amounts(*map(to_float, self.room(spent)), is_left=True)

    def refusal(self, cost: Sequence[int], spent: Sequence[int]) -> BudgetExceededError:
        """Return the error for a charge that does not fit."""
        left = self.room(spent)
        return BudgetExceededError(
            f"{self.unit} {exact_text(cost[0])} and delta {exact_text(cost[1])} were asked, but {self.unit} "
            f"{exact_text(left[0])} and delta {exact_text(left[1])} are left; nothing was charged: ask for no more "
            "than is left"
        )


@dataclass(frozen=True, slots=True)
class Basic(Filter):
    """Basic composition: epsilons and deltas add up.

    Guarantee
        (epsilon, delta)-differential privacy of all answers together, with no other assumption than that each
        charge is true (Dwork, Kenthapadi, McSherry, Mironov, Naor 2006, theorem 1; adaptively: Rogers, Roth,
        Ullman, Vadhan 2016).
    """

    accountant: ClassVar[str] = "basic"

    def cost(self, item: Item) -> tuple[int, ...]:
        """Return what a charge costs."""
        epsilon, delta = item.epsilon_units, item.delta_units
        if epsilon == 0 and delta == 0:
            raise LedgerError(
                "these queries have a rho but no epsilon, and this ledger adds up epsilons; nothing was charged: "
                'give epsilon and delta, or use a ledger with accountant="zcdp"'
            )
        times = item.count if isinstance(item, Charge) else 1
        return epsilon * times, delta * times

    def admits(self, spent: Sequence[int]) -> bool:
        """Return whether so much may be spent."""
        return spent[0] <= self.epsilon_units and spent[1] <= self.delta_units


@dataclass(frozen=True, slots=True)
class _Converting(Filter):
    """Sums that become (epsilon, delta) by a part of delta; then come the events' deltas and the plain epsilons.

    A charge is admitted while some sum stays within its own bound, or the plain epsilons within ``plain_units``.
    """

    conversion_units: int
    plain_units: int
    bounds: tuple[int, ...]

    @property
    def terms(self) -> tuple[int, ...]:
        """What a store keeps, for `filter_of`."""
        return self.epsilon_units, self.delta_units, self.conversion_units, self.plain_units, *self.bounds

    @property
    def nothing(self) -> tuple[int, ...]:
        """The cost of no query: every sum, delta, plain epsilon."""
        return (0,) * (len(self.bounds) + 2)

    @property
    def event_delta_units(self) -> int:
        """A bound on the sum of the deltas of all events, whatever is asked."""
        return self.delta_units - self.conversion_units

    def admits(self, spent: Sequence[int]) -> bool:
        """Return whether so much may be spent."""
        within = spent[-1] <= self.plain_units or any(map(operator.le, spent, self.bounds))
        return within and spent[-2] <= self.event_delta_units


@dataclass(frozen=True, slots=True)
class Concentrated(_Converting):
    """Zero-concentrated privacy: rhos add up, and the deltas of approximate events beside them.

    Guarantee
        While the sum of rho stays within a bound fixed at creation, all answers together are
        (epsilon, conversion delta)-differentially private, and with the deltas of the events beside them
        (epsilon, delta) (Bun, Steinke 2016; adaptively: Whitehouse, Ramdas, Rogers, Wu 2023, theorem 1;
        conversion: Canonne, Kamath, Steinke 2020). The same holds while the plain epsilons stay within
        ``plain_units`` (this file's beginning has the proof), which is epsilon, or 0 for a part of another budget.
    """

    accountant: ClassVar[str] = "zcdp"
    unit: ClassVar[str] = "rho"
    amounts: ClassVar[type[Amounts | ConcentratedAmounts]] = ConcentratedAmounts

    @property
    def terms(self) -> tuple[int, ...]:
        """What a store keeps, for `filter_of`."""
        return self.epsilon_units, self.delta_units, self.conversion_units, *self.bounds, self.plain_units

    def cost(self, item: Item) -> tuple[int, ...]:
        """Return what a charge costs."""
        return *rho_cost(item), plain_cost(item)

    def room(self, spent: Sequence[int]) -> tuple[int, int]:
        """Return what is left of rho, and of delta."""
        return max(0, self.bounds[0] - spent[0]), self.event_delta_units - spent[1]


@dataclass(frozen=True, slots=True)
class Renyi(_Converting):
    """Rényi divergences of many orders add up, each by itself, and deltas of approximate events beside them.

    Guarantee
        A charge is admitted while some order stays within its bound, fixed at creation. Then all answers
        together are (epsilon, delta)-differentially private, although which order that is may depend on the
        answers: every order has a share of delta of its own (`rdp.filter_caps`). The same holds
        while the plain epsilons stay within ``plain_units``, which is epsilon.
    """

    accountant: ClassVar[str] = "rdp"

    def cost(self, item: Item) -> tuple[int, ...]:
        """Return what a charge costs."""
        if isinstance(item, ChargeColumns):
            # Divergences of order a are at most a rho: one number a row, where the curve would be a hundred.
            rho = zcdp.rho_units(item.kind, **item.parameters).total()
            return *(times(order, rho) for order in rdp.ORDERS), 0, plain_cost(item)
        # The amounts themselves, not the event that stands for them: its decimals may lie above.
        known = item.event is not None
        divergences, delta = rdp.cost(item.fact) if known else rdp.claimed(item.epsilon_units, item.delta_units)
        return *(units * item.count for units in divergences), delta * item.count, plain_cost(item)

    def _roomiest(self, spent: Sequence[int]) -> int:
        """Return the order that leaves the largest part of its bound."""
        return max(range(len(self.bounds)), key=lambda i: Fraction(self.bounds[i] - spent[i], self.bounds[i] or 1))

    def shown(self, spent: Sequence[int]) -> RenyiAmounts:
        """Return an amount for people."""
        i = self._roomiest(spent)
        return RenyiAmounts(rdp.ORDERS[i], to_float(spent[i]), to_float(spent[-2]))

    def whole(self, spent: Sequence[int]) -> RenyiAmounts:
        """Return the whole budget at the order that leaves most of it."""
        i = self._roomiest(spent)
        return RenyiAmounts(rdp.ORDERS[i], to_float(self.bounds[i]), to_float(self.event_delta_units))

    def left(self, spent: Sequence[int]) -> RenyiAmounts:
        """Return what remains, for people."""
        i = self._roomiest(spent)
        delta = self.event_delta_units - spent[-2]
        return RenyiAmounts(rdp.ORDERS[i], to_float(max(0, self.bounds[i] - spent[i])), to_float(delta), is_left=True)

    def refusal(self, cost: Sequence[int], spent: Sequence[int]) -> BudgetExceededError:
        """Return the error for a charge that does not fit."""
        left, i = self.left(spent), self._roomiest(spent)
        return BudgetExceededError(
            f"a divergence of {amount_text(to_float(cost[i]), digits=6)} at order {left.order:g} and delta "
            f"{exact_text(cost[-2])} were asked, but {left.text('divergence')} and {left.text('delta')} are left, and "
            "no other order has room; nothing was charged: ask for no more than is left"
        )


@dataclass(frozen=True, slots=True)
class Odometer(Filter):
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
    conversion_units: int

    @property
    def total(self) -> Amounts:
        """No bound on epsilon."""
        return Amounts(math.inf, to_float(self.delta_units))

    @property
    def terms(self) -> tuple[int, ...]:
        """What a store keeps, for `filter_of`: no epsilon, delta, and the conversion's part of it."""
        return self.epsilon_units, self.delta_units, self.conversion_units

    @property
    def nothing(self) -> tuple[int, ...]:
        """The cost of no query: rho, delta, plain epsilon."""
        return 0, 0, 0

    @property
    def event_delta_units(self) -> int:
        """A bound on the sum of the deltas of all events, whatever is asked."""
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
        return Amounts(math.inf, to_float(self.event_delta_units - spent[1]), is_left=True)

    def refusal(self, cost: Sequence[int], spent: Sequence[int]) -> BudgetExceededError:
        """Return the error for a charge whose delta does not fit."""
        return BudgetExceededError(
            f"delta {exact_text(cost[1])} was asked, but delta {exact_text(self.event_delta_units - spent[1])} is left "
            "for events; nothing was charged: ask for no more than is left, or set more of delta aside at creation by "
            "a smaller conversion_delta"
        )


def refuse_rho(accountant: str, rho: object) -> None:
    """Refuse a rho where a ledger adds up epsilons."""
    if accountant == "basic":
        allowed = 'left out: this ledger adds up epsilons (accountant "basic")'
        raise ParameterError("rho", rho, allowed, "write for example epsilon=1.0")


def allotment_of(
    rule: Filter, name: str, epsilon: object, rho: object, delta: object
) -> tuple[Filter, tuple[Charge, ...]]:
    """Return the filter of a part of a budget, and what the whole is charged for it."""
    description = f"allotment {name}"
    if not isinstance(rule, (Basic, Concentrated)):
        raise LedgerError(f'a ledger with the accountant "{rule.accountant}" has no allotments; use "basic" or "zcdp"')
    budget = read_budget(epsilon, delta, rho, selects_keys=True)
    part, delta_units = budget.units, budget.delta_units
    if isinstance(rule, Basic):
        if budget.kind == "rho":
            refuse_rho(rule.accountant, rho)
        return Basic(part, delta_units), (Charge(part, delta_units, description),)
    if budget.kind == "epsilon":
        allowed = 'left out: this ledger adds up rho (accountant "zcdp")'
        raise ParameterError("epsilon", epsilon, allowed, "write for example rho=0.1")
    # The whole converts its sum, at its own delta; the part only bounds its share of it.
    share = Concentrated(rule.epsilon_units, delta_units + rule.conversion_units, rule.conversion_units, 0, (part,))
    event = ZeroConcentrated(math.nextafter(to_float(part), math.inf))
    charges = [Charge(0, 0, description, event)]
    if delta_units:
        charges.append(Charge(0, delta_units, description))
    return share, tuple(charges)


def filter_of(accountant: str, terms: Sequence[int]) -> Filter:
    """Return the filter that a store kept by its `terms`."""
    if accountant == "basic" and len(terms) == 2:
        return Basic(*terms)
    if accountant == "odometer" and len(terms) == 3:
        return Odometer(*terms)
    if accountant == "zcdp" and len(terms) == 5:
        return Concentrated(terms[0], terms[1], terms[2], terms[4], (terms[3],))
    if accountant == "rdp" and len(terms) == 4 + len(rdp.ORDERS):
        return Renyi(terms[0], terms[1], terms[2], terms[3], tuple(terms[4:]))
    raise LedgerError(
        f"the ledger's accountant is {accountant!r}, kept as another version of dpfast keeps it; use that one"
    )
