"""What comes in a step: a number for each counter, or rows that are counted and added up by counter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Private
from dpfast.columns import BLOCK_ROWS, Column
from dpfast.columns.declarations import AnyColumn, wrong_columns
from dpfast.columns.private import borrow_integers
from dpfast.errors import ParameterError, Words

__all__ = ["Increments", "Values", "known_numbers", "sums_of_rows", "whole_numbers"]

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


def whole_numbers(column: Column, start: int = 0, stop: int | None = None) -> NDArray[np.int64]:
    """Return the whole numbers of rows of a column, or of all, read-only, with 0 for nulls."""
    last = column.length if stop is None else stop
    numbers = column.block(start, last)
    missing = column.missing(start, last)
    if numbers.dtype != np.int64 or missing is not None:
        numbers = numbers.astype(np.int64)
    if missing is not None:
        numbers[missing] = 0
    numbers.flags.writeable = False
    return numbers


def known_numbers(
    column: Column, start: int, stop: int, least_unknown: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the whole numbers of rows of a column, and where they are from 0 on, below another, and no nulls."""
    numbers = whole_numbers(column, start, stop)
    known = (numbers >= 0) & (numbers < least_unknown)
    missing = column.missing(start, stop)
    if missing is not None:
        known &= ~missing
    return numbers, known


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
    column = None if values is None else borrow_integers(values, "values", _ROUND)
    if column is not None and column.length != codes.length:
        raise ParameterError("values", Words(f"of {column.length} rows"), f"of {codes.length}, as groups are")
    # In two halves, of which no sum wraps: 2**31 rows of 2**40 pass what int64 holds.
    low, high = np.zeros((2, counters), np.int64)
    for start in range(0, codes.length, BLOCK_ROWS):
        stop = min(start + BLOCK_ROWS, codes.length)
        numbers, kept = known_numbers(codes, start, stop, counters)
        if column is None:
            np.add.at(low, numbers[kept], 1)
        else:
            moved = np.clip(whole_numbers(column, start, stop), *bounds)[kept]
            np.add.at(low, numbers[kept], moved & _LOW)
            np.add.at(high, numbers[kept], moved >> _HALF)
    # A high half beyond 2**42 is a sum beyond 2**61, to which every increment is moved.
    return (np.clip(high, -_FAR, _FAR) << _HALF) + low
