"""Elements of lists as numbers: each read by itself, and never refused."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.columns.lists import library_of

__all__ = ["LARGEST", "LOWEST", "array_of_list", "as_floats", "as_integer", "flatten", "is_number"]

_NUMBERS = (int, float, np.bool_, np.integer, np.floating, Fraction, Decimal)
LOWEST, LARGEST = -(2**63), 2**63 - 1
_MOST_DIMENSIONS = 32


def flatten(
    values: Any, dimensions: int | None = None, row: tuple[int | None, ...] = ()
) -> tuple[list[Any], tuple[int, ...]]:
    """Return the elements of a list, or of lists in lists, and their shape as an array.

    Parameters
    ----------
    values
        A list or tuple. What stands where a list of a certain length is due and is none counts as one of None alone.
    dimensions
        How deep the lists are; None for as deep as the first element of each is a list.
    row
        The lengths of the lists in it, as another argument declares them: no list decides one, so that none is refused.
        Where None is declared, or nothing, it is that of the first list there, and is public.

    Examples
    --------
    >>> flatten([["a", None], "c", ["b", 5], ["d"]])
    (['a', None, None, None, 'b', 5, None, None], (4, 2))
    >>> flatten([1, [2]], dimensions=1)
    ([1, [2]], (2,))
    >>> flatten([["a"], ["b", 5]], 2, (2,)), flatten([], 2, (2,))
    (([None, None, 'b', 5], (2, 2)), ([], (0, 2)))

    """
    elements, shape = list(values), [len(values)]
    while len(shape) < (_MOST_DIMENSIONS if dimensions is None else dimensions):
        if dimensions is None and not (elements and isinstance(elements[0], (list, tuple))):
            break
        rows = [_as_row(value) for value in elements]
        declared = row[len(shape) - 1] if row else None
        width = next((len(held) for held in rows if held is not None), 0) if declared is None else declared
        gap = [None] * width
        elements = [value for held in rows for value in (held if held is not None and len(held) == width else gap)]
        shape.append(width)
    return elements, tuple(shape)


def array_of_list(values: Any, dimensions: int, row: tuple[int | None, ...] = ()) -> NDArray[np.float64]:
    """Return the numbers of lists, NaN for whatever is none; integers beyond float64 become infinite.

    Examples
    --------
    >>> array_of_list([1, None, "2", Fraction(1, 2), 10**400], 1)
    array([1. , nan, nan, 0.5, inf])

    """
    elements, shape = flatten(values, dimensions, row)
    if set(map(type, elements)) <= {int, float}:
        try:
            return np.array(elements, np.float64).reshape(shape)
        except OverflowError:
            pass
    return np.array([_as_float(value) for value in elements], np.float64).reshape(shape)


def is_number(value: object) -> bool:
    """Return whether an element of a list is a real number, NaN and Booleans among them.

    Examples
    --------
    >>> is_number(Fraction(1, 2)), is_number("2")
    (True, False)

    """
    # Not isinstance, which asks the value itself for its class.
    return issubclass(type(value), _NUMBERS) and not issubclass(type(value), np.timedelta64)


def as_floats(array: NDArray[Any]) -> NDArray[np.float64]:
    """Return numbers in float64 of their own, without a warning, now or later, which would tell what is among them.

    Numbers beyond float64 become infinite, and signalling NaN, of which any sum would warn, becomes the quiet one.
    """
    with np.errstate(all="ignore"):
        floats: NDArray[np.float64] = array.astype(np.float64)
        floats += 0.0
    return floats


def _as_row(value: Any) -> list[Any] | None:
    """Return what stands for a row of several numbers as a list of them, None of anything else."""
    for kind in (list, tuple):
        if issubclass(type(value), kind):
            return [*kind.__iter__(value)]  # not by a way of a class of its own, which may fail
    names = ("to_pylist", "to_list", "tolist") if library_of(value) else ()
    try:
        row: Any = next((getattr(value, name)() for name in names if hasattr(value, name)), None)
    except Exception:  # of an expression, which has no elements
        return None
    return row if isinstance(row, list) else None


def _as_float(value: Any) -> float:
    if not is_number(value):
        return np.nan
    plain = _without_own_ways(value)
    try:
        with np.errstate(all="ignore"):
            return float(plain)
    except OverflowError:
        return np.inf if plain > 0 else -np.inf
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException:  # a signalling NaN's, or a class's own
        return np.nan


def _without_own_ways(value: Any) -> Any:
    """Return a number of a class that derives from a plain one as that: methods of its own may fail, or warn."""
    kind: Any = type(value)
    if kind in (int, float, Fraction, Decimal) or issubclass(kind, np.generic):
        return value
    if issubclass(kind, int):
        return int.__int__(value)
    return float.__float__(value) if issubclass(kind, float) else value


def as_integer(value: Any) -> int | None:
    """Return a whole number within int64, larger ones clamped; None of anything else.

    Examples
    --------
    >>> as_integer(2.0), as_integer(2.5), as_integer(-(2**70)), as_integer("2")
    (2, None, -9223372036854775808, None)

    """
    if not is_number(value):
        return None
    plain = _without_own_ways(value)
    try:
        if plain != plain:
            return None
        clamped = min(max(plain, LOWEST), LARGEST)
        return int(clamped) if int(clamped) == clamped else None
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException:  # a signalling NaN's, or a class's own
        return None
