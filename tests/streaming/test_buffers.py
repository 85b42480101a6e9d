"""Buffered linear Toeplitz noise: the factor, its error, and the guarantee of what floating point makes of it."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import dpfast as dpf
from dpfast.errors import ParameterError
from dpfast.randomness import SystemRandom
from dpfast.strategies.square_root import SquareRoot
from dpfast.streaming.buffers import BLOCK, BufferedToeplitz, Grid
from dpfast.streaming.fitting import buffers_for
from dpfast.streaming.method import LARGEST_TOTAL
from dpfast.streaming.square_root import SquareRootCounter
from dpfast.streaming.toeplitz import Buffers
from dpfast.streaming.unit import Norms
from dpfast.testing import SeededRandom
from tests.streaming.planned import EVENT, epsilon, rho, toeplitz, unit

LIMIT = LARGEST_TOTAL // 4096


def columns(horizon):
    """Return the first columns of B and of C, this one by inverting that in floats of 64 bits."""
    buffers = buffers_for(horizon)
    b = sum(w * r ** np.arange(horizon) for w, r in zip(buffers.weights, buffers.rates, strict=True))
    c = np.linalg.solve(toeplitz(b), np.ones(horizon))
    return b, c


@pytest.mark.parametrize("horizon", [1, 2, 3, 10, 40, 300, 1024])
def test_the_factor_is_what_is_said_of_it(horizon):
    """A = B C; C's column does not rise, begins with 1 and is known by its exponentials; its norm is from above."""
    buffers = buffers_for(horizon)
    assert sum(map(Fraction, buffers.weights.tolist())) == 1
    assert (buffers.losses > 0).all()
    assert (buffers.losses <= 1).all()
    b, c = columns(horizon)
    np.testing.assert_allclose(buffers.coefficients(horizon), c, rtol=1e-9)
    assert c[0] == 1.0
    assert (np.diff(c) <= 1e-12).all()
    assert c[-1] > 0
    square = float(buffers.l2_squared(horizon, 1))
    assert (c**2).sum() * (1 - 1e-12) <= square <= (c**2).sum() * (1 + 1e-8)
    np.testing.assert_allclose(buffers.energy(np.arange(1, horizon + 1)), np.cumsum(b**2), rtol=1e-10)


def test_units_of_several_steps_are_bounded_by_the_first_ones():
    """Row 12-3, user level: over every choice of steps and signs, and the bound is reached."""
    horizon = 9
    matrix = toeplitz(columns(horizon)[1])
    for most in (1, 2, 4, 9):
        largest = 0.0
        for places in itertools.combinations(range(horizon), most):
            for signs in itertools.product((1, -1), repeat=most):
                move = np.zeros(horizon)
                move[list(places)] = signs
                largest = max(largest, ((matrix @ move) ** 2).sum())
        bound = float(buffers_for(horizon).l2_squared(horizon, most))
        assert largest * (1 - 1e-12) <= bound <= largest * (1 + 2e-6)


@pytest.mark.parametrize("horizon", [1024, 65536])
def test_golden_errors_of_the_square_root(horizon):
    """Reference 5: mean and largest error for a sensitivity of 1; buffers are near to them."""
    mean, largest, least = {1024: (3.1098, 3.27255, 2.90958), 65536: (4.43444, 4.59644, 4.23210)}[horizon]
    root = SquareRootCounter(horizon, EVENT, rho(0.5))
    scale = root.noise.deviation / root.noise.scale * math.sqrt(SquareRoot(horizon).l2_squared)
    assert math.sqrt(root.mean_variance()) / root.noise.deviation * scale == pytest.approx(mean, rel=2e-5)
    last = math.sqrt(root.variances(np.array([horizon]))[0])
    assert last / root.noise.deviation * scale == pytest.approx(largest, rel=2e-5)
    assert scale == pytest.approx(math.sqrt(SquareRoot(horizon).l2_squared), rel=1e-9)
    buffers = BufferedToeplitz(horizon, EVENT, rho(0.5))
    assert least < math.sqrt(buffers.mean_variance()) < 1.011 * mean + 0.02
    assert math.sqrt(buffers.variances(np.array([horizon]))[0] - 1 / 12) < 1.0105 * largest


