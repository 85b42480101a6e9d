"""The script that runs all tests: every step runs, and what failed is said at the end."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "test.sh"
#: What each step calls, by a word that is in no other call.
STEPS = {
    "ruff check": "ruff check",
    "ruff format": "ruff format",
    "stamps of kernels": "stamp_kernels.py --check",
    "compiled code of kernels": "tests/noise/test_compiled_code.py",
    "mypy": "mypy",
    "tests with bounds checked": "-m not statistical",
    "tests": "--doctest-modules",
    "tests with the lowest versions": "tests/test_lowest_versions.py",
    "quick benchmarks": "-m dpfast bench --quick",
}


#: What is said of a step's time.
TOOK = re.compile(r"^ *\d+ s  (.*)\n", re.MULTILINE)


def said(done):
    """Return what a run said beside the times of its steps."""
    return TOOK.sub("", done.stdout)


@pytest.fixture
def run(tmp_path):
    """Return a function that runs the script over commands that only note what they were called with.

    Those whose call holds one of the given words fail. There is no PostgreSQL, so that it would be installed. There is
    the Python that the lowest versions need.
    """
    (tmp_path / "scripts").mkdir()
    shutil.copy(SCRIPT, tmp_path / "scripts")
    bin, lowest = (tmp_path / venv / "bin" for venv in (".venv-test", ".venv-lowest"))
    bin.mkdir(parents=True)
    lowest.mkdir(parents=True)
    path = tmp_path / "path"
    path.mkdir()
    programs = (
        (bin, "python"),
        (lowest, "python"),
        (bin, "ruff"),
        (bin, "mypy"),
        (path, "python3.11"),
        (path, "apt-get"),
        (path, "id"),
        (path, "ls"),
    )
    for folder, name in programs:
        says = {"id": "echo 0", "ls": "exit 1"}.get(name, "")
        (folder / name).write_text(
            "#!/bin/sh\n"
            f'{says}\nprintf "%s\\n" "{name} $*" >> calls\n'
            'for word in $FAILING; do case "$0 $*" in *"$word"*) exit 3;; esac; done\n'
        )
        (folder / name).chmod(0o755)
    # What the script needs beside these, and no initdb that a distribution left on the PATH.
    for name in ("sh", "dirname", "mktemp", "rm", "env", "timeout", "printf", "date", "cat"):
        (path / name).symlink_to(shutil.which(name))

    def run(failing="", *arguments, **settings):
        environment = {"PATH": str(path), "FAILING": failing, "TMPDIR": str(tmp_path), **settings}
        done = subprocess.run(
            [shutil.which("sh"), str(tmp_path / "scripts" / "test.sh"), *arguments],
            env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        calls = tmp_path / "calls"
        called = calls.read_text() if calls.exists() else ""
        calls.unlink(missing_ok=True)
        return done, called

    return run


def test_every_step_runs_and_all_failures_are_told(run):
    done, called = run()
    assert (done.returncode, said(done), done.stderr) == (0, "", "")
    assert TOOK.findall(done.stdout) == ["installing", *STEPS, "all of it"]
    assert [name for name, call in STEPS.items() if call not in called] == []
    for failing, names in (
        ("ruff stamp_kernels", ["ruff check", "ruff format", "stamps of kernels"]),
        ("mypy --doctest-modules", ["mypy", "tests"]),
        ("test_compiled_code", ["compiled code of kernels"]),
        ("statistical", ["tests with bounds checked"]),
        ("bench", ["quick benchmarks"]),
        ("test_lowest_versions", ["tests with the lowest versions"]),
        # What cannot be installed fails: it is not skipped.
        ("--constraint", ["tests with the lowest versions"]),
    ):
        done, called = run(failing)
        assert done.returncode == 1
        assert done.stdout.splitlines()[-1] == f"failed: {', '.join(names)}"
        if failing != "--constraint":
            assert [name for name, call in STEPS.items() if call not in called] == []


def test_what_a_step_says_that_runs_beside_another_is_shown(run, tmp_path):
    (tmp_path / ".venv-test" / "bin" / "mypy").write_text("#!/bin/sh\necho one error\necho in one file >&2\nexit 1\n")
    done, _ = run()
    assert (said(done), done.returncode) == ("one error\nin one file\nfailed: mypy\n", 1)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("tmp.")]  # nothing is left behind


def test_arguments_are_pytests(run):
    done, called = run("", "-k", "this")
    assert done.returncode == 0
    assert called.splitlines()[-1] == "python -m pytest -k this"
    assert run("pytest", "-k", "this")[0].returncode == 3


def test_the_lowest_versions_have_an_environment_of_their_own(run):
    done, called = run("", "-k", "this", DPFAST_TEST_VERSIONS="lowest")
    assert done.returncode == 0
    assert "python scripts/lowest_versions.py" in called
    assert "--constraint .venv-lowest/constraints.txt -e .[test,demo]" in called
    assert called.splitlines()[-1] == "python -m pytest -k this"
    assert run("constraint", "-k", "this", DPFAST_TEST_VERSIONS="lowest")[0].returncode != 0
    assert "--constraint" not in run("", "-k", "this")[1]


def test_the_lowest_versions_are_run_alone_or_not_at_all(run):
    done, called = run(DPFAST_TEST_VERSIONS="lowest")
    assert done.returncode == 0
    assert [name for name, call in STEPS.items() if call in called] == ["tests with the lowest versions"]
    done, called = run(DPFAST_TEST_VERSIONS="newest")
    assert (done.returncode, said(done)) == (0, "")
    assert [name for name, call in STEPS.items() if call not in called] == ["tests with the lowest versions"]
    assert run(DPFAST_TEST_VERSIONS="latest")[0].returncode == 2


def test_where_the_python_of_the_lowest_versions_is_missing_it_is_said(run, tmp_path):
    (tmp_path / "path" / "python3.11").unlink()
    done, called = run()
    assert done.returncode == 0
    assert said(done) == "not run: tests with the lowest versions, which need python3.11\n"
    assert [name for name, call in STEPS.items() if call not in called] == ["tests with the lowest versions"]
    assert said(run("mypy")[0]).splitlines() == [said(done).strip(), "failed: mypy"]
    (tmp_path / "path" / "python3.11").write_text("#!/bin/sh\nexit 1\n")  # of another version
    (tmp_path / "path" / "python3.11").chmod(0o755)
    assert said(run()[0]) == said(done)
    asked, called = run("", "-k", "this", DPFAST_TEST_VERSIONS="lowest")
    assert asked.returncode == 1
    assert "need Python 3.11" in asked.stderr


def test_installations_can_be_turned_off(run):
    packages = {"POSTGRESQL": "postgresql", "SPARK": "default-jre-headless", "CHROMIUM": "chromium"}
    for settings in ({}, {f"DPFAST_TEST_{name}": "1" for name in packages}):
        called = run(**settings)[1]
        assert all(f"install -y {package}" in called for package in packages.values())
    for name, package in packages.items():
        assert f"install -y {package}" not in run(**{f"DPFAST_TEST_{name}": "0"})[1]
    assert "apt-get" not in run(**{f"DPFAST_TEST_{name}": "0" for name in packages})[1]


def test_spark_is_installed_where_there_is_java(run, tmp_path):
    assert ".[spark]" not in run()[1]
    java = tmp_path / "path" / "java"
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    called = run()[1]
    assert "pip install --quiet --disable-pip-version-check -e .[spark]" in called
    assert "default-jre" not in called
    assert ".[spark]" not in run(DPFAST_TEST_SPARK="0")[1]


def test_what_needs_postgresql_is_skipped_where_it_is_turned_off():
    """The fixture that starts a server says so; what it would find on this machine does not matter."""
    folder = Path(__file__).parent / "ledger"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs",
         str(folder / "test_ledger_postgresql.py"), "-k", "test_busy"],
        env=os.environ | {"DPFAST_TEST_POSTGRESQL": "0"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "DPFAST_TEST_POSTGRESQL=0" in done.stdout
