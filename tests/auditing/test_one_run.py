"""Auditing with one run: the paper's numbers, laws by enumeration, and runs that are and are not private."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

import dpfast as dpf
from dpfast.auditing import one_run_epsilon, one_run_p_value
from dpfast.errors import ParameterError
from dpfast.testing import SeededRandom

from .mechanisms import noise


@pytest.mark.parametrize(
    ("counts", "published"), [((1000, 100, 75, 1e-4), 0.673), ((100_000, 1510, 1439, 1e-5), 2.675)]
)
def test_the_papers_numbers(counts, published):
    """Steinke, Nasr, Jagielski (2023), appendix D and section 7, at confidence .95."""
    assert one_run_epsilon(*counts) == pytest.approx(published, abs=1e-3)


def by_the_paper(m, r, v, epsilon, delta):
    """Corollary 5.4, in floats."""
    right = 1 / (1 + math.exp(-epsilon))
    tails = [binom.sf(v - i - 1, r, right) for i in range(v + 1)]
    return tails[0] + 2 * m * delta * max(((tail - tails[0]) / i for i, tail in enumerate(tails) if i), default=0.0)


@pytest.mark.parametrize("delta", [0.0, 1e-6, 1e-3])
@pytest.mark.parametrize(("r", "v"), [(100, 75), (100, 100), (40, 3), (40, 0), (200, 140)])
def test_p_values_are_the_papers(r, v, delta):
    for epsilon in (0.0, 0.3, 1.0, 4.0):
        expected = min(1.0, by_the_paper(400, r, v, epsilon, delta))
        assert one_run_p_value(400, r, v, epsilon, delta) == pytest.approx(expected, rel=1e-9)


def test_p_values_rise_with_epsilon_and_delta():
    """Also where 2 m delta is above 1, where the paper's formula need not."""
    for m, delta in ((50, 1e-3), (50, 0.02), (50, 0.2), (500, 0.02)):
        values = [one_run_p_value(m, 40, 36, epsilon, delta) for epsilon in np.linspace(0, 6, 61)]
        assert values == sorted(values)
        assert all(value >= min(1, by_the_paper(m, 40, 36, e, delta)) - 1e-9 for value, e in
                   zip(values, np.linspace(0, 6, 61), strict=True))  # fmt: skip
    rising = [one_run_p_value(100, 40, 36, 0.5, delta) for delta in np.linspace(0, 0.1, 21)]
    assert rising == sorted(rising)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 2.5])
def test_randomized_response_reaches_the_bound(epsilon):
    """By enumeration: guesses that follow it are right as often as the bound allows, with delta = 0."""
    right = math.exp(epsilon) / (1 + math.exp(epsilon))
    chances = [math.prod(right if hit else 1 - right for hit in hits) for hits in itertools.product((0, 1), repeat=8)]
    counts = [sum(hits) for hits in itertools.product((0, 1), repeat=8)]
    for v in range(9):
        exact = sum(chance for chance, count in zip(chances, counts, strict=True) if count >= v)
        assert one_run_p_value(8, 8, v, epsilon) == pytest.approx(exact, rel=1e-9)


def test_a_mechanism_that_shows_everybody_with_probability_delta_stays_below_the_bound():
    """By hand: everything is shown with probability delta, and coins are thrown otherwise."""
    for m, delta in ((10, 0.01), (20, 0.001)):
        for v in range(m + 1):
            exact = delta + (1 - delta) * binom.sf(v - 1, m, 0.5)
            assert exact <= one_run_p_value(m, m, v, 0.0, delta) * (1 + 1e-9)


def histogram(scale, size):
    return lambda people: np.bincount(people, minlength=size) + noise(size, scale)


def own_cell(counts, person):
    return float(counts[person])


PEOPLE = 3000


