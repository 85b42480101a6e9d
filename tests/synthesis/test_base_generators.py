"""Base generators against plain searches, and workloads of sampled queries."""

from __future__ import annotations

import builtins
import itertools

import numpy as np
import pytest

import dpfast as dpf
from dpfast.errors import ParameterError
from dpfast.synthesis.fitted.base_generators import (
    fit_by_linear_program,
    fit_by_projection,
    fit_by_search,
    round_to_multiples,
)
from dpfast.synthesis.fitted.sampled import Sampled

from .dense import Dense


def test_the_search_finds_the_first_list_of_all(seed):
    """Theorem 6.6: over all lists of cells, sorted or not. Row 6-11."""
    generator = np.random.default_rng(seed)
    found_none = 0
    for _ in range(60):
        queries, cells, records = generator.integers(1, 6), generator.integers(1, 5), int(generator.integers(0, 5))
        matrix = generator.random((queries, cells))
        truth = matrix[:, generator.integers(0, cells, records)].sum(axis=1)
        noisy = truth + generator.normal(0, 0.3, queries)
        accuracy = generator.choice([0.2, 1.0, 5.0])
        fitted = fit_by_search(Dense(matrix), noisy, float(records), accuracy)
        for places in itertools.product(range(cells), repeat=records):
            answers = matrix[:, list(places)].sum(axis=1)
            if (np.abs(answers - noisy) <= accuracy / 2).all():
                assert fitted.tolist() == np.bincount(np.array(places, int), minlength=cells).tolist()
                break
        else:
            found_none += 1
            assert fitted is None
    assert found_none < 60


def test_the_linear_program_is_never_farther_than_the_true_histogram(seed):
    """Theorem 6.7: the true one is feasible with the largest noise, so answers are within twice that of the truth."""
    generator = np.random.default_rng(seed)
    for _ in range(10):
        matrix = generator.random((15, 40))
        counts = generator.multinomial(1000, generator.dirichlet(np.ones(40)))
        noise = generator.laplace(0, 5.0, 15)
        fitted = fit_by_linear_program(Dense(matrix), matrix @ counts + noise, 1000.0)
        largest = np.abs(noise).max()
        assert fitted.min() >= 0
        assert fitted.sum() == pytest.approx(1000)
        assert np.abs(matrix @ fitted - matrix @ counts - noise).max() <= largest * (1 + 1e-6)
        assert np.abs(matrix @ (fitted - counts)).max() <= 2 * largest * (1 + 1e-6)
        nearest = fit_by_projection(Dense(matrix), matrix @ counts + noise, 1000.0, 0.1)
        away = [np.square(matrix @ (y - counts) - noise).mean() for y in (nearest, fitted)]
        assert away[0] <= away[1] * (1 + 1e-6) + 1e-3
        worst = [np.abs(matrix @ (y - counts) - noise).max() for y in (nearest, fitted)]
        assert worst[1] <= worst[0] * (1 + 1e-6) + 1e-6


def test_a_slack_above_the_accuracy_is_none():
    noisy = np.array([0.0, 10.0, 3.0])
    workload = Dense(np.eye(3))
    assert fit_by_linear_program(workload, noisy, 13.0, 0.5) is not None
    assert fit_by_linear_program(workload, noisy, 20.0, 0.5) is None
    assert fit_by_linear_program(workload, noisy, 0.0).tolist() == [0, 0, 0]


def test_without_scipy_the_error_says_what_to_install(monkeypatch):
    plain = builtins.__import__

    def refuse(name, *rest):
        if name.startswith("scipy"):
            raise ImportError(name)
        return plain(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ParameterError, match=r"run pip install 'dpfast\[synthesis\]'"):
        fit_by_linear_program(Dense(np.eye(2)), np.ones(2), 2.0)
    with pytest.raises(ParameterError, match=r"run pip install 'dpfast\[synthesis\]'"):
        dpf.boost_queries([1, 2], dpf.workloads.prefix(2), epsilon=1.0, generator="linear")


def test_rounding_moves_no_query_by_more_than_the_accuracy(seed):
    """Theorem 6.7 as it should read: each share by less than accuracy / cells, each query by less than the accuracy.

    Row 6-13.
    """
    generator = np.random.default_rng(seed)
    for accuracy in (1.0, 0.3, 0.01):
        shares = generator.dirichlet(np.full(30, 0.2))
        rounded = round_to_multiples(shares * 700, accuracy)
        moved = shares - rounded * (accuracy / 30)
        assert rounded.dtype == np.int64
        assert moved.min() > -1e-9
        assert moved.max() < accuracy / 30 * (1 + 1e-9)
        assert moved.sum() < accuracy
        assert rounded.sum() <= 30 / accuracy
    for wrong in ([-1.0, 2.0], [0.0, 0.0], [np.nan, 1.0], []):
        with pytest.raises(ParameterError, match="histogram must be"):
            round_to_multiples(wrong, 0.1)
    with pytest.raises(ParameterError, match="accuracy must be"):
        round_to_multiples([1.0], 0.0)


def test_sampled_queries_are_rows_of_the_matrix(seed):
    generator = np.random.default_rng(seed)
    workload = dpf.workloads.marginals((2, 3, 2), k=2)
    chosen = generator.integers(0, len(workload), 9)
    sampled, matrix = Sampled(workload, chosen), workload.rows(0, len(workload))[chosen]
    counts, weights = generator.integers(0, 9, 12), generator.normal(0, 1, 9)
    assert np.array_equal(sampled.rows(0, 9), matrix)
    assert np.array_equal(sampled.rows(3, 5), matrix[3:5])
    assert np.array_equal(sampled.answer(counts), matrix @ counts)
    assert np.allclose(sampled.transposed(weights).ravel(), matrix.T @ weights)
    assert (len(sampled), sampled.binary, sampled.range, sampled.shape) == (9, True, workload.range, (2, 3, 2))
    assert sampled.frame().height == 9
    assert sampled.rows(0, 0).shape == (0, 12)
