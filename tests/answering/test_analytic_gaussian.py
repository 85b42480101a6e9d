"""The analytic Gaussian mechanism for columns: never less noise than balls prove, and hardly more."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpfast.kernels.amounts.analytic_gaussian import FIRST, LAST, LEVELS, NODES, ORDER, gaussian_ratios
from dpfast.mechanisms.noise.calibration import (
    analytic_gaussian_ratios,
    analytic_gaussian_scale,
    mills_ratio_series,
)


def mills_ratio(x):
    return (arb.pi() / 2).sqrt() * (x * x / 2).exp() * (x / arb(2).sqrt()).erfc()


@settings(max_examples=150, deadline=None)
@given(st.floats(-18, 6), st.floats(-18, -1e-6))
@example(-18, -18)
@example(6, -18)
@example(-18, -1e-6)
@example(6, -1e-6)
@example(0, -5)
def test_suffices_and_hardly_exceeds(log_epsilon, log_delta):
    """Soundness rule 10: delta at the ratio is proved, for amounts below their floats too, and tight."""
    epsilon, delta = 10.0**log_epsilon, 10.0**log_delta
    epsilon, delta = max(epsilon, 1e-18), max(delta, 1e-18)
    ratio = analytic_gaussian_ratios(np.array([epsilon]), np.array([delta]))[0]
    below = 1 - Fraction(1, 2**53)
    least = analytic_gaussian_scale(1, Fraction(epsilon) * below, Fraction(delta) * below)
    assert ratio >= least * (1 - 2**-50)  # that one is within a few units in the last place of the least
    assert ratio >= analytic_gaussian_scale(1, Fraction(epsilon) * below, delta * (1 + 1e-15))
    if delta <= 0.9:
        assert ratio <= least * (1 + 2e-12)


def test_every_pair_is_proved():
    """No pair of the whole range is left to the slow path; seed 1."""
    generator = np.random.default_rng(1)
    epsilon = np.append(10 ** generator.uniform(-18, 6, 200_000), np.repeat([1e-18, 1.0, 1e6], 1000))
    delta = np.append(10 ** generator.uniform(-18, 0, 200_000), np.tile(np.geomspace(1e-18, 0.9999, 1000), 3))
    delta = np.clip(delta, 1e-18, np.nextafter(1.0, 0.0))
    ratios = np.empty(epsilon.size)
    assert gaussian_ratios(epsilon, delta, mills_ratio_series(), ratios) == 0
    assert np.isfinite(ratios).all()


def test_falls_with_epsilon_and_delta():
    epsilon = np.geomspace(1e-18, 1e6, 20_001)
    for delta in (1e-18, 1e-6, 0.5):
        ratios = analytic_gaussian_ratios(epsilon, np.full(epsilon.size, delta))
        assert (np.diff(ratios) < 1e-11 * ratios[1:]).all()
    delta = np.geomspace(1e-18, 0.89, 20_001)
    for one in (1e-18, 1.0, 1e6):
        ratios = analytic_gaussian_ratios(np.full(delta.size, one), delta)
        assert (np.diff(ratios) < 1e-11 * ratios[1:]).all()


def test_golden():
    """Appendix A of the source texts: 4.84481 is the classical scale, 3.73063 the analytic one."""
    assert analytic_gaussian_ratios(np.array([1.0]), np.array([1e-5]))[0] == pytest.approx(3.7306316, abs=1e-7)


def test_remainders_of_the_series():
    """The proof's bounds on what ORDER terms leave, of M and of its divided difference."""
    reach = {"ratio": arb(1) / 16, "difference": arb(1) / 8}
    with ctx.workprec(400):
        for node in range(NODES):
            x = arb(FIRST) + arb(node) / 8
            for name, radius in reach.items():
                if name == "difference" and node * 0.125 + FIRST < -0.0625:
                    continue  # c is never negative
                # |M^(n)| falls with x: all terms of the remainder are at most those at the left end.
                left = x - radius
                terms = [mills_ratio(left), left * mills_ratio(left) - 1]
                for k in range(1, ORDER + 60):
                    terms.append((left * terms[k] + terms[k - 1]) / (k + 1))
                if name == "ratio":
                    rest = abs(terms[ORDER]) * radius**ORDER
                    assert rest < arb(2) ** -55 * mills_ratio(x + radius)
                else:
                    rest = sum((abs(terms[k]) * k * radius ** (k - 1) for k in range(ORDER, ORDER + 60)), arb(0))
                    right = x + radius
                    assert rest < arb(2) ** -53 * (1 - right * mills_ratio(right))


def test_remainder_of_the_fraction():
    """The proof's bound at LAST, where the fraction's error is largest, and further on."""
    with ctx.workprec(400):
        for x in (arb(LAST), arb(12), arb(50), arb(2000)):
            y = x
            for level in range(LEVELS, 0, -1):
                y = x + level / y
            assert abs(1 / y - mills_ratio(x)) < arb(2) ** -55 * mills_ratio(x)


def test_first_term_dominates():
    """The proof's claim: the first term is more than 0.8 of the divided difference for every c."""
    series = mills_ratio_series()
    for node in range(NODES):
        if FIRST + node * 0.125 >= 0:
            k = np.arange(2, ORDER)
            assert (np.abs(series[node, 2:]) * k / 8.0 ** (k - 1)).sum() < 0.25 * abs(series[node, 1])
