"""The fit of `dpfast.kernels.weights.replay`, written again over all cells with NumPy and a root finder of its own."""

from __future__ import annotations

import math

import numpy as np


def solve(mass: float, dual: float, value: float, softness: float) -> float:
    """Return d with mass e**d + softness (dual + d) = value, by halving."""
    if softness == 0.0:
        return math.log(value / mass)
    low, high = -200.0, 200.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if mass * math.exp(middle) + softness * (dual + middle) < value else (low, middle)
    return (low + high) / 2


def fit(queries, values, softness, start, sweeps: int):
    """Return weights and duals after fitting the rows of ``queries``, zeros and ones, in order."""
    weights, duals = start.astype(float).copy(), np.zeros(len(queries))
    for _ in range(sweeps):
        for i, query in enumerate(queries):
            step = solve(float(query @ weights), duals[i], values[i], softness[i])
            duals[i] += step
            weights *= np.exp(step * query)
    return weights, duals
