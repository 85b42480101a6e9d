"""Rows unit by unit: a counting sort, made once for all who read rows in that order."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dpfast.aggregation.private import Private
from dpfast.kernels.grouping.bounding import count_unit_rows, sort_by_unit
from dpfast.threads import in_stretches, thread_count

__all__ = ["NumberedRows", "UnitOrder", "order_by_unit", "shares_of_rows"]

#: A unit's rows, about, from which on several threads sort.
_LEAST_ROWS = 4


@dataclass(frozen=True, repr=False)
class UnitOrder(Private):
    """Rows that have a unit and a group, unit by unit, and of one unit in the frame's order: exact and private.

    Attributes
    ----------
    starts : int64, one more than units
        Where the rows of each begin.
    groups : int32
        Their groups.
    rows : int32 or int64
        Which rows they are; None where that is not wanted.
    longest
        The most rows of a unit.

    """

    starts: np.ndarray
    groups: np.ndarray
    rows: np.ndarray | None
    longest: int


def order_by_unit(units: np.ndarray, number: int, groups: np.ndarray, *, rows: bool) -> UnitOrder:
    """Return rows unit by unit.

    Parameters
    ----------
    units, groups : int32
        Each row's unit, below ``number``, and group; -1 for none: such rows are left out.
    number
        How many units there may be.
    rows
        Whether it is wanted which rows they are.

    Examples
    --------
    >>> units, groups = np.array([1, 0, 1, -1, 0], np.int32), np.array([7, 8, 9, 7, -1], np.int32)
    >>> order = order_by_unit(units, 2, groups, rows=True)
    >>> order.starts.tolist(), order.groups.tolist(), np.asarray(order.rows).tolist()
    ([0, 1, 3], [8, 7, 9], [1, 0, 2])

    """
    # A table of units for each thread pays where units have several rows.
    threads = thread_count(None, len(units)) if _LEAST_ROWS * number <= len(units) else 1
    counts = np.zeros((threads, number + 1), np.int64)

    def count(first: int, last: int) -> None:
        for part in range(first, last):
            count_unit_rows(*_stretch(part, threads, units, groups)[1:], counts[part])

    in_stretches(count, threads, threads)
    starts = counts.sum(axis=0) if threads > 1 else counts[0]
    longest = int(starts.max())
    np.cumsum(starts, out=starts)
    kept = int(starts[-1])
    sorted_groups = np.empty(kept, np.int32)
    sorted_rows = np.empty(kept, np.int32 if len(units) < 2**31 else np.int64) if rows else None
    # Rows of each thread come after those of the threads before, so that a unit's rows stay in their order.
    if threads == 1:
        cursors = starts[None, :-1].copy()
    else:
        own = counts[:, 1:]
        cursors = starts[:-1] + np.cumsum(own, axis=0) - own

    def sort(first: int, last: int) -> None:
        for part in range(first, last):
            begin, own_units, own_groups = _stretch(part, threads, units, groups)
            sort_by_unit(own_units, own_groups, begin, cursors[part], sorted_groups, sorted_rows)

    in_stretches(sort, threads, threads)
    return UnitOrder(starts, sorted_groups, sorted_rows, longest)


def _stretch(part: int, parts: int, units: np.ndarray, groups: np.ndarray) -> tuple[int, np.ndarray, np.ndarray]:
    """Return the first row of a part, and its units and groups."""
    first, last = part * len(units) // parts, (part + 1) * len(units) // parts
    return first, units[first:last], groups[first:last]


def shares_of_rows(order: UnitOrder, threads: int) -> list[tuple[int, int]]:
    """Return stretches of units, one for each thread, that have about as many rows each.

    Examples
    --------
    >>> units = np.array([0, 0, 0, 0, 0, 0, 1, 2, 2], np.int32)
    >>> shares_of_rows(order_by_unit(units, 3, units, rows=False), 2)
    [(0, 1), (1, 3)]

    """
    number = order.starts.size - 1
    ends = np.searchsorted(order.starts, np.arange(threads + 1) * (order.groups.size / threads)).clip(0, number)
    ends[0], ends[-1] = 0, number
    return list(pairwise(ends.tolist()))


class NumberedRows(Private):
    """Each row's unit and group, and these rows unit by unit once somebody asks for that.

    Attributes
    ----------
    units, groups : int32
        Each row's unit, below ``number``, and group; -1 for none.
    number
        How many units there may be.
    sorts
        Whether somebody will ask for the rows unit by unit, and for which rows they are.

    """

    def __init__(self, units: np.ndarray, number: int, groups: np.ndarray, *, sorts: bool = False) -> None:
        self.units, self.number, self.groups, self.sorts = units, number, groups, sorts
        self._order: UnitOrder | None = None

    def order(self, *, rows: bool = False) -> UnitOrder:
        """Return the rows unit by unit, to be read only: the next one may ask for the same."""
        if self._order is None or (rows and self._order.rows is None):
            self._order = order_by_unit(self.units, self.number, self.groups, rows=rows or self.sorts)
        return self._order

    def take_order(self, *, rows: bool) -> UnitOrder:
        """Return the rows unit by unit for the last time: they may be overwritten."""
        order, self._order = self.order(rows=rows), None
        return order
