"""Budgets of (epsilon, delta) or rho for what is charged whole, by its events, before anything is computed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dpfast.accounting import basic
from dpfast.accounting.amounts import budget_units, to_float
from dpfast.accounting.events import Event, Gaussian, ZeroConcentrated, runs
from dpfast.errors import ParameterError
from dpfast.ledger import Charge, Ledger
from dpfast.ledger.filters import Budget, ConcentratedBudget
from dpfast.synthesis.budget import Total, charge_all

__all__ = ["Spending", "charge_events", "read_spending"]


@dataclass(frozen=True, slots=True)
class Spending(Total):
    """A whole budget with a delta beside it, in units of 1e-18."""

    delta_units: int

    @property
    def spent(self) -> Budget | ConcentratedBudget:
        """The budget as it is shown."""
        amount, delta = to_float(self.units), to_float(self.delta_units)
        return Budget(amount, delta) if self.kind == "epsilon" else ConcentratedBudget(amount, delta)


def read_spending(epsilon: object, delta: object, rho: object) -> Spending:
    """Return the budget that was given as (epsilon, delta) or as rho, rounded down."""
    total = Total.read(epsilon, rho)
    units = budget_units(delta, "delta")
    if units and total.kind == "rho":
        raise ParameterError("delta", delta, "left out where rho is given", "a rho needs no delta")
    return Spending(total.kind, total.units, units)


def charge_events(
    ledger: Ledger | None,
    spending: Spending,
    events: Iterable[Event],
    description: str,
    neighbors: str,
    dataset: str | None,
    privacy_unit: str | None,
) -> int | None:
    """Charge a ledger with all that will be drawn, and return the number of the first entry; None without a ledger.

    A ledger that adds up epsilons is charged the (epsilon, delta) that the events were calibrated to together; one that
    adds up rho or divergences, the events themselves.
    """
    if ledger is None:
        return None
    if ledger.accountant == "basic":
        charges = [Charge(spending.units, spending.delta_units, description)]
    else:
        charges = []
        for event, count in runs(tuple(events)).items():
            amounts = (0, 0) if isinstance(event, (Gaussian, ZeroConcentrated)) else basic.cost(event)
            charges.append(Charge(*amounts, description, event, count))
    return charge_all(ledger, charges, neighbors, dataset, privacy_unit)
