"""Rows that pass a filter, found where they stand: the same as Polars says, of every type and filter."""

from __future__ import annotations

import datetime
import math

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.aggregation.blocks import iterate_blocks
from dpfast.aggregation.filtering import native_filter
from dpfast.aggregation.passing import Passing

DAY = datetime.date(2024, 2, 29)
FLOATS = [0.0, -0.0, 1.5, math.nan, math.inf, -math.inf, None, 5e-324, -2.0, 1.7976931348623157e308]
COLUMNS = {
    "f": pl.Series(FLOATS, dtype=pl.Float64),
    "g": pl.Series([x if x is None or abs(x) != 1.7976931348623157e308 else 3e38 for x in FLOATS], dtype=pl.Float32),
    "i": pl.Series([0, -1, 1, 2**63 - 1, -(2**63), None, 7, 8, 9, 10], dtype=pl.Int64),
    "s": pl.Series([0, -1, 1, 127, -128, None, 7, 8, 9, 10], dtype=pl.Int8),
    "w": pl.Series([0, 2**64 - 1, 1, 2**63, 5, None, 7, 8, 9, 10], dtype=pl.UInt64),
    "d": pl.Series([DAY + datetime.timedelta(days) for days in range(9)] + [None], dtype=pl.Date),
    "t": pl.Series([None] + [datetime.datetime(2024, 2, 29, hour) for hour in range(9)], dtype=pl.Datetime("ms")),
    "b": pl.Series([True, False, None, True, False] * 2, dtype=pl.Boolean),
    "z": pl.Series(["a", "b", None, "c", "a"] * 2, dtype=pl.String),
    "n": pl.Series([None] * 10, dtype=pl.Null),
}
LIMITS = {
    "f": [0, -0.0, 1.5, math.inf, -math.inf, 1e308, 5e-324, 2**70], "g": [0, 1.5, 0.1, math.inf, 1e39, -1e300],
    "i": [0, 0.5, 2**63 - 1, -(2**63), 2**70, -(2**70), 7], "s": [0, 127, -128, 300, -300, 0.5],
    "w": [0, 2**64 - 1, 2**63], "d": [DAY, "2024-03-03"], "t": ["2024-02-29T04:00", DAY], "b": [True, False],
    "z": ["a", "zz"], "n": [1],
}  # fmt: skip


def filters_of(name):
    column = dpf.column(name)
    for limit in LIMITS[name]:
        yield from (column == limit, column != limit)
        if name != "b":
            yield from (column < limit, column <= limit, column > limit, column >= limit)
    yield from (column.is_null(), ~column.is_null(), column.is_in(LIMITS[name][:2]))


def passed(where, frame):
    found = []
    passing = Passing.of(where, frame.schema)
    for block in iterate_blocks(pl.DataFrame(passing.columns(frame))):
        found += passing.mark(block, block.marks).tolist()
    return found


@pytest.mark.parametrize("name", COLUMNS)
def test_rows_are_marked_as_polars_filters_them(name):
    frame = pl.concat([pl.DataFrame(COLUMNS), pl.DataFrame(COLUMNS).reverse()], rechunk=False)
    for where in filters_of(name):
        assert passed(where, frame) == passes_plainly(where, frame)


def counted(where, frame):
    passing = Passing.of(where, frame.schema)
    return sum(passing.count(block) for block in iterate_blocks(pl.DataFrame(passing.columns(frame))))


def passes_plainly(where, frame):
    kept = set(frame.with_row_index("row").filter(native_filter(where, frame.schema))["row"].to_list())
    return [int(row in kept) for row in range(frame.height)]


def test_filters_joined_by_words(seed):
    generator = np.random.default_rng(seed)
    frame = pl.DataFrame(COLUMNS)
    every = [where for name in "figsdt" for where in filters_of(name)]
    for _ in range(100):
        first, second, third = (every[place] for place in generator.integers(0, len(every), 3))
        for where in (first & second, first | second, ~first, first & second & third, ~(first & ~second) & third):
            assert passed(where, frame) == passes_plainly(where, frame)


@pytest.mark.parametrize("nulls", [True, False])
@pytest.mark.parametrize("name", "figsdt")
def test_ranges_of_one_column_are_one(name, nulls, seed):
    """Columns without nulls are read without their validity; an end that no number meets stays one."""
    generator, every = np.random.default_rng(seed), list(filters_of(name))
    series = (COLUMNS[name] if nulls else COLUMNS[name].drop_nulls()).alias(name)
    frame = pl.concat([series.to_frame(), series.reverse().to_frame()], rechunk=False)
    for _ in range(100):
        first, second = (every[place] for place in generator.integers(0, len(every), 2))
        for where in (first, first & second):
            expected = passes_plainly(where, frame)
            assert passed(where, frame) == expected
            assert counted(where, frame) == sum(expected)
            ranges = Passing.of(where, frame.schema).ranges
            assert ranges is None or len(ranges) == 1


@pytest.mark.parametrize("name", COLUMNS)
def test_no_rows(name):
    frame = pl.DataFrame(COLUMNS).clear()
    for where in filters_of(name):
        assert passed(where, frame) == []
        assert counted(where, frame) == 0
