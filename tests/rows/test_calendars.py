"""Parts of dates and datetimes are those of Python's calendar, in Polars and in SQL, of every day there is."""

from __future__ import annotations

import datetime
import zoneinfo

import polars as pl
import pytest

import dpfast as dpf
from dpfast.aggregation import Grouping, aggregate
from dpfast.aggregation.calendars import calendar_key
from dpfast.errors import ColumnError, ParameterError
from dpfast.queries import Measure
from dpfast.rows.calendars import PARTS, Calendar

FIRST, LAST = datetime.date.min.toordinal() - 719_163, datetime.date.max.toordinal() - 719_163
PYTHON = {
    "year": lambda moment: moment.year,
    "quarter": lambda moment: (moment.month + 2) // 3,
    "month": lambda moment: moment.month,
    "week": lambda moment: moment.isocalendar().week,
    "weekday": lambda moment: moment.isoweekday(),
    "day": lambda moment: moment.day,
    "hour": lambda moment: moment.hour,
    "date": lambda moment: moment.date() if isinstance(moment, datetime.datetime) else moment,
}


def no_words(number):
    raise AssertionError("nothing is bounded")


def days(start, stop, step=1):
    return pl.DataFrame({"day": pl.int_range(start, stop, step, dtype=pl.Int32, eager=True).cast(pl.Date)})


def parts_of(frame, column, part):
    return frame.select(calendar_key(Calendar(column, part), frame.schema[column])[0]).to_series().to_list()


@pytest.mark.parametrize("part", [part for part in PARTS if part != "hour"])
def test_days_of_four_hundred_years_and_both_ends(part):
    """After 400 years of 146,097 days, which are whole weeks, a calendar begins anew."""
    for frame in (days(0, 146_097, 7), days(FIRST, FIRST + 1500), days(LAST - 1500, LAST + 1), days(10_000, 16_000)):
        assert parts_of(frame, "day", part) == list(map(PYTHON[part], frame["day"]))


@pytest.mark.parametrize("part", [part for part in PARTS if part != "hour"])
def test_every_day_in_sql_is_that_of_polars(part):
    duckdb = pytest.importorskip("duckdb")
    frame = days(FIRST - 3, LAST + 1)
    frame = frame.with_columns(y=calendar_key(Calendar("day", part), pl.Date())[0])
    connection = duckdb.connect()
    inside = frame.filter(pl.col("y").is_not_null())
    assert inside.height == LAST - FIRST + 1
    connection.register("given", inside.to_arrow())
    by = (dpf.calendar("day", part), "y")
    found = aggregate(dpf.sql(connection, "given").engine(), Grouping(by), [Measure("rows")], no_words)
    keys = found.keys
    assert keys.select((pl.col(by[0].name) == pl.col("y")).all()).item()
    assert sum(found.measures[0]) == inside.height


MOMENTS = [
    datetime.datetime(1, 1, 2),
    datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999),
    datetime.datetime(1970, 1, 1),
    datetime.datetime(2024, 2, 29, 12, 30),
    datetime.datetime(2020, 12, 31, 23),
    datetime.datetime(2021, 1, 3, 23, 59, 59),
    datetime.datetime(9999, 12, 30, 23, 59, 59, 999_999),
    None,
]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_moments(part, unit):
    held = [moment for moment in MOMENTS if moment is None or unit != "ns" or 1700 < moment.year < 2200]
    frame = pl.DataFrame({"x": pl.Series(held, dtype=pl.Datetime(unit))})
    expected = [None if moment is None else PYTHON[part](moment) for moment in held]
    assert parts_of(frame, "x", part) == expected


@pytest.mark.parametrize("part", PARTS)
def test_clocks_on_the_wall(part):
    """Every half hour of the days on which clocks change, in zones that are far apart."""
    utc = datetime.datetime(2024, 3, 30, tzinfo=datetime.UTC)
    moments = [utc + datetime.timedelta(minutes=30 * half) for half in range(100)]
    moments += [moment + datetime.timedelta(days=210) for moment in moments]
    for name in ("Europe/Berlin", "Pacific/Apia", "America/St_Johns", "Australia/Lord_Howe", "UTC"):
        frame = pl.DataFrame({"x": pl.Series(moments, dtype=pl.Datetime("us", "UTC")).dt.convert_time_zone(name)})
        zone = zoneinfo.ZoneInfo(name)
        assert parts_of(frame, "x", part) == [PYTHON[part](moment.astimezone(zone)) for moment in moments]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(
    "dtype",
    [
        pl.Date(),
        *(pl.Datetime(unit) for unit in ("ms", "us", "ns")),
        *(pl.Datetime(unit, zone) for unit in ("ms", "us", "ns") for zone in ("Europe/Berlin", "Pacific/Apia")),
    ],
    ids=str,
)
def test_no_value_fails(part, dtype):
    if part == "hour" and dtype == pl.Date:
        return
    physical = pl.Int32 if dtype == pl.Date else pl.Int64
    largest = 2 ** (31 if dtype == pl.Date else 63)
    numbers = [-largest, largest - 1, largest // 2, -largest // 2, 0, None, *(1 << bit for bit in range(0, 31, 3))]
    frame = pl.DataFrame({"x": pl.Series(numbers, dtype=physical).cast(dtype)})
    found = parts_of(frame, "x", part)
    outside = [None] if getattr(dtype, "time_unit", "") != "ns" else [found[0]]
    assert [found[0], found[5]] == [outside[0], None]
    labels = Calendar("x", part).labels
    assert not labels or set(found) <= {None, *labels}


def test_years_that_no_calendar_shows_have_the_null_key():
    frame = days(FIRST - 2, FIRST + 1).vstack(days(LAST, LAST + 3))
    assert parts_of(frame, "day", "year") == [None, None, 1, 9999, None, None]


@pytest.mark.parametrize(
    ("dtype", "part", "words"),
    [
        (pl.String, "month", "has no calendar"),
        (pl.Int64, "month", "has no calendar"),
        (pl.Time, "hour", "has no calendar"),
        (pl.Date, "hour", "has no hours"),
    ],
)
def test_other_columns_are_refused(dtype, part, words):
    with pytest.raises(ColumnError, match=words):
        dpf.plan(
            pl.DataFrame(schema={"x": dtype}),
            dpf.calendar("x", part),
            n=dpf.count(),
            privacy_unit="row",
            epsilon=1.0,
            delta=1e-6,
        )


def test_wrong_parts_and_names():
    with pytest.raises(ParameterError, match='part must be "year", "quarter"'):
        dpf.calendar("x", "minute")
    frame = pl.DataFrame({"x": [datetime.date(2024, 1, 1)]})
    asked = {"n": dpf.count(), "privacy_unit": "row", "epsilon": 1.0, "delta": 1e-6}
    with pytest.raises(ParameterError, match="columns named once each"):
        dpf.plan(frame, [dpf.calendar("x", "year"), dpf.calendar("x", "year")], **asked)
    with pytest.raises(ParameterError, match="leaves x_year to one column"):
        dpf.plan(frame, dpf.calendar("x", "year"), x_year=dpf.count(), privacy_unit="row", epsilon=1.0, delta=1e-6)
    with pytest.raises(ColumnError, match="names the column 'y'"):
        dpf.plan(frame, dpf.calendar("y", "year"), **asked)


def test_a_column_without_values_has_the_null_key_alone():
    frame = pl.DataFrame({"x": [None, None]})
    for part in PARTS:
        found = aggregate(frame, Grouping((dpf.calendar("x", part),)), [Measure("rows")], no_words)
        assert found.keys.rows() == [(None,)]
