"""`--where`, `--cast` and parts of dates on the command line."""

from __future__ import annotations

import datetime
import random

import polars as pl
import pytest

import dpfast as dpf
from dpfast.cli.errors import CommandError
from dpfast.cli.filters import read_filters
from tests.rows.filters import COLUMNS, random_filter

from .conftest import one_line

TRIPS = pl.DataFrame(
    {
        "departed": [datetime.datetime(2024, month, 1 + i, i) for month in (1, 2, 3) for i in range(20)],
        "day": [f"2024-0{1 + i % 3}-01" if i % 10 else "no day" for i in range(60)],
        "delay": [float(i) for i in range(60)],
        "carrier": ["AA", "UA", "B6"] * 20,
        "number": ["12", "x", "300"] * 20,
        "a b": [True, False, None] * 20,
    }
)
ASKED = ["--count", "--epsilon", "1000", "--ledger", "l.db", "--budget-epsilon", "1000", "--out", "out.parquet"]


@pytest.fixture
def flights(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    TRIPS.write_parquet("flights.parquet")
    TRIPS.write_csv("flights.csv")
    return tmp_path


x, carrier = dpf.column("x"), dpf.column("carrier")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("x > 15", x > 15),
        ("15 < x", x > 15),
        ("-1.5 <= x <= +2", (x >= -1.5) & (x <= 2)),
        ("x == 1 or x != 2 and not x < 3", (x == 1) | ((x != 2) & ~(x < 3))),
        ("carrier in ('AA', 'UA')", carrier.is_in(["AA", "UA"])),
        ('carrier not in ["AA"]', ~carrier.is_in(["AA"])),
        ("x is None", x.is_null()),
        ("x is not None and is_nan(x)", ~x.is_null() & x.is_nan()),
        ("late", dpf.column("late") == True),  # noqa: E712
        ('not column("a b")', ~(dpf.column("a b") == True)),  # noqa: E712
        ("column('x') == 'it''s'", x == "its"),
        ("  (x > 1)\n and (x < 5) ", (x > 1) & (x < 5)),
        ("\ufb01 > 1", dpf.column("\ufb01") > 1),
        ("x == -9223372036854775808", x == -(2**63)),
        ("x == b'AA'", x == b"AA"),
    ],
)
def test_what_is_written_is_read(text, where):
    assert read_filters((text,)) == where


def test_every_filter_is_read_as_it_is_shown():
    """What explanations and ledgers say can be written again."""
    source = random.Random(3)
    names = [name for name in COLUMNS if name not in ("d", "i128", "i8", "f64", "f32", "u64", "i64")]
    for _ in range(300):
        where = random_filter(source, (*names, "i64"))
        if any(word in str(where) for word in ("inf", "nan")):
            continue
        assert str(read_filters((str(where),))) == str(where)


def test_several_filters_are_all_to_pass():
    assert read_filters(("x > 1", "x < 5")) == (x > 1) & (x < 5)
    assert read_filters(()) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "at character"),
        ("x >", "at character"),
        ("x = 5", "write == to compare"),
        ("x > 15 && y", "at character 9"),
        ("x > 15 & y > 3", "write and, or"),
        ("(x > 15) & (y > 3)", "write and, or"),
        ("x > y", "at character 5, y: a column is compared with a value"),
        ("carrier == AA", "quote text"),
        ("x > 1 and foo(x) > 2", "at character 11, foo(x) > 2: here stands a column's name"),
        ("x + 1 > 2", "at character 1"),
        ("x in y", "after in there is a list"),
        ("x in (1, y)", "at character 10, y)"),
        ("x is 5", "after is there is None"),
        ("x == None", "write is None"),
        ("x == [1]", "here stands a number"),
        ("x in ()", "must be a list of 1 to"),
        ("x == 1j", "here stands a number"),
        ("x == f'{y}'", "here stands a number"),
        ("x == -'a'", "after a sign there is a number"),
        ("5 > 3", "at character 1, 5 > 3: here stands a column's name"),
        ("column(x) > 3", "column takes a name in quotes"),
        ("column('a', 'b') > 3", "column takes a name in quotes"),
        ("is_nan(x, y)", "is_nan takes one column"),
        ("lambda: 1", "here stands a column's name"),
        ("__import__('os').system('true')", "here stands a column's name"),
        ("[x for x in (1, 2)]", "here stands a column's name"),
        ("é > 1 and é + 1 > 2", "at character 11, é + 1"),
        ("x > 1\0", "null bytes"),
        ("x == '\ud800'", "--where"),
        ("(" * 5000 + "x" + ")" * 5000, "--where"),
        ("not " * 4000 + "x", "--where"),
        ("x > 1 or " * 4000 + "x > 1", "longer than 20,000"),
        ("x > 1 or " * 1500 + "x > 1", "at most 1,000 comparisons"),
        ("x == " + "9" * 5000, "--where"),
    ],
)
def test_mistakes_are_pointed_at(text, words):
    with pytest.raises(CommandError) as caught:
        read_filters((text,))
    message = str(caught.value)
    assert words in message
    assert message.startswith("--where")
    assert "\n" not in message


