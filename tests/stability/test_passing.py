"""Tests of a distance: their gold numbers, their laws, and their privacy on all small data by enumeration."""

from __future__ import annotations

import bisect
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from noise.goodness import rejects

import dpfast as dpf
from dpfast.exact.amounts import budget_units
from dpfast.kernels.noise.preparation import FINENESS
from dpfast.mechanisms.noise.lattice import lattice_for
from dpfast.stability.instability import gap_instability
from dpfast.stability.passing import PassingTest
from dpfast.testing import SeededRandom

from .laws import every, excess, neighbors_of

TESTS = ("optimal", "laplace", "book")
#: Of the noise's scale: rounding to the grid moves by half a step at most what passes, and the chance by that part.
STEP = 2.0**-FINENESS


def made(kind, epsilon, delta):
    return PassingTest(kind, budget_units(epsilon, "epsilon"), budget_units(delta, "delta"))


@pytest.mark.parametrize(
    ("distance", "chance"),
    [(0, 5e-7), (5, 7.4207e-5), (20, 0.9989694)],
)
def test_gold_numbers_of_continuous_noise(distance, chance):
    """Row 7-12 and its erratum E23: the threshold is ln(1/delta) / epsilon."""
    found = dpf.stability.pass_probability(distance, 1.0, 1e-6, test="book")
    assert found == pytest.approx(chance, abs=STEP * min(chance, 1 - chance))


def test_gold_numbers_between_whole_distances():
    """Row 7-12: at 13.8155 half pass, at twice that all but 5e-7; both lie between whole distances."""
    passing = made("book", 1.0, 1e-6)
    assert passing.threshold == pytest.approx(13.8155106, abs=1e-7)

    def chance(distance):
        beyond = passing.threshold - distance
        return 0.5 * math.exp(-beyond) if beyond > 0 else 1 - 0.5 * math.exp(beyond)

    assert chance(passing.threshold) == 0.5
    assert 1 - chance(2 * passing.threshold) == pytest.approx(5e-7, rel=1e-6)
    for distance in (0, 5, 13, 14, 20, 28):
        assert passing.probability(distance) == pytest.approx(chance(distance), rel=STEP)


@pytest.mark.parametrize("epsilon", [0.013, 0.1, 1.0, 1.7, 3.3])
@pytest.mark.parametrize("delta", [1e-9, 0.05])
def test_chances_of_continuous_noise_are_those_of_its_grid(epsilon, delta):
    """Row 7-12: the least noise that passes by the arithmetic of the draws, and the exact chance of that."""
    passing = made("book", epsilon, delta)
    scale = passing._noise.scale
    lattice = lattice_for(np.dtype(np.float64), scale, discrete=True)
    for far in (0, 3, int(passing.threshold), int(passing.threshold) + 5):
        value, steps = np.float64(far), range(-(2**20), 2**20)
        first = steps[bisect.bisect_right(steps, passing.threshold, key=lambda noise: lattice.place(value, 0, noise))]
        unit, fraction, _ = lattice.exact(value, 0)
        # Rounded noise of so many steps or more is noise of half a step less or more.
        beyond = float((first - Fraction(1, 2) - fraction) / unit)
        chance = 0.5 * math.exp(-beyond) if beyond > 0 else 1 - 0.5 * math.exp(beyond)
        assert passing.probability(far) == pytest.approx(chance, rel=1e-11)


def test_false_passes_of_the_threshold_as_printed():
    """Rows 7-7 and 7-9, erratum E21: 1 + ln(1/delta) for noise of scale 1/epsilon lets 0.1256 of epsilon 0.1 pass."""
    epsilon, delta = 0.1, 1e-6
    printed = 0.5 * math.exp(-epsilon * (1 + math.log(1 / delta) - 1))
    assert printed == pytest.approx(0.1256, abs=5e-5)
    assert made("book", epsilon, delta).probability(0) == pytest.approx(delta / 2, rel=STEP)
    for kind in TESTS:
        assert made(kind, epsilon, delta).probability(0) <= delta * (1 + 1e-12)


def test_false_passes_of_the_squared_logarithm():
    """Row 7-7: with ln(n)**2 for threshold, noise passes alone with probability n**(-epsilon ln n) / 2."""
    n, epsilon = 1000, 0.5
    assert 0.5 * math.exp(-epsilon * math.log(n) ** 2) == pytest.approx(0.5 * n ** (-epsilon * math.log(n)))


def test_the_discrete_threshold_is_the_least():
    """P(K >= t) = q**t / (1 + q) is at most delta at the threshold and not one below."""
    for epsilon, delta in ((1.0, 1e-6), (0.1, 1e-3), (3.0, 0.2), (0.01, 1e-12)):
        t, q = int(made("laplace", epsilon, delta).threshold), math.exp(-epsilon)
        assert q**t / (1 + q) <= delta * (1 + 1e-9)
        assert q ** (t - 1) / (1 + q) > delta


