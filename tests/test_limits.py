"""docs/limits.md: its figures can be measured again, and what it names exists."""

from __future__ import annotations

import importlib.util
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dpfast as dpf

HERE = Path(__file__).parents[1]
PAGE = (HERE / "docs" / "limits.md").read_text()
SCRIPT = HERE / "scripts" / "draw_limits.py"


@pytest.fixture(scope="module")
def limits():
    pytest.importorskip("matplotlib")
    specification = importlib.util.spec_from_file_location("draw_limits", SCRIPT)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_the_error_of_local_sums_grows_with_the_square_root(limits):
    """Theorem 9.2: a slope of 1/2 locally, of 0 centrally.

    Each error is a root mean square over 400 sums, off by a factor of 1.3 at most but for 1e-9: slopes by .06.
    """
    people, local, central = np.log(np.array(limits.local_sums(4, 400))).T
    assert (local[-1] - local[0]) / (people[-1] - people[0]) == pytest.approx(0.5, abs=0.12)
    assert (central[-1] - central[0]) / (people[-1] - people[0]) == pytest.approx(0.0, abs=0.12)


def test_signatures_are_right_over_all_cells_and_never_by_pairs(limits):
    """Of 960 records the noisy answer errs by a few: an error of 400, a share below 1/2, is a chance below e**-30."""
    for _, _, fitted, by_pairs in limits.signatures(12):
        assert fitted > 0.5
        assert by_pairs < 0.25


def test_the_script_runs(tmp_path):
    pytest.importorskip("matplotlib")
    command = [sys.executable, str(SCRIPT), "--quick", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"local_sums.svg", "signatures.svg"}


def test_what_the_page_names_exists():
    for name in re.findall(r"`dpf\.([\w.]+)", PAGE):
        found = dpf
        for part in name.split("."):
            found = getattr(found, part)
    for picture in re.findall(r"!\[[^]]+\]\(([^)]+)\)", PAGE):
        assert (HERE / "docs" / picture).stat().st_size > 1000


def test_the_lifetime_budget_of_the_page():
    """Row 13-2's figures, as the page has them."""
    epsilon = dpf.accounting.advanced(dpf.accounting.events.Laplace(801.0).times(10_000), drift="book").epsilon(
        math.exp(-32)
    )
    assert f"{epsilon:.3f}" == "1.014"
    assert "1.014" in PAGE
