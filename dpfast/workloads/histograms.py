"""Histograms as they are given: one array of counts in the end, or an error that says what was given."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from dpfast.arguments import Special
from dpfast.errors import DataError, ParameterError, Words

__all__ = [
    "Counts",
    "CountsOfAnyShape",
    "Numbers",
    "array_of",
    "check_cells_of",
    "checked_histogram",
    "clamped",
    "counted",
    "no_arrays",
    "numbers_of",
    "records",
]


def no_arrays() -> Iterator[object]:
    """Yield what no argument takes for an array of numbers, and what is none of any shape that is asked for."""
    yield from (True, 10**400, "", "text", b"text", object(), {}, {"a": 1}, {1, 2}, pl.LazyFrame())
    yield from (["a", "b"], [None], [1, None], [object()], [[1, 2], [3]], [1, [2]], [1j], [np.datetime64("2024-01-01")])
    yield from (np.array(3), np.ones((7, 0), np.int64), np.array([1j]), np.ma.masked_array([1, 2], [True, False]))
    yield from (pl.Series([1, None]), pl.Series(["a"]), pl.DataFrame({"a": ["b"]}), np.array([{}], dtype=object))


def _no_counts() -> Iterator[object]:
    yield from no_arrays()
    yield from ([1.5] * 4, np.ones(4), [True] * 4, np.ones(4, np.bool_), [0.5, "a"], np.array([np.nan] * 4))


#: Counts of the cells: integers of a shape, or as many in one dimension.
Counts: TypeAlias = Annotated[ArrayLike, Special(lambda: (*_no_counts(), [1, 2, 3, 4] * 5, np.ones((7, 3), np.int64)))]
#: Counts that say themselves what their shape is.
CountsOfAnyShape: TypeAlias = Annotated[ArrayLike, Special(_no_counts)]
#: Integers or floats of a shape, or as many in one dimension.
Numbers: TypeAlias = Annotated[ArrayLike, Special(lambda: (*no_arrays(), [1.5] * 20, np.ones((7, 3))))]


def array_of(histogram: Any, argument: str) -> NDArray[Any]:
    """Return what was given as an array, without a copy where possible.

    Raises
    ------
    ParameterError
        It is no array of numbers: it has nulls or a mask, or rows of different lengths.

    """
    if isinstance(histogram, pl.Series):
        if histogram.null_count():
            raise ParameterError(
                argument, Words("a Series with nulls"), "a count for every cell", "write .fill_null(0) behind"
            )
        histogram = histogram.to_numpy()
    if isinstance(histogram, np.ma.MaskedArray):
        raise ParameterError(argument, Words("a masked array"), "a count for every cell", "write .filled(0) behind")
    try:
        return np.asarray(histogram)
    except (TypeError, ValueError, OverflowError):
        pass
    # Out here no traceback holds what NumPy says, which may show a value.
    raise ParameterError(argument, Words("of rows of different lengths, or of other things"), "an array of numbers")


def numbers_of(given: Any, argument: str, shapes: Iterable[tuple[int, ...]], allowed: str) -> NDArray[Any]:
    """Return an array of Booleans, integers or floats of one of some shapes."""
    array = array_of(given, argument)
    if array.shape not in shapes or array.dtype.kind not in "biuf":
        raise ParameterError(argument, Words(f"of shape {array.shape} and type {array.dtype}"), allowed)
    return array


def checked_histogram(histogram: Any, shape: tuple[int, ...], argument: str = "histogram") -> NDArray[Any]:
    """Return a histogram as an int64 or float64 array in one dimension, borrowed where possible.

    Raises
    ------
    ParameterError
        It has another number of cells, another type, or a null, of which the mask is public.
    DataError
        It is of uint64, and a count is 2**63 or more.

    """
    array = array_of(histogram, argument)
    check_cells_of(array, shape, argument)
    if array.dtype.kind not in "iuf":
        raise ParameterError(argument, Words(f"of type {array.dtype}"), "of integers or floats")
    if array.dtype == np.uint64 and int(array.max()) >= 2**63:
        raise DataError(f"{argument} must have counts below 2**63; divide them, or pass floats")
    wanted = np.float64 if array.dtype.kind == "f" else np.int64
    return np.ascontiguousarray(array, dtype=wanted).reshape(-1)


def check_cells_of(array: NDArray[Any], shape: tuple[int, ...], argument: str) -> None:
    """Refuse an array that is neither of a shape nor of as many cells in one dimension."""
    cells = math.prod(shape)
    if array.shape not in {shape, (cells,)}:
        raise ParameterError(
            argument,
            Words(f"of shape {array.shape}"),
            f"of shape {shape}, or of {cells:,} cells in one dimension",
            "count over the workload's cells",
        )


def counted(histogram: Any, shape: tuple[int, ...], argument: str = "histogram") -> NDArray[np.int64]:
    """Return a histogram of integers in one dimension, as int64."""
    array = array_of(histogram, argument)
    check_cells_of(array, shape, argument)
    wide = _wide_numbers(histogram, array)
    if wide is not None:
        array = np.clip(wide, -(2**63), 2**63 - 1).astype(np.int64)
    if array.dtype.kind not in "iu":
        raise ParameterError(
            argument, Words(f"of type {array.dtype}"), "of integers", "sensitivities are those of counts"
        )
    if array.dtype == np.uint64:
        array = np.minimum(array, np.uint64(2**63 - 1))
    return np.ascontiguousarray(array, dtype=np.int64).reshape(-1)


def _wide_numbers(histogram: Any, array: NDArray[Any]) -> NDArray[Any] | None:
    """Return a list of whole numbers that no type of NumPy holds as Python's numbers; None for anything else.

    NumPy takes the type of a list from its values: one of 2**63 or more makes floats or objects of them.
    """
    if array.dtype.kind not in "fO" or not isinstance(histogram, list | tuple):
        return None
    wide = np.asarray(histogram, dtype=object)
    return wide if all(isinstance(held, int | np.integer) for held in wide.flat) else None


def records(histogram: Any) -> int:
    """Return how many records a histogram of integers has, before any count is moved into its range.

    Where records are replaced, this is the number that is public. The sum of counts in range is not: of neighbours one
    may have a count that is out of range by one more than the other's.
    """
    array = array_of(histogram, "histogram")
    numbers = _wide_numbers(histogram, array)
    if numbers is not None:
        return int(numbers.sum())
    wide = array if array.dtype == np.uint64 else array.astype(np.int64)
    # The sums of both halves fit.
    return (int((wide >> wide.dtype.type(32)).sum()) << 32) + int((wide & wide.dtype.type(2**32 - 1)).sum())


def clamped(cells: NDArray[np.int64], largest: int, *, clamp: bool) -> NDArray[np.int64]:
    """Return counts from 0 to the largest: others moved to the nearer end, or refused."""
    if clamp:
        return np.clip(cells, 0, largest)
    if cells.size and (int(cells.min()) < 0 or int(cells.max()) > largest):
        raise DataError(
            f"histogram must hold counts from 0 to {largest}; count again, or write np.maximum(histogram, 0) for one "
            "that carries noise"
        )
    return cells
