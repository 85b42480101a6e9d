"""Columns of files as other dtypes: no value fails, and what does not fit is null."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal

import polars as pl
import pyarrow as pa
import pytest

from dpfast.aggregation import open_source
from dpfast.errors import ColumnError

DAY = datetime.date(2024, 2, 29)
CASES = [
    (
        pl.String,
        ["12", " 12", "1e3", "x", "", "-0", "9" * 30, None],
        pl.Int64,
        [12, 12, None, None, None, 0, None, None],
    ),
    (pl.String, ["1.5", "nan", "x", "1e999", None], pl.Float64, [1.5, math.nan, None, math.inf, None]),
    (pl.String, ["2024-02-29", "2023-02-29", "29.2.2024", "", None], pl.Date, [DAY, None, None, None, None]),
    (
        pl.String,
        ["2024-02-29T23:59:59.5", "2024-02-29 10:00", "2024-02-29T10:00:00Z", "2024-02-29T", "10:00:00", None],
        pl.Date,
        [DAY, None, DAY, None, None, None],
    ),
    (
        pl.String,
        ["2024-02-29 23:00:00-02:00", "2024-02-29 01:00:00+0200", "2024-02-29-0100", "2023-02-29 00:00:00"],
        pl.Date,
        [DAY, DAY, None, None],
    ),
    (
        pl.Datetime("us"),
        [datetime.datetime(2024, 2, 29, 23, 59, 59, 999_999), datetime.datetime(1960, 1, 1, 1), None],
        pl.Date,
        [DAY, datetime.date(1960, 1, 1), None],
    ),
    (
        pl.Datetime("ms", "Asia/Tokyo"),
        [datetime.datetime(2024, 2, 28, 15, tzinfo=datetime.UTC), None],
        pl.Date,
        [DAY, None],
    ),
    (pl.String, ["true", "False", "1", "", None], pl.Boolean, [True, False, None, None, None]),
    (pl.Categorical, ["1", "x", None], pl.Int8, [1, None, None]),
    (pl.Enum(["2024-02-29", "x"]), ["2024-02-29", "x", None], pl.Date, [DAY, None, None]),
    (pl.Categorical, ["1", None], pl.String, ["1", None]),
    (pl.Int64, [1, 300, -(2**63), None], pl.Int8, [1, None, None, None]),
    (pl.Int64, [1, -1], pl.UInt64, [1, None]),
    (pl.UInt64, [2**64 - 1, 0], pl.String, [str(2**64 - 1), "0"]),
    (pl.String, [" 1.5", "\t1.5", "1.5 ", "1.5x"], pl.Float32, [1.5, 1.5, None, None]),
    (
        pl.Float64,
        [2.7, -2.7, 3.0, -0.0, math.nan, math.inf, -math.inf, 1e300, 2.0**63, -(2.0**63), None],
        pl.Int64,
        [None, None, 3, 0, None, None, None, None, None, -(2**63), None],
    ),
    (pl.Float32, [127.0, 128.0, -0.5, 1e30], pl.Int8, [127, None, None, None]),
    (pl.Float32, [2.0**24, 2.0**64, -1.0], pl.UInt64, [2**24, None, None]),
    (
        pl.Decimal(38, 30),
        [Decimal("12345678"), Decimal("0.000000000000000000000000000001")],
        pl.Int64,
        [12345678, None],
    ),
    (pl.Float64, [1e300, math.nan, 0.5], pl.Float32, [math.inf, math.nan, 0.5]),
    (pl.Boolean, [True, False, None], pl.Int64, [1, 0, None]),
    (pl.Boolean, [True, None], pl.Decimal(9, 2), [Decimal(1), None]),
    (pl.Decimal(9, 2), [Decimal("1.25"), Decimal("-9999999.99"), None], pl.Float64, [1.25, -9999999.99, None]),
    (pl.Decimal(38, 2), [Decimal("1.75"), Decimal(10) ** 35, None], pl.Int8, [None, None, None]),
    (pl.Decimal(38, 2), [Decimal(2), Decimal(-300), Decimal(0), None], pl.Int8, [2, None, 0, None]),
    (pl.Int64, [1, 2**63 - 1, None], pl.Decimal(9, 2), [Decimal(1), None, None]),
    (pl.Float64, [1.25, 1e300, math.nan, math.inf, None], pl.Decimal(9, 2), [Decimal("1.25"), None, None, None, None]),
    (pl.String, ["1.25", "x", "1e9", None], pl.Decimal(9, 2), [Decimal("1.25"), None, None, None]),
    (pl.Boolean, [True, None], pl.String, ["true", None]),
    (pl.Int8, [0, 5, None], pl.Boolean, [False, True, None]),
]


def same(one, other):
    return all(
        a == b or (a is not None and a != a and b is not None and b != b) for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize(("held", "values", "wanted", "expected"), CASES)
@pytest.mark.parametrize("form", ["frame", "file", "stream"])
def test_what_fits_is_kept(held, values, wanted, expected, form, tmp_path):
    frame = pl.DataFrame({"x": pl.Series(values, dtype=held), "y": range(len(values))})
    data = frame
    if form == "file":
        data = tmp_path / "x.parquet"
        frame.write_parquet(data)
    if form == "stream":
        table = frame.to_arrow()
        data = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=2))
    source = open_source(data).cast({"x": wanted})
    assert source.schema()["x"] == wanted
    assert source.schema().names() == ["x", "y"]
    found = source.frame.lazy().select("x").collect(engine="streaming").to_series()
    assert found.dtype == wanted
    assert same(found.to_list(), expected)


@pytest.mark.parametrize(
    ("held", "wanted"),
    [(pl.Date, pl.Int64), (pl.Datetime("us"), pl.String), (pl.Float64, pl.String), (pl.List(pl.Int64), pl.Int64)],
)
def test_others_are_refused(held, wanted):
    with pytest.raises(ColumnError, match="cannot cast the column 'x'"):
        open_source(pl.DataFrame(schema={"x": held})).cast({"x": wanted})
    with pytest.raises(ColumnError, match="cast names the column 'z', which the data lacks; it has"):
        open_source(pl.DataFrame(schema={"x": held})).cast({"z": wanted})
