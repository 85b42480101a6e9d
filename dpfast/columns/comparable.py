"""Which dtypes have values that can be told apart exactly, as keys, privacy units and candidates must be."""

from __future__ import annotations

import polars as pl

__all__ = ["as_read", "comparable", "has_room", "is_integer", "is_wide", "narrowed"]

_LOWEST, _LARGEST = -(2**63), 2**63 - 1
#: Decimals of no more digits are whole numbers of 64 bits.
_NARROW_DIGITS = 18


def is_integer(dtype: pl.DataType) -> bool:
    """Return whether a dtype is an integer of at most 64 bits."""
    return dtype.is_integer() and dtype not in (pl.Int128, pl.UInt128)


def is_wide(dtype: pl.DataType) -> bool:
    """Return whether a dtype's physical form is an integer of 128 bits: a decimal's, and those of the widest integers.

    Examples
    --------
    >>> is_wide(pl.Decimal(9, 2)), is_wide(pl.Int128()), is_wide(pl.Int64())
    (True, True, False)

    """
    return isinstance(dtype, (pl.Decimal, pl.Int128, pl.UInt128))


def narrowed(column: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Return a wide column as Int64, a decimal as its number of last places; other columns as they are.

    Guarantee
        No value fails: what is beyond Int64 becomes its largest or smallest number. That moves no two values further
        apart. A decimal of up to 18 digits that is beyond them, which no library should hold, becomes null.

    Examples
    --------
    >>> frame = pl.DataFrame({"x": pl.Series([1, 2**100], dtype=pl.Int128)})
    >>> frame.select(narrowed(pl.col("x"), pl.Int128()))["x"].to_list()
    [1, 9223372036854775807]

    """
    if isinstance(dtype, pl.Decimal):
        column = column.to_physical()
        if dtype.precision is not None and dtype.precision <= _NARROW_DIGITS:
            return column.cast(pl.Int64, strict=False)
        dtype = pl.Int128()
    if dtype == pl.Int128:
        return column.clip(_LOWEST, _LARGEST).cast(pl.Int64)
    return column.clip(upper_bound=_LARGEST).cast(pl.Int64) if dtype == pl.UInt128 else column


def as_read(column: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Return a column as blocks of rows read it: Arrow holds decimals, but no integers of 128 bits."""
    return narrowed(column, dtype) if dtype.is_integer() else column


def comparable(dtype: pl.DataType) -> object:
    """Return a mark shared by the dtypes whose values may be compared; None for those that are no keys.

    Examples
    --------
    >>> comparable(pl.Enum(["a"])) == comparable(pl.String()), comparable(pl.Float64())
    (True, None)

    """
    if dtype.is_integer():
        return "integer"
    if isinstance(dtype, (pl.String, pl.Categorical, pl.Enum)):
        return "string"
    if isinstance(dtype, pl.Datetime):
        # Moments are the same whatever zone they are shown in; without one they are of no zone.
        return ("datetime", dtype.time_zone is not None)
    marks = {
        pl.Binary: "binary",
        pl.Boolean: "boolean",
        pl.Date: "date",
        pl.Decimal: "decimal",
        pl.Duration: "duration",
        pl.Time: "time",
    }
    return marks.get(type(dtype))


def has_room(dtype: pl.Categorical) -> bool:
    """Return whether new categories may be added without filling a small category space."""
    return dtype.categories.physical() == pl.UInt32
