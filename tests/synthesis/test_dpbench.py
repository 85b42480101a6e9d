"""The made-up histograms are what they are said to be; the protocol runs; the committed table says what is claimed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import benchmarks.dpbench
from benchmarks.dpbench.algorithms import CHOICE
from benchmarks.dpbench.protocol import FULL, QUICK, measured, scaled_error, workload_for
from benchmarks.dpbench.shapes import LINES, PLANES, coarsened, histogram, sampled
from benchmarks.dpbench.summary import close_share, ratios, report

HERE = Path(benchmarks.dpbench.__file__).parent


@pytest.mark.parametrize("shape", [*LINES, *PLANES], ids=lambda shape: shape.name)
def test_scale_and_share_of_empty_cells_are_met_exactly(shape):
    counts = histogram(shape)
    assert counts.dtype == np.int64
    assert counts.shape == shape.shape
    assert counts.min() >= 0
    assert counts.sum() == shape.scale
    assert (counts == 0).sum() == round(shape.empty * counts.size)
    assert (histogram.__wrapped__(shape) == counts).all(), "the seed fixes it"


def test_coarser_cells_and_samples_keep_the_records():
    generator = np.random.default_rng(1)
    for shape in (LINES[3], PLANES[1]):
        sample = sampled(histogram(shape), 1_000, generator)
        assert sample.sum() == 1_000
        assert ((histogram(shape) > 0) | (sample == 0)).all()
        coarse = coarsened(sample, 32)
        assert coarse.shape == (32,) * len(shape.shape)
        assert coarse.sum() == 1_000
    assert coarsened(np.arange(8), 4).tolist() == [1, 5, 9, 13]


def test_the_error_is_the_distance_of_all_answers():
    workload = workload_for((4,))
    assert scaled_error(workload, np.array([1, 2, 3, 4]), np.array([2.0, 2.0, 3.0, 4.0]), 10) == pytest.approx(0.05)


def test_the_protocol_runs_and_is_summed_up():
    results = measured(QUICK)
    assert results.null_count().sum_horizontal().item() == 0
    assert results["error"].min() > 0
    assert 0 <= close_share(results) <= 1
    assert ratios(results).group_by("shape", "domain", "scale").agg(pl.col("ratio").min())["ratio"].unique().item() == 1
    assert CHOICE in report(results)


def test_the_committed_table_is_whole_and_holds_what_is_claimed():
    """The choice is close to the best of all algorithms on at least 90% of the combinations."""
    results = pl.read_csv(HERE / "results.csv", schema_overrides={"domain": pl.String})
    cells = results.select("shape", "domain", "scale").unique().height
    lines, planes = (len(sides) for sides in FULL.sides)
    assert cells == len(FULL.scales) * (len(LINES) * lines + len(PLANES) * planes)
    assert close_share(results) >= 0.9
    assert f"**{close_share(results):.1%}** of {cells} combinations" in (HERE / "results.md").read_text()
