"""Right calls of counters of streams, of sketches, and of their methods."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import polars as pl

import dpfast as dpf

from .calls import Call

FOLDER = Path(mkdtemp())
NUMBERS = count()
LONG = dpf.continual_count(2**30, epsilon=1.0, mechanism="tree", counters=3)
ALONE = dpf.continual_count(2**30, epsilon=1.0, mechanism="tree")
SUMS = dpf.continual_sum(2**30, (0, 5), epsilon=1.0, mechanism="tree", counters=3)
SEEN = dpf.PanPrivateDensity(100, 1.0)


def a_path() -> Path:
    return FOLDER / f"counter_{next(NUMBERS)}.arrow"


def a_kept_one() -> dict[str, Any]:
    path = a_path()
    dpf.continual_count(4, rho=1.0, path=path).close()
    return {"path": path}


ROWS = pl.DataFrame({"v": [1, 2], "u": [1, 1]})


def a_sketch():
    return dpf.distinct_sketch(ROWS, "v", epsilon=1.0, privacy_unit="row", buckets=4, ledger=dpf.Ledger(epsilon=1.0))


CALLS: list[Call] = [
    Call("continual_count", dpf.continual_count, lambda: {"horizon": 8, "epsilon": 1.0, "delta": 1e-6}),
    Call("continual_count of rho", dpf.continual_count, lambda: {"horizon": 8, "rho": 1.0, "path": a_path()}),
    Call("continual_sum", dpf.continual_sum, lambda: {"horizon": 8, "bounds": (0, 5), "epsilon": 1.0}),
    Call("restore_counter", dpf.restore_counter, a_kept_one),
    Call("ContinualCounter.step", LONG.step, lambda: {"increments": [1, 2, 3]}),
    Call("ContinualCounter.step_rows", SUMS.step_rows, lambda: {"groups": [0, 2], "values": [4, 4]}),
    Call("ContinualCounter.run", ALONE.run, lambda: {"increments": [1, 2, 3]}),
    Call("ContinualCounter.error", LONG.error, lambda: {"step": 3}),
    Call("ContinualCounter.half_width", LONG.half_width, lambda: {"step": 3}),
    Call("ContinualCounter.save", dpf.continual_count(4, rho=1.0, mechanism="blt").save, lambda: {"path": a_path()}),
    Call("PanPrivateDensity", dpf.PanPrivateDensity, lambda: {"population": 10, "epsilon": 1.0}),
    Call("PanPrivateDensity.arrive", SEEN.arrive, lambda: {"members": [1, 2, 3]}),
    Call(
        "distinct_sketch",
        dpf.distinct_sketch,
        lambda: {
            "data": ROWS,
            "column": "v",
            "epsilon": 0.1,
            "privacy_unit": "u",
            "max_values": 2,
            "buckets": 4,
            "key": 1,
            "ledger": dpf.Ledger(epsilon=1000),
        },
    ),
    Call("DistinctSketch.interval", a_sketch().interval, lambda: {"miss": 0.1}),
    Call("DistinctSketch.merge", a_sketch().merge, lambda: {"other": a_sketch()}),
    Call("merge_sketches", dpf.merge_sketches, lambda: {"frame": a_sketch().to_frame()}),
    Call("theory.laplace_sum_miss", dpf.theory.laplace_sum_miss, lambda: {"scales": [1.0, 2.0], "width": 3.0}),
    Call("theory.laplace_sum_error", dpf.theory.laplace_sum_error, lambda: {"scales": [1.0, 2.0], "miss": 0.05}),
]
