"""The fields of CSV text, read with declared dtypes so that none can change another or fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import polars as pl

from dpfast.aggregation.footers import shorten_path
from dpfast.columns.dtypes import dtype_name
from dpfast.errors import ColumnError, ParameterError
from dpfast.showing import near_names

__all__ = ["CsvFields", "Declared", "parse_text"]

Declared: TypeAlias = "Mapping[str, pl.DataType | type[pl.DataType]]"

_MOMENT = "%Y-%m-%d %H:%M:%S%.f"


@dataclass(frozen=True)
class CsvFields:
    """How columns of declared dtypes are read.

    Attributes
    ----------
    dtypes
        Of every column that is read, by its name.

    """

    dtypes: Mapping[str, pl.DataType]

    @classmethod
    def of(cls, schema: Declared | None) -> CsvFields:
        """Take the declared dtypes.

        Raises
        ------
        ColumnError
            If there are none, or one that is not read from CSV.
        ParameterError
            If they are no mapping of names to dtypes.

        """
        if schema is None:
            raise ColumnError(
                "a CSV file does not know its dtypes, and inferring them would let one row change them; "
                'declare them: schema={"carrier": polars.String, "dep_delay": polars.Float64}'
            )
        try:
            declared = {name: pl.Series(dtype=dtype).dtype for name, dtype in schema.items()}
        except (AttributeError, TypeError):
            declared = {}
        if not declared or any(not isinstance(name, str) or schema[name] is None for name in declared):
            raise ParameterError(
                "schema",
                schema,
                "the dtypes of a CSV file's columns, at least one",
                'write for example schema={"carrier": polars.String}',
            )
        fields = cls(declared)
        fields.parse(pl.LazyFrame(schema=dict.fromkeys(declared, pl.String)))
        return fields

    def scan(self, source: Any) -> pl.LazyFrame:
        """Return the text of a path, of several, or of an open file, as a scan in which no field can fail."""
        return pl.scan_csv(
            source,
            glob=False,
            # Polars parses numbers itself, field by field; the rest stays text until it is parsed.
            schema_overrides={name: dtype for name, dtype in self.dtypes.items() if parse_text(name, dtype) is None},
            infer_schema=False,
            ignore_errors=True,
            truncate_ragged_lines=True,
            encoding="utf8-lossy",
        )

    def parse(self, text: pl.LazyFrame) -> pl.LazyFrame:
        """Return the declared columns of a scan, each with its dtype."""
        parsed = {name: parse_text(name, dtype) for name, dtype in self.dtypes.items()}
        return text.select([pl.col(name) if expr is None else expr for name, expr in parsed.items()])

    def check(self, header: Sequence[str], path: str) -> None:
        """Refuse a header that lacks a declared column.

        Raises
        ------
        ColumnError
            With the name of the column and of the file.

        """
        for name in self.dtypes:
            if name not in header:
                lacks = f"schema names the column {name[:60]!r}, which the data lacks in {shorten_path(path)}"
                raise ColumnError(f"{lacks}; {near_names(name, header)}")


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
        return _parse_day(text).alias(name)
    if dtype == pl.Time:
        return text.str.to_time("%H:%M:%S%.f", strict=False)
    if isinstance(dtype, pl.Datetime):
        return _parse_moment(text, dtype).alias(name)
    raise ColumnError(
        f"schema declares the column {name!r} with dtype {dtype_name(dtype)}, which is not read from CSV: declare "
        "numbers, Decimal, Boolean, String, Categorical, Enum, Date, Datetime or Time; durations as numbers of seconds"
    )


def _parse_day(text: pl.Expr) -> pl.Expr:
    """Return dates, and of moments the day that is written, wherever that clock is."""
    local = text.str.replace(r"(Z|[+-]\d\d:?\d\d)$", "")
    moment = _parse_moment(pl.when(text.str.contains(":", literal=True)).then(local), pl.Datetime("ms"))
    return pl.coalesce(text.str.to_date("%Y-%m-%d", strict=False), moment.dt.date())


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
