"""Counters by binary trees: golden errors, laws, and the attack on what they keep."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import dpfast as dpf
from dpfast.accounting.events import DiscreteLaplace, Gaussian
from dpfast.streaming.method import LARGEST_TOTAL
from dpfast.streaming.trees import BinaryTree, Honaker, node_count, places, tree_norms
from dpfast.testing import SeededRandom
from tests.streaming.planned import EVENT, epsilon, rho, unit


def test_golden_variance_of_figure_12_1():
    """Row 12-8: popcount(s) times 2 (lg T / epsilon)**2; T = 1024 without the root serves 1,023 steps, mean 1001."""
    tree = BinaryTree(1023, EVENT, epsilon(1), {"levels": 10})
    assert tree.noise.scale == 10.0
    steps = np.arange(1, 1024)
    ones = np.array([int(step).bit_count() for step in steps])
    # Discrete Laplace noise of scale b has a variance of 2 b**2 - 1/6 and a little.
    np.testing.assert_allclose(tree.variances(steps), ones * (200 - 1 / 6), rtol=1e-4)
    assert tree.mean_variance() == pytest.approx(1001, rel=2e-3)
    # Fewer levels, with more nodes at the top, err less.
    assert BinaryTree(1023, EVENT, epsilon(1)).mean_variance() < 0.9 * 1001


@pytest.mark.parametrize(("exponent", "mean", "largest"), [(10, 7.0745, 10), (16, 11.3138, 16)])
def test_golden_errors_of_the_tree(exponent, mean, largest):
    """Reference 5: the errors per unit of sensitivity and noise, for T - 1 steps and lg T levels."""
    tree = BinaryTree(2**exponent - 1, EVENT, rho(0.5), {"levels": exponent})
    assert tree.noise.scale == pytest.approx(math.sqrt(exponent))
    # Reference numbers are of noise that is not rounded to whole numbers.
    rounding = tree.noise.scale / tree.noise.deviation
    steps = np.arange(1, 2**exponent)
    assert math.sqrt(tree.mean_variance()) * rounding == pytest.approx(mean, abs=5e-5)
    assert math.sqrt(tree.variances(steps).max()) * rounding == pytest.approx(largest, abs=1e-9)


@pytest.mark.parametrize(("exponent", "mean", "largest"), [(10, 5.6499, 7.9895), (16, 8.6503, 12.2334)])
def test_golden_errors_of_honaker(exponent, mean, largest):
    """Reference 5: all T steps, with the root's level."""
    tree = Honaker(2**exponent, EVENT, rho(0.5), {"levels": exponent + 1})
    rounding = tree.noise.scale / tree.noise.deviation
    assert math.sqrt(tree.mean_variance()) * rounding == pytest.approx(mean, abs=1e-4)
    assert math.sqrt(tree.variances(np.arange(1, 2**exponent + 1)).max()) * rounding == pytest.approx(largest, abs=1e-4)
    assert math.sqrt(Honaker(2**exponent, EVENT, rho(0.5)).mean_variance()) < mean


def test_naive_counters_are_worse():
    """Row 12-6: noise at each step errs by sqrt(2 T) / epsilon in the end, on each total by sqrt(2) T / epsilon."""
    steps = 4096
    each = BinaryTree(steps, EVENT, epsilon(1), {"levels": 1})
    assert math.sqrt(each.variances(np.array([steps]))[0]) == pytest.approx(math.sqrt(2 * steps), rel=0.05)
    totals = math.sqrt(2) * steps
    assert BinaryTree(steps, EVENT, epsilon(1)).variances(np.arange(1, steps + 1)).max() < totals**2 / 1000
    assert BinaryTree(steps, EVENT, epsilon(1)).mean_variance() < each.mean_variance()


@pytest.mark.parametrize("kind", [BinaryTree, Honaker])
@pytest.mark.parametrize("horizon", [1, 2, 3, 7, 8, 9, 100])
def test_mean_variance_is_the_mean(kind, horizon):
    for levels in range(1, horizon.bit_length() + 1):
        tree = kind(horizon, EVENT, rho(0.1), {"levels": levels})
        assert tree.mean_variance() == pytest.approx(tree.variances(np.arange(1, horizon + 1)).mean())
        assert tree.mean_variance() >= kind(horizon, EVENT, rho(0.1)).mean_variance() * (1 - 1e-12)


def nodes_of(horizon, levels):
    """Return the matrix of all nodes, one a row."""
    rows = []
    for level in range(levels):
        for start in range(0, horizon, 1 << level):
            row = np.zeros(horizon, np.int64)
            row[start : start + (1 << level)] = 1
            rows.append(row)
    return np.array(rows)


