"""The suites: every case has one name, what is not installed is skipped with a line, and a wheel has them too."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from benchmarks import contestants, growth, scaling
from benchmarks.compared import _QUICK, _QUICK_NAMES, suite_of
from benchmarks.comparisons import COMPARISONS
from dpfast.bench.cases import SUITES, Measured, Wish
from dpfast.bench.finding import CHECKOUT
from dpfast.bench.running import cases_of

ROOT = Path(__file__).parents[2]


def test_every_case_has_a_name_of_its_own_and_each_suite_a_quick_one():
    cases = cases_of([], Wish())
    names = [(case.suite, case.name) for case in cases]
    assert len(set(names)) == len(names)
    assert {case.suite for case in cases if case.is_quick} == set(SUITES)
    possible = {one.name for one in COMPARISONS if one.is_possible}
    assert possible <= {name for _, name in names}


def test_quick_rows_are_rows():
    assert set(_QUICK) <= {one.name for one in COMPARISONS}
    assert {suite_of(one) for one in COMPARISONS} == {"speed", "accounting", "pipeline"}


def test_names_of_quick_rows_say_how_many_values_they_have():
    """A name with a power in it is another one where the size is another, or is of the smaller size already."""
    for one in COMPARISONS:
        if (power := re.search(r"(10|2)\^(\d+)", one.name)) and one.name in _QUICK:
            said = int(power[1]) ** int(power[2])
            renamed = re.search(r"(10|2)\^(\d+)", _QUICK_NAMES.get(one.name, one.name))
            ratio = one.size // _QUICK[one.name]
            assert int(renamed[1]) ** int(renamed[2]) * ratio == said, one.name
    names = {case.name for case in cases_of([], Wish(is_quick=True)) if case.is_quick}
    assert names & set(_QUICK_NAMES) == set()


def test_what_is_not_installed_is_said_in_one_line(monkeypatch):
    monkeypatch.setattr(contestants, "find_spec", lambda name: None)
    lines = contestants.missing_lines()
    assert len(lines) == len(contestants.CONTESTANTS)
    assert all(re.fullmatch(r"not run: [\w-]+ \(pip install [^()]+\)", line) for line in lines), lines
    for adapter in ("opendp", "diffprivlib", "python_dp"):
        assert (ROOT / "benchmarks" / "contestants" / f"{adapter}.py").exists()


@pytest.mark.parametrize("module", ["opendp", "diffprivlib", "python_dp"])
def test_an_adapter_of_what_is_not_installed_has_no_contestant(module, monkeypatch):
    import importlib

    import numpy as np

    adapter = importlib.import_module(f"benchmarks.contestants.{module}")
    for name in ("opendp", "opendp.prelude", "diffprivlib", "diffprivlib.mechanisms", "pydp", "pydp.algorithms"):
        monkeypatch.setitem(sys.modules, name, None)
    assert adapter.noise(np.arange(10), "laplace", 10.0) == {}


def test_cost_at_several_sizes_is_compared_within_each(monkeypatch):
    monkeypatch.setattr(growth, "_sizes", lambda wish: [1_000, 10_000])
    found = growth._measure(growth._prefixes, Wish(is_quick=True))
    assert [(one.contestant, one.size, one.is_first) for one in found] == [
        ("dpfast", 1_000, True), ("NumPy", 1_000, False), ("dpfast", 10_000, True), ("NumPy", 10_000, False),
    ]  # fmt: skip
    assert "a call takes" in found[2].note


def test_processes_are_measured_in_turns_and_a_killed_one_is_said_to_be(monkeypatch, tmp_path):
    asked = []

    def measure(run, folder, rows):
        asked.append(run)
        return None if run == "Polars" else {"seconds": 1.0, "peak": 300.0}

    monkeypatch.setattr(scaling, "measure", measure)
    found = {one.contestant: one for one in growth._of_processes(("dpfast", "Polars"), tmp_path, 10**7, Wish())}
    assert asked == ["dpfast", "Polars"] * 3
    assert found["dpfast"] == Measured("dpfast", 10**7, (1.0,) * 3, per_value=True, peak=300.0)
    assert found["Polars"].failure == "raised"


def test_files_of_the_suite_import_each_other_by_their_place():
    """In a wheel they are a part of the package, so that no module is called benchmarks."""
    for path in (ROOT / "benchmarks").rglob("*.py"):
        assert not re.search(r"^\s*(from|import) benchmarks", path.read_text(), re.MULTILINE), path


def test_the_suite_runs_where_a_wheel_has_it(tmp_path):
    """A copy of the package with what pyproject.toml says that a wheel adds, and no checkout around it."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        added = tomllib.load(file)["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert added == {"benchmarks": "dpfast/benchmarks"}
    assert CHECKOUT == ROOT
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "dpfast", tmp_path / "dpfast", ignore=ignored)
    shutil.copytree(ROOT / "benchmarks", tmp_path / "dpfast" / "benchmarks", ignore=ignored)
    for asked in (["--list", "--json"], ["accounting", "--only", "Laplace answers", "--json"]):
        done = subprocess.run(
            [sys.executable, "-m", "dpfast", "bench", *asked],
            capture_output=True, text=True, check=False, cwd=tmp_path, timeout=1200,
            env=os.environ | {"PYTHONPATH": str(tmp_path)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "Epsilon of 100 Laplace answers" in done.stdout
