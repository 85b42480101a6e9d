"""Random filters, rows of every kind to filter, and what passes, written from the description alone."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import polars as pl

import dpfast as dpf
from dpfast.rows.filters import Comparison, Every, Missing, Not, OneOf, Some

UTC = datetime.UTC
LATE = 3_000_000_000_000_000_000

#: Each column's dtype, its values but null, and public values it is compared with.
COLUMNS = {
    "i8": (pl.Int8, [-128, -1, 0, 1, 127], [-129, -128, 0, 0.5, 127, 128, 10**30, math.inf, -math.inf, Decimal("0.9")]),
    "i64": (pl.Int64, [-(2**63), 2**53, 2**53 + 1, 2**63 - 1, 0], [2**53 + 1, -(2**63), 2.0**53, 2**63, -1e300, 0.1]),
    "u64": (pl.UInt64, [0, 1, 2**63, 2**64 - 1], [-1, 0, 2**63, 2**64 - 1, 2**64, 0.5]),
    "i128": (pl.Int128, [-(2**127), 0, 2**127 - 1], [2**127, 2**64, -(2**127), 1e40]),
    "f64": (
        pl.Float64,
        [0.0, -0.0, 0.1, math.inf, -math.inf, math.nan, 2.0**53, 5e-324, 1.7976931348623157e308],
        [0, 0.1, Decimal("0.1"), 2**53 + 1, math.inf, -math.inf, 10**400, -(10**400), 5e-324],
    ),
    "f32": (pl.Float32, [0.1, 3.4028235e38, math.inf, math.nan, -1.0], [0.1, 1e300, -1e300, math.inf, 3.4028235e38]),
    "d": (
        pl.Decimal(9, 2),
        [Decimal("0.10"), Decimal("-9999999.99"), Decimal("1.25")],
        [0.1, 1.255, Decimal("1.25"), 10**9],
    ),
    "s": (
        pl.String,
        ["", "a", "A", "a ", "é", "zz", "a\nb", "a string of over twelve bytes"],
        ["", "a", "é", "b'", "zz"],
    ),
    "c": (pl.Categorical, ["a", "b", "zz"], ["a", "zz", "none such"]),
    "e": (pl.Enum(["zz", "a", "b"]), ["a", "b", "zz"], ["a", "zz", "none such"]),
    "b": (pl.Boolean, [True, False], [True, False]),
    "y": (pl.Binary, [b"", b"a", b"\xff"], [b"a", b"\xff", b"b"]),
    "day": (
        pl.Date,
        [datetime.date(1, 1, 1), datetime.date(2024, 2, 29), datetime.date(9999, 12, 31)],
        [datetime.date(2024, 2, 29), "2024-02-29", "9999-12-31", datetime.date(1, 1, 1)],
    ),
    "us": (
        pl.Datetime("us"),
        [datetime.datetime(1, 1, 1), datetime.datetime(2024, 2, 29, 12), datetime.datetime(9999, 12, 31, 23, 59, 59)],
        [datetime.datetime(2024, 2, 29, 12), "2024-02-29T12:00", "2024-02-29", datetime.date(9999, 12, 31)],
    ),
    "ms": (
        pl.Datetime("ms"),
        [datetime.datetime(2024, 2, 29, 12), datetime.datetime(1969, 12, 31, 23, 59, 59, 999000)],
        ["2024-02-29T12:00:00.0005", "1970-01-01", datetime.datetime(9999, 12, 31)],
    ),
    "ns": (
        pl.Datetime("ns"),
        [datetime.datetime(2024, 2, 29, 12), datetime.datetime(1700, 1, 1)],
        ["2024-02-29T12:00", datetime.datetime(9999, 12, 31), datetime.datetime(1, 1, 1)],
    ),
    "zone": (
        pl.Datetime("us", "Europe/Berlin"),
        # The hour that is there twice, and both sides of the one that is not.
        [datetime.datetime(2024, 10, 27, hour, 30, tzinfo=UTC) for hour in (0, 1)]
        + [datetime.datetime(2024, 3, 31, hour, 30, tzinfo=UTC) for hour in (0, 1)],
        ["2024-10-27T02:30+02:00", "2024-10-27T01:30Z", datetime.datetime(2024, 3, 31, 1, tzinfo=UTC)],
    ),
    "lasts": (
        pl.Duration("ms"),
        [datetime.timedelta(0), datetime.timedelta(hours=-1), datetime.timedelta(days=3)],
        [datetime.timedelta(0), datetime.timedelta(microseconds=500), datetime.timedelta.max, "-1h", "3d"],
    ),
    "t": (
        pl.Time,
        [datetime.time(), datetime.time(12), datetime.time(23, 59, 59, 999_999)],
        [datetime.time(12), "12:00", "00:00", datetime.time(23, 59, 59, 999_999)],
    ),
    "nothing": (pl.Null, [None], [1, "a", True]),
}


def frame_of(rows, random, names=tuple(COLUMNS)):
    """Return rows of all kinds, some of them null."""
    found = {}
    for name in names:
        dtype, values, _ = COLUMNS[name]
        found[name] = pl.Series([random.choice([None, *values]) for _ in range(rows)], dtype=dtype)
    return pl.DataFrame(found)


def random_filter(random, names=tuple(COLUMNS), depth=3):
    """Return a filter of any form."""
    if depth and random.random() < 0.6:
        one, two = (random_filter(random, names, depth - 1) for _ in range(2))
        return random.choice([one & two, one | two, ~one, ~(one | two)])
    name = random.choice(names)
    column, (dtype, _, values) = dpf.column(name), COLUMNS[name]
    value, other = random.choice(values), random.choice(values)
    asked = [column == value, column != value, column.is_in(random.choices(values, k=3)), column.is_null()]
    if dtype != pl.Boolean:
        asked += [column < value, column <= value, column > value, column >= value, column.between(value, other)]
    if dtype in (pl.Float32, pl.Float64):
        asked.append(column.is_nan())
    return random.choice(asked)


def passes(where, row, schema):
    """Return whether a row passes."""
    if isinstance(where, Every):
        return all(passes(part, row, schema) for part in where.parts)
    if isinstance(where, Some):
        return any(passes(part, row, schema) for part in where.parts)
    if isinstance(where, Not):
        return not passes(where.parts[0], row, schema)
    value, dtype = row[where.column], schema[where.column]
    is_nan = isinstance(value, float) and math.isnan(value)
    if isinstance(where, Missing):
        return value is None if where.kind == "null" else is_nan
    if value is None or is_nan:
        return False
    if isinstance(where, OneOf):
        return any(_holds("==", value, wanted, dtype) for wanted in where.values)
    assert isinstance(where, Comparison)
    return _holds(where.operator, value, where.value, dtype)


def _holds(operator, value, wanted, dtype):
    value, wanted = _plain(value, dtype), _plain(_read(wanted, dtype), dtype)
    return {
        "==": value == wanted,
        "!=": value != wanted,
        "<": value < wanted,
        "<=": value <= wanted,
        ">": value > wanted,
        ">=": value >= wanted,
    }[operator]


def _read(wanted, dtype):
    if dtype.is_float() and math.isfinite(wanted) if not isinstance(wanted, int) else False:
        return (
            float((np.float32 if dtype == pl.Float32 else np.float64)(float(wanted))) if abs(wanted) < 1e39 else wanted
        )
    if dtype == pl.Float64 and isinstance(wanted, int) and abs(wanted) < 10**300:
        return float(wanted)
    if isinstance(dtype, pl.Decimal) and isinstance(wanted, float):
        return Decimal(repr(wanted))
    if isinstance(wanted, str) and dtype == pl.Duration:
        return {"-1h": datetime.timedelta(hours=-1), "3d": datetime.timedelta(days=3)}[wanted]
    if isinstance(wanted, str) and dtype in (pl.Date, pl.Datetime, pl.Time):
        kind = {pl.Date: datetime.date, pl.Time: datetime.time}.get(type(dtype), datetime.datetime)
        return kind.fromisoformat(wanted)
    return wanted


def _plain(value, dtype):
    """Return a value of Python that compares exactly."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        if dtype == pl.Datetime and type(value) is datetime.date:
            return datetime.datetime.combine(value, datetime.time())
        if isinstance(value, datetime.datetime) and value.tzinfo is not None:
            # Python takes no moments of two zones for equal in the hour that is there twice.
            return value.astimezone(UTC)
        return value.encode() if isinstance(value, str) else value
    return value if isinstance(value, float) and math.isinf(value) else Fraction(value)