@pytest.mark.parametrize(("horizon", "levels"), [(4, 2), (6, 3), (8, 4)])
@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize("bounds", [(0, 1), (-1, 2), (1, 3)])
def test_sensitivities_hold_for_all_neighbours(horizon, levels, neighbors, bounds):
    """Row 12-3: event level (one step) and user level (all steps), over every unit of a small stream."""
    matrix = nodes_of(horizon, levels)
    for most in (1, 2, horizon):
        one = [
            (places, values)
            for count in range(most + 1)
            for places in itertools.combinations(range(horizon), count)
            for values in itertools.product({*bounds, 0} - ({0} if bounds[0] > 0 else set()), repeat=count)
        ]
        if len(one) > 400:
            one = [one[i] for i in np.random.default_rng(5).choice(len(one), 400, replace=False)]
            one.append((tuple(range(most)), (max(bounds, key=abs),) * most))
        streams = np.zeros((len(one), horizon), np.int64)
        for row, (where, values) in enumerate(one):
            streams[row, list(where)] = values
        moves = streams if neighbors == "add_remove" else (streams[:, None] - streams[None]).reshape(-1, horizon)
        images = moves @ matrix.T
        own, norms = unit(bounds, neighbors, max_steps=most), tree_norms(levels, most)
        largest = np.abs(images).sum(1).max(), (images**2).sum(1).max()
        assert largest[0] <= own.l1(norms)
        assert largest[1] <= own.l2_squared(norms)
        if neighbors == "add_remove":
            assert largest == (own.l1(norms), own.l2_squared(norms))


def test_figures_have_the_declared_law():
    """The mean and the variance of 20,000 counters over 37 steps; false failure: below 1e-6 (6 standard errors)."""
    increments = np.random.default_rng(7).integers(-3, 9, 37)
    for kind, budget in ((BinaryTree, epsilon(0.7)), (Honaker, epsilon(0.7)), (Honaker, rho(0.02))):
        method = kind(50, EVENT, budget)
        state, random = method.begin(20_000), SeededRandom(11)
        for step, amount in enumerate(increments, 1):
            figures = state.advance(np.full(20_000, amount), LARGEST_TOTAL, random, 1)
            expected = math.sqrt(method.variances(np.array([step]))[0])
            errors = figures - increments[:step].sum()
            assert abs(errors.mean()) < 6 * expected / math.sqrt(20_000)
            # Sums of Laplace noise have a kurtosis of 6 at most: the variance's relative error is sqrt(5 / n).
            assert abs(errors.var() / expected**2 - 1) < 6 * math.sqrt(5 / 20_000) + (1 / 12) / expected**2


@pytest.mark.parametrize("mechanism", ["tree", "honaker"])
def test_a_run_continues_what_steps_began(mechanism):
    """The kernels over many steps measure the same nodes as those over many counters: without noise, all prefixes."""
    increments = np.random.default_rng(3).integers(-5, 6, 1000)
    for split in (0, 1, 7, 512, 1000):
        counter = dpf.continual_count(1000, epsilon=1e6, mechanism=mechanism)
        first = [counter.step(int(one)) for one in increments[:split]]
        # The noise of scale 1e-5 is 0 but for one draw in exp(1e5).
        assert [*first, *counter.run(increments[split:])] == increments.cumsum().tolist()
        assert counter.steps == 1000


def test_nodes_and_their_places_agree():
    for top in range(5):
        for step in range(1, 70):
            level, before = places(step, top)
            counts = [node_count(np.array([step]), each, top)[0] for each in range(top + 1)]
            earlier = step - (1 << level)
            counts[level] -= 1
            assert [node_count(np.array([earlier]), each, top)[0] for each in range(top + 1)] == counts
            assert (before == top + 1) == (earlier == 0)


def test_what_figure_12_1_keeps_gives_an_increment_away():
    """Row 12-12: who knows the increments up to t, and sees the state after the next, subtracts and has x_(t+1)."""
    secret = np.random.default_rng(9).integers(0, 2, 200)
    for bit in secret.tolist():
        counter = dpf.continual_count(64, epsilon=0.1, mechanism="tree")
        known = [1, 0, 1, 1]
        for one in [*known, bit]:
            counter.step(one)
        # One look at the state: it holds the exact prefix.
        assert int(counter._state.arrays["totals"][0]) - sum(known) == bit
    with pytest.raises(dpf.errors.LedgerError, match="the state is private"):
        _ = counter.state


def test_events_are_what_is_drawn():
    tree = BinaryTree(1000, unit(max_steps=3), epsilon(0.5), {"levels": 10})
    assert tree.event == DiscreteLaplace(60.0, 30)
    noisy = BinaryTree(1000, EVENT, epsilon(0.5, 1e-6), {"levels": 10})
    assert isinstance(noisy.event, Gaussian)
    assert noisy.event.sensitivity == pytest.approx(math.sqrt(10))
