"""Limits on the command line: numbers, or auto for each or both."""

from __future__ import annotations

import polars as pl
import pytest

from .conftest import ASKED


def cities(run, asked):
    """Return how a release by city is explained, and the cities that it shows."""
    explained = run("explain", *asked)
    assert explained.exit_code == 0, explained.output
    budget = ["--ledger", "ledger.db", "--budget-epsilon", "2", "--budget-delta", "1e-5"]
    released = run("release", *asked, *budget, "--out", "figures.csv")
    assert released.exit_code == 0, released.output
    return explained.stdout, pl.read_csv("figures.csv")["city"].to_list()


def test_limits_are_chosen_privately(folder, run):
    auto = ["--unit", "rider", "--max-groups", "auto", "--max-rows", "auto", "--keys", "keys.csv", "--count"]
    said, shown = cities(run, ["trips.parquet", "--by", "city", *auto, "--epsilon", "1", "--delta", "1e-6"])
    assert "a norm that is chosen privately" in said
    assert shown == ["Oslo", "Rome", "Lima"]


@pytest.mark.parametrize("limits", [("auto", "3"), ("2", "auto"), ("auto", "auto")], ids="-".join)
@pytest.mark.parametrize("keys", [["--keys", "keys.csv"], []], ids=["public", "selected"])
def test_each_limit_is_chosen(folder, run, limits, keys):
    asked = ["trips.parquet", "--by", "city", "--unit", "rider", "--max-groups", limits[0], "--max-rows", limits[1]]
    asked += ["--count", "--units", "--epsilon", "1", "--delta", "1e-6", *keys]
    said, shown = cities(run, asked)
    assert "chosen first" in said
    if keys:
        assert shown == ["Oslo", "Rome", "Lima"]


@pytest.mark.parametrize("limit", ["many", "1.5", "AUTO", "0"])
def test_wrong_limits(folder, run, limit):
    place = ASKED.index("--max-groups") + 1
    result = run("explain", "trips.parquet", *ASKED[:place], limit, *ASKED[place + 1 :])
    assert result.exit_code == 2
    assert "max-groups" in result.stderr or "max_groups" in result.stderr
    assert len(result.stderr.strip().splitlines()) <= 3
