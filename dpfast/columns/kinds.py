"""Which kind of column an object is, decided by its type alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from dpfast.columns.column import Column
from dpfast.columns.lists import library_of_kind
from dpfast.columns.of_numpy import borrow_array, borrow_list, borrow_number
from dpfast.columns.refusal import refuse_kind

__all__ = ["borrow", "dimensions"]

_Reader: TypeAlias = Callable[[Any, str], Column]


def borrow(values: Any, argument: str = "values") -> Column:
    """Borrow a column's values without a copy, with the nulls apart.

    Guarantee
        Nothing is written to ``values``, and nothing is copied except: arrays that are not contiguous in C
        order, not aligned or not in the machine's byte order; lists and tuples; Python numbers; pandas
        columns of a nullable type. Whether a column is accepted depends on its kind and type, not on its
        values (two exceptions: see DataError). A column that another thread changes meanwhile gives values
        from before or after the change.

    Parameters
    ----------
    values
        A Polars Series, a PyArrow Array or ChunkedArray, a pandas Series, a NumPy array of any shape, a list
        or tuple of numbers, a number, or any object with ``__arrow_c_array__`` or ``__arrow_c_stream__``.
        Its type must be int64, int32, uint32, float64 or float32. Nulls are kept; NaN is a value.
    argument
        The name that an error gives to ``values``.

    Returns
    -------
    Column
        Its ``rebuild`` gives the same kind back: a Polars Series with its name, a PyArrow Array or
        ChunkedArray (also for other Arrow objects), a pandas Series with its index and name, a NumPy array of
        the same shape (also for lists), a Python number (also for NumPy scalars).

    Raises
    ------
    ColumnError
        ``values`` is no column, or has another type; the message names the cast that mends it.
    DataError
        A Python integer does not fit into int64, or a list mixes floats with an integer that is no float64.

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast.columns import borrow
    >>> column = borrow(np.array([[1, 2], [3, 4]]))
    >>> column.block(1, 3)
    array([2, 3])
    >>> column.rebuild(np.zeros(4))
    array([[0., 0.],
           [0., 0.]])
    >>> borrow([True, False])
    Traceback (most recent call last):
    ...
    dpfast.errors.ColumnError: values must be a list of int or float, but holds bool; write 1 or 0

    """
    kind: Any = type(values)
    return _reader(kind)(values, argument)


def dimensions(values: Any) -> int:
    """Return how many dimensions a column has that `borrow` takes: 0 for a number, 1 for all but arrays and lists.

    Examples
    --------
    >>> dimensions(3), dimensions([3]), dimensions(np.zeros((2, 2)))
    (0, 1, 2)

    """
    if isinstance(values, np.ndarray):
        return values.ndim
    if isinstance(values, (list, tuple)):
        # Rows of unequal length are no array; `borrow` says so.
        return 1 + max((dimensions(value) for value in values if isinstance(value, (list, tuple))), default=0)
    return 0 if isinstance(values, (int, float, np.generic)) else 1


# The answer depends on the type only, and asking takes longer than borrowing. The bound lets go of classes
# that a program makes as it runs.
@lru_cache(maxsize=64)
def _reader(kind: Any) -> _Reader:
    if issubclass(kind, np.ndarray):
        return borrow_array
    if issubclass(kind, (int, float, np.generic)):
        return borrow_number
    if issubclass(kind, (list, tuple)):
        return borrow_list
    # An object of a library exists only where that library is imported already, so that these imports are
    # free: a program that passes NumPy arrays never loads the others.
    library = library_of_kind(kind)
    if library == "polars":
        from dpfast.columns.of_polars import borrow_polars as reader
    elif library == "pyarrow":
        from dpfast.columns.of_arrow import borrow_arrow as reader
    elif library == "pandas":
        from dpfast.columns.of_pandas import borrow_pandas as reader
    else:
        reader = _borrow_foreign
    return reader


def _borrow_foreign(values: Any, argument: str) -> Column:
    if hasattr(values, "__arrow_c_array__") or hasattr(values, "__arrow_c_stream__"):
        from dpfast.columns.of_arrow import borrow_capsule

        return borrow_capsule(values, argument)
    kind = "None" if values is None else f"an object of type {type(values).__name__}"
    raise refuse_kind(argument, kind, "pass a Polars, PyArrow, pandas or NumPy column, a list or a number")
