"""AHP: clusters made of noisy counts alone, and what both measurements cost."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpfast as dpf
from dpfast.errors import DataError
from dpfast.kernels.histograms.clusters import cluster_sorted
from dpfast.mechanisms.noise import integer_noise as noise
from dpfast.testing import SeededRandom


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=40), st.floats(0.1, 100))
@settings(deadline=None, max_examples=60)
def test_a_cell_joins_the_cluster_before_it_where_that_costs_less(values, price):
    ordered = np.sort(values)[::-1].copy()
    starts = np.empty(ordered.size, np.int64)
    count = cluster_sorted(ordered, price, starts)
    edges = [*starts[:count].tolist(), ordered.size]
    assert edges[0] == 0

    def squares(first: int, last: int) -> float:
        part = ordered[first:last]
        return float(((part - part.mean()) ** 2).sum())

    for place in range(1, ordered.size):
        first = max(edge for edge in edges if edge < place)
        rise = squares(first, place + 1) - squares(first, place)
        assert (place in edges) == (rise >= price) or abs(rise - price) < 1e-9


@pytest.mark.parametrize(("neighbors", "moved"), [("add_remove", 1), ("replace", 2)])
@pytest.mark.parametrize("shape", [(256,), (16, 16)])
def test_both_measurements_are_exact_and_make_the_budget(monkeypatch, neighbors, moved, shape):
    """Soundness rules 10 and 25: every cell is in one sum of each measurement, whose scales add up to epsilon."""
    drawn = []

    def recorded(values, scale, **keywords):
        drawn.append((values, scale))
        return dpf.laplace(values, scale, **keywords)

    monkeypatch.setattr(noise, "laplace", recorded)
    counts = np.repeat([3, 500, 9, 4000], 64).reshape(shape)
    estimate = dpf.ahp(counts, epsilon=0.3, neighbors=neighbors, random=SeededRandom(1))
    (cells, look), (sums, last) = drawn
    assert cells.tolist() == counts.ravel().tolist()
    assert sums.dtype == np.int64
    assert sums.sum() == counts.sum()
    assert Fraction(299, 1000) < moved / Fraction(look) + moved / Fraction(last) <= Fraction(3, 10)
    assert estimate.rounds["cells"].sum() == 256
    assert estimate.histogram.shape == shape


def test_the_clusters_come_from_noisy_counts_alone(monkeypatch):
    """Neighbours whose noisy counts agree have the same clusters, and sums that differ in the one with the cell."""
    noisy = np.arange(40) * 10

    def fixed(values, scale, **keywords):
        seen.append(values)
        return noisy if values.size == 40 else values

    monkeypatch.setattr(noise, "laplace", fixed)
    counts, more = np.arange(40), np.arange(40)
    more[7] += 1
    seen: list[np.ndarray] = []
    dpf.ahp(counts, epsilon=0.3)
    dpf.ahp(more, epsilon=0.3)
    assert np.abs(seen[1] - seen[3]).sum() == 1


def test_rho_ledgers_and_mistakes():
    ledger = dpf.Ledger(epsilon=1.0)
    dpf.ahp(np.array([-4, 2**62, 7, 7]), epsilon=0.25, ledger=ledger)
    assert ledger.spent.epsilon == 0.25
    estimate = dpf.ahp(np.full((8, 8), 10_000), rho=0.5, random=SeededRandom(1))
    assert estimate.spent.rho == 0.5
    assert abs(estimate.histogram - 10_000).max() < 20
    with pytest.raises(DataError, match="from 0 to"):
        dpf.ahp([1, -2, 3], epsilon=1.0)


@pytest.mark.statistical
def test_cells_that_stand_apart_keep_both_measurements(seed):
    """Half of the budget each, of deviation 2 sqrt(2) / epsilon; their mean has 2 / epsilon. The last alone is caught.

    The deviation of 1,000 such errors strays from 2 by 3 in 100: the bounds are eight times that.
    """
    counts, random = np.arange(200) * 100_000, SeededRandom(seed)
    off = [dpf.ahp(counts, epsilon=0.1, random=random).histogram[20:] - counts[20:] for _ in range(5)]
    assert 1.5 < 0.1 * np.std(off) < 2.5
