"""Records into cells and back, beside a loop over the records."""

from __future__ import annotations

import datetime
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpfast as dpf

make = dpf.workloads
DAYS = [datetime.date(2026, 1, day) for day in (1, 2, 3)]
EDGES = (-1, 0.5, 2, 10)

#: Attribute, dtypes of the column, values that it may hold.
KINDS = {
    "codes": (3, [pl.Int64, pl.Int8], [-5, 0, 1, 2, 3, 100, None]),
    "unsigned codes": (3, [pl.UInt64, pl.UInt8], [0, 1, 2, 3, 100, None]),
    "wide codes": (300, [pl.UInt8, pl.Int16], [0, 1, 99, 100, None]),
    "strings": (["a", "long enough to be no view"], [pl.String, pl.Categorical], ["a", "b", None]),
    "strings or null": (["b", None, "a"], [pl.String, pl.Categorical], ["a", "b", "c", None]),
    "integers": ([7, -1, 1000], [pl.Int64, pl.Int8], [7, -1, 3, None]),
    "integers or null": ([None, 7], [pl.Int32, pl.UInt16], [7, 3, None]),
    "Booleans": ([True, False], [pl.Boolean], [True, False, None]),
    "dates": (DAYS[:2], [pl.Date], [*DAYS, None]),
    "bins": (dpf.bins("x", EDGES), [pl.Float64, pl.Float32], [-2.0, -1.0, 0.5, 1.0, 10.0, float("nan"), None]),
    "bins of integers": (dpf.bins("x", EDGES), [pl.Int64, pl.Int8], [-2, -1, 0, 1, 2, 9, 10, None]),
}


def place_of(attribute, value, clamps):
    """Return the place of a value in its attribute, None for outside."""
    if isinstance(attribute, list):
        return attribute.index(value) if value in attribute else None
    if value is None or value != value:
        return None
    if isinstance(attribute, int):
        nearest = min(max(value, 0), attribute - 1)
    else:
        inside = [i for i, (low, high) in enumerate(pairwise(attribute.edges)) if low <= value < high]
        if inside:
            return inside[0]
        nearest = 0 if value < attribute.edges[0] else len(attribute.edges) - 2
        return nearest if clamps else None
    return nearest if clamps or nearest == value else None


@st.composite
def records(draw):
    names = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3, unique=True))
    rows = draw(st.integers(0, 12))
    attributes, columns = {}, []
    for name in names:
        attribute, dtypes, values = KINDS[name]
        attributes[name] = attribute
        drawn = draw(st.lists(st.sampled_from(values), min_size=rows, max_size=rows))
        columns.append(pl.Series(name, drawn, dtype=draw(st.sampled_from(dtypes))))
    return attributes, pl.DataFrame(columns)


@settings(max_examples=200, deadline=None)
@given(records(), st.sampled_from(["drop", "clamp"]))
def test_counts_are_those_of_a_loop(given_records, outside):
    attributes, frame = given_records
    domain = make.Domain(attributes, outside)
    expected = np.zeros(domain.shape, int)
    for row in frame.iter_rows():
        places = [place_of(a, value, outside == "clamp") for a, value in zip(attributes.values(), row, strict=True)]
        if None not in places:
            expected[tuple(places)] += 1
    counts = domain.count(frame)
    assert counts.dtype == np.int64
    np.testing.assert_array_equal(counts, expected)
    np.testing.assert_array_equal(domain.count(frame.lazy()), expected)
    np.testing.assert_array_equal(make.histogram(frame, domain), expected)


@pytest.mark.parametrize("outside", ["drop", "clamp"])
def test_many_rows_and_chunks(outside, seed):
    generator = np.random.default_rng(seed)
    codes = [generator.integers(-1, 5, 200_000) for _ in range(3)]
    frame = pl.concat([pl.DataFrame({"a": a, "b": b}) for a, b in ([codes[0], codes[1]], [codes[1], codes[2]])])
    a, b = frame["a"].to_numpy(), frame["b"].to_numpy()
    if outside == "clamp":
        a, b = a.clip(0, 3), b.clip(0, 2)
    inside = (a >= 0) & (a < 4) & (b >= 0) & (b < 3)
    expected = np.bincount(a[inside] * 3 + b[inside], minlength=12).reshape(4, 3)
    domain = make.Domain({"a": 4, "b": 3}, outside)
    np.testing.assert_array_equal(domain.count(frame), expected)
    np.testing.assert_array_equal(domain.count({"b": frame["b"], "a": frame["a"]}), expected)


def test_codes_beyond_int64_are_clamped_to_the_last():
    column = pl.Series("a", [2**64 - 1, 2**63, 0], dtype=pl.UInt64)
    assert make.histogram(column.to_frame(), {"a": 3}, "clamp").tolist() == [1, 0, 2]
    assert make.histogram(column.to_frame(), {"a": 3}).tolist() == [1, 0, 0]


def test_nulls_of_one_column_do_not_reach_the_next():
    frame = pl.DataFrame({"a": [None, 0, 1], "b": [0, 1, 1], "c": [1, 1, None]})
    assert make.histogram(frame, {"a": 2, "b": 2, "c": 2}).reshape(-1).tolist() == [0, 0, 0, 1, 0, 0, 0, 0]


def test_records_of_cells_count_into_these_cells():
    attributes = {name: attribute for name, (attribute, *_) in KINDS.items() if name != "wide codes"}
    domain = make.Domain(attributes)
    cells = np.random.default_rng(7).integers(0, np.prod(domain.shape), 500)
    frame = domain.records(cells)
    assert frame.columns == list(domain.names)
    np.testing.assert_array_equal(domain.count(frame).reshape(-1), np.bincount(cells, minlength=np.prod(domain.shape)))
    assert domain.records([]).height == 0


def test_what_a_neighbour_changes():
    """A record more changes one cell by one at most, whatever it holds."""
    attributes = {"a": 3, "b": ["x", None]}
    frame = pl.DataFrame({"a": [0, 1, 9, None], "b": ["x", None, "x", "y"]})
    whole = make.histogram(frame, attributes)
    for row in range(frame.height):
        without = pl.concat([frame[:row], frame[row + 1 :]])
        assert np.abs(whole - make.histogram(without, attributes)).sum() <= 1
