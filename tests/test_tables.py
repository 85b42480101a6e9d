"""Whole tables of Arrow and pandas, on every route that takes them: refused in one line that shows no value."""

from __future__ import annotations

import traceback

import pyarrow as pa
import pytest

import dpfast as dpf
from dpfast.errors import ColumnError


def answer(table):
    return dpf.answer(table, value="k", epsilon=1.0, ledger=dpf.Ledger(epsilon=1))


#: What takes a whole table.
ROUTES = {
    "plan": lambda table: dpf.plan(table, n=dpf.count(), privacy_unit="row", epsilon=1),
    "domain": lambda table: dpf.Domain({"k": 3}).count(table),
    "answer": answer,
}
TWICE = pa.Table.from_arrays([pa.array([1, 2]), pa.array([3, 4])], names=["k", "k"])
BROKEN = pa.table({"k": pa.DictionaryArray.from_arrays(pa.array([0, 7], pa.int8()), ["SECRET", "x"], safe=False)})


def pandas_frame():
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame([[1, 3]], columns=["k", "k"])


KINDS = {"Table": lambda: TWICE, "RecordBatch": lambda: TWICE.to_batches()[0], "DataFrame": pandas_frame}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("route", ROUTES)
def test_two_columns_of_one_name_are_refused(route, kind):
    """Arrow and pandas allow them, Polars does not; its own error is not shown."""
    if (route, kind) == ("answer", "DataFrame"):
        pytest.skip("dpf.answer takes no pandas frame")
    told = rf"^the {kind} has more than one column of the name 'k'; rename or drop all but one$"
    with pytest.raises(ColumnError, match=told) as caught:
        ROUTES[route](KINDS[kind]())
    assert caught.value.__context__ is caught.value.__cause__ is None


@pytest.mark.parametrize("route", ROUTES)
def test_a_damaged_table_shows_nothing(route):
    with pytest.raises(ColumnError, match="Table has columns") as caught:
        ROUTES[route](BROKEN)
    assert "SECRET" not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__context__ is caught.value.__cause__ is None
