"""Parts of dates and datetimes as Polars' expressions that fail on no value."""

from __future__ import annotations

import datetime

import polars as pl

from dpfast.columns.dtypes import dtype_name
from dpfast.errors import ColumnError
from dpfast.rows.calendars import Calendar

__all__ = ["calendar_key", "day_limits", "moment_limits"]

_DTYPES: dict[str, pl.DataType] = {"year": pl.Int32(), "date": pl.Date()}
_EPOCH = datetime.date(1970, 1, 1)
_SECONDS = 86_400
_TICKS = {"ms": 10**3, "us": 10**6}


def calendar_key(entry: Calendar, dtype: pl.DataType) -> tuple[pl.Expr, pl.DataType]:
    """Return the expression of a part of a column of this dtype, and its own dtype; null for what is out of range.

    Raises
    ------
    ColumnError
        If the column holds no dates or datetimes, or only dates where an hour is asked.

    """
    column, part = pl.col(entry.column), entry.part
    made = _DTYPES.get(part, pl.Int8())
    if dtype == pl.Null:
        return column.cast(made), made
    if not isinstance(dtype, (pl.Date, pl.Datetime)):
        raise ColumnError(
            f"the column {entry.column!r} of dtype {dtype_name(dtype)} has no calendar: dpf.calendar takes dates and "
            "datetimes; cast it first"
        )
    if part == "hour" and dtype == pl.Date:
        raise ColumnError(f"the column {entry.column!r} of dtype Date has no hours; ask for another part")
    # Of values far outside Polars gives nonsense for some parts, and panics for others. Nanoseconds go less far.
    if isinstance(dtype, pl.Date):
        within = _is_within(column, pl.Int32(), dtype, *day_limits())
    elif dtype.time_unit != "ns":
        within = _is_within(column, pl.Int64(), dtype, *moment_limits(_TICKS[dtype.time_unit]))
    else:
        return _part(column, part, dtype).cast(made), made
    if isinstance(dtype, pl.Date) or dtype.time_zone is None:
        return _part(pl.when(within).then(column), part, dtype).cast(made), made
    # Before 2.0 Polars sets the clock of a zone for what stands under a null as well.
    shown = pl.when(within).then(column).otherwise(pl.lit(0, dtype=pl.Int64).cast(dtype))
    return pl.when(within).then(_part(shown, part, dtype).cast(made)), made


def _part(column: pl.Expr, part: str, dtype: pl.DataType) -> pl.Expr:
    if part == "date" and dtype == pl.Date:
        return column
    shown: pl.Expr = getattr(column.dt, part)()
    return shown


def day_limits() -> tuple[int, int]:
    """Return the first and the last day that calendars show, counted from 1970."""
    return datetime.date.min.toordinal() - _EPOCH.toordinal(), datetime.date.max.toordinal() - _EPOCH.toordinal()


def moment_limits(a_second: int) -> tuple[int, int]:
    """Return the first and the last moment of which a day before and after is shown, in parts of a second."""
    first, last = day_limits()
    return (first + 1) * _SECONDS * a_second, last * _SECONDS * a_second - 1


def _is_within(column: pl.Expr, physical: pl.DataType, dtype: pl.DataType, first: int, last: int) -> pl.Expr:
    low, high = (pl.lit(limit, dtype=physical).cast(dtype) for limit in (first, last))
    return column.is_between(low, high)
