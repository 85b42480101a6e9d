"""Numbers of the book, and the privacy that a hostile analyst can actually measure.

Dwork and Roth (2014): fact 3.7, theorem 3.8, example 3.3, appendix A.
"""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

import dpfast as dpf
from dpfast.auditing import lower_limit, upper_limit
from dpfast.testing import SeededRandom

from .goodness import ALPHA, rejects

NAMES = 10_000


def test_theorem_3_8_on_the_first_names():
    """Example 3.3: with probability 95% no count of 10,000 is off by more than ln(10000 / 0.05) / epsilon.

    Row 3.3-8.
    """
    assert math.log(NAMES / 0.05) == pytest.approx(12.2061, abs=5e-5)
    exact = -math.log(-math.expm1(math.log1p(-0.05) / NAMES))
    assert exact == pytest.approx(12.1805, abs=5e-5)
    assert math.fsum(1 / k for k in range(1, NAMES + 1)) == pytest.approx(9.78761, abs=5e-6)


def largest_errors(rounds, scale_factor, seed):
    source = SeededRandom(seed)
    counts = np.zeros(rounds * NAMES)
    return np.abs(dpf.laplace(counts, scale_factor, random=source)).reshape(rounds, NAMES).max(axis=1)


ROUNDS = 2000


@pytest.mark.statistical
def test_example_3_3_by_simulation(seed):
    """False-failure rate 1e-12: 2,000 releases of 10,000 counts at epsilon = 1 keep to the exact form. Row 3.3-9."""
    largest = largest_errors(ROUNDS, 1.0, seed)
    exact = 12.180494
    events = [
        (
            "beyond the exact quantile",
            int((largest >= exact).sum()),
            ROUNDS,
            -math.expm1(NAMES * math.log1p(-math.exp(-exact))),
        ),
        ("beyond 9", int((largest >= 9).sum()), ROUNDS, -math.expm1(NAMES * math.log1p(-math.exp(-9)))),
        ("beyond 11", int((largest >= 11).sum()), ROUNDS, -math.expm1(NAMES * math.log1p(-math.exp(-11)))),
    ]
    assert rejects(events) == ""
    assert (largest >= 12.2061).mean() < 0.05 + 7.5 * math.sqrt(0.05 / ROUNDS)


@pytest.mark.statistical
def test_expected_largest_error_is_the_harmonic_number(seed):
    """False-failure rate 1e-12: the mean of 2,000 maxima against H_10000 = 9.78761, deviation pi / sqrt(6 * 2000).

    A maximum of exponentials has a right tail like e**-x: its mean of 2,000 stays within 8 deviations but for 1e-12.
    """
    mean = largest_errors(ROUNDS, 1.0, seed).mean()
    assert abs(mean - 9.78761) < 8.0 * math.pi / math.sqrt(6 * ROUNDS)


@pytest.mark.statistical
def test_the_mean_error_of_a_count_is_the_scale(seed):
    """Example 3.1: a count errs by 1 / epsilon on average, one of m counts by m / epsilon, whatever the counts are.

    False-failure rate 1e-12: the mean of 10**6 errors of deviation b stays within 8 b / 1000.
    Row 3.3-5.
    """
    for epsilon, queries in ((0.1, 1), (1.0, 20)):
        scale = queries / epsilon
        released = dpf.laplace(np.full(10**6, 2.0**30), scale, random=SeededRandom(seed))
        assert abs(np.abs(released - 2.0**30).mean() - scale) < 8e-3 * scale


@pytest.mark.statistical
@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_fact_3_7(dtype, seed):
    """False-failure rate 1e-12: P(|Y| >= t b) = exp(-t), for integers 2 q**k / (1 + q) with k = t b. Row 3.3-7."""
    samples, scale = 4_000_000, 10.0
    noise = np.abs(dpf.laplace(np.zeros(samples, dtype), scale, random=SeededRandom(seed)))
    events = []
    for t in (0.5, 1, 2, 3, 5, 8):
        if dtype == "int64":
            probability = 2 * math.exp(-t) / (1 + math.exp(-1 / scale))
        else:
            # Rounded to the grid of 2**-17: at least t b where the noise is at least half a step less.
            probability = math.exp(-(t * scale - 2.0**-18) / scale)
        events.append((f"|Y| >= {t} b", int((noise >= t * scale).sum()), samples, probability))
    assert rejects(events) == ""


