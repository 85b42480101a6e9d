"""What privacy units hold: their groups, side by side, and these in a canonical order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpfast.aggregation.private import Private
from dpfast.kernels.grouping.policy import copy_units, number_units, order_units

__all__ = ["Holdings", "sorted_units"]


@dataclass(frozen=True, repr=False)
class Holdings(Private):
    """Which groups each unit holds: exact and private.

    Attributes
    ----------
    stops : int64, one per unit
        Where the unit's groups end; they begin where those of the unit before end.
    groups : int32
        Distinct groups of one unit after the other.

    """

    stops: NDArray[np.int64]
    groups: NDArray[np.int32]

    def renumbered(self, numbers: NDArray[np.int32]) -> Holdings:
        """Return the same with group g called ``numbers[g]``, in 4 bytes for each group that a unit holds."""
        return Holdings(self.stops, numbers[self.groups])


def sorted_units(part: Holdings, ranks: NDArray[np.int32], singles: NDArray[np.int64]) -> Holdings:
    """Return units of two keys or more in the canonical order, with key k called ``ranks[k]``.

    Parameters
    ----------
    part
        What some units hold.
    ranks
        The place of every key among all keys, sorted by their values.
    singles
        How many units hold a key alone, by its place: added to. They come last, and in any order, since each of them
        can only give all to its key.

    Examples
    --------
    >>> part, singles = Holdings(np.array([1, 3, 5]), np.array([2, 1, 0, 2, 1], np.int32)), np.zeros(3, np.int64)
    >>> units = sorted_units(part, np.array([1, 0, 2], np.int32), singles)
    >>> units.stops.tolist(), units.groups.tolist(), singles.tolist()
    ([2, 4], [0, 1, 0, 2], [0, 0, 1])

    """
    renumbered = part.renumbered(ranks)
    stops, groups = renumbered.stops, renumbered.groups
    sizes = np.diff(stops, prepend=0)
    keys = np.empty(stops.size, np.int64)
    holders, groups_in_key, unit_bits = number_units(stops, groups, int(sizes.max(initial=0)), singles, keys)
    keys.sort()
    order = np.empty(holders, np.int64)
    order_units(keys[:holders], groups_in_key, unit_bits, stops, groups, order, np.empty_like(order))
    found = Holdings(np.empty(holders, np.int64), np.empty(int(sizes[sizes > 1].sum()), np.int32))
    copy_units(stops, groups, order, found.stops, found.groups)
    return found
