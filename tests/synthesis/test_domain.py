"""Declared domains: counts against a loop over rows, records within the domain, and what is refused."""

from __future__ import annotations

import datetime
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpfast as dpf
from dpfast.errors import ColumnError, DpfastError, ParameterError
from dpfast.synthesis.domain import Domain
from dpfast.testing import SeededRandom

EDGES = (-2.0, 0.0, 0.5, 7.0)
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["f", "m", "x", "", None]),
        st.one_of(st.none(), st.floats(-5, 9), st.sampled_from([*EDGES, math.nan, math.inf, -math.inf])),
        st.sampled_from([0, 1, 2, 3, None]),
    ),
    max_size=40,
)


def naive(rows, spare: bool) -> np.ndarray:
    """Count row by row."""
    counts = np.zeros((2 + spare, 3 + spare, 3 + spare), np.int64)
    for sex, x, part in rows:
        bins = [i for i in range(3) if x is not None and EDGES[i] <= x < EDGES[i + 1]]
        cells = [
            ["f", "m"].index(sex) if sex in ("f", "m") else None,
            bins[0] if bins else None,
            [3, 1, 0].index(part) if part in (0, 1, 3) else None,
        ]
        if spare:
            cells = [size - 1 if cell is None else cell for cell, size in zip(cells, counts.shape, strict=True)]
        if None not in cells:
            counts[tuple(cells)] += 1
    return counts


@settings(max_examples=60, deadline=None)
@given(rows=ROWS, spare=st.booleans(), kind=st.sampled_from([pl.String, pl.Categorical]))
def test_counts_are_those_of_a_loop(rows, spare, kind):
    frame = pl.DataFrame(rows, {"sex": pl.String, "x": pl.Float64, "part": pl.Int8}, orient="row").cast({"sex": kind})
    domain = Domain(
        {"sex": ["f", "m"], "x": dpf.bins("x", EDGES), "part": [3, 1, 0]}, outside="null" if spare else "drop"
    )
    assert np.array_equal(domain.count(frame), naive(rows, spare))


@pytest.mark.parametrize("outside", ["drop", "null"])
def test_records_lie_in_the_domain(outside):
    day = datetime.date(2024, 2, 29)
    columns = {
        "day": [day, datetime.date(2025, 1, 1)],
        "age": dpf.bins("age", [0, 30, 60]),
        "x": dpf.bins("x", [0.0, 0.25, 1.5]),
        "yes": [True, False],
    }
    domain = Domain(columns, outside=outside)
    spare = int(outside == "null")
    assert domain.shape == (2 + spare,) * 4
    histogram = np.full(domain.shape, 100)
    estimate = dpf.mwem(histogram, dpf.workloads.marginals(domain.shape, 1), epsilon=50.0)
    records = domain.records(estimate, 3_000, random=SeededRandom(3))
    assert records.columns == list(columns)
    assert records.schema == {"day": pl.Date, "age": pl.Int64, "x": pl.Float64, "yes": pl.Boolean}
    assert records["age"].drop_nulls().is_between(0, 59).all()
    assert records["x"].drop_nulls().is_between(0.0, 1.5, closed="left").all()
    assert bool(records["day"].null_count()) == bool(records["x"].null_count()) == (outside == "null")
    # Counted again, records are where they were drawn, but for rounding.
    share = estimate.histogram * (3_000 / estimate.histogram.sum())
    assert np.abs(domain.count(records) - share).max() < 1.0
    assert records.equals(domain.records(estimate, 3_000, random=SeededRandom(3)))


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({}, "columns must be"),
        ({"a": []}, "one value or more"),
        ({"a": [1, 1]}, "all different"),
        ({"a": [1, None]}, "none null"),
        ({"a": "abc"}, "write a list"),
        ({"a": 5}, "write a list"),
        ({name: list(range(100)) for name in "abcde"}, "80,000,000,000 bytes"),
    ],
)
def test_domains_that_cannot_be(columns, told):
    with pytest.raises(ParameterError, match=told):
        Domain(columns)


def test_columns_that_cannot_be():
    frame = pl.DataFrame({"a": ["x"], "b": [1]})
    with pytest.raises(ColumnError, match="lacks"):
        Domain({"c": [1]}).count(frame)
    with pytest.raises(ColumnError, match="bins are for columns"):
        Domain({"a": dpf.bins("a", [0, 1])}).count(frame)
    for columns in ({"a": [1]}, {"b": ["x"]}, {"b": ["1"]}):
        with pytest.raises(ParameterError, match="of the column's type"):
            Domain(columns).count(frame)
    with pytest.raises(ParameterError, match="outside"):
        Domain({"a": ["x"]}, outside="other")


def test_no_error_shows_the_data(tmp_path):
    """Soundness rule 3: what the engine says of a damaged file, or of a value, stays with it."""
    failing = pl.LazyFrame({"a": ["secret"]}).with_columns(pl.col("a").cast(pl.Int64).cast(pl.String))
    with pytest.raises(DpfastError, match="could not be read") as caught:
        Domain({"a": ["x"]}).count(failing)
    assert "secret" not in repr(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None