def test_appendix_a_classical_gaussian():
    """Theorem A.1 at (1, 1e-5): sigma = sqrt(2 ln(1.25 / delta)) = 4.8448053, whose true delta is 4.1137e-8.

    Row A-1.
    """
    sigma = math.sqrt(2 * math.log(1.25 / 1e-5))
    assert sigma == pytest.approx(4.8448053, abs=5e-8)
    assert gaussian_delta(sigma, 1.0) == pytest.approx(4.1137e-8, rel=1e-4)


def gaussian_delta(sigma, epsilon):
    """Return the delta of the Gaussian mechanism at sensitivity 1 (Balle and Wang 2018), in mpmath."""
    with mpmath.workprec(200):
        s, e = mpmath.mpf(sigma), mpmath.mpf(epsilon)
        phi = mpmath.ncdf
        return float(phi(1 / (2 * s) - e * s) - mpmath.exp(e) * phi(-1 / (2 * s) - e * s))


def test_analytic_gaussian():
    """sigma = 3.7306316 at (1, 1e-5), sensitivity 1: rounded up, and not by more than it must be."""
    calibration = pytest.importorskip("dpfast.mechanisms.noise.calibration")
    sigma = calibration.analytic_gaussian_scale(1.0, 1.0, 1e-5)
    assert sigma == pytest.approx(3.7306316, abs=5e-8)
    assert gaussian_delta(sigma, 1.0) <= 1e-5
    assert gaussian_delta(sigma * (1 - 1e-9), 1.0) > 1e-5
    assert calibration.analytic_gaussian_scale(2.5, 1.0, 1e-5) == pytest.approx(2.5 * 3.7306316, abs=5e-7)


def measured_epsilon(mechanism, values, neighbours, seed, samples=4_000_000, alpha=ALPHA):
    """Return a lower limit of epsilon that holds but for probability alpha: an attacker who sees both worlds.

    The event (a threshold, either side) is picked on one half of the samples, its probabilities are bounded by
    Clopper and Pearson on the other.
    """
    source = SeededRandom(seed)
    one, other = (mechanism(np.full(samples, x), source) for x in (values, neighbours))
    half = samples // 2
    best = (0.0, None)
    for t in np.unique(np.quantile(one[:half], np.linspace(0.0005, 0.9995, 200))):
        for side in (np.greater_equal, np.less_equal):
            p, q = (int(side(part[:half], t).sum()) + 1 for part in (one, other))
            # The ratio less its own uncertainty, as wide as the final limit's: rare events win by chance otherwise.
            score = math.log(p / q) - 9 * math.sqrt(1 / p + 1 / q)
            best = max(best, (score, (t, side)), key=lambda pair: pair[0])
    if best[1] is None:
        return 0.0
    t, side = best[1]
    low = lower_limit(int(side(one[half:], t).sum()), half, alpha / 2)
    high = upper_limit(int(side(other[half:], t).sum()), half, alpha / 2)
    return math.log(low / high) if low > 0 else 0.0


def laplace_with(scale):
    return lambda values, source: dpf.laplace(values, scale, random=source)


PRIVATE = [(0, 1, 1.0), (0, 1, 0.5), (0.0, 1.0, 1.0), (0.3, 1.3, 0.5), (0, 2**30, 1.0)]


@pytest.mark.statistical
@pytest.mark.parametrize(("x", "neighbour", "epsilon"), PRIVATE)
def test_no_attack_finds_more_than_epsilon(x, neighbour, epsilon, seed):
    """False-failure rate 1e-12: the measured epsilon of neighbours at distance D and scale D / epsilon. Row 3.3-3."""
    scale = (neighbour - x) / epsilon
    assert measured_epsilon(laplace_with(scale), x, neighbour, seed) <= epsilon


@pytest.mark.statistical
@pytest.mark.parametrize(("x", "neighbour", "epsilon"), PRIVATE)
def test_the_same_attack_finds_a_scale_too_small(x, neighbour, epsilon, seed):
    """The mutant: a scale 0.9 of what it should be is caught in every case. False-failure rate below 1e-8.

    The gap is epsilon / 9, at least .055. An event of many samples shows it with a deviation below .002. An event
    whose deviation could hide it, .0055 and more, is chosen only if it strays by nearly 7 deviations.
    """
    scale = 0.9 * (neighbour - x) / epsilon
    assert measured_epsilon(laplace_with(scale), x, neighbour, seed) > epsilon


@pytest.mark.statistical
def test_the_same_attack_finds_a_sensitivity_off_by_one(seed):
    """The mutant: neighbours at distance 2 with noise for 1. False-failure rate below 1e-8, as above."""
    assert measured_epsilon(laplace_with(1.0), 0, 2, seed) > 1.5
