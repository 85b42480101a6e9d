"""What goes wrong with ``dpfast bench``: mechanisms that print, end the process or put out NaN, and files of others."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from dpfast.bench import running
from dpfast.bench.cases import Case, Measured, Wish, measured_in_turns
from dpfast.bench.compare import compare
from dpfast.bench.own import checked
from dpfast.bench.results import read_results, to_frame
from dpfast.cli import main
from dpfast.errors import ParameterError
from tests.bench.made_up import frame, measured

NOISY = "import numpy as np\nimport dpfast as dpf\n\n\ndef mine(columns, budget):\n    {}\n    return {}\n"
RIGHT = "{name: dpf.laplace(column, budget.scale) for name, column in columns.items()}"
ACCURACY = ["bench", "accuracy", "--quick", "--only", "cells of 1,024 cells, sparse", "--mechanism", "mine.py:mine"]
PRIVACY = ["bench", "privacy", "--quick", "--only", "the only row", "--mechanism", "mine.py:mine"]


def run(*arguments):
    return CliRunner().invoke(main, list(arguments))


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """Write a mechanism of the user's from a line of it and what it returns."""
    monkeypatch.chdir(tmp_path)

    def write(line="pass", returned=RIGHT, before=""):
        (tmp_path / "mine.py").write_text(before + NOISY.format(line, returned))

    return write


def test_what_a_mechanism_prints_stands_beside_the_document_and_the_table(mine):
    mine("print('called')", before="print('imported')\n")
    for arguments in (ACCURACY, PRIVACY):
        done = run(*arguments, "--json")
        assert done.exit_code == 0
        assert len(json.loads(done.stdout)["rows"]) in (1, 3)
        assert done.stderr.startswith("imported\ncalled\n")
    done = run(*ACCURACY)
    assert "called" not in done.stdout
    assert "imported" not in done.stdout
    assert json.loads(run(*ACCURACY, "--list", "--json").stdout)["cases"]


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
@pytest.mark.parametrize("arguments", [ACCURACY, PRIVACY])
def test_values_that_are_not_finite_are_a_failure(mine, arguments, value):
    mine(returned=f"{{name: np.full(column.size, {value!r}, float) for name, column in columns.items()}}")
    done = run(*arguments, "--out", "o.parquet")
    assert done.exit_code == 1
    [row] = [row for row in read_results("o.parquet").to_dicts() if row["contestant"] == "mine"]
    assert (row["failure"], row["rounds"], row["ratio"]) == ("raised", 0, None)
    assert f"one that returned {value} in count" in row["note"]
    assert "nanx" not in done.stdout


def test_an_output_that_is_rarely_wrong_does_not_pass_the_audit(mine):
    """It is wrong in one run of a hundred, whatever the input: nothing is refuted."""
    mine("if np.random.random() < 0.01: return {'count': [np.nan] * columns['count'].size}")
    done = run(*PRIVACY)
    assert done.exit_code == 1
    assert "returned nan in count" in done.stdout


def test_a_single_value_that_is_nan_is_refused():
    with pytest.raises(ParameterError, match="of finite numbers, but was one that returned nan in n"):
        checked({"n": np.arange(2)}, {"n": [1.0, float("nan")]})


@pytest.mark.parametrize("figure", [float("nan"), float("inf")])
@pytest.mark.parametrize("warm", [False, True])
def test_a_figure_that_is_not_finite_is_no_figure(figure, warm):
    found = measured_in_turns({"a": (lambda: 1.0, 1), "b": (lambda: figure, 1)}, 2, warm=warm)
    assert [(one.failure, len(one.figures)) for one in found] == [("", 2), ("raised", 0)]
    assert f"its figure is {figure}" in found[1].note


def test_figures_of_earlier_files_that_are_not_finite_are_not_judged():
    wrong, right = (frame(("a", measured([1.0] * 7, theirs))) for theirs in ([float("nan")] * 7, [2.0] * 7))
    for one, other in ((wrong, right), (right, wrong), (wrong, wrong)):
        assert [change.verdict for change in compare(one, other).changes] == ["not judged"]


@pytest.mark.parametrize("place", ["call", "import of the case"])
def test_a_mechanism_that_ends_the_process_is_said_to_have_raised(mine, monkeypatch, place):
    mine("raise SystemExit(3)")
    if place == "call":
        done = run(*ACCURACY, "--out", "o.parquet")
        assert "mine: raised SystemExit: 3" in done.stdout
        assert read_results("o.parquet")["failure"].to_list() == ["", "raised", ""]
    else:
        case = Case("speed", "a", lambda wish: sys.exit(3))
        monkeypatch.setattr(running, "cases_of", lambda suites, wish, only="": [case])
        done = run("bench", "--out", "o.parquet")
        assert read_results("o.parquet")["note"].to_list() == ["raised SystemExit: 3"]
    assert done.exit_code == 1


def write(path, *names):
    to_frame(row for name in names for row in frame((name, measured([1.0] * 7, [2.0] * 7))).to_dicts()).write_parquet(
        path
    )


