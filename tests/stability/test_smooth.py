"""Smooth sensitivities against their definition, and noise that follows them: its law, and its privacy."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
from noise.goodness import rejects

import dpfast as dpf
from dpfast.stability.smooth import exact_cauchy, smooth_noise, smooth_sensitivity_of
from dpfast.testing import SeededRandom

from .laws import every, excess, neighbors_of

UNIVERSE = range(5)
RELATIONS = ("add_remove", "replace")


def median(data):
    return sorted(data)[(len(data) + 1) // 2 - 1] if data else 0


@lru_cache(maxsize=2**18)
def local_sensitivity(data, relation, function):
    return max(abs(function(data) - function(other)) for other in neighbors_of(data, UNIVERSE, relation))


def by_definition(data, beta, relation, function):
    """The largest local sensitivity of all data, less by exp(-beta) for each row of difference."""
    seen, front, steps, best = {data}, {data}, 0, 0.0
    while front and steps <= 6:
        widest = max(local_sensitivity(one, relation, function) for one in front)
        best = max(best, widest * math.exp(-beta * steps))
        front = set().union(*(neighbors_of(one, UNIVERSE, relation) for one in front)) - seen
        seen |= front
        steps += 1
    return best


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("beta", [0.3, 1.0])
def test_smooth_sensitivity_of_the_median(relation, beta):
    """Row 7-5: all data of up to 4 rows over 5 values, against the definition."""
    for data in every(UNIVERSE, 4, least=1 if relation == "replace" else 0):
        wanted = by_definition(data, beta, relation, median)
        found = smooth_sensitivity_of(np.array(data, np.int64), 0, 4, beta, relation)
        assert wanted <= found <= wanted * (1 + 1e-8)


def test_smooth_sensitivity_of_trimmed_sums():
    trimmed = [lambda one, cut=cut: sum(sorted(one)[cut : len(one) - cut]) for cut in range(3)]
    for data in every(UNIVERSE, 5, least=3):
        for cut in range((len(data) - 1) // 2 + 1):
            wanted = by_definition(data, 0.5, "replace", trimmed[cut])
            found = smooth_sensitivity_of(np.array(data, np.int64), 0, 4, 0.5, "replace", cut)
            assert wanted <= found <= wanted * (1 + 1e-8)


def slow(points, lower, upper, beta):
    """All pairs around the median of many points, under replace."""
    x = np.concatenate(([lower], points, [upper])).astype(float)
    middle = (points.size + 1) // 2
    i, j = np.ogrid[: middle + 1, middle : points.size + 2]
    steps = j - i - 1
    return ((x[j] - x[i]) * np.exp(-beta * np.maximum(steps, 0)) * (steps >= 0)).max()


def test_halving_finds_what_all_pairs_do(seed):
    generator = np.random.default_rng(seed)
    for n in (1, 2, 31, 400):
        for beta in (1e-3, 0.05, 2.0):
            for spread in (3, 1000, 10**9):
                points = np.sort(generator.integers(0, spread, n))
                found = smooth_sensitivity_of(points, 0, 10**9, beta, "replace")
                assert found == pytest.approx(slow(points, 0, 10**9, beta), rel=1e-6)


def test_smooth_sensitivity_of_many_rows_is_found_fast_and_never_vanishes():
    same = np.full(10**6, 7)
    for relation in RELATIONS:
        assert 0 < smooth_sensitivity_of(same, 0, 10, 1.0, relation) < 1e-250
    assert smooth_sensitivity_of(np.empty(0, np.int64), 0, 10, 1.0, "add_remove") == pytest.approx(10)
    assert smooth_sensitivity_of(np.arange(10**6), 0, 10**6, 1.0, "replace") == pytest.approx(1, rel=1e-8)


def law(value, scale, kind, lower, upper):
    """The law of the value with noise of a scale, rounded to whole numbers and clamped."""
    edges = np.clip((np.arange(lower, upper) + 0.5 - value) / scale, -700, 700)
    if kind == "laplace":
        below = np.where(edges < 0, np.exp(edges) / 2, 1 - np.exp(-np.maximum(edges, 0)) / 2)
    else:
        below = 0.5 + np.arctan(edges) / np.pi
    chances = np.diff(np.concatenate(([0.0], below, [1.0])))
    return dict(enumerate(chances.tolist()))


def largest_excess(epsilon, delta, relation, scale_of):
    noise = smooth_noise(Fraction(epsilon), Fraction(delta))
    worst, laws = 0.0, {}

    def of(data):
        if data not in laws:
            spread = scale_of(data, noise.beta)
            laws[data] = law(median(data), max(spread / float(noise.alpha), 1e-12), noise.kind, -40, 44)
        return laws[data]

    for data in every(UNIVERSE, 4, least=1):
        for other in neighbors_of(data, UNIVERSE, relation):
            worst = max(worst, excess(of(data), of(other), epsilon))
    return worst


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (1.0, 1e-3), (3.0, 0.05), (0.2, 1e-4)])
def test_the_released_median_is_private_on_all_small_data(relation, epsilon, delta):
    def smooth(data, beta):
        return smooth_sensitivity_of(np.array(data, np.int64), 0, 4, beta, relation)

    assert largest_excess(epsilon, delta, relation, smooth) <= delta * (1 + 1e-6) + 1e-12


@pytest.mark.parametrize("relation", RELATIONS)
def test_local_sensitivity_in_its_place_is_caught(relation):
    """Row 7-6: noise in proportion to the local sensitivity is not private."""

    def local(data, _):
        return max(abs(median(data) - median(one)) for one in neighbors_of(data, UNIVERSE, relation) if one)

    assert largest_excess(1.0, 1e-3, relation, local) > 0.2


def test_scale_of_laplace_noise_is_as_proved():
    """Stretching by exp(beta): the excess mass of the wider law, against its closed form, and a rougher one's beta."""
    epsilon, delta = 1.0, 1e-6
    noise = smooth_noise(Fraction(epsilon), Fraction(delta))
    z = np.linspace(0, 60, 2_000_001)
    ratio = math.exp(noise.beta)
    wide, narrow = np.exp(-z), ratio * np.exp(-z * ratio)
    mass = np.trapezoid(np.maximum(wide - math.exp(epsilon / 2) * narrow, 0.0), z)
    assert mass == pytest.approx(delta, rel=1e-3)
    assert noise.beta > epsilon / (2 * math.log(2 / delta))
    back = np.trapezoid(np.maximum(narrow - math.exp(epsilon / 2) * wide, 0.0), z)
    assert back <= 1e-12


