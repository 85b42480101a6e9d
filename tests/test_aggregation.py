"""Exact aggregates against a naive oracle: dictionaries, Fractions and nothing from the package."""

from __future__ import annotations

import dataclasses
import gzip
import math
import operator
from collections import Counter, defaultdict
from datetime import date, datetime
from fractions import Fraction
from functools import reduce

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpfast.aggregation import Grouping, aggregate, open_source, prepare
from dpfast.aggregation.coding import KeyCoder
from dpfast.aggregation.exact import Aggregates, Aggregation
from dpfast.aggregation.sources import open_source as open_again
from dpfast.columns.tables import rows_alone
from dpfast.errors import ColumnError, DpfastError, ParameterError
from dpfast.queries import Bins, Measure

ROWS = Measure("rows")
SETTINGS = settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))


def words(number: int) -> np.ndarray:
    return np.random.default_rng(number).integers(0, 2**64, number, dtype=np.uint64)


def no_words(number: int) -> np.ndarray:
    raise AssertionError("a row-level aggregation needs no randomness")


# The oracle.


def naive_contribution(measure: Measure, x) -> int:
    if measure.kind == "rows":
        return 1
    missing = x is None or (isinstance(x, float) and math.isnan(x))
    if measure.kind == "values":
        return 0 if missing else 1
    if missing:
        return 0
    if isinstance(x, float) and math.isinf(x):
        steps = measure.upper if x > 0 else measure.lower
    else:
        steps = round(Fraction(x) / Fraction(2) ** measure.step_exponent)
    return min(max(steps, measure.lower), measure.upper) - measure.centre


def naive_key(row: dict, by: list[str | Bins]) -> tuple:
    key = []
    for entry in by:
        if isinstance(entry, str):
            key.append(row[entry])
            continue
        x, found = row[entry.column], None
        if x is not None and not math.isnan(x):
            for left, right in zip(entry.edges, entry.edges[1:], strict=False):
                if left <= float(x) < right:
                    found = left
        key.append(found)
    return tuple(key)


def naive_aggregate(frame: pl.DataFrame, by: list[str | Bins], measures: list[Measure]) -> dict[tuple, list[int]]:
    totals: dict[tuple, list[int]] = defaultdict(lambda: [0] * len(measures))
    for row in frame.to_dicts():
        line = totals[naive_key(row, by)]
        for i, measure in enumerate(measures):
            line[i] += naive_contribution(measure, row.get(measure.column))
    return dict(totals)


def as_dict(aggregates: Aggregates) -> dict[tuple, list[int]]:
    keys = aggregates.keys.rows() if aggregates.keys.width else [()] * aggregates.keys.height
    assert len(set(keys)) == len(keys)
    for column in aggregates.measures:
        assert column.dtype == np.int64
        assert len(column) == len(keys)
    return {key: [int(column[i]) for column in aggregates.measures] for i, key in enumerate(keys)}


def forced(aggregation: Aggregation) -> list[Aggregation]:
    """The same aggregation by every route that its keys allow."""
    routes = [dataclasses.replace(aggregation, coder=None)] if aggregation.columns else []
    if aggregation.public is not None and aggregation.coder is not None:
        height = aggregation.public.given.height
        assert aggregation.public.coded is not None
        routes.append(dataclasses.replace(aggregation, coder=KeyCoder(aggregation.public.coded, height, hashed=True)))
        cells = math.prod(size + null for _, size, null in (c.digits for c in aggregation.public.coded))
        if cells < 10**6:
            coder = KeyCoder(aggregation.public.coded, height, hashed=False)
            routes.append(dataclasses.replace(aggregation, coder=coder))
    return [aggregation, *routes]


# Frames of every key type, with nulls, chunks and slices.

