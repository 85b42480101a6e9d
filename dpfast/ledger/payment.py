"""Who pays for a release: a ledger that was checked before anything is computed, and is charged once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, TypeAlias

from dpfast.accounting.budget import Budget
from dpfast.arguments import Instance
from dpfast.errors import ParameterError
from dpfast.exact.amounts import to_float
from dpfast.ledger.account import Identity
from dpfast.ledger.charges import Charge, ChargeColumns
from dpfast.ledger.filters import refuse_rho
from dpfast.ledger.ledger import Ledger
from dpfast.ledger.receipt import Receipt, entry_of

__all__ = ["LEDGER", "Payer", "Payment", "pay", "read_payment", "refuse_repeatable"]

LEDGER = Instance(Ledger, "a dpfast.Ledger", mend="write ledger = dpf.Ledger(epsilon=1.0)")
#: The ledger that is charged, or None.
Payer: TypeAlias = Annotated[Ledger | None, replace(LEDGER, optional=True)]


@dataclass(frozen=True, slots=True)
class Payment:
    """A ledger, or none, and what the guarantee is about.

    Attributes
    ----------
    ledger
        What is charged; None where nobody keeps a budget.
    about
        Data, privacy unit and neighbour relation; what is None is the ledger's own, else "data", "row" and
        "add_remove".

    """

    ledger: Ledger | None
    about: Identity

    def charge(self, charges: Sequence[Charge | ChargeColumns]) -> int | None:
        """Charge the ledger for everything at once; return the number of the first entry, None without a ledger."""
        return entry_of(self.pay(charges))

    def pay(self, charges: Sequence[Charge | ChargeColumns]) -> Receipt | None:
        """Charge the ledger as `charge` does; return what it said of it, None without a ledger."""
        return None if self.ledger is None else pay(self.ledger, self.about, charges)


def pay(ledger: Ledger, about: Identity, charges: Sequence[Charge | ChargeColumns]) -> Receipt:
    """Charge a ledger for everything at once; what ``about`` leaves open is the ledger's own, or as in `Payment`."""
    own = ledger.identity
    identity = Identity(
        about.dataset or own.dataset or "data",
        about.privacy_unit or own.privacy_unit or "row",
        about.neighbors or own.neighbors or "add_remove",
    )
    if type(ledger).charge_many is Ledger.charge_many:
        numbers, after = ledger._record(charges, identity)
    else:  # a class of the user's has its say: it may refuse, or note what is charged
        numbers = ledger.charge_many(charges, **asdict(identity))
        after = ledger._opened().account(ledger._account)
    return Receipt(numbers[0], time.time_ns() // 1000, after.identity, after.filter, after.spent, tuple(charges))


def refuse_repeatable(random: object) -> None:
    """Refuse any source of randomness but the operating system's: what is charged must be secure."""
    if random is not None:
        raise ParameterError("random", random, "left out where a ledger is charged", "noise is secure then")


def read_payment(
    ledger: object,
    budget: Budget,
    random: object,
    *,
    neighbors: str,
    dataset: object = None,
    privacy_unit: object = None,
) -> Payment:
    """Return who pays; nothing is charged yet.

    Raises
    ------
    ParameterError
        The ledger is not a ledger, or it adds up something else than the budget. Or the noise could be repeated, or
        a name is not a string.

    """
    about = Identity(dataset, privacy_unit, neighbors)  # type: ignore[arg-type]
    if ledger is None:
        return Payment(None, about)
    checked = LEDGER.read("ledger", ledger)
    refuse_repeatable(random)
    if budget.kind == "rho":
        refuse_rho(checked.accountant, to_float(budget.units))
    return Payment(checked, about)
