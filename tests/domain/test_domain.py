"""Records into cells and back, beside a loop over the records; files in batches; plans over the same cells."""

from __future__ import annotations

import copy
import datetime
import math
import pickle
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpfast as dpf
from dpfast.errors import ColumnError, DpfastError, ParameterError
from dpfast.testing import SeededRandom

DAYS = [datetime.date(2026, 1, day) for day in (1, 2, 3)]
EDGES = (-1, 0.5, 2, 10)
LONG = "long enough to be no view"
OUTSIDE = ["drop", "null", "clamp"]

#: Attribute, dtypes of the column, values that it may hold.
KINDS = {
    "codes": (3, [pl.Int64, pl.Int8], [-5, 0, 1, 2, 3, 100, None]),
    "unsigned codes": (3, [pl.UInt64, pl.UInt8], [0, 1, 2, 3, 100, None]),
    "wide codes": (300, [pl.UInt8, pl.Int16], [0, 1, 99, 100, None]),
    "strings": (["a", LONG], [pl.String, pl.Categorical], ["a", "b", LONG, LONG + "s", "", None]),
    "strings or null": (["b", None, "a"], [pl.String, pl.Categorical], ["a", "b", "c", None]),
    "enumerated": (["b", "z", "a"], [pl.Enum(["a", "c", "b"]), pl.String], ["a", "b", "c", None]),
    "one string": (["a"], [pl.Enum(["b", "c"])], ["b", "c", None]),
    "integers": ([7, -1, 1000], [pl.Int64, pl.Int8], [7, -1, 3, None]),
    "far integers": ([2**63, 0, 2**64 - 1], [pl.UInt64], [2**63, 0, 2**64 - 1, 5, None]),
    "far integers or null": ([2**63 - 1, None, -(2**63)], [pl.Int64], [2**63 - 1, -(2**63), 5, None]),
    "integers or null": ([None, 7], [pl.Int32, pl.UInt16], [7, 3, None]),
    "integers that no column of it holds": ([1000, -1000], [pl.Int8, pl.UInt8], [7, 100, None]),
    "Booleans": ([True, False], [pl.Boolean], [True, False, None]),
    "dates": (DAYS[:2], [pl.Date], [*DAYS, None]),
    "bins": (
        dpf.bins("x", EDGES),
        [pl.Float64, pl.Float32],
        [-2.0, -1.0, 0.5, 1.0, 10.0, math.inf, -math.inf, math.nan, None],
    ),
    "bins of integers": (dpf.bins("x", EDGES), [pl.Int64, pl.Int8], [-2, -1, 0, 1, 2, 9, 10, None]),
}


def place_of(attribute, value, outside):
    """Return the place of a value in its attribute, None for none."""
    listed = isinstance(attribute, list)
    codes = isinstance(attribute, int)
    declared = len(attribute) if listed else attribute if codes else len(attribute.edges) - 1
    other = (attribute.index(None) if listed and None in attribute else declared) if outside == "null" else None
    if listed:
        return attribute.index(value) if value in attribute else other
    if value is None or value != value:
        return other
    if codes:
        nearest = min(max(value, 0), declared - 1)
        return nearest if outside == "clamp" or nearest == value else other
    inside = [i for i, (low, high) in enumerate(pairwise(attribute.edges)) if low <= value < high]
    if inside or outside != "clamp":
        return inside[0] if inside else other
    return 0 if value < attribute.edges[0] else declared - 1


def looped(domain, attributes, frame, outside):
    expected = np.zeros(domain.shape, int)
    for row in frame.iter_rows():
        places = [place_of(a, value, outside) for a, value in zip(attributes.values(), row, strict=True)]
        if None not in places:
            expected[tuple(places)] += 1
    return expected


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
@given(records(), st.sampled_from(OUTSIDE))
def test_counts_are_those_of_a_loop(given_records, outside):
    attributes, frame = given_records
    domain = dpf.Domain(attributes, outside)
    expected = looped(domain, attributes, frame, outside)
    counts = domain.count(frame)
    assert counts.dtype == np.int64
    np.testing.assert_array_equal(counts, expected)
    np.testing.assert_array_equal(domain.count(frame.lazy()), expected)
    np.testing.assert_array_equal(dpf.workloads.histogram(frame, domain), expected)
    if outside == "null":
        assert counts.sum() == frame.height


