"""The privacy unit is never silently the row: who says nothing is warned, and "row" is no guess."""

from __future__ import annotations

import sqlite3
import warnings

import polars as pl
import pytest

import dpfast as dpf
import dpfast.integrations.polars
from dpfast.errors import ColumnError, ParameterError, PrivacyUnitWarning

FRAME = pl.DataFrame({"k": ["a", "b"] * 20, "u": range(40)})
KEYS = pl.DataFrame({"k": ["a", "b"]})
ASKED = {"by": "k", "keys": KEYS, "epsilon": 0.5, "n": dpf.count()}
CELLS = {"by": "k", "keys": KEYS, "epsilon": 0.5, "workload": dpf.workloads.identity(2)}
BOUNDS = {"max_groups": 1, "max_rows_per_group": 3}


def database():
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (k TEXT, u INTEGER)")
    return dpf.sql(connection, "t")


#: Ways to plan, each with the unit as it is given.
ROUTES = {
    "a frame": lambda **unit: dpf.plan(FRAME, **ASKED, **unit),
    "a lazy frame": lambda **unit: dpf.plan(FRAME.lazy(), **ASKED, **unit),
    "an Arrow stream": lambda **unit: dpf.plan(FRAME.to_arrow().to_reader(), **ASKED, **unit),
    "pushed SQL": lambda **unit: dpf.plan(database(), **ASKED, **unit, engine="sql"),
    "private keys": lambda **unit: dpf.plan(FRAME, "k", epsilon=1, delta=1e-6, n=dpf.count(), **unit),
    "a workload": lambda **unit: dpf.plan(FRAME, **CELLS, **unit),
    "an adaptive workload": lambda **unit: dpf.plan(FRAME, **CELLS, **unit, strategy="adaptive"),
    "the namespace": lambda **unit: FRAME.dpf.plan(**ASKED, **unit),
    "the lazy namespace": lambda **unit: FRAME.lazy().dpf.plan(**ASKED, **unit),
    "a release": lambda **unit: dpf.release(FRAME, ledger=dpf.Ledger(epsilon=1), **ASKED, **unit),
    "a release of the namespace": lambda **unit: FRAME.dpf.release(ledger=dpf.Ledger(epsilon=1), **ASKED, **unit),
}


@pytest.mark.parametrize("route", ROUTES)
def test_who_says_no_unit_is_warned_once_for_the_line_that_asks(route):
    with pytest.warns(PrivacyUnitWarning, match='name the column .* or say privacy_unit="row"') as caught:
        asked = ROUTES[route]()
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert caught[0].lineno == ROUTES[route].__code__.co_firstlineno
    assert asked.explain().startswith("One privacy unit is one row: ")
    assert "  warning       privacy_unit was left out" in asked.explain()


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("unit", [{"privacy_unit": "row"}, {"privacy_unit": "u", **BOUNDS}], ids=["row", "column"])
def test_who_says_the_unit_is_not_warned(route, unit):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explained = ROUTES[route](**unit).explain()
    said = "One privacy unit is one row: " if unit["privacy_unit"] == "row" else "One privacy unit is all rows with one"
    assert explained.startswith(said)
    assert "left out" not in explained


@pytest.mark.parametrize("unit", [{}, {"privacy_unit": "row"}])
def test_the_ledger_is_told_the_same_unit_whether_it_was_said_or_not(unit):
    ledger = dpf.Ledger(epsilon=1, privacy_unit="row")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyUnitWarning)
        dpf.release(FRAME, ledger=ledger, **ASKED, **unit)
    assert ledger.identity.privacy_unit == "row"
    with pytest.raises(dpf.errors.LedgerError, match="privacy unit is 'row'"):
        dpf.release(FRAME, ledger=ledger, **ASKED, privacy_unit="u", **BOUNDS)


def test_a_column_of_that_name_is_the_unit_where_it_is_bounded():
    """It is refused without bounds: each row is not the unit of whoever meant the column."""
    frame = FRAME.rename({"u": "row"})
    ledger = dpf.Ledger(epsilon=1)
    dpf.release(frame, ledger=ledger, **ASKED, privacy_unit="row", **BOUNDS)
    assert ledger.identity.privacy_unit == "column:row"
    for data in (frame, frame.lazy(), frame.to_arrow()):
        with pytest.raises(ParameterError, match=r"^privacy_unit must be given with max_groups= .* a column 'row'"):
            dpf.plan(data, **ASKED, privacy_unit="row")
    assert ledger.spent.epsilon == 0.5


@pytest.mark.parametrize("bounds", [BOUNDS, {"max_groups": 1}, {"max_rows_per_group": 3}])
@pytest.mark.parametrize("unit", [{}, {"privacy_unit": "row"}])
def test_rows_have_no_bounds(unit, bounds):
    with pytest.raises(ParameterError, match=r"^max_(groups|rows_per_group) must be "):
        dpf.plan(FRAME, **ASKED, **unit, **bounds)


@pytest.mark.parametrize("name", ["Row", "row ", "rows", "ROW"])
def test_no_other_word_is_each_row(name):
    with pytest.raises(ParameterError, match="max_groups"):
        dpf.plan(FRAME, **ASKED, privacy_unit=name)
    with pytest.raises(ColumnError, match="privacy_unit names the column"):
        dpf.plan(FRAME, **ASKED, privacy_unit=name, **BOUNDS)
