"""Bounds on sums of Laplace noise, and what they say of counters."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dpfast as dpf

theory = dpf.theory


def test_a_sum_of_laplace_variables_stays_within_the_bound():
    """Row 12-9: lemma 12.2, for sums of which a million are drawn; false failure below 1e-9: the bound is loose."""
    draws = np.random.default_rng(17).laplace(size=(1_000_000, 6)) * np.array([1, 1, 2, 3, 0.5, 1])
    sums = draws.sum(1)
    for width in (1.0, 4.0, 10.0, 20.0, 40.0):
        assert (sums > width).mean() <= theory.laplace_sum_miss([1, 1, 2, 3, 0.5, 1], width)


def test_golden_width_of_all_prefixes():
    """Row 12-10: corollary 12.3 for T = 1024 and epsilon = 1, a chance of 5% over all prefixes together."""
    assert theory.laplace_sum_error([10.0] * 10, 0.05 / 1024) == pytest.approx(300.389, abs=5e-4)


def test_equal_scales():
    """Row 12-11: corollary 12.4 at width alpha sqrt(k) b, where the seed's printed condition would say less than it."""
    for k, b, alpha in ((10, 3.0, 2.0), (4, 1.0, 5.0), (16, 0.5, 1.0)):
        assert theory.laplace_sum_miss([b] * k, alpha * math.sqrt(k) * b) == pytest.approx(math.exp(-(alpha**2) / 8))


def test_the_largest_error_grows_as_the_square_of_the_logarithm():
    """Row 12-14: all prefixes together err by lg(T)**2, which lg(T)**(5/3), as printed, does not bound (E39)."""
    logs = np.array([16, 64, 256, 1000], float)
    errors = np.array([theory.laplace_sum_error([log] * int(log), 0.05 * 2.0**-log) for log in logs])
    by_square, as_printed = errors / logs**2, errors / logs ** (5 / 3)
    assert by_square.max() / by_square.min() < 1.25
    assert (np.diff(as_printed) > 0).all()
    assert as_printed[-1] > 3 * as_printed[0]


def test_no_counter_errs_less_than_the_logarithm_allows():
    """Row 12-15: with k = lg(T) / 4 phases exp(-2 k) is T**-0.7213 (E40), so that T / k inputs cannot all be told."""
    for exponent in (16, 24, 64):
        steps, k = 2.0**exponent, exponent / 4
        assert math.exp(-2 * k) == pytest.approx(steps ** -(0.5 / math.log(2)))
        assert round(0.5 / math.log(2), 4) == 0.7213
        # Each of T / k inputs would have to be answered within k / 2, which has a probability of exp(-k) times half
        # under the empty one: more than 1 in all.
        assert steps / k * math.exp(-2 * k) / 2 > 1
    for exponent in (10, 20):
        counter = dpf.continual_count(2**exponent, epsilon=1.0)
        assert counter.error() > exponent / 4