STRINGS = ["", "a", "b", "ab", "\0", "é", "twelve bytes", "thirteen byte", "thirteen bytf", "a much longer string"]
INTEGERS = [-3, -1, 0, 1, 2, 7]
EXTREMES = [-(2**63), -(2**63) + 1, -1, 0, 1, 2**63 - 1]
COLUMNS = {
    "string": (pl.String, STRINGS),
    "categorical": (pl.Categorical, STRINGS),
    "enum": (pl.Enum(STRINGS), STRINGS),
    "int8": (pl.Int8, [-128, 0, 1, 127]),
    "int64": (pl.Int64, INTEGERS),
    "extreme": (pl.Int64, EXTREMES),
    "uint64": (pl.UInt64, [0, 1, 2**63, 2**64 - 1]),
    "boolean": (pl.Boolean, [True, False]),
    "date": (pl.Date, [date(1899, 12, 31), date(1969, 12, 31), date(1970, 1, 1), date(2024, 2, 29)]),
    "datetime": (pl.Datetime("ms"), [datetime(1969, 12, 31, 23, 59), datetime(1970, 1, 1), datetime(2024, 2, 29)]),
}
FLOATS = [0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 3.25, 1e300, -1e300, 5e-324, math.inf, -math.inf, math.nan, 7.0]
VALUES = {
    "x": (pl.Float64, FLOATS),
    "single": (pl.Float32, [0.5, 1.5, -2.5, math.inf, math.nan, 0.1]),
    "y": (pl.Int64, [-(2**63), -5, -2, 0, 1, 2, 3, 6, 2**63 - 1]),
    "small": (pl.Int32, [2**31 - 1, -(2**31), 0, 5]),
    "large": (pl.UInt64, [0, 1, 6, 2**63, 2**63 + 1, 3 * 2**62, 2**64 - 1]),
    "flag": (pl.Boolean, [True, False]),
}
UNIT = {"unit": (pl.String, ["p", "q", "r", "somebody with a long name", "somebody else altogether"])}


@st.composite
def frames(draw) -> pl.DataFrame:
    rows = draw(st.integers(0, 25))
    data = {}
    for name, (dtype, values) in {**COLUMNS, **VALUES, **UNIT}.items():
        column = draw(st.lists(st.sampled_from([None, *values]), min_size=rows, max_size=rows))
        data[name] = pl.Series(name, column, dtype=dtype)
    frame = pl.DataFrame(data)
    cuts = sorted(draw(st.lists(st.integers(0, rows), max_size=3)))
    pieces = [frame[low:high] for low, high in zip([0, *cuts], [*cuts, rows], strict=True)]
    frame = pl.concat(pieces, rechunk=False) if pieces else frame
    return frame.slice(draw(st.integers(0, 3)))


@st.composite
def keys_of(draw, by: list[str | Bins]) -> pl.DataFrame:
    columns = {}
    number = draw(st.integers(1, 12))
    for entry in by:
        if isinstance(entry, Bins):
            column = draw(st.lists(st.sampled_from([None, *entry.labels]), min_size=number, max_size=number))
            columns[entry.column] = pl.Series(column, dtype=pl.Float64)
            continue
        dtype, values = COLUMNS[entry]
        column = draw(st.lists(st.sampled_from([None, *values]), min_size=number, max_size=number))
        if entry in ("string", "categorical", "enum"):
            dtype = draw(st.sampled_from([pl.String, pl.Categorical, pl.Enum(STRINGS)]))
        columns[entry] = pl.Series(column, dtype=dtype)
    return pl.DataFrame(columns).unique(maintain_order=True)


BIN_ENTRIES = [Bins("x", (-1, 0, 0.5, 3)), Bins("y", (-2, 0, 2))]
ENTRIES = st.lists(
    st.sampled_from([*COLUMNS, *BIN_ENTRIES]),
    min_size=1,
    max_size=3,
    unique_by=lambda entry: entry if isinstance(entry, str) else entry.column,
)


