"""Right calls of noise, selections, quantiles and thresholds; of learning, weights and queries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import dpfast as dpf
from dpfast import theory
from dpfast.testing import SeededRandom

from .calls import Call

SCORES = [3, 900, 14976, 10683]


def call(function: Callable[..., Any], /, **given: Any) -> Call:
    return Call(f"{function.__module__.split('.')[1]}-{function.__qualname__}", function, lambda: given)


def method(make: Callable[[], Any], name: str, **given: Any) -> Call:
    """A method of an object that is made afresh for each call."""
    function = getattr(type(make()), name)
    return Call(f"{type(make()).__name__}.{name}", function, lambda: {"self": make(), **given})


def alarm() -> dpf.SparseVector:
    return dpf.SparseVector(300, 1.0, count=2)


def experts() -> dpf.RandomizedWeightedMajority:
    return dpf.RandomizedWeightedMajority(2, 3, eta=0.1)


def learner() -> dpf.LinearLearner:
    return dpf.LinearLearner(2, 3, epsilon=1.0)


NOISE = [call(mechanism, values=[1, 2, 3], scale=2.0) for mechanism in (dpf.laplace, dpf.gaussian)]

SELECTIONS = [
    *(
        call(mechanism, scores=SCORES, epsilon=1.0, **more)
        for mechanism, more in (
            (dpf.exponential, {}),
            (dpf.permute_and_flip, {}),
            (dpf.report_noisy_max, {}),
            (dpf.noisy_top_k, {"k": 2}),
            (dpf.noisy_max_with_gap, {}),
        )
    ),
    call(dpf.exponential_draws, scores=SCORES, epsilon=1.0, draws=3),
    call(dpf.exponential_sparse, indices=[3, 9], scores=[5, 7], domain_size=100, epsilon=1.0),
    call(dpf.selection_probabilities, scores=SCORES, epsilon=1.0),
    call(dpf.selection_error, candidates=10, epsilon=1.0),
    call(dpf.selection_miss, error=5, candidates=10, epsilon=1.0),
    call(dpf.price_revenues, bids=[100, 301], prices=[100, 301]),
    call(dpf.select_price, bids=[100, 301], prices=[100, 301], epsilon=1.0),
]

THRESHOLDS = [
    call(dpf.above_threshold, values=SCORES, threshold=300, epsilon=1.0),
    call(dpf.threshold_error, values=10, epsilon=1.0),
    call(dpf.SparseVector, threshold=300, epsilon=1.0),
    method(alarm, "test", values=SCORES),
]

QUANTILES = [
    call(dpf.quantiles, values=SCORES, q=0.5, bounds=(0, 20000), epsilon=1.0, groups=[0, 0, 1, 1], group_count=2),
    call(dpf.quantiles, values=SCORES, q=[0.25, 0.5], bounds=(0, 20000), epsilon=1.0),
]

LEARNING = [
    call(dpf.RandomizedWeightedMajority, experts=2, rounds=3, eta=0.1),
    call(dpf.RandomizedWeightedMajority, experts=2, rounds=3, epsilon=0.1),
    method(experts, "play"),
    method(experts, "update", losses=[0.0, 1.0]),
    method(experts, "run", losses=np.zeros((2, 2))),
    call(dpf.LinearLearner, features=2, examples=3, epsilon=1.0),
    method(learner, "learn", examples=np.zeros((3, 2))),
    method(learner, "excess_bound"),
    call(theory.best_eta, experts=10, rounds=100),
    call(theory.regret_bound, experts=10, rounds=100),
    call(theory.rounds_for_regret, experts=10, regret=0.1),
    call(theory.likely_regret_bound, experts=10, rounds=100, eta=0.1, beta=0.05),
    call(theory.private_regret_bound, experts=10, rounds=100, epsilon=1.0, delta=1e-6),
    call(theory.private_eta, rounds=100, epsilon=1.0, delta=1e-6),
]

RANGE = {"query": (0, 1), "eta": 1}
BOX = {"shape": (2, 3), "lower": (0, 0), "upper": (1, 1)}


def weights() -> dpf.weights.Weights:
    return dpf.weights.Weights(4)


def log_weights() -> dpf.weights.LogWeights:
    return dpf.weights.LogWeights(4)


WEIGHTS = [
    Call("multiplicative_weights", dpf.multiplicative_weights, lambda: {"weights": np.ones(4), **RANGE}),
    call(dpf.weights.Weights, shape=(2, 3)),
    call(dpf.weights.LogWeights, shape=4, total=9),
    *(
        method(make, name, **given)
        for make in (weights, log_weights)
        for name, given in (("update", {"query": [1, 0, 0, 0.5], "eta": 1.0}), ("answer", {"query": (0, 2)}))
    ),
    method(weights, "update", query=dpf.weights.Marginal((4,), (0,)), eta=[1.0] * 4),
    call(dpf.weights.DenseQuery, query=[0.5, 1.0]),
    call(dpf.weights.BitQuery, packed=np.zeros(1, np.uint8), cells=3),
    call(dpf.weights.LevelQuery, levels=np.zeros(3, np.uint8)),
    call(dpf.weights.RangeQuery, start=0, stop=2),
    call(dpf.weights.BoxQuery, **BOX),
    call(dpf.weights.MarginalCell, shape=(2, 3), attributes=(1,), values=(2,)),
    call(dpf.weights.Marginal, shape=(2, 3), attributes=(1,)),
    call(dpf.weights.Ranges, starts=[0, 1], stops=[2, 3]),
]

QUERIES = [
    call(dpf.count, column="a"),
    call(dpf.count, where=dpf.column("a") > 15),
    call(dpf.sum, column="a", bounds=(0, 1)),
    call(dpf.mean, column="a", bounds=(0, 1)),
    call(dpf.mean, column="a", bounds="auto"),
    call(dpf.mean, column="a", bounds=(0, 1), per="unit"),
    call(dpf.units),
    call(dpf.count_distinct, column="a"),
    call(dpf.top_k, column="a", k=1, candidates=["x", "y"]),
    call(dpf.histogram, column="a", edges=[0, 1, 2]),
    call(dpf.cdf, column="a", edges=[0, 1, 2]),
    call(dpf.variance, column="a", bounds=(0, 1)),
    call(dpf.std, column="a", bounds=(0, 1)),
    call(dpf.covariance, column="a", other="b", bounds=(0, 1), other_bounds=(0, 2)),
    call(dpf.proportion, of="a", above=15),
    call(dpf.proportion, of="a", equal=3),
    call(dpf.proportion, of=dpf.column("a") > 15),
    call(dpf.minimum, column="a", bounds=(0, 1)),
    call(dpf.maximum, column="a", bounds=(0, 1)),
    call(dpf.quantile, column="a", q=0.5, bounds=(0, 1)),
    call(dpf.mode, column="a", candidates=["x", "y"]),
    call(dpf.bins, column="a", edges=[0, 1, 2]),
    call(dpf.column, name="a"),
    call(dpf.calendar, column="a", part="month"),
    call(SeededRandom, seed=1),
]

CALLS: list[Call] = [*NOISE, *SELECTIONS, *THRESHOLDS, *QUANTILES, *LEARNING, *WEIGHTS, *QUERIES]
