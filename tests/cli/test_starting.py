"""`dpfast init` writes programs that run as they are, and `dpfast completion` what shells read."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import polars as pl
import pytest

from .conftest import one_line


def run_program(path):
    return subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)


def test_a_program_explains_and_charges_nothing(folder, run):
    done = run("init", "trips.parquet", "--out", "start.py")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "run it with python start.py" in done.stdout
    shown = run_program("start.py")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.startswith("One privacy unit")
    assert not list(folder.glob("*.db"))


def test_the_last_lines_release(folder, run):
    run("init", "trips.parquet", "--out", "start.py")
    program = (folder / "start.py").read_text().replace("'row'", "'rider'").replace("# ledger =", "ledger =")
    program = program.replace("# release", "release").replace("# print", "print")
    program = program.replace("epsilon=1.0,\n", "epsilon=1.0,\n    max_groups=2,\n    max_rows_per_group=3,\n")
    (folder / "start.py").write_text(program)
    shown = run_program("start.py")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert pl.read_parquet("release.parquet").columns[0] == "city"


def test_of_a_csv_file_the_schema_is_kept(folder, run):
    assert run("init", "trips.csv", "--schema", "city=str,rider=int64", "--out", "start.py").exit_code == 0
    assert "SCHEMA = {\n    'city': pl.String,\n    'rider': pl.Int64,\n}" in (folder / "start.py").read_text()
    assert run_program("start.py").returncode == 0


@pytest.mark.parametrize(
    "columns",
    [
        {'"""\nimport os; os.abort()': ["a"], "it's": [1.5], "x\n y": [1]},
        {"patient_id": [1], "ward": ["a"], "cost": [1.0]},
        {"list": [[1]], "when": [None]},
        {"city": [], "fare": []},
        {"rows": ["a"], "v": [1.0], "v_mean": [2.0], "user": [1.5], "customer_list": [[1]]},
    ],
    ids=["names that are code", "people", "no values", "no rows", "names that are taken"],
)
def test_every_file_gives_a_program_that_runs(folder, run, columns):
    pl.DataFrame(columns).write_parquet("odd.parquet")
    assert run("init", "odd.parquet", "--out", "start.py").exit_code == 0
    shown = run_program("start.py")
    assert (shown.returncode, shown.stderr) == (0, "")
    unit = "'patient_id'" if "patient_id" in columns else "'row'"
    assert f"PRIVACY_UNIT = {unit}" in (folder / "start.py").read_text()


def test_it_shows_the_program_and_replaces_no_file(folder, run):
    shown = run("init", "trips.parquet")
    assert shown.stdout.startswith('"""A first private release')
    (folder / "start.py").write_text("mine")
    refused = run("init", "trips.parquet", "--out", "start.py")
    assert refused.exit_code == 4
    assert "exists" in one_line(refused)
    assert (folder / "start.py").read_text() == "mine"
    assert run("init", "trips.parquet", "--out", "start.py", "--overwrite").exit_code == 0
    assert run("init", "trips.parquet", "--json").exit_code == 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_get_a_program(run, shell):
    done = run("completion", shell)
    assert done.exit_code == 0
    assert "_DPFAST_COMPLETE" in done.stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash_completes_a_command(run, tmp_path):
    (tmp_path / "complete.sh").write_text(run("completion", "bash").stdout)
    dpfast = tmp_path / "dpfast"
    dpfast.write_text(f'#!/bin/sh\nexec {sys.executable} -m dpfast "$@"\n')
    dpfast.chmod(0o755)
    asked = "source complete.sh; COMP_WORDS=(dpfast rel); COMP_CWORD=1; _dpfast_completion dpfast; echo ${COMPREPLY[@]}"
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", asked], cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["release"]


@pytest.mark.parametrize(
    "words",
    [
        "release peo",
        "release people.parquet --ledger l",
        "ledger show l",
        "report l",
        "synthesize a.parquet --domain d",
    ],
)
def test_shells_complete_files(words):
    """A shell that has the program of `dpfast completion` completes nothing by itself any more."""
    asked = {
        "_DPFAST_COMPLETE": "bash_complete",
        "COMP_WORDS": f"dpfast {words}",
        "COMP_CWORD": str(len(words.split())),
    }
    code = "from dpfast.cli import main; main(prog_name='dpfast')"
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, **asked}, capture_output=True, text=True)
    assert done.stdout.strip() == f"file,{words.split()[-1]}"
