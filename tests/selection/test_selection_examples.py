"""The programs in examples/ about selection run and print what they promise."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from dpfast.testing import SeededRandom

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

PRINTED = {
    "pumpkin_auction": ["$1.00  $4.00", "$4.00  $4.00", "$4.01  $4.01", "$4.02  $0.00", "With 4000 bidders"],
    "most_common_disease": ["Most common, for epsilon 0.1: hypertension", "Together 0.2"],
    "conference_date": ["Chosen for epsilon 0.5: 2026-07-1", "The first two days", "2026-07-1"],
    "marital_status": ["0.88876", "0.10389", "0.93775", "0.05829", "1 to e**2146.5"],
}


@pytest.mark.parametrize("name", PRINTED)
def test_example(name, capsys):
    """Row 3.3-10."""
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert capsys.readouterr().out
    runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"](random=SeededRandom(2))
    printed = capsys.readouterr().out
    print(printed)
    for part in PRINTED[name]:
        assert part in printed
    assert max(map(len, printed.splitlines())) < 100
