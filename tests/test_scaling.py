"""The script that measures the cost per row over many sizes."""

from __future__ import annotations

import re

import polars as pl
import pytest

from benchmarks import scaling

FIGURES = {"seconds": 0.25, "peak": 300.0}


def test_sizes_are_powers_of_ten_and_large_ones_share_their_first_files(tmp_path):
    assert scaling.sizes(10**6) == [10**3, 10**4, 10**5, 10**6]
    assert scaling.sizes(10**2) == []
    small, large = (scaling.part_paths(tmp_path, rows) for rows in (10**7, 10**8))
    assert (len(small), len(large)) == (1, 10)
    assert large[0] == small[0]
    assert len({*small, *scaling.part_paths(tmp_path, 10**7, 5), *scaling.part_paths(tmp_path, 10**6)}) == 3


def test_files_are_made_once_and_hold_their_rows(tmp_path):
    [path] = scaling.make_files(tmp_path, 1000)
    made = path.stat().st_mtime_ns
    assert scaling.make_files(tmp_path, 1000) == [path]
    assert path.stat().st_mtime_ns == made
    frame = pl.read_parquet(path)
    assert (frame.height, frame.columns, frame["key"].n_unique()) == (1000, ["key"], scaling.groups_of(1000))
    [path] = scaling.make_files(tmp_path, 2000, 500)
    assert pl.read_parquet(path)["unit"].is_between(0, 499).all()
    assert not list(tmp_path.glob("*.writing"))


def test_every_run_does_what_it_says(tmp_path, monkeypatch):
    monkeypatch.delenv("DPFAST_MEMORY_LIMIT", raising=False)
    monkeypatch.setitem(scaling.os.environ, "DPFAST_MEMORY_LIMIT", "")  # which a run sets, and this puts back
    found = {run: scaling.RUNS[run](scaling.files_of(tmp_path, run, 1000), 1000) for run in scaling.RUNS}
    groups = scaling.groups_of(1000)
    assert (found["dpfast"].height, found["units"].height) == (groups, groups)
    # Noise of scale 1 on each of 100 counts is below 40 but with a chance of e**-35.
    both = found["dpfast"].join(found["Polars"], on="key")
    assert (both["n"] - both["len"].cast(pl.Int64)).abs().max() < 40
    assert found["reading alone"] == 1000


@pytest.mark.parametrize("missing", [(), ("Polars",)])
def test_tables_and_a_chart_are_written(tmp_path, missing):
    pytest.importorskip("matplotlib")
    rows = {}
    for number, size in enumerate(scaling.sizes(10**5)):
        scaling.make_files(tmp_path, size)
        rows[size] = {
            kind: {"seconds": 0.01 * (number + 1), "peak": 300.0}
            for kind in scaling.ROW_KINDS
            if kind not in missing or size < 10**5
        }
    found = {"rows": rows, "units": {2000: {"units": FIGURES}}, "queries": {1000: {}}}
    scaling.write(found, tmp_path, tmp_path / "scaling.md", tmp_path / "scaling.svg")
    text = (tmp_path / "scaling.md").read_text()
    assert re.search(r"\| 1,000 \| 2,000 \| 125,000 \| 300 \|", text)
    assert "| 1,000 | - | - |" in text
    assert ("| - |" in text.split("Units")[0]) is bool(missing)
    assert "](scaling.svg)" in text
    assert "takes 10 ms" in text
    assert (tmp_path / "scaling.svg").stat().st_size > 1000
