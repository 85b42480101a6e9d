"""Marginals share their sums, their tables fit, and large workloads take little memory."""

from __future__ import annotations

import itertools
import math
import tracemalloc

import numpy as np
import pytest

import dpfast as dpf
from dpfast.workloads.marginal_tree import MarginalTree

make = dpf.workloads


@pytest.mark.parametrize("k", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("shape", [(2,) * 8, (16, 7, 2, 2, 5, 3), (1, 9, 1, 4, 1, 2), (3,) * 5])
def test_the_histogram_is_read_k_plus_1_times_at_most(k, shape):
    tree = MarginalTree(shape, list(itertools.combinations(range(len(shape)), k)))
    assert (tree.steps[:, 0] < 0).sum() <= k + 1


def test_every_table_is_made_once_and_before_it_is_used():
    shape = (2, 3, 4, 2, 3)
    marginals = [(0, 1), (1, 4), (0, 1, 2), (), (0, 1, 2, 3, 4), (0, 1), (3,)]
    tree = MarginalTree(shape, marginals)
    made = np.zeros(tree.size, int)
    for source, target, outer, size, inner in tree.steps:
        if source >= 0:
            assert (made[source : source + outer * size * inner] == 1).all()
        else:
            assert outer * size * inner == math.prod(shape)
        made[target : target + outer * inner] += 1
    assert (made == 1).all()


def test_many_pairs_take_much_less_than_a_pass_each():
    shape = (2,) * 16
    tree = MarginalTree(shape, list(itertools.combinations(range(16), 2)))
    work = sum(outer * size * inner for _, _, outer, size, inner in tree.steps.tolist())
    assert work < 3.5 * 2**16  # 120 marginals


def test_one_marginal_at_a_time():
    generator = np.random.default_rng(6)
    shape = (3, 2, 4, 2)
    workload = make.marginals(shape, k=2)
    histogram = generator.integers(0, 99, shape)
    tables = workload.split(workload.answer(histogram))
    assert len(tables) == len(workload.attributes) == 6
    coefficients = generator.normal(size=len(workload))
    spread = np.zeros(shape)
    for index, (table, own) in enumerate(zip(tables, workload.split(coefficients), strict=True)):
        one = make.marginals(shape, attributes=[workload.attributes[index]])
        assert table.shape == workload.marginal_shape(index)
        np.testing.assert_array_equal(one.answer(histogram), table.reshape(-1))
        spread += one.transposed(own.reshape(-1))
    np.testing.assert_allclose(spread, workload.transposed(coefficients), atol=1e-12)


def peak_bytes(run):
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_of_large_workloads():
    """No matrix, no index: a few arrays as large as the answers, or as the histogram."""
    histogram = np.ones(2**20)
    pairs = make.marginals((2,) * 20, k=2)
    pairs.answer(histogram)  # plans, once
    assert peak_bytes(lambda: pairs.answer(histogram)) < 2**20 * 8 / 20
    assert peak_bytes(lambda: pairs.transposed(np.ones(len(pairs)))) < 2**20 * 8 * 1.1
    ranges = make.random_ranges(2**20, 1000, seed=1)
    assert peak_bytes(lambda: ranges.answer(histogram)) < 2**20 * 8 * 1.1
    assert peak_bytes(lambda: ranges.energy(np.arange(0, 2**20 + 1, 16))) < 2**20 * 8
    product = make.kronecker(make.prefix(2**10), make.prefix(2**10))
    assert peak_bytes(lambda: product.answer(histogram)) < 2**20 * 8 * 6


def test_large_workloads_are_made_without_memory():
    assert peak_bytes(lambda: (make.prefix(2**30), make.all_range(2**15), make.identity((2,) * 30))) < 2**16
