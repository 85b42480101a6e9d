"""The outcome that is best for all: its law, what it maximises, what a lie gains, and payments that take that away."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import dpfast as dpf
from dpfast.errors import ParameterError
from dpfast.games.welfare import UTILITY_UNITS, added_utilities
from dpfast.testing import SeededRandom

from .test_voting import given_to_the_selection  # noqa: F401

GRID = (0.0, 0.5, 1.0)
ROWS = [np.array(row) for row in itertools.product(GRID, repeat=3)]


def law(rows, epsilon):
    """The law of `dpf.select_outcome`, written out."""
    return dpf.selection_probabilities(added_utilities(np.array(rows)), epsilon, UTILITY_UNITS)


def test_the_law_is_what_the_function_draws_from(given_to_the_selection):  # noqa: F811
    rows = np.array([[0.1, 0.9, 0.5], [0.4, 0.6, 0.3]])
    np.testing.assert_array_equal(given_to_the_selection(dpf.select_outcome, rows, epsilon=0.5), law(rows, 0.5))


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_expectations_of_neighbours_and_what_a_lie_gains(epsilon):
    """Rows 10-1 and 10-2: exp(-epsilon) E' <= E <= exp(epsilon) E', hence truthful up to 2 epsilon.

    The sharp gain, tanh(epsilon / 4), is reached up to 1 in 100; a coalition of 2 gains tanh(epsilon / 2) at most, and
    so do two mechanisms one after the other (erratum E29).
    """
    most = math.tanh(epsilon / 4)
    worst = worst_of_two = 0.0
    others = [np.array([a, b, 0.0]) for a in np.linspace(0, 1, 9) for b in (0.0, 1.0)]
    for other in others:
        laws = [law([other, row], epsilon) for row in ROWS]
        for one, two in itertools.product(laws, repeat=2):
            for function in ROWS:
                assert one @ function <= math.exp(epsilon) * (two @ function) * (1 + 1e-12)
            worst = max(worst, np.abs(one - two).sum() / 2)
    for pairs in itertools.product(itertools.combinations_with_replacement(ROWS[::5], 2), repeat=2):
        one, two = (law(pair, epsilon) for pair in pairs)
        worst_of_two = max(worst_of_two, np.abs(one - two).sum() / 2)
        twice = np.outer(one, one) - np.outer(two, two)
        assert np.abs(twice).sum() / 2 <= math.tanh(epsilon) + 1e-12
    assert 0.9 * most < worst <= most + 1e-12 <= 2 * epsilon
    assert worst_of_two <= math.tanh(epsilon / 2) + 1e-12


def regularised(distribution, scores, weight):
    """The mean score plus ``weight`` times the entropy."""
    return distribution @ scores - weight * (distribution @ np.log(distribution))


def test_the_law_maximises_welfare_plus_entropy(seed):
    """Rows 10-6 and 10-11: the conditions of Karush, Kuhn and Tucker hold for exp(epsilon n F / 2), not as printed.

    That is erratum E31. The welfare is OPT - 2 ln(outcomes / miss) / (epsilon n) at least.
    """
    generator = np.random.default_rng(seed)
    rows, epsilon = generator.random((20, 5)), 0.7
    count, average = len(rows), rows.mean(axis=0)
    weight = 2 / (epsilon * count)
    ours = law(rows, epsilon)
    printed = np.exp(epsilon * average / (2 * count))
    for distribution, holds in ((ours, True), (printed / printed.sum(), False)):
        multipliers = average - weight * (np.log(distribution) + 1)
        assert (np.ptp(multipliers) < 1e-7) == holds
    best = regularised(ours, average, weight)
    for other in generator.dirichlet(np.ones(5), 500):
        assert regularised(other + 1e-300, average, weight) <= best + 1e-9
    # Its value in closed form, and the bound of the outcome's welfare.
    assert best == pytest.approx(weight * np.log(np.exp(average / weight).sum()), rel=1e-7)
    for beta in (0.5, 0.05):
        error = dpf.selection_error(5, epsilon, miss=beta) / count
        assert error == pytest.approx(weight * math.log(5 / beta), rel=1e-9)
        assert ours[average < average.max() - error].sum() <= beta


@pytest.mark.parametrize("epsilon", [1e-18, 0.4, 3.0, 1000.0])
def test_payments_make_the_truth_best(epsilon):
    """Row 10-11: all truths, lies and others' reports of games of 2 agents and 3 outcomes; not without."""
    gains = []
    few = ROWS[:: 1 if epsilon == 0.4 else 2]
    for other in few:
        laws = [law([row, other], epsilon) for row in few]
        paid = [dpf.vcg_payments([row, other], epsilon)[0] for row in few]
        assert min(paid) >= 0
        for own, row in enumerate(few):
            left = [distribution @ row - pays for distribution, pays in zip(laws, paid, strict=True)]
            assert max(left) <= left[own] + 1e-8
            assert left[own] >= -1e-8
            gains.append(max(distribution @ row for distribution in laws) - laws[own] @ row)
    assert max(gains) > 1e-3 or epsilon < 1e-9


def test_without_entropy_payments_are_those_of_vickrey():
    rows = np.array([[0.75, 0.0], [0.0, 0.5], [0.0, 0.125]])
    np.testing.assert_allclose(dpf.vcg_payments(rows, epsilon=1e6), [0.625, 0, 0], atol=1e-9)
    assert dpf.vcg_payments(np.zeros((0, 2)), epsilon=1.0).size == 0


def test_permute_and_flip_and_rho_and_ledgers():
    rows = np.tile([[0.0, 1.0]], (500, 1))
    ledger = dpf.Ledger(epsilon=2.0, delta=1e-6, accountant="zcdp")
    dpf.select_outcome(rows, rho=0.01, ledger=ledger)
    assert 0 < ledger.spent.rho <= 0.01
    assert dpf.select_outcome(rows, epsilon=0.5, selection="permute_and_flip", random=SeededRandom(1)) == 1
    assert dpf.select_outcome(rows, epsilon=0.5, neighbors="add_remove", random=SeededRandom(1)) == 1


def test_costs_of_information():
    """Rows 10-10 and 10-13: the sandwich. A random report tells 0 bits, the truth 1; outcome by outcome it is more."""
    assert dpf.theory.information_cost([[0.5, 0.5], [0.5, 0.5]]) == 0
    assert dpf.theory.information_cost([[1, 0], [0, 1]]) == 1
    # Where others know the type almost surely, the truth tells almost nothing, though it tells it for certain.
    assert dpf.theory.information_cost([[1, 0], [0, 1]], [0.999, 0.001]) < 0.012
    assert dpf.theory.outcome_costs([[1, 0], [0, 1]]).tolist() == [math.inf, math.inf]
    assert dpf.theory.outcome_costs([[1, 0], [1, 0]]).tolist() == [0, 0]
    response = [[0.75, 0.25], [0.25, 0.75]]
    assert dpf.theory.outcome_costs(response).max() == pytest.approx(math.log(3))


@pytest.mark.parametrize("rows", [[], [[]], [[], []]])
def test_without_rows_somebody_says_how_many_outcomes_there_are(rows):
    with pytest.raises(ParameterError, match="utilities must be a row for each agent"):
        dpf.select_outcome(rows, epsilon=1.0)
    with pytest.raises(ParameterError, match="utilities must be a row for each agent"):
        dpf.vcg_payments(rows, 1.0)
    assert dpf.select_outcome(rows, epsilon=1.0, outcomes=2) in (0, 1)
    assert dpf.vcg_payments(rows, 1.0, outcomes=2).tolist() == [0.0] * len(rows)
