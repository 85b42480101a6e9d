"""`dpfast release` and `dpfast explain`: what they write, charge and read."""

from __future__ import annotations

import datetime
import json
import os
import signal
import subprocess
import sys
import time

import polars as pl
import pytest

import dpfast as dpf
from dpfast.aggregation.exact import Aggregation
from dpfast.cli.output import write_frame

from .conftest import ASKED, BOUNDS, RARE, SCHEMA, one_line

COLUMNS = ["city", "count", "count_scale", "count_lower", "count_upper"]
BUDGET = ["--ledger", "ledger.db", "--budget-epsilon", "2", "--budget-delta", "1e-5"]


def charged(path="ledger.db"):
    return dpf.Ledger.open(path).spent.epsilon if os.path.exists(path) else 0.0


@pytest.mark.parametrize(
    ("file", "schema"), [("trips.parquet", []), ("trips.csv", ["--schema", SCHEMA]), ("trips.arrow", [])]
)
def test_a_release_of_every_kind_of_file(folder, run, file, schema):
    result = run("release", file, *ASKED, *schema, *BUDGET, "--out", "out.parquet")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    frame = pl.read_parquet("out.parquet")
    assert frame.columns == COLUMNS
    assert set(frame["city"]) == {"Oslo", "Rome", "Bonn", "Graz"}
    # Laplace noise of scale 6: 268 to 334 rows a city differ by 218 with probability e^-36 a city.
    assert frame["count"].is_between(50, 600).all()
    assert charged() == 1.0
    assert "left: epsilon 1, delta 9.999e-06" in result.stdout
    assert f"{file}" == dpf.Ledger.open("ledger.db").identity.dataset
    assert not list(folder.glob(".*"))


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".arrow", ".ipc", ".feather", ".json", ".ndjson"])
def test_every_output_format_and_no_rejected_key_in_it(folder, run, suffix):
    out = f"out{suffix}"
    assert run("release", "trips.parquet", *ASKED, *BUDGET, "--out", out).exit_code == 0
    readers = {
        ".parquet": pl.read_parquet,
        ".csv": pl.read_csv,
        ".json": lambda path: pl.DataFrame(json.loads((folder / path).read_text())),
        ".ndjson": pl.read_ndjson,
    }
    assert readers.get(suffix, pl.read_ipc)(out).columns == COLUMNS
    assert RARE.encode() not in (folder / out).read_bytes()


def test_names_sums_means_bins_keys_and_charts(folder, run):
    result = run(
        *("release", "trips.csv", "--schema", SCHEMA, "--by", "city,hour", "--bins", "hour:0,12,24"),
        *("--sum", "fare:0:50", "--mean", "paid=fare:0:50", "--count", "trips", "--epsilon", "1"),
        *("--keys", "pairs.csv", *BUDGET, "--out", "out.csv", "--plot", "chart.svg"),
    )
    assert one_line(result).endswith("there is no file 'pairs.csv' for --keys; give a Parquet, CSV or Arrow file")
    pl.DataFrame({"city": ["Oslo", "Lima"], "hour": [12, 0]}).write_csv("pairs.csv")
    result = run(
        *("release", "trips.csv", "--schema", SCHEMA, "--by", "city,hour", "--bins", "hour:0,12,24"),
        *("--sum", "fare:0:50", "--mean", "paid=fare:0:50", "--count", "trips", "--epsilon", "1"),
        *("--keys", "pairs.csv", *BUDGET, "--out", "out.csv", "--plot", "chart.svg"),
    )
    assert result.exit_code == 0, result.output
    frame = pl.read_csv("out.csv")
    assert frame.select("city", "hour").rows() == [("Oslo", 12), ("Lima", 0)]
    assert {"trips", "fare_sum", "paid", "paid_lower"} <= set(frame.columns)
    assert (folder / "chart.svg").read_text().startswith("<svg")


def test_sums_and_means_of_units_need_no_bound_on_rows(folder, run):
    asked = [
        "--unit-sum",
        "fare:0:90",
        "--unit-mean",
        "paid=fare:0:50",
        "--units",
        "--by",
        "city",
        "--keys",
        "keys.csv",
    ]
    unit = ["--unit", "rider", "--max-groups", "2", "--epsilon", "1"]
    result = run("release", "trips.parquet", *asked, *unit, *BUDGET, "--out", "out.csv")
    assert result.exit_code == 0, result.output
    assert {"fare_unit_sum", "paid", "units"} <= set(pl.read_csv("out.csv").columns)
    result = run("explain", "trips.parquet", *asked, *unit)
    assert "the sum of each unit clipped to [0, 90]" in result.output
    result = run("release", "trips.parquet", *asked, "--count", *unit, *BUDGET, "--out", "out.csv", "--overwrite")
    assert "write for example --max-rows 10" in one_line(result)


