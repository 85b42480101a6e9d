"""Every mechanism that is shipped, with two neighbouring inputs and what it claims."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

import dpfast as dpf

CELLS = dpf.workloads.prefix(4)
HISTOGRAM = np.array([3, 0, 5, 2])
MORE = np.array([3, 1, 5, 2])
MOVED = np.array([4, 0, 4, 2])
#: What is slow claims less: fewer samples can refute it if it has no noise.
LITTLE = {"epsilon": 0.25, "quick": 100}
SCORES, OTHERS = np.array([2.0, 0.0, 1.0]), np.array([3.0, -1.0, 1.0])


@dataclass(frozen=True)
class Shipped:
    """A mechanism: of ``name``, called with each of two inputs; ``quick`` samples by default, ``long`` by night."""

    name: str
    mechanism: Callable[..., Any]
    x: Any
    neighbour: Any
    epsilon: float = 1.0
    delta: float = 0.0
    quick: int = 200
    long: int = 20_000
    batched: bool = False
    what: str = ""


def many(mechanism, /, **given):
    """Return a mechanism that gives one output for each row of scores."""
    return lambda scores, size: mechanism(np.tile(scores, (size, 1)), **given)


def batch(name, mechanism, x, neighbour, what="", **given):
    return Shipped(
        name, mechanism, x, neighbour, **{"quick": 20_000, "long": 1_000_000, **given}, batched=True, what=what
    )


def with_gap(scores, size):
    return np.column_stack(dpf.noisy_max_with_gap(np.tile(scores, (size, 1)), epsilon=1.0))


def ledger(**budget):
    return dpf.Ledger(**(budget or {"epsilon": 100.0, "delta": 0.5}))


def blocks(rows, size, columns=None):
    """Return data of many groups with so many rows each, and the groups' keys: each group is an output of its own."""
    data = pl.DataFrame({"k": np.repeat(np.arange(size), rows)})
    keys = pl.DataFrame({"k": np.arange(size)})
    return data.with_columns(columns or []), keys


def repeated(columns, size):
    """Return groups that all have these rows, and what a release is told of them.

    One release draws for each group what it would draw for the rows alone: as many outputs as there are groups.
    """
    frame = pl.DataFrame(columns)
    places = np.tile(np.arange(frame.height), size)
    groups = pl.Series("k", np.repeat(np.arange(size), frame.height))
    told = {"by": "k", "keys": pl.DataFrame({"k": np.arange(size)}), "epsilon": 1.0, "ledger": ledger()}
    return frame[places].with_columns(groups), told


def release_count(rows, size, **given):
    data, keys = blocks(rows, size)
    return (
        dpf.release(data, "k", keys=keys, n=dpf.count(), ledger=ledger(), privacy_unit="row", **given)
        .frame["n"]
        .to_numpy()
    )


def release_sum_and_mean(value, size):
    # So many rows that the noise leaves something of every group: what is shown of it is its own, and all are samples.
    data, keys = blocks(80, size, [pl.lit(5.0).alias("x")])
    if value is not None:
        more = pl.DataFrame({"k": np.arange(size), "x": np.full(size, value)})
        data = pl.concat([data, more.cast(data.schema)])
    asked = {"s": dpf.sum("x", bounds=(0, 10)), "m": dpf.mean("x", bounds=(0, 10))}
    return dpf.release(data, "k", keys=keys, epsilon=1.0, ledger=ledger(), privacy_unit="row", **asked).frame.select(
        "s", "m"
    )


def release_keys(rows):
    data = pl.DataFrame({"k": ["a"] * 40 + ["b"] * rows})
    return dpf.release(
        data, "k", n=dpf.count(), privacy_unit="row", epsilon=1.0, delta=0.05, ledger=ledger()
    ).frame.select("k", "n")


def release_quantile_and_mode(values, size):
    data, told = repeated({"x": values}, size)
    asked = {"q": dpf.quantile("x", 0.5, bounds=(0, 8), grid=1), "m": dpf.mode("x", candidates=[0, 1, 2])}
    return dpf.release(data, privacy_unit="row", **told, **asked).frame.select("q", "m")


def release_spreads(values, size):
    data, told = repeated({"x": values}, size)
    asked = {
        "v": dpf.variance("x", bounds=(0, 8)),
        "c": dpf.covariance("x", "x", bounds=(0, 8), other_bounds=(-1, 1)),
        "p": dpf.proportion("x", above=5),
        "d": dpf.units(),
    }
    return dpf.release(data, privacy_unit="row", **told, **asked).frame.select("v", "c", "p", "d")


