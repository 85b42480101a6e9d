"""What comes in a step: a number for each counter, or rows that are counted and added up by counter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Private
from dpfast.columns import Column
from dpfast.columns.declarations import AnyColumn, wrong_columns
from dpfast.columns.private import borrow_integers
from dpfast.errors import ParameterError, Words

__all__ = ["Increments", "Values", "sums_of_rows", "whole_numbers"]

#: One number for each counter; a number for a single one.
Increments: TypeAlias = Annotated[
    AnyColumn | Sequence[Any] | int, Private(lambda: [*wrong_columns(least=0, whole=True, private=True), 0.5])
]
#: One number for each row.
Values: TypeAlias = Annotated[
    AnyColumn | Sequence[Any] | None,
    Private(lambda: [*wrong_columns(whole=True, private=True), [1] * 17], optional=True),
]
_HALF, _LOW, _FAR = 20, (1 << 20) - 1, 1 << 42
_ROUND = "round them, or count in smaller units"


def whole_numbers(column: Column) -> NDArray[np.int64]:
    """Return a column's whole numbers, read-only, with 0 for nulls."""
    numbers = column.block(0, column.length)
    missing = column.missing(0, column.length)
    if numbers.dtype != np.int64 or missing is not None:
        numbers = numbers.astype(np.int64)
    if missing is not None:
        numbers[missing] = 0
    numbers.flags.writeable = False
    return numbers


def sums_of_rows(groups: Any, values: Any, counters: int, bounds: tuple[int, int]) -> NDArray[np.int64]:
    """Return for each counter how many rows it has, or the sum of their values, moved into the bounds.

    A sum is exact within 2**61 of 0, and beyond it on the same side: it never wraps.

    Raises
    ------
    ParameterError, ColumnError
        A column is none of whole numbers, or they differ in length.

    Examples
    --------
    >>> sums_of_rows([0, 2, 2, 9], None, 3, (0, 1)), sums_of_rows([0, 2, 2, 9], [5, -1, 3, 1], 3, (0, 4))
    (array([1, 0, 2]), array([4, 0, 3]))

    """
    codes = borrow_integers(groups, "groups", "give whole numbers")
    numbers = whole_numbers(codes)
    kept = (numbers >= 0) & (numbers < counters)
    missing = codes.missing(0, codes.length)
    if missing is not None:
        kept &= ~missing
    if values is None:
        return np.bincount(numbers[kept], minlength=counters).astype(np.int64)
    column = borrow_integers(values, "values", _ROUND)
    if column.length != codes.length:
        raise ParameterError("values", Words(f"of {column.length} rows"), f"of {codes.length}, as groups are")
    places, moved = numbers[kept], np.clip(whole_numbers(column), *bounds)[kept]
    # In two halves, of which no sum wraps: 2**31 rows of 2**40 pass what int64 holds.
    low, high = np.zeros((2, counters), np.int64)
    np.add.at(low, places, moved & _LOW)
    np.add.at(high, places, moved >> _HALF)
    # A high half beyond 2**42 is a sum beyond 2**61, to which every increment is moved.
    return (np.clip(high, -_FAR, _FAR) << _HALF) + low
