"""Columns as other dtypes, in which a value that does not fit becomes null, and none fails.

A number fits integers if it is whole: 2.7 is none. As a float or a decimal it is rounded to the nearest. A moment as a
date is its day, as `dpfast.calendar` says it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from dpfast.aggregation.calendars import calendar_key
from dpfast.aggregation.csv_fields import parse_text
from dpfast.aggregation.reading_rows import Blocks
from dpfast.columns.dtypes import dtype_name
from dpfast.errors import ColumnError
from dpfast.rows.calendars import Calendar
from dpfast.showing import near_names

__all__ = ["cast_column", "cast_text", "read_cast", "with_casts"]


def cast_column(name: str, schema: pl.Schema, wanted: pl.DataType) -> pl.Expr:
    """Return a column as another dtype; null where it does not fit."""
    if name not in schema:
        lacks = f"cast names the column {name[:60]!r}, which the data lacks"
        raise ColumnError(f"{lacks}; {near_names(name, schema.names())}")
    held, column = schema[name], pl.col(name)
    if held == wanted:
        return column
    if isinstance(held, (pl.String, pl.Categorical, pl.Enum)):
        return cast_text(name, wanted)
    counted = held == pl.Boolean or held.is_integer()
    if (held == pl.Boolean or held.is_numeric()) and wanted.is_numeric():
        column = column.cast(pl.UInt8) if held == pl.Boolean else column
        cast = column.cast(wanted, strict=False)
        if wanted.is_integer() and not counted:
            # NaN and infinities have no cast; what has one is compared with what it came from.
            whole = column.floor() == column if held.is_float() else cast.cast(held, strict=False) == column
            return pl.when(whole).then(cast).alias(name)
        return cast
    if counted and wanted in (pl.String, pl.Boolean):
        return column.cast(wanted)
    if isinstance(held, pl.Datetime) and wanted == pl.Date:
        return calendar_key(Calendar(name, "date"), held)[0].alias(name)
    raise ColumnError(
        f"cannot cast the column {name[:60]!r} of dtype {dtype_name(held)} to {dtype_name(wanted)}: text is cast to "
        "other dtypes, numbers and Booleans to each other, integers and Booleans to text, and datetimes to dates"
    )


def with_casts(frame: pl.LazyFrame, casts: Mapping[str, pl.Expr]) -> pl.LazyFrame:
    """Return a frame with columns cast, categories by way of their text."""
    schema = frame.collect_schema()
    texts = [pl.col(name).cast(pl.String) for name in casts if isinstance(schema[name], (pl.Categorical, pl.Enum))]
    return frame.with_columns(texts).with_columns(casts.values())


def read_cast(blocks: Blocks, casts: Mapping[str, pl.Expr], columns: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Yield these columns, some of them cast."""
    asked = {name: casts[name] for name in columns if name in casts}
    for block in blocks(columns):
        yield with_casts(block.lazy(), asked).collect()


def cast_text(name: str, dtype: pl.DataType | type[pl.DataType] | None) -> pl.Expr:
    """Return a column of text as a dtype, String where there is none; null where it does not parse."""
    held = pl.String() if dtype is None else pl.Series(dtype=dtype).dtype
    parsed = parse_text(name, held)
    if parsed is not None:
        return parsed
    if held == pl.Boolean:
        text = pl.col(name).str.to_lowercase()
        return pl.when(text.is_in(["true", "false"])).then(text == "true").alias(name)
    text = pl.col(name)
    # So does the reader of CSV.
    text = text.str.strip_chars_start(" \t") if held.is_numeric() else text
    return text.cast(held, strict=False)
