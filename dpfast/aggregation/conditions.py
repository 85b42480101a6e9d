"""Whether a row's value is there, and whether it fulfils a public condition: native expressions of Polars."""

from __future__ import annotations

import sys

import polars as pl

from dpfast.aggregation.choices import native_choices, plan_candidates
from dpfast.columns.dtypes import dtype_name
from dpfast.errors import ColumnError
from dpfast.queries import Measure

__all__ = ["is_present", "native_bins", "native_codes", "native_matches"]


def is_present(column: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Return whether a value is neither null nor NaN; never null itself."""
    return column.is_not_null() & column.is_not_nan().fill_null(False) if dtype.is_float() else column.is_not_null()


def native_matches(measure: Measure, dtype: pl.DataType) -> pl.Expr:
    """Return what rows contribute to a measure of the kind ``"matches"``, as Int64: never null.

    Raises
    ------
    ColumnError
        If the column cannot be compared with the condition's limits or values.
    ParameterError
        If the column's dtype cannot hold one of the values.

    """
    assert measure.condition is not None
    assert measure.column is not None
    column = pl.col(measure.column)
    if measure.condition.among:
        candidates, fitted = plan_candidates(measure.column, measure.condition.among, dtype, "values")
        fulfilled = native_choices(candidates, fitted) > 0
    else:
        fulfilled = _within(measure, column, dtype)
    below, above = measure.extremes
    numbers = pl.when(fulfilled.fill_null(False)).then(pl.lit(above, pl.Int64)).otherwise(pl.lit(below, pl.Int64))
    return pl.when(is_present(column, dtype)).then(numbers).otherwise(pl.lit(0, pl.Int64))


def native_bins(measure: Measure, dtype: pl.DataType) -> pl.Expr:
    """Return the number of the bin that each row lies in, from 1, as Int64; 0 for none, and never null.

    Raises
    ------
    ColumnError
        If the column holds no numbers.

    """
    column = pl.col(str(measure.column))
    if dtype == pl.Null:
        return pl.lit(0, pl.Int64)
    if dtype == pl.Boolean:
        column, dtype = column.cast(pl.UInt8), pl.UInt8()
    if not (dtype.is_integer() or dtype.is_float()):
        raise ColumnError(
            f"cannot bin the column {measure.column!r} of dtype {dtype_name(dtype)}; bins need integers or floats"
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
    number = (dtype.is_integer() and dtype not in (pl.Int128, pl.UInt128)) or dtype.is_float()
    if not (number or dtype.is_temporal() or dtype in (pl.String, pl.Boolean, pl.Null)):
        raise ColumnError(
            f"cannot tell the values of the column {measure.column!r} of dtype {dtype_name(dtype)} apart; cast it to "
            "Int64, Float64 or String first"
        )
    if dtype == pl.Null:
        return pl.lit(0, pl.Int64)
    code = (column.hash(seed=0) // 4).cast(pl.Int64) + 1
    return pl.when(is_present(column, dtype)).then(code).otherwise(pl.lit(0, pl.Int64))


def _within(measure: Measure, column: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Return whether numbers lie between the limits, compared exactly."""
    assert measure.condition is not None
    if dtype == pl.Null:
        return pl.lit(False)
    if dtype == pl.Boolean:
        column, dtype = column.cast(pl.UInt8), pl.UInt8()
    if dtype.is_float():
        least, most = measure.condition.floats()
        return column.cast(pl.Float64).is_between(pl.lit(least), pl.lit(most))
    if not dtype.is_integer() or dtype in (pl.Int128, pl.UInt128):
        raise ColumnError(
            f"cannot compare the column {measure.column!r} of dtype {dtype_name(dtype)} with numbers; cast it to "
            "Float64 or Int64 first, or give equal= or among= values of its kind"
        )
    wide = pl.UInt64 if dtype == pl.UInt64 else pl.Int64
    lowest, largest = (0, 2**64 - 1) if dtype == pl.UInt64 else (-(2**63), 2**63 - 1)
    first, last = measure.condition.integers(lowest, largest)
    if first > last:
        return pl.lit(False)
    least_whole, most_whole = (pl.lit(min(max(limit, lowest), largest), wide) for limit in (first, last))
    return column.cast(wide).is_between(least_whole, most_whole)
