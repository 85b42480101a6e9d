"""Convolution modulo a prime against Python's integers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfast.kernels.histograms import convolution
from dpfast.strategies.exact_convolution import convolve

P = convolution.PRIME


def exact(values, coefficients):
    return [sum(int(coefficients[i - j]) * int(values[j]) for j in range(i + 1)) for i in range(len(values))]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(-(2**35), 2**35), st.integers(-(2**21), 2**21)), min_size=1, max_size=40))
def test_sums_are_exact(pairs):
    values, coefficients = (np.array(column, np.int64) for column in zip(*pairs, strict=True))
    assert convolve(values, coefficients, 2**35).tolist() == exact(values, coefficients)


@pytest.mark.parametrize("n", [1, 2, 64, 65, 1000])
def test_sums_at_the_limit_are_exact(n, seed):
    generator = np.random.default_rng(seed)
    coefficients = generator.integers(0, 2**20, n)
    limit = 2**62 // int(coefficients.sum() or 1)
    for values in (np.full(n, limit), np.full(n, -limit), generator.choice([-limit, limit], n)):
        assert convolve(values, coefficients, limit).tolist() == exact(values, coefficients)


def test_values_beyond_the_limit_are_moved_to_it():
    values = np.array([2**63 - 1, -(2**63), 7])
    assert convolve(values, np.array([1, 0, 0]), 100).tolist() == [100, -100, 7]


def test_products_of_residues_are_those_of_integers(seed):
    generator = np.random.default_rng(seed)
    edges = [0, 1, 2, 2**32 - 1, 2**32, 2**32 + 1, P // 2, P // 2 + 1, P - 2**32, P - 2, P - 1]
    one = [*edges, *(int(x) % P for x in generator.integers(0, 2**64, 1000, np.uint64, endpoint=False))]
    for other in edges + one[-20:]:
        found = np.array(one, np.uint64)
        convolution.multiply_residues(found, np.full(len(one), other, np.uint64), np.uint64(P - 1))
        assert found.tolist() == [-x * other % P for x in one]