@pytest.mark.statistical
@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 1000)])
def test_noise_is_drawn_by_its_law(delta, seed):
    """Each of 11 cells as often as is expected, by exact binomial tests that all but 1e-10 of runs pass."""
    noise, runs, source = smooth_noise(Fraction(1), delta), 4000, SeededRandom(seed)
    value, spread = Fraction(10, 3), Fraction(3, 2)
    drawn = [min(max(noise.add(value, spread, source), -2), 8) for _ in range(runs)]
    expected = law(10 / 3, float(spread / noise.alpha), noise.kind, -2, 8)
    assert rejects([(f"{cell}", drawn.count(cell - 2), runs, p) for cell, p in expected.items()], 1e-10) == ""


class Bits:
    """The bits of a number, zeros from some place on."""

    known = 8

    def __init__(self, number):
        self.number = number

    def leading(self, count):
        return math.floor(self.number * 2**count)


def test_cauchy_noise_is_exact_for_every_scale():
    """Scales from 2**-900 to 2**900, next to the poles and to the middle."""
    for number in (Fraction(1, 3), Fraction(1, 2) + Fraction(1, 2**70), Fraction(1, 2**50), Fraction(2, 3)):
        turn = math.pi * float(number)
        exact = 1 / math.tan(turn) if abs(float(number) - 0.5) > 1e-9 else -math.pi * float(number - Fraction(1, 2))
        for scale in (Fraction(1), Fraction(10**6), Fraction(1, 2**900)):
            wanted = float(scale) * exact
            found = exact_cauchy(Bits(number), scale, Fraction(1, 4))
            assert abs(found - wanted - 0.25) <= 0.5 + abs(wanted) * 1e-9
    assert exact_cauchy(Bits(Fraction(1, 3)), Fraction(2**900), Fraction(0)) > 2**898


def test_epsilon_too_small_is_refused_before_the_charge():
    ledger = dpf.Ledger(epsilon=1, delta=1e-3)
    with pytest.raises(dpf.errors.ParameterError, match="epsilon must be larger"):
        dpf.smooth_median([1, 2, 3], bounds=(0, 9), epsilon=1e-12, ledger=ledger)
    assert ledger.history().is_empty()


def test_medians_are_near_where_rows_are_dense():
    values = np.arange(20_001) / 20_001
    for delta in (None, 1e-6):
        found = dpf.smooth_median(values, bounds=(0, 1), epsilon=2.0, delta=delta, random=SeededRandom(5)).value
        assert abs(found - 0.5) < 0.1
