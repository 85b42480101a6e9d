"""Queries of signs and floats that leave directions out: strategies are found for them, or others are taken."""

from __future__ import annotations

import numpy as np
import pytest

import dpfast as dpf
from dpfast.strategies.optimal import optimal
from dpfast.testing import SeededRandom

BUDGETS = [{"rho": 0.5}, {"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6}]


def signed(seed, queries, cells):
    return np.random.default_rng(seed).integers(-1, 2, (queries, cells))


def floats(seed, queries, cells):
    return np.random.default_rng(seed).normal(size=(queries, cells))


QUERIES = {
    "signs, of low rank": signed(12, 13, 25),
    "floats, of low rank": floats(25, 7, 21),
    "few signs": signed(29, 4, 36),
    "differences of neighbours": np.eye(12, dtype=np.int64)[:-1] - np.eye(12, dtype=np.int64)[1:],
    "one difference": np.array([[1, -1, 0, 0]]),
    "one query again and again": np.repeat(floats(1, 1, 10), 9, axis=0),
    "nothing at all": np.zeros((3, 8)),
    "a cell left out": np.hstack([np.eye(7), np.zeros((7, 1))]),
    "negative throughout": -np.ones((2, 6)),
    "of very different sizes": np.vstack([1e-12 * np.eye(6), np.full((1, 6), 1e12)]),
    "far below 1": 1e-150 * floats(3, 4, 9),
}


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("name", QUERIES)
def test_answers_have_errors_that_are_finite_and_foretold(name, budget):
    rows = QUERIES[name]
    workload = dpf.workloads.matrix(rows)
    counts = np.arange(rows.shape[1])
    choice = dpf.strategies.choose(workload, **budget)
    assert np.isfinite([one.rmse for one in choice.considered]).all()
    made = dpf.matrix_mechanism(counts, workload, **budget, random=SeededRandom(1))
    assert made.rmse == choice.best.rmse
    np.testing.assert_allclose(np.square(made.scale).mean(), made.rmse**2, rtol=1e-6, atol=1e-300)
    within = made.half_width(1 - 1e-9)
    assert (np.abs(made.answers - rows @ counts) <= within * (1 + 1e-9) + 1e-9 * np.abs(rows).sum(axis=1)).all()


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("name", QUERIES)
def test_a_histogram_is_estimated_for_them(name, budget):
    rows = QUERIES[name]
    workload = dpf.workloads.matrix(rows)
    made = dpf.estimate_histogram(np.arange(rows.shape[1]), workload, **budget, random=SeededRandom(2))
    assert np.isfinite(made.histogram).all()
    np.testing.assert_allclose(made.answers, rows @ made.histogram, rtol=1e-9, atol=1e-9 * np.abs(rows).max())


def test_there_are_such_queries_that_no_search_ends_for():
    """What these tests are about: without the way out, the choice would end in this error."""
    with pytest.raises(np.linalg.LinAlgError), np.errstate(divide="ignore", invalid="ignore"):
        optimal(dpf.workloads.matrix(QUERIES["signs, of low rank"]))