@pytest.mark.statistical
@pytest.mark.parametrize("guesses", [None, 1050, PEOPLE])
def test_a_private_histogram_passes_and_too_small_a_claim_is_refuted(guesses, seed):
    """False-failure rate 1e-9 each.

    Each cell has Laplace noise of scale 1. So 1,050 guesses about the highest and lowest cells are right with
    probability e / (1 + e): 767 of them, with a deviation of 14. 651 show .1 with confidence 1 - 1e-9, and 643 refute
    .15 with confidence 1 - 1e-6: more than 8 deviations away.
    """
    found = dpf.audit_one_run(
        histogram(1.0, PEOPLE),
        range(PEOPLE),
        own_cell,
        1.0,
        guesses=guesses,
        confidence=1 - 1e-9,
        random=SeededRandom(seed),
    )
    print(found.explain())
    assert found.passed
    assert 0.1 < found.epsilon_lower <= 1.0
    half = dpf.audit_one_run(
        histogram(1.0, PEOPLE), range(PEOPLE), own_cell, 0.15, guesses=guesses, random=SeededRandom(seed + 1)
    )
    assert not half.passed
    assert half.p_value < 1e-6
    assert half.delta_lower > 0


@pytest.mark.statistical
def test_no_noise_is_refuted(seed):
    """250 right guesses of 250, which half of the canaries always give, refute an epsilon of 2.75."""
    found = dpf.audit_one_run(
        lambda people: set(people), list(range(500)), lambda out, one: float(one in out), 2.0, 1e-10,
        random=SeededRandom(seed),
    )  # fmt: skip
    assert not found.passed
    assert found.correct > 0.9 * found.guesses
    assert found.epsilon_lower > 2.4
    assert "canaries were right" in found.explain()


@pytest.mark.statistical
def test_false_alarms_are_as_rare_as_said(seed):
    """False-failure rate 1e-9: 200 audits with confidence .8 of randomized response of exactly epsilon 1."""
    generator = np.random.default_rng(seed)

    def respond(people):
        there = np.isin(np.arange(60), people)
        return there ^ (generator.random(60) > math.e / (1 + math.e))

    for guesses in (60, None):
        alarms = sum(
            not dpf.audit_one_run(respond, range(60), own_cell, 1.0, guesses=guesses, confidence=0.8).passed
            for _ in range(100)
        )
        assert alarms <= binom.isf(1e-9, 100, 0.2)


def test_coins_are_fair_and_fresh(seed):
    """Deviations of 7 and more; equal coins twice have probability 2**-500."""
    taken = []
    for _ in range(2):
        dpf.audit_one_run(lambda people: taken.append(people), range(500), lambda out, one: 0.0, 1.0)
    assert taken[0] != taken[1]
    assert 170 < len(taken[0]) < 330
    dpf.audit_one_run(
        lambda people: taken.append(people), range(500), lambda out, one: 0.0, 1.0, random=SeededRandom(1)
    )
    dpf.audit_one_run(
        lambda people: taken.append(people), range(500), lambda out, one: 0.0, 1.0, random=SeededRandom(1)
    )
    assert taken[2] == taken[3]


@pytest.mark.parametrize("canaries", [["a"], np.arange(3), (1, 2), [np.zeros(2)] * 17, [None] * 33])
def test_few_canaries_show_nothing(canaries):
    found = dpf.audit_one_run(
        lambda people: len(people), canaries, lambda out, one: 0, 0.0, 0.0, random=SeededRandom(2)
    )
    assert found.passed
    assert found.canaries == len(canaries)


def test_mistakes():
    with pytest.raises(ParameterError, match="guesses must be at most the number of canaries, which is 3"):
        dpf.audit_one_run(lambda people: 1, [1, 2, 3], lambda out, one: 0.0, 1.0, guesses=4)
    for returned in (None, "a", math.nan, [1.0]):
        with pytest.raises(ParameterError, match="score must be a function that returns a number"):
            dpf.audit_one_run(lambda people: 1, [1], lambda out, one, returned=returned: returned, 1.0)
    with pytest.raises(ParameterError, match="correct must be at most guesses, which is 5"):
        one_run_p_value(10, 5, 6, 1.0)
    with pytest.raises(ParameterError, match="guesses must be at most canaries, which is 4"):
        one_run_epsilon(4, 5, 5)
