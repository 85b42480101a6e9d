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


CALLS = [
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
