"""Scores whose values no error may tell of: integers in a list saturate where their type would not hold them."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpfast.columns.column import Column
from dpfast.columns.kinds import borrow
from dpfast.errors import DataError

__all__ = ["borrow_saturating"]

_LOWEST, _LARGEST = -(2**63), 2**63 - 1
_EXACT = 2**53


def borrow_saturating(values: Any, argument: str) -> Column:
    """Borrow a column as `borrow` does, with the integers of a list clamped to int64, beside floats to 2**53.

    Guarantee
        Of integers, whether a column is accepted depends on its kind and type alone. Clamping to a public range moves
        no two numbers further apart, nor in another direction, so that it raises no sensitivity.

    Raises
    ------
    ColumnError, DataError
        As for `borrow`: of a type that is none of numbers.

    Examples
    --------
    >>> borrow_saturating([3, 2**64], "scores").block(0, 2)
    array([                  3, 9223372036854775807])

    """
    try:
        return borrow(values, argument)
    except DataError:
        return borrow(_clamped(values, float if _holds_floats(values) else int), argument)


def _clamped(values: Any, kind: type[int] | type[float]) -> Any:
    """Return integers, in lists or alone, clamped to what a kind of number holds exactly."""
    if isinstance(values, (list, tuple)):
        return [_clamped(value, kind) for value in values]
    if not isinstance(values, (int, np.integer)):
        return values
    low, high = (_LOWEST, _LARGEST) if kind is int else (-_EXACT, _EXACT)
    return kind(min(max(int(values), low), high))


def _holds_floats(values: Any) -> bool:
    if isinstance(values, (list, tuple)):
        return any(map(_holds_floats, values))
    return isinstance(values, (float, np.floating))
