"""The released values have the distribution that is claimed, and wrong samplers fail the very same tests.

Every test rejects a right sampler with probability at most 1e-12 (goodness.py); with n samples a relative error of
the scale of about 10 / sqrt(n) is found.
"""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy.stats import binom

import dpfast as dpf
from dpfast.columns import BLOCK_ROWS
from dpfast.mechanisms.noise.lattice import grid_exponent
from dpfast.testing import SeededRandom

from .goodness import ALPHA, joint_events, rejects, tail_events, tail_probability
from .oracles import discrete_laplace_tail, laplace_tail, normal_tail

pytestmark = pytest.mark.statistical

SAMPLES = 4_000_000
MANY = 20_000_000
LONG = 100_000_000


# What the distributions claim: P(released >= t) for values at ``x``.


def discrete_tail(scale):
    def tail(k):
        return discrete_laplace_tail(scale, int(k)) if k >= 1 else 1 - discrete_laplace_tail(scale, 1 - int(k))

    return tail


def rounded_tail(continuous, scale, grid, x=0.0):
    """Return P(grid * round((x + noise) / grid) >= t) for t on the grid: that x + noise >= t - grid / 2."""
    return lambda t: continuous((t - grid / 2 - x) / scale)


def discrete_thresholds(scale):
    """Return integers around zero and out to where 50 of 4,000,000 samples still come."""
    far = max(2, round(11 * scale))
    positive = np.unique(np.concatenate([np.arange(0, 4), np.geomspace(1, far, 12).astype(int)]))
    return np.unique(np.concatenate([-positive, positive]))


def float_thresholds(scale, grid, x=0.0, far=5.0):
    steps = np.round((x + scale * np.linspace(-far, far, 21)) / grid)
    return steps * grid


# The tests, as functions of a sampler, so that the mutants below meet the same ones.


def check_discrete_laplace(sample, scale, samples=SAMPLES):
    noise = sample(np.zeros(samples, np.int64), scale)
    events = tail_events(noise, discrete_thresholds(scale), discrete_tail(scale))
    tail = discrete_tail(scale)
    values, counts = np.unique(noise[np.abs(noise) <= 3], return_counts=True)
    cells = dict(zip(values.tolist(), counts.tolist(), strict=True))
    for k in range(-3, 4):
        events.append((f"value == {k}", cells.get(k, 0), samples, tail(k) - tail(k + 1)))
    return rejects(events)


def check_sign(sample, scale, samples=MANY):
    """Of the noise that is not zero, one half is negative: at 2 * 10**7 samples 0.501 is 8 deviations away."""
    noise = sample(np.zeros(samples, np.int64), scale)
    nonzero = int(np.count_nonzero(noise))
    return rejects([("negative", int(np.count_nonzero(noise < 0)), nonzero, 0.5)])


