"""What a value of every dtype contributes: the formula of `dpfast.queries.Measure` in rationals, bit for bit."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.accounting.privacy_unit import PrivacyUnit
from dpfast.aggregation.contributions import plan_contributions
from dpfast.aggregation.exact import Grouping, aggregate
from dpfast.columns.values import Decimals, Moments, values_of
from dpfast.errors import ColumnError, ParameterError
from dpfast.kernels.grouping.counting import round_integers, saturate_wide, scale_integers
from dpfast.releases.query_measures import measures_of, of_columns

UTC = dt.UTC
HERE, LATER = dt.datetime(2024, 1, 1, tzinfo=UTC), dt.datetime(2025, 1, 1, tzinfo=UTC)
DAY, YEAR = dt.timedelta(days=1), dt.datetime(2024, 1, 1)
#: The dtype, how many bits its numbers have, and bounds of its values.
KINDS = {
    "Int8": (pl.Int8(), 7, [(-3, 5), (0, 1)]),
    "Int64": (pl.Int64(), 63, [(0, 7), (-5, 2**40), (2**60, 2**61)]),
    "UInt64": (pl.UInt64(), 64, [(0, 7), (0, 2**63)]),
    "Int128": (pl.Int128(), 127, [(0, 7), (-5, 2**40), (0, 2**100), (-(2.0**126), 2.0**126), (0, 1e300)]),
    "UInt128": (pl.UInt128(), 128, [(0, 7), (0, 2**100), (0, 1e40)]),
    "Decimal(9, 2)": (pl.Decimal(9, 2), 29, [(0, 1), (Decimal("-0.01"), Decimal("9999999.99")), (0.1, 0.7)]),
    "Decimal(18, 6)": (pl.Decimal(18, 6), 59, [(0, 1), (0, 1e12), (-1, Decimal("1.000001"))]),
    "Decimal(38, 10)": (pl.Decimal(38, 10), 126, [(0, 1), (0, 1e12), (-1e27, 1e20), (Decimal("1e9"), Decimal("1e28"))]),
    "Decimal(38, 38)": (pl.Decimal(38, 38), 126, [(0, 1), (Decimal("1e-38"), Decimal("2e-38")), (-0.5, 0.25)]),
    "Date": (pl.Date(), 22, [(dt.date(1969, 1, 1), dt.date(2030, 1, 1)), (dt.date.min, dt.date.max)]),
    "Datetime ms": (pl.Datetime("ms"), 63, [(YEAR, YEAR + DAY), (dt.datetime.min, dt.datetime.max)]),
    "Datetime us": (pl.Datetime("us"), 63, [(YEAR, YEAR + DAY), (YEAR, YEAR + dt.timedelta(microseconds=3))]),
    "Datetime ns": (pl.Datetime("ns"), 63, [(YEAR, YEAR + DAY), (dt.datetime(1700, 1, 1), dt.datetime(2250, 1, 1))]),
    "Datetime zone": (pl.Datetime("us", "Europe/Rome"), 63, [(HERE, LATER)]),
    "Duration us": (pl.Duration("us"), 63, [(dt.timedelta(0), DAY), (-DAY, dt.timedelta(microseconds=1))]),
    "Duration ns": (pl.Duration("ns"), 63, [(dt.timedelta(0), DAY)]),
    "Time": (pl.Time(), 46, [(dt.time(6), dt.time(22)), (dt.time.min, dt.time.max)]),
}  # fmt: skip


def numbers_of(dtype, bits, limits, seed):
    """Return whole numbers of a dtype: its ends, what lies next to the bounds, and others of every size."""
    choose = random.Random(seed)
    signed = dtype not in (pl.UInt64, pl.UInt128, pl.Time)
    most = 2**bits - 1
    if isinstance(dtype, pl.Decimal):
        most = 10**dtype.precision - 1
    if dtype == pl.Time:
        most = 86_400 * 10**9 - 1
    least = (-most if isinstance(dtype, pl.Decimal) else -most - 1) if signed else 0
    near = [round(limit) + move for limit in limits for move in (-1, 0, 1)]
    sizes = [choose.randrange(most + 1) >> choose.randrange(bits) for _ in range(150)]
    drawn = [*near, *sizes, *(-size for size in sizes), *(size + round(limits[0]) for size in sizes), least, most, 0]
    return [number for number in drawn if least <= number <= most]


def column_of(numbers, dtype):
    """Return the values of these physical numbers, and a null."""
    numbers = [*numbers, None]
    if isinstance(dtype, pl.Decimal):
        return pl.Series("x", [None if n is None else Decimal(n).scaleb(-dtype.scale) for n in numbers], dtype=dtype)
    physical = {pl.Date: pl.Int32}.get(type(dtype), pl.Int64 if dtype.is_temporal() else dtype)
    return pl.Series("x", numbers, dtype=physical).cast(dtype)


@pytest.fixture(autouse=True)
def _exact_decimals():
    """Let arithmetic on decimals keep all digits."""
    import decimal

    with decimal.localcontext(decimal.Context(prec=100)):
        yield


@pytest.mark.parametrize("kind", KINDS)
def test_contributions_are_the_formula_and_within_the_sensitivity(kind, seed):
    """Soundness rules 14 and 16: natively and by kernels, of all rows, nulls and the dtype's ends.

    So a unit's row moves a sum by no more than the largest of them, which is the sensitivity of one row.
    """
    dtype, bits, choices = KINDS[kind]
    for bounds in choices:
        asked = [dpf.mean("x", bounds=bounds), dpf.quantile("x", 0.5, bounds=bounds)]
        if not dtype.is_temporal() or isinstance(dtype, pl.Duration):
            asked.append(dpf.sum("x", bounds=bounds))
        for query in asked:
            known = of_columns(query, {"x": dtype})
            try:
                measure = measures_of(known)[0]
            except ParameterError:
                # Points of integers are int64.
                assert query.kind == "quantile"
                assert dtype.is_integer()
                continue
            numbers = numbers_of(dtype, bits, known.limits(), seed)
            frame = column_of(numbers, dtype).to_frame().with_row_index("k")
            step = Fraction(2) ** measure.step_exponent
            exact = [min(max(round(n / step), measure.lower), measure.upper) - measure.centre for n in numbers] + [0]
            (contribution,) = plan_contributions([measure], frame.schema)
            assert frame.select(contribution.native).to_series().to_list() == exact, (bounds, measure)
            if measure.kind == "sum":
                given = Grouping(("k",), frame.select("k"))
                for source in (frame, frame.lazy(), pl.concat([frame[:5], frame[5:]], rechunk=False)):
                    found = aggregate(source, given, [measure], lambda number: None).measures[0]
                    assert found.tolist() == exact, (bounds, measure)
                stated = measure.sensitivity(PrivacyUnit(None, 1, 1, "add_remove")).l1
                assert max(map(abs, exact)) <= stated
                # Bounds may lie beyond the widest integers.
                assert max(map(abs, exact)) == stated or "128" in kind


def test_integers_are_rounded_exactly(seed):
    choose = random.Random(seed)
    ends = [0, 1, -1, 3, -3, 2**62, -(2**62), 2**63 - 1, -(2**63)]
    values = np.array(ends + [choose.randrange(-(2**63), 2**63) >> choose.randrange(63) for _ in range(500)], np.int64)
    valid = np.ones(values.size, np.uint8)
    valid[3] = 0
    out = np.empty(values.size, np.int64)
    for shift in (*range(-62, 1), *range(1, 63)):
        lower, upper = sorted(choose.randrange(-(2**61), 2**61) >> choose.randrange(60) for _ in range(2))
        centre = choose.choice([0, lower - 1, (lower + upper) // 2])
        kernel = round_integers if shift > 0 else scale_integers
        kernel(values, valid, np.int64(abs(shift)), lower, upper, centre, out)
        steps = [round(Fraction(int(x)) / Fraction(2) ** shift) for x in values]
        exact = [min(max(step, lower), upper) - centre for step in steps]
        exact[3] = 0
        assert out.tolist() == exact, shift


def test_wide_integers_saturate(seed):
    choose = random.Random(seed)
    ends = [2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 0, -1, 2**127 - 1, -(2**127)]
    numbers = ends + [choose.randrange(-(2**127), 2**127) >> choose.randrange(127) for _ in range(500)]
    written = b"".join(number.to_bytes(16, "little", signed=True) for number in numbers)
    out = np.empty(len(numbers), np.int64)
    saturate_wide(np.frombuffer(written, np.int64).reshape(-1, 2), out)
    assert out.tolist() == [min(max(number, -(2**63)), 2**63 - 1) for number in numbers]


@pytest.mark.parametrize("scale", [0, 2, 10, 38])
def test_sums_of_decimals_saturate(scale):
    """No noise makes a release fail: what 38 digits do not hold becomes the largest decimal."""
    steps = np.array([0, 1, -1, 2**63 - 1, -(2**63)])
    for exponent in (0, 1, 63, 64, 100, 103):
        shown = Decimals(scale=scale).sums(steps, exponent)
        assert shown.dtype == pl.Decimal(38, scale)
        most = ((10**38 - 1) >> exponent) << exponent
        exact = [min(max(int(step) << exponent, -most), most) for step in steps]
        assert [int(value.scaleb(scale)) for value in shown] == exact


def test_means_of_moments_keep_every_digit():
    """Not as floats: a moment in nanoseconds has more digits than they do."""
    kind = Moments(dtype=pl.Datetime("ns"))
    middle, low, high = (Fraction(1_700_000_000_123_456_789 + move) for move in (0, -100, 100))
    beyond = np.array([0.0, 1.0, -1.0, 1e300, -1e300, 0.4])
    found = kind.near(middle, beyond, low, high).to_physical().to_list()
    assert [number - int(middle) for number in found] == [0, 1, -1, 100, -100, 0]
    assert kind.distances(np.array([0.2e-9, 1e300])).to_physical().to_list() == [1, 2**63 - 2**10]
    day = Moments(dtype=pl.Date()).near(Fraction(1, 2), np.array([0.0]), Fraction(0), Fraction(1))
    assert day.to_list() == [dt.datetime(1970, 1, 1, 12)]


#: Bounds that a column does not take, with the words that say so.
WRONG = [
    (pl.Datetime("us"), (0, 1), "two datetimes for the column 'x' of dtype Datetime"),
    (pl.Datetime("us"), (dt.date(2024, 1, 1), dt.date(2025, 1, 1)), "two datetimes for the column"),
    (pl.Datetime("us"), (HERE, LATER), "two datetimes for the column"),
    (pl.Datetime("us", "UTC"), (YEAR, YEAR + DAY), "two datetimes with a time zone.*tzinfo=timezone.utc"),
    (pl.Datetime("ns"), (dt.datetime.min, dt.datetime.max), "from 1677-09-22 to 2262-04-11"),
    (pl.Duration("ns"), (dt.timedelta(0), dt.timedelta.max), "dtype holds"),
    (pl.Datetime("ms"), (YEAR, YEAR + dt.timedelta(microseconds=7)), "a ms of the column 'x' apart"),
    (pl.Date(), (YEAR, YEAR + DAY), "two dates for the column 'x' of dtype Date"),
    (pl.Time(), (0, 1), "two times for the column 'x' of dtype Time"),
    (pl.Duration("us"), (0, 1), "two timedeltas for the column 'x'"),
    (pl.Decimal(9, 2), (DAY, 2 * DAY), "two numbers for the column 'x' of decimals"),
    (pl.Decimal(9, 2), (0.001, 0.002), "0.01, the last place of the column 'x', apart"),
    (pl.Float64(), (DAY, 2 * DAY), "two numbers for the column 'x'"),
    (pl.String(), (YEAR, YEAR + DAY), "two numbers for the column 'x'"),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "bounds", "words"), WRONG)
def test_bounds_of_another_kind_are_refused_by_the_columns_name(dtype, bounds, words):
    frame = pl.DataFrame({"x": pl.Series([], dtype=dtype)})
    for query in (dpf.mean("x", bounds=bounds), dpf.quantile("x", 0.5, bounds=bounds)):
        with pytest.raises(ParameterError, match=words) as caught:
            dpf.plan(frame, privacy_unit="row", epsilon=1.0, q=query)
        assert str(caught.value).startswith("bounds ")
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("dtype", [pl.Date(), pl.Datetime("us"), pl.Time()])
def test_there_is_no_sum_of_moments(dtype):
    frame = pl.DataFrame({"x": pl.Series([], dtype=dtype)})
    with pytest.raises(ColumnError, match=r"'x' of dtype .*only durations add up"):
        dpf.plan(frame, privacy_unit="row", epsilon=1.0, q=dpf.sum("x", bounds=(0, 1)))


@pytest.mark.parametrize("dtype", [pl.Date(), pl.Decimal(9, 2)])
def test_a_grid_is_of_plain_numbers(dtype):
    bounds = (dt.date(2024, 1, 1), dt.date(2025, 1, 1)) if dtype == pl.Date() else (0, 1)
    frame = pl.DataFrame({"x": pl.Series([], dtype=dtype)})
    with pytest.raises(ParameterError, match="grid must be left out for the column 'x'"):
        dpf.plan(frame, privacy_unit="row", epsilon=1.0, q=dpf.quantile("x", 0.5, bounds=bounds, grid=1.0))


def test_a_column_that_is_missing_is_named_whatever_the_bounds():
    with pytest.raises(ColumnError, match="'y', which the data lacks"):
        dpf.plan(pl.DataFrame({"x": [1]}), privacy_unit="row", epsilon=1.0, q=dpf.mean("y", bounds=(YEAR, YEAR + DAY)))


def test_what_a_plan_tells_of_times_is_in_seconds():
    frame = pl.DataFrame({"d": [dt.date(2024, 1, 1)], "t": [YEAR], "p": [Decimal("1.25")]})
    asked = {
        "d": dpf.mean("d", bounds=(dt.date(2024, 1, 1), dt.date(2025, 1, 1))),
        "t": dpf.mean("t", bounds=(YEAR, YEAR + DAY)),
        "p": dpf.sum("p", bounds=(0, Decimal("99.99"))),
    }
    plan = dpf.plan(frame, privacy_unit="row", epsilon=3.0, **asked)
    told = plan.to_frame().filter(pl.col("measure").str.starts_with("sum"))
    assert told["sensitivity"].to_list() == pytest.approx([183 * 86_400, 43_200, 99.99])
    assert "values clipped to [2024-01-01 00:00:00, 2024-01-02 00:00:00]" in plan.explain()
    assert "values clipped to [0, 99.99]" in plan.explain()
    shown = plan.run(dpf.Ledger(epsilon=3.0)).frame
    assert shown.schema["t_scale"] == pl.Duration("us")
    assert shown.schema["p"] == shown.schema["p_lower"] == pl.Decimal(38, 2)
    assert values_of(pl.Date()).tick == 86_400
