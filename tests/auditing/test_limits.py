"""Clopper and Pearson's limits: against SciPy, sound whatever the rounding, and missing as seldom as they say."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import beta, binom

from dpfast.auditing import limits, lower_limit, upper_limit
from dpfast.auditing.limits import quick_limits
from dpfast.exact.balls import ball, working_precision

CASES = [(0, 1), (1, 1), (3, 100), (100, 100), (50_000, 100_000), (10, 100_000), (99_990, 100_000), (4 * 10**6, 10**7)]


@pytest.mark.parametrize(("happened", "trials"), CASES)
@pytest.mark.parametrize("miss", [0.3, 1e-6, 1e-12])
def test_they_are_the_quantiles_of_the_beta_distribution_rounded_outward(happened, trials, miss):
    low, high = lower_limit(happened, trials, miss), upper_limit(happened, trials, miss)
    best = beta.ppf(miss, happened, trials - happened + 1) if happened else 0.0
    assert best * (1 - 1e-9) <= low <= best * (1 + 1e-9)
    if happened < trials:
        most = beta.isf(miss, happened + 1, trials - happened)
        assert most * (1 - 1e-9) <= high <= most * (1 + 1e-9)
    else:
        assert high == 1.0


@pytest.mark.parametrize("miss", [1e-6, 1e-100])
@pytest.mark.parametrize(("happened", "trials"), [(3, 100), (999, 1000), (40, 100), (30, 1000)])
def test_what_was_seen_is_as_unlikely_at_the_limit_as_it_may_be(happened, trials, miss):
    low, high = lower_limit(happened, trials, miss), upper_limit(happened, trials, miss)
    assert binom.sf(happened - 1, trials, low) == pytest.approx(miss, rel=1e-4)
    assert binom.cdf(happened, trials, high) == pytest.approx(miss, rel=5e-3)


@pytest.mark.parametrize("probability", [0.003, 0.2, 0.5, 0.97])
def test_they_miss_as_seldom_as_they_say(probability):
    """Exactly, over all numbers of successes of 60 trials."""
    chances = binom.pmf(range(61), 60, probability)
    for miss in (0.2, 0.01):
        above = sum(p for k, p in enumerate(chances) if lower_limit(k, 60, miss) > probability)
        below = sum(p for k, p in enumerate(chances) if upper_limit(k, 60, miss) < probability)
        assert above <= miss
        assert below <= miss


def at_least(k, n, p):
    """The exact tail, in rational numbers."""
    return sum(math.comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(k, n + 1))


@pytest.mark.parametrize("bits", [24, 96, 700])
@pytest.mark.parametrize("trials", [1, 2, 7, 61, 150])
def test_sums_of_terms_hold_the_exact_tail(trials, bits):
    """From far below the share of successes to far above it, where the incomplete beta function is asked."""
    for k in {1, 1 + trials // 3, 1 + trials // 2, trials}:
        for p in (Fraction(1, 10**9), Fraction(k, 3 * trials), Fraction(k, trials + 1), Fraction(99, 100), Fraction(1)):
            with working_precision(bits):
                tail = limits._at_least(k, trials, p)
            with working_precision(4_000):
                assert tail.contains(ball(at_least(k, trials, p))), (k, p)
            assert tail.rel_accuracy_bits() > bits - 24 or p * trials > k


def test_sums_of_terms_and_the_beta_function_agree(monkeypatch):
    cases = [(9_000, 20_000, Fraction(43, 100)), (12, 20_000, Fraction(1, 10**4)), (16_384, 32_768, Fraction(49, 100))]
    with working_precision(96):
        sums = [limits._at_least(*case) for case in cases]
        monkeypatch.setattr(limits, "_MOST_SUMMED", 0)
        for case, one in zip(cases, sums, strict=True):
            other = limits._at_least(*case)
            assert one.overlaps(other)
            assert min(one.rel_accuracy_bits(), other.rel_accuracy_bits()) > 64


@pytest.mark.parametrize("trials", [1, 2, 7, 61])
@pytest.mark.parametrize("miss", [1e-300, 5e-7, 0.05, 0.5, 0.7, 0.999999, 1 - 2**-53, Fraction(1, 3)])
def test_they_are_the_best_floats_on_the_safe_side(trials, miss):
    """By exact tails: they are safe, and their neighbours among floats are not; also above 1/2, where k/n is below."""
    exactly = Fraction(miss)
    for k in sorted({0, 1, trials // 3, trials // 2, trials - 1, trials}):
        low, high = lower_limit(k, trials, miss), upper_limit(k, trials, miss)
        if k == 0:
            assert low == 0.0
        else:
            assert at_least(k, trials, Fraction(low)) <= exactly
            assert at_least(k, trials, Fraction(math.nextafter(low, 1))) > exactly
        if k == trials:
            assert high == 1.0
        else:
            assert 1 - at_least(k + 1, trials, Fraction(high)) <= exactly
            assert 1 - at_least(k + 1, trials, Fraction(math.nextafter(high, 0))) > exactly


@pytest.mark.parametrize("trials", [10**9, 10**12, 10**12 + 1, 2**62])
def test_any_number_of_trials_has_limits(trials):
    for k in (0, 5, trials // 2, trials - 5, trials):
        for miss in (5e-7, 0.9):
            low, high = lower_limit(k, trials, miss), upper_limit(k, trials, miss)
            assert 0 <= low <= 1
            assert 0 <= high <= 1
            assert miss > 0.5 or low <= k / trials <= high
            assert abs(low - k / trials) < 10 / math.sqrt(trials)
            assert abs(high - k / trials) < 10 / math.sqrt(trials)


def test_quick_limits_are_a_little_wider():
    happened = np.arange(1001)
    low, high = quick_limits(happened, 1000, 1e-6)
    for k in range(0, 1001, 125):
        assert low[k] <= lower_limit(k, 1000, 1e-6) * (1 + 1e-6)
        assert high[k] * (1 + 1e-6) >= upper_limit(k, 1000, 1e-6)
        assert abs(low[k] - lower_limit(k, 1000, 1e-6)) < 0.01
