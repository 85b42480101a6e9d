"""Scales from sensitivity and budget: they suffice, provably, and are the least that do."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfast.errors import ParameterError
from dpfast.mechanisms.noise.calibration import (
    analytic_gaussian_epsilon,
    analytic_gaussian_scale,
    laplace_scale,
    round_up,
    round_up_root,
)
from dpfast.mechanisms.noise.half_widths import grid_of_integers, half_width

from . import oracles


def test_laplace_scale_suffices_and_nothing_less_does(seed):
    """Soundness rule 10: b * epsilon >= sensitivity, in rationals, for the charged epsilon."""
    generator = random.Random(seed)
    extremes = [(1, 1), (1, 10**24), (2**24 * 2**80 * 2, 1), (1, 3 * 10**18), (2**64 - 1, 10**18), (2**53 + 1, 10**18)]
    for _ in range(5000):
        extremes.append(
            (generator.getrandbits(generator.randint(1, 130)) + 1, generator.randint(1, 10 ** generator.randint(1, 24)))
        )
    for sensitivity, units in extremes:
        epsilon = Fraction(units, 10**18)
        scale = laplace_scale(Fraction(sensitivity), epsilon)
        assert Fraction(scale) * epsilon >= sensitivity
        assert Fraction(math.nextafter(scale, 0.0)) * epsilon < sensitivity


GOLDENS = [
    (1, 1e-5, 3.7306316),
    (0.1, 1e-5, 30.7495661),
    (0.5, 1e-6, 8.0576185),
    (1, 1e-6, 4.2246789),
    (10, 1e-5, 0.4998886),
]


@pytest.mark.parametrize(("epsilon", "delta", "golden"), GOLDENS)
def test_gaussian_goldens(epsilon, delta, golden):
    assert analytic_gaussian_scale(1.0, epsilon, delta) == pytest.approx(golden, abs=6e-8)


def test_the_epsilon_of_a_scale_suffices_and_one_unit_less_does_not(seed):
    """From the narrowest noise to the widest, whatever float it is first looked for at: by 60 digits of mpmath."""
    generator = random.Random(seed)

    def delta_of(ratio, epsilon):
        half, shift = 1 / (2 * ratio), epsilon * ratio
        return mpmath.ncdf(half - shift) - mpmath.exp(epsilon) * mpmath.ncdf(-half - shift)

    with mpmath.workdps(60):
        for _ in range(150):
            ratio = Fraction(10 ** generator.uniform(-3, 9)).limit_denominator(10**12)
            delta = Fraction(10 ** generator.uniform(-18, -0.01)).limit_denominator(10**20)
            units = analytic_gaussian_epsilon(ratio, delta)
            exact, wanted = (
                mpmath.mpf(ratio.numerator) / ratio.denominator,
                mpmath.mpf(delta.numerator) / delta.denominator,
            )
            if units is None:
                assert delta_of(exact, mpmath.mpf(10**6)) > wanted
                continue
            assert delta_of(exact, mpmath.mpf(units) / 10**18) <= wanted
            assert units == 1 or delta_of(exact, mpmath.mpf(units - 1) / 10**18) > wanted


def test_the_classical_formula_overpays():
    classical = math.sqrt(2 * math.log(1.25 / 1e-5))
    assert classical == pytest.approx(4.8448053, abs=5e-8)
    assert float(oracles.gaussian_delta(classical, 1.0, 1.0)) == pytest.approx(4.1137e-8, rel=2e-5)


def test_the_tail_of_the_privacy_loss_is_no_delta():
    """E2: at the analytic sigma the loss exceeds epsilon with probability 1.612e-4, not 1e-5. Row A-2."""
    sigma = mpmath.mpf(analytic_gaussian_scale(1.0, 1.0, 1e-5))
    assert float(oracles.normal_cdf(1 / (2 * sigma) - sigma)) == pytest.approx(1.612e-4, rel=5e-4)


EXTREMES = [(1e-18, 1e-18), (1e6, 1e-18), (1e6, 0.999), (1e-18, 0.999), (1e-9, 1e-17), (700.0, 1e-300), (0.5, 0.5)]


def test_gaussian_scale_is_certified_and_least(seed):
    """Soundness rule 10, by mpmath at 60 digits and more: delta(scale) <= delta, and not at 1e-12 less."""
    generator = random.Random(seed)
    drawn = [(10 ** generator.uniform(-6, 3), 10 ** generator.uniform(-15, -0.1)) for _ in range(60)]
    for epsilon, delta in EXTREMES + drawn:
        scale = analytic_gaussian_scale(Fraction(1), Fraction(epsilon), Fraction(delta))
        with mpmath.workdps(100):
            target = oracles.exact(delta)
            assert oracles.gaussian_delta(scale, 1, epsilon) <= target, (epsilon, delta)
            assert oracles.gaussian_delta(Fraction(scale) * (1 - Fraction(1, 10**12)), 1, epsilon) > target


def test_gaussian_scale_grows_with_the_sensitivity_rounded_up():
    for sensitivity in (Fraction(1, 3), Fraction(2**70 + 1), 0.1, 12345.678):
        scale = analytic_gaussian_scale(sensitivity, 1.0, 1e-5)
        ratio = analytic_gaussian_scale(1, 1.0, 1e-5)
        assert Fraction(scale) >= Fraction(ratio) * Fraction(sensitivity) > Fraction(math.nextafter(scale, 0.0))


@pytest.mark.parametrize("delta", [0, 1, -1e-9, 1.5, float("nan")])
def test_gaussian_noise_needs_a_delta(delta):
    with pytest.raises(ParameterError, match=r"^delta "):
        analytic_gaussian_scale(1.0, 1.0, delta)


positive = st.fractions(min_value=Fraction(1, 10**30), max_value=10**30) | st.integers(1, 2**400).map(Fraction)


@settings(deadline=None)
@given(positive)
def test_round_up_is_the_next_float(x):
    """Soundness rule 10."""
    rounded = round_up(x)
    assert Fraction(rounded) >= x > Fraction(math.nextafter(rounded, 0.0))


@settings(deadline=None)
@given(st.integers(1, 2**200) | st.integers(1, 2**90).map(lambda n: n * n))
def test_round_up_root_is_the_next_float(x):
    """Soundness rule 10; squares have exact roots where floats hold them."""
    root = round_up_root(Fraction(x))
    assert Fraction(root) ** 2 >= x > Fraction(math.nextafter(root, 0.0)) ** 2


@pytest.mark.parametrize("miss", [0.05, 0.025, 0.5, 1e-6])
def test_half_width_of_discrete_laplace_is_the_least(miss, seed):
    generator = random.Random(seed)
    scales = [1e-6, 0.01, 0.2, 0.27, 0.5, 1.0, 2.0, 3.7, 10.0, 100.0, 2.0**20, 2.0**25 - 1]
    scales += [10 ** generator.uniform(-1.5, 2) for _ in range(40)]
    with mpmath.workdps(60):
        slack = 1 + mpmath.mpf(10) ** -12
        for scale in scales:
            h = half_width("laplace", scale, miss)
            assert oracles.discrete_laplace_tail(scale, h) <= miss * slack, scale
            assert h == 0 or oracles.discrete_laplace_tail(scale, h - 1) > miss / slack, scale


@pytest.mark.parametrize("miss", [0.05, 0.025, 1e-6])
def test_half_width_of_the_gaussian_covers(miss):
    """Released is round(x + N): off by more than h just when abs(N) > h + 1/2 (on a grid g: at most abs(N) + g/2)."""
    for scale in (0.1, 0.5, 1.0, 3.7, 10.0, 1e4, 2.0**25, 2.0**30 + 3, 1e15):
        h, grid = half_width("gaussian", scale, miss), grid_of_integers(scale)
        reach = h + 0.5 if grid == 1 else h - grid / 2
        assert math.erfc(reach / scale / math.sqrt(2)) <= miss * (1 + 1e-9)
        widest = -scale * float(mpmath.sqrt(2) * mpmath.erfinv(miss - 1)) + grid / 2
        assert h <= 1 + math.ceil(widest * (1 + 1e-9))


def test_half_width_on_coarse_grids_covers():
    for scale in (2.0**25, 2.0**31 + 1, 1e12, 2.0**59):
        h, grid = half_width("laplace", scale, 0.05), grid_of_integers(scale)
        assert grid == 2 ** (math.floor(math.log2(scale)) - 24)
        assert math.exp(-(h - grid / 2) / scale) <= 0.05 * (1 + 1e-9)