def release_chosen_bounds(values):
    data = pl.DataFrame({"a": pl.Series(values, dtype=pl.Float64)})
    asked = {"m": dpf.mean("a", bounds="auto"), "s": dpf.sum("a", bounds="auto")}
    release = dpf.release(data, epsilon=0.25, ledger=ledger(), privacy_unit="row", **asked)
    return release.frame.with_columns(low=pl.lit(release.chosen["m"][0]), high=pl.lit(release.chosen["m"][1])).select(
        "m", "s", "low", "high"
    )


def release_of_units(rows, size):
    """Of rows of two units: their sums, clipped, and their mean; one unit with many rows is there or not."""
    data, told = repeated({"u": [1] * rows + [2, 2], "x": [2.0] * rows + [-1.0, 0.5]}, size)
    data = data.with_columns(u=10 * pl.col("k") + pl.col("u"))
    asked = {"s": dpf.sum("x", unit_bounds=(-3, 5)), "m": dpf.mean("x", bounds=(-2, 2), per="unit")}
    return dpf.release(data, privacy_unit="u", max_groups=1, **told, **asked).frame.select("s", "m")


def release_distributions(values, size):
    data, told = repeated({"x": values}, size)
    asked = {
        "h": dpf.histogram("x", [0, 2, 4, 8]),
        "c": dpf.cdf("x", [1, 5]),
        "n": dpf.count_distinct("x"),
        "t": dpf.top_k("x", 2, candidates=[0, 1, 6]),
    }
    frame = dpf.release(data, privacy_unit="row", **told, **asked).frame
    return np.column_stack([np.array(frame[name].to_list()) for name in "hctn"])


