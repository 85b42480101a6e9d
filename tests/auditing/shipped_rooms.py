"""More that is shipped: the rooms of the local model, stability, streams, sketches and games."""

from __future__ import annotations

import numpy as np
import polars as pl

import dpfast as dpf

from .shipped import Shipped, batch

ORDERS, FEWER = ["tea"] * 8 + ["milk"] * 2, ["tea"] * 8 + ["milk"]
AGES, YOUNGER = [1, 1, 6, 6, 6], [1, 1, 6, 6]
WORTH = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
OTHERWISE = np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
#: Quartiles that one row moves far.
NARROW, WIDE = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 400.0], [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 400.0, 400.0]
TYPES, OTHER_TYPES = [0] * 9 + [1] * 3, [0] * 8 + [1] * 4
LOVERS = [[[10, 0], [0, 5]], [[5, 0], [0, 10]]]
REACTIONS = [[[1.0, 0.0], [0.5, 0.5]], [[0.0, 0.8], [0.5, 0.5]]]


def oracle(made, x=3, neighbour=0, what=""):
    name = type(made).__name__
    return batch(name, lambda given, n: made.randomize(np.full(n, given)), x, neighbour, what, quick=20_000)


def smooth(values, delta=0.05):
    return dpf.smooth_median(values, bounds=(0, 8), epsilon=1.0, **({"delta": delta} if delta else {})).value


def stable_mode(orders):
    return dpf.release_if_stable(orders, "mode", epsilon=1.0, delta=0.05).value


def density(arrivals):
    """What an intruder sees, once, and what is released."""
    seen = dpf.PanPrivateDensity(6, epsilon=1.0)
    for value in arrivals:
        seen.arrive(np.array([value]))
    return [seen.state.tolist(), seen.release()]


def count(increments, **given):
    counter = dpf.continual_count(len(increments), **(given or {"epsilon": 1.0}))
    return [counter.step(increment) for increment in increments]


def total(sums):
    counter = dpf.continual_sum(len(sums), (0, 5), epsilon=1.0)
    return [counter.step(one) for one in sums]


def gaussian_count(increments):
    return count(increments, epsilon=1.0, delta=0.05)


def sketched(values):
    data = pl.DataFrame({"x": values}, schema={"x": pl.Int64})
    sketch = dpf.distinct_sketch(data, "x", epsilon=1.0, privacy_unit="row", buckets=2, ledger=dpf.Ledger(epsilon=1.0))
    return sketch.bits.tolist()


def punished(types):
    chosen = dpf.punishing_mechanism(types, REACTIONS, epsilon=1.0)
    return [chosen.outcome, chosen.committed]


def placed(homes):
    chosen = dpf.place_facilities(homes, steps=5, epsilon=1.0)
    return [chosen.positions, chosen.committed]


def asked_twice(values):
    people = dpf.LocalOracle(values, epsilon=1.0)
    return [people.ask(dpf.RandomizedResponse(["a", "b"], epsilon)).tolist() for epsilon in (0.75, 0.25)]


def local_means(values):
    people = dpf.LocalStatisticalQueries(np.array(values), 1.0, queries=2)
    return [people.answer(lambda x: x > 1), people.answer(lambda x: x / 5)]


def central_means(values):
    oracle = dpf.StatisticalQueryOracle(np.array(values), queries=2, epsilon=1.0)
    return [oracle.ask(lambda x: x > 1), oracle.ask(lambda x: x / 5)]


def conjunction(rows):
    bits = np.array(rows)
    oracle = dpf.StatisticalQueryOracle(bits[:, :2], bits[:, 2] == 1, queries=4, epsilon=1.0)
    return [found.tolist() for found in dpf.learn_conjunction(oracle, features=2)]


def concept(labels):
    return dpf.select_concept(np.eye(3, dtype=bool), np.array(labels), epsilon=1.0)


def prefix(value, size):
    reports = SEARCH.randomize(np.full(size, value))
    parts = reports if isinstance(reports, tuple) else (reports,)
    return np.column_stack([np.asarray(part) for part in parts])


def regression(rows):
    features, target = np.array(rows)[:, :1], np.array(rows)[:, 1]
    model = dpf.LinearRegression([(0, 1)], (0, 1), epsilon=1.0).fit(features, target)
    return [float(model.coef_[0]), float(model.intercept_)]


