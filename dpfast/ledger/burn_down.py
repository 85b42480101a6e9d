"""How a budget is used up, charge by charge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpfast.ledger.account import Account, Entry
from dpfast.ledger.shares import parts_left

__all__ = ["BurnDown", "burn_down"]

_MOST = 1500


@dataclass(frozen=True, eq=False)
class BurnDown:
    """What is left after charges; of very many, some of them, evenly spread, with the first and the last.

    Attributes
    ----------
    charges
        How many charges there were: 0 before the first, and then after each entry.
    descriptions
        What was charged then; empty before the first.
    left
        Of each amount by name which part of the budget is left, from 0 to 1.

    """

    charges: NDArray[np.int64]
    descriptions: list[str]
    left: dict[str, NDArray[np.float64]]


def burn_down(entries: Sequence[Entry], account: Account) -> BurnDown:
    """Return what was left of an account's budget after its own entries.

    Parameters
    ----------
    entries
        In the order of their numbers.
    account
        Their account.

    """
    rule = account.filter
    kept = np.unique(np.linspace(0, len(entries), min(len(entries) + 1, _MOST)).astype(np.int64))
    wanted, spent, count = set(kept.tolist()), rule.nothing, 0
    charges, descriptions, parts = [0], [""], [parts_left(rule, spent)]
    for place, entry in enumerate(entries, 1):
        spent = tuple(map(sum, zip(spent, entry.cost, strict=True)))
        count += entry.item.count
        if place in wanted:
            charges.append(count)
            descriptions.append(entry.item.description)
            parts.append(parts_left(rule, spent))
    left = {name: np.array([part[name] for part in parts]) for name in parts[0]}
    return BurnDown(np.array(charges), descriptions, left)
