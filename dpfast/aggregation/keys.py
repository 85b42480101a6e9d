"""Key columns: what they may be, how public keys are checked, and the expressions that read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import polars as pl

from dpfast.aggregation.calendars import calendar_key
from dpfast.aggregation.coding import CodedKeys, duplicate_keys
from dpfast.aggregation.sources import missing_column, refuse_pattern
from dpfast.aggregation.strings import StringNumbers
from dpfast.columns.comparable import as_read, comparable, has_room, is_integer, is_wide, narrowed
from dpfast.columns.dtypes import dtype_name
from dpfast.columns.edges import are_times, floats_of
from dpfast.columns.values import values_of, whole_edges
from dpfast.errors import ColumnError, ParameterError
from dpfast.queries import Bins
from dpfast.rows.calendars import Calendar

__all__ = [
    "KeyColumn",
    "KeyEntry",
    "PublicKeys",
    "adopt_keys",
    "code_keys",
    "column_of",
    "fit_keys",
    "label_keys",
    "name_of",
    "plan_keys",
    "prepare_keys",
]

#: What rows are grouped by: a column, or what is made of one.
KeyEntry: TypeAlias = str | Bins | Calendar

_MOST_LONG_STRINGS = 1 << 16
"""With more distinct strings of over 12 bytes, looking each row up costs more than Polars' own group_by."""


@dataclass(frozen=True)
class KeyColumn:
    """One key column of the data.

    Attributes
    ----------
    name
        The key column's name.
    native
        The expression that Polars groups and joins by: the column itself, or a bin's number.
    dtype
        That expression's dtype.
    values
        The column itself (a null column as one of floats where it is binned), or the numbers of bins of a column that
        is not compared as float64.
    bins
        The bins, if it has any.
    edges
        What ``values`` are compared with, if it has bins.

    """

    name: str
    native: pl.Expr
    dtype: pl.DataType
    values: pl.Expr
    bins: Bins | None = None
    edges: tuple[float, ...] = ()


@dataclass(frozen=True)
class PublicKeys:
    """Public keys, checked and cast to the dtypes of the data.

    Attributes
    ----------
    given
        The keys as the user gave them, columns in the order of ``by``.
    native
        The keys in the dtypes of ``KeyColumn.native``, columns named ``key0``, ``key1``, ...
    native_exprs
        The expressions of the data's keys in those dtypes, under those names.
    coded
        The keys as integers, one entry per column; None if a column has too many long strings for that.
    coded_exprs
        The expressions of the data's columns that the coder reads, under the same names.

    """

    given: pl.DataFrame
    native: pl.DataFrame
    native_exprs: list[pl.Expr]
    coded: list[CodedKeys] | None
    coded_exprs: list[pl.Expr]

    def refuse_duplicates(self) -> None:
        """Refuse keys that are not unique as values of the data's dtypes (Soundness rule 19)."""
        # Not all versions of Polars know what is unique where there is no column.
        unique = self.native.is_unique().all() if self.native.width else self.given.height < 2
        if not unique:
            raise duplicate_keys()


def name_of(entry: KeyEntry) -> str:
    """Return the name of a key column."""
    return entry.name if isinstance(entry, Calendar) else column_of(entry)


def column_of(entry: KeyEntry) -> str:
    """Return the name of the data's column that a key is made of."""
    return entry if isinstance(entry, str) else entry.column


def plan_keys(by: Sequence[KeyEntry], schema: pl.Schema) -> list[KeyColumn]:
    """Return the key columns of data of this schema.

    Null is a key like any other. A value outside the bins has the null key.

    Raises
    ------
    ColumnError
        If a column is missing or of a dtype that cannot be a key; floats can by way of ``dpf.bins``.
    ParameterError
        If a column is named twice.

    """
    columns = [_plan_key(entry, schema) for entry in by]
    names = [column.name for column in columns]
    if len(set(names)) < len(names):
        raise ParameterError("by", names, "columns named once each")
    return columns


