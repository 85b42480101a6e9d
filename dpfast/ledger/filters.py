"""Privacy filters: what a charge costs, and whether it still fits, by one way of adding up.

A filter is fixed when its ledger is created. It stays valid however the queries are chosen, even by somebody who
reads every answer before the next question: the sums it keeps are of costs that may depend on the answers before
them, held below a bound that was fixed before the first one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Protocol

from dpfast.accounting import rdp, zcdp
from dpfast.accounting.amounts import UNITS_PER_ONE, budget_units, to_decimal, to_float
from dpfast.accounting.events import ZeroConcentrated
from dpfast.accounting.odometer import odometer_epsilon
from dpfast.errors import BudgetExceededError, LedgerError, ParameterError
from dpfast.ledger.charges import Charge, ChargeColumns, Item

__all__ = [
    "ACCOUNTANTS",
    "Basic",
    "Budget",
    "Concentrated",
    "ConcentratedBudget",
    "Filter",
    "Renyi",
    "RenyiBudget",
    "allotment_of",
    "filter_of",
    "make_filter",
]

ACCOUNTANTS = ("basic", "zcdp", "rdp", "odometer")


@dataclass(frozen=True, slots=True)
class Budget:
    """An amount of (epsilon, delta), each the float nearest to the exact amount."""

    epsilon: float
    delta: float

    def __str__(self) -> str:
        return f"epsilon {self.epsilon:.12g}, delta {self.delta:.12g}"


@dataclass(frozen=True, slots=True)
class ConcentratedBudget:
    """An amount of zero-concentrated privacy with a delta beside it (Bun, Steinke 2016)."""

    rho: float
    delta: float

    def __str__(self) -> str:
        return f"rho {self.rho:.12g}, delta {self.delta:.12g}"


@dataclass(frozen=True, slots=True)
class RenyiBudget:
    """The order that leaves most, its divergence, and a delta beside it (Mironov 2017)."""

    order: float
    divergence: float
    delta: float

    def __str__(self) -> str:
        return f"divergence {self.divergence:.12g} at order {self.order:g}, delta {self.delta:.12g}"


class Filter(Protocol):
    """A way of adding up, with its bounds; all amounts are units of 1e-18."""

    accountant: ClassVar[str]

    @property
    def total(self) -> Budget:
        """The (epsilon, delta) that all answers together keep."""

    @property
    def terms(self) -> tuple[int, ...]:
        """What a store keeps, for `filter_of`."""

    @property
    def nothing(self) -> tuple[int, ...]:
        """The cost of no query."""

    def cost(self, item: Item) -> tuple[int, ...]:
        """Return what a charge costs, its queries taken together, rounded up."""

    def admits(self, spent: Sequence[int]) -> bool:
        """Return whether so much may be spent."""

    def shown(self, spent: Sequence[int]) -> Budget | ConcentratedBudget | RenyiBudget:
        """Return an amount for people."""

    def left(self, spent: Sequence[int]) -> Budget | ConcentratedBudget | RenyiBudget:
        """Return what remains, for people."""

    def refusal(self, cost: Sequence[int], spent: Sequence[int]) -> BudgetExceededError:
        """Return the error for a charge that does not fit."""


@dataclass(frozen=True, slots=True)
class Basic:
    """Basic composition: epsilons and deltas add up.

    Guarantee
        (epsilon, delta)-differential privacy of all answers together, with no other assumption than that each
        charge is true (Dwork, Kenthapadi, McSherry, Mironov, Naor 2006, theorem 1; adaptively: Rogers, Roth,
        Ullman, Vadhan 2016).
    """

    accountant: ClassVar[str] = "basic"
    epsilon_units: int
    delta_units: int

    @property
    def total(self) -> Budget:
        """The (epsilon, delta) that all answers together keep."""
        return Budget(to_float(self.epsilon_units), to_float(self.delta_units))

    @property
    def terms(self) -> tuple[int, ...]:
        """What a store keeps, for `filter_of`."""
        return self.epsilon_units, self.delta_units

    @property
    def nothing(self) -> tuple[int, ...]:
        """The cost of no query."""
        return 0, 0

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

    def shown(self, spent: Sequence[int]) -> Budget:
        """Return an amount for people."""
        return Budget(to_float(spent[0]), to_float(spent[1]))

    def left(self, spent: Sequence[int]) -> Budget:
        """Return what remains, for people."""
        return Budget(to_float(self.epsilon_units - spent[0]), to_float(self.delta_units - spent[1]))

    def refusal(self, cost: Sequence[int], spent: Sequence[int]) -> BudgetExceededError:
        """Return the error for a charge that does not fit."""
        return BudgetExceededError(
            f"epsilon {to_decimal(cost[0])} and delta {to_decimal(cost[1])} were asked, but epsilon "
            f"{to_decimal(self.epsilon_units - spent[0])} and delta {to_decimal(self.delta_units - spent[1])} are "
            "left; nothing was charged: ask for no more than is left"
        )


@dataclass(frozen=True, slots=True)
class Concentrated:
    """Zero-concentrated privacy: rhos add up, and the deltas of approximate events beside them.

    Guarantee
        While the sum of rho stays within a bound fixed at creation, all answers together are
        (epsilon, conversion delta)-differentially private, and with the deltas of the events beside them
        (epsilon, delta) (Bun, Steinke 2016; adaptively: Whitehouse, Ramdas, Rogers, Wu 2023, theorem 1;
        conversion: Canonne, Kamath, Steinke 2020).
    """

    accountant: ClassVar[str] = "zcdp"
    epsilon_units: int
    delta_units: int
    conversion_units: int
    rho_units: int

    @property
    def total(self) -> Budget:
        """The (epsilon, delta) that all answers together keep."""
        return Budget(to_float(self.epsilon_units), to_float(self.delta_units))

    @property
    def terms(self) -> tuple[int, ...]:
        """What a store keeps, for `filter_of`."""
        return self.epsilon_units, self.delta_units, self.conversion_units, self.rho_units

    @property
    def nothing(self) -> tuple[int, ...]:
        """The cost of no query."""
        return 0, 0

    @property
    def _delta_bound(self) -> int:
        return self.delta_units - self.conversion_units

    def cost(self, item: Item) -> tuple[int, ...]:
        """Return what a charge costs."""
        return _rho_cost(item)

    def admits(self, spent: Sequence[int]) -> bool:
        """Return whether so much may be spent."""
        return spent[0] <= self.rho_units and spent[1] <= self._delta_bound

    def shown(self, spent: Sequence[int]) -> ConcentratedBudget:
        """Return an amount for people."""
        return ConcentratedBudget(to_float(spent[0]), to_float(spent[1]))

    def left(self, spent: Sequence[int]) -> ConcentratedBudget:
        """Return what remains, for people."""
        return self.shown((self.rho_units - spent[0], self._delta_bound - spent[1]))

    def refusal(self, cost: Sequence[int], spent: Sequence[int]) -> BudgetExceededError:
        """Return the error for a charge that does not fit."""
        return BudgetExceededError(
            f"rho {to_decimal(cost[0])} and delta {to_decimal(cost[1])} were asked, but rho "
            f"{to_decimal(self.rho_units - spent[0])} and delta {to_decimal(self._delta_bound - spent[1])} are "
            "left; nothing was charged: ask for no more than is left"
        )


@dataclass(frozen=True, slots=True)
class Renyi:
    """Rényi divergences of many orders add up, each by itself, and deltas of approximate events beside them.

    Guarantee
        A charge is admitted while some order stays within its bound, fixed at creation. Then all answers
        together are (epsilon, delta)-differentially private, although which order that is may depend on the
        answers: every order has a share of delta of its own (`dpfast.accounting.rdp.filter_caps`).
    """

    accountant: ClassVar[str] = "rdp"
    epsilon_units: int
    delta_units: int
    conversion_units: int
    bounds: tuple[int, ...]

    @property
    def total(self) -> Budget:
        """The (epsilon, delta) that all answers together keep."""
        return Budget(to_float(self.epsilon_units), to_float(self.delta_units))

    @property
    def terms(self) -> tuple[int, ...]:
        """What a store keeps, for `filter_of`."""
        return self.epsilon_units, self.delta_units, self.conversion_units, *self.bounds

    @property
    def nothing(self) -> tuple[int, ...]:
        """The cost of no query."""
        return (0,) * (len(self.bounds) + 1)

    def cost(self, item: Item) -> tuple[int, ...]:
        """Return what a charge costs."""
        if isinstance(item, ChargeColumns):
            # Divergences of order a are at most a rho: one number a row, where the curve would be a hundred.
            rho = zcdp.rho_units(item.kind, **item.parameters).total()
            return *(_times(order, rho) for order in rdp.ORDERS), 0
        divergences, delta = rdp.cost(item.fact)
        return *(units * item.count for units in divergences), delta * item.count

    def admits(self, spent: Sequence[int]) -> bool:
        """Return whether so much may be spent."""
        if spent[-1] > self.delta_units - self.conversion_units:
            return False
        return any(sum_ <= bound for sum_, bound in zip(spent, self.bounds, strict=False))

    def _roomiest(self, spent: Sequence[int]) -> int:
        """Return the order that leaves the largest part of its bound."""
        return max(range(len(self.bounds)), key=lambda i: Fraction(self.bounds[i] - spent[i], self.bounds[i] or 1))

    def shown(self, spent: Sequence[int]) -> RenyiBudget:
        """Return an amount for people."""
        i = self._roomiest(spent)
        return RenyiBudget(rdp.ORDERS[i], to_float(spent[i]), to_float(spent[-1]))

    def left(self, spent: Sequence[int]) -> RenyiBudget:
        """Return what remains, for people."""
        i = self._roomiest(spent)
        delta = self.delta_units - self.conversion_units - spent[-1]
        return RenyiBudget(rdp.ORDERS[i], to_float(self.bounds[i] - spent[i]), to_float(delta))

    def refusal(self, cost: Sequence[int], spent: Sequence[int]) -> BudgetExceededError:
        """Return the error for a charge that does not fit."""
        left = self.left(spent)
        i = self._roomiest(spent)
        return BudgetExceededError(
            f"a divergence of {to_float(cost[i]):g} at order {left.order:g} and delta {to_decimal(cost[-1])} were "
            f"asked, but {left.divergence:g} and {left.delta:g} are left, and no other order has room; nothing was "
            "charged: ask for no more than is left"
        )


@dataclass(frozen=True, slots=True)
class Odometer:
    """No bound: rhos add up as in zCDP, and what they amount to so far holds whenever one stops.

    Guarantee
        At any time all answers so far are (epsilon, delta)-differentially private at the figures of `shown`
        (`dpfast.accounting.odometer`), with the deltas of approximate events beside.
    """

    accountant: ClassVar[str] = "odometer"
    delta_units: int

    @property
    def total(self) -> Budget:
        """No bound."""
        return Budget(math.inf, 1.0)

    @property
    def terms(self) -> tuple[int, ...]:
        """What a store keeps, for `filter_of`: no epsilon, and delta."""
        return 0, self.delta_units

    @property
    def nothing(self) -> tuple[int, ...]:
        """The cost of no query."""
        return 0, 0

    def cost(self, item: Item) -> tuple[int, ...]:
        """Return what a charge costs."""
        return _rho_cost(item)

    def admits(self, spent: Sequence[int]) -> bool:
        """Return whether so much may be spent: always."""
        return True

    def shown(self, spent: Sequence[int]) -> Budget:
        """Return the (epsilon, delta) of everything so far."""
        rho = math.nextafter(to_float(spent[0]), math.inf) if spent[0] else 0.0
        epsilon = odometer_epsilon(rho, Fraction(self.delta_units, UNITS_PER_ONE))
        return Budget(epsilon, to_float(self.delta_units + spent[1]))

    def left(self, spent: Sequence[int]) -> Budget:
        """Return what remains: no bound."""
        return self.total

    def refusal(self, cost: Sequence[int], spent: Sequence[int]) -> BudgetExceededError:
        """Return an error that is never raised."""
        return BudgetExceededError("an odometer has no bound")


def _rho_cost(item: Item) -> tuple[int, int]:
    if isinstance(item, ChargeColumns):
        return zcdp.rho_units(item.kind, **item.parameters).total(), 0  # what columns can hold has no delta of its own
    rho, delta = zcdp.cost(item.fact)
    return rho * item.count, delta * item.count


def _times(order: float, units: int) -> int:
    numerator, denominator = order.as_integer_ratio()
    return -(-numerator * units // denominator)


def allotment_of(
    rule: Filter, name: str, epsilon: object, rho: object, delta: object
) -> tuple[Filter, tuple[Charge, ...]]:
    """Return the filter of a part of a budget, and what the whole is charged for it."""
    description = f"allotment {name}"
    delta_units = budget_units(delta, "delta")
    if isinstance(rule, Basic):
        if rho is not None:
            raise ParameterError("rho", rho, 'left out: this ledger\'s accountant is "basic"', "give epsilon")
        part = budget_units(epsilon, "epsilon")
        return Basic(part, delta_units), (Charge(part, delta_units, description),)
    if isinstance(rule, Concentrated):
        if epsilon is not None:
            raise ParameterError("epsilon", epsilon, 'left out: this ledger\'s accountant is "zcdp"', "give rho")
        part = budget_units(rho, "epsilon", "rho")
        # The whole converts its sum, at its own delta; the part only bounds its share of it.
        share = Concentrated(rule.epsilon_units, delta_units + rule.conversion_units, rule.conversion_units, part)
        event = ZeroConcentrated(math.nextafter(to_float(part), math.inf))
        charges = [Charge(0, 0, description, event)]
        if delta_units:
            charges.append(Charge(0, delta_units, description))
        return share, tuple(charges)
    raise LedgerError(f'a ledger with the accountant "{rule.accountant}" has no allotments; use "basic" or "zcdp"')


def make_filter(accountant: object, epsilon_units: int, delta_units: int, conversion_units: int | None) -> Filter:
    """Return a new filter for a budget of (epsilon, delta).

    Parameters
    ----------
    accountant
        "basic", "zcdp", "rdp" or "odometer".
    epsilon_units, delta_units
        The budget.
    conversion_units
        The part of delta that turns the sums into (epsilon, delta); the rest is for events that have a delta
        of their own. None: half of it. Only for zcdp and rdp.

    """
    if type(accountant) is not str or accountant not in ACCOUNTANTS:
        raise ParameterError("accountant", accountant, '"basic", "zcdp", "rdp" or "odometer"')
    if accountant == "odometer":
        if not delta_units:
            raise ParameterError("delta", 0, "above 0 for an odometer", "write for example delta=1e-6")
        return Odometer(delta_units)
    if accountant == "basic":
        if conversion_units is not None:
            raise ParameterError("conversion_delta", conversion_units / UNITS_PER_ONE, "left out: nothing is converted")
        return Basic(epsilon_units, delta_units)
    if conversion_units is None:
        conversion_units = -(-delta_units // 2)
    if not (0 < conversion_units <= delta_units):
        given = to_float(conversion_units or delta_units)
        raise ParameterError(
            "conversion_delta" if conversion_units else "delta",
            given,
            f'above 0 and at most delta for the accountant "{accountant}"',
            "give a delta, for example 1e-6",
        )
    epsilon, delta = Fraction(epsilon_units, UNITS_PER_ONE), Fraction(conversion_units, UNITS_PER_ONE)
    if accountant == "zcdp":
        return Concentrated(epsilon_units, delta_units, conversion_units, zcdp.largest_rho(epsilon, delta))
    return Renyi(epsilon_units, delta_units, conversion_units, rdp.filter_caps(epsilon, delta))


def filter_of(accountant: str, terms: Sequence[int]) -> Filter:
    """Return the filter that a store kept by its `terms`."""
    if accountant == "basic" and len(terms) == 2:
        return Basic(*terms)
    if accountant == "odometer" and len(terms) == 2:
        return Odometer(terms[1])
    if accountant == "zcdp" and len(terms) == 4:
        return Concentrated(*terms)
    if accountant == "rdp" and len(terms) == 3 + len(rdp.ORDERS):
        return Renyi(terms[0], terms[1], terms[2], tuple(terms[3:]))
    raise LedgerError(f"the ledger's accountant is {accountant!r}, which this dpfast does not know; upgrade dpfast")
