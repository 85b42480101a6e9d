"""The square root of the prefix sums, step by step."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dpfast as dpf
from dpfast.errors import ParameterError
from dpfast.streaming.method import LARGEST_TOTAL
from dpfast.streaming.square_root import SquareRootCounter
from dpfast.testing import SeededRandom
from tests.streaming.planned import EVENT, rho, toeplitz, unit


def test_figures_have_the_declared_law():
    """Mean and variance of 20,000 counters over 12 steps; false failure below 1e-6."""
    method = SquareRootCounter(16, EVENT, rho(0.05))
    state, random = method.begin(20_000), SeededRandom(3)
    for step in range(1, 13):
        figures = state.advance(np.full(20_000, 5), LARGEST_TOTAL, random, 1)
        expected = method.variances(np.array([step]))[0]
        errors = figures - 5 * step
        assert abs(errors.mean()) < 6 * math.sqrt(expected / 20_000)
        assert abs(errors.var() / expected - 1) < 6 * math.sqrt(2 / 20_000) + 0.1 / expected


@pytest.mark.parametrize("most", [1, 2, 5, 12])
def test_norms_of_units_of_several_steps(most):
    method = SquareRootCounter(12, unit(max_steps=most), rho(0.5))
    matrix = toeplitz(method.coefficients)
    move = np.zeros(12, np.int64)
    move[:most] = 1
    assert method.event.sensitivity == pytest.approx(math.sqrt(((matrix @ move) ** 2).sum()))


def test_figures_come_from_measurements_alone():
    """Prefixes are a function of what was measured: two streams with the same measurements publish the same."""
    method = SquareRootCounter(8, EVENT, rho(0.5))
    states = [method.begin(1) for _ in range(2)]
    for step in range(5):
        for state, increments in zip(states, ([3], [4]), strict=True):
            state.advance(np.array(increments), LARGEST_TOTAL, SeededRandom(step), 1)
        states[1].arrays["measured"][...] = states[0].arrays["measured"]
    figures = []
    for state in states:
        state.arrays["increments"][...] = 0
        figures.append(state.advance(np.array([0]), LARGEST_TOTAL, SeededRandom(9), 1)[0])
    assert figures[0] == figures[1]


def test_what_would_take_too_much_is_refused():
    with pytest.raises(ParameterError, match="horizon must be at most"):
        dpf.continual_count(2**21, rho=1.0, mechanism="square_root")
    with pytest.raises(ParameterError, match="counters must be at most"):
        dpf.continual_count(2**10, rho=1.0, mechanism="square_root", counters=10**6)