@pytest.mark.parametrize("horizon", [1, 5, 100, 4096])
def test_mean_variance_is_the_mean(horizon):
    method = BufferedToeplitz(horizon, EVENT, rho(0.3))
    assert method.mean_variance() == pytest.approx(method.variances(np.arange(1, horizon + 1)).mean())


def replay(method, increments, published):
    """Return the noise that published figures and a stream determine, in units: the recursion of the module, exactly.

    ``published`` in ones, where the grid is one: figures are then what the proof calls w.
    """
    buffers, grid = method.buffers, method.grid
    assert grid.exponent == 0
    per_one = math.ldexp(1.0, -grid.unit)
    held, total, noise = np.zeros(buffers.losses.size), 0, []
    for increment, figure in zip(increments.tolist(), published.tolist(), strict=True):
        total += increment
        held = np.rint(buffers.rates * held)
        mean = 0.0
        for weight, one in zip(buffers.weights.tolist(), held.tolist(), strict=True):
            mean += weight * one
        drawn = (figure - total) * per_one - np.rint(mean)
        held = held + drawn
        noise.append(drawn)
    return np.array(noise) / per_one


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_neighbours_publish_the_same_with_noise_within_the_sensitivity(seed):
    """The heart of the guarantee: sqrt(sum of d**2) <= |C D x| + the rounding's share, for the figures of real runs.

    Both streams explain every run, by noises that differ by no more than what the ledger is charged for, and by hardly
    less than |C D x|.
    """
    horizon = 3000
    method = BufferedToeplitz(horizon, EVENT, rho(1e-5))
    state, random = method.begin(1), SeededRandom(seed)
    generator = np.random.default_rng(seed)
    x = generator.integers(0, 50, horizon)
    published = np.array([state.advance(x[t : t + 1], LIMIT, random, 1)[0] for t in range(horizon)])
    own = replay(method, x, published)
    # It is the noise that was drawn: false failure below 1e-6.
    assert abs(own.std() / method.noise.scale - 1) < 5 / math.sqrt(2 * horizon)
    for place in (0, 1, 1500, horizon - 1):
        other = x.copy()
        other[place] += 1
        apart = math.sqrt(((replay(method, other, published) - own) ** 2).sum())
        exact = math.sqrt((method.buffers.coefficients(horizon - place) ** 2).sum())
        bound = exact + float(method.rounding(1))
        assert apart <= bound
        assert apart == pytest.approx(exact, rel=1e-5)
        assert bound <= method.event.sensitivity * (1 + 1e-9)


def naive_counter(buffers, increments, scale, grid, random):
    """Add floating-point filtered noise to exact prefixes, with no bracket: how it must not be done."""
    held, total, published = np.zeros(buffers.losses.size), 0, []
    noise = dpf.gaussian(np.zeros(increments.size, np.int64), scale / grid, random=random) * grid
    for increment, drawn in zip(increments.tolist(), noise.tolist(), strict=True):
        total += increment
        held = buffers.rates * held
        published.append(total + (float(buffers.weights @ held) + drawn))
        held += drawn
    return published


def explained(buffers, increments, published, grid):
    """Return the first step whose noise is no multiple of the grid for this stream; None if all are."""
    held, total = np.zeros(buffers.losses.size), 0
    for step, (increment, figure) in enumerate(zip(increments.tolist(), published, strict=True)):
        total += increment
        held = buffers.rates * held
        drawn = figure - total - float(buffers.weights @ held)
        nearest = round(drawn / grid) * grid
        if abs(drawn - nearest) > 1e-6 * grid:
            return step
        held += nearest
    return None


