"""Expected numbers of records become whole ones: exact means, small sums on the way, and no period."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import dpfast as dpf
from dpfast.synthesis.estimate import Estimate
from dpfast.testing import SeededRandom


def released(histogram: np.ndarray) -> Estimate:
    return Estimate(histogram, dpf.workloads.identity(histogram.shape), None)


@given(st.lists(st.floats(0, 50), min_size=1, max_size=40), st.integers(0, 10**7), st.integers(0, 2**32))
@settings(deadline=None, max_examples=150)
@example([2.2250738585e-313], 1, 0)
@example([5e-324, 0.0, 5e-324], 10**7, 0)
@example([1.7e308, 1.7e308, 3.0], 1000, 0)
def test_cells_and_sums_on_the_way_are_within_one(cells, n, seed):
    histogram = np.array(cells)
    counts = released(histogram).counts(n, random=SeededRandom(seed))
    assert counts.sum() == n
    assert counts.min() >= 0
    if histogram.any():
        histogram /= histogram.max()
        expected = histogram * (n / histogram.sum())
        assert (np.abs(counts - expected) < 1 + 1e-6).all()
        assert (np.abs(np.cumsum(counts) - np.cumsum(expected)) < 1 + 1e-6).all()


def test_chunks_of_cells_are_one_sequence(monkeypatch):
    histogram = np.random.default_rng(2).random(1000)
    monkeypatch.setattr("dpfast.synthesis.estimate._CHUNK", 64)
    counts = released(histogram).counts(317, random=SeededRandom(4))
    assert counts.sum() == 317
    assert (np.abs(np.cumsum(counts) - np.cumsum(histogram) * (317 / histogram.sum())) < 1 + 1e-6).all()


@pytest.mark.statistical
def test_means_are_exact_and_sums_vary_less_than_independent_roundings(seed):
    """Seven standard errors for each of 12 means and 66 sums of two: false-failure rate below 1e-9."""
    expected = np.random.default_rng(3).random(12) * 1.7
    n = 9
    expected *= n / expected.sum()
    estimate, runs = released(expected), 28_000
    source = SeededRandom(seed)
    drawn = np.array([estimate.counts(n, random=source) for _ in range(runs)]) - expected
    fraction = expected % 1
    deviation = np.sqrt(fraction * (1 - fraction))
    assert (np.abs(drawn.mean(axis=0)) < 7 * deviation / np.sqrt(runs)).all()
    products = drawn.T @ drawn / runs
    spread = 7 * np.sqrt(np.outer(deviation**2, deviation**2) + 0.25) / np.sqrt(runs)
    off = ~np.eye(12, dtype=bool)
    assert (products[off] < spread[off]).all(), "roundings of two cells are never positively correlated"


@pytest.mark.parametrize("shape", [(500, 2), (50, 4, 5), (1000, 3), (10, 10, 10, 2)])
def test_even_tables_have_no_period(shape):
    """Half a record in each cell: the columns come out even. (With one comb for all cells a column would be empty.)

    Each column's count is a sum of at least 200 negatively dependent roundings of variance 1/4 at most: beyond 8
    deviations less than once in 10**13.
    """
    counts = released(np.full(shape, 0.5)).counts(random=SeededRandom(11))
    for axis in range(len(shape)):
        along = counts.sum(axis=tuple(a for a in range(len(shape)) if a != axis))
        cells = counts.size / shape[axis]
        assert (np.abs(along - cells / 2) < 8 * np.sqrt(cells / 4) + 1).all()
