"""What the methods of this room give back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from dpfast.accounting.events import Event
from dpfast.exact.amounts import UNITS_PER_ONE, to_decimal
from dpfast.ledger.charges import Charge
from dpfast.ledger.payment import Payment
from dpfast.showing import Shown
from dpfast.turns import Turns

__all__ = ["Cost", "Paid", "StableAnswer"]


@dataclass(frozen=True)
class Cost:
    """What one step of a method costs.

    Attributes
    ----------
    what
        The step, as it stands in the ledger.
    event
        What is known of it.
    epsilon, delta
        In units of 1e-18.

    """

    what: str
    event: Any
    epsilon: int
    delta: int = 0

    @property
    def charge(self) -> Charge:
        """The step as a ledger is charged for it."""
        return Charge(self.epsilon, self.delta, self.what, self.event)


@dataclass(frozen=True, repr=False)
class StableAnswer(Shown):
    """A private value, or none.

    Guarantee
        Everything here is together (epsilon, delta)-differentially private, by the theorem of the function that made
        it; reading it costs nothing.

    Attributes
    ----------
    value
        The value; None where a test did not pass, or where no value could be told apart from the others.
    epsilon, delta
        What it cost in all, each the float nearest to the amount charged.
    events
        What was done, for accountants.
    entry
        The number of the ledger's first entry for it; None without a ledger.

    Examples
    --------
    >>> import dpfast as dpf
    >>> answer = dpf.release_if_stable(["tea"] * 90 + ["milk"] * 10, "mode", epsilon=1.0, delta=1e-6)
    >>> answer.value
    'tea'

    """

    value: Any
    epsilon: float
    delta: float
    events: tuple[Event, ...]
    entry: int | None = None
    _told: tuple[str, ...] = field(default=(), repr=False)

    def explain(self) -> str:
        """Return in words what was done, what it cost and what came out.

        Nothing but parameters and the value stands there.
        """
        value = "no value: the test did not pass" if self.value is None else f"value {self.value!r}"
        cost = f"cost: epsilon {self.epsilon:.12g}" + (f", delta {self.delta:.12g}" if self.delta else "")
        return "\n".join([*self._told, cost, value])


class Paid:
    """What was charged, and the process that may have the answer.

    Parameters
    ----------
    payment
        The ledger that is charged, or none.
    costs
        All steps, charged at once.

    """

    def __init__(self, payment: Payment, costs: Sequence[Cost]) -> None:
        self._costs = tuple(costs)
        self._turns = Turns("the process was forked during a release: one charge would have been drawn twice")
        self._entry = payment.charge([cost.charge for cost in costs])

    def give(self, value: Any, told: Sequence[str]) -> StableAnswer:
        """Return a value with what it cost.

        Raises
        ------
        LedgerError
            A function of the user's has forked the process meanwhile, and this is the child.

        """
        self._turns.refuse_other_process()
        epsilon, delta = sum(cost.epsilon for cost in self._costs), sum(cost.delta for cost in self._costs)
        return StableAnswer(
            value,
            float(to_decimal(epsilon)),
            float(Fraction(delta, UNITS_PER_ONE)),
            tuple(cost.event for cost in self._costs),
            self._entry,
            tuple(told),
        )