@pytest.mark.parametrize("seed", [4, 5])
def test_the_naive_form_tells_neighbours_apart(seed):
    """Exact prefixes plus filtered noise in floats: one stream explains the figures. Ours: both do."""
    horizon = 200
    buffers, grid = buffers_for(horizon), 2.0**-4
    x = np.zeros(horizon, np.int64)
    other = x.copy()
    other[20] = 1
    published = naive_counter(buffers, x, 4.0, grid, SeededRandom(seed))
    assert explained(buffers, x, published, grid) is None
    assert explained(buffers, other, published, grid) is not None
    method = BufferedToeplitz(horizon, EVENT, rho(1e-5))
    state, random = method.begin(1), SeededRandom(seed)
    ours = np.array([state.advance(x[t : t + 1], LIMIT, random, 1)[0] for t in range(horizon)])
    both = [replay(method, stream, ours) for stream in (x, other)]
    unit_of_noise = math.ldexp(1.0, method.grid.unit)
    assert all((np.rint(noise / unit_of_noise) == noise / unit_of_noise).all() for noise in both)


@pytest.mark.parametrize("amount", [1e-9, 1e-5, 0.02, 3.0, 1e4])
def test_figures_have_the_declared_law(amount):
    """Mean, variance and covariance over 30 steps of 40,000 counters; false failure below 1e-6 in all."""
    counters = 40_000
    method = BufferedToeplitz(64, EVENT, rho(amount))
    state, random = method.begin(counters), SeededRandom(13)
    errors = []
    for step in range(30):
        increments = np.full(counters, 3 - step % 7)
        figures = state.advance(increments, LIMIT, random, 1)
        errors.append(figures - sum(3 - each % 7 for each in range(step + 1)))
    errors = np.array(errors)
    expected = method.variances(np.arange(1, 31))
    assert (np.abs(errors.mean(1)) < 6 * np.sqrt(expected / counters)).all()
    if amount < 1e3:  # with noise that rounds to 0 mostly, the law of the rounding is another
        assert (np.abs(errors.var(1) / expected - 1) < 6 * math.sqrt(2 / counters) + 0.02 / expected).all()
        column = columns(64)[0]
        covariance = method.noise.scale**2 * (column[:10] @ column[20:30])
        found = np.cov(errors[9], errors[29])[0, 1]
        assert abs(found - covariance) < 6 * math.sqrt(2 * expected[9] * expected[29] / counters)


def test_noise_is_that_of_no_other_counter_and_no_other_step():
    """Soundness rule 1, over the blocks of a step: correlations of 30,000 pairs; false failure below 1e-8."""
    method = BufferedToeplitz(16, EVENT, rho(1e-4))
    state, random = method.begin(2 * BLOCK), SeededRandom(19)
    steps = [state.advance(np.zeros(2 * BLOCK, np.int64), LIMIT, random, 1) for _ in range(2)]
    fresh = [steps[0], steps[1] - np.rint(method.buffers.rates @ method.buffers.weights * steps[0])]
    halves = [half for each in fresh for half in np.split(each, 2)]
    for one, other in itertools.combinations(halves, 2):
        assert abs(np.corrcoef(one, other)[0, 1]) < 6 / math.sqrt(BLOCK)


def test_threads_do_not_change_a_figure():
    increments = np.arange(3 * BLOCK + 17)
    method = BufferedToeplitz(8, EVENT, rho(0.1))
    states = [method.begin(increments.size) for _ in range(2)]
    sources = [SeededRandom(23), SeededRandom(23)]
    for _ in range(3):
        one, two = (
            state.advance(increments, LIMIT, source, threads)
            for state, source, threads in zip(states, sources, (1, 2), strict=True)
        )
        assert (one == two).all()


def test_every_draw_may_be_refined(monkeypatch):
    """What ball arithmetic decides is what the kernel decides: every sample again, from the same bits."""
    from dpfast.mechanisms.noise import additive
    from dpfast.streaming import buffers as module

    method = BufferedToeplitz(8, EVENT, rho(0.1))
    plain, refined = method.begin(300), method.begin(300)
    first = [plain.advance(np.arange(300), LIMIT, SeededRandom(5), 1) for _ in range(3)]
    monkeypatch.setattr(
        module, "draw_rows", lambda *given: additive.draw_rows(*given, refine_all=True)  # every one of them
    )  # fmt: skip
    again = [refined.advance(np.arange(300), LIMIT, SeededRandom(5), 1) for _ in range(3)]
    assert all((one == two).all() for one, two in zip(first, again, strict=True))