SEARCH = dpf.HeavyHitters(bits=4, epsilon=1.0, most=2, failure=0.1)

ROOMS = [
    oracle(dpf.OptimizedLocalHashing(50, 1.0)),
    oracle(dpf.OptimizedUnaryEncoding(5, 1.0)),
    oracle(dpf.SubsetSelection(12, 1.0)),
    oracle(dpf.HadamardResponse(6, 1.0)),
    oracle(dpf.RandomizedResponse(4, 1.0)),
    oracle(dpf.RandomizedResponse(4, 1.0), 9, 0, "a value outside the list"),
    Shipped("LocalOracle", asked_twice, ["a"], ["b"], quick=1_000),
    Shipped("LocalStatisticalQueries", local_means, [0, 3, 5, 1], [4, 3, 5, 1], quick=500),
    batch("BoundedMean", lambda x, n: dpf.BoundedMean((0, 5), 1.0).randomize(np.full(n, x)), 0, 5),
    batch("HeavyHitters", prefix, 3, 12),
    Shipped("StatisticalQueryOracle", central_means, [0, 3, 5, 1], [4, 3, 5, 1], quick=500),
    Shipped("learn_conjunction", conjunction, [[0, 1, 1], [1, 1, 0]] * 2, [[0, 1, 1], [1, 1, 0], [0, 1, 1], [1, 0, 1]],
            quick=500),
    Shipped("select_concept", concept, [True, False, False], [True, True, False], quick=1_000),
    Shipped("LinearRegression", regression, [[0.0, 0.0], [1.0, 1.0], [0.5, 0.5]], [[0.0, 0.0], [1.0, 1.0]], quick=300),
    Shipped("select_equilibrium", lambda x: dpf.select_equilibrium(x, LOVERS, epsilon=1.0).actions.tolist(),
            [0, 0, 1, 1], [0, 0, 0, 1], quick=500),
    Shipped("smooth_median", smooth, AGES, YOUNGER, delta=0.05),
    Shipped("smooth_median", lambda x: smooth(x, delta=None), AGES, YOUNGER, what="Cauchy"),
    Shipped("two_outcome_vote", lambda x: dpf.two_outcome_vote(x, epsilon=1.0), WORTH, OTHERWISE, quick=2_000),
    Shipped("select_outcome", lambda x: dpf.select_outcome(x, epsilon=1.0), WORTH, OTHERWISE, quick=2_000),
    Shipped("punishing_mechanism", punished, TYPES, OTHER_TYPES, quick=500),
    Shipped("place_facilities", placed, [0.2] * 6 + [0.8] * 4, [0.2] * 5 + [0.8] * 5, quick=500),
    Shipped("release_if_stable", stable_mode, ORDERS, FEWER, delta=0.05, quick=2_000),
    Shipped("propose_test_release",
            lambda x: dpf.propose_test_release(x, "median", bound=4, bounds=(0, 8), epsilon=1.0, delta=0.05).value,
            AGES, YOUNGER, delta=0.05, quick=500),
    Shipped("release_if_subsamples_agree",
            lambda x: dpf.release_if_subsamples_agree(x, max, epsilon=1.0, delta=0.05, blocks=4, workers=0).value,
            [1] * 7 + [6], [1] * 7, delta=0.05, quick=500),
    Shipped("interquartile_scale", lambda x: dpf.interquartile_scale(x, epsilon=1.0, delta=0.05).value, NARROW, WIDE,
            delta=0.05, quick=2_000),
    Shipped("subsample_and_aggregate",
            lambda x: dpf.subsample_and_aggregate(x, np.median, blocks=2, bounds=(0, 8), epsilon=1.0, workers=0).value,
            AGES, YOUNGER, quick=500),
    Shipped("PanPrivateDensity", density, [1, 2, 1], [2], quick=500),
    Shipped("distinct_sketch", sketched, [1, 2, 3], [1, 2], quick=500),
    Shipped("continual_count", count, [1, 0, 1, 0], [1, 1, 1, 0], quick=500),
    Shipped("continual_count", gaussian_count, [1, 0, 1, 0], [1, 1, 1, 0], delta=0.05, quick=500, what="Gaussian"),
    Shipped("continual_sum", total, [5, 0, 3], [5, 5, 3], quick=500),
]  # fmt: skip
