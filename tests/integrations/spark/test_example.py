"""The Spark job in examples/ runs on small data, and does what it says."""

from __future__ import annotations

import runpy
from pathlib import Path

import dpfast as dpf

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "spark_job.py"


def test_the_example_releases_what_many_share(session, tmp_path):
    """Each zone has some 4,500 riders, where a few hundred are needed; the zone of one is shown in 1e-10 of runs."""
    example = runpy.run_path(str(EXAMPLE))
    example["main"].__globals__["start"] = lambda: session
    release = example["main"](tmp_path, 100_000)
    zones = {row.zone for row in release.frame.select("zone").collect()}
    assert len(zones) == 20
    assert "zone of one" not in zones
    assert not list(tmp_path.glob("_dpfast*"))
    with dpf.Ledger.open(tmp_path / "ledger.db") as ledger:
        assert 0.49 < ledger.spent.epsilon <= 0.5
