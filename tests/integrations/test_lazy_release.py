"""A plan and a release as LazyFrames: one charge, one draw and one value, whatever engines do with them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import dpfast

from .barrier import MODES, PATTERNS, check


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("source", ["plan", "release"])
def test_every_pattern_charges_and_draws_once(source, mode):
    for pattern in PATTERNS:
        check(pattern, source, mode)


@pytest.mark.parametrize(("threads", "morsel"), [(1, 7), (8, 3), (8, 10**6)])
def test_threads_and_morsels_change_nothing(threads, morsel):
    settings = {
        "POLARS_MAX_THREADS": str(threads),
        "POLARS_IDEAL_MORSEL_SIZE": str(morsel),
        "POLARS_WARN_UNKNOWN_CONFIG": "1",
        "PYTHONPATH": str(Path(dpfast.__file__).parents[1]),
    }
    program = Path(__file__).with_name("barrier.py")
    command = [sys.executable, "-W", "error::UserWarning", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | settings, timeout=1200)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(threads), str(len(PATTERNS) * 10)]
    assert "MORSEL" not in done.stderr
