"""Filters of rows on columns of known dtypes: what is asked of the values that engines hold, and Polars' expression.

Public values are read once, here, as what the column's dtype holds: whole numbers for integers, decimals, dates and
times, floats, text, bytes or Booleans. A limit between two of them, or beyond all, becomes one that they hold or a
constant, so that no engine converts, rounds or overflows, and all compare the same.
"""

from __future__ import annotations

import datetime
import math
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache, reduce
from operator import and_, or_
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl

from dpfast.aggregation.sources import missing_column, refuse_pattern
from dpfast.columns.dtypes import dtype_name
from dpfast.columns.values import ticks_of
from dpfast.errors import ColumnError
from dpfast.rows.durations import read_duration
from dpfast.rows.filters import Comparison, Every, Filter, Missing, Not, OneOf, Some, Test

__all__ = ["Asked", "ask", "check_filter", "native_filter"]

_DAY_NANOSECONDS = 86_400 * 10**9
_LARGEST = sys.float_info.max
_TOO_FINE = re.compile(r"[.,]\d{7}")

Asks: TypeAlias = Literal["nothing", "value", "null", "nan", "in", "==", "!=", "<", "<=", ">", ">="]


@dataclass(frozen=True)
class Asked:
    """What is asked of a column's values, which are compared as they are held.

    Attributes
    ----------
    column
        Its name.
    asks
        ``"nothing"`` is true of no row, ``"value"`` where there is a value, neither null nor NaN; ``"in"`` where it is
        one of several. All but ``"null"`` and ``"nan"`` are false where there is no value.
    values
        What is compared with: one for comparisons, values of the dtype all of them.

    """

    column: str
    asks: Asks
    values: tuple[Any, ...] = ()


def check_filter(where: Filter, schema: pl.Schema, asker: str = "where") -> None:
    """Refuse a filter that columns of these dtypes cannot be asked.

    Raises
    ------
    ColumnError
        A column is missing, or of a dtype that is not compared with such a value.

    """
    for test in where.tests():
        ask(test, schema, asker)


def ask(test: Test, schema: pl.Schema, asker: str = "where") -> Asked:
    """Return what is asked of a column of this schema; errors say who asks."""
    name = test.column
    if name not in schema:
        raise missing_column(name, schema.names(), asker)
    refuse_pattern(name)
    dtype = schema[name]
    if isinstance(test, Missing):
        if test.kind == "nan" and not (dtype.is_float() or dtype == pl.Null):
            raise ColumnError(f"the column {name!r} of dtype {dtype_name(dtype)} has no NaN; ask for .is_null()")
        return Asked(name, test.kind)
    held = _held_by(name, dtype, asker)
    if isinstance(test, OneOf):
        limits = [held.limits(value) for value in test.values]
        found = dict.fromkeys(low for low, high in limits if low is not None and low == high)
        return Asked(name, "in", tuple(found)) if found else Asked(name, "nothing")
    assert isinstance(test, Comparison)
    low, high = held.limits(test.value)
    if not held.ordered and test.operator not in ("==", "!="):
        raise ColumnError(f"the column {name!r} of dtype {dtype_name(dtype)} has no order; compare it by == or !=")
    if test.operator in ("==", "!="):
        if low is None or low != high:
            return Asked(name, "nothing" if test.operator == "==" else "value")
        return Asked(name, test.operator, (low,))
    # The nearest value on the side from which the limit is met.
    limit = low if test.operator in ("<=", ">") else high
    if limit is None:
        return Asked(name, "nothing" if test.operator in ("<=", ">=") else "value")
    return Asked(name, test.operator, (limit,))


def native_filter(where: Filter, schema: pl.Schema, asker: str = "where") -> pl.Expr:
    """Return the expression that is true where a row passes, and false or null where not.

    It fails on no value: all that it does is to compare values with literals of their own dtype.
    """
    return _native(where, schema, asker, holds=True)


def _native(where: Filter, schema: pl.Schema, asker: str, *, holds: bool) -> pl.Expr:
    """Return where a filter holds, or where it does not, by de Morgan: null stands for false."""
    if isinstance(where, Test):
        expr = _compare(ask(where, schema, asker), schema[where.column])
        return expr if holds else ~expr.fill_null(False)
    if isinstance(where, Not):
        return _native(where.parts[0], schema, asker, holds=not holds)
    assert isinstance(where, (Every, Some))
    parts = [_native(part, schema, asker, holds=holds) for part in where.parts]
    return _balanced(parts, is_every=isinstance(where, Every) == holds)


def _balanced(parts: Sequence[pl.Expr], *, is_every: bool) -> pl.Expr:
    """Return expressions joined in a tree of little depth."""
    if len(parts) <= 8:
        return reduce(and_ if is_every else or_, parts)
    half = len(parts) // 2
    joined = [_balanced(side, is_every=is_every) for side in (parts[:half], parts[half:])]
    return _balanced(joined, is_every=is_every)


