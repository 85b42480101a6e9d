"""Plain Python values as rows of categories: whatever equals none of them is of no category, and nothing is refused."""

from __future__ import annotations

import datetime
import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.columns.lists import library_of

__all__ = ["is_plain", "number_rows", "objects_of"]

_NO_CATEGORY = -1


def is_plain(value: object) -> bool:
    """Return whether something is one row, not a column: a string, bytes, a number, a date or a time, or a null."""
    plain = (str, bytes, numbers.Number, np.generic, datetime.date, datetime.time, datetime.timedelta)
    # pandas, which need not be installed, has a null of its own.
    return value is None or isinstance(value, plain) or type(value).__name__ == "NAType"


def objects_of(values: Any) -> list[Any] | None:
    """Return the rows of a NumPy array or a pandas Series of Python objects; None for columns of any other type."""
    library = library_of(values)
    if library == "numpy" and isinstance(values, np.ndarray) and not isinstance(values, np.ma.MaskedArray):
        return values.reshape(-1).tolist() if values.dtype == np.dtype(object) else None
    if library != "pandas" or type(values).__name__ != "Series":
        return None
    held = getattr(getattr(values.dtype, "categories", values), "dtype", None)
    if held != np.dtype(object):
        return None
    return [None if gone else value for value, gone in zip(values.tolist(), values.isna().tolist(), strict=True)]


def number_rows(rows: list[Any], categories: int | tuple[Any, ...]) -> NDArray[np.int64]:
    """Return the number of each row's category; -1 where a value is of another kind, or none of them.

    A row's number depends on that row alone. True is no integer, and 1.0 neither.

    Examples
    --------
    >>> number_rows(["no", 5, None, "yes"], ("yes", "no")), number_rows([2, True, 2**70], 3)
    (array([ 1, -1, -1,  0]), array([ 2, -1, -1]))

    """
    if isinstance(categories, int):
        kind: type = int
        read = [value if type(value) is int else _as_kind(value, int) for value in rows]
        found = [value if value is not None and 0 <= value < categories else _NO_CATEGORY for value in read]
    else:
        kind = next(type(value) for value in categories if value is not None)
        place = {value: number for number, value in enumerate(categories)}
        missing = place.pop(None, _NO_CATEGORY)
        found = []
        for value in rows:
            plain = value if type(value) is kind else _as_kind(value, kind)
            found.append(missing if value is None else place.get(plain, _NO_CATEGORY))
    numbered = np.array(found, np.int64)
    numbered.setflags(write=False)
    return numbered


def _as_kind(value: Any, kind: type) -> Any:
    """Return a value as a plain one of a kind, None if it is of another."""
    if isinstance(value, np.generic):
        value = value.item()
    if type(value) is kind:
        return value
    # Members of enumerations, which are equal to their values.
    if kind is str and isinstance(value, str):
        return str.__str__(value)
    if kind is int and isinstance(value, int) and not isinstance(value, bool):
        return int.__int__(value)
    return None