def test_files_without_a_common_row_are_not_compared(mine):
    write("a.parquet", "one", "two")
    write("b.parquet", "three")
    for more in ((), ("--json",)):
        done = run("bench", "compare", "a.parquet", "b.parquet", *more)
        assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (4, "", 1)
        assert "nothing was compared: OLD and NEW share no row" in done.stderr


def test_rows_that_are_gone_are_named_up_to_ten(mine):
    write("a.parquet", "kept", *(f"lost {number}" for number in range(7)))
    write("b.parquet", "kept")
    done = run("bench", "compare", "a.parquet", "b.parquet")
    assert done.exit_code == 0
    assert done.stdout.count("gone: speed, lost ") == 10
    assert "gone: speed, lost 0, NumPy, 10 values\n" in done.stdout
    assert done.stdout.endswith("gone: 4 more\n")
    assert "gone: " not in run("bench", "compare", "b.parquet", "a.parquet").stdout


def test_claims_that_hold_in_both_files_were_compared(mine):
    results = frame(("noise", [Measured("dpfast", 100, (0.4,), "epsilon")]))
    found = compare(results, results)
    assert (found.shared, found.changes) == (1, ())
    assert found.explain().startswith("1 claims as before")


def test_only_what_an_earlier_run_wrote_is_replaced(mine, tmp_path, monkeypatch):
    case = Case("speed", "a", lambda wish: measured([1.0] * 7, [2.0] * 7))
    monkeypatch.setattr(running, "cases_of", lambda suites, wish, only="": [case])
    (tmp_path / "l.html").write_text('{"format": 3, "kind": "ledger"}')
    (tmp_path / "thesis.html").write_text("<!DOCTYPE html>\n<title>My thesis on dpfast bench</title>")
    pl.DataFrame({"patient": [1]}).write_parquet("data.parquet")
    (tmp_path / "words.parquet").write_text("no Parquet")
    for option, names in (("--page", ("l.html", "thesis.html")), ("--out", ("data.parquet", "words.parquet"))):
        for name in names:
            before = (tmp_path / name).read_bytes()
            done = run("bench", option, name, "--overwrite")
            assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (4, "", 1)
            assert f"{option} '{name}' exists and is no " in done.stderr
            assert (tmp_path / name).read_bytes() == before
    files = ("bench", "--out", "o.parquet", "--page", "o.html")
    assert run(*files).exit_code == 0
    assert run(*files).exit_code == 4
    assert run(*files, "--overwrite").exit_code == 0
    assert not list(tmp_path.glob(".*.part*"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = 1\ndef mine(columns, budget:\n    pass\n", "mine.py, line 2: SyntaxError: "),
        ("x = 1\n\ny = 1 / 0\n", "mine.py, line 3: ZeroDivisionError: division by zero"),
        ("import no_such_module_at_all\n", "mine.py, line 1: ModuleNotFoundError: "),
        ("import math\nmath.tau_\n", "mine.py, line 2: AttributeError: "),
        ("import helper_of_mine\n", "helper_of_mine.py, line 2: ValueError: no"),
        ("import json\n\njson.loads('{')\n", "mine.py, line 3: JSONDecodeError: "),
        ("import sys\nsys.exit()\n", "mine.py, line 2: SystemExit;"),
    ],
)
def test_an_error_of_the_file_is_told_with_its_line(mine, tmp_path, text, told):
    (tmp_path / "mine.py").write_text(text)
    (tmp_path / "helper_of_mine.py").write_text("\nraise ValueError('no')\n")
    done = run(*ACCURACY)
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f"dpfast: --mechanism cannot be imported: {told}" in done.stderr


def test_a_function_that_is_not_there_is_said_not_to_be(mine):
    mine()
    assert "mine.py has no yours" in run("bench", "speed", "--mechanism", "mine.py:yours").stderr


@pytest.mark.parametrize("suites", [["accounting"], ["speed", "scaling"], ["pipeline"]])
def test_a_suite_without_mechanisms_says_so(mine, suites):
    mine()
    done = run("bench", *suites, "--mechanism", "mine.py:mine")
    assert done.exit_code == 2
    assert done.stderr == (
        "dpfast: suite must be one that runs a mechanism of your own (speed, accuracy, privacy), but was "
        f"{suites[-1]!r}; name one of these, or leave --mechanism out\n"
    )


@pytest.mark.parametrize(("option", "value"), [("epsilon", "1"), ("delta", "1e-6")])
def test_a_budget_without_a_mechanism_is_refused(option, value):
    done = run("bench", "speed", "--list", f"--{option}", value)
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"--{option} is for a mechanism of yours" in done.stderr


def test_prints_stay_out_of_the_document_of_a_process(mine, tmp_path):
    mine("print('called')", before="print('imported')\n")
    command = [sys.executable, "-m", "dpfast", *ACCURACY, "--json"]
    done = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["is_whole"]


def test_without_a_mechanism_every_suite_may_be_named():
    for suite in ("accounting", "scaling"):
        assert running.cases_of([suite], Wish(is_quick=True))