@pytest.mark.parametrize("keys", ["keys.csv", "keys.parquet"])
def test_public_keys_for_parquet_data(folder, run, keys):
    arguments = ["--by", "city", "--count", "--epsilon", "1", "--keys", keys]
    assert run("release", "trips.parquet", *arguments, *BUDGET, "--out", "out.csv").exit_code == 0
    assert pl.read_csv("out.csv")["city"].to_list() == ["Oslo", "Rome", "Lima"]


def test_a_csv_release_on_standard_output_is_nothing_but_csv(folder, shell):
    asked = ["--count", "n", "--unit", "row", "--epsilon", "1"]
    result = shell("release", "trips.parquet", *asked, *BUDGET, "--out", "-")
    assert result.returncode == 0
    assert result.stderr == "charged ledger.db (entry 1): epsilon 1, delta 0; left: epsilon 1, delta 1e-05\n"
    header, values = result.stdout.splitlines()
    assert header == "n,n_scale,n_lower,n_upper"
    assert abs(int(values.split(",")[0]) - 1201) < 60


def test_an_exhausted_budget_is_told_and_nothing_is_written(folder, run):
    assert run("release", "trips.parquet", *ASKED, *BUDGET, "--out", "1.csv").exit_code == 0
    assert run("release", "trips.parquet", *ASKED, *BUDGET, "--out", "2.csv").exit_code == 0
    result = run("release", "trips.parquet", *ASKED, *BUDGET, "--out", "3.csv", "--plot", "3.png")
    assert result.exit_code == 3
    assert "nothing was charged" in one_line(result)
    assert sorted(path.name for path in folder.glob("*[123].*")) == ["1.csv", "2.csv"]
    assert not list(folder.glob(".*"))
    assert charged() == 2.0


def test_explain_is_the_plan_and_reads_no_row(folder, run, monkeypatch):
    monkeypatch.setattr(Aggregation, "run", lambda *_: pytest.fail("explain read the data"))
    content = (folder / "trips.parquet").read_bytes()
    # The schema stands at a Parquet file's end; everything before it is made unreadable.
    footer = 8 + int.from_bytes(content[-8:-4], "little")
    (folder / "trips.parquet").write_bytes(b"PAR1" + bytes(len(content) - footer - 4) + content[-footer:])
    result = run("explain", "trips.parquet", *ASKED, *BUDGET, "--out", "out.parquet")
    assert result.exit_code == 0, result.output
    assert "charge        epsilon 1.0, delta 1e-09, before any data is read" in result.stdout
    assert "L1 6 = 2 groups x 3 rows x 1 a row" in result.stdout
    assert "discrete Laplace from 32-bit words" in result.stdout
    header = next(line for line in result.stdout.splitlines() if "95% within" in line)
    assert header.split() == ["query", "measure", "sensitivity", "noise", "scale", "95%", "within", "epsilon", "delta"]
    assert not (folder / "ledger.db").exists()
    assert not (folder / "out.parquet").exists()


SUMS = ["--count", "--sum", "fare:0:50", "--epsilon", "1"]


@pytest.mark.parametrize(
    ("split", "shares"),
    [
        ([], [0.5, 0.5]),
        (["--split", "even"], [0.5, 0.5]),
        (["--split", "count=1,fare_sum=3"], [0.25, 0.75]),
        (["--split", "optimal"], [1 / (1 + 2500 ** (1 / 3)), 1 / (1 + 2500 ** (-1 / 3))]),
        (["--split", "optimal:fare_sum=0.0004"], [0.5, 0.5]),
    ],
)
def test_the_budget_is_split_as_asked(folder, run, split, shares):
    result = run("release", "trips.parquet", *SUMS, *split, *BUDGET, "--out", "out.csv")
    assert result.exit_code == 0, result.output
    history = dpf.Ledger.open("ledger.db").history()
    assert history["epsilon"].to_list() == pytest.approx(shares, rel=1e-9)
    assert charged() == 1.0
    assert "split" in run("explain", "trips.parquet", *SUMS, *split).stdout