def _plan_key(entry: KeyEntry, schema: pl.Schema) -> KeyColumn:
    name = column_of(entry)
    if not isinstance(name, str) or name not in schema:
        raise missing_column(name, schema.names(), "by")
    refuse_pattern(name)
    dtype = schema[name]
    if isinstance(entry, Calendar):
        native, made = calendar_key(entry, dtype)
        return KeyColumn(entry.name, native, made, native)
    if isinstance(entry, Bins):
        if not (dtype.is_numeric() or dtype.is_temporal() or dtype == pl.Null):
            raise ColumnError(
                f"cannot bin the column {name!r} of dtype {dtype_name(dtype)}; bins need numbers, dates or times"
            )
        ticks = whole_edges(values_of(dtype), entry.edges, name)
        edges = pl.Series(entry.edges, dtype=pl.Float64) if ticks is None else pl.Series(ticks, dtype=pl.Int128)
        values = pl.col(name).cast(pl.Float64) if dtype == pl.Null or is_wide(dtype) else pl.col(name)
        compared = values.cast(pl.Float64).fill_nan(None)
        if ticks is not None:
            compared = pl.col(name).to_physical().cast(pl.Int128)
        place = pl.lit(edges).search_sorted(compared, side="right")
        inside = (place > 0) & (place < len(edges)) & compared.is_not_null()
        number = pl.when(inside).then(place - 1).otherwise(None).cast(pl.UInt32)
        if ticks is not None:
            return KeyColumn(name, number, pl.UInt32(), number.cast(pl.Float64), entry, tuple(range(len(entry.edges))))
        return KeyColumn(name, number, pl.UInt32(), values, entry, floats_of(entry.edges))
    if dtype.is_float():
        raise ColumnError(
            f"the column {name!r} of dtype {dtype_name(dtype)} cannot be a key: write dpf.bins({name!r}, edges) in its "
            "place"
        )
    if dtype == pl.Null:
        return KeyColumn(name, pl.col(name).cast(pl.Boolean), dtype, pl.col(name))
    if comparable(dtype) is None:
        raise ColumnError(
            f"the column {name!r} of dtype {dtype_name(dtype)} cannot be a key, as numbers, decimals, strings, bytes, "
            "Booleans, dates, times and durations can; cast it, for example to a string"
        )
    return KeyColumn(name, pl.col(name), dtype, pl.col(name))


def prepare_keys(keys: pl.DataFrame, columns: Sequence[KeyColumn]) -> PublicKeys:
    """Check public keys against the key columns (uniqueness apart) and code them.

    Raises
    ------
    ParameterError
        If there are no keys, or a key cannot be written in the data's dtype without loss.
    ColumnError
        If the columns are not those of ``by``, or one is of another kind than the data's.

    """
    if not isinstance(keys, pl.DataFrame):
        raise ParameterError("keys", keys, "a polars.DataFrame with one column per entry of by, or None")
    names = [column.name for column in columns]
    if set(keys.columns) != set(names):
        raise ColumnError(f"keys must have exactly the columns {names}, but has {keys.columns[:8]}")
    if keys.height == 0:
        raise ParameterError("keys", keys, "a frame of at least one key", "write keys=None to select them")
    given = keys.select(names) if names else keys
    cast = [fit_keys(given[column.name], column) for column in columns]
    return _code_columns(given, columns, [series for series, _ in cast], [native for _, native in cast])


def adopt_keys(found: pl.DataFrame, columns: Sequence[KeyColumn]) -> PublicKeys:
    """Return keys found in the data (one column per key column, unique rows) in the same form."""
    natives = [column.native for column in columns]
    return _code_columns(label_keys(found, columns), columns, found.get_columns(), natives)


def label_keys(found: pl.DataFrame, columns: Sequence[KeyColumn]) -> pl.DataFrame:
    """Return found keys under the names of the key columns, bins by their labels."""
    return pl.DataFrame(
        {
            column.name: series if column.bins is None else pl.Series(column.bins.labels).gather(series)
            for series, column in zip(found.get_columns(), columns, strict=True)
        }
    )


def _code_columns(
    given: pl.DataFrame, columns: Sequence[KeyColumn], cast: list[pl.Series], natives: list[pl.Expr]
) -> PublicKeys:
    coded: list[CodedKeys | None] = []
    coded_exprs = []
    for column, series, native in zip(columns, cast, natives, strict=True):
        if column.bins is not None:
            edges = np.array(column.edges, np.float64)
            coded.append(CodedKeys(series, edges=edges))
            coded_exprs.append(column.values)
        else:
            coded.append(code_keys(series))
            coded_exprs.append(as_read(native, series.dtype))
    complete = [codes for codes in coded if codes is not None]
    return PublicKeys(
        given,
        pl.DataFrame([series.alias(f"key{i}") for i, series in enumerate(cast)]),
        [expr.alias(f"key{i}") for i, expr in enumerate(natives)],
        complete if len(complete) == len(coded) else None,
        [expr.alias(f"key{i}") for i, expr in enumerate(coded_exprs)],
    )