def _compare(asked: Asked, dtype: pl.DataType) -> pl.Expr:
    column = pl.col(asked.column)
    if asked.asks == "nothing":
        return pl.lit(False)
    if asked.asks == "null":
        return column.is_null()
    if dtype == pl.Null:
        # No row has a value there, nor NaN.
        return pl.lit(False)
    if asked.asks == "nan":
        return column.is_nan()
    if asked.asks == "value":
        return column.is_not_null() & column.is_not_nan() if dtype.is_float() else column.is_not_null()
    column, held = _comparable(column, dtype)
    if asked.asks == "in":
        return column.is_in(_literals(asked.values, held).implode())
    if dtype == pl.Boolean:
        return column if (asked.asks == "==") == asked.values[0] else ~column
    value = pl.lit(_literals(asked.values, held).item(), dtype=held) if held in _PLAIN else _temporal(asked, held)
    if asked.asks in ("<", "<=", "=="):
        return {"<": column < value, "<=": column <= value, "==": column == value}[asked.asks]
    compared = {">": column > value, ">=": column >= value, "!=": column != value}[asked.asks]
    # Polars holds NaN for the largest number.
    return compared & column.is_not_nan() if dtype.is_float() else compared


_PLAIN = (
    *(pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.Int128, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64, pl.Float64),
    *(pl.String, pl.Binary, pl.Boolean, *([pl.UInt128] if hasattr(pl, "UInt128") else [])),
)


def _comparable(column: pl.Expr, dtype: pl.DataType) -> tuple[pl.Expr, pl.DataType]:
    """Return a column in the dtype that it is compared in, which holds all its values."""
    if dtype.is_float():
        return (column if dtype == pl.Float64 else column.cast(pl.Float64)), pl.Float64()
    if isinstance(dtype, (pl.Categorical, pl.Enum)):
        return column.cast(pl.String), pl.String()
    if isinstance(dtype, pl.Decimal):
        return column.to_physical(), pl.Int128()
    return column, dtype


def _literals(values: Sequence[Any], dtype: pl.DataType) -> pl.Series:
    """Return public values as a column of a dtype."""
    if dtype in _PLAIN:
        return pl.Series(values, dtype=dtype)
    return pl.Series(values, dtype=pl.Int32 if dtype == pl.Date else pl.Int64).cast(dtype)


def _temporal(asked: Asked, dtype: pl.DataType) -> pl.Expr:
    return pl.lit(asked.values[0], dtype=pl.Int32 if dtype == pl.Date else pl.Int64).cast(dtype)


@dataclass(frozen=True)
class _Held:
    """The values that a column may hold, in order, as far as comparisons need to know them."""

    asker: str
    name: str
    dtype: pl.DataType
    words: str
    example: str
    ordered: bool = True

    def limits(self, value: Any) -> tuple[Any, Any]:
        """Return the largest value that is at most this one, and the smallest that is at least; None if none is.

        Raises
        ------
        ColumnError
            The value is of another kind.

        """
        if self.dtype == pl.Null:
            return None, None
        read = self._read(value)
        if read is None:
            raise ColumnError(
                f"{self.asker} compares the column {self.name!r} of dtype {dtype_name(self.dtype)} with "
                f"{_kind_of(value)}; compare it with {self.words}, such as {self.example}{self._declared(value)}"
            )
        return read

    def _declared(self, value: Any) -> str:
        """Return how text becomes numbers; so are columns that folders name, as in ``year=2024``."""
        if self.dtype != pl.String or not _is_number(value):
            return ""
        return "; or, where folders name it, declare it as a number in the schema"

    def _read(self, value: Any) -> tuple[Any, Any] | None:
        dtype = self.dtype
        if dtype.is_float():
            return _near_floats(value, dtype) if _is_number(value) else None
        if dtype.is_integer():
            return _whole(value, *_range_of(dtype)) if _is_number(value) else None
        if isinstance(dtype, pl.Decimal):
            if not _is_number(value):
                return None
            most = 10 ** (dtype.precision or 38) - 1
            if isinstance(value, float) and math.isfinite(value):
                # As it is written: nobody means the binary fraction next to 0.1.
                value = Decimal(repr(value))
            return _whole(value if _is_infinite(value) else Fraction(value) * 10**dtype.scale, -most, most)
        kinds: dict[type[pl.DataType], type] = {
            pl.Boolean: bool,
            pl.String: str,
            pl.Categorical: str,
            pl.Enum: str,
            pl.Binary: bytes,
        }
        if type(dtype) in kinds:
            return (value, value) if type(value) is kinds[type(dtype)] else None
        ticks = _ticks(value, dtype)
        if ticks is None:
            return None
        most = _DAY_NANOSECONDS - 1 if dtype == pl.Time else 2 ** (31 if dtype == pl.Date else 63) - 1
        return _whole(ticks, 0 if dtype == pl.Time else -most - 1, most)


