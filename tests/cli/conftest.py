"""Small trips on file, and a shell to run dpfast in."""

from __future__ import annotations

import random
import subprocess
import sys

import polars as pl
import pytest
from click.testing import CliRunner

from dpfast.cli import main

#: A rare city: one rider, so that no selection of keys may show it.
RARE = "Nowhere-visited-by-one-rider"
SCHEMA = "city=str,rider=int64,fare=float64,hour=int64"
BOUNDS = ["--unit", "rider", "--max-groups", "2", "--max-rows", "3"]
#: What most releases of the trips ask for: noise of scale 6, and keys from 128 rows on. The rare city is shown with a
#: probability of 3.4e-10, and one of the others, of 268 rows at least, is missing with one of 4e-11.
ASKED = ["--by", "city", "--count", *BOUNDS, "--epsilon", "1", "--delta", "1e-9"]


@pytest.fixture(scope="session")
def trips():
    choose = random.Random(5)
    cities = ["Oslo", "Rome", "Bonn", "Graz"]
    rows = [(choose.choice(cities), rider, choose.uniform(2, 40), choose.randrange(24)) for rider in range(600)] * 2
    rows.append((RARE, 10_000, 11.0, 3))
    return pl.DataFrame(rows, schema=["city", "rider", "fare", "hour"], orient="row")


@pytest.fixture
def folder(tmp_path, monkeypatch, trips):
    """Return a folder, made the working one, that holds the trips in three formats and two files of keys."""
    monkeypatch.chdir(tmp_path)
    trips.write_parquet("trips.parquet", row_group_size=200)
    trips.write_csv("trips.csv")
    trips.write_ipc("trips.arrow")
    keys = pl.DataFrame({"city": ["Oslo", "Rome", "Lima"]})
    keys.write_csv("keys.csv")
    keys.write_parquet("keys.parquet")
    return tmp_path


@pytest.fixture
def run():
    """Return a function that runs dpfast in this process."""

    def run(*arguments):
        return CliRunner().invoke(main, [str(argument) for argument in arguments])

    return run


@pytest.fixture
def shell():
    """Return a function that runs dpfast in a process of its own, its output in pipes."""

    def shell(*arguments, **options):
        command = [sys.executable, "-c", "from dpfast.cli import main; main()", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=1200, **options)

    return shell


def one_line(result) -> str:
    """Return the one line that a failed command wrote, and nothing else."""
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("dpfast: ")
    return lines[0]
