"""dpfast audit: whether a user's function is refuted, by an exit code."""

from __future__ import annotations

import json

import polars as pl
import pytest

from .conftest import one_line

MINE = '''
"""Mechanisms of a user."""

import random

import beside


def right(x):
    return x if random.random() < 0.75 else 1 - x


def wrong(x, chance=0.75):
    return x if random.random() < chance else beside.other(x)


def many(x, n):
    return [right(x) for _ in range(n)]


def few(x, n):
    return [x]


def fails(x):
    raise ValueError(f"no {x}\\nat all")


class Own(BaseException):
    pass


def own(x, n=1):
    raise Own("words")


def endless(x):
    made = []
    made.append(made)
    return made


class Held:
    @staticmethod
    def right(x):
        return right(x)


def named(who):
    return len(who) * random.random() < 3


def talks(x):
    print("hello")
    return x


text = "no function"
'''
ASKED = ["--x", "0", "--neighbour", "1", "--samples", "4000", "--epsilon"]


@pytest.fixture
def mine(folder):
    (folder / "mine.py").write_text(MINE)
    (folder / "beside.py").write_text("def other(x):\n    return 1 - x\n")
    (folder / "broken.py").write_text("import nowhere_to_be_found\n")
    return folder


@pytest.mark.parametrize("function", ["mine.py:right", "./mine.py:Held.right"])
def test_what_is_private_passes(mine, run, function):
    """False-failure rate 1e-9: epsilon is ln 3."""
    result = run("audit", function, *ASKED, "1.1", "--confidence", "0.999999999")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0] == "passed: epsilon 1.1 is not refuted"
    assert lines[1].startswith("event: output")
    assert lines[3].startswith("with confidence 0.999999999: epsilon is at least")


def test_what_is_not_is_refuted_by_the_exit_code(mine, run):
    """False-failure rate below 1e-9: epsilon is ln 99."""
    result = run("audit", "mine.py:wrong", *ASKED, "1.1", "--set", "chance=0.99", "--out", "figures.parquet")
    assert (result.exit_code, result.stderr) == (1, "")
    assert result.stdout.startswith("refuted: epsilon 1.1 is not true; epsilon is at least ")
    assert result.stdout.endswith("wrote figures.parquet\n")
    figures = pl.read_parquet("figures.parquet").row(0, named=True)
    assert (figures["passed"], figures["samples"], figures["measured"]) == (False, 4000, 2000)


def test_a_module_of_the_working_folder_in_batches(mine, shell):
    result = shell("audit", "mine:many", *ASKED, "0.5", "--batched", "--delta", "0.01")
    assert (result.returncode, result.stderr) == (1, "")
    assert "with delta 0.01" in result.stdout


def test_what_is_shipped(folder, run):
    result = run("audit", "dpfast:laplace", *ASKED, "0.5", "--set", "scale=2.0", "--confidence", "0.9999999")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "with confidence 0.9999999:" in result.stdout


def test_strings_and_the_other_spelling(mine, run):
    result = run(
        "audit", "mine.py:named", "--x", "'ann'", "--neighbor", "'anna'", "--samples", "2000", "--epsilon", "0.1"
    )
    assert result.exit_code == 1


