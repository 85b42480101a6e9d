"""Randomized response as an expression: every type of column against a number and every kind of list.

A list that were joined to the column would repeat rows, and the number of rows would tell how often a value is there.
"""

from __future__ import annotations

import datetime
import pickle
from decimal import Decimal

import polars as pl
import pytest

import dpfast as dpf
from dpfast.errors import ColumnError, ParameterError
from dpfast.integrations.polars_plugin import randomized_response
from dpfast.randomness import SystemRandom

from .barrier import IS_OLD

DAY = datetime.date(2020, 1, 1)
TEXT, WHOLE = ["1", "a", None, "x"], [1, 2, None, 0]
COLUMNS = [
    pl.Series(TEXT),
    pl.Series(TEXT, dtype=pl.Categorical),
    pl.Series(TEXT, dtype=pl.Enum(["a", "1", "x", "01", "b"])),
    pl.Series(TEXT, dtype=pl.Enum(["a", "1", "x"])),
    *(pl.Series(WHOLE, dtype=dtype) for dtype in (pl.Int8, pl.UInt8, pl.Int32, pl.UInt32, pl.Int64, pl.UInt64)),
    pl.Series(WHOLE, dtype=pl.Int128),
    pl.Series([True, False, None, True]),
    pl.Series([DAY, None, DAY + datetime.timedelta(1), DAY]),
    pl.Series([DAY, None, DAY, DAY], dtype=pl.Datetime),
    pl.Series([datetime.time(1), None] * 2),
    pl.Series([datetime.timedelta(1), None] * 2),
    pl.Series([1.0, 2.0**53, None, float("nan")]),
    pl.Series([1.0, 2.0**24, None, 0.5], dtype=pl.Float32),
    pl.Series([Decimal(1), Decimal(2), None, Decimal(0)]),
    pl.Series([b"a", b"1", None, b""]),
    pl.Series([[1], [2], None, []]),
    pl.Series([[1], [2], None, [3]], dtype=pl.Array(pl.Int64, 1)),
    pl.Series([{"a": 1}, {"a": 2}, None, {"a": 0}]),
    pl.Series([None] * 4),
]
LISTS = [
    ["1", "a"],
    ["1", "01", "1.0"],  # one number, once cast
    ["", "x", None],
    [1, 2],
    [0, 1, None],
    [2**24, 2**24 + 1],  # one Float32
    [2**53, 2**53 + 1],  # one Float64
    [-1, 300],
    [2**63, 1],
    [True, False],
    [True, None],
    [DAY, DAY + datetime.timedelta(1)],
    [DAY, None],
    3,
]
WAYS = {
    "in-memory": lambda frame, expr: frame.lazy().select(expr).collect(engine="in-memory"),
    "streaming": lambda frame, expr: frame.lazy().select(expr).collect(engine="streaming"),
    "beside": lambda frame, expr: frame.with_columns(expr),
}


def outcome(run):
    """Answers, or the refusal's first line."""
    try:
        return run()
    except (ColumnError, ParameterError) as error:
        return str(error).partition("\n")[0]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: str(column.dtype))
@pytest.mark.parametrize("way", WAYS)
def test_every_type_against_every_list(column, way, monkeypatch):
    """The function's own answers under one key, those of categoricals and enums as strings; or its own refusal."""
    monkeypatch.setattr(SystemRandom, "key", lambda self: bytes(range(32)))
    values = column.alias("x").gather([0, 1, 2, 3] * 300)
    for listed in LISTS:
        expr = randomized_response(pl.col("x"), listed, 0.5)
        drawn = outcome(lambda: WAYS[way](values.to_frame(), expr)["x"])  # noqa: B023
        right = outcome(lambda: dpf.randomized_response(values, listed, 0.5))  # noqa: B023
        if values.dtype == pl.Null:
            assert drawn == "values must be a column with a type, but was of dtype Null; cast it"
            continue
        if isinstance(right, str):
            assert drawn == right
            continue
        right = right.cast(pl.String) if right.dtype in (pl.Categorical, pl.Enum) else right
        assert (len(drawn), drawn.dtype) == (1200, right.dtype)
        if way == "streaming":
            assert set(drawn) == set(right)
        else:
            assert drawn.equals(right, check_names=False, null_equal=True)


def test_refusals_of_both_kinds_are_among_them():
    frame = pl.DataFrame({"x": [1.0]}), pl.DataFrame({"x": [1]}, schema={"x": pl.Int8})
    with pytest.raises(ColumnError, match="Int64 compares with, but was a column of dtype Float64"):
        frame[0].select(randomized_response(pl.col("x"), [1, 2], 1.0))
    with pytest.raises(ColumnError, match="a column of dtype Int8 can hold"):
        frame[1].select(randomized_response(pl.col("x"), [1, 300], 1.0))


def test_a_refusal_quotes_no_value():
    frame = pl.DataFrame({"x": [123456.5]})
    with pytest.raises(ColumnError) as raised:
        frame.select(randomized_response(pl.col("x"), [1, 2], 1.0))
    assert "123456" not in str(raised.value)


@pytest.mark.skipif(IS_OLD, reason="Polars before 2.0 knows no type of a literal number here")
def test_literals_several_columns_groups_and_empty_columns():
    frame = pl.DataFrame({"g": [1, 1, 2], "a": ["x", "y", "x"], "b": ["y", "y", None]})
    sure = {"categories": ["x", "y"], "epsilon": 1000.0}
    assert frame.select(randomized_response(pl.lit("x"), **sure)).item() == "x"
    assert frame.select(randomized_response(pl.lit(1), [1, 2], 1000.0)).item() == 1
    both = frame.select(randomized_response(pl.col("a", "b"), **sure))
    assert both["a"].equals(frame["a"])
    assert both["b"].null_count() == 0
    assert frame.clear().select(randomized_response(pl.col("a"), **sure)).schema == {"a": pl.String}
    grouped = frame.group_by("g", maintain_order=True).agg(randomized_response(pl.col("a"), **sure))
    assert grouped["a"].to_list() == [["x", "y"], ["x"]]
    assert frame.select(randomized_response(pl.col("a"), **sure).over("g"))["a"].equals(frame["a"])


def test_an_expression_of_a_list_can_be_pickled_and_draws_again():
    frame = pl.DataFrame({"a": ["x", "y"] * 500})
    expr = pickle.loads(pickle.dumps(randomized_response(pl.col("a"), ["x", "y"], 0.1)))
    assert not frame.select(expr).equals(frame.select(expr))