def test_it_is_one_class():
    assert dpf.workloads.Domain is dpf.Domain


@pytest.mark.parametrize("outside", OUTSIDE)
def test_many_rows_and_chunks(outside, seed):
    generator = np.random.default_rng(seed)
    codes = [generator.integers(-1, 5, 300_000) for _ in range(3)]
    frame = pl.concat([pl.DataFrame({"a": a, "b": b}) for a, b in ([codes[0], codes[1]], [codes[1], codes[2]])])
    a, b = frame["a"].to_numpy(), frame["b"].to_numpy()
    shape = (5, 4) if outside == "null" else (4, 3)
    if outside == "clamp":
        a, b = a.clip(0, 3), b.clip(0, 2)
    if outside == "null":
        a, b = np.where((a >= 0) & (a < 4), a, 4), np.where((b >= 0) & (b < 3), b, 3)
    inside = (a >= 0) & (a < shape[0]) & (b >= 0) & (b < shape[1])
    expected = np.bincount(a[inside] * shape[1] + b[inside], minlength=math.prod(shape)).reshape(shape)
    domain = dpf.Domain({"a": 4, "b": 3}, outside)
    assert domain.shape == shape
    for threads in (None, 1, 3):
        np.testing.assert_array_equal(domain.count(frame, threads=threads), expected)
    np.testing.assert_array_equal(domain.count(frame.lazy()), expected)
    np.testing.assert_array_equal(domain.count({"b": frame["b"], "a": frame["a"]}), expected)
    texts = frame.select(pl.all().cast(pl.String) + " in a long string")
    listed = {name: [f"{code} in a long string" for code in range(size)] for name, size in (("a", 4), ("b", 3))}
    if outside != "clamp":
        np.testing.assert_array_equal(dpf.Domain(listed, outside).count(texts), expected)


@pytest.mark.parametrize("kind", ["parquet", "csv", "arrow", "ipc"])
@pytest.mark.parametrize("outside", OUTSIDE)
def test_files_are_counted_as_frames_are(kind, outside, tmp_path):
    generator = np.random.default_rng(5)
    frame = pl.DataFrame(
        {
            "city": generator.choice(["Oslo", "Rome", "Llanfairpwllgwyngyll", "Bonn"], 3_000),
            "day": [DAYS[i] for i in generator.integers(0, 3, 3_000)],
            "x": generator.normal(3, 4, 3_000),
            "yes": generator.integers(0, 2, 3_000).astype(bool),
        }
    ).with_columns(pl.when(pl.col("x") < 4).then(pl.col("city")).alias("city"))
    domain = dpf.Domain(
        {"yes": [True, False], "city": ["Rome", "Llanfairpwllgwyngyll"], "x": dpf.bins("x", EDGES), "day": DAYS[1:]},
        outside,
    )
    expected = domain.count(frame)
    assert expected.sum() > 100
    if kind == "arrow":
        pytest.importorskip("pyarrow")
        np.testing.assert_array_equal(domain.count(frame.to_arrow()), expected)
        return
    for part in range(3):
        path = tmp_path / f"part{part}.{kind}"
        getattr(frame[part * 1_000 : (part + 1) * 1_000], f"write_{kind}")(path)
    schema = dict(frame.schema) if kind == "csv" else None
    np.testing.assert_array_equal(domain.count(str(tmp_path / f"*.{kind}"), schema=schema), expected)


