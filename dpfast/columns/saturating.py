"""Private columns whose values no error may tell of: integers beyond int64 in a list saturate."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpfast.columns.column import Column
from dpfast.columns.kinds import borrow
from dpfast.errors import ColumnError, DataError

__all__ = ["borrow_integers", "borrow_saturating"]

_LOWEST, _LARGEST = -(2**63), 2**63 - 1


def borrow_saturating(values: Any, argument: str) -> Column:
    """Borrow a column as `borrow` does, with the integers of a list clamped to int64.

    Guarantee
        Of integers, whether a column is accepted depends on its kind and type alone. Clamping to a public range moves
        no two numbers further apart, nor in another direction, so that it raises no sensitivity.

    Raises
    ------
    ColumnError, DataError
        As for `borrow`; a list that mixes floats with an integer that is no float64 is refused still.

    Examples
    --------
    >>> borrow_saturating([3, 2**64], "scores").block(0, 2)
    array([                  3, 9223372036854775807])

    """
    try:
        return borrow(values, argument)
    except DataError:
        clamped = _clamped(values)
        if clamped is None:
            raise
        return borrow(clamped, argument)


def borrow_integers(values: Any, argument: str, mend: str) -> Column:
    """Borrow a column of integers, as `borrow_saturating` does; a list of none has no type and counts as one.

    Raises
    ------
    ColumnError
        The column is one of floats, empty or not; ``mend`` says what to do.

    """
    column = borrow_saturating(values, argument)
    if column.dtype.kind != "f":
        return column
    if isinstance(values, (list, tuple)) and not values:
        return borrow(np.empty(0, np.int64), argument)
    raise ColumnError(f"{argument} must be integers, but were floats; {mend}")


def _clamped(values: Any) -> Any:
    """Return integers, in lists or alone, clamped to int64; None for anything else."""
    if isinstance(values, (list, tuple)):
        clamped = [_clamped(value) for value in values]
        return None if any(value is None for value in clamped) else clamped
    if isinstance(values, (int, np.integer)) and not isinstance(values, bool):
        return min(max(int(values), _LOWEST), _LARGEST)
    return None
