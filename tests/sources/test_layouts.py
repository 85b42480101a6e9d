"""Types of Arrow and pandas that hold the same values in other ways, and columns that may stand by unused."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpfast as dpf
from dpfast.errors import ColumnError

ROWS = 200
TEXTS = ["a", "a key of more than twelve bytes"]
BYTES = [text.encode() for text in TEXTS]
MONEY = [Decimal("1.10"), Decimal("2.25")]
MOMENTS = [dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 2)]
TIMES = [dt.time(1), dt.time(2)]
LENGTHS = [dt.timedelta(1), dt.timedelta(2)]


def column(values, kind):
    return pa.array(values * (ROWS // 2), kind)


#: Columns of two values, and how Python holds these.
LAYOUTS = {
    **{name: (column(TEXTS, getattr(pa, name)()), TEXTS) for name in ("string", "large_string", "string_view")},
    **{name: (column(BYTES, getattr(pa, name)()), BYTES) for name in ("binary", "large_binary", "binary_view")},
    "bytes of one length": (column([b"ab", b"cd"], pa.binary(2)), [b"ab", b"cd"]),
    "dictionary": (column(TEXTS, pa.string()).dictionary_encode(), TEXTS),
    "decimal32": (column(MONEY, pa.decimal32(9, 2)), MONEY),
    "decimal64": (column(MONEY, pa.decimal64(12, 2)), MONEY),
    "decimal128": (column(MONEY, pa.decimal128(30, 2)), MONEY),
    "time32": (column(TIMES, pa.time32("s")), TIMES),
    "time64": (column(TIMES, pa.time64("us")), TIMES),
    "date64": (column([moment.date() for moment in MOMENTS], pa.date64()), MOMENTS),
    "seconds": (column(MOMENTS, pa.timestamp("s")), MOMENTS),
    "lengths in seconds": (column(LENGTHS, pa.duration("s")), LENGTHS),
}
#: Columns that Polars does not take over, and some that are no keys.
OTHERS = {
    "decimal256": column(MONEY, pa.decimal256(50, 2)),
    "negative scale": column([Decimal(1100)], pa.decimal128(9, -2)).take(pa.array([0] * ROWS)),
    "list": pa.array([[1]] * ROWS),
    "list view": pa.array([[1]] * ROWS, pa.list_view(pa.int64())),
    "struct": pa.array([{"a": 1}] * ROWS),
    "map": pa.array([[("a", 1)]] * ROWS, pa.map_(pa.string(), pa.int64())),
    "runs": pa.RunEndEncodedArray.from_arrays([ROWS], ["x"]),
    "intervals": pa.array([(1, 2, 3)] * ROWS, pa.month_day_nano_interval()),
    "union": pa.UnionArray.from_sparse(pa.array([0] * ROWS, pa.int8()), [pa.array([1] * ROWS)]),
}
OLD_PANDAS, OLD_POLARS = (int(module.__version__.split(".")[0]) < least for module, least in ((pd, 3), (pl, 2)))
WAYS = ["table", "batch", "stream", "slices"]


def given(table, way):
    if way == "table":
        return table
    if way == "batch":
        return table.to_batches()[0]
    if way == "slices":
        return pa.concat_tables([table.slice(1, 99), table.slice(0, 1), table.slice(100)])
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=50))


def released(data, by=None, **asked):
    """Return a release at an epsilon of 1000 for a query or for keys and a query alike.

    Noise on a count is not 0 with a probability below 2 exp(-500 / 3).
    """
    more = {"delta": 1e-5} if by else {}
    ledger = dpf.Ledger(epsilon=1000.0, delta=1e-5)
    return dpf.release(data, by, ledger=ledger, epsilon=1000.0, **{"privacy_unit": "row", **more, **asked}).frame


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", LAYOUTS)
def test_every_layout_holds_the_same_keys_units_and_values(kind, way):
    if OLD_POLARS and kind in ("decimal32", "decimal64"):
        pytest.skip("Polars before 2.0 does not take it over, which is said")
    values, shown = LAYOUTS[kind]
    table = pa.table({"x": values})
    assert released(given(table, way), "x", n=dpf.count()).select("x", "n").rows() == [(one, 100) for one in shown]
    assert released(given(table, way), n=dpf.count_distinct("x"))["n"].item() == 2
    unit = {"privacy_unit": "x", "max_groups": 1, "max_rows_per_group": 3}
    assert released(given(table, way), n=dpf.count(), **unit)["n"].item() == 6
    top = released(given(table, way), n=dpf.top_k("x", 2, candidates=shown))["n"].item()
    assert set(top) == set(shown)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", OTHERS)
def test_columns_of_other_types_may_stand_by(kind, way):
    table = pa.table({"x": LAYOUTS["string"][0], "other": OTHERS[kind]})
    assert released(given(table, way), "x", n=dpf.count())["n"].to_list() == [100, 100]
    with pytest.raises(ColumnError, match="'other'") as caught:
        released(given(table, way), "other", n=dpf.count())
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(OLD_PANDAS, reason="pandas before 3 may hold anything in text")
def test_objects_of_pandas_may_stand_by():
    frame = pd.DataFrame({"k": pd.Series(["a", "b"] * 50, dtype="string"), "o": [{"a": 1}, None] * 50})
    assert released(frame, "k", n=dpf.count())["n"].to_list() == [50, 50]
    for asked in ({"by": "o", "n": dpf.count()}, {"m": dpf.count("o")}, {"h": dpf.histogram("o", [0, 1])}):
        with pytest.raises(ColumnError, match="'o' of the pandas DataFrame is of dtype object"):
            released(frame, **asked)


@pytest.mark.parametrize("way", ["table", "batch", "stream", "NumPy", "Arrow in pandas"])
@pytest.mark.parametrize("kind", ["timestamp", "duration"])
def test_seconds_that_milliseconds_do_not_hold_are_null(kind, way):
    """Else two values would become one by wrapping."""
    values = [0, 5, 2**62, -(2**62)] * 50
    array = pa.array(values, getattr(pa, kind)("s"))
    if way == "NumPy":
        data = pd.DataFrame({"x": np.array(values, "datetime64[s]" if kind == "timestamp" else "timedelta64[s]")})
    elif way == "Arrow in pandas":
        if OLD_PANDAS:
            pytest.skip("pandas before 3 gives such seconds to nobody")
        data = pd.DataFrame({"x": pd.Series(pd.arrays.ArrowExtensionArray(array))})
    else:
        data = given(pa.table({"x": array}), way)
    frame = released(data, "x", n=dpf.count())
    assert frame["n"].to_list() == [100, 50, 50]
    assert frame["x"].null_count() == 1


@pytest.mark.parametrize("rows", [0, 1, 5])
@pytest.mark.parametrize("lazy", [False, True])
def test_columns_of_nothing_but_null_have_no_values(rows, lazy):
    frame = pl.DataFrame({"x": [None] * rows})
    asked = {
        "d": dpf.count_distinct("x"),
        "h": dpf.histogram("x", [0, 1]),
        "c": dpf.cdf("x", [0, 1]),
        "p": dpf.proportion("x", above=1),
    }
    shown = released(frame.lazy() if lazy else frame, **asked)
    assert shown["d"].item() == 0
    assert shown["h"].to_list() == [[0]]
