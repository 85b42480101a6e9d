"""Columns of every library and form for reports of people: answered in their kind, or refused in one line."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import dpfast as dpf
from dpfast.errors import ColumnError

NUMBERS = [1, 2, 3, 0, 2, 1]
CATEGORIES = [0, 1, 2, 3]
ORACLES = {
    name: getattr(dpf, name)(CATEGORIES, 1.0)
    for name in (
        "RandomizedResponse",
        "OptimizedUnaryEncoding",
        "OptimizedLocalHashing",
        "HadamardResponse",
        "SubsetSelection",
    )
}


class Exported:
    """A column of a library that nobody here knows, by the protocol of Arrow."""

    def __init__(self, array, *, stream):
        name = "__arrow_c_stream__" if stream else "__arrow_c_array__"
        self.__dict__["_export"] = getattr(pa.chunked_array([array]) if stream else array, name)


class Array(Exported):
    def __arrow_c_array__(self, requested_schema=None):
        return self._export(requested_schema)


class Stream(Exported):
    def __arrow_c_stream__(self, requested_schema=None):
        return self._export(requested_schema)


@pytest.mark.parametrize("kind", [Array, Stream])
@pytest.mark.parametrize("name", ORACLES)
def test_columns_of_any_library_that_exports_arrow(name, kind):
    """They have no name, and were looked for under one."""
    given = kind(pa.array(NUMBERS), stream=kind is Stream)
    reports = ORACLES[name].randomize(given)
    assert len(reports) == len(NUMBERS)
    assert ORACLES[name].estimate(reports)["value"].to_list() == CATEGORIES


@pytest.mark.parametrize("randomizer", [*ORACLES.values(), dpf.BoundedMean((0, 3), 1.0), dpf.HeavyHitters(4, 1.0)])
def test_arrays_without_a_dimension(randomizer):
    report = randomizer.randomize(np.array(3))
    alone = randomizer.randomize(3)
    assert np.shape(report) == np.shape(alone)


@pytest.mark.parametrize("dtype", [pl.Int128, pl.UInt128, pl.Float64, pl.String, pl.Date])
def test_reports_of_other_types_are_refused(dtype):
    column = pl.Series([0, 1, 1]).cast(dtype)
    for reader in (ORACLES["OptimizedUnaryEncoding"], ORACLES["SubsetSelection"], dpf.BoundedMean((0, 1), 1.0)):
        with pytest.raises(ColumnError, match="reports must be"):
            reader.estimate(column)


@pytest.mark.parametrize("dtype", [pa.string_view(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
def test_rows_are_taken_from_views_and_dictionaries(dtype):
    people = dpf.LocalOracle(pa.array(["a", "b", "a"]).cast(dtype), 2.0)
    assert len(people.ask(dpf.OptimizedLocalHashing(["a", "b"], 1.0), rows=[0, 2])) == 2
    asked = dpf.LocalStatisticalQueries(pa.array(["a", "b", "a"]).cast(dtype), 1.0, queries=3)
    assert np.isfinite(asked.answer(lambda rows: [one == "a" for one in rows.to_pylist()]))


def test_types_that_no_row_can_be_taken_from_are_refused_when_they_are_given():
    runs = pa.RunEndEncodedArray.from_arrays([6], [2])
    for make in (lambda: dpf.LocalOracle(runs, 1.0), lambda: dpf.LocalStatisticalQueries(runs, 1.0, queries=2)):
        with pytest.raises(ColumnError, match="rows cannot be taken from, run_end_encoded"):
            make()


@pytest.mark.parametrize("local", [101.0, 700.0, 1e6])
def test_a_shuffle_of_reports_that_are_hardly_private(local):
    """Beyond what floats hold: no clones, so that delta is (e0 - exp(epsilon)) / (e0 + 1), rounded up."""
    assert dpf.shuffled_delta(local, 1000, 1.0) == 1.0
    assert dpf.shuffled_delta(local, 1000, local) < 1e-9  # rounded up
    near = dpf.shuffled_delta(local, 1000, local - 0.5)
    assert -np.expm1(-0.5) <= near < -np.expm1(-0.5) + 1e-6
