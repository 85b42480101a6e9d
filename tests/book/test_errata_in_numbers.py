"""Errata of formulas that no mechanism uses: the printed form and the right one, in numbers (docs/errata.md)."""

from __future__ import annotations

import math
from statistics import NormalDist

import mpmath
import pytest

NORMAL = NormalDist()


def gaussian_delta(sigma, epsilon):
    """Return the delta of the Gaussian mechanism at sensitivity 1 (Balle and Wang 2018)."""
    with mpmath.workprec(200):
        s, e = mpmath.mpf(sigma), mpmath.mpf(epsilon)
        return float(mpmath.ncdf(1 / (2 * s) - e * s) - mpmath.exp(e) * mpmath.ncdf(-1 / (2 * s) - e * s))


def test_the_variance_of_the_footnote_is_too_small():
    """Erratum E4: the variance ln(1/delta) / epsilon is not private at (1, 1e-5) and (0.1, 1e-5)."""
    for epsilon in (1.0, 0.1):
        printed = math.sqrt(math.log(1 / 1e-5) / epsilon)
        right = math.sqrt(2 * math.log(1.25 / 1e-5)) / epsilon
        assert gaussian_delta(printed, epsilon) > 1e-5
        assert gaussian_delta(right, epsilon) <= 1e-5


def test_the_joint_density_has_a_power():
    """Erratum E3: over two dimensions the density integrates to 1 with the factor squared, not with the factor."""
    rate = 0.5
    one = float(mpmath.quad(lambda z: mpmath.exp(-rate * abs(z)), [-mpmath.inf, 0, mpmath.inf]))
    assert (rate / 2) ** 2 * one**2 == pytest.approx(1)
    assert (rate / 2) * one**2 == pytest.approx(4)


def test_the_tail_bound_needs_its_denominator():
    """Erratum E43: at t = 0.1 the normal tail is .460, above exp(-t**2 / 2) / sqrt(2 pi) = .397; with 1/t it holds."""
    for t in (0.1, 0.5, 1.0, 3.0):
        tail = 1 - NORMAL.cdf(t)
        without = math.exp(-t * t / 2) / math.sqrt(2 * math.pi)
        assert tail <= without / t
        if t < 0.3:
            assert tail > without


def test_the_square_of_the_exponent():
    """Erratum E44: the exponent of the normal density where the loss is epsilon."""
    sigma, change, epsilon = 3.0, 1.5, 0.7
    x = sigma**2 * epsilon / change - change / 2
    assert (2 * x * change + change**2) / (2 * sigma**2) == pytest.approx(epsilon)
    right = (sigma**2 * epsilon / change - change / 2) ** 2 / (2 * sigma**2)
    printed = (sigma**2 * epsilon / change / (2 * sigma**2) - change / 2) ** 2
    density = NormalDist(0, sigma).pdf(x) * sigma * math.sqrt(2 * math.pi)
    assert -math.log(density) == pytest.approx(right)
    assert abs(right - printed) > 0.1


def test_the_classical_formula_fails_for_large_epsilon():
    """Erratum E45: the inequality is false at c = 5; the formula is private up to 1, and no longer at 8.5 (1e-5)."""
    c, epsilon = 5.0, 1.0
    assert -epsilon + epsilon**2 / (4 * c**2) == pytest.approx(-0.99)
    assert -0.99 < -8 / 9
    for delta in (1e-3, 1e-5, 1e-6):
        for epsilon in (0.1, 0.5, 1.0):
            assert gaussian_delta(math.sqrt(2 * math.log(1.25 / delta)) / epsilon, epsilon) <= 0.032 * delta
    classical = math.sqrt(2 * math.log(1.25 / 1e-5))
    assert gaussian_delta(classical / 8.3, 8.3) < 1e-5 < gaussian_delta(classical / 8.5, 8.5)


def test_the_printed_set_of_appendix_a_has_little_probability():
    """Erratum E46: with sigma = c Delta / epsilon, |x| <= sigma has probability .683; the right set above 1 - delta."""
    assert NORMAL.cdf(1) - NORMAL.cdf(-1) == pytest.approx(0.683, abs=5e-4)
    epsilon, delta = 0.5, 1e-5
    sigma = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    assert 1 - NormalDist(0, sigma).cdf(sigma**2 * epsilon - 0.5) < delta


@pytest.mark.parametrize("power", [1, 2, 5])
def test_what_is_negligible_stays_so_in_polynomially_many_tries(power):
    """Erratum E28: nu must decay faster than every inverse polynomial, and not grow slower than each.

    An adversary who may try k**power times succeeds with probability 1 - (1 - nu)**(k**power). With nu = 2**-k, which
    decays faster, that vanishes; with nu = k**-power, which does not, it stays above 1 - 1 / e.
    """

    def success(nu, tries):
        return -math.expm1(tries * math.log1p(-nu))

    assert [success(2.0**-k, k**power) < 1e-4 for k in (50, 100, 200)] == [True] * 3
    assert all(success(float(k) ** -power, k**power) > 1 - 1 / math.e for k in (50, 100, 200))