def test_explain_warns(folder, run):
    asked = ["explain", "trips.parquet", *ASKED, "--delta", "1e-4"]
    assert "warning       delta 0.0001 is above 1e-05" in run(*asked).stdout
    assert "warning" not in run(*asked, "--population", "600").stdout
    assert "is not below 1 / population" in run(*asked, "--population", "20000").stdout


def test_damaged_data_tell_what_they_have_cost_and_show_nothing(folder, run):
    content = (folder / "trips.parquet").read_bytes()
    footer = 8 + int.from_bytes(content[-8:-4], "little")
    (folder / "trips.parquet").write_bytes(b"PAR1" + bytes(len(content) - footer - 4) + content[-footer:])
    result = run("release", "trips.parquet", *ASKED, *BUDGET, "--out", "out.csv")
    assert result.exit_code == 4
    assert "epsilon 1 and delta 1e-09 were charged before and stay spent in ledger.db" in one_line(result)
    assert not (folder / "out.csv").exists()
    assert charged() == 1.0


def test_what_cannot_be_written_after_the_charge_is_written_elsewhere(folder, run, monkeypatch):
    def full(self, path):
        if ".part" in str(path):
            raise OSError(28, "No space left on device")
        return write(self, path)

    write = pl.DataFrame.write_csv
    monkeypatch.setattr(pl.DataFrame, "write_csv", full)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(folder))
    result = run("release", "trips.parquet", *ASKED, *BUDGET, "--out", "out.csv")
    assert result.exit_code == 4
    line = one_line(result)
    assert (
        "'out.csv' could not be written (No space left on device); the release was charged, and is written to" in line
    )
    saved = line.split("written to ")[-1].removesuffix(" instead")
    assert pl.read_csv(saved).columns == COLUMNS


def test_a_closed_pipe_does_not_lose_the_release(folder, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(folder))
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-c", "from dpfast.cli import main; main()", "release", "trips.parquet", "--count"]
    command += ["--epsilon", "1", *BUDGET, "--out", "-"]
    result = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=1200)
    os.close(writer)
    assert result.returncode == 0
    assert "standard output was not read to its end; the release was charged, and is written to" in result.stderr
    assert len(list(folder.glob("dpfast-release-*.csv"))) == 1


QUANTILES = ["--quantile", "fare:0:50:0.5", "--quantile", "tail=fare:0:50:0.25,0.9"]
MODES = ["--mode", "hour:3,7,12", "--mode", "favourite=city:Oslo,Rome,Lima"]


@pytest.mark.parametrize("file", ["trips.parquet", "trips.csv"])
def test_quantiles_and_modes(folder, run, file):
    """Candidates are of the column's type; a quantile's columns are called as in the library."""
    schema = ["--schema", SCHEMA] if file.endswith(".csv") else []
    asked = [*QUANTILES, *MODES, *BOUNDS, "--epsilon", "1", "--delta", "1e-6", *schema]
    result = run("release", file, *asked, *BUDGET, "--out", "out.parquet", "--plot", "chart.svg")
    assert result.exit_code == 0, result.output
    frame = pl.read_parquet("out.parquet")
    quantiles = ["fare_quantile", "fare_quantile_ranks", "tail_p25", "tail_p90", "tail_ranks"]
    assert frame.columns == [*quantiles, "hour_mode", "hour_mode_rows", "favourite", "favourite_rows"]
    assert frame["hour_mode"].dtype == pl.Int64
    assert frame["hour_mode"][0] in (3, 7, 12)
    assert frame["favourite"][0] in ("Oslo", "Rome", "Lima")
    assert charged() == 1.0
    told = run("explain", file, *asked)
    assert told.exit_code == 0
    assert "quantiles 0.25, 0.9 of fare" in told.stdout
    assert "most common of 3 candidates in hour" in told.stdout


def test_candidates_of_every_type(folder, run):
    """Flags, dates, strings with commas, equal signs and colons; names before the column's colon alone."""
    pl.DataFrame(
        {
            "flag": [True] * 9,
            "day": pl.Series(["2024-02-29"] * 9).str.to_date(),
            "income": ["<=50K"] * 9,
            "at:hour": ["a, b"] * 9,
        }
    ).write_parquet("types.parquet")
    modes = ["flag:True,false", "day:2024-02-29,2023-01-01", "income:<=50K,>50K", 'x=at:hour:"a, b",c']
    asked = [part for mode in modes for part in ("--mode", mode)]
    result = run("release", "types.parquet", *asked, "--epsilon", "1e5", "--ledger", "ledger.db",
                 "--budget-epsilon", "1e6", "--out", "out.parquet")  # fmt: skip
    assert result.exit_code == 0, result.output
    frame = pl.read_parquet("out.parquet")
    values = frame.select("flag_mode", "day_mode", "income_mode", "x").row(0)
    assert values == (True, datetime.date(2024, 2, 29), "<=50K", "a, b")


