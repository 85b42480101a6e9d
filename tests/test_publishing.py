"""What is published: one version, a licence, a changelog, types, and a workflow that calls scripts which are there."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_version_is_one():
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.findall(r"^version: (.+)$", citation, re.MULTILINE) == [PROJECT["version"]]
    assert importlib.metadata.version("dpfast") == PROJECT["version"]
    minor = PROJECT["version"].rpartition(".")[0]
    assert f"| {minor} (the newest) | yes |" in (ROOT / "SECURITY.md").read_text()
    written = [path for path in (ROOT / "dpfast").rglob("*.py") if "__version__" in path.read_text()]
    assert written == []


def test_the_licence_is_one():
    assert PROJECT["license"] == "Apache-2.0"
    assert "Version 2.0, January 2004" in (ROOT / "LICENSE").read_text()
    assert "license: Apache-2.0" in (ROOT / "CITATION.cff").read_text()
    assert "[Apache 2.0](LICENSE)" in (ROOT / "README.md").read_text()


def test_the_changelog_has_one_section_that_is_unreleased_at_its_top():
    text = (ROOT / "CHANGELOG.md").read_text()
    sections = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert sections[0] == "Unreleased"
    assert all(re.fullmatch(r"\d+\.\d+\.\d+ - \d{4}-\d\d-\d\d", name) for name in sections[1:])
    groups = re.findall(r"^### (.+)$", text.partition("\n## Unreleased\n")[2].partition("\n## ")[0], re.MULTILINE)
    known = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
    assert groups == [name for name in known if name in groups]


def test_addresses_of_the_project_are_given_or_left_out():
    """Nobody is sent to an address that does not exist: where none is known, none is written."""
    assert "urls" not in PROJECT
    assert all("email" not in author for author in PROJECT["authors"])
    assert not re.search(r"[\w.]+@[\w.]+\.\w+", (ROOT / "SECURITY.md").read_text())


def test_the_citation_file_is_valid():
    """By its schema where the tool is there; by the fields that every such file must have in any case."""
    fields = dict(re.findall(r"^([\w-]+):(.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE))
    assert {"cff-version", "message", "title", "authors"} <= set(fields)
    assert fields["cff-version"].strip() == "1.2.0"
    pytest.importorskip("cffconvert")
    command = [sys.executable, "-m", "cffconvert", "--validate", "-i", str(ROOT / "CITATION.cff")]
    assert subprocess.run(command, check=False).returncode == 0


def test_versions_of_python_that_are_named_are_those_that_a_workflow_runs():
    named = {name.rpartition(" ")[2] for name in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", name)}
    workflow = (ROOT / ".github" / "workflows" / "checks.yml").read_text()
    assert set(re.findall(r'"(3\.\d+)"', workflow)) == named
    assert PROJECT["requires-python"] == f">={min(named, key=lambda one: int(one[2:]))}"


def test_steps_of_the_workflow_are_scripts_that_are_there():
    for workflow in (ROOT / ".github" / "workflows").glob("*.yml"):
        commands = re.findall(r"^ *- run: (.+)$", workflow.read_text(), re.MULTILINE)
        assert commands
        for command in commands:
            found = re.fullmatch(r"sh (scripts/\w+\.sh)", command)
            assert found, command
            assert (ROOT / found[1]).is_file()
        assert len(re.findall(r"\brun:", workflow.read_text())) == len(commands)


def test_what_is_built_has_all_that_it_shall_have(tmp_path):
    """The wheel is built from the source distribution, as in scripts/check_wheel.sh, but with what is installed."""

    def build(what: str, folder: Path) -> None:
        command = [sys.executable, "-m", "hatchling", "build", "-t", what, "-d", str(tmp_path / "dist")]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=1800, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    build("sdist", ROOT)
    (archive,) = (tmp_path / "dist").iterdir()
    shutil.unpack_archive(archive, tmp_path / "sources", filter="data")
    build("wheel", tmp_path / "sources" / archive.name.removesuffix(".tar.gz"))
    command = [sys.executable, str(ROOT / "scripts" / "look_into_wheel.py"), str(tmp_path / "dist")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
def test_what_is_built_is_complete_and_runs_where_nothing_else_is_installed():
    """scripts/check_wheel.sh: the wheel's content, its metadata, and its use without an optional package."""
    done = subprocess.run(
        ["sh", str(ROOT / "scripts" / "check_wheel.sh")],
        env=os.environ | {"PYTHON": sys.executable}, capture_output=True, text=True, timeout=1800, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no optional package" in done.stdout