@st.composite
def sums(draw) -> Measure:
    lower, width = draw(st.integers(-(2**20), 2**20)), draw(st.integers(0, 2**20))
    return Measure(
        "sum",
        draw(st.sampled_from(list(VALUES))),
        draw(st.sampled_from([-1080, -40, -3, -1, 0, 1, 2, 40, 61, 62, 63, 64, 65, 1000])),
        lower,
        lower + width,
        draw(st.sampled_from([0, lower, lower + width // 2])),
    )


MEASURES = st.lists(
    st.one_of(st.just(ROWS), st.sampled_from([Measure("values", name) for name in [*VALUES, "string"]]), sums()),
    max_size=4,
)


@SETTINGS
@given(frames(), ENTRIES, MEASURES, st.data())
def test_public_keys_agree_with_the_oracle_on_every_route(frame, by, measures, data):
    """Soundness rule 19: null-safe, missing keys count 0, unknown ones are dropped."""
    keys = data.draw(keys_of(by))
    found = naive_aggregate(frame, by, measures)
    expected = {key: found.get(key, [0] * len(measures)) for key in keys.rows()}
    for source in (frame, frame.lazy()):
        for aggregation in forced(prepare(source, Grouping(tuple(by), keys), measures)):
            aggregates = aggregation.run(no_words)
            assert aggregates.keys.equals(keys, null_equal=True)
            assert as_dict(aggregates) == expected, aggregation.route


@SETTINGS
@given(frames(), ENTRIES, MEASURES)
def test_found_keys_agree_with_the_oracle(frame, by, measures):
    expected = naive_aggregate(frame, by, measures)
    for source in (frame, frame.lazy()):
        aggregates = aggregate(source, Grouping(tuple(by)), measures, no_words)
        assert as_dict(aggregates) == expected
        counts = naive_aggregate(frame, by, [ROWS])
        assert {key: [int(n)] for key, n in zip(aggregates.keys.rows(), aggregates.units, strict=True)} == counts


@SETTINGS
@given(frames(), MEASURES)
def test_no_key_columns_are_one_group(frame, measures):
    expected = naive_aggregate(frame, [], measures).get((), [0] * len(measures))
    for source in (frame, frame.lazy()):
        for keys in (None, rows_alone(1)):
            aggregates = aggregate(source, Grouping((), keys), measures, no_words)
            assert aggregates.keys.shape == (1, 0)
            assert as_dict(aggregates) == {(): expected}
        everyone = Grouping((), None, "unit", 1, 10**6)
        dropped = naive_aggregate(frame.drop_nulls("unit"), [], measures).get((), [0] * len(measures))
        assert as_dict(aggregate(source, everyone, measures, words)) == {(): dropped}


@SETTINGS
@given(frames(), ENTRIES, MEASURES, st.sampled_from(["unit", *COLUMNS]), st.data())
def test_loose_bounds_drop_null_units_and_nothing_else(frame, by, measures, unit, data):
    """Soundness rule 15: rows with a null unit are dropped."""
    keys = data.draw(st.one_of(st.none(), keys_of(by)))
    kept = frame.filter(pl.col(unit).is_not_null())
    found = naive_aggregate(kept, by, measures)
    grouping = Grouping(tuple(by), keys, unit, 1000, 1000)
    expected = found if keys is None else {key: found.get(key, [0] * len(measures)) for key in keys.rows()}
    units = defaultdict(set)
    for row in kept.to_dicts():
        units[naive_key(row, by)].add(row[unit])
    for source in (frame, frame.lazy()):
        for aggregation in forced(prepare(source, grouping, measures)):
            aggregates = aggregation.run(words)
            rows = aggregates.keys.rows()
            assert as_dict(aggregates) == expected
            assert dict(zip(rows, aggregates.units.tolist(), strict=True)) == {key: len(units[key]) for key in rows}


@SETTINGS
@given(frames(), ENTRIES, st.integers(1, 3), st.integers(1, 3), st.data())
def test_bounds_keep_as_many_as_they_allow_and_no_more(frame, by, max_groups, max_rows, data):
    """Soundness rule 14: G groups, R rows in each; here for each unit by itself, and for all in sum."""
    keys = data.draw(st.one_of(st.none(), keys_of(by)))
    allowed = None if keys is None else set(keys.rows())
    grouping = Grouping(tuple(by), keys, "unit", max_groups, max_rows)
    whole = 0
    for (unit,), part in [*frame.group_by("unit"), ((None,), frame)]:
        if unit is None and part is not frame:
            continue
        per_unit = defaultdict(Counter)
        for row in part.to_dicts():
            if row["unit"] is not None and (allowed is None or naive_key(row, by) in allowed):
                per_unit[row["unit"]][naive_key(row, by)] += 1
        expected = sum(min(max_groups, len(groups)) for groups in per_unit.values())
        for measures in ([ROWS], [ROWS, Measure("values", "string"), Measure("sum", "flag")]):
            aggregates = aggregate(part, grouping, measures, words)
            rows = aggregates.measures[0]
            assert int(aggregates.units.sum()) == expected
            if part is not frame:
                counts = per_unit[unit]
                assert int((rows > 0).sum()) == expected
                for key, n in zip(aggregates.keys.rows(), rows.tolist(), strict=True):
                    assert n in (0, min(max_rows, counts[key]))
            for column in aggregates.measures[1:]:
                assert (column <= rows).all()
        whole += expected if part is not frame else 0
    assert whole == expected


# Exactness.


@pytest.mark.parametrize("keys", [None, pl.DataFrame({"k": [0, 1]})])
@pytest.mark.parametrize("unit", [None, "u"])
def test_sums_do_not_depend_on_order(keys, unit):
    """Soundness rule 16: 2**53 and four ones, forwards and backwards; a float sum gives two results."""
    column = [2.0**53, 1.0, 1.0, 1.0, 1.0]
    assert reduce(operator.add, column) != math.fsum(column)  # Python's own sum is compensated from 3.12 on
    measure = Measure("sum", "x", 0, 0, 2**23, 0)
    fine = Measure("sum", "x", 30, 0, 2**23, 0)
    results = set()
    for values in (column, column[::-1]):
        frame = pl.DataFrame({"k": [0] * 5, "x": values, "u": range(5)})
        bounds = (None, None) if unit is None else (1, 1)
        aggregates = aggregate(frame, Grouping(("k",), keys, unit, *bounds), [measure, fine], words)
        results.add(tuple(int(column[0]) for column in aggregates.measures))
    assert results == {(2**23 + 4, 2**23)}


def test_narrow_integers_do_not_wrap():
    """Soundness rule 16: Polars' own sum of Int32 wraps."""
    frame = pl.DataFrame({"k": [1] * 3, "x": pl.Series([2**31 - 1] * 3, dtype=pl.Int32)})
    assert frame.group_by("k").agg(pl.col("x").sum())["x"].item() < 2**31
    for keys in (None, frame.select("k").unique()):
        measure = Measure("sum", "x", 8, 0, 2**23, 0)
        assert aggregate(frame, Grouping(("k",), keys), [measure], no_words).measures[0].tolist() == [3 * 2**23]


@pytest.mark.parametrize("shift", [0, 1, 2, 62, 63, 64, 65])
def test_the_largest_integers_round_without_wrapping(shift):
    values = [2**64 - 1, 2**64 - 2, 2**63 + 1, 2**63, 2**63 - 1, 0]
    frame = pl.DataFrame({"k": range(6), "x": pl.Series(values, dtype=pl.UInt64)})
    measure = Measure("sum", "x", shift, 0, 3)
    expected = [naive_contribution(measure, value) for value in values]
    for keys in (None, frame.select("k")):
        found = as_dict(aggregate(frame, Grouping(("k",), keys), [measure], no_words))
        assert [found[k,] for k in range(6)] == [[steps] for steps in expected]


def test_large_frame_in_threads_agrees_with_polars():
    rows = 700_001
    generator = np.random.default_rng(5)
    frame = pl.DataFrame(
        {
            "a": generator.integers(0, 3000, rows).astype(np.int16),
            "b": pl.Series(generator.integers(0, 900, rows)).cast(pl.String),
            "x": generator.normal(size=rows),
        }
    ).with_columns(pl.when(pl.col("x") > 1.5).then(None).otherwise(pl.col("x")).alias("x"))
    frame = pl.concat([frame[:1], frame[1:1000], frame[1000:]], rechunk=False)
    keys = pl.DataFrame({"a": pl.Series(range(2999), dtype=pl.Int16)}).join(
        pl.DataFrame({"b": [str(i) for i in range(0, 900, 2)]}), how="cross"
    )
    measures = [ROWS, Measure("values", "x"), Measure("sum", "x", -10, -2000, 2000, 5)]
    steps = (pl.col("x") * 1024).round(mode="half_to_even").cast(pl.Int64).clip(-2000, 2000) - 5
    expected = keys.join(
        frame.group_by("a", "b").agg(pl.len(), pl.col("x").count().alias("n"), steps.sum().alias("s")),
        on=["a", "b"],
        how="left",
        maintain_order="left",
    ).fill_null(0)
    for source in (frame, frame.lazy()):
        aggregation = prepare(source, Grouping(("a", "b"), keys), measures)
        assert aggregation.route == "slots"
        aggregates = aggregation.run(no_words)
        for name, column in zip(["len", "n", "s"], aggregates.measures, strict=True):
            assert column.tolist() == expected[name].to_list()


@pytest.mark.parametrize("dtype", [pl.Int64, pl.String])
def test_many_units_in_batches(dtype):
    rows = 300_000
    generator = np.random.default_rng(6)
    units = generator.integers(0, 2**40, 50_000)[generator.integers(0, 50_000, rows)]
    frame = pl.DataFrame({"u": pl.Series(units).cast(dtype), "k": generator.integers(0, 50, rows)})
    pieces = [frame[i : i + 70_001] for i in range(0, rows, 70_001)]
    source = pl.concat([piece.lazy() for piece in pieces])
    distinct = frame.group_by("u").agg(pl.col("k").n_unique())["k"].clip(0, 3).sum()
    for data in (frame, source):
        aggregates = aggregate(data, Grouping(("k",), None, "u", 3, 1), [ROWS, Measure("values", "u")], words)
        assert int(aggregates.units.sum()) == distinct
        for column in aggregates.measures:
            assert column.tolist() == aggregates.units.tolist()


# Keys.


def test_extreme_integers_take_another_route():
    values = [-(2**63), -1, 0, 2**63 - 1]
    frame = pl.DataFrame({"k": [*values, 0, None], "j": [*values, 0, 0]})
    keys = pl.DataFrame({"k": values}).join(pl.DataFrame({"j": values}), how="cross")
    aggregation = prepare(frame, Grouping(("k", "j"), keys), [ROWS])
    assert aggregation.route == "native"
    expected = naive_aggregate(frame, ["k", "j"], [ROWS])
    assert as_dict(aggregation.run(no_words)) == {key: expected.get(key, [0]) for key in keys.rows()}
    unsigned = pl.DataFrame({"k": pl.Series([0, 2**64 - 1, 2**63], dtype=pl.UInt64)})
    assert prepare(unsigned, Grouping(("k",), unsigned), [ROWS]).route == "native"
    near = unsigned.filter(pl.col("k") > 0)
    aggregation = prepare(unsigned, Grouping(("k",), near), [ROWS])
    assert aggregation.run(no_words).measures[0].tolist() == [1, 1]


def test_sparse_keys_are_hashed():
    keys = pl.DataFrame({"k": [10**12 * i for i in range(1000)]})
    frame = pl.DataFrame({"k": [0, 1, 10**12, 10**12, None, -1, 2**62]})
    aggregation = prepare(frame, Grouping(("k",), keys), [ROWS])
    assert aggregation.route == "hashed"
    assert aggregation.run(no_words).measures[0][:3].tolist() == [1, 2, 0]


@pytest.mark.parametrize(
    ("column", "keys", "error", "message"),
    [
        (pl.Series([1, 2]), pl.DataFrame({"k": [1, 1]}), ParameterError, "unique"),
        (pl.Series([1, 2]), pl.DataFrame({"k": [None, None]}, schema={"k": pl.Int64}), ParameterError, "unique"),
        (pl.Series(["a"]), pl.DataFrame({"k": ["a", "b", "a"]}), ParameterError, "unique"),
        (pl.Series([0, 2**63], dtype=pl.UInt64), pl.DataFrame({"k": [0, 2**62, 0]}), ParameterError, "unique"),
        (pl.Series([1], dtype=pl.Int8), pl.DataFrame({"k": [300]}), ParameterError, "Int8"),
        (pl.Series([1], dtype=pl.UInt8), pl.DataFrame({"k": [-1]}), ParameterError, "UInt8"),
        (pl.Series(["a"], dtype=pl.Enum(["a"])), pl.DataFrame({"k": ["b"]}), ParameterError, "Enum"),
        (pl.Series([1, 2]), pl.DataFrame({"k": ["1"]}), ColumnError, "dtype String"),
        (pl.Series([1, 2]), pl.DataFrame({"k": [1.0]}), ColumnError, "Float64"),
        (pl.Series([1, 2]), pl.DataFrame({"k": [True]}), ColumnError, "Boolean"),
        (pl.Series([1, 2]), pl.DataFrame({"k": [1], "j": [1]}), ColumnError, "exactly"),
        (pl.Series([1, 2]), pl.DataFrame({"j": [1]}), ColumnError, "exactly"),
        (pl.Series([1, 2]), pl.DataFrame({"k": []}, schema={"k": pl.Int64}), ParameterError, "at least one key"),
        (pl.Series([1, 2]), [1, 2], ParameterError, "DataFrame"),
        (pl.Series([1.5]), None, ColumnError, r"dpf\.bins"),
        (pl.Series([[1]]), None, ColumnError, "cast"),
    ],
)
def test_keys_that_do_not_serve(column, keys, error, message):
    """Soundness rule 19: public keys are unique after casting, and casts lose nothing."""
    frame = column.alias("k").to_frame()
    with pytest.raises(error, match=message) as caught:
        prepare(frame, Grouping(("k",), keys), [ROWS])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("keys", [None, pl.DataFrame({"x": [-1, 0, 1, None]})])
def test_bins_in_batches(keys):
    rows = 400_000
    frame = pl.DataFrame({"x": np.random.default_rng(7).normal(size=rows)})
    bins = Bins("x", (-1, 0, 1, 2))
    expected = Counter(math.floor(x) if -1 <= x < 2 else None for x in frame["x"])
    for source in (frame, pl.concat([frame[:7].lazy(), frame[7:].lazy()])):
        found = as_dict(aggregate(source, Grouping((bins,), keys), [ROWS], no_words))
        assert found == {(key,): [count] for key, count in expected.items()}


def test_keys_of_other_dtypes():
    keys = pl.DataFrame({"k": pl.Series([3, 1], dtype=pl.Int8)})
    frame = pl.DataFrame({"k": pl.Series([1, 3, 3], dtype=pl.UInt64)})
    aggregates = aggregate(frame, Grouping(("k",), keys), [ROWS], no_words)
    assert aggregates.measures[0].tolist() == [2, 1]
    assert aggregates.keys.schema == keys.schema
    for data in (
        pl.String,
        pl.Categorical,
        pl.Enum(["x", "y"]),
        pl.Categorical(pl.Categories("small", physical=pl.UInt8)),
    ):
        frame = pl.DataFrame({"k": pl.Series(["x", "y", "y", None], dtype=data)})
        for dtype in (pl.String, pl.Categorical, pl.Enum(["y", "x"])):
            keys = pl.DataFrame({"k": pl.Series(["y", None, "x"], dtype=dtype)})
            assert aggregate(frame, Grouping(("k",), keys), [ROWS], no_words).measures[0].tolist() == [2, 1, 1]


def test_bins_are_half_open():
    frame = pl.DataFrame({"x": [-0.1, 0.0, 4.9, 5.0, 10.0, math.nan, None, math.inf]})
    bins = Bins("x", (0, 5, 10))
    keys = pl.DataFrame({"x": [0, 5, None]})
    assert aggregate(frame, Grouping((bins,), keys), [ROWS], no_words).measures[0].tolist() == [2, 1, 5]
    with pytest.raises(ParameterError, match="left edges"):
        prepare(frame, Grouping((bins,), pl.DataFrame({"x": [10]})), [ROWS])
    with pytest.raises(ParameterError, match="left edges"):
        prepare(frame, Grouping((bins,), pl.DataFrame({"x": [math.nan]})), [ROWS])
    with pytest.raises(ColumnError):
        prepare(pl.DataFrame({"x": ["a"]}), Grouping((bins,)), [ROWS])


@pytest.mark.parametrize(
    "edges", [(), (1,), (1, 1), (2, 1), (0, math.nan), (0, math.inf), "ab", None, ("a", "b"), (0, 10**400)]
)
def test_bins_refuse_bad_edges(edges):
    with pytest.raises(ParameterError, match="edges"):
        Bins("x", edges)


@pytest.mark.parametrize("keys", [None, pl.DataFrame({"k": ["a", None]})])
@pytest.mark.parametrize("dtype", [pl.String, pl.Null, pl.Categorical])
@pytest.mark.parametrize("rows", [0, 3])
def test_columns_without_values(keys, dtype, rows):
    frame = pl.DataFrame({"k": [None] * rows, "u": [None] * rows, "x": [None] * rows}, schema_overrides={"k": dtype})
    measures = [ROWS, Measure("values", "x"), Measure("sum", "x", 0, -5, 5)]
    for source in (frame, frame.lazy()):
        aggregates = aggregate(source, Grouping(("k",), keys), measures, no_words)
        assert [column.sum() for column in aggregates.measures] == [rows, 0, 0]
        aggregates = aggregate(source, Grouping(("k",), keys, "u", 1, 1), measures, words)
        assert [column.sum() for column in aggregates.measures] == [0, 0, 0]
        assert aggregates.keys.height == (0 if keys is None else 2)


def test_parameters_are_checked():
    frame = pl.DataFrame({"carrier": ["a"], "delay": [1.0], "tail": ["t"]})
    with pytest.raises(ColumnError, match="carrier"):
        prepare(frame, Grouping(("carier",)), [ROWS])
    with pytest.raises(ColumnError, match="delay"):
        prepare(frame, Grouping(("carrier",)), [Measure("sum", "dely")])
    with pytest.raises(ColumnError, match="tail"):
        prepare(frame, Grouping(("carrier",), None, "tial", 1, 1), [ROWS])
    with pytest.raises(ColumnError, match="privacy units"):
        prepare(frame, Grouping(("carrier",), None, "delay", 1, 1), [ROWS])
    with pytest.raises(ColumnError, match="sum"):
        prepare(frame, Grouping(("carrier",)), [Measure("sum", "carrier")])
    with pytest.raises(ParameterError, match="once"):
        prepare(frame, Grouping(("carrier", "carrier")), [ROWS])
    with pytest.raises(ParameterError, match=r"2\*\*24"):
        prepare(frame, Grouping(("carrier",)), [Measure("sum", "delay", 0, 0, 2**24)])
    with pytest.raises(ColumnError):
        prepare(rows_alone(3), Grouping(()), [ROWS])
    with pytest.raises(ParameterError):
        prepare({"carrier": []}, Grouping(()), [ROWS])


@pytest.mark.parametrize("bounds", [(None, 1), (1, None), (0, 1), (1, -1), (True, 1), (1.5, 1)])
def test_a_unit_needs_both_bounds(bounds):
    """Soundness rule 15: a unit column without both bounds is refused."""
    with pytest.raises(ParameterError, match="max_"):
        Grouping(("k",), None, "u", *bounds)


# The engine.


def test_no_python_function_enters_a_plan(monkeypatch):
    def refuse(*arguments, **options):
        raise AssertionError("a Python function in a plan")

    for owner in (pl.Expr, pl.LazyFrame, pl.DataFrame, pl.Series):
        for name in ("map_batches", "map_elements", "map_rows", "pipe_with_schema"):
            if hasattr(owner, name):
                monkeypatch.setattr(owner, name, refuse)
    collected = pl.LazyFrame.collect
    plans = []

    def collect(self, *arguments, **options):
        plans.append(self.explain())
        return collected(self, *arguments, **options)

    sunk = pl.LazyFrame.sink_batches

    def sink_batches(self, *arguments, **options):
        plans.append(self.explain())
        return sunk(self, *arguments, **options)

    monkeypatch.setattr(pl.LazyFrame, "collect", collect)
    monkeypatch.setattr(pl.LazyFrame, "sink_batches", sink_batches)
    frame = pl.DataFrame({"k": ["a", "b"], "i": [1, 2], "x": [0.5, None], "u": ["p", "q"]})
    measures = [ROWS, Measure("values", "x"), Measure("sum", "x"), Measure("sum", "i", 1)]
    for source in (frame, frame.lazy()):
        for by in (("k",), ("i", Bins("x", (0, 1)))):
            for keys in (None, frame.select("k") if by == ("k",) else pl.DataFrame({"i": [1], "x": [0]})):
                aggregate(source, Grouping(by, keys), measures, words)
                aggregate(source, Grouping(by, keys, "u", 1, 1), measures, words)
    assert plans
    assert not any("python" in plan.lower() or "map" in plan.lower() for plan in plans)


# Sources.


@pytest.fixture
def frame() -> pl.DataFrame:
    return pl.DataFrame({"k": ["a", "b", "a", None], "x": [1.5, 2.0, None, 4.0], "i": [1, 2, 3, None]})


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "ipc", "feather", "csv", "csv.gz"])
def test_files_agree_with_memory(tmp_path, frame, suffix):
    path = tmp_path / f"part1.{suffix}"
    if suffix == "parquet":
        frame.write_parquet(path)
    elif suffix.startswith("csv"):
        text = frame.write_csv().encode()
        path.write_bytes(gzip.compress(text) if suffix.endswith("gz") else text)
    else:
        frame.write_ipc(path)
    schema = {"k": pl.String, "x": pl.Float64, "i": pl.Int64} if suffix.startswith("csv") else None
    measures = [ROWS, Measure("sum", "x", -1, 0, 100)]
    for keys in (None, pl.DataFrame({"k": ["b", None, "a"]})):
        expected = as_dict(aggregate(frame, Grouping(("k",), keys), measures, no_words))
        for data in (path, str(path), [path], str(tmp_path / f"*.{suffix}")):
            source = open_source(data, schema=schema)
            assert isinstance(source.frame, pl.LazyFrame)
            assert as_dict(aggregate(source, Grouping(("k",), keys), measures, no_words)) == expected
    other = path.with_name(f"other.{suffix}")
    other.write_bytes(path.read_bytes())
    both = open_source([path, other], schema=schema)
    assert aggregate(both, Grouping(()), [ROWS], no_words).measures[0].tolist() == [2 * frame.height]


def test_arrow_tables(frame):
    dictionary = frame.to_arrow().set_column(0, "k", frame.to_arrow()["k"].dictionary_encode())
    for data in (frame, frame.lazy(), frame.to_arrow(), dictionary, frame.to_arrow().to_batches()[0]):
        aggregates = aggregate(open_source(data), Grouping(("k",)), [ROWS], no_words)
        assert as_dict(aggregates) == {("a",): [2], ("b",): [1], (None,): [1]}


def test_no_row_of_a_csv_file_changes_a_dtype_or_raises(tmp_path):
    """Soundness rule 12: declared dtypes; what does not parse is null."""
    path = tmp_path / "flights.csv"
    schema = {"delay": pl.Int64, "carrier": pl.String}
    for last in ("4,UA", "4.5,UA", "NA,UA", '"",', "99999999999999999999,UA,more,fields", "7"):
        path.write_text(f"delay,carrier,extra\n1,AA,x\n{last}\n")
        source = open_source(path, schema=schema)
        assert source.schema() == pl.Schema(schema)
        aggregates = aggregate(source, Grouping(()), [ROWS, Measure("values", "delay")], no_words)
        assert aggregates.measures[0].tolist() == [2]


def test_csv_fields_are_parsed_one_by_one(tmp_path):
    """Soundness rule 12: the reader takes the format of all dates from the first; here no row changes another's."""
    path = tmp_path / "days.csv"
    schema = {
        "day": pl.Date,
        "moment": pl.Datetime("ms"),
        "carrier": pl.Enum(["AA"]),
        "kind": pl.Categorical,
        "name": pl.String,
        "flag": pl.Boolean,
    }
    good = "2024-02-29,2024-02-29T12:00:00,AA,x,n,true"
    for bad in ("29/02/2024,29.02.2024 12:00,BB,y,\xff,yes", "2024-02-30,2024-02-29,,,,", "x,y,z"):
        for lines in ((good, bad), (bad, good)):
            path.write_bytes("\n".join(["day,moment,carrier,kind,name,flag", *lines, ""]).encode("latin-1"))
            rows = open_source(path, schema=schema).frame.lazy().collect().rows()
            assert rows[lines.index(good)] == (date(2024, 2, 29), datetime(2024, 2, 29, 12), "AA", "x", "n", True)
            assert rows[lines.index(bad)][0] is None
    for dtype in (pl.Duration, pl.Binary, pl.List(pl.Int64)):
        with pytest.raises(ColumnError, match="not read from CSV"):
            open_source(path, schema={"day": dtype})


def test_no_message_quotes_the_data(tmp_path, recwarn):
    """Soundness rule 3: not even of a file that cannot be read."""
    path = tmp_path / "open.csv"
    path.write_text('k,x\na,1\n"secret,3\n')
    source = open_source(path, schema={"k": pl.String, "x": pl.Int64})
    for grouping in (Grouping(("k",)), Grouping(("k",), pl.DataFrame({"k": ["a"]}), "x", 1, 1)):
        with pytest.raises(DpfastError) as caught:
            aggregate(source, grouping, [ROWS], words)
        assert "secret" not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
    assert not recwarn.list


def test_sources_that_do_not_serve(tmp_path, frame):
    csv, parquet = tmp_path / "a.csv", tmp_path / "a.parquet"
    frame.write_csv(csv)
    frame.write_parquet(parquet)
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1nothing")
    (tmp_path / "a.xlsx").write_bytes(b"")
    cases = [
        (csv, None, ColumnError, "schema="),
        (csv, {"nowhere": pl.Int64}, ColumnError, "nowhere"),
        (parquet, {"k": pl.String}, ParameterError, "left out"),
        (frame, {"k": pl.String}, ParameterError, "left out"),
        (tmp_path / "b.parquet", None, ParameterError, "existing"),
        (tmp_path / "a.xlsx", None, ParameterError, r"\.parquet"),
        (str(tmp_path / "*.nothing"), None, ParameterError, "pattern"),
        (tmp_path / "empty.csv", {"k": pl.String}, ParameterError, "not empty"),
        (tmp_path / "broken.parquet", None, ParameterError, "opened"),
        ([csv, parquet], None, ParameterError, "one kind"),
        ([], None, ParameterError, "DataFrame"),
        (3, None, ParameterError, "DataFrame"),
        (b"a.csv", None, ParameterError, "DataFrame"),
    ]
    for data, schema, error, message in cases:
        with pytest.raises(error, match=message) as caught:
            open_again(data, schema=schema)
        assert "\n" not in str(caught.value)
        assert isinstance(caught.value, DpfastError)