MISTAKES = [
    (["mine.py"], 2, "MODULE:FUNCTION cannot be read of mine.py; write for example"),
    ([":right"], 2, "MODULE:FUNCTION cannot be read"),
    (["nowhere.py:right"], 4, "there is no file nowhere.py"),
    (["nowhere_at_all:right"], 2, "nowhere_at_all cannot be imported (ModuleNotFoundError"),
    (
        ["broken.py:right"],
        2,
        "broken.py cannot be imported (ModuleNotFoundError: No module named 'nowhere_to_be_found')",
    ),
    (["mine.py:left"], 2, "mine.py has no left"),
    (["mine.py:text"], 2, "mine.py:text is no function"),
    (["mine.py:fails"], 2, "one of which every call raises ValueError; call it once by hand (no 0 at all)"),
    (["mine.py:few", "--batched"], 2, "FUNCTION must be a function whose outputs can be compared, but was one that"),
    (["mine.py:right", "--x", "ann"], 2, "--x must be written as in Python, but was ann; write a string as --x"),
    (["mine.py:right", "--epsilon", "-1"], 2, "--epsilon must be a number from 0 to 1"),
    (["mine.py:right", "--delta", "1"], 2, "--delta must be a number"),
    (["mine.py:right", "--samples", "0"], 2, "--samples must be a whole number"),
    (["mine.py:right", "--confidence", "1"], 2, "--confidence must be a number above 0 and below 1"),
    (["mine.py:right", "--set", "chance"], 2, "--set chance cannot be read; write for example --set scale=2.0"),
    (["mine.py:right", "--set", "chance=much"], 2, "--set chance must be written as in Python"),
    (
        ["mine.py:right", "--set", "none=1"],
        2,
        "FUNCTION(x, none=...): got an unexpected keyword argument 'none'; --set",
    ),
    (
        ["mine.py:many", "--batched", "--set", "n=1"],
        2,
        "multiple values for argument 'n'; --set names its other arguments",
    ),
    (["mine.py:right", "--batched"], 2, "FUNCTION(x, n): too many positional arguments; leave --batched out"),
    (["mine.py:many"], 2, "FUNCTION(x): missing a required argument: 'n'"),
    (
        ["mine.py:own", "--batched"],
        2,
        "one that raised Own; let FUNCTION(x, n) return n outputs, or leave --batched out",
    ),
    (["mine.py:endless"], 2, "nested more than 100 deep"),
    (["mine.py:right", "--out", "figures.doc"], 2, "--out 'figures.doc' must end in one of"),
    (["mine.py:right", "--out", "trips.csv"], 4, "--out 'trips.csv' exists; give another name, or --overwrite"),
    (["mine.py:right", "--out", "no/figures.csv"], 4, "the folder 'no' of --out does not exist"),
]


@pytest.mark.parametrize(("arguments", "code", "told"), MISTAKES)
def test_mistakes(mine, run, arguments, code, told):
    """One line that says how to mend it, and nothing is written."""
    before = sorted(path.name for path in mine.iterdir())
    result = run("audit", *ASKED, "1.1", *arguments)
    assert (result.exit_code, told in one_line(result)) == (code, True), result.stderr
    assert sorted(path.name for path in mine.iterdir() if path.name != "__pycache__") == before


def test_help_has_an_example(run):
    result = run("audit", "--help")
    assert result.exit_code == 0
    assert "dpfast audit mine.py:noisy_count --x 10 --neighbour 11 --epsilon 1" in result.stdout
    assert "1 a claim is refuted" in run("--help").stdout


def test_progress_on_a_terminal(mine, run, monkeypatch):
    """Long work is followed in percent; a pipe gets none of it."""
    from dpfast.cli.terminal import Progress

    stages = []
    monkeypatch.setattr(Progress, "__call__", lambda self, stage: stages.append(stage))
    result = run("audit", "mine.py:right", *ASKED, "1.1", "--confidence", "0.999999999")
    assert result.stderr == ""
    assert stages[0] == "drawing outputs: 0%"
    assert stages[-1] == "drawing outputs: 100%"


@pytest.mark.parametrize("body", ["def f(x): return x\nimport sys\nsys.exit(0)\n", "import sys\nsys.exit()\n"])
def test_a_module_that_ends_python_is_no_verdict(tmp_path, monkeypatch, run, body):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(body)
    result = run("audit", "mine.py:f", "--x", "0", "--neighbour", "1", "--epsilon", "1")
    assert result.exit_code == 2
    assert "cannot be imported (SystemExit" in result.stderr


def test_a_function_that_ends_python_on_one_input_is_refuted(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("import sys\ndef f(x):\n    sys.exit(0) if x else None\n    return 0\n")
    asked = ["--x", "0", "--neighbour", "1", "--epsilon", "1", "--samples", "2000"]
    assert run("audit", "mine.py:f", *asked).exit_code == 1


def test_what_a_function_prints_stands_beside_a_document(mine, run):
    """The document is alone on standard output."""
    result = run("audit", "mine.py:talks", *ASKED, "1.0", "--json")
    assert json.loads(result.stdout)["command"] == "audit"
    assert result.stderr.startswith("hello")