def code_keys(series: pl.Series) -> CodedKeys | None:
    """Return a column of keys as integers; None for too many long strings, bytes, and integers beyond int64.

    Of a wide dtype they are for the data's column as it is `narrowed`.
    """
    if series.dtype == pl.Binary:
        return None
    if is_wide(series.dtype):
        codes = series.to_frame("key").select(narrowed(pl.col("key"), series.dtype)).to_series()
        # The ends stand for all that is beyond them.
        inside = codes.is_between(-(2**63), 2**63 - 1, closed="none") | series.is_null()
        return CodedKeys(codes) if inside.all() else None
    if series.dtype != pl.String:
        return CodedKeys(series.to_physical())
    numbered = StringNumbers.of_keys(series, _MOST_LONG_STRINGS)
    return None if numbered is None else CodedKeys(numbered[1], strings=numbered[0])


def fit_keys(series: pl.Series, column: KeyColumn) -> tuple[pl.Series, pl.Expr]:
    """Return the keys in the dtype of the data, and the expression of the data's keys in that dtype."""
    if column.bins is not None:
        return _cast_bins(series, column.bins), column.native
    if column.dtype == pl.Null:
        if series.dtype == pl.Null:
            return series.cast(pl.Boolean), column.native
        if comparable(series.dtype) is None:
            raise ColumnError(f"the keys' column {column.name!r} of dtype {dtype_name(series.dtype)} cannot be a key")
        return series, column.values.cast(series.dtype)
    if series.dtype == column.dtype:
        return series, column.native
    if series.dtype != pl.Null and comparable(series.dtype) != comparable(column.dtype):
        raise ColumnError(
            f"the keys' column {column.name!r} is of dtype {dtype_name(series.dtype)}, the data's of dtype "
            f"{dtype_name(column.dtype)}: cast one of them"
        )
    native = column.native
    dtype = column.dtype
    if isinstance(dtype, pl.Categorical) and not has_room(dtype):
        native, dtype = native.cast(pl.String), pl.String()
    cast = series.cast(dtype, strict=False)
    if not cast.cast(series.dtype, strict=False).eq_missing(series).all():
        raise ParameterError(
            "keys",
            series.dtype,
            f"values that the data's dtype {dtype_name(column.dtype)} holds, in the column {column.name!r}",
        )
    return cast, native


def _cast_bins(series: pl.Series, bins: Bins) -> pl.Series:
    """Return the numbers of the bins whose labels are given."""
    if are_times(bins.edges):
        return _cast_times(series, bins)
    if not (series.dtype == pl.Null or series.dtype.is_float() or is_integer(series.dtype)):
        raise ColumnError(f"the keys' column {bins.column!r} of dtype {dtype_name(series.dtype)} must hold left edges")
    floats = series.cast(pl.Float64)
    labels = pl.Series(bins.labels, dtype=pl.Float64)
    numbers = labels.search_sorted(floats.fill_null(labels[0]), side="left").clip(0, len(labels) - 1)
    exact = (labels.gather(numbers) == floats) & (floats.cast(series.dtype, strict=False) == series)
    if not (exact | series.is_null()).fill_null(False).all():
        raise ParameterError("keys", series.dtype, f"left edges of the bins of {bins.column!r}, or null")
    return pl.select(pl.when(series.is_not_null()).then(numbers.cast(pl.UInt32))).to_series()


def _cast_times(series: pl.Series, bins: Bins) -> pl.Series:
    """Return the numbers of the bins whose labels, dates or times, are given."""
    labels = pl.Series(bins.labels)
    if series.dtype != pl.Null and comparable(series.dtype) != comparable(labels.dtype):
        raise ColumnError(f"the keys' column {bins.column!r} of dtype {dtype_name(series.dtype)} must hold left edges")
    cast = series.cast(labels.dtype, strict=False)
    numbers = pl.Series(range(len(labels)), dtype=pl.UInt32)
    found = cast.replace_strict(labels, numbers, default=None, return_dtype=pl.UInt32)
    kept = cast.cast(series.dtype, strict=False).eq_missing(series) & (found.is_not_null() | series.is_null())
    if not kept.all():
        raise ParameterError("keys", series.dtype, f"left edges of the bins of {bins.column!r}, or null")
    return found
