"""A public list of categories, and columns of them as numbers: every kind of column in, the same kind out."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.aggregation.choices import native_choices
from dpfast.aggregation.keys import KeyColumn, fit_keys
from dpfast.aggregation.lost_threads import refuse_lost_threads
from dpfast.arguments import Special
from dpfast.columns import Column, borrow
from dpfast.columns.candidates import LARGEST_NUMBER, as_series, read_candidates
from dpfast.columns.declarations import AnyColumn, Numbers, TypedColumn, wrong_columns
from dpfast.columns.dtypes import dtype_name
from dpfast.columns.elements import flatten
from dpfast.columns.lists import library_of
from dpfast.errors import ColumnError, ParameterError
from dpfast.local.plain_values import is_plain, number_rows, objects_of

__all__ = ["Categories", "Responses", "borrow_responses", "fit_categories", "read_categories"]

_MEND = 'write for example categories=["yes", "no"]'
_MOST = 2**31
"""-1 in 32 bits is no category."""


def _wrong_categories() -> Iterator[object]:
    yield from ("AA", b"AA", 0.5, 3.0, True, object(), {"a": 1}, {"a"}, range(3), pl.DataFrame({"a": [1]}))
    yield from (0, 1, -2, _MOST + 1, 10**30, np.float64(3), [], ["a"], [None], ["a", "a"], ["a", 1], [1, True])
    yield from ([0.5, 1.5], [[1], [2]], [b"a", b"b"], [1j, 2j], [0, 2**64], [-1, 2**63], np.ones((2, 2), int))
    yield from (list(range(LARGEST_NUMBER + 1)), pl.Series([0.5, 1.5]), np.datetime64("2020-01-01"))


def _wrong_responses() -> Iterator[object]:
    for value in wrong_columns(least=0, most=32, whole=True):
        # One value of any kind, and a list, have rows of no category.
        if not isinstance(value, list) and not is_plain(value):
            yield value


#: A number k for the integers from 0 to k - 1, or a list of values of one kind, each once.
Categories: TypeAlias = Annotated[int | np.integer[Any] | Sequence[Any] | TypedColumn, Special(_wrong_categories)]
#: A column of categories, or one value.
Responses: TypeAlias = Annotated[
    Numbers | AnyColumn | Sequence[Any] | str | bytes | float | np.generic | datetime.date | None,
    Special(_wrong_responses, optional=True),
]


def read_categories(categories: Categories) -> int | tuple[Any, ...]:
    """Return k, or categories as plain Python values, checked.

    Raises
    ------
    ParameterError
        They are fewer than two, of several kinds or of another, repeated, or too many.

    Examples
    --------
    >>> read_categories(3), read_categories(["a", None])
    (3, ('a', None))

    """
    if isinstance(categories, (int, np.integer)):
        if isinstance(categories, (bool, np.timedelta64)) or not 2 <= categories <= _MOST:
            raise ParameterError("categories", categories, "a whole number from 2 to 2**31, or a list", _MEND)
        return int(categories)
    listed = read_candidates(categories, "categories", plain=True)
    if len(listed) < 2:
        raise ParameterError("categories", list(listed), "at least two", _MEND)
    return listed


def fit_categories(listed: tuple[Any, ...], dtype: pl.DataType, name: str) -> tuple[pl.Series, pl.Expr]:
    """Return categories in the dtype of a column, and the expression of the column ``name`` that they compare with.

    Raises
    ------
    ColumnError
        The column cannot be compared with the categories.
    ParameterError
        The column's dtype cannot hold one of them.

    """
    given = as_series(listed)
    column = KeyColumn(name, pl.col(name), dtype, pl.col(name))
    try:
        return fit_keys(given, column)
    except ParameterError:
        allowed = f"values that a column of dtype {dtype_name(dtype)} can hold"
        raise ParameterError("categories", list(listed[:8]), allowed, "cast the column") from None
    except ColumnError:
        pass
    raise _refused(f"a column of dtype {dtype_name(dtype)}", f"that {dtype_name(given.dtype)} compares with")


def borrow_responses(values: Any, categories: int | tuple[Any, ...]) -> Column:
    """Return the number of each row's category as a column; `Column.rebuild_without_nulls` gives categories back.

    What is no category has a number that is none, or is a null.

    Raises
    ------
    ColumnError
        The values are no column, or of a kind that the categories are not of.
    ParameterError
        The column's type cannot hold a category.

    """
    if is_plain(values) or isinstance(values, (list, tuple)):
        rows, shape = ([values], ()) if is_plain(values) else flatten(values)
        return Column(np.dtype(np.int64), (number_rows(rows, categories),), _give_plain(shape, categories))
    if isinstance(categories, int):
        column = borrow(values)
        if column.dtype.kind == "f":
            raise ColumnError(
                f"values must be whole numbers from 0 to {categories - 1}, but were floats; cast them to integers"
            )
        return column
    objects = objects_of(values)
    if objects is not None:
        numbers = number_rows(objects, categories)
        return Column(np.dtype(np.int64), (numbers,), _give_back(values, as_series(categories), categories))
    refuse_lost_threads()  # Polars would hang
    series = _as_series(values)
    enumerated = isinstance(series.dtype, pl.Enum)
    if enumerated:
        series = series.cast(pl.String)
    fitted, own = fit_categories(categories, series.dtype, "values")
    chosen = series.to_frame().select(native_choices(fitted, own).cast(pl.Int32) - 1).to_series()
    if enumerated:
        # An Enum names its values, which may be those of the data.
        fitted = fitted.cast(pl.Enum(fitted.drop_nulls()))
    return Column(np.dtype(np.int32), (chosen.to_numpy(),), _give_back(values, fitted, categories))


def _refused(what: str, why: str) -> ColumnError:
    allowed = "a column of strings, categories, integers, Booleans or dates"
    return ColumnError(f"values must be {allowed} {why}, but was {what}; cast it")


def _as_series(values: Any) -> pl.Series:
    """Return a column of any kind as a Polars series without a name of its own."""
    kind, library = type(values).__name__, library_of(values)
    readable = not isinstance(values, (np.ma.MaskedArray, dict, set, type))
    if library == "polars":
        readable = isinstance(values, pl.Series)
    elif library in ("pyarrow", "pandas"):
        readable = kind == "Series" or hasattr(values, "type")
    elif not isinstance(values, np.ndarray):
        readable = hasattr(values, "__arrow_c_array__") or hasattr(values, "__arrow_c_stream__")
    if readable:
        try:
            series = pl.Series(values.reshape(-1) if isinstance(values, np.ndarray) else values)
            return series.alias("values")  # whatever exports Arrow has a name of its own
        except (KeyboardInterrupt, SystemExit, MemoryError):
            raise
        except (Exception, pl.exceptions.PanicException):
            pass
    # Out here no traceback holds the engine's error, which may quote values.
    raise _refused(f"a {library} {kind}".replace("  ", " "), "that Polars can read")


def _give_plain(
    shape: tuple[int, ...], categories: int | tuple[Any, ...]
) -> Callable[[NDArray[Any], NDArray[np.uint8] | None, int], Any]:
    """Return what turns numbers of categories into one value, or into an array for a list."""
    if not shape:
        return lambda numbers, *_: int(numbers[0]) if isinstance(categories, int) else categories[int(numbers[0])]
    listed = None if isinstance(categories, int) else np.array(categories)
    return lambda numbers, *_: (numbers if listed is None else listed[numbers]).reshape(shape)


def _give_back(
    values: Any, fitted: pl.Series, listed: tuple[Any, ...]
) -> Callable[[NDArray[Any], NDArray[np.uint8] | None, int], Any]:
    """Return what turns numbers of categories into the kind of column that was given."""
    library = library_of(values)
    try:
        take = _taking(values, library, fitted, listed)
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except Exception:
        take = None
    if take is None:
        kind = f"values that a {library} {type(values).__name__} of this type can hold".replace("  ", " ")
        raise ParameterError("categories", list(listed[:8]), kind, "cast the column")
    return lambda numbers, validity, null_count: take(numbers)


def _taking(
    values: Any, library: str, fitted: pl.Series, listed: tuple[Any, ...]
) -> Callable[[NDArray[Any]], Any] | None:
    """Return the function from numbers to what is returned; None where the given type cannot hold the categories."""
    if library == "polars":
        return lambda numbers: fitted.gather(pl.Series(numbers)).alias(values.name)
    if library == "pyarrow":
        import pyarrow as pa

        # PyArrow takes nothing from views.
        view = pa.types.is_string_view(values.type)
        array = pa.array(list(listed)).cast(pa.large_string() if view else values.type)

        def answers(numbers: NDArray[Any]) -> Any:
            taken = array.take(pa.array(numbers))
            return taken.cast(values.type) if view else taken

        answers(np.zeros(1, np.int32))  # refuse now a type of which it takes nothing
        return (lambda numbers: pa.chunked_array([answers(numbers)])) if hasattr(values, "chunks") else answers
    if library == "pandas":
        pandas: Any = sys.modules["pandas"]
        dtype = values.dtype
        if isinstance(dtype, pandas.CategoricalDtype):
            # The column's own categories may be those of the data.
            dtype = pandas.CategoricalDtype([value for value in listed if value is not None], dtype.ordered)
        series = pandas.Series(list(listed), dtype=dtype)
        series.take([0])  # refuse now a type of which it takes nothing
        if int(series.isna().sum()) != listed.count(None):
            return None
        return lambda numbers: series.take(numbers).set_axis(values.index).rename(values.name)
    if isinstance(values, np.ndarray):
        array = np.array(listed, dtype=values.dtype if values.dtype.kind in "iuOM" else None)
        return lambda numbers: array[numbers].reshape(values.shape)
    return lambda numbers: fitted.gather(pl.Series(numbers)).to_arrow()
