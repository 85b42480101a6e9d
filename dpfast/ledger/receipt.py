"""What a ledger says of a charge when it was made."""

from __future__ import annotations

import operator
from dataclasses import dataclass

from dpfast.ledger.account import Identity, cost_of
from dpfast.ledger.charges import Charge, ChargeColumns
from dpfast.ledger.filters import Filter

__all__ = ["Receipt", "entry_of"]


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a ledger said of a charge when it was made, in one step: nobody charged it between before and after.

    Attributes
    ----------
    entry
        The number of the first charge.
    time
        Microseconds since 1970 (UTC).
    about
        What the guarantee is about.
    rule
        How charges add up.
    after
        The sums after the charge.
    items
        What was charged.

    """

    entry: int
    time: int
    about: Identity
    rule: Filter
    after: tuple[int, ...]
    items: tuple[Charge | ChargeColumns, ...]

    @property
    def cost(self) -> tuple[int, ...]:
        """What was charged, added up by the rule."""
        return cost_of(self.rule, self.items)

    @property
    def before(self) -> tuple[int, ...]:
        """The sums before the charge."""
        return tuple(map(operator.sub, self.after, self.cost))


def entry_of(paid: Receipt | None) -> int | None:
    """Return the number of the first charge; None without a ledger."""
    return None if paid is None else paid.entry
