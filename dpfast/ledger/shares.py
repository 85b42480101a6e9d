"""Which part of a budget is spent, whatever is added up."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpfast.ledger.filters import Filter, Renyi

__all__ = ["is_bounded", "parts_left", "spent_share"]

_NAMED = ("epsilon", "rho", "divergence", "delta")


def parts_left(rule: Filter, spent: Sequence[int]) -> dict[str, float]:
    """Return which part of each amount is left, from 0 to 1; what has no end, and what there was none of, is left out.

    Examples
    --------
    >>> from dpfast.ledger.filters import Basic
    >>> parts_left(Basic(10**18, 0), (250 * 10**15, 0))
    {'epsilon': 0.75}

    """
    left, first = rule.left(spent), rule.left(rule.nothing)
    if isinstance(rule, Renyi):
        # Each order has a bound of its own: what counts is the one that leaves most of it.
        first = rule.whole(spent)
    named = [name for name in _NAMED if hasattr(left, name)]
    amounts = {name: (getattr(left, name), getattr(first, name)) for name in named}
    return {
        name: min(max(now / once, 0.0), 1.0)
        for name, (now, once) in amounts.items()
        if math.isfinite(once) and once > 0
    }


def spent_share(rule: Filter, spent: Sequence[int]) -> float:
    """Return how much of the budget is spent, of what goes first; NaN where epsilon has no end.

    Examples
    --------
    >>> from dpfast.ledger.filters import Basic, Odometer
    >>> spent_share(Basic(10**18, 0), (250 * 10**15, 0)), spent_share(Odometer(10**12, 0, 10**11), (1, 0, 0))
    (0.25, nan)

    """
    parts = parts_left(rule, spent).values()
    return 1.0 - min(parts) if parts and is_bounded(rule) else math.nan


def is_bounded(rule: Filter) -> bool:
    """Return whether what may be spent has an end: all but an odometer's has."""
    return math.isfinite(rule.total.epsilon)
