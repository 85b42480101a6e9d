"""States that an intruder may see: the counter of figure 12.2 and the density estimator."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dpfast as dpf
from dpfast.errors import LedgerError, ParameterError
from dpfast.streaming.method import LARGEST_TOTAL
from dpfast.streaming.pan_private import PanPrivate
from dpfast.testing import SeededRandom
from tests.streaming.planned import EVENT, epsilon, unit


def test_golden_variance_of_figure_12_2():
    """Row 12-13: 2 (1 + lg T)**3 / epsilon**2 = 2662 for T = 1024, sd 51.5946; discrete noise has 1/6 less a draw."""
    method = PanPrivate(1024, EVENT, epsilon(1))
    assert method.noise.scale == 11.0
    assert method.mean_variance() == pytest.approx(2662 - 11 / 6, rel=1e-5)
    assert math.sqrt(method.mean_variance()) == pytest.approx(51.5946, rel=1e-3)


def figures_and_state(noise, first, increments, seen):
    """Play figure 12.2 with given noises, by (level, number of the interval); return figures, and the state at a step.

    Apart from the code under test: the loops of the book.
    """
    levels = max((level for level, _ in noise), default=-1) + 1
    counter, figures, state = first, [], None
    for step, increment in enumerate(increments, 1):
        counter += increment
        active = {level: (step - 1) >> level for level in range(levels)}
        figures.append(counter + sum(noise[level, number] for level, number in active.items()))
        if step == seen:
            left = {level: noise[level, number] for level, number in active.items() if step % (1 << level)}
            state = counter, tuple(sorted(left.items()))
    return figures, state


def intervals_of_prefix(steps):
    """Return the intervals that the first so many steps are made of."""
    found, start = [], 0
    for level in reversed(range(steps.bit_length())):
        if steps >> level & 1:
            found.append((level, start >> level))
            start += 1 << level
    return found


@pytest.mark.parametrize("horizon", [1, 2, 3, 4, 7, 8])
def test_figures_and_state_together_are_private(horizon):
    """Rows 12-3 and 12-13: for every changed step and every time of intrusion, by the pairing of the proof.

    Noises for one stream and noises for its neighbour that give the same figures and the same state differ in at most
    1 + k places, by 1 each. The counter of figure 12.1 keeps the exact prefix, which no noise can make the same.
    """
    levels = (horizon - 1).bit_length()
    generator = np.random.default_rng(horizon)
    padded = 1 << levels
    for changed in range(1, horizon + 1):
        for seen in range(1, horizon + 1):
            x = generator.integers(0, 3, horizon)
            other = x.copy()
            other[changed - 1] += 1
            noise = {
                (level, number): int(generator.integers(-9, 10))
                for level in range(levels)
                for number in range(padded >> level)
            }
            first, moved = 4, dict(noise)
            if changed <= seen:
                beside = first - 1
                for place in intervals_of_prefix(changed - 1):
                    moved[place] += 1
            else:
                beside = first
                mirrored = intervals_of_prefix(padded - changed + 1)
                for level, number in mirrored:
                    moved[level, (padded >> level) - 1 - number] -= 1
            places = sum(noise[place] != moved[place] for place in noise) + (beside != first)
            assert places <= 1 + levels
            assert all(abs(noise[place] - moved[place]) <= 1 for place in noise)
            mine = figures_and_state(noise, first, x.tolist(), seen)
            assert mine == figures_and_state(moved, beside, other.tolist(), seen)


def test_the_code_plays_figure_12_2():
    """The same loops with the noises that the code drew, read from its states one after another."""
    horizon, levels = 13, 4
    method = PanPrivate(16, EVENT, epsilon(0.5))
    state, random = method.begin(3), SeededRandom(5)
    generator = np.random.default_rng(2)
    total = np.zeros(3, np.int64)
    first = None
    for step in range(1, horizon + 1):
        increments = generator.integers(0, 5, 3)
        kept = state.arrays["intervals"].copy()
        figures = state.advance(increments, LARGEST_TOTAL, random, 1)
        total += increments
        first = state.arrays["counter"] - total if first is None else first
        # The counter is the sum and its first noise; noises stay while their interval goes on, and end with it.
        assert (state.arrays["counter"] - total == first).all()
        for level in range(levels):
            if step % (1 << level) == 0:
                assert (state.arrays["intervals"][level] == 0).all()
            elif (step - 1) % (1 << level):
                assert (state.arrays["intervals"][level] == kept[level]).all()
        going_on = state.arrays["intervals"].sum(0)
        assert (figures - state.arrays["counter"] - going_on).any()


def test_figures_have_the_declared_law():
    """Mean and variance of 30,000 counters in 20 steps; false failure below 1e-7 (6 standard errors)."""
    method = PanPrivate(20, unit(max_steps=2), epsilon(2))
    assert method.noise.scale == 6.0
    state, random = method.begin(30_000), SeededRandom(8)
    for step in range(1, 21):
        figures = state.advance(np.full(30_000, 2), LARGEST_TOTAL, random, 1)
        errors = figures - 2 * step
        assert abs(errors.mean()) < 6 * math.sqrt(method.mean_variance() / 30_000)
        assert abs(errors.var() / method.mean_variance() - 1) < 6 * math.sqrt(5 / 30_000)


def test_the_attack_on_figure_12_1_fails():
    """Row 12-12, on figure 12.2: the known prefix subtracted from the state leaves noise that hides the bit.

    Guessed from the state at epsilon = 1 over 64 steps, k = 6: a bit is told with probability 1/2 + tanh(1/14) / 2 at
    most, .5356, over 28,000 counters; false failure below 4.1e-11, the normal tail at 6.5 deviations.
    """
    bits = np.random.default_rng(3).integers(0, 2, 28_000)
    counter = dpf.continual_count(64, epsilon=1.0, mechanism="pan_private", counters=bits.size)
    for one in (1, 0, 1, 1):
        counter.step(np.full(bits.size, one))
    counter.step(bits)
    guessed = counter.state["counter"] - 3 >= 1
    assert (guessed == bits).mean() < 0.5 + math.tanh(1 / 14) / 2 + 6.5 * 0.5 / math.sqrt(bits.size)


def test_what_pan_private_counters_refuse():
    with pytest.raises(ParameterError, match="mechanism must be one without"):
        dpf.continual_count(8, rho=1.0, mechanism="pan_private")
    with pytest.raises(ParameterError, match=r"pan-private noise must be below 2\*\*25"):
        dpf.continual_sum(8, (0, 2**40), epsilon=1e-3, mechanism="pan_private")


def test_golden_losses_of_a_random_bit():
    """Row 12-4: a bias of .1, .25, .4 costs ln(1 / (1 - 2 bias)), over twice the bias (E35); ours costs epsilon."""
    for bias, loss in ((0.1, 0.223144), (0.25, 0.693147), (0.4, 1.609438)):
        cost = max(math.log((0.5 + bias) / 0.5), math.log(0.5 / (0.5 - bias)))
        assert cost == pytest.approx(loss, abs=5e-7)
        assert cost > 2 * bias
    seen = dpf.PanPrivateDensity(10, 0.2)
    assert seen.bias == pytest.approx(0.0475813, abs=5e-8)
    for budget in (1e-6, 1e-3, 0.5, 2.0, 20.0):
        own = dpf.PanPrivateDensity(10, budget).bias
        cost = max(math.log1p(2 * own), -math.log1p(-2 * own) if own < 0.5 else 0.0)
        assert cost <= budget / 2 * (1 + 1e-9)
        assert cost == pytest.approx(budget / 2, rel=1e-6)


def test_bits_have_the_declared_law():
    """Ones among 200,000 members that occurred and as many that did not; false failure below 1e-7."""
    size = 200_000
    seen = dpf.PanPrivateDensity(2 * size, 1.0, random=SeededRandom(6))
    for _ in range(2):
        # However often: the last draw counts.
        seen.arrive(np.arange(size))
    share = seen.state[:size].mean(), seen.state[size:].mean()
    assert abs(share[0] - 0.5 - seen.bias) < 5.5 * 0.5 / math.sqrt(size)
    assert abs(share[1] - 0.5) < 5.5 * 0.5 / math.sqrt(size)


@pytest.mark.parametrize("density", [0.0, 0.3, 1.0])
def test_the_density_is_estimated_without_bias(density):
    """Row 12-4: divided by the bias (E36; as printed, it is 2 bias times that). False failure below 1e-6."""
    population, found = 20_000, []
    for run in range(20):
        seen = dpf.PanPrivateDensity(population, 1.0, random=SeededRandom(run))
        seen.arrive(np.arange(int(density * population)))
        found.append(seen.release())
    assert abs(np.mean(found) - density) < 5 * seen.error / math.sqrt(20)
    as_printed = 2 * seen.bias * density
    assert density == 0 or abs(np.mean(found) - as_printed) > 10 * seen.error


def test_one_estimate_for_one_charge():
    ledger = dpf.Ledger(epsilon=1.0)
    seen = dpf.PanPrivateDensity(100, 0.75, ledger=ledger)
    seen.arrive([1, 2, 3, 2, -1, 100])
    seen.release()
    for again in (seen.release, lambda: seen.arrive([1])):
        with pytest.raises(LedgerError, match="has been released"):
            again()
    assert ledger.spent.epsilon == 0.75
    with pytest.raises(dpf.errors.BudgetExceededError):
        dpf.PanPrivateDensity(100, 0.5, ledger=ledger)
    with pytest.raises(ParameterError, match="epsilon must be at least 1e-06"):
        dpf.PanPrivateDensity(100, 1e-7)


def test_replaced_members_cost_twice_as_much():
    one, two = dpf.PanPrivateDensity(10, 1.0), dpf.PanPrivateDensity(10, 2.0, neighbors="replace")
    assert one.bias == two.bias