def check_independence(sample, values, scale, thresholds, tail):
    """Rows apart by half a chunk (a Box-Muller pair), by one, by a chunk; of disjoint pairs of rows."""
    noise = sample(values, scale)
    chunks = noise[: noise.size // BLOCK_ROWS // 2 * 2 * BLOCK_ROWS].reshape(-1, BLOCK_ROWS)
    half = BLOCK_ROWS // 2
    pairs = [
        (chunks[:, :half].ravel(), chunks[:, half:].ravel()),
        (chunks[:, ::2].ravel(), chunks[:, 1::2].ravel()),
        (chunks[::2].ravel(), chunks[1::2].ravel()),
    ]
    events = [event for one, other in pairs for event in joint_events(one, other, thresholds, tail)]
    events += [
        event
        for one, other in pairs
        for event in joint_events(np.abs(one), np.abs(other), thresholds[thresholds > 0], lambda t: 2 * tail(t))
    ]
    return rejects(events)


def fresh(mechanism, seed):
    source = SeededRandom(seed)
    return lambda values, scale: mechanism(values, scale, random=source)


@pytest.mark.parametrize("scale", [0.2, 1.0, 8.3, 200.0, 3000.0, 5e5])
def test_discrete_laplace(scale, seed):
    """False-failure rate 1e-12: int64 noise is discrete Laplace, n = 4 * 10**6."""
    assert check_discrete_laplace(fresh(dpf.laplace, seed), scale) == ""


@pytest.mark.parametrize("dtype", ["int32", "uint32"])
def test_discrete_laplace_of_other_integers(dtype, seed):
    """False-failure rate 1e-12: int32 and uint32, values away from zero and from the bounds."""
    draw = fresh(dpf.laplace, seed)
    assert check_discrete_laplace(lambda v, b: draw((v + 10_000).astype(dtype), b).astype(np.int64) - 10_000, 5.0) == ""


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_signs_are_balanced(scale, seed):
    """False-failure rate 1e-12: n = 2 * 10**7."""
    assert check_sign(fresh(dpf.laplace, seed), scale) == ""


def check_rounded(sample, continuous, scale, dtype, x, samples=SAMPLES):
    grid = math.ldexp(1.0, grid_exponent(scale)) if np.dtype(dtype).kind == "f" else 1.0
    x = float(np.dtype(dtype).type(x))
    released = sample(np.full(samples, x, dtype), scale)
    far = 9.0 if continuous is laplace_tail else 4.0
    thresholds = np.unique(float_thresholds(scale, grid, x, far))
    if dtype == "float32":
        # Rounding to float32 is monotone: a threshold that float32 holds is passed by the same outcomes, up to half
        # a step of float32, which counts little beside the noise.
        thresholds = thresholds.astype(np.float32).astype(np.float64)
    return rejects(tail_events(released.astype(np.float64), thresholds, rounded_tail(continuous, scale, grid, x)))


FLOATS = [("float64", 1.0, 0.0), ("float64", 0.37, 0.1), ("float64", 1e-200, 1e-201), ("float64", 1e200, 3e200)]


@pytest.mark.parametrize(("dtype", "scale", "x"), [*FLOATS, ("float32", 1.0, 0.0), ("float32", 3e4, -5e4)])
def test_continuous_laplace(dtype, scale, x, seed):
    """False-failure rate 1e-12: floats carry Laplace noise rounded to the grid. Row 3.3-2."""
    assert check_rounded(fresh(dpf.laplace, seed), laplace_tail, scale, dtype, x) == ""


@pytest.mark.parametrize(
    ("dtype", "scale", "x"),
    [
        *FLOATS,
        ("float32", 1.0, 0.0),
        ("int64", 0.3, 0),
        ("int64", 6.0, 17),
        ("int64", 5e4, 0),
        ("int32", 1.0, -5),
        ("uint32", 40.0, 900),
    ],
)
def test_gaussian(dtype, scale, x, seed):
    """False-failure rate 1e-12: Gaussian noise rounded to the integers or the grid."""
    assert check_rounded(fresh(dpf.gaussian, seed), normal_tail, scale, dtype, x) == ""


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_wide_noise_on_integers(mechanism, seed):
    """False-failure rate 1e-12: at scale 2**40 the grid is 2**16 and the noise continuous, rounded."""
    continuous = laplace_tail if mechanism == "laplace" else normal_tail
    scale, grid = 2.0**40, 2.0**16
    released = fresh(getattr(dpf, mechanism), seed)(np.full(SAMPLES, 12_345, np.int64), scale)
    thresholds = float_thresholds(scale, grid, 0.0, 4.0)
    events = tail_events(released, thresholds, rounded_tail(continuous, scale, grid, 12_345.0))
    assert rejects(events) == ""


@pytest.mark.parametrize("dtype", ["int64", "float64"])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_scale_per_row(mechanism, dtype, seed):
    """False-failure rate 1e-12: rows with scales 2 and 700 in turn, each with its own distribution."""
    scales = np.resize([2.0, 700.0], SAMPLES)
    released = fresh(getattr(dpf, mechanism), seed)(np.zeros(SAMPLES, dtype), scales)
    events = []
    for first, scale in enumerate((2.0, 700.0)):
        if mechanism == "laplace" and dtype == "int64":
            events += tail_events(released[first::2], discrete_thresholds(scale), discrete_tail(scale))
        else:
            grid = 1.0 if dtype == "int64" else math.ldexp(1.0, grid_exponent(scale))
            tail = rounded_tail(laplace_tail if mechanism == "laplace" else normal_tail, scale, grid)
            events += tail_events(released[first::2], np.unique(float_thresholds(scale, grid, 0.0, 4.0)), tail)
    assert rejects(events) == ""


SIX_CHUNKS = 100 * BLOCK_ROWS


def test_laplace_rows_are_independent(seed):
    """False-failure rate 1e-12: neighbours, rows half a chunk apart, neighbouring chunks."""
    thresholds = np.array([-3, 0, 1, 3, 6])
    values = np.zeros(SIX_CHUNKS, np.int64)
    assert check_independence(fresh(dpf.laplace, seed), values, 3.0, thresholds, discrete_tail(3.0)) == ""


@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_gaussian_rows_are_independent(dtype, seed):
    """False-failure rate 1e-12: the two values of a Box-Muller pair among them, by signs and by magnitudes."""
    thresholds = np.array([-2.0, 0.0, 2.0, 5.0, 9.0])
    grid = 1.0 if dtype == "int64" else math.ldexp(1.0, grid_exponent(4.0))
    tail = rounded_tail(normal_tail, 4.0, grid)
    assert check_independence(fresh(dpf.gaussian, seed), np.zeros(SIX_CHUNKS, dtype), 4.0, thresholds, tail) == ""


@pytest.mark.parametrize("mechanism", [dpf.laplace, dpf.gaussian])
@pytest.mark.parametrize(("dtype", "scale"), [("int64", 3.0), ("int64", 1e6), ("float64", 1.0), ("int64", 2.0**50)])
def test_result_does_not_depend_on_the_threads(mechanism, dtype, scale, seed):
    """Soundness rule 1: words are addressed, not consumed. No randomness in the verdict."""
    values = np.arange(5 * BLOCK_ROWS + 77).astype(dtype)
    results = {
        mechanism(values, scale, random=SeededRandom(seed), threads=threads).tobytes() for threads in (1, 2, 8, None)
    }
    assert len(results) == 1


@pytest.mark.long
@pytest.mark.parametrize("scale", [1.0, 8.3, 3000.0])
def test_discrete_laplace_at_length(scale, seed):
    """False-failure rate 1e-12: n = 10**8."""
    assert check_discrete_laplace(fresh(dpf.laplace, seed), scale, LONG) == ""
    assert check_sign(fresh(dpf.laplace, seed), scale, LONG) == ""


@pytest.mark.long
@pytest.mark.parametrize(("dtype", "scale"), [("int64", 6.0), ("float64", 1.0)])
def test_gaussian_at_length(dtype, scale, seed):
    """False-failure rate 1e-12: n = 10**8."""
    assert check_rounded(fresh(dpf.gaussian, seed), normal_tail, scale, dtype, 0.0, LONG) == ""


@pytest.mark.long
def test_continuous_laplace_at_length(seed):
    """False-failure rate 1e-12: n = 10**8."""
    assert check_rounded(fresh(dpf.laplace, seed), laplace_tail, 1.0, "float64", 0.1, LONG) == ""


# Mutants: each differs from a right sampler as a plausible mistake would, and the tests above must see it. Their
# power: each misses its mutant with probability below 1e-6.


def geometric(values, scale, seed, sign_probability=0.5, zero_twice=False):
    """Sample discrete Laplace noise in floating point: right but for the arguments."""
    generator = np.random.default_rng(seed)
    e = generator.standard_exponential(values.size)
    c = 0.0 if zero_twice else -math.log1p(math.expm1(-1 / scale) / 2)
    magnitude = np.floor(scale * (e + c)).astype(np.int64)
    return values + np.where(generator.random(values.size) < sign_probability, -magnitude, magnitude)


def test_the_reference_sampler_passes(seed):
    """What the mutants are made of is right without their mistake."""
    assert check_discrete_laplace(lambda v, b: geometric(v, b, seed), 8.3) == ""


@pytest.mark.parametrize("factor", [0.98, 1.02])
@pytest.mark.parametrize("scale", [1.0, 8.3, 3000.0])
def test_a_wrong_scale_is_rejected(factor, scale, seed):
    assert "expected" in check_discrete_laplace(lambda v, b: fresh(dpf.laplace, seed)(v, b * factor), scale)


@pytest.mark.parametrize("factor", [0.98, 1.02])
def test_a_wrong_scale_of_floats_is_rejected(factor, seed):
    for mechanism, tail in ((dpf.laplace, laplace_tail), (dpf.gaussian, normal_tail)):
        assert "expected" in check_rounded(
            lambda v, b, m=mechanism: fresh(m, seed)(v, b * factor), tail, 1.0, "float64", 0.1
        )


def test_a_doubled_zero_is_rejected(seed):
    """Without c, |K| is geometric and zero, with two signs, comes too often."""
    assert "expected" in check_discrete_laplace(lambda v, b: geometric(v, b, seed, zero_twice=True), 8.3)


def test_a_sign_of_probability_0_501_is_rejected():
    """With one seed: 0.501 is 8.5 deviations away and 7.1 reject, which one seed in ten would miss."""
    assert "negative" in check_sign(lambda v, b: geometric(v, b, 20_261_121, sign_probability=0.501), 8.3)


def test_rounding_by_rint_is_rejected(seed):
    """np.rint of continuous noise is no discrete Laplace noise at scale 1."""

    def rint(values, scale):
        return values + np.rint(np.random.default_rng(seed).laplace(0, scale, values.size)).astype(np.int64)

    assert "expected" in check_discrete_laplace(rint, 1.0)


def test_rounding_in_two_steps_is_rejected(seed):
    """Rounding first to the coarser grid of half the noise, then to integers."""

    def twice(values, scale):
        noise = np.random.default_rng(seed).standard_normal(values.size) * scale
        return values + np.rint(np.rint(noise * 2) / 2).astype(np.int64)

    assert "expected" in check_rounded(twice, normal_tail, 6.0, "int64", 0)


def test_words_used_twice_are_rejected(seed):
    """Chunks that share their words: each row looks right, two rows together do not."""

    def twice(values, scale):
        one = fresh(dpf.laplace, seed)(np.zeros(values.size // 2, np.int64), scale).reshape(-1, BLOCK_ROWS)
        return np.repeat(one, 2, axis=0).ravel()

    values, thresholds = np.zeros(SIX_CHUNKS, np.int64), np.array([-3, 0, 1, 3, 6])
    assert "and other" in check_independence(twice, values, 3.0, thresholds, discrete_tail(3.0))


def test_a_pair_that_shares_its_radius_sign_is_rejected(seed):
    """Box and Muller with an angle of half a turn only: magnitudes stay right, signs go together."""

    def half_turn(values, scale):
        generator = np.random.default_rng(seed)
        chunks, half = values.size // BLOCK_ROWS, BLOCK_ROWS // 2
        radius = np.sqrt(-2 * np.log(generator.random((chunks, half)))) * scale
        angle = np.pi / 2 * generator.random((chunks, half)) + np.pi * (generator.random((chunks, half)) < 0.5)
        return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)], axis=1).ravel()

    thresholds = np.array([-2.0, 0.0, 2.0, 5.0, 9.0])
    tail = rounded_tail(normal_tail, 4.0, 0.0)
    assert "and other" in check_independence(half_turn, np.zeros(SIX_CHUNKS), 4.0, thresholds, tail)