def test_opening_reads_no_row(tmp_path):
    read = []
    frame = pl.LazyFrame({"a": [0, 1, 1]}).select(
        pl.col("a").map_batches(lambda column: read.append(1) or column, return_dtype=pl.Int64)
    )
    opened = dpf.Domain({"a": 2}).open(frame)
    assert not read
    assert opened.count().tolist() == [1, 2]
    assert read
    for copying in (pickle.dumps, copy.copy):
        with pytest.raises(DpfastError, match="cannot be pickled"):
            copying(opened)
    path = tmp_path / "people.parquet"
    pl.DataFrame({"a": [0, 1]}).write_parquet(path)
    opened = dpf.Domain({"a": 2}).open(path)
    pl.DataFrame({"a": [0, 1, 1, 1]}).write_parquet(path)
    with pytest.raises(DpfastError, match="changed"):
        opened.count()


def test_codes_beyond_int64_are_clamped_to_the_last():
    frame = pl.DataFrame({"a": pl.Series([2**64 - 1, 2**63, 0], dtype=pl.UInt64)})
    histogram = dpf.workloads.histogram
    assert histogram(frame, {"a": 3}, "clamp").tolist() == [1, 0, 2]
    assert histogram(frame, {"a": 3}).tolist() == [1, 0, 0]
    assert histogram(frame, {"a": 3}, "null").tolist() == [1, 0, 0, 2]


def test_nulls_of_one_column_do_not_reach_the_next():
    frame = pl.DataFrame({"a": [None, 0, 1], "b": [0, 1, 1], "c": [1, 1, None]})
    domain = dpf.Domain({"a": 2, "b": 2, "c": 2})
    assert domain.count(frame).reshape(-1).tolist() == [0, 0, 0, 1, 0, 0, 0, 0]


@pytest.mark.parametrize("outside", OUTSIDE)
def test_what_a_neighbour_changes(outside):
    """A record more changes one cell by one at most, whatever it holds; under "null" exactly one."""
    attributes = {"a": 3, "b": ["x", None], "c": dpf.bins("c", EDGES)}
    frame = pl.DataFrame({"a": [0, 1, 9, None], "b": ["x", None, "x", "y"], "c": [1.0, None, math.nan, 99.0]})
    domain = dpf.Domain(attributes, outside)
    whole = domain.count(frame)
    for row in range(frame.height):
        change = np.abs(whole - domain.count(pl.concat([frame[:row], frame[row + 1 :]]))).sum()
        assert change == 1 if outside == "null" else change <= 1


@pytest.mark.parametrize("outside", OUTSIDE)
def test_records_of_cells_count_into_these_cells(outside):
    held = {name: attribute for name, (attribute, *_) in KINDS.items() if name[:4] not in ("wide", "far ", "enum")}
    for names in (list(held)[:6], list(held)[6:]):
        domain = dpf.Domain({name: held[name] for name in names}, outside)
        cells = np.random.default_rng(7).integers(0, domain.cells, 500)
        frame = domain.records(cells, random=SeededRandom(1))
        assert frame.columns == list(domain.names)
        np.testing.assert_array_equal(domain.count(frame).reshape(-1), np.bincount(cells, minlength=domain.cells))
        assert domain.records([]).schema == frame.schema


@pytest.mark.parametrize("edges", [(-1.7e308, 1.7e308), (-(2**53), 2**53), (0, 1, 2), (1.0, 1.0 + 2**-52, 1.5)])
def test_numbers_lie_in_their_bins_whatever_the_edges(edges):
    domain = dpf.Domain({"x": dpf.bins("x", edges)})
    cells = np.repeat(np.arange(domain.cells), 300)
    drawn = domain.records(cells, random=SeededRandom(2))
    assert drawn["x"].is_finite().all()
    assert domain.count(drawn).tolist() == [300] * domain.cells


