"""Charges for what is calibrated whole, by its events, before anything is computed."""

from __future__ import annotations

from collections.abc import Iterable

from dpfast.accounting.accountants import basic
from dpfast.accounting.budget import Budget
from dpfast.accounting.events import Event, Gaussian, ZeroConcentrated, runs
from dpfast.ledger import Charge
from dpfast.ledger.payment import Payment

__all__ = ["charge_events"]


def charge_events(payment: Payment, budget: Budget, events: Iterable[Event], description: str) -> int | None:
    """Charge a ledger with all that will be drawn, and return the number of the first entry; None without a ledger.

    A ledger that adds up epsilons is charged the (epsilon, delta) that the events were calibrated to together; one that
    adds up rho or divergences, the events themselves.
    """
    if payment.ledger is None:
        return None
    if payment.ledger.accountant == "basic":
        return payment.charge([Charge(budget.units, budget.delta_units, description)])
    charges = []
    for event, count in runs(tuple(events)).items():
        amounts = (0, 0) if isinstance(event, (Gaussian, ZeroConcentrated)) else basic.cost(event)
        charges.append(Charge(*amounts, description, event, count))
    return payment.charge(charges)
