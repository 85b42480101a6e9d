"""Edges of bins: which are read, and that values of every type lie where exact arithmetic puts them."""

from __future__ import annotations

import datetime as dt
import random
import zoneinfo
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.aggregation.conditions import native_bins
from dpfast.aggregation.keys import plan_keys
from dpfast.columns.edges import read_edges
from dpfast.columns.values import denoted, values_of
from dpfast.errors import DpfastError, ParameterError
from dpfast.queries import bins_measure
from dpfast.releases.query_measures import measures_of, of_columns

ROME, WEST = zoneinfo.ZoneInfo("Europe/Rome"), dt.timezone(dt.timedelta(hours=-5))
DAY, MOMENT, LATER = dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 12), dt.datetime(2025, 1, 1)
SECOND, MS = dt.timedelta(seconds=1), dt.timedelta(milliseconds=1)
#: The clock shows this twice, the second time with ``fold=1``.
TWICE = dt.datetime(2024, 10, 27, 2, 15, tzinfo=ROME)


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ([0, 1.0, np.int8(2)], (0, 1, 2)),
        ([0, 0.5], (0.0, 0.5)),
        ([Decimal("0.1"), Decimal("0.3")], (0.1, 0.3)),
        ([DAY, DAY + dt.timedelta(1)], (DAY, DAY + dt.timedelta(1))),
        (np.array(["2024-02-29", "2024-03-01"], "datetime64[D]"), (DAY, DAY + dt.timedelta(1))),
        (pl.Series([dt.time(6), dt.time(7)]), (dt.time(6), dt.time(7))),
        ([TWICE, TWICE.replace(minute=30), TWICE.replace(fold=1)], None),
    ],
)
def test_edges_that_are_read(given, read):
    assert read_edges(given) == (tuple(given) if read is None else read)


@pytest.mark.parametrize(
    "given",
    [
        [Decimal("0.1"), Decimal("0.30000000000000000001")],
        [0, Decimal("NaN")],
        [DAY, MOMENT],
        [MOMENT, LATER.replace(tzinfo=dt.UTC)],
        [TWICE.replace(fold=1), TWICE.replace(minute=30)],
        [dt.timedelta(0), dt.timedelta.max],
        [dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=14))), TWICE],
    ],
)
def test_edges_that_are_refused(given):
    with pytest.raises(
        ParameterError, match=r"^edges must be two or more finite, increasing numbers of float64, or dates"
    ):
        read_edges(given)


@pytest.mark.parametrize("point", [30, 30.5, DAY])
def test_a_distribution_function_at_one_point(point):
    values = pl.DataFrame({"x": [DAY + dt.timedelta(days=i - 60) if point == DAY else i for i in range(120)]})
    query = dpf.cdf("x", [point])
    assert query.in_words == f"distribution function of x at {point}"
    asked = {"q": query, "privacy_unit": "row", "epsilon": 1000.0, "ledger": dpf.Ledger(epsilon=1000.0)}
    exact = values["x"].le(point).mean()
    assert dpf.release(values, **asked).frame["q"].to_list() == [[pytest.approx(exact, abs=1e-3)]]
    for few in ([], [point, point]):
        with pytest.raises(ParameterError, match="edges must be one or more finite"):
            dpf.cdf("x", few)
    with pytest.raises(ParameterError, match="edges must be two or more finite"):
        dpf.histogram("x", [point])


@pytest.mark.parametrize(
    "edges", [[MOMENT.replace(tzinfo=ROME), LATER.replace(tzinfo=dt.UTC)], [MOMENT.replace(tzinfo=WEST)] * 2]
)
def test_moments_of_several_zones_are_shown_in_utc(edges):
    edges = [edges[0], edges[1] + dt.timedelta(days=300)]
    assert all(edge.tzinfo is dt.UTC for edge in read_edges(edges))
    assert read_edges(edges) == tuple(edges)
    assert pl.Series(dpf.bins("t", edges).labels).dtype == pl.Datetime("us", "UTC")


#: The dtype, its values as whole numbers from and to, and edges.
KINDS = {
    "Decimal(9, 2)": (pl.Decimal(9, 2), -1000, 1000, (-1.5, 0, 0.1, 0.105, 0.3, 7)),
    "Decimal(18, 4)": (pl.Decimal(18, 4), -(10**18) + 1, 10**18 - 1, (-1e300, -1e13, 0.1, 1e13, 1e300)),
    "Decimal(38, 2)": (pl.Decimal(38, 2), -(10**38) + 1, 10**38 - 1, (-1e35, -1e10, 0, 0.1, 1e20, 1e35)),
    "Date": (pl.Date(), -40_000, 40_000, (DAY - dt.timedelta(30_000), DAY, DAY + dt.timedelta(1))),
    "Datetime ms": (
        pl.Datetime("ms"),
        1_709_207_990_000,
        1_709_208_010_000,
        (MOMENT - 9 * SECOND, MOMENT, MOMENT + MS / 1000, MOMENT + 2 * MS, MOMENT + 2 * SECOND),
    ),
    "Datetime us": (pl.Datetime("us"), -(2**62), 2**62, (dt.datetime.min, MOMENT, dt.datetime.max)),
    "Datetime ns": (
        pl.Datetime("ns"),
        -(2**63),
        2**63 - 1,
        (dt.datetime.min, MOMENT, dt.datetime(2262, 4, 11), dt.datetime.max),
    ),
    "Datetime zone": (
        pl.Datetime("us", "Europe/Rome"),
        1_729_980_000_000_000,
        1_730_000_000_000_000,
        (TWICE, TWICE.replace(minute=30), TWICE.replace(fold=1)),
    ),
    "Duration ms": (pl.Duration("ms"), -(10**6), 10**6, (-5 * SECOND, 0 * MS, MS / 1000, 10**12 * SECOND)),
    "Duration ns": (pl.Duration("ns"), -(10**15), 10**15, (-SECOND, 0 * MS, MS / 1000, 10**12 * SECOND)),
    "Time": (pl.Time(), 0, 86_400 * 10**9 - 1, (dt.time(0), dt.time(6, 30), dt.time.max)),
}


