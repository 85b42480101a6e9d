"""Two mechanisms for `dpfast bench --mechanism`: one that keeps its promise, and one that looks as if it did.

    dpfast bench speed accuracy privacy --mechanism own_mechanism.py:geometric --quick
    dpfast bench privacy --mechanism own_mechanism.py:only_what_is_there --quick

Both take counts of disjoint groups by column, of which one person changes one count by one, and a budget.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping

import numpy as np

from dpfast.bench import Budget

_draw = np.random.default_rng(secrets.randbits(128))


def geometric(columns: Mapping[str, np.ndarray], budget: Budget) -> dict[str, np.ndarray]:
    """Add the difference of two geometric numbers to every count (Ghosh, Roughgarden, Sundararajan 2009)."""
    stop = 1 - np.exp(-1 / budget.scale)
    return {
        name: counts + _draw.geometric(stop, counts.size) - _draw.geometric(stop, counts.size)
        for name, counts in columns.items()
    }


def only_what_is_there(columns: Mapping[str, np.ndarray], budget: Budget) -> dict[str, np.ndarray]:
    """Add the same noise, but none where nothing was counted: a table stays sparse, and says who is not in it."""
    return {name: np.where(columns[name] == 0, 0, noisy) for name, noisy in geometric(columns, budget).items()}
