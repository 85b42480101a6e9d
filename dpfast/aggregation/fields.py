"""Fields of CSV files and names of folders as values of a dtype, each by itself: what does not parse is null."""

from __future__ import annotations

import polars as pl

from dpfast.columns.dtypes import dtype_name
from dpfast.errors import ColumnError

__all__ = ["parse_text"]

_MOMENT = "%Y-%m-%d %H:%M:%S%.f"


def parse_text(name: str, dtype: pl.DataType) -> pl.Expr | None:
    """Return how a column of text becomes the dtype, field by field; None where Polars' reader does that.

    The reader would take the format of all dates from the first, so that one row could change the others.

    Raises
    ------
    ColumnError
        If text cannot become values of the dtype.

    """
    text = pl.col(name)
    if dtype in (pl.String, pl.Boolean) or (dtype.is_numeric() and not dtype.is_decimal()):
        return None
    if isinstance(dtype, pl.Categorical) and dtype.categories.physical() != pl.UInt32:
        raise ColumnError(
            f"schema declares the column {name!r} as a Categorical with room for few categories, which the data "
            "could exceed; declare it String"
        )
    if isinstance(dtype, (pl.Categorical, pl.Enum, pl.Decimal)):
        return text.cast(dtype, strict=False)
    if dtype == pl.Date:
        return text.str.to_date("%Y-%m-%d", strict=False)
    if dtype == pl.Time:
        return text.str.to_time("%H:%M:%S%.f", strict=False)
    if isinstance(dtype, pl.Datetime):
        return _parse_moment(text, dtype).alias(name)
    raise ColumnError(
        f"schema declares the column {name!r} with dtype {dtype_name(dtype)}, which is not read from CSV: declare "
        "numbers, Decimal, Boolean, String, Categorical, Enum, Date, Datetime or Time; durations as numbers of seconds"
    )


def _parse_moment(text: pl.Expr, dtype: pl.Datetime) -> pl.Expr:
    """Return moments: with a time zone those that say how far they are from UTC, without one those that do not."""
    spaced = text.str.replace("T", " ", literal=True)
    zone, form = dtype.time_zone, _MOMENT
    if zone is not None:
        spaced, form = spaced.str.replace("Z$", "+00:00"), _MOMENT + "%#z"
    coarse, moment = (
        spaced.str.to_datetime(form, time_unit=unit, time_zone=None if zone is None else "UTC", strict=False)
        for unit in ("ms", dtype.time_unit)
    )
    # Polars wraps a moment that nanoseconds cannot hold into another year.
    held = pl.when(coarse.cast(dtype, strict=False).is_not_null()).then(moment)
    if zone is not None:
        return held.dt.convert_time_zone(zone)
    return pl.coalesce(held, text.str.to_date("%Y-%m-%d", strict=False).cast(dtype, strict=False))
