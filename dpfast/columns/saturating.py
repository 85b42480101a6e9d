"""Scores and statistics in lists: integers saturate where a type would not hold them, and no error tells of them."""

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
    if isinstance(values, (list, tuple)) and _mixes(_kinds(values)):
        # Always, or integers that float64 holds would stay and the next ones move far away.
        return borrow(_clamped(values, float), argument)
    try:
        return borrow(values, argument)
    except DataError:
        return borrow(_clamped(values, int), argument)


def _clamped(values: Any, kind: type[int] | type[float]) -> Any:
    """Return integers, in lists or alone, clamped to what a kind of number holds exactly."""
    if isinstance(values, (list, tuple)):
        return [_clamped(value, kind) for value in values]
    if not isinstance(values, (int, np.integer)) or isinstance(values, bool):
        return values
    low, high = (_LOWEST, _LARGEST) if kind is int else (-_EXACT, _EXACT)
    return kind(min(max(int(values), low), high))


def _kinds(values: Any) -> set[type]:
    """Return the classes of a list's elements, and of those of lists in it."""
    kinds = set(map(type, values))
    if not kinds & {list, tuple}:
        return kinds
    return set().union(*(_kinds(value) if isinstance(value, (list, tuple)) else {type(value)} for value in values))


def _mixes(kinds: set[type]) -> bool:
    """Return whether there are integers beside floats."""
    floats = any(issubclass(kind, (float, np.floating)) for kind in kinds)
    return floats and any(issubclass(kind, (int, np.integer)) and kind is not bool for kind in kinds)
