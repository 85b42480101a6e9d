"""AHP: clusters made of noisy counts alone, and what both measurements cost."""

from __future__ import annotations

import itertools
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


def clustered(ordered: np.ndarray, price: float) -> list[int]:
    """Return where clusters begin and end."""
    scratch, places = [np.empty(ordered.size + 1) for _ in range(3)], np.empty((3, ordered.size + 1), np.int64)
    count = cluster_sorted(ordered, price, *scratch, *places)
    edges = [ordered.size]
    while edges[0]:
        edges.insert(0, int(places[0][edges[0]]))
    assert len(edges) == count + 1
    return edges


def cost(ordered: np.ndarray, first: int, last: int, price: float) -> float:
    part = ordered[first:last]
    return float(((part - part.mean()) ** 2).sum()) + price / (last - first)


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=40), st.floats(0.1, 1000))
@settings(deadline=None, max_examples=100)
def test_clusters_are_those_of_least_cost_of_all_cuts(values, price):
    ordered = np.sort(values)[::-1].copy()
    least = [0.0]
    for end in range(1, ordered.size + 1):
        least.append(min(least[start] + cost(ordered, start, end, price) for start in range(end)))
    edges = clustered(ordered, price)
    found = sum(cost(ordered, first, last, price) for first, last in itertools.pairwise(edges))
    assert found == pytest.approx(least[-1], rel=1e-9, abs=1e-6)


def test_large_counts_lose_no_digits_and_equal_ones_are_one_cluster():
    values = np.repeat([2.0**52, 2.0**52 - 64.0, 0.5], [3, 2, 1])
    assert clustered(values, 2.0) == [0, 3, 5, 6]
    assert clustered(np.full(1000, 7.0), 1e-9) == [0, 1000]
    assert clustered(np.zeros(0), 1.0) == [0]


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
    """Three quarters and a quarter of the budget, deviations 4 / 3 and 4 times sqrt(2) / epsilon: the mean has 1.79.

    The last measurement alone would fail. The deviation of 1,000 such errors strays by 3 in 100: the bounds are eight
    times that.
    """
    counts, random = np.arange(200) * 100_000, SeededRandom(seed)
    off = [dpf.ahp(counts, epsilon=0.1, random=random).histogram[20:] - counts[20:] for _ in range(5)]
    assert 1.35 < 0.1 * np.std(off) < 2.25
