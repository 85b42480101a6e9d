"""What a synthesis may spend, and how its ledger is charged: whole, once, before anything is computed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from dpfast.accounting import basic
from dpfast.accounting.amounts import budget_units, share_units
from dpfast.accounting.events import Event, Gaussian, ZeroConcentrated, runs
from dpfast.errors import ParameterError
from dpfast.ledger import Charge, Ledger

__all__ = ["Spending", "charge_ledger", "read_spending"]


@dataclass(frozen=True)
class Spending:
    """A budget in units of 1e-18: of epsilon, with delta beside it, or of rho."""

    kind: Literal["epsilon", "rho"]
    units: int
    delta_units: int

    def split(self, parts: int, first: int) -> tuple[Spending, Spending]:
        """Return ``first`` of so many parts, rounded down, and the rest: together they are the whole."""
        units, delta = share_units(self.units, parts) * first, self.delta_units * first // parts
        return Spending(self.kind, units, delta), Spending(self.kind, self.units - units, self.delta_units - delta)


def read_spending(epsilon: object, delta: object, rho: object) -> Spending:
    """Return the budget that was given as (epsilon, delta) or as rho, rounded down."""
    if rho is None:
        if epsilon is None:
            raise ParameterError(
                "epsilon", None, "a number from 1e-18 to 1e6", "write for example epsilon=1.0, or rho=0.1"
            )
        return Spending("epsilon", budget_units(epsilon, "epsilon"), budget_units(delta, "delta"))
    if epsilon is not None:
        raise ParameterError("rho", rho, "left out where epsilon is given", "give one of both")
    if budget_units(delta, "delta"):
        raise ParameterError("delta", delta, "left out where rho is given", "a rho needs no delta")
    return Spending("rho", budget_units(rho, "epsilon", "rho"), 0)


def charge_ledger(
    ledger: object, spending: Spending, events: Iterable[Event], neighbors: str, description: str, random: object
) -> None:
    """Charge a ledger with all that a synthesis will do; without one do nothing.

    A ledger that adds up epsilons is charged the budget's (epsilon, delta), one that adds up rho the events.
    """
    if ledger is None:
        return
    if not isinstance(ledger, Ledger):
        raise ParameterError("ledger", ledger, "a dpfast.Ledger or None", "write ledger = dpf.Ledger(epsilon=1.0)")
    if random is not None:
        allowed = "None: a ledger accepts only fresh system randomness"
        raise ParameterError("random", random, allowed, "leave it out")
    charges = []
    if spending.kind == "epsilon" and ledger.accountant == "basic":
        charges.append(Charge(spending.units, spending.delta_units, description))
    else:
        for event, count in runs(tuple(events)).items():
            amounts = (0, 0) if isinstance(event, (Gaussian, ZeroConcentrated)) else basic.cost(event)
            charges.append(Charge(*amounts, description, event, count))
    own = ledger.identity
    ledger.charge_many(
        charges, dataset=own.dataset or "data", privacy_unit=own.privacy_unit or "row", neighbors=neighbors
    )
