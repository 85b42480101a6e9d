"""What a dpfast before format 3 kept of an account, read as it is kept today.

Since then the sums of zCDP, Rényi and odometer accounts have the plain epsilons beside them, and an odometer's delta is
divided at creation. Entries stay as they were sealed, without their plain epsilons, which are read as more than any
budget: so the plain bound admits nothing more once there are such entries, and the other sums go on as before.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpfast.accounting.accountants import rdp
from dpfast.errors import LedgerError
from dpfast.exact.amounts import exact_text
from dpfast.ledger.account import MAIN
from dpfast.ledger.costs import NO_EPSILON
from dpfast.ledger.filters import Filter, filter_of

__all__ = ["completed", "earlier_filter"]


def completed(cost: tuple[int, ...], length: int) -> tuple[int, ...]:
    """Return an entry's cost with the plain epsilon that earlier ones lack; ValueError where that is not all.

    Examples
    --------
    >>> completed((1, 2), 2), completed((1, 2), 3) == (1, 2, NO_EPSILON)
    ((1, 2), True)

    """
    lacking = length - len(cost)
    if lacking not in (0, 1):
        raise ValueError("a cost of another kind")
    return cost + (NO_EPSILON,) * lacking


def earlier_filter(place: str, name: str, accountant: str, terms: Sequence[int], spent: Sequence[int]) -> Filter:
    """Return today's filter of an account of a ledger that is not of today's format.

    Guarantee
        The (epsilon, delta) that was fixed at creation. Rho, the bounds of all orders, the conversion's delta and
        with it what remains for events are those that were fixed then. The plain bound is epsilon, or 0 for a part of
        another budget.

        An odometer read rho at its whole delta, and added the deltas of events to it as they came, without a bound.
        It is read as one of that delta whose halves are for the conversion and for events, whatever was spent; one
        that has spent more is refused. Up to the moment when the deltas exceed a half, which is known before the
        answer, all deltas add up to at most that half, on every path: so with probability at least 1 - delta the
        loss is at every time up to then at most what is shown (`Odometer`), and after it nothing is shown.

    Raises
    ------
    LedgerError
        If events have taken more than a half of an odometer's delta, or the terms are of no known kind.

    """
    if accountant == "zcdp" and len(terms) == 4:
        return filter_of(accountant, (*terms, terms[0] if name == MAIN else 0))
    if accountant == "rdp" and len(terms) == 3 + len(rdp.ORDERS):
        return filter_of(accountant, (*terms[:3], terms[0], *terms[3:]))
    if accountant == "odometer" and len(terms) == len(spent) == 2:
        rule = filter_of(accountant, (*terms, -(-terms[1] // 2)))
        if spent[1] > rule.event_delta_units:
            raise LedgerError(
                f"the ledger {place} is an odometer of an earlier dpfast, in which events have taken delta "
                f"{exact_text(spent[1])}, more than a half of its delta {exact_text(terms[1])}: what it shows is no "
                "bound, since they might have taken any; read it with the dpfast that made it, and count what is "
                "still asked in a new ledger"
            )
        return rule
    return filter_of(accountant, terms)