def test_wide_noise_lies_on_a_coarser_grid():
    """Where the noise has a scale above 2**25 the figures do too, and are unbiased.

    False failure below 2e-11: six figures may be 7 standard deviations away.
    """
    own = unit((0, 2**30), max_rows_per_step=4)
    method = BufferedToeplitz(32, own, rho(0.1))
    assert method.grid.exponent > 0
    state = method.begin(20_000)
    for step in range(1, 4):
        figures = state.advance(np.full(20_000, 12_345_678_901), LIMIT * 128, SystemRandom(), 1)
        assert (figures % (1 << method.grid.exponent) == 0).all()
        expected = math.sqrt(method.variances(np.array([step]))[0])
        assert abs((figures - step * 12_345_678_901).mean()) < 7 * expected / math.sqrt(20_000)
        assert abs(figures.std() / expected - 1) < 7 / math.sqrt(40_000)


def test_the_rounding_is_in_the_sensitivity():
    """The event says more than the exact norm, where it can be seen, and never less."""
    for horizon, amount in ((2**20, 1e-9), (2**24, 1e-3), (10, 1.0)):
        method = BufferedToeplitz(horizon, EVENT, rho(amount))
        exact = Fraction(method.buffers.l2_squared(horizon, 1))
        least = math.sqrt(exact) + float(method.rounding(1))
        assert method.event.sensitivity >= least * (1 - 1e-15)
        assert method.event.sensitivity <= least * (1 + 2e-1)
        assert Fraction(method.event.sensitivity) ** 2 >= EVENT.l2_squared(Norms(0, exact))


def test_a_horizon_whose_rounding_would_drown_the_counts_is_refused():
    with pytest.raises(ParameterError, match="horizon must be smaller"):
        BufferedToeplitz(2**32, EVENT, rho(1e-17))


def test_buffers_of_delta_are_calibrated_as_gaussian_noise():
    method = BufferedToeplitz(100, EVENT, epsilon(0.5, 1e-6))
    event = method.event
    from dpfast.mechanisms.noise.calibration import analytic_gaussian_scale

    assert event.scale == pytest.approx(analytic_gaussian_scale(event.sensitivity, Fraction(1, 2), Fraction(1, 10**6)))


def test_no_norm_is_exceeded_by_the_operators():
    """3 of the factor's module: |weight / (1 - rate x)| <= |B(x)| and 1/2 <= |B(x)| on the unit circle."""
    x = np.exp(1j * np.linspace(0, 2 * np.pi, 20_001))
    for horizon in (2, 100, 10_000, 2**20):
        buffers: Buffers = buffers_for(horizon)
        parts = buffers.weights[:, None] / (1 - buffers.rates[:, None] * x)
        whole = np.abs(parts.sum(0))
        assert (np.abs(parts) <= whole * (1 + 1e-9)).all()
        assert (whole >= 0.5 - 1e-9).all()


@pytest.mark.parametrize("horizon", [1, 10, 1000, 10**6, 2**32])
@pytest.mark.parametrize("scale", [0.01, 1.0, 37.5, 2.0**30])
def test_no_buffer_leaves_its_range(horizon, scale):
    """What the module says of the range: beyond it with a probability below 2**-2860, over all steps and counters.

    The soundness rule on caps (2) allows none that AES does not dwarf.
    """
    losses = buffers_for(horizon).losses
    widest = max(np.sqrt(Buffers(loss[None], np.ones(1)).energy(np.array([horizon]))[0]) for loss in losses)
    grid = Grid(scale, scale * widest)
    deviation, step = scale * widest, 2.0**grid.exponent
    assert 2.0 ** (51 + grid.unit) >= 65 * deviation
    assert scale >= 64 * step
    rounded = horizon * 5 / 8 * 2.0**grid.unit
    assert rounded < deviation / 8
    # All but that must stay below 64 deviations of normal noise and 3/4 of one that rounding makes: in bits.
    normal = 64**2 / 2 / np.log(2) - 1
    azuma = (0.75 * deviation) ** 2 / (2 * (step / 2 * widest) ** 2) / np.log(2) - 1
    assert min(normal, azuma) - np.log2(2.0**32 * 2.0**32 * 8) > 2860
