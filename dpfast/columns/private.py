"""Private numbers of any kind, of which no error tells a value.

One rule. What may be refused is a container: its kind, the type that it declares for all of its elements, its shape and
its columns' names. What a row holds is never refused. Lists declare no type, so that every element of one is a row of
its own: a number of whatever class is that number, and anything else is missing. Nor does a list of lists declare how
long these are: where another argument does, a row of another length is missing, and no row is needed. Arrays and
columns of Python objects are refused by their type, whatever they hold.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.columns.column import Column
from dpfast.columns.elements import LARGEST, LOWEST, array_of_list, as_integer, flatten, is_number
from dpfast.columns.kinds import borrow
from dpfast.columns.lists import library_of
from dpfast.errors import ColumnError, ParameterError, Words

__all__ = [
    "borrow_integers",
    "borrow_numbers",
    "label_array",
    "numeric_array",
    "numeric_frame",
]

_ALLOWED = "numbers or Booleans, in a NumPy array, a column or a frame of any library, or lists"


def borrow_numbers(values: Any, argument: str, dimensions: int | None = 1) -> Column:
    """Borrow a private column as `borrow` does; in a list, whatever is no number is null.

    Parameters
    ----------
    values, argument
        As for `borrow`; an integer alone is clamped to int64.
    dimensions
        1 for a column; None for any number of them, and for a number alone.

    Raises
    ------
    ColumnError
        It is of another kind, type or number of dimensions.

    Examples
    --------
    >>> borrow_numbers([1, "a", 2.5], "homes").block(0, 3)
    array([1. , nan, 2.5])

    """
    # No types of elements decide anything: a list is always one of float64.
    if isinstance(values, (list, tuple)):
        elements, _ = flatten(values, dimensions)
        valid = np.array([is_number(value) for value in elements], np.bool_)
        return _with_nulls(array_of_list(elements, 1), valid)
    if dimensions is not None:
        _refuse_other_than_column(values, argument)
    return borrow(_clamped(values), argument)


def borrow_integers(values: Any, argument: str, mend: str, *, alone: bool = False) -> Column:
    """Borrow a private column of integers; in a list, whatever is no whole number is null, and large ones are clamped.

    ``alone`` allows a number in place of a column.

    Guarantee
        Clamping to a public range moves no two numbers further apart, nor in another direction, so that it raises no
        sensitivity.

    Raises
    ------
    ColumnError
        It is of another kind, of several dimensions, or a column of floats, empty or not; ``mend`` says what to do.

    Examples
    --------
    >>> column = borrow_integers([3, 2**64, 2.0, 0.5, None], "bids", "cast them")
    >>> column.block(0, 3), column.missing(0, 5)
    (array([                  3, 9223372036854775807,                   2]), array([False, False, False,  True,  True]))

    """
    if isinstance(values, (list, tuple)):
        return _integers_of_list(values)
    if not (alone and _dimensions(values) == 0):
        _refuse_other_than_column(values, argument)
    column = borrow(_clamped(values), argument)
    if column.dtype.kind == "f":
        raise ColumnError(f"{argument} must be integers, but were floats; {mend}")
    return column


def numeric_array(given: Any, argument: str, dimensions: int, row: tuple[int | None, ...] = ()) -> NDArray[Any]:
    """Return private numbers as an array of so many dimensions and of Booleans, integers or floats; NaN for nulls.

    ``row`` is the shape of a row, where another argument declares it: in lists, what has another one is missing.

    Raises
    ------
    ParameterError
        It is of another kind, type or number of dimensions. Of the shape the error shows what is in a row.

    Examples
    --------
    >>> numeric_array([[1, 2], [None, 4]], "utilities", 2)
    array([[ 1.,  2.],
           [nan,  4.]])

    """
    if isinstance(given, (list, tuple)):
        array: NDArray[Any] = array_of_list(given, dimensions, row)
    else:
        array = _array_of_container(given, argument)
    if array.ndim != dimensions:
        shown = Words(f"of {array.ndim} dimensions, {array.shape[1:]} in a row")
        raise ParameterError(argument, shown, f"numbers of {dimensions} dimensions", "Reshape your data")
    return array


def label_array(given: Any, argument: str, dimensions: int, row: tuple[int | None, ...] = ()) -> NDArray[Any]:
    """Return private labels in rows or a column as an array: numbers, Booleans or texts, or of lists any of these.

    Of lists it is one of objects, in which what is none of them is NaN, that equals nothing; ``row`` is as for
    `numeric_array`.

    Raises
    ------
    ParameterError, ColumnError
        It is of another kind or type.

    Examples
    --------
    >>> label_array(["a", 1, None], "labels", 1) == label_array(["a", True, None], "labels", 1)
    array([ True,  True, False])

    """
    if not isinstance(given, (list, tuple)):
        return _array_of_container(given, argument, "biufUT")
    elements, shape = flatten(given, dimensions, row)
    labels = np.empty(len(elements), object)
    labels[:] = [_as_label(value) for value in elements]
    return labels.reshape(shape)


def _as_label(value: Any) -> Any:
    """Return a plain number, Boolean or text; NaN for anything else, and for subclasses with equality of their own."""
    if isinstance(value, np.generic):
        value = value.item()
    return value if type(value) in (int, float, bool, str) else np.nan


def _array_of_container(given: Any, argument: str, kinds: str = "biuf") -> NDArray[Any]:
    """Return the numbers of whatever declares a type."""
    library = library_of(given)
    if library in ("polars", "pyarrow", "pandas"):
        import polars as pl

        floats = numeric_frame(given, argument).select(pl.all().cast(pl.Float64, strict=False))
        numbers: NDArray[np.float64] = floats.to_numpy()
        return numbers if _is_frame(given) else numbers[:, 0]
    try:
        array = None if isinstance(given, np.ma.MaskedArray) else np.asarray(given)
    except Exception:  # whatever an object that is no array raises
        array = None
    if array is None or array.dtype.kind not in kinds:
        kind = "a masked array" if isinstance(given, np.ma.MaskedArray) else f"a {type(given).__name__}"
        shown = Words(kind if array is None else f"{kind} of {array.dtype}")
        raise ParameterError(argument, shown, _ALLOWED)
    return array


def numeric_frame(given: Any, argument: str, names: tuple[str, ...] | None = None) -> Any:
    """Return a column or frame of Polars, PyArrow or pandas as a Polars frame of numbers: these columns, or all.

    Other columns are not looked at.

    Raises
    ------
    ColumnError
        A column is missing, or has a type other than of numbers or Booleans, or it is no column and no frame in memory.

    Examples
    --------
    >>> import pyarrow as pa
    >>> numeric_frame(pa.table({"a": [1, 2], "b": ["x", "y"]}), "X", ("a",)).rows()
    [(1,), (2,)]

    """
    import polars as pl

    from dpfast.columns.tables import frame_of_table, refuse_same_names

    if isinstance(given, pl.LazyFrame):
        raise ColumnError(f"{argument} must be a frame in memory, not a LazyFrame; collect it")
    if not _is_frame(given):
        return _frame_of_column(given, argument)
    held = list(given.column_names if hasattr(type(given), "column_names") else given.columns)
    refuse_same_names(held, argument)
    chosen = held if names is None else list(names)
    for name in chosen:
        if name not in held:
            raise ColumnError(f"{argument} has no column {str(name)[:60]!r}, for which bounds are declared")
    if not chosen:
        raise ColumnError(f"{argument} must have a column at least")
    if not hasattr(given, "select") and library_of(given) != "pandas":
        raise ColumnError(f"{argument} must be a frame of Polars or pandas, or a table of PyArrow; convert it")
    taken = given.select(chosen) if hasattr(given, "select") else given[chosen]
    dtypes = list(taken.dtypes) if library_of(given) == "pandas" else []
    untyped = next((name for name, dtype in zip(chosen, dtypes, strict=False) if _is_untyped(dtype)), None)
    if untyped is None:
        frame = taken if isinstance(taken, pl.DataFrame) else frame_of_table(taken)
        untyped = next((name for name, dtype in frame.schema.items() if not _is_numeric(dtype)), None)
        if untyped is None:
            return frame
    raise ColumnError(f"the column {str(untyped)[:60]!r} of {argument} must be of numbers; cast it or leave it out")


def _frame_of_column(given: Any, argument: str) -> Any:
    """Return a column as a frame of one."""
    import polars as pl

    if not (library_of(given) == "pandas" and _is_untyped(getattr(given, "dtype", None))):
        try:
            column = pl.Series("", given)
        except (KeyboardInterrupt, SystemExit, MemoryError):
            raise
        except (Exception, pl.exceptions.PanicException):
            column = pl.Series("", ["none"])
        if _is_numeric(column.dtype):
            return column.to_frame()
    # Out here no traceback holds the engine's error, which may quote values.
    raise ColumnError(f"{argument} must be a column of numbers or Booleans, of a type that says so; cast it")


def _is_untyped(dtype: Any) -> bool:
    """Return whether a type of pandas leaves it to the values what they are: objects, or categories."""
    return dtype == np.dtype(object) or hasattr(dtype, "categories")


def _is_numeric(dtype: Any) -> bool:
    return bool(dtype.is_numeric()) or str(dtype) == "Boolean"


def _is_frame(given: Any) -> bool:
    return hasattr(type(given), "columns")  # of its class: the columns of a LazyFrame have to be found


def _refuse_other_than_column(values: Any, argument: str) -> None:
    if _dimensions(values) != 1:
        raise ColumnError(f"{argument} must be a column of one dimension, with a number in each row; flatten it")


def _dimensions(values: Any) -> int:
    """Return how many dimensions what is no list has."""
    if isinstance(values, np.ndarray):
        return values.ndim
    if isinstance(values, (int, float, np.generic)):
        return 0
    return 2 if _is_frame(values) else 1


def _integers_of_list(values: Any) -> Column:
    if set(map(type, values)) <= {int}:
        try:
            return borrow(np.array(values, np.int64), "values")
        except OverflowError:
            pass
    read = [as_integer(value) for value in values]
    numbers = np.array([0 if number is None else number for number in read], np.int64)
    valid = np.array([number is not None for number in read], np.bool_)
    return _with_nulls(numbers, valid)


def _with_nulls(numbers: NDArray[Any], valid: NDArray[np.bool_]) -> Column:
    """Return a column that gives back arrays."""
    nulls = int((~valid).sum())
    bitmap = (np.packbits(valid, bitorder="little"), 0) if nulls else None
    return Column(numbers.dtype, (numbers,), lambda noised, validity, null_count: noised, (bitmap,), nulls)


def _clamped(values: Any) -> Any:
    """Return an integer alone within int64, and anything else as it is."""
    if isinstance(values, (int, np.integer)) and not isinstance(values, bool):
        return min(max(int(values), LOWEST), LARGEST)
    return values