def release_chosen_limits(rows):
    # What is chosen is an output as well: a unit of many rows in many groups comes to one of two alike.
    data = pl.DataFrame({"u": [1, 1, 2, 2, *[3] * rows], "k": ["a", "b", "a", "b", *"abc" * (rows // 3)]})
    asked = {"n": dpf.count(), "keys": pl.DataFrame({"k": ["a", "b", "c"]}), "mechanism": "laplace"}
    limits = {"privacy_unit": "u", "max_groups": "auto", "max_rows_per_group": "auto"}
    released = dpf.release(data, "k", epsilon=0.25, ledger=ledger(), **limits, **asked)
    return [*released.chosen.values(), *released.frame["n"]]


def release_found_values(rows, size):
    data, told = repeated({"x": ["a"] * 20 + ["b"] * rows}, size)
    frame = dpf.release(data, privacy_unit="row", delta=0.05, t=dpf.top_k("x", 2), **told).frame
    return [[*values, *counts] for values, counts in frame.select("t", "t_count").iter_rows()]


def synthesized(values):
    domain = dpf.Domain({"x": ["a", "b", "c"]})
    data = pl.DataFrame({"x": values}, schema={"x": pl.String})
    return dpf.synthesize(data, domain, epsilon=0.25, rows=20, rounds=1, ledger=ledger()).frame["x"].sort()


def proposed_bins(values):
    data = pl.DataFrame({"x": values})
    found = dpf.propose_domain(data, ledger=ledger(), epsilon=1.0, bins=2, bounds={"x": (0, 8)})
    return pl.Series(found.attributes["x"].edges).cut([0.5, 2.5, 4.5, 6.5]).to_physical()


def synthesized_model(values):
    domain = dpf.Domain({"x": ["a", "b", "c"], "y": 2, "z": 2})
    data = pl.DataFrame({"x": values, "y": 1, "z": 0}, schema={"x": pl.String, "y": pl.Int64, "z": pl.Int64})
    sets = [("x", "y"), ("y", "z"), ("x", "z")]
    made = dpf.synthesize(data, domain, sets, epsilon=0.25, rows=20, rounds=2, ledger=ledger())
    return [*made.estimate.marginal(["x", "y"]).reshape(-1), *made.estimate.rounds["columns"].list.join("")]


def measured_marginals(values):
    domain = dpf.Domain({"x": ["a", "b", "c"], "y": 2})
    data = pl.DataFrame({"x": values, "y": 1}, schema={"x": pl.String, "y": pl.Int64})
    made = dpf.release_marginals(data, domain, epsilon=1.0, delta=0.05, ledger=dpf.Ledger(epsilon=1, delta=0.05))
    return made.marginal(["x", "y"]).reshape(-1)


def answered(counts):
    table = pl.DataFrame({"n": list(counts), "epsilon": [0.5, 0.25, 0.125, 0.125]})
    return dpf.answer(table, value="n", epsilon="epsilon", ledger=ledger())["answer"]


def sparse_vector(values):
    alarm = dpf.SparseVector(0.0, 1.0, count=2)
    return [alarm.test(values[:2]).tolist(), alarm.test(values[2:]).tolist(), alarm.remaining]


def online_weights(histogram):
    online = dpf.PrivateMultiplicativeWeights(histogram, epsilon=1.0, updates=2)
    asked = [online.answer(query) for query in ([1, 0, 0, 0], [0, 1, 1, 0], [1, 1, 0, 0])]
    return [(one.source, float(one.value)) for one in asked]


def experts(losses):
    """One round's losses are replaced: with eta = 1/20, 10 rounds are Repeated(ExponentialMechanism(2 eta), 10)."""
    return dpf.RandomizedWeightedMajority(3, 10, eta=0.05).run(losses).tolist()


LOSSES = np.tile([0.0, 1.0, 0.5], (10, 1))
OTHER_LOSSES = np.concatenate([[[1.0, 0.0, 1.0]], LOSSES[1:]])
LEARNED = np.tile([0.5, -0.9, 0.1], (20, 1))
OTHER_LEARNED = np.concatenate([[[-1.0, 1.0, -1.0]], LEARNED[1:]])
VALUES = np.array([0.0, 0.0, 1.0, 0.0, 2.0])
OTHER_VALUES = np.array([1.0, 1.0, 0.0, 1.0, 1.0])


def fitted(function, **given):
    return lambda histogram: function(histogram, CELLS, epsilon=1.0, **given).answers


SHIPPED = [
    batch("laplace", lambda x, n: dpf.laplace(np.full(n, x), 2.0), 3, 4, "integers", epsilon=0.5),
    batch("laplace", lambda x, n: dpf.laplace(np.full(n, x), 1.0), 0.0, 1.0, "floats"),
    batch("laplace", lambda x, n: dpf.laplace(np.full(n, x), 1.0), 0.1, 1.1, "floats of other bits"),
    batch("laplace", lambda x, n: dpf.laplace(np.full(n, x), 1e-3), 1.0, 1.001, "small floats"),
    batch("laplace", lambda x, n: dpf.laplace(np.full(n, x, np.float32), 1.0), 0.25, 1.25, "float32"),
    batch("laplace", lambda x, n: dpf.laplace(np.tile(x, (n, 1)), 1.0), [3, 0, 5], [3, 1, 5], "several counts"),
    # sigma 3.7306316 is (1, 1e-5); with delta as large as .01 it can be seen.
    batch("gaussian", lambda x, n: dpf.gaussian(np.full(n, x), 1.8786155), 0.0, 1.0, "floats", delta=0.01),
    batch("gaussian", lambda x, n: dpf.gaussian(np.full(n, x), 1.8786155), 7, 8, "integers", delta=0.01),
    batch("randomized_response", lambda x, n: dpf.randomized_response(np.full(n, x), 3, 1.0), 0, 2),
    batch(
        "randomized_response",
        lambda x, n: dpf.randomized_response([x] * n, ["a", "b"], 1.0),
        "a",
        None,
        "nulls",
        quick=20_000,
        long=200_000,
    ),
    batch("exponential", many(dpf.exponential, epsilon=1.0), SCORES, OTHERS),
    batch("permute_and_flip", many(dpf.permute_and_flip, epsilon=1.0), SCORES, OTHERS),
    batch("report_noisy_max", many(dpf.report_noisy_max, epsilon=1.0), SCORES, OTHERS),
    batch("noisy_top_k", many(dpf.noisy_top_k, k=2, epsilon=1.0), SCORES, OTHERS),
    batch("noisy_max_with_gap", with_gap, SCORES, OTHERS),
    batch(
        "exponential",
        many(dpf.exponential, epsilon=1.0, monotonic=True),
        SCORES,
        np.array([2.0, 1.0, 2.0]),
        "monotonic",
    ),
    batch("exponential_draws", lambda x, n: dpf.exponential_draws(x, epsilon=1.0, draws=n), SCORES, OTHERS),
    Shipped(
        "exponential_sparse", lambda x: dpf.exponential_sparse([2, 5], x, 9, 1.0), [3.0, 0.0], [2.0, 1.0], quick=4_000
    ),
    Shipped(
        "select_price", lambda x: dpf.select_price(x, [1, 2, 3], epsilon=3.0), [3, 1, 2], [1, 1, 2], 3.0, quick=2_000
    ),
    Shipped(
        "quantiles",
        lambda x: dpf.quantiles(x, 0.5, bounds=(0, 8), epsilon=1.0, grid=1),
        [1, 1, 6],
        [1, 6, 6, 6][:2],
        quick=2_000,
    ),
    Shipped(
        "quantiles",
        lambda x: dpf.quantiles(x, [0.25, 0.75], bounds=(0, 8), epsilon=1.0, grid=1),
        [1, 1, 6],
        [1, 6],
        quick=1_000,
        what="two",
    ),
    Shipped(
        "above_threshold",
        lambda x: dpf.above_threshold(x, 0.0, 1.0, count=2).tolist(),
        VALUES,
        OTHER_VALUES,
        quick=3_000,
    ),
    Shipped("SparseVector", sparse_vector, VALUES, OTHER_VALUES, quick=2_000),
    batch("release", lambda x, n: release_count(x, n, epsilon=1.0), 4, 5, "counts", quick=20_000, long=1_000_000),
    batch(
        "release",
        lambda x, n: release_count(x, n, epsilon=1.0, delta=0.01, mechanism="gaussian"),
        4,
        5,
        "Gaussian counts",
        delta=0.01,
        quick=20_000,
        long=1_000_000,
    ),
    batch("release", release_sum_and_mean, None, 10.0, "sums and means", quick=20_000, long=100_000),
    Shipped("release", release_keys, 8, 9, 1.0, 0.05, what="selected keys", quick=150),
    Shipped("release", release_chosen_bounds, [40.0] * 400, [40.0] * 400 + [1e6], what="chosen bounds", **LITTLE),
    batch("release", release_quantile_and_mode, [1, 1, 6], [1, 6], "quantiles and modes", quick=4_000),
    batch("release", release_spreads, [1.0, 6.0], [1.0], "spreads, proportions and units", quick=4_000),
    batch("release", release_of_units, 0, 9, "sums and means of units", quick=4_000),
    batch("release", release_distributions, [1, 1, 6], [1, 6], "distributions and values", quick=4_000),
    batch("release", release_found_values, 1, 0, "values found in the data", delta=0.05, quick=4_000, long=200_000),
    Shipped("release", release_chosen_limits, 30, 0, what="limits that are chosen", **LITTLE),
    Shipped("synthesize", synthesized, ["a", "a", "b"], ["a", "b"], long=2_000, **LITTLE),
    Shipped("propose_domain", proposed_bins, [1, 1, 6], [1, 6], quick=150, long=2_000),
    Shipped("synthesize", synthesized_model, ["a"] * 9 + ["b"], ["a"] * 9, what="models", long=2_000, **LITTLE),
    Shipped("release_marginals", measured_marginals, ["a", "a", "b"], ["a", "b"], delta=0.05, quick=150, long=2_000),
    Shipped("answer", answered, HISTOGRAM, MORE, quick=150),
    Shipped("matrix_mechanism", fitted(dpf.matrix_mechanism), HISTOGRAM, MORE),
    Shipped("matrix_mechanism", fitted(dpf.matrix_mechanism, delta=0.05), HISTOGRAM, MORE, delta=0.05, what="Gaussian"),
    Shipped("estimate_histogram", fitted(dpf.estimate_histogram), HISTOGRAM, MORE),
    Shipped("adaptive_hierarchy", fitted(dpf.adaptive_hierarchy), HISTOGRAM, MORE),
    Shipped("ahp", fitted(dpf.ahp), HISTOGRAM, MORE),
    Shipped("dawa", fitted(dpf.dawa), HISTOGRAM, MORE),
    Shipped("mwem", fitted(dpf.mwem, rounds=2), HISTOGRAM, MORE, long=5_000),
    Shipped("mwem", fitted(dpf.mwem, rounds=2, neighbors="replace"), HISTOGRAM, MOVED, long=5_000, what="replace"),
    Shipped("projection_mechanism", fitted(dpf.projection_mechanism, neighbors="replace"), HISTOGRAM, MOVED),
    Shipped(
        "boost_queries",
        fitted(dpf.boost_queries, delta=0.05, rounds=2, samples=4),
        HISTOGRAM,
        MORE,
        delta=0.05,
        quick=150,
        long=3_000,
    ),
    Shipped("PrivateMultiplicativeWeights", online_weights, HISTOGRAM, MOVED, long=5_000),
    Shipped("RandomizedWeightedMajority", experts, LOSSES, OTHER_LOSSES, quick=1_000),
    Shipped(
        "LinearLearner",
        lambda data: dpf.LinearLearner(3, 20, epsilon=1.0, delta=0.05).learn(data),
        LEARNED,
        OTHER_LEARNED,
        delta=0.05,
        quick=500,
    ),
]

#: Public names that let nothing out of data: what describes a question, reads what is public, or audits.
NO_MECHANISM = {
    "Domain", "Ledger", "audit", "audit_law", "audit_one_run", "bins", "calendar", "cdf", "column", "count",
    "count_distinct", "covariance", "fit_marginals", "frequency_oracle", "histogram", "local_epsilon", "maximum",
    "mean",
    "merge_sketches", "minimum", "mode", "multiplicative_weights", "plan", "plan_marginals",
    "plan_synthesis", "preview",
    "price_revenues",
    "project_answers", "proportion", "quantile", "restore_counter", "selection_error", "selection_miss",
    "selection_probabilities", "shuffled_delta", "shuffled_epsilon", "sql", "statistical_query_rows",
    "statistical_query_tolerance", "std", "sum", "threshold_error", "top_k", "units", "variance", "vcg_payments",
}  # fmt: skip
