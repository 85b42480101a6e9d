"""Whether a row's value is there, and whether public conditions hold of it: native expressions of Polars."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable

import polars as pl

from dpfast.aggregation.filtering import ask, native_filter
from dpfast.columns.comparable import comparable
from dpfast.columns.dtypes import dtype_name
from dpfast.errors import ColumnError
from dpfast.queries import Measure
from dpfast.rows.filters import Comparison, Every, Filter

__all__ = ["are_present", "is_present", "native_bins", "native_codes", "native_matches", "range_of"]

#: What errors call those who ask.
_ASKERS = {"matches": "a proportion", "passes": "a count"}


def is_present(column: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Return whether a value is neither null nor NaN; never null itself."""
    return column.is_not_null() & column.is_not_nan().fill_null(False) if dtype.is_float() else column.is_not_null()


def are_present(columns: Iterable[str], schema: pl.Schema) -> pl.Expr:
    """Return whether all of some columns have a value; at least one is given."""
    return pl.all_horizontal(is_present(pl.col(name), schema[name]) for name in columns)


def native_matches(measure: Measure, schema: pl.Schema) -> pl.Expr:
    """Return what rows contribute to a measure of the kind ``"matches"`` or ``"passes"``, as Int64: never null.

    Raises
    ------
    ColumnError
        If a column cannot be compared with the condition's values.

    """
    assert measure.condition is not None
    holds = native_filter(measure.condition, schema, _ASKERS[measure.kind]).fill_null(False)
    below, above = measure.extremes
    numbers = pl.when(holds).then(pl.lit(above, pl.Int64)).otherwise(pl.lit(below, pl.Int64))
    if not measure.needed:
        return numbers
    return pl.when(are_present(measure.needed, schema)).then(numbers).otherwise(pl.lit(0, pl.Int64))


def range_of(condition: Filter, schema: pl.Schema) -> tuple[float, float] | None:
    """Return the least and the largest number of one column of which a condition holds; None if it is of another form.

    The column is of numbers that float64 holds. No number lies in a range whose ends have changed their places.
    """
    tests = condition.parts if isinstance(condition, Every) else (condition,)
    least, most = -math.inf, math.inf
    for test in tests:
        asked = ask(test, schema) if isinstance(test, Comparison) and len(condition.columns) == 1 else None
        if asked is None or asked.asks not in ("<", "<=", ">", ">=", "=="):
            return None
        limit = float(asked.values[0])
        if asked.asks in (">", ">=", "=="):
            least = max(least, math.nextafter(limit, math.inf) if asked.asks == ">" else limit)
        if asked.asks in ("<", "<=", "=="):
            most = min(most, math.nextafter(limit, -math.inf) if asked.asks == "<" else limit)
    return least, most


def native_bins(measure: Measure, dtype: pl.DataType) -> pl.Expr:
    """Return the number of the bin that each row lies in, from 1, as Int64; 0 for none, and never null.

    Raises
    ------
    ColumnError
        If the column holds no numbers.

    """
    column = pl.col(str(measure.column))
    if dtype == pl.Null:
        return column.is_not_null().cast(pl.Int64)
    if dtype == pl.Boolean:
        column, dtype = column.cast(pl.UInt8), pl.UInt8()
    if measure.ticks:
        # Edges of 128 bits hold every decimal, and stand for the ends where there is none.
        whole = column.to_physical().cast(pl.Int128)
        number = pl.lit(pl.Series(measure.edges, dtype=pl.Int128)).search_sorted(whole, side="right").cast(pl.Int64)
        return pl.when((number < len(measure.edges)) & whole.is_not_null()).then(number).otherwise(pl.lit(0, pl.Int64))
    if not (dtype.is_integer() or dtype.is_float()):
        raise ColumnError(
            f"cannot bin the column {measure.column!r} of dtype {dtype_name(dtype)}; bins need numbers, dates or times"
        )
    # The last bin holds infinity too where nothing else ends it.
    values = column.cast(pl.Float64).fill_nan(None).clip(upper_bound=sys.float_info.max)
    place = pl.lit(pl.Series(measure.edges, dtype=pl.Float64)).search_sorted(values, side="right").cast(pl.Int64)
    inside = (place < len(measure.edges)) & values.is_not_null()
    return pl.when(inside).then(place).otherwise(pl.lit(0, pl.Int64))


def native_codes(measure: Measure, dtype: pl.DataType) -> pl.Expr:
    """Return a number from 1 to 2**62 for each row's value, the same for equal ones, as Int64; 0 for null and NaN.

    Raises
    ------
    ColumnError
        If values of the column cannot be told apart.

    """
    column = pl.col(str(measure.column))
    if isinstance(dtype, (pl.Categorical, pl.Enum)):
        # The numbers of categories depend on the order in which they come.
        column, dtype = column.cast(pl.String), pl.String()
    if not (dtype.is_float() or dtype == pl.Null or comparable(dtype)):
        raise ColumnError(
            f"cannot tell the values of the column {measure.column!r} of dtype {dtype_name(dtype)} apart; cast it to "
            "Int64, Float64 or String first"
        )
    if dtype == pl.Null:
        # A literal would have one row where the data have none or many.
        return column.is_not_null().cast(pl.Int64)
    code = (column.hash(seed=0) // 4).cast(pl.Int64) + 1
    return pl.when(is_present(column, dtype)).then(code).otherwise(pl.lit(0, pl.Int64))