def column_of(numbers, dtype):
    if isinstance(dtype, pl.Decimal):
        values = [Decimal(number).scaleb(-dtype.scale) if abs(number) < 10**28 else None for number in numbers]
        return pl.Series("x", values, dtype=dtype), [n if abs(n) < 10**28 else None for n in numbers]
    physical = pl.Series("x", numbers, dtype=pl.Int64)
    return (physical.cast(pl.Int32) if dtype == pl.Date else physical).cast(dtype), list(numbers)


def exactly(edge, dtype):
    """Return an edge in units of a dtype's last place or tick, by other arithmetic than the library's."""
    if isinstance(dtype, pl.Decimal):
        return denoted(Fraction(edge)) * 10**dtype.scale
    if dtype == pl.Date:
        return Fraction((edge - dt.date(1970, 1, 1)).days)
    a_microsecond = {"ms": Fraction(1, 1000), "us": Fraction(1), "ns": Fraction(1000)}
    if dtype == pl.Time:
        micro = ((edge.hour * 60 + edge.minute) * 60 + edge.second) * 10**6 + edge.microsecond
        return micro * a_microsecond["ns"]
    if isinstance(dtype, pl.Datetime):
        edge -= dt.datetime(1970, 1, 1, tzinfo=dt.UTC if dtype.time_zone else None)
    return (edge // dt.timedelta(microseconds=1)) * a_microsecond[dtype.time_unit]


@pytest.mark.parametrize("kind", KINDS)
def test_values_lie_where_exact_arithmetic_puts_them(kind, seed):
    """In bins that are keys, in histograms, in bins one by one as engines ask for them, and at points of a cdf."""
    dtype, least, most, edges = KINDS[kind]
    choose = random.Random(seed)
    exact = [exactly(edge, dtype) for edge in edges]
    near = [round(edge) + move for edge in exact for move in (-1, 0, 1)]
    numbers = [
        n for n in (*near, least, most, *(choose.randint(least, most) for _ in range(200))) if least <= n <= most
    ]
    column, numbers = column_of(numbers, dtype)
    frame = column.to_frame()

    def place(number, closed):
        inside = [
            k for k, (low, high) in enumerate(pairwise(exact)) if closed(low, number) and not closed(high, number)
        ]
        assert len(inside) <= 1
        return inside[0] if inside else None

    wanted = [None if n is None else place(n, lambda edge, number: edge <= number) for n in numbers]
    (key,) = plan_keys([dpf.bins("x", edges)], frame.schema)
    assert frame.select(key.native).to_series().to_list() == wanted
    assert [None if n is None else int(n) for n in frame.select(key.values).to_series()] == wanted
    (measure,) = measures_of(of_columns(dpf.histogram("x", edges), frame.schema))
    assert frame.select(native_bins(measure, dtype)).to_series().to_list() == [
        0 if k is None else k + 1 for k in wanted
    ]
    for number, single in enumerate(measure.single_bins()):
        found = frame.select(native_bins(single, dtype)).to_series().to_list()
        assert found == [int(k == number) for k in wanted]
    (measure,) = measures_of(of_columns(dpf.cdf("x", edges), frame.schema))
    found = frame.select(native_bins(measure, dtype)).to_series().to_list()
    assert found == [0 if n is None else 1 + sum(edge < n for edge in exact) for n in numbers]


@pytest.mark.parametrize("dtype", [pl.Float64(), pl.Int64(), pl.Decimal(9, 2), pl.Null(), pl.Boolean()])
def test_columns_of_numbers_have_no_edges_of_times(dtype):
    frame = pl.DataFrame({"x": pl.Series([], dtype=dtype)})
    for asked in (
        {"h": dpf.histogram("x", [DAY, DAY + dt.timedelta(1)])},
        {"c": dpf.cdf("x", [dt.time(1), dt.time(2)])},
    ):
        with pytest.raises(ParameterError, match="edges must be numbers for the column 'x'"):
            dpf.plan(frame, privacy_unit="row", epsilon=1.0, **asked)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.startswith("Decimal")])
def test_columns_of_times_have_no_other_edges(kind):
    dtype, *_ = KINDS[kind]
    frame = pl.DataFrame({"x": pl.Series([], dtype=dtype)})
    wrong = [[0, 1], [DAY, DAY + dt.timedelta(1)], [MOMENT, LATER], [dt.time(1), dt.time(2)]]
    refused = 0
    for edges in wrong:
        try:
            values_of(dtype).edges(edges, "x")
        except ParameterError:
            refused += 1
            for asked in (
                {"h": dpf.histogram("x", edges)},
                {"by": dpf.bins("x", edges), "n": dpf.count(), "delta": 0.1},
            ):
                with pytest.raises(DpfastError, match=r"^edges must be .* for the column 'x'") as caught:
                    dpf.plan(frame, privacy_unit="row", epsilon=1.0, **asked)
                assert "\n" not in str(caught.value)
    assert refused >= 3


def test_measures_of_floats_stay_floats():
    assert not bins_measure("x", (0.0, 1.0)).ticks
    (measure,) = measures_of(of_columns(dpf.histogram("x", [0, 1]), {"x": pl.Int64()}))
    assert not measure.ticks
