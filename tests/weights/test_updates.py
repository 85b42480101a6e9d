"""Every kind of query, in both domains: updates and answers are those of the formula."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from dpfast.weights.given_queries import linear_query
from dpfast.weights.histogram_weights import Weights
from dpfast.weights.linear_queries import BitQuery, DenseQuery, LevelQuery
from dpfast.weights.log_weights import LogWeights
from dpfast.weights.query_tables import Marginal, Ranges
from dpfast.weights.slab_queries import MarginalCell

from .oracles import SHAPES, Places, answers, queries, updated

CLOSE = {"rtol": 1e-12, "atol": 1e-12}


@pytest.mark.parametrize(("kind", "size"), [(Weights, 2.0), (Weights, 0.004), (LogWeights, 2.0)])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_updates_and_answers(kind, size, shape, seed):
    """Etas of both sizes: for small ones the exponential is another."""
    generator = np.random.default_rng(seed)
    initial = generator.random(shape) + 0.01
    asked = queries(shape, generator)
    weights = kind(shape, 17.0, initial=initial)
    histogram = initial * (17.0 / initial.sum())
    for number, (query, coefficients) in enumerate(asked):
        np.testing.assert_allclose(weights.answer(query), answers(histogram, coefficients), **CLOSE)
        table = linear_query(query, shape).table
        eta = size * generator.normal(size=table or ())
        # The next query of the same kind is answered within the pass, the others after it.
        then, its = (query, coefficients) if number % 2 else asked[generator.integers(len(asked))]
        answer = weights.update(query, eta if table is not None else float(eta), then)
        histogram = updated(histogram, coefficients, eta)
        np.testing.assert_allclose(weights.histogram(), histogram, **CLOSE)
        np.testing.assert_allclose(answer, answers(histogram, its), **CLOSE)


@pytest.mark.parametrize("shape", [(501,), (7, 70), (3, 4, 5)], ids=str)
def test_coefficients_are_those_of_the_definition(shape, seed):
    for query, coefficients in queries(shape, np.random.default_rng(seed)):
        asked = linear_query(query, shape)
        dense = coefficients.dense() if isinstance(coefficients, Places) else coefficients
        expected = np.asarray(dense, float).reshape(*(asked.table or ()), *shape)
        np.testing.assert_allclose(asked.coefficients(shape), expected, rtol=1e-15)


@pytest.mark.parametrize("workers", [2, 3])
def test_results_do_not_depend_on_threads(workers, seed):
    """Bit by bit: sums are kept block by block and added in order."""
    generator = np.random.default_rng(seed)
    cells = 50_001
    initial = generator.random(cells)
    one, many = Weights(cells, initial=initial, threads=1), Weights(cells, initial=initial)
    logs, more_logs = LogWeights(cells, initial=initial, threads=1), LogWeights(cells, initial=initial)
    many._workers = more_logs._workers = workers
    for query, _ in queries((cells,), generator):
        eta = generator.normal() if linear_query(query, (cells,)).table is None else 0.01
        assert np.array_equal(one.update(query, eta, then=query), many.update(query, eta, then=query))
        logs.update(query, eta)
        more_logs.update(query, eta)
    assert np.array_equal(one.histogram(), many.histogram())
    assert np.array_equal(logs.histogram(), more_logs.histogram())


def test_ten_thousand_updates_keep_the_sum(seed):
    """Normalisation is carried over, and sums after updates of few cells are differences: neither drifts."""
    generator = np.random.default_rng(seed)
    cells = 500
    weights, logs = Weights(cells, 100.0), LogWeights(cells, 100.0)
    for _ in range(10_000):
        ends = tuple(sorted(generator.integers(0, cells + 1, 2).tolist()))
        eta = float(generator.choice([-1.0, 1.0]) * generator.exponential(2.0))
        weights.update(ends, eta)
        logs.update(ends, eta)
    assert weights.histogram().sum() == pytest.approx(100.0, rel=1e-9)
    # A cell may have fallen below the smallest float64 in between; those that count have not.
    expected = logs.histogram()
    counted = expected > 1e-30
    np.testing.assert_allclose(weights.histogram()[counted], expected[counted], rtol=1e-6)


def test_a_sum_that_nearly_vanishes_is_taken_afresh():
    """The mutant, a sum kept as old - inside + new, would be off by half here."""
    weights = Weights(3, initial=[1.0, 1.0, 1e-14])
    weights.update((0, 2), -math.log(1e16))
    np.testing.assert_allclose(weights.histogram(), np.array([1e-16, 1e-16, 1e-14]) / 1.02e-14, rtol=1e-12)


def test_the_largest_etas():
    for query in ([True, False, False], (0, 1), [1.0, 0.0, 0.0]):
        for eta in (500.0, -500.0):
            weights = Weights(3)
            weights.update(query, eta)
            weights.update(query, -eta)
            np.testing.assert_allclose(weights.histogram(), np.full(3, 1 / 3), rtol=1e-9)


@pytest.mark.parametrize("eta", [1e4, -1e4, 1e300])
def test_the_log_domain_takes_any_eta(eta):
    queries = ([1, 0, 0, 1], (0, 1), [1.0, 0.5, 0.0, 0.0], LevelQuery(np.array([255, 0, 9, 0], np.uint8)))
    for query in (*queries, BitQuery(np.array([5], np.uint8), 4), Marginal((2, 2), (1,)), Ranges([0], [3])):
        shape = (2, 2) if isinstance(query, Marginal) else (4,)
        weights = LogWeights(shape, 8.0)
        weights.update(query, eta)
        assert weights.histogram().sum() == pytest.approx(8.0)
        weights.update(query, -eta)
        np.testing.assert_allclose(weights.histogram(), np.full(shape, 2.0))


def test_cells_of_zero_stay_zero():
    for kind in (Weights, LogWeights):
        weights = kind(3, 2.0, initial=[0, 1, 1])
        weights.update([1.0, 0.5, 0.5], 3.0)
        np.testing.assert_allclose(weights.histogram(), [0.0, 1.0, 1.0])


def test_copies_are_independent_and_inputs_are_kept():
    initial = np.ones(4)
    for kind in (Weights, LogWeights):
        weights = kind(4, initial=initial)
        other = weights.copy()
        weights.update((0, 1), 2.0)
        assert np.array_equal(other.histogram(), np.full(4, 0.25))
        assert np.array_equal(initial, np.ones(4))
        assert "shape=(4,)" in repr(other)


def test_a_dense_query_borrows_its_array():
    coefficients = np.random.default_rng(1).random(10)
    assert np.shares_memory(DenseQuery(coefficients)._data, coefficients)
    assert np.shares_memory(DenseQuery(coefficients > 0.5)._data, coefficients) is False


def test_a_marginal_cell_of_no_attribute_is_every_cell():
    assert MarginalCell((2, 3), (), ()).answer(np.ones(6)) == 6.0
    assert Marginal((2, 3), ()).answer(np.ones(6)) == 6.0


def test_read_only_queries_and_polars_columns_are_read():
    coefficients = np.array([1.0, 0.5, 0.0])
    coefficients.flags.writeable = False
    for query in (coefficients, pl.Series(coefficients), pl.Series([True, False, False]), pl.Series([1, 0, 0])):
        weights = Weights(3)
        weights.update(query, 1.0)
        expected = updated(np.full(3, 1 / 3), np.asarray(query, float), 1.0)
        np.testing.assert_allclose(weights.histogram(), expected, rtol=1e-12)