# The tests of the tests: critical values, and the statistic itself.


def exact_binomial_tail(happened, samples, probability):
    """Return min(P(X <= k), P(X >= k)) from the sum of the terms, in mpmath."""
    with mpmath.workprec(120):
        p = mpmath.mpf(probability)

        def term(k):
            return mpmath.binomial(samples, k) * p**k * (1 - p) ** (samples - k)

        up, down, k, t = mpmath.mpf(0), mpmath.mpf(0), happened, term(happened)
        first = t
        while k <= samples and t > up * mpmath.mpf(2) ** -60:
            up += t
            t *= (samples - k) * p / ((k + 1) * (1 - p))
            k += 1
        k, t = happened, first
        while k >= 0 and t > down * mpmath.mpf(2) ** -60:
            down += t
            t *= k * (1 - p) / ((samples - k + 1) * p)
            k -= 1
        return float(min(up, down))


@pytest.mark.parametrize("probability", [0.5, 0.184, 1e-3, 1e-5])
@pytest.mark.parametrize("deviations", [-7.5, -7, -3, 0, 3, 7, 7.5])
def test_critical_values(probability, deviations):
    """SciPy's binomial tails, of which the verdicts are made, against the sum of the terms: no limit theorem."""
    samples = 400_000
    happened = round(samples * probability + deviations * math.sqrt(samples * probability * (1 - probability)))
    if happened < 0:
        return
    exact = exact_binomial_tail(happened, samples, probability)
    assert tail_probability(happened, samples, probability) == pytest.approx(exact, rel=1e-6)


def test_a_family_is_rejected_as_often_as_it_says(seed):
    """At alpha = 1/20 instead, 2,000 right families of 5 dependent events are rejected at most that often.

    False-failure rate 1e-12: at most 5% of 2,000, by the exact binomial bound.
    """
    generator = np.random.default_rng(seed)
    thresholds = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    rejected = 0
    for _ in range(2000):
        events = tail_events(generator.random(500), thresholds, lambda t: 1 - t)
        rejected += bool(rejects(events, 0.05))
    assert binom.sf(rejected - 1, 2000, 0.05) > ALPHA
    assert rejected > 0
