"""Charges for what is calibrated whole, by its events, before anything is computed; and which data are neighbours."""

from __future__ import annotations

from collections.abc import Iterable

from dpfast.accounting.accountants import basic, zcdp
from dpfast.accounting.budget import Budget, ShownAmounts
from dpfast.accounting.events import Event, Gaussian, ZeroConcentrated, runs
from dpfast.accounting.privacy_unit import Neighbors, read_neighbors
from dpfast.domain.domain import Domain
from dpfast.errors import ParameterError, Words
from dpfast.ledger import Charge
from dpfast.ledger.payment import LEDGER, Payment
from dpfast.ledger.receipt import Receipt

__all__ = ["charge_events", "charges_whole", "ledger_charges_whole", "planned_charge", "read_relation"]


def charge_events(payment: Payment, budget: Budget, events: Iterable[Event], description: str) -> Receipt | None:
    """Charge a ledger with all that will be drawn, and return what it said of it; None without a ledger.

    A ledger that adds up epsilons is charged the (epsilon, delta) that the events were calibrated to together; one that
    adds up rho or divergences, the events themselves.
    """
    if payment.ledger is None:
        return None
    if charges_whole(payment.ledger.accountant):
        return payment.pay([Charge(budget.units, budget.delta_units, description)])
    charges = []
    for event, count in runs(tuple(events)).items():
        amounts = (0, 0) if isinstance(event, (Gaussian, ZeroConcentrated)) else basic.cost(event)
        charges.append(Charge(*amounts, description, event, count))
    return payment.pay(charges)


def charges_whole(accountant: str) -> bool:
    """Return whether a ledger is charged the (epsilon, delta) that events are calibrated to, and not the events."""
    return accountant == "basic"


def ledger_charges_whole(ledger: object) -> bool:
    """Return what `charges_whole` says of a ledger that a user gave; True where None was given."""
    return ledger is None or charges_whole(LEDGER.read("ledger", ledger).accountant)


def planned_charge(accountant: str, budget: Budget, events: Iterable[Event]) -> ShownAmounts:
    """Return what a ledger will be charged: the budget where it adds up epsilons, else the rho of the events."""
    if charges_whole(accountant):
        return budget.shown
    rho, delta = zcdp.cost(tuple(events))
    return Budget("rho", rho, delta).shown


def read_relation(neighbors: object, domain: Domain) -> Neighbors:
    """Read which data are neighbours: where rows are replaced their number is public, and none may be left out."""
    relation = read_neighbors(neighbors)
    if relation == "replace" and domain.outside != "null":
        left_out = Words('"replace" beside a domain that may leave rows out, whose number would be shown')
        raise ParameterError("neighbors", left_out, '"add_remove"', 'or write dpf.Domain(..., outside="null")')
    return relation