@pytest.mark.parametrize("outside", ["drop", "null"])
def test_records_of_an_estimate_lie_in_the_domain(outside):
    columns = {
        "day": [datetime.date(2024, 2, 29), datetime.date(2025, 1, 1)],
        "age": dpf.bins("age", [0, 30, 60]),
        "x": dpf.bins("x", [0.0, 0.25, 1.5]),
        "yes": [True, False],
    }
    domain = dpf.Domain(columns, outside=outside)
    spare = int(outside == "null")
    assert domain.shape == (2 + spare,) * 4
    histogram = np.full(domain.shape, 100)
    estimate = dpf.mwem(histogram, dpf.workloads.marginals(domain.shape, 1), epsilon=50.0)
    drawn = domain.records(estimate, 3_000, random=SeededRandom(3))
    assert drawn.columns == list(columns)
    assert drawn.schema == {"day": pl.Date, "age": pl.Int64, "x": pl.Float64, "yes": pl.Boolean}
    assert drawn["age"].drop_nulls().is_between(0, 59).all()
    assert drawn["x"].drop_nulls().is_between(0.0, 1.5, closed="left").all()
    assert bool(drawn["day"].null_count()) == bool(drawn["x"].null_count()) == (outside == "null")
    # Counted again, records are where they were drawn, but for rounding.
    share = estimate.histogram * (3_000 / estimate.histogram.sum())
    assert np.abs(domain.count(drawn) - share).max() < 1.0
    assert drawn.equals(domain.records(estimate, 3_000, random=SeededRandom(3)))
    with pytest.raises(ParameterError, match="cells must be of shape"):
        dpf.Domain({"a": 3}).records(estimate)


def test_a_plan_takes_the_cells_as_keys():
    """The keys of a plan are the cells in the histogram's order: with hardly any noise its counts are the domain's."""
    generator = np.random.default_rng(11)
    frame = pl.DataFrame(
        {
            "sex": generator.choice(["f", "m", "x"], 2_000),
            "age": generator.integers(-5, 99, 2_000),
            "part": generator.integers(0, 5, 2_000),
            "yes": generator.choice([True, False], 2_000),
        }
    )
    domain = dpf.Domain(
        {"age": dpf.bins("age", [0, 18, 65, 90]), "sex": ["m", "f"], "part": 3, "yes": [True, False, None]}
    )
    cells = domain.frame()
    assert cells.height == domain.cells == 3 * 2 * 3 * 3
    workload = dpf.workloads.identity(domain.shape)
    plan = dpf.plan(frame, by=domain.by, keys=cells, workload=workload, privacy_unit="row", epsilon=100)
    released = plan.run(dpf.Ledger(epsilon=100))
    counts = domain.count(frame).reshape(-1)
    # Noise of scale 0.01 strays by half a unit with probability e**-50.
    assert np.abs(released.histogram["estimate"].to_numpy() - counts).max() < 0.5
    assert released.histogram.select(cells.columns).equals(cells)
    assert np.array_equal(domain.count(domain.frame()), np.ones(domain.shape))


def test_cells_of_what_was_not_declared_are_null_keys():
    domain = dpf.Domain({"a": [None, "x"], "b": dpf.bins("b", [0, 1]), "c": 1}, "null")
    assert domain.frame().rows() == [(a, b, c) for a in (None, "x") for b in (0, None) for c in (0, None)]


FRAME = pl.DataFrame({"a": ["x"], "b": [1]})


def test_a_domain_of_too_many_cells():
    domain = dpf.Domain({name: list(range(100)) for name in "abcde"})
    with pytest.raises(ParameterError, match="80,000,000,000 bytes"):
        domain.count({name: np.ones(1, np.int64) for name in "abcde"})


def test_arguments_that_cannot_be():
    with pytest.raises(ParameterError, match="n must be left out"):
        dpf.Domain({"a": 2}).records([0], 5)
    with pytest.raises(ColumnError, match="a name that Polars takes for a pattern"):
        dpf.Domain({"^a.*$": 2})


