"""Rows unit by unit: a counting sort, made once for all who read rows in that order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpfast.aggregation.private import Private
from dpfast.kernels.grouping.bounding import count_unit_rows, sort_by_unit

__all__ = ["NumberedRows", "UnitOrder", "order_by_unit"]


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
    >>> order.starts.tolist(), order.groups.tolist(), order.rows.tolist()
    ([0, 1, 3], [8, 7, 9], [1, 0, 2])

    """
    starts = np.zeros(number + 1, np.int64)
    count_unit_rows(units, groups, starts)
    longest = int(starts.max())
    np.cumsum(starts, out=starts)
    kept = int(starts[-1])
    sorted_groups = np.empty(kept, np.int32)
    sorted_rows = np.empty(kept, np.int32 if len(units) < 2**31 else np.int64) if rows else None
    sort_by_unit(units, groups, starts[:-1].copy(), sorted_groups, sorted_rows)
    return UnitOrder(starts, sorted_groups, sorted_rows, longest)


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