def _held_by(name: str, dtype: pl.DataType, asker: str) -> _Held:
    if dtype.is_numeric():
        return _Held(asker, name, dtype, "numbers", "15")
    if isinstance(dtype, pl.Datetime):
        if dtype.time_zone is None:
            return _Held(asker, name, dtype, "a datetime without a time zone", "'2024-02-29T12:00'")
        return _Held(asker, name, dtype, "a datetime with a time zone", "'2024-02-29T12:00Z'")
    known: dict[type[pl.DataType], tuple[str, str]] = {
        pl.Boolean: ("True or False", "True"),
        pl.String: ("text", "'AA'"),
        pl.Categorical: ("text", "'AA'"),
        pl.Enum: ("text", "'AA'"),
        pl.Binary: ("bytes", "b'AA'"),
        pl.Date: ("a date", "'2024-02-29'"),
        pl.Time: ("a time", "'12:00'"),
        pl.Duration: ("a timedelta", "'1h30m'"),
        pl.Null: ("anything", "1"),
    }
    if type(dtype) not in known:
        raise ColumnError(
            f"{asker} cannot compare the column {name!r} of dtype {dtype_name(dtype)}; ask for .is_null(), or compare "
            "a column of numbers, text, Booleans, dates or times"
        )
    return _Held(asker, name, dtype, *known[type(dtype)], ordered=dtype != pl.Boolean)


def _kind_of(value: Any) -> str:
    """Return what a public value is called."""
    if _is_number(value):
        return "a number"
    if isinstance(value, datetime.datetime):
        return f"a datetime {'without' if value.tzinfo is None else 'with'} a time zone"
    names = {str: "text", bool: "a Boolean", bytes: "bytes", datetime.date: "a date", datetime.time: "a time"}
    shown = f" {value[:40]!r}" if isinstance(value, str) else ""
    return names.get(type(value), f"a {type(value).__name__}") + shown


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal, Fraction)) and not isinstance(value, bool)


def _is_infinite(value: Any) -> bool:
    return isinstance(value, float) and math.isinf(value)


@cache
def _range_of(dtype: pl.DataType) -> tuple[int, int]:
    bits = int(re.sub(r"\D", "", str(dtype)))
    return (0, 2**bits - 1) if dtype.is_unsigned_integer() else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _whole(value: Any, lowest: int, largest: int) -> tuple[int | None, int | None]:
    """Return the whole numbers next to a number, of those from ``lowest`` to ``largest``."""
    if _is_infinite(value):
        return (largest, None) if value > 0 else (None, lowest)
    low, high = (value, value) if type(value) is int else (math.floor(Fraction(value)), math.ceil(Fraction(value)))
    return None if low < lowest else min(low, largest), None if high > largest else max(high, lowest)


def _near_floats(value: Any, dtype: pl.DataType) -> tuple[float, float]:
    """Return the nearest float of a dtype, twice; between the largest and infinity these two."""
    kind: Any = np.float64 if dtype == pl.Float64 else np.float32 if dtype == pl.Float32 else np.float16
    most = float(np.finfo(kind).max)
    if _is_infinite(value):
        return value, value
    if kind is np.float64 and (type(value) is float or (type(value) is int and abs(value) <= 2**53)):
        return value + 0.0, value + 0.0
    with np.errstate(over="ignore"):
        near = math.inf if abs(Fraction(value)) > Fraction(_LARGEST) else abs(float(kind(float(value))))
    if math.isinf(near):
        return (most, math.inf) if value > 0 else (-math.inf, -most)
    near = near if value > 0 else -near
    return near + 0.0, near + 0.0


def _ticks(value: Any, dtype: pl.DataType) -> Fraction | None:
    """Return a date or time, or a text that says one, as a number of what Polars holds it as; None if it is none."""
    moment = _parsed(value, dtype) if isinstance(value, str) else value
    if isinstance(dtype, pl.Datetime) and type(moment) is datetime.date:
        moment = datetime.datetime.combine(moment, datetime.time())
    return ticks_of(moment, dtype)


def _parsed(text: str, dtype: pl.DataType) -> Any:
    """Return what a text says in ISO's form, or of durations as in ``1h30m``; None for nothing."""
    read: Callable[[str], Any] = datetime.datetime.fromisoformat
    if isinstance(dtype, pl.Duration):
        read = read_duration
    elif dtype in (pl.Date, pl.Time):
        read = (datetime.date if dtype == pl.Date else datetime.time).fromisoformat
    if _TOO_FINE.search(text):
        return None
    try:
        return read(text)
    except ValueError:
        return None
