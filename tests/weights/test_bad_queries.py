"""Queries and weights that cannot be: a one-line error that names the argument."""

from __future__ import annotations

import numpy as np
import pytest

from dpfast.errors import ParameterError
from dpfast.weights.histogram_weights import Weights
from dpfast.weights.linear_queries import BitQuery, DenseQuery, LevelQuery
from dpfast.weights.log_weights import LogWeights
from dpfast.weights.query_tables import Marginal, Ranges
from dpfast.weights.slab_queries import BoxQuery, MarginalCell


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: DenseQuery(np.array([0.5, np.nan], np.float32)), "query"),
        (lambda: BitQuery(np.zeros(3, np.uint8), 8), "packed"),
        (lambda: BitQuery(np.zeros(8), 64), "packed"),
        (lambda: LevelQuery(np.array([0, 3], np.uint8), [0.0, 1.0, 0.5]), "levels"),
        (lambda: BoxQuery((2, 3), (0,), (1, 1)), "lower"),
        (lambda: BoxQuery((2, 3), (0, 2), (2, 1)), "upper"),
        (lambda: BoxQuery((2, 3), (0, 0), (2, 4)), "upper"),
        (lambda: BoxQuery((2, 0), (0, 0), (2, 0)), "shape"),
        (lambda: MarginalCell((2, 3), (1, 0), (0, 0)), "attributes"),
        (lambda: MarginalCell((2, 3), (2,), (0,)), "attributes"),
        (lambda: MarginalCell((2, 3), (1,), (3,)), "values"),
        (lambda: MarginalCell((2, 3), (1,), (-1,)), "values"),
        (lambda: Marginal((2, 3), (0, 0)), "attributes"),
        (lambda: Ranges([0], [1, 2]), "stops"),
        (lambda: Ranges([2], [1]), "stops"),
        (lambda: Weights(3, initial=[1.0, 1.0]), "initial"),
        (lambda: Weights(3, initial=[1.0, -1.0, 3.0]), "initial"),
        (lambda: LogWeights(3, initial=[0, 0, 0]), "initial"),
    ],
)
def test_it_is_refused(make, argument):
    with pytest.raises(ParameterError) as caught:
        make()
    assert caught.value.argument == argument
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", [Weights, LogWeights])
def test_an_update_that_is_refused_changes_nothing(kind):
    weights = kind((2, 3))
    before = weights.histogram()
    for query, eta in [
        (np.ones(5), 1.0),
        (np.ones((3, 2)), 1.0),
        (np.full(6, 2), 1.0),
        ((0, 7), 1.0),
        (BoxQuery((3, 2), (0, 0), (1, 1)), 1.0),
        (Marginal((3, 2), (0,)), 1.0),
        (Marginal((2, 3), (0,)), [1.0, 2.0, 3.0]),
        (Marginal((2, 3), (0,)), [1.0, np.nan]),
        (Ranges([0], [7]), 1.0),
        (np.ones(6), np.nan),
        (np.ones(6), np.inf),
        (np.ones(6), "much"),
    ]:
        with pytest.raises(ParameterError):
            weights.update(query, eta)
    with pytest.raises(ParameterError):
        weights.update((0, 1), 1.0, then=(0, 7))
    assert np.array_equal(before, weights.histogram())


def test_etas_that_add_up_to_too_much():
    weights = Weights(3)
    with pytest.raises(ParameterError, match="LogWeights"):
        weights.update(Ranges([0, 0], [2, 2]), 300.0)
    assert np.array_equal(weights.histogram(), np.full(3, 1 / 3))
