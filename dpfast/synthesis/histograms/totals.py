"""Counts that are moved to a total that is known better than they are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["nearest_of_total"]

Floats = NDArray[np.float64]


def nearest_of_total(counts: Floats, total: float) -> Floats:
    """Return the nearest counts that are 0 or more and add up to a total above 0 (Held, Wolfe, Crowder 1974)."""
    descending = np.sort(counts)[::-1]
    excess = (np.cumsum(descending) - total) / np.arange(1, counts.size + 1)
    taken = excess[np.flatnonzero(descending >= excess)[-1]]
    found: Floats = np.maximum(counts - taken, 0.0)
    return found