@pytest.mark.parametrize("kind", TESTS)
def test_probabilities_rise_with_the_distance_and_are_private(kind):
    """Row 7-12: neighbouring distances cannot be told apart by more than (epsilon, delta)."""
    for epsilon, delta in ((1.0, 1e-6), (0.3, 1e-2), (2.0, 0.1)):
        passing = made(kind, epsilon, delta)
        chances = [passing.probability(distance) for distance in range(200)]
        assert chances == sorted(chances)
        allowed = delta if kind == "optimal" else 0.0
        for low, high in itertools.pairwise(chances):
            assert high - math.exp(epsilon) * low <= allowed + 1e-12
            assert (1 - low) - math.exp(epsilon) * (1 - high) <= allowed + 1e-12


def test_the_optimal_test_passes_most_often():
    """Row 7-12: no other of ours passes more often at any distance."""
    for epsilon, delta in ((1.0, 1e-6), (0.1, 1e-9), (3.0, 1e-2)):
        best = made("optimal", epsilon, delta)
        for kind in ("laplace", "book"):
            other = made(kind, epsilon, delta)
            assert all(best.probability(d) >= other.probability(d) - 1e-12 for d in range(400))


@pytest.mark.statistical
@pytest.mark.parametrize("kind", TESTS)
def test_draws_follow_the_probabilities(kind, seed):
    """As often as is expected at 6 distances, by exact binomial tests that all but 1e-10 of runs pass."""
    source, passing, runs = SeededRandom(seed), made(kind, 1.0, 0.05), 3000
    events = [
        (f"{distance}", sum(passing.passes(distance, source) for _ in range(runs)), runs, passing.probability(distance))
        for distance in range(6)
    ]
    assert rejects(events, 1e-10) == ""


def test_distances_to_pass():
    """Row 7-12: a value (ln(1/delta) + ln(1/beta)) / epsilon stable is shown with probability 1 - beta."""
    for miss in (0.5, 0.05, 1e-6):
        for epsilon in (0.1, 1.0):
            enough = math.ceil((math.log(1e6) + math.log(1 / miss)) / epsilon)
            for kind in TESTS:
                least = dpf.stability.distance_to_pass(miss, epsilon, 1e-6, test=kind)
                assert least <= enough
                assert dpf.stability.pass_probability(least, epsilon, 1e-6, test=kind) >= 1 - miss
                if least:
                    assert dpf.stability.pass_probability(least - 1, epsilon, 1e-6, test=kind) < 1 - miss


UNIVERSE = (0, 1, 2)


def mode_and_lead(data):
    counts = [data.count(value) for value in UNIVERSE]
    order = sorted(UNIVERSE, key=lambda value: (-counts[value], value))
    return (order[0] if data else None), counts[order[0]] - counts[order[1]]


def largest_excess(relation, distance_of, chance_of, epsilon):
    worst = 0.0
    for data in every(UNIVERSE, 7, least=1):
        laws = []
        for one in (data, *neighbors_of(data, UNIVERSE, relation)):
            value, lead = mode_and_lead(one)
            chance = chance_of(distance_of(lead)) if value is not None else 0.0
            laws.append({value: chance, "none": 1 - chance})
        worst = max(worst, *(excess(laws[0], other, epsilon) for other in laws[1:]))
    return worst


@pytest.mark.parametrize("kind", TESTS)
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_release_of_the_mode_is_private_on_all_small_data(kind, relation):
    """Rows 7-12 and 7-13: every data set of up to 7 rows and all its neighbours, exactly."""
    epsilon, delta = 0.7, 0.01
    most = 1 if relation == "add_remove" else 2
    chance = made(kind, epsilon, delta).probability
    worst = largest_excess(relation, lambda lead: gap_instability(lead, 0, most), chance, epsilon)
    assert worst <= delta * (1 + 1e-9)
    assert worst > delta / 3  # delta is used


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_wrong_distances_and_thresholds_are_caught(relation):
    """Rows 7-12 and 7-13: a distance that is one too long, and the threshold of erratum E21, are not private."""
    epsilon, delta = 0.2, 0.01
    passing, most = made("optimal", epsilon, delta), 1 if relation == "add_remove" else 2
    longer = largest_excess(relation, lambda lead: 1 + gap_instability(lead, 0, most), passing.probability, epsilon)
    assert longer > 1.1 * delta

    def printed(distance):
        beyond = math.log(1 / delta) - distance
        return 0.5 * math.exp(-epsilon * beyond) if beyond > 0 else 1 - 0.5 * math.exp(epsilon * beyond)

    assert largest_excess(relation, lambda lead: gap_instability(lead, 0, most), printed, epsilon) > 10 * delta


def test_tiny_and_large_amounts():
    assert dpf.stability.pass_probability(0, 1e6, 1e-18) <= 1e-18
    assert dpf.stability.pass_probability(1, 1e6, 1e-18) > 0.5
    assert dpf.stability.pass_probability(1e300, 1e-3, 1e-18, test="laplace") == 1.0
    assert dpf.stability.pass_probability(0, 1e-12, 0.5, test="laplace") <= 0.5
    assert made("laplace", Fraction(1, 3), 1e-6).passes(2**60, SeededRandom(1))
    assert not made("optimal", 1.0, 1e-18).passes(-5, SeededRandom(1))
    assert np.isfinite(made("book", 1e-9, 1e-18).threshold)
