"""Streams that the caller has closed, as a shell does by ``>&-``: Python has None in their place."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys

import polars as pl
import pytest

COMMANDS = {
    "attack": ["attack", "trips.parquet", "--column", "old", "--rows", "20"],
    "audit": ["audit", "math:floor", "--x", "0", "--neighbour", "0", "--epsilon", "1", "--samples", "100"],
    "explain": ["explain", "trips.parquet", "--count", "--unit", "row", "--epsilon", "1"],
    "release": [
        *["release", "trips.parquet", "--count", "--unit", "row", "--epsilon", "1"],
        *["--ledger", "ledger.db", "--budget-epsilon", "2", "--out", "out.csv"],
    ],
    "help": ["--help"],
    "version": ["--version"],
}


def closed(numbers, command):
    """Run a command in a process that has closed some of its streams."""
    run = [sys.executable, "-m", "dpfast", *command]
    program = f"import os; [os.close(n) for n in {numbers}]; os.execv({sys.executable!r}, {run!r})"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=1200)


@pytest.fixture
def trips_with_bits(folder, trips):
    trips.select("rider", old=pl.col("rider") % 3 == 0).write_parquet("trips.parquet")
    return folder


@pytest.mark.parametrize(
    ("name", "numbers"),
    [*((name, (0, 1, 2)) for name in COMMANDS), *itertools.product(["release", "help"], [(1,), (2,)])],
)
def test_commands_run_with_closed_streams(trips_with_bits, name, numbers):
    """Each command with none of them; with one closed, the one that writes a file and the one that only shows."""
    done = closed(numbers, COMMANDS[name])
    assert (done.returncode, done.stderr) == (0, "")
    assert bool(done.stdout) is (1 not in numbers) or name == "release"
    if name == "release":
        assert pl.read_csv("out.csv").height == 1


def test_nothing_is_charged_for_an_output_that_is_closed(trips_with_bits):
    command = [*COMMANDS["release"][:-1], "-"]
    done = closed((1,), command)
    assert (done.returncode, done.stderr) == (4, "dpfast: standard output is closed; give --out FILE\n")
    assert not os.path.exists("ledger.db")


def test_errors_are_told_by_the_code_alone_where_no_one_can_read_them(trips_with_bits):
    done = closed((1, 2), ["attack", "trips.parquet", "--column", "none"])
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")


@pytest.mark.parametrize("name", ["audit", "version"])
def test_a_pipe_that_nobody_reads_refutes_no_claim(trips_with_bits, name):
    """Code 1 says that one is refuted. The codes of all commands without a reader are tested in test_manners.py."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "dpfast", *COMMANDS[name]]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=1200)
    os.close(writer)
    assert done.returncode != 1
    assert "Traceback" not in done.stderr
