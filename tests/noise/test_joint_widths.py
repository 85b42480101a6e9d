"""How far noises are off together: never less than their exact laws say, and hardly more; nothing here is drawn."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate

from dpfast.mechanisms.noise.joint_widths import Noise, continuous_reach, exceeding, joint_reach, rounding

MISSES = (0.3, 0.05, 1e-3, 1e-9)


def tail_of_two(a, b, w):
    """Return P(abs(a X + b Y) > w) of Laplace variables, by integrating over Y."""

    def beyond(y):
        low, high = -w - b * y, w - b * y
        above = 0.5 * math.exp(-high / a) if high > 0 else 1 - 0.5 * math.exp(high / a)
        below = 0.5 * math.exp(low / a) if low < 0 else 1 - 0.5 * math.exp(-low / a)
        return (above + below) * math.exp(-abs(y))

    # By symmetry twice the half of y > 0, whose density is exp(-y) / 2.
    parts = sorted({0.0, w / b, 60.0} | ({2 * w / b} if 2 * w / b < 60 else set()))
    parts = [part for part in parts if part <= 60]
    return sum(integrate.quad(beyond, *pair, limit=200, epsabs=1e-16)[0] for pair in itertools.pairwise(parts))


@pytest.mark.parametrize("ratio", [1.0, 1 + 1e-9, 1 + 3e-5, 1.01, 1.5, 3.0, 40.0, 1e6])
@pytest.mark.parametrize("miss", MISSES)
def test_two_laplace_noises_are_as_their_law_says_by_integration(ratio, miss):
    """At scales of 10**6 rounding plays no role beside what the law says."""
    noises = [Noise("laplace", 1e6, 1.0), Noise("laplace", 1e6, ratio)]
    reach = continuous_reach(noises, miss) - sum(map(rounding, noises))
    tail = tail_of_two(1e6, 1e6 * ratio, reach)
    assert miss * (1 - 1e-3) <= tail * (1 + 1e-9) <= miss * (1 + 1e-8)
    a, b, w = 1.0, ratio, reach / 1e6
    if ratio > 1 + 1e-4:
        closed = (a**2 * math.exp(-w / a) - b**2 * math.exp(-w / b)) / (a**2 - b**2)
    else:
        closed = (1 + w / (2 * a)) * math.exp(-w / a)
    assert closed == pytest.approx(tail, rel=1e-3)


def law_of(noise):
    """Return integers and their probabilities, which lack less than 1e-13 together."""
    most = math.ceil(noise.scale * 33) + 2
    numbers = np.arange(-most, most + 1)
    if noise.mechanism == "laplace":
        q = math.exp(-1 / noise.scale)
        return numbers, (1 - q) / (1 + q) * q ** np.abs(numbers)
    below = np.array([math.erfc(-x / noise.scale / math.sqrt(2)) / 2 for x in np.arange(-most, most + 2) - 0.5])
    return numbers, np.diff(below)


def exact_law(noises):
    """Return what a weighted sum of noises may be, and the probabilities."""
    sums, chances = np.zeros(1), np.ones(1)
    for noise in noises:
        numbers, each = law_of(noise)
        sums = np.add.outer(sums, numbers * noise.worth).reshape(-1)
        chances = np.multiply.outer(chances, each).reshape(-1)
    return np.abs(sums), chances


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("scales", list(itertools.product([0.05, 0.4, 1.0, 2.7, 9.0], [0.05, 0.4, 2.7, 9.0])))
@pytest.mark.parametrize("worth", [0.01, 0.5, 1.0, math.pi, 30.0])
def test_rounded_noises_are_never_further_off_than_is_said(mechanism, scales, worth):
    noises = [Noise(mechanism, scales[0], 1.0), Noise(mechanism, scales[1], worth)]
    sums, chances = exact_law(noises)
    for miss in MISSES[:3]:
        reach = joint_reach(noises, miss)
        assert chances[sums > reach * (1 + 1e-12)].sum() <= miss
        assert reach <= sum(noise.reach(miss / 2) for noise in noises)
        # Beyond the smallest scales rounding is all that it is more than needed.
        least = np.sort(sums)[::-1][np.searchsorted(np.cumsum(chances[np.argsort(-sums)]), miss)]
        assert reach <= least * (1 + 1e-4) + 2.01 * sum(map(rounding, noises)) + worth + 1
    for reach in (0.0, 0.3, 1.0, 5.0, 20.0, 80.0):
        assert exceeding(noises, reach) >= chances[sums > reach].sum() - 1e-12


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("scales", [(1.0, 1.0, 1.0), (2.0, 2.0, 0.3), (1.5, 1.4999, 1.5001), (0.1, 3.0, 1.0)])
def test_three_noises(mechanism, scales):
    noises = [Noise(mechanism, scale, worth) for scale, worth in zip(scales, (1.0, 2.5, 2.5), strict=True)]
    sums, chances = exact_law(noises)
    for miss in MISSES[:3]:
        assert chances[sums > joint_reach(noises, miss) * (1 + 1e-12)].sum() <= miss
    assert joint_reach(noises, 0.05) < sum(noise.reach(0.05 / 3) for noise in noises)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [0.05, 1.0, 7.3, 2.0**25, 2.0**40])
def test_one_noise_is_as_before(mechanism, scale):
    noise = Noise(mechanism, scale, 3.0)
    for miss in MISSES:
        assert joint_reach([noise], miss) == noise.reach(miss)
        # At the half width itself no more than the probability is beyond, with the slack of a coarse grid.
        assert exceeding([noise], noise.reach(miss)) <= miss * (1 + 1e-5)
    assert exceeding([noise], -1.0) == 1.0
    if scale < 10:
        sums, chances = exact_law([noise])
        for reach in (0.0, 2.9, 3.0, 31.0):
            assert exceeding([noise], reach) == pytest.approx(chances[sums > reach].sum(), rel=1e-5, abs=1e-12)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_what_is_rounded_once_more_reaches_as_much_further(mechanism):
    once, twice = Noise(mechanism, 7.0, 2.0), Noise(mechanism, 7.0, 2.0, 1.0)
    for reach in (joint_reach, continuous_reach):
        assert reach([twice], 0.05) == pytest.approx(reach([once], 0.05) + 2)
        assert reach([twice, once], 0.05) == pytest.approx(reach([once, once], 0.05) + 2)
    for w in (3.0, 10.0, 50.0):
        assert exceeding([twice], w + 2) == exceeding([once], w)
        assert exceeding([twice, once], w + 2) == pytest.approx(exceeding([once, once], w))


def test_of_two_kinds_or_of_many_the_union_bound_is_left():
    mixed = [Noise("laplace", 5.0, 1.0), Noise("gaussian", 5.0, 1.0)]
    many = [Noise("laplace", 5.0, 1.0)] * 4
    for noises in (mixed, many):
        assert joint_reach(noises, 0.05) == sum(noise.reach(0.05 / len(noises)) for noise in noises)
        assert exceeding(noises, 1e6) == 1.0
        assert continuous_reach(noises, 0.05) == math.inf


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("scales", [(1.0, 1.0), (30.0, 1.0), (1.0, 30.0), (5.0, 5.0, 5.0), (900.0, 2.0, 7.0)])
def test_the_reach_is_convex_in_what_the_others_count(mechanism, scales):
    """The theorem that intervals of means rest on; scales that are made to differ add a part in 2**13."""

    def reach(worth):
        others = [Noise(mechanism, scale, worth) for scale in scales[1:]]
        return continuous_reach([Noise(mechanism, scales[0], 1.0), *others], 0.05)

    places = np.geomspace(1e-3, 1e3, 200)
    for low, high in itertools.combinations(places[::20], 2):
        middle = (low + high) / 2
        assert reach(middle) <= (reach(low) + reach(high)) / 2 * (1 + 2.0**-12)