@pytest.mark.parametrize(
    ("attribute", "column"),
    [
        (3, pl.Series("a", ["x"])),
        (3, pl.Series("a", [1.0])),
        (3, pl.Series("a", [True])),
        (3, pl.Series("a", [1], dtype=pl.Int128)),
        (["x"], pl.Series("a", [1])),
        ([1, 2], pl.Series("a", ["1"])),
        ([True], pl.Series("a", [1])),
        (DAYS, pl.Series("a", [datetime.datetime(2026, 1, 1)])),
        (dpf.bins("a", [0, 1]), pl.Series("a", ["x"])),
        (dpf.bins("a", [0, 1]), pl.Series("a", [True])),
        (3, pl.Series("b", [1])),
    ],
)
def test_columns_of_another_type_are_refused_by_their_type_alone(attribute, column):
    for rows in (column, column.clear()):
        with pytest.raises(ColumnError, match="'a'"):
            dpf.Domain({"a": attribute}).open(rows.to_frame())


def test_what_is_no_frame_is_refused_without_its_values():
    with pytest.raises(ColumnError, match="data must be a frame") as caught:
        dpf.Domain({"a": 3}).count({"a": np.ones(3), "private": np.ones(2)})
    assert caught.value.__cause__ is caught.value.__context__ is None


NO_DTYPES = [
    *([1], [None], [0.5], [2**130], ["private"], [], (1, 2), "private", 1, None, pl.Series),
    *(np.array([1, "private"], object), np.array(["private"]), np.ma.masked_array([1, 2], [True, False])),
]


@pytest.mark.parametrize("values", NO_DTYPES)
def test_a_dictionary_of_what_has_no_dtype_is_refused_whatever_it_holds(values):
    """Soundness rule 12: the dtype of a list is made from its values, and an error before the charge from that."""
    domain, ledger = dpf.Domain({"a": 3}, "null"), dpf.Ledger(epsilon=1)
    for read in (
        lambda data: domain.count(data),
        lambda data: domain.open(data),
        lambda data: dpf.Domain.from_schema(data, {"a": 3}),
        lambda data: dpf.propose_domain(data, bounds={"a": (0, 3)}, epsilon=1.0, ledger=ledger),
    ):
        with pytest.raises(ColumnError, match="data must have columns with dtypes of their own, but 'a' was") as caught:
            read({"a": values, "b": pl.Series([1])})
        assert "private" not in str(caught.value)
    assert ledger.spent.epsilon == 0


@pytest.mark.parametrize("values", [np.array([0, 2, 7]), np.array([0, 2, 7], np.uint8), pl.Series([0, 2, None])])
def test_a_dictionary_of_columns_that_have_dtypes_is_counted(values):
    assert dpf.Domain({"a": 3}, "null").count({"a": values}).tolist() == [1, 0, 1, 1]


def test_no_error_shows_the_data(tmp_path):
    """Soundness rule 3: what the engine says of a damaged file, or of a value, stays with it."""
    failing = pl.LazyFrame({"a": ["secret"]}).with_columns(pl.col("a").cast(pl.Int64).cast(pl.String))
    with pytest.raises(DpfastError, match="cannot be read") as caught:
        dpf.Domain({"a": ["x"]}).count(failing)
    assert "secret" not in repr(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_cells_of_more_than_numpy_numbers_are_records():
    domain = dpf.Domain(dict.fromkeys((f"x{place}" for place in range(40)), 4))
    rows = domain.records([0, 6, 2**62]).rows()
    assert rows == [(0,) * 40, (0,) * 38 + (1, 2), (0,) * 8 + (1,) + (0,) * 31]
    for beyond in ([2**63], np.array([2**63 + 5], np.uint64), [2**70]):
        with pytest.raises(
            dpf.errors.ParameterError, match=r"^cells must be integers from 0 to 9,223,372,036,854,775,807"
        ):
            domain.records(beyond)
