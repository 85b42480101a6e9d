"""Packing bounds: the figures of the text, and a mechanism for which they would fail if they were larger."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dpfast as dpf
from dpfast.attacks import least_epsilon, least_error, least_records
from dpfast.errors import ParameterError
from dpfast.testing import SeededRandom


def test_golden_numbers():
    """Rows 8-6, 8-8 and 8-9."""
    assert least_epsilon(101, 1000) == pytest.approx(0.0693147, abs=5e-8)
    assert least_records(101, 0.0693147) == 1000 + 1
    assert least_records(1, 1.0) == 0
    # Theorem 8.8 packs 2**s databases, s = l / 400, of sizes below s / (3 epsilon): 3 l / 1280 < l / 400.
    assert 3 / 1280 < 1 / 400
    for queries, attributes, epsilon in ((10**6, 10**4, 0.01), (10**4, 10**6, 0.001), (400, 400, 1 / 40)):
        fewer = min(queries, attributes)
        w = fewer / (1280 * epsilon)
        assert least_error(queries, attributes, epsilon) == (w / 15 if w >= 31 else 0.0)
        assert 3 * epsilon * w < fewer / 400


def test_packed_databases_cannot_be_told_apart_with_less():
    """Rows 8-6 and 8-7: of all mechanisms on m databases, any two a distance apart, the best one is known exactly.

    It names the right one with odds of exp(epsilon distance) to each other: with probability 1/2 from ln(m - 1) /
    distance on. Corollary 8.5 takes the outputs nearest to each database's own answers for its name: disjoint balls.
    """
    for bits, distance in ((1, 3), (3, 5), (8, 40), (20, 12)):
        least = least_epsilon(bits, distance)
        reached = math.log(2**bits - 1) / distance
        assert least <= reached <= least + math.log(2) / distance
        right = 1 / (1 + (2**bits - 1) * math.exp(-reached * distance))
        assert right == pytest.approx(0.5)


def test_laplace_noise_on_marginals_is_a_logarithm_above_the_bound(seed):
    """Rows 8-8 and 8-10: the largest of k errors of scale k / epsilon is k H_k / epsilon on average.

    The mean of 200 maxima has a deviation of pi / sqrt(6 * 200): 8 of them are a chance of 1e-12.
    """
    k, epsilon = 400, 1.0
    source = SeededRandom(seed)
    largest = np.abs(dpf.laplace(np.zeros(200 * k), k / epsilon, random=source)).reshape(200, k).max(axis=1)
    harmonic = math.fsum(1 / j for j in range(1, k + 1))
    assert abs(largest.mean() / k - harmonic) < 8 * math.pi / math.sqrt(6 * 200)
    # Averages are right to 1/2 where the number of records is twice that: above the bound by 2 H_k / ln 2.
    enough = 2 * k * harmonic / epsilon
    assert least_records(k, epsilon) < enough < 3 * harmonic * least_records(k, epsilon)


def test_few_cells_are_measured_in_place_of_many_queries():
    """Row 8-10: a histogram costs d ln d where d cells are fewer than k queries, and k ln k is what queries cost."""
    for cells, queries in ((8, 400), (16, 50), (256, 2000)):
        asked = dpf.workloads.random_ranges(cells, queries, seed=1)
        chosen = dpf.strategies.choose(asked, epsilon=1.0).best
        # A cell has Laplace noise of scale 1, an answer that of its cells; k answers by themselves a scale of k each.
        by_cells, by_queries = math.sqrt(2 * cells), math.sqrt(2) * queries
        assert chosen.rmse <= 1.01 * min(by_cells, by_queries)


def test_bad_parameters():
    with pytest.raises(ParameterError, match=r"^epsilon must be at most 1/40"):
        least_error(10, 10, 0.5)