@pytest.mark.parametrize(
    ("more", "height"),
    [
        (["--where", "delay > 15 and carrier in ('AA', 'UA')"], 29),
        (["--where", 'departed >= "2024-02-01" and departed < "2024-03-01"'], 20),
        (["--where", 'column("a b")'], 20),
        (["--where", "delay >= 0", "--where", 'carrier != "AA"'], 40),
        (["--cast", "number=int", "--where", "number > 12"], 20),
        (["--cast", "number=int", "--where", "number is None"], 20),
        (["--cast", "day=date,number=float64", "--where", 'day >= "2024-02-01" and number is not None'], None),
        (["--cast", "delay=int8", "--where", "delay == 7"], 1),
    ],
)
def test_releases_of_rows_that_pass(flights, run, more, height):
    result = run("release", "flights.parquet", *ASKED, *more)
    assert result.exit_code == 0, result.output
    if height is None:
        height = TRIPS.filter(pl.col("day") >= "2024-02-01", pl.col("day") != "no day", pl.col("number") != "x").height
    # Laplace noise of scale 1 / 1000, which is 0 but for one time in e**1000.
    assert pl.read_parquet("out.parquet")["count"].item() == height
    assert "where" in run("explain", "flights.parquet", *ASKED, *more).stdout


def test_csv_files_are_filtered_and_cast(flights, run):
    more = ["--schema", "number=str,delay=float64", "--cast", "number=int", "--where", "number > 12 and delay < 30"]
    assert run("release", "flights.csv", *ASKED, *more).exit_code == 0
    assert pl.read_parquet("out.parquet")["count"].item() == 10


@pytest.mark.parametrize(
    ("by", "columns", "groups"),
    [
        ("departed:month", ["departed_month"], 3),
        ("departed:weekday,carrier", ["departed_weekday", "carrier"], 21),
        ("departed:hour", ["departed_hour"], 20),
    ],
)
def test_parts_of_dates(flights, run, by, columns, groups):
    asked = [*ASKED, "--delta", "1e-6", "--budget-delta", "1e-6", "--by", by]
    result = run("release", "flights.parquet", *asked)
    assert result.exit_code == 0, result.output
    frame = pl.read_parquet("out.parquet")
    assert frame.columns[: len(columns)] == columns
    assert frame.height == groups


def test_a_mode_of_a_column_that_is_cast(flights, run):
    more = ["--cast", "number=int", "--mode", "number:12,300", "--where", 'carrier == "AA"']
    result = run("release", "flights.parquet", *ASKED, *more)
    assert result.exit_code == 0, result.output
    assert pl.read_parquet("out.parquet")["number_mode"].item() == 12


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--where", "none > 1"], "--where names the column 'none', which the data lacks"),
        (["--where", "carrier > 1"], "compare it with text"),
        (["--where", "carrier > 1"], "declare it as a number in the schema"),
        (["--where", 'departed > "yesterday"'], "such as '2024-02-29T12:00'"),
        (["--cast", "none=int"], "--cast names the column 'none', which the data lacks"),
        (["--cast", "number"], "--cast number cannot be read; write COLUMN=DTYPE"),
        (["--cast", "number=int", "--cast", "number=str"], "--cast names 'number' twice"),
        (["--cast", "departed=int"], "cannot cast the column 'departed'"),
        (["--by", "delay:month"], "has no calendar"),
        (["--by", "departed:minute"], "--by names the column 'departed:minute'"),
    ],
)
def test_mistakes_cost_nothing(flights, run, more, words):
    result = run("release", "flights.parquet", *ASKED, "--delta", "1e-6", "--budget-delta", "1e-6", *more)
    assert result.exit_code == 2
    assert words in one_line(result)
    assert not (flights / "out.parquet").exists()
    assert not (flights / "l.db").exists()


@pytest.mark.parametrize(
    ("dtype", "values"),
    [("datetime", 2), ("time", 1), ("decimal", 1), ("decimal(4)", 1), ("date", 2), ("int", 1)],
)
def test_columns_declared_as_other_dtypes(flights, run, dtype, values):
    """Text is read alike by --schema and by --cast."""
    texts = {"date": ["2024-02-29", "2024-02-29T10:00:00"], "time": ["10:00:00", "x"], "int": [" 2", "2.5"]}
    written = texts.get(dtype, ["2024-02-29", "2024-02-29 10:00:00"] if dtype == "datetime" else ["1.5", "x"])
    (flights / "x.csv").write_text("x\n" + "\n".join(written * 50) + "\n")
    for more in (["--schema", f"x={dtype}"], ["--schema", "x=str", "--cast", f"x={dtype}"]):
        asked = ["--count", "n", "--where", "not x is None", "--unit", "row", "--epsilon", "100", "--delta", "1e-6"]
        budget = ["--budget-epsilon", "1000", "--budget-delta", "1e-3", "--ledger", "own.db", "--out", "own.parquet"]
        result = run("release", "x.csv", *asked, *budget, "--overwrite", *more)
        assert result.exit_code == 0, result.output
        assert abs(pl.read_parquet("own.parquet")["n"].item() - 50 * values) <= 1