def test_a_chart_that_fails_leaves_the_release(folder, run, monkeypatch):
    def fail(*given, **named):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dpfast.charts.draw_groups", fail)
    result = run("release", "trips.parquet", *ASKED, *BUDGET, "--out", "out.csv", "--plot", "chart.png")
    assert result.exit_code == 4
    assert one_line(result).endswith("(No space left on device); the release was")
    assert pl.read_csv("out.csv").height == 4


_INTERRUPTED = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
import dpfast.releases.planning
from dpfast.aggregation.exact import Aggregation
from dpfast.cli.output import write_frame
from dpfast.cli import main
def interrupt(*_):
    os.kill(os.getpid(), signal.SIGINT)
planning = sys.modules['dpfast.releases.planning']
groups = sys.modules['dpfast.releases.group_blueprint']
draw = groups.draw
{place} = {wrapped}
main()
"""


@pytest.mark.parametrize(
    ("place", "wrapped", "code", "message", "cost"),
    [
        ("planning.draw_up_groups", "lambda *_, **__: interrupt()", 130, "dpfast: interrupted; nothing was charged", 0),
        (
            "Aggregation.run",
            "interrupt",
            130,
            "dpfast: interrupted after the charge: epsilon 1 and delta 1e-09 stay spent in ledger.db, and nothing was "
            "released; another run is charged anew",
            1,
        ),
        ("groups.draw", "lambda *a: (interrupt(), draw(*a))[1]", 0, "", 1),
    ],
    ids=["planning", "aggregating", "drawing"],
)
def test_an_interrupt_tells_whether_the_ledger_was_charged(folder, place, wrapped, code, message, cost):
    script = _INTERRUPTED.format(place=place, wrapped=wrapped)
    command = [sys.executable, "-c", script, "release", "trips.parquet", *ASKED, *BUDGET, "--out", "out.csv"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    assert (result.returncode, result.stderr.strip()) == (code, message)
    assert charged() == cost
    assert (folder / "out.csv").exists() == (code == 0)
    assert not list(folder.glob(".*.part*"))


def test_a_real_interrupt_from_outside(folder):
    script = """
import signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
from dpfast.aggregation.exact import Aggregation
from dpfast.cli.output import write_frame
from dpfast.cli import main
Aggregation.run = lambda *_: (open("begun", "w").close(), time.sleep(1200))
main()
"""
    command = [sys.executable, "-c", script, "release", "trips.parquet", *ASKED, *BUDGET, "--out", "out.csv"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 1200
    while not (folder / "begun").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=1200)
    assert process.returncode == 130
    assert told.startswith("dpfast: interrupted after the charge")
    assert charged() == 1.0


def test_a_release_by_rho(folder, run):
    """A budget in rho: for a ledger that adds up rho, and refused by one that adds up epsilon."""
    by_rho = ["--by", "city", "--count", *BOUNDS, "--keys", "keys.parquet", "--rho", "0.1"]
    run("ledger", "create", "rho.db", "--epsilon", "3", "--delta", "1e-6", "--accountant", "zcdp")
    result = run("release", "trips.parquet", *by_rho, "--ledger", "rho.db", "--out", "o.parquet")
    assert result.exit_code == 0, result.output
    assert pl.read_parquet("o.parquet")["city"].to_list() == ["Oslo", "Rome", "Lima"]
    assert "rho 0.1" in run("ledger", "show", "rho.db").stdout
    assert "gaussian" in run("explain", "trips.parquet", *by_rho).stdout.lower()
    run("ledger", "create", "epsilon.db", "--epsilon", "3", "--delta", "1e-6")
    result = run("release", "trips.parquet", *by_rho, "--ledger", "epsilon.db", "--out", "p.parquet")
    assert result.exit_code == 2
    assert "--rho must be left out: this ledger adds up epsilons" in result.stderr
    assert "write for example --epsilon 1.0" in result.stderr
    result = run("release", "trips.parquet", *by_rho, "--epsilon", "1", "--ledger", "rho.db", "--out", "p.parquet")
    assert result.exit_code == 2


@pytest.mark.parametrize("suffix", [".csv", ".json", ".ndjson", ".parquet", ".arrow"])
def test_durations_and_bytes_are_written_to_every_kind_of_file(tmp_path, suffix):
    """What was paid for is not lost for its dtype: text has durations as in ISO 8601, bytes in hexadecimal digits."""
    path = tmp_path / f"noisy{suffix}"
    write_frame(pl.DataFrame({"k": [b"\xff\0"], "d": [datetime.timedelta(hours=36)]}), path)
    if suffix in (".csv", ".json", ".ndjson"):
        assert "ff00" in path.read_text()
        assert "P1DT12H" in path.read_text() or "PT129600S" in path.read_text()


SPREADS = ["--variance", "fare:0:50", "--std", "wide=fare:0:50", "--covariance", "fare:0:50:hour:0:24"]
PARTS = ["--proportion", "20 < fare <= 40", "--proportion", "south=city in ('Rome', 'Graz')"]
PARTS += ["--count-where", "dear=fare > 20"]


def test_units_spreads_and_proportions(folder, run):
    """Columns are called as in the library, values are of the column's type, and extremes say what they are."""
    extremes = ["--minimum", "fare:0:50", "--maximum", "most=fare:0:50"]
    asked = ["--units", *SPREADS, *PARTS, "--proportion", "hour == 3", *extremes, "--epsilon", "2"]
    unit = ["--unit", "rider", "--max-groups", "1", "--max-rows", "2"]
    result = run("release", "trips.parquet", *asked, *unit, *BUDGET, "--out", "out.parquet")
    assert result.exit_code == 0, result.output
    frame = pl.read_parquet("out.parquet")
    names = [
        "units",
        "fare_variance",
        "wide",
        "fare_hour_covariance",
        "fare_proportion",
        "south",
        "hour_proportion",
        "dear",
    ]
    columns = [name + suffix for name in names for suffix in ("", "_scale", "_lower", "_upper")]
    assert frame.columns == [*columns, "fare_minimum", "fare_minimum_ranks", "most", "most_ranks"]
    told = run("explain", "trips.parquet", *asked, *unit)
    for line in (
        "proportion of fare > 20 and fare <= 40, of values",
        "proportion of city in ('Rome', 'Graz')",
        "proportion of hour == 3",
        "count where fare > 20",
        "maximum, as the 0.99-quantile, of fare",
        "covariance of fare clipped to [0, 50] and hour clipped to [0, 24]",
    ):
        assert line in told.stdout


def test_histograms_are_lists_and_text_in_csv(folder, run):
    """Lists stay lists where a format has them; a CSV file has them as JSON does."""
    asked = ["--histogram", "fare:0,10,20.5", "--cdf", "late=hour:6,12,18", "--epsilon", "2"]
    for out in ("out.parquet", "out.csv"):
        assert (
            run("release", "trips.parquet", *asked, *BUDGET[:2], "--budget-epsilon", "9", "--out", out).exit_code == 0
        )
    frame, text = pl.read_parquet("out.parquet"), pl.read_csv("out.csv")
    assert frame.columns == text.columns
    assert frame.columns[:2] == ["fare_histogram_bin", "fare_histogram"]
    assert frame["fare_histogram_bin"].to_list() == [[0.0, 10.0]]
    assert frame["late_edge"].to_list() == [[6, 12, 18]]
    assert json.loads(text["fare_histogram_bin"][0]) == [0.0, 10.0]
    assert len(json.loads(text["late"][0])) == 3
    shown = run("release", "trips.parquet", *asked, *BUDGET[:2], "--out", "-")
    assert shown.stdout.startswith("fare_histogram_bin,")


def test_different_and_most_common_values(folder, run):
    """Each of four cities has about 300 rows, and noise a scale of 4 / 2: a wrong answer is rarer than e**-100."""
    ranked = ["--top-k", "city:2:Oslo,Rome,Lima", "--top-k", "at=hour:1:3,7", "--top-k", "city:9"]
    asked = ["--count-distinct", "city", *ranked, "--epsilon", "2", "--delta", "1e-6"]
    result = run("release", "trips.parquet", *asked, *BUDGET, "--out", "o.arrow")
    assert result.exit_code == 0, result.output
    frame = pl.read_ipc("o.arrow")
    assert frame.columns[:5] == [f"city_top_2{end}" for end in ("", "_count", "_scale", "_lower", "_upper")]
    assert set(frame["city_top_2"][0]) == {"Oslo", "Rome"}
    assert frame.schema["at"] == pl.List(pl.Int64)
    assert set(frame["city_top_9"][0]) == {"Oslo", "Rome", "Bonn", "Graz"}
    assert min(frame["city_top_9_count"][0]) > 100
