"""What a charge costs, in the sums that filters keep: whole units of 1e-18, rounded up."""

from __future__ import annotations

from dpfast.accounting.accountants import basic, zcdp
from dpfast.exact.amounts import LARGEST_EPSILON_UNITS
from dpfast.ledger.charges import ChargeColumns, Item

__all__ = ["NO_EPSILON", "plain_amounts", "plain_cost", "rho_cost", "times"]

#: The plain epsilon of what has none: no sum with it is within any budget.
NO_EPSILON = LARGEST_EPSILON_UNITS + 1


def plain_cost(item: Item) -> int:
    """Return the sum of the events' epsilons, or more than any budget where one has none."""
    amounts = plain_amounts(item)
    return NO_EPSILON if amounts is None else amounts[0]


def plain_amounts(item: Item) -> tuple[int, int] | None:
    """Return the sums of the events' epsilons and deltas, or None where one has no epsilon."""
    if isinstance(item, ChargeColumns):
        # Each row is charged no less than its event costs.
        return (item.epsilon_units, 0) if item.epsilon is not None and item.delta is None else None
    if item.event is None:
        epsilon, delta = item.epsilon_units, item.delta_units
    elif basic.Basic.applies(item.event):
        epsilon, delta = basic.cost(item.event)
    else:
        return None
    return epsilon * item.count, delta * item.count


def rho_cost(item: Item) -> tuple[int, int]:
    """Return the rho of a charge's queries, taken together, and their delta."""
    if isinstance(item, ChargeColumns):
        return zcdp.rho_units(item.kind, **item.parameters).total(), 0  # what columns can hold has no delta of its own
    # The amounts themselves, not the event that stands for them: its decimals may lie above.
    known = item.event is not None
    rho, delta = zcdp.cost(item.fact) if known else zcdp.claimed(item.epsilon_units, item.delta_units)
    return rho * item.count, delta * item.count


def times(order: float, units: int) -> int:
    """Return the product of an order and an amount, rounded up."""
    numerator, denominator = order.as_integer_ratio()
    return -(-numerator * units // denominator)
