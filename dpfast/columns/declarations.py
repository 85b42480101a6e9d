"""Columns as arguments: their types, and what is refused in their place.

Types are protocols: pandas and PyArrow say nothing of theirs to type checkers, and are not imported here.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Numeric, Private, Real, Special, no_numbers
from dpfast.errors import ParameterError, Words

__all__ = [
    "SCALE",
    "WHOLE_COLUMN",
    "AnyColumn",
    "NumberColumn",
    "Numbers",
    "PerRow",
    "Scale",
    "Table",
    "WholeColumn",
    "as_array",
    "wrong_columns",
    "wrong_per_row",
]


class TypedColumn(Protocol):
    """A NumPy array, or a Series of Polars or pandas."""

    @property
    def dtype(self) -> Any:  # each library has its own
        """The elements' type."""

    def __len__(self) -> int: ...


class ArrowArray(Protocol):
    """A PyArrow Array, or whatever exports one."""

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]: ...


class ArrowStream(Protocol):
    """A PyArrow ChunkedArray, or whatever exports chunks."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


class Table(Protocol):
    """A frame of Polars or pandas."""

    @property
    def columns(self) -> Any:  # each library has its own
        """The columns' names."""

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""


AnyColumn: TypeAlias = TypedColumn | ArrowArray | ArrowStream
#: Numbers of one row or of several.
Numbers: TypeAlias = AnyColumn | Sequence[Numeric] | Sequence[Sequence[Numeric]]
#: One number, or one for each row.
PerRow: TypeAlias = Real | AnyColumn | Sequence[Numeric]


def wrong_columns(least: int = 1, most: int = 1, *, whole: bool = False, private: bool = False) -> Iterator[object]:
    """Yield what is no column of numbers of so many dimensions; ``whole`` refuses floats too, ``private`` no lists."""
    wrong = _wrong_columns(least, most, whole=whole)
    return (value for value in wrong if not isinstance(value, list)) if private else wrong


def _wrong_columns(least: int, most: int, *, whole: bool) -> Iterator[object]:
    import polars as pl  # not at the top: it takes long to import
    import pyarrow as pa

    yield from ("123", b"1", {1: 2}, {1, 2}, True, object(), list, len, iter([1]), 1j, datetime.date.min)
    yield from ([1, "2"], ["a"], [True, False], [None, 1], [1j], [object()], [[1, 2], [3]], Decimal(1), Fraction(1, 2))
    for dtype in ("int8", "uint64", "float16", object, complex, bool, "datetime64[s]", "timedelta64[s]", "S3"):
        yield np.zeros(3, dtype)
    yield from (np.array(["1"]), np.ma.masked_array([1.0, 2.0], [True, False]), np.zeros(3, [("a", int)]))
    texts, dates = ["a", "b"], [datetime.date(2020, 1, 1)]
    yield from (pl.Series(texts), pl.Series(dates), pl.Series([True]), pl.Series([b"1"]), pl.Series([object()]))
    yield from (pl.DataFrame({"a": [1]}), pl.LazyFrame({"a": [1]}), pl.col("a"), pl.Series([{"a": 1}]))
    yield from (pa.array(texts), pa.array(dates), pa.chunked_array([texts]), pa.table({"a": [1]}), pa.scalar(1))
    if least > 0:
        yield from (10**400, 5, 5.0, np.int64(5), np.float32(5), np.array(5.0))
    if most < 2:
        yield from (np.zeros((2, 2), int), [[1, 2], [3, 4]], pl.Series([[1], [2]]), pa.array([[1], [2]]))
    if most < 3:
        yield from (np.zeros((2, 2, 2)), [[[1]]])
    if whole:
        yield from (np.zeros(3), [0.5, 1.5], pl.Series([1.0]), pa.array([1.0]))


def wrong_per_row(*beyond: object) -> Iterator[object]:
    """Yield what is neither one number nor a column with one for each row; ``beyond`` are numbers out of range."""
    import polars as pl
    import pyarrow as pa

    yield from (*no_numbers(), *beyond, *([number] for number in beyond))
    # Of another length, or without a number.
    yield from ([1.0] * 17, [], np.ones((7, 11)), np.ones(17), pl.Series([1.0] * 17), pa.array([1.0] * 17))
    yield from (["1"], [True], [None], pl.Series(["a"]), pl.Series([None, 1.0]), pl.DataFrame({"a": [1.0]}))


def _wrong_scales() -> Iterator[object]:
    numbers = (0, 0.0, -0.0, -1, 5e-324, 1e-320, 1e-290, 1e308, Fraction(0), Fraction(-1, 3), Fraction(1, 10**400))
    return wrong_per_row(*numbers, np.float16(0))


def as_array(given: Any, argument: str) -> NDArray[Any]:
    """Return public numbers in an array, a Series or lists as a NumPy array, of whatever type.

    What is private is read by `dpfast.columns.private`, since here an error depends on what lists hold.
    """
    if isinstance(given, np.ma.MaskedArray):
        # NumPy would drop the mask.
        raise ParameterError(argument, Words("a masked array"), "an array", f"write {argument}.filled(0)")
    try:
        # NumPy would read a Series of Polars with nulls as one of objects.
        return np.asarray(given.to_numpy() if hasattr(given, "null_count") and hasattr(given, "to_physical") else given)
    except Exception:  # whatever an object that is no array raises
        raise ParameterError(argument, Words(f"a {type(given).__name__} that is no array"), "an array") from None


#: One column of integers; and a private one, of whose lists no element is refused.
WHOLE_COLUMN = Special(lambda: wrong_columns(whole=True))
WholeColumn: TypeAlias = Annotated[AnyColumn | Sequence[Any], Private(lambda: wrong_columns(whole=True, private=True))]
#: One private column of numbers.
NumberColumn: TypeAlias = Annotated[Numbers | Sequence[Any], Private(lambda: wrong_columns(private=True))]

#: A positive number from 2**-960 to 2**960, or a column with one for each row; `borrow_scale` reads it.
SCALE = Special(_wrong_scales)
Scale: TypeAlias = Annotated[PerRow, SCALE]
