"""``dpfast bench`` as a person and a script meet it: tables, files, interrupts, failures, and the time of --quick."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import polars as pl
import pytest
from click.testing import CliRunner

from dpfast.bench import running
from dpfast.bench.cases import SUITES, Case, Measured
from dpfast.bench.results import SCHEMA, read_results
from dpfast.cli import main
from tests.bench.made_up import measured

QUICK = ["bench", "accounting", "--only", "Laplace answers", "--quick"]


def run(*arguments):
    return CliRunner().invoke(main, list(arguments))


@pytest.fixture
def cases(tmp_path, monkeypatch):
    """Put cases of a test in the place of the suite's."""
    monkeypatch.chdir(tmp_path)
    listed = []
    monkeypatch.setattr(running, "cases_of", lambda suites, wish, only="": listed)
    return listed


def test_results_and_a_page_are_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run(*QUICK, "--out", "a.parquet", "--page", "a.html")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "Epsilon of 100 Laplace answers" in done.stdout
    assert "wrote a.parquet\nwrote a.html" in done.stdout
    frame = read_results("a.parquet")
    assert dict(frame.schema) == SCHEMA
    assert frame["contestant"][0] == "dpfast"
    assert frame["rounds"].unique().to_list() == [7]
    assert "numpy" in json.loads(frame["versions"][0])
    assert "Laplace answers" in (tmp_path / "a.html").read_text()
    assert run(*QUICK, "--out", "a.parquet").exit_code == 4
    assert run(*QUICK, "--out", "a.parquet", "--overwrite", "--json").exit_code == 0
    compared = run("bench", "compare", "a.parquet", "a.parquet")
    assert compared.exit_code == 0
    assert "1 of 3,432" not in compared.stdout
    assert " same" in compared.stdout


def test_a_regression_has_its_exit_code(tmp_path, cases):
    for name, ours in (("old", [1.0] * 7), ("new", [2.0] * 7)):
        cases[:] = [Case("speed", "a", lambda wish, ours=ours: measured(ours, [4.0] * 7))]
        assert run("bench", "--out", f"{name}.parquet").exit_code == 0
    done = run("bench", "compare", "old.parquet", "new.parquet")
    assert (done.exit_code, done.stderr) == (1, "")
    assert "worse" in done.stdout
    assert run("bench", "compare", "new.parquet", "old.parquet").exit_code == 0
    document = json.loads(run("bench", "compare", "old.parquet", "new.parquet", "--json").stdout)
    assert (document["command"], document["worse"]) == ("bench compare", True)


def test_a_case_that_raises_is_a_row_and_the_rest_goes_on(cases):
    def broken(wish):
        raise ValueError("no such thing")

    cases += [Case("speed", "broken", broken), Case("speed", "whole", lambda wish: measured([1.0] * 7, [2.0] * 7))]
    done = run("bench", "--out", "out.parquet")
    assert done.exit_code == 1
    assert "broken, dpfast: raised ValueError: no such thing" in done.stdout
    assert done.stderr == "dpfast: 1 of 3 rows failed, by an error or refuted; the lines above say how\n"
    assert read_results("out.parquet")["failure"].to_list() == ["raised", "", ""]


@pytest.mark.parametrize(("who", "code"), [("dpfast", 1), ("NumPy", 0)])
def test_a_claim_of_ours_that_is_refuted_has_an_exit_code_and_one_of_others_none(cases, who, code):
    refuted = Measured(who, 100, (4.0,), "epsilon", failure="refuted", note="refuted: epsilon 1 is not true")
    cases.append(Case("privacy", "noise", lambda wish: [refuted]))
    done = run("bench")
    assert done.exit_code == code
    assert "epsilon 1 is not true" in done.stdout


def test_a_case_without_contestants_has_no_rows(cases):
    cases.append(Case("speed", "nobody", lambda wish: []))
    done = run("bench", "--out", "out.parquet")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "wrote" not in done.stdout


def test_an_interrupt_keeps_what_was_measured(cases):
    def interrupted(wish):
        raise KeyboardInterrupt

    cases += [
        Case("speed", "first", lambda wish: measured([1.0] * 7, [2.0] * 7)),
        Case("speed", "second", interrupted),
        Case("speed", "third", lambda wish: pytest.fail("it was interrupted")),
    ]
    done = run("bench", "--out", "out.parquet")
    assert done.exit_code == 130
    assert done.stderr == "dpfast: interrupted after 2 rows, which the files hold\n"
    assert "first" in done.stdout
    assert read_results("out.parquet")["name"].to_list() == ["first", "first"]


def test_control_c_in_a_process_of_its_own_keeps_what_was_measured(tmp_path):
    """The first case is done in a moment; the second takes minutes."""
    command = [sys.executable, "-m", "dpfast", "bench", "accounting", "--only", "o", "--out", "out.parquet"]
    program = (
        "import signal, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's background jobs ignore it
        "from dpfast.bench import running\n"
        "from dpfast.bench.cases import SUITES, Case, Measured\n"
        "first = Case('speed', 'first', lambda wish: [Measured('dpfast', 1, (1.0,))])\n"
        "def second(wish):\n"
        "    open('begun', 'w').close()\n"
        "    time.sleep(3600)\n"
        "running.cases_of = lambda suites, wish, only='': [first, Case('speed', 'second', second)]\n"
        "from dpfast.cli import main\n"
        "main(['bench', '--out', 'out.parquet'])\n"
    )
    command = [sys.executable, "-c", program]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "begun").exists():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    told = process.communicate(timeout=1200)[1]
    assert (process.returncode, told) == (130, "dpfast: interrupted after 1 row, which the files hold\n")
    assert read_results(tmp_path / "out.parquet")["name"].to_list() == ["first"]


def test_names_that_rich_or_a_narrow_terminal_would_spoil_are_shown(cases, monkeypatch):
    cases.append(Case("speed", "a [bold] name", lambda wish: measured([1.0] * 7, [2.0] * 7)))
    monkeypatch.setenv("COLUMNS", "40")
    assert "a [bold] name" in run("bench").stdout


def test_cases_are_chosen_by_suite_and_name():
    document = json.loads(run("bench", "--list", "--quick", "--only", "laplace", "speed", "--json").stdout)
    assert {case["suite"] for case in document["cases"]} == {"speed"}
    assert all("laplace" in case["name"].lower() and case["quick"] for case in document["cases"])


def test_a_mechanism_of_ones_own_runs_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("def mine(columns, budget):\n    return {n: c + 1 for n, c in columns.items()}\n")
    done = run("bench", "privacy", "--quick", "--only", "only row", "--mechanism", "mine.py:mine", "--out", "o.parquet")
    assert done.exit_code == 1
    [row] = read_results("o.parquet").iter_rows(named=True)
    assert (row["contestant"], row["failure"]) == ("mine", "refuted")
    assert "mine: the only row goes: refuted: epsilon 1 is not true" in done.stdout


@pytest.mark.long
def test_quick_runs_every_suite(tmp_path):
    """It prints how long that took, which is to be below two minutes on two quiet cores, and holds nobody to it."""
    command = [sys.executable, "-m", "dpfast", "bench", "--quick", "--out", "quick.parquet", "--page", "quick.html"]
    begun = time.perf_counter()
    done = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=2400)
    print(f"dpfast bench --quick: {time.perf_counter() - begun:.0f} s")
    assert done.returncode == 0, done.stdout + done.stderr
    frame = read_results(tmp_path / "quick.parquet")
    assert set(frame["suite"]) == set(SUITES)
    assert frame.filter(pl.col("contestant") == "dpfast")["failure"].unique().to_list() == [""]
