"""Right calls of the local model."""

from __future__ import annotations

import numpy as np

import dpfast as dpf

from .calls_of_mechanisms import call, method

KINDS = (
    dpf.RandomizedResponse,
    dpf.OptimizedUnaryEncoding,
    dpf.OptimizedLocalHashing,
    dpf.HadamardResponse,
    dpf.SubsetSelection,
)


def response():
    return dpf.RandomizedResponse(5, 1.0)


def hashing():
    return dpf.OptimizedLocalHashing(5, 1.0)


def hadamard():
    return dpf.HadamardResponse(5, 1.0)


def encoding():
    return dpf.OptimizedUnaryEncoding(5, 1.0)


def subset():
    return dpf.SubsetSelection(5, 1.0)


def mean():
    return dpf.BoundedMean((0, 1), 1.0)


def search():
    return dpf.HeavyHitters(8, 1.0)


def people():
    return dpf.LocalOracle([0, 1, 2], 10**6)


def queries():
    return dpf.LocalStatisticalQueries([0, 1, 2], 1.0, queries=1)


CALLS = [
    call(dpf.BoundedMean, bounds=(0, 1), epsilon=1.0),
    method(mean, "randomize", values=[0.5, 0.25]),
    method(mean, "estimate", reports=[True, False]),
    call(dpf.HeavyHitters, bits=8, epsilon=1.0),
    method(search, "randomize", values=[0, 1, 2]),
    method(search, "find", reports=[0, 1, 2]),
    method(search, "detectable", rows=10),
    call(dpf.LocalOracle, values=[0, 1, 2], epsilon=1.0),
    method(people, "ask", randomizer=response()),
    call(dpf.LocalStatisticalQueries, values=[0, 1, 2], epsilon=1.0, queries=2),
    method(queries, "answer", query=lambda rows: [0.5 for _ in rows]),
    call(dpf.statistical_query_tolerance, rows=10, epsilon=1.0),
    call(dpf.statistical_query_rows, tolerance=0.1, epsilon=1.0),
    call(dpf.randomized_response, values=[0, 1, 2], categories=3, epsilon=1.0),
    *(call(kind, categories=5, epsilon=1.0) for kind in KINDS),
    call(dpf.frequency_oracle, categories=5, epsilon=1.0),
    call(dpf.shuffled_epsilon, epsilon=1.0, rows=10, delta=1e-6),
    call(dpf.shuffled_delta, epsilon=1.0, rows=10, central_epsilon=0.5),
    call(dpf.local_epsilon, central_epsilon=1.0, rows=10, delta=1e-6),
    *(method(make, "randomize", values=[0, 1, 2]) for make in (response, hashing, hadamard, encoding, subset)),
    *(method(make, "estimate", reports=[0, 1, 2]) for make in (response, hashing, hadamard)),
    *(method(make, "estimate", reports=np.ones((3, 1), np.uint8)) for make in (encoding, subset)),
]
