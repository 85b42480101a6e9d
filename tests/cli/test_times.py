"""Dates, moments, durations, times of day, decimals and bytes on the command line: as bounds, edges and candidates."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import polars as pl
import pytest

from dpfast.cli.values import find_bounds, find_edges, read_plain, read_value

ROWS = 600
UNIT = ["--unit", "u", "--max-groups", "1", "--max-rows", "1"]
BUDGET = ["--ledger", "l.db", "--budget-epsilon", "1e6", "--budget-delta", "1e-5"]


def half(one, other):
    return [one, other] * (ROWS // 2)


@pytest.fixture
def times(tmp_path, monkeypatch):
    """Go to a folder with a file of columns of every such type."""
    monkeypatch.chdir(tmp_path)
    moments = pl.Series(half(dt.datetime(2024, 1, 1, 6), dt.datetime(2024, 6, 1, 18)))
    columns = {
        "u": range(ROWS),
        "t": moments,
        "zoned": moments.dt.replace_time_zone("Europe/Rome"),
        "day": half(dt.date(2024, 1, 1), dt.date(2024, 6, 1)),
        "waited": half(dt.timedelta(minutes=30), dt.timedelta(hours=2)),
        "hour": half(dt.time(6), dt.time(9, 30)),
        "price": half(Decimal("0.10"), Decimal("2.50")),
        "code": half(b"a", b"\xff"),
    }
    pl.DataFrame(columns).write_parquet("data.parquet")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("-2.5", -2.5),
        ("1e3", 1000.0),
        (" 2024-02-29", dt.date(2024, 2, 29)),
        ("2024-02-29T06", dt.datetime(2024, 2, 29, 6)),
        ("2024-02-29 06:30:01.5", dt.datetime(2024, 2, 29, 6, 30, 1, 500_000)),
        ("2024-02-29T06:30Z", dt.datetime(2024, 2, 29, 6, 30, tzinfo=dt.UTC)),
        ("06:30", dt.time(6, 30)),
        ("90m", dt.timedelta(minutes=90)),
        ("-1d12h", -dt.timedelta(days=1, hours=12)),
        ("1.5s250ms3us", dt.timedelta(seconds=1, milliseconds=750, microseconds=3)),
    ],
)
def test_values_are_known_by_their_form(text, value):
    assert read_plain(text) == value
    assert type(read_plain(text)) is type(value)


@pytest.mark.parametrize(
    "text", ["", "ten", "2024-02-30", "2024-13-01T00:00", "25:00", "6:30", "5x", "h", "1h2", "9e9d"]
)
def test_other_text_is_no_value(text):
    with pytest.raises(ValueError, match=r".*"):
        read_plain(text)
    # Colons may be the column's own.
    assert find_bounds(f"x:{text}:{text}") is None or ":" in text


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("x:0:5", ("x", "0", "5")),
        ("a:b:0:5", ("a:b", "0", "5")),
        ("t:2024-01-01:2025-01-01", ("t", "2024-01-01", "2025-01-01")),
        ("t:2024-01-01T00:00:2025-01-01T00:00", ("t", "2024-01-01T00:00", "2025-01-01T00:00")),
        ("a:t:06:00:01:22:00:01", ("a:t", "06:00:01", "22:00:01")),
        ("w:0s:90m", ("w", "0s", "90m")),
        ("t:2024-01-01:2025-01-01T00:00", None),
        ("t:2024-01-01:5", None),
        ("t:0:90m", None),
        (":0:5", None),
        ("x:0", None),
        ("x", None),
    ],
)
def test_bounds_are_two_values_written_alike(text, found):
    assert find_bounds(text) == found


def test_edges_are_values_of_one_kind():
    assert find_edges("t:2024-01-01T00:00,2024-02-01T00:00") == (
        "t",
        [dt.datetime(2024, 1, 1), dt.datetime(2024, 2, 1)],
    )
    assert find_edges("a:b:0,5.5") == ("a:b", [0, 5.5])
    assert find_edges("x:0,2024-01-01") is None
    assert find_edges(":0,1") is None


@pytest.mark.parametrize(
    ("dtype", "text", "value"),
    [
        (pl.Decimal(9, 2), "0.10", Decimal("0.10")),
        (pl.Binary(), "ff00", b"\xff\0"),
        (pl.Datetime("us"), "2024-01-01", dt.datetime(2024, 1, 1)),
        (pl.Date(), "2024-01-01", dt.date(2024, 1, 1)),
        (pl.Duration("ms"), "2h", dt.timedelta(hours=2)),
        (pl.Time(), "06:30", dt.time(6, 30)),
    ],
)
def test_candidates_are_values_of_the_column(dtype, text, value):
    assert read_value(text, dtype) == value
    with pytest.raises(ValueError, match=r".*"):
        read_value("no", dtype)


def test_every_query_of_every_type(times, run):
    """Names and dtypes; and numbers of rows, of which the noise is not 0 with a probability below 2 exp(-1e4)."""
    asked = [
        *("--mean", "t:2024-01-01:2025-01-01", "--mean", "zoned:2024-01-01:2025-01-01", "--mean", "hour:00:00:12:00"),
        *("--mean", "day:2024-01-01:2025-01-01", "--sum", "waited:0s:2h30m", "--std", "long=waited:0s:2h30m"),
        *("--sum", "price:0:9.99", "--histogram", "hour:06:00,08:00,12:00", "--cdf", "day:2024-01-01,2024-07-01"),
        *(
            "--minimum",
            "waited:0s:5h",
            "--maximum",
            "price:0:9",
            "--quantile",
            "late=t:2024-01-01T00:00:2025-01-01T00:00:0.9",
        ),
        *("--mode", "hour:06:00,09:30", "--mode", "code:61,ff", "--top-k", "price:2:0.1,2.5"),
        *("--proportion", "cheap=price <= 0.1", "--proportion", 'early=t == "2024-01-01T06:00"'),
    ]
    result = run("release", "data.parquet", *asked, *UNIT, *BUDGET, "--epsilon", "2e5", "--out", "out.parquet")
    assert result.exit_code == 0, result.output
    frame = pl.read_parquet("out.parquet")
    assert frame["hour_histogram"].to_list() == [[ROWS // 2, ROWS // 2]]
    dtypes = {
        "t_mean": pl.Datetime("us"),
        "zoned_mean": pl.Datetime("us", "Europe/Rome"),
        "hour_mean": pl.Time(),
        "day_mean": pl.Datetime("us"),
        "waited_sum": pl.Duration("us"),
        "long": pl.Duration("us"),
        "price_sum": pl.Decimal(38, 2),
        "hour_histogram_bin": pl.List(pl.Time()),
        "day_cdf_edge": pl.List(pl.Date()),
        "waited_minimum": pl.Duration("us"),
        "price_maximum": pl.Decimal(38, 2),
        "late": pl.Datetime("us"),
        "hour_mode": pl.Time(),
        "code_mode": pl.Binary(),
        "price_top_2": pl.List(pl.Decimal(38, 1)),
        "cheap": pl.Float64(),
        "early": pl.Float64(),
    }
    assert {name: frame.schema[name] for name in dtypes} == dtypes
    told = run("explain", "data.parquet", *asked, *UNIT, "--epsilon", "1")
    assert "mean of t, values clipped to [2024-01-01 00:00:00, 2025-01-01 00:00:00]" in told.stdout
    assert "histogram of hour, 2 bins from 06:00:00 to below 12:00:00" in told.stdout


@pytest.mark.parametrize("suffix", ["csv", "json", "ndjson"])
def test_lists_of_durations_and_bytes_become_text(times, run, suffix):
    asked = ["--top-k", "code:1:61,ff", "--histogram", "waited:0s,1h,3h"]
    result = run("release", "data.parquet", *asked, *UNIT, *BUDGET, "--epsilon", "1", "--out", f"out.{suffix}")
    assert result.exit_code == 0, result.output
    with open(f"out.{suffix}") as file:
        text = file.read()
    assert "PT0S" in text
    assert "PT1H" in text
    assert "61" in text or "ff" in text


def test_bins_of_moments_are_keys(times, run):
    """Noise on counts is not 0 with a probability below 2 exp(-1e4)."""
    asked = ["--by", "t", "--bins", "t:2024-01-01T00:00,2024-03-01T00:00,2025-01-01T00:00", "--count"]
    more = ["--epsilon", "1e5", "--delta", "1e-6", "--out", "out.json", "--json"]
    result = run("release", "data.parquet", *asked, *UNIT, *BUDGET, *more)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["rows"] == 2
    with open("out.json") as file:
        assert [row["count"] for row in json.load(file)] == [ROWS // 2, ROWS // 2]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (["--mean", "t:2024-01-01:2023-01-01"], "the lower one first"),
        (["--mean", "t:2024-01-01:5"], "are no numbers, nor dates or times written alike"),
        (["--mean", "t:0:5"], "bounds must be two datetimes for the column 't'"),
        (["--mean", "price:2024-01-01:2025-01-01"], "bounds must be two numbers for the column 'price' of decimals"),
        (["--variance", "t:2024-01-01:2025-01-01"], "ask for the standard deviation"),
        (["--sum", "t:2024-01-01:2025-01-01"], "only durations add up"),
        (["--histogram", "t:1,2"], "edges must be datetimes for the column 't'"),
        (["--histogram", "hour:06:00,05:00"], "increasing"),
        (["--histogram", "day:2024-01-01,5"], "are no numbers, nor dates or times"),
        (["--by", "t", "--bins", "t:1,2", "--count"], "edges must be datetimes"),
        (["--mode", "hour:25:00"], "must be values of the column's dtype Time"),
        (["--sum", "waited:0s:99999999999d"], "are no numbers, nor dates or times"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(times, run, asked, words):
    result = run(
        "release", "data.parquet", *asked, *UNIT, *BUDGET, "--epsilon", "1", "--delta", "1e-6", "--out", "o.csv"
    )
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
