"""Limits on the command line: numbers, or auto for each or both."""

from __future__ import annotations

import polars as pl
import pytest

from .conftest import ASKED


def test_limits_are_chosen_privately(folder, run):
    auto = ["--unit", "rider", "--max-groups", "auto", "--max-rows", "auto", "--keys", "keys.csv", "--count"]
    asked = ["trips.parquet", "--by", "city", *auto, "--epsilon", "1", "--delta", "1e-6"]
    result = run("explain", *asked)
    assert result.exit_code == 0, result.output
    assert "a norm that is chosen privately" in result.stdout
    budget = ["--ledger", "ledger.db", "--budget-epsilon", "2", "--budget-delta", "1e-5"]
    result = run("release", *asked, *budget, "--out", "figures.csv")
    assert result.exit_code == 0, result.output
    assert pl.read_csv("figures.csv")["city"].to_list() == ["Oslo", "Rome", "Lima"]


@pytest.mark.parametrize("limits", [("auto", "3"), ("2", "auto"), ("auto", "auto")], ids="-".join)
@pytest.mark.parametrize("keys", [["--keys", "keys.csv"], []], ids=["public", "selected"])
def test_each_limit_is_chosen(folder, run, limits, keys):
    asked = ["trips.parquet", "--by", "city", "--unit", "rider", "--max-groups", limits[0], "--max-rows", limits[1]]
    asked += ["--count", "--units", "--epsilon", "1", "--delta", "1e-6", *keys]
    result = run("explain", *asked)
    assert result.exit_code == 0, result.output
    assert "chosen first" in result.stdout
    budget = ["--ledger", "ledger.db", "--budget-epsilon", "2", "--budget-delta", "1e-5"]
    result = run("release", *asked, *budget, "--out", "figures.csv")
    assert result.exit_code == 0, result.output
    if keys:
        assert pl.read_csv("figures.csv")["city"].to_list() == ["Oslo", "Rome", "Lima"]


@pytest.mark.parametrize("limit", ["many", "1.5", "AUTO", "0"])
def test_wrong_limits(folder, run, limit):
    place = ASKED.index("--max-groups") + 1
    result = run("explain", "trips.parquet", *ASKED[:place], limit, *ASKED[place + 1 :])
    assert result.exit_code == 2
    assert "max-groups" in result.stderr or "max_groups" in result.stderr
    assert len(result.stderr.strip().splitlines()) <= 3
