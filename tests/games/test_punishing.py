"""The punishing mechanism: its parameters, its gap, and the truth as the best report, by brute force."""

from __future__ import annotations

import itertools
import math

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.errors import ParameterError
from dpfast.games import punishing
from dpfast.games.facilities import place_facilities
from dpfast.games.welfare import UTILITY_UNITS
from dpfast.testing import SeededRandom
from dpfast.theory import commitment_gap, punishing_parameters


def test_the_parameters_of_the_theorem():
    """Row 10-8: outcomes 9, gap 1/4, a million agents: epsilon, q, and the printed loss, 2 q."""
    book = punishing_parameters(outcomes=9, agents=10**6, gap=0.25, constants="book")
    assert book.epsilon == pytest.approx(1.74691e-4, rel=1e-5)
    assert book.probability == pytest.approx(0.0125778, rel=1e-5)
    assert 2 * book.probability == pytest.approx(0.0251555, rel=1e-5)
    assert 2 * book.epsilon <= book.probability * 0.25 / 9
    sharp = punishing_parameters(outcomes=9, agents=10**6, gap=0.25)
    assert sharp.loss < book.loss / 2.5 < 0.0251555 / 2.5
    same = punishing_parameters(outcomes=9, agents=10**6, gap=0.25, epsilon=book.epsilon)
    assert same.probability == pytest.approx(book.probability / 8, rel=2e-3)


@pytest.mark.parametrize(("outcomes", "agents", "gap"), [(2, 10**4, 1.0), (9, 10**6, 0.25), (500, 10**9, 0.01)])
def test_the_default_epsilon_is_about_the_best(outcomes, agents, gap):
    found = punishing_parameters(outcomes, agents, gap)
    for factor in (0.5, 0.8, 1.25, 2.0):
        other = punishing_parameters(outcomes, agents, gap, epsilon=found.epsilon * factor)
        assert found.loss < other.loss * 1.01


@pytest.mark.parametrize("candidates", [2, 3, 9, 16, 17, 100])
def test_the_worst_expected_loss_of_the_selection(candidates):
    """All but one lie equally far below it; other scores do no more harm, and the printed bound fails from 17 on."""
    at = punishing_parameters(candidates, 1, 1.0, epsilon=1e6)
    bound = (at.loss - at.probability) / (1 - at.probability) * 1e6

    def loss(gaps):
        weights = np.exp(-np.asarray(gaps) / 2)
        return (gaps * weights).sum() / (1 + weights.sum())

    reached = max(loss(np.full(candidates - 1, x)) for x in np.linspace(0, 40, 4001))
    assert reached <= bound <= reached * 1.0001
    generator = np.random.default_rng(1)
    for _ in range(300):
        assert loss(generator.exponential(6.0, candidates - 1)) <= bound
    assert (bound <= math.log(candidates)) == (candidates <= 16)


def expected(types, probability, epsilon, utilities, own, place):
    """Return what an agent of type ``own`` expects whose report is ``types[place]``."""
    best = utilities.argmax(axis=2)
    reached = np.rint(utilities.max(axis=2) * UTILITY_UNITS).astype(np.int64)
    free = dpf.selection_probabilities(reached[list(types)].sum(axis=0), epsilon, UTILITY_UNITS)
    outcomes = np.arange(utilities.shape[1])
    held = utilities[own, outcomes, best[types[place]]].mean()
    return (1 - probability) * (free @ utilities[own].max(axis=1)) + probability * held


def largest_gain(utilities, agents, epsilon, probability):
    """Return the most that any agent gains by any lie, over all truths and all reports of the others."""
    kinds, gain = range(len(utilities)), -math.inf
    for others in itertools.combinations_with_replacement(kinds, agents - 1):
        for own, lie in itertools.permutations(kinds, 2):
            true, false = ((own, *others), (lie, *others))
            values = [expected(types, probability, epsilon, utilities, own, 0) for types in (true, false)]
            gain = max(gain, values[1] - values[0])
    return gain


def facility_utilities(steps, lists):
    points = np.arange(steps + 1) / steps
    distances = np.abs(points[:, None] - points[None, :])
    utilities = np.zeros((steps + 1, len(lists), steps + 1))
    for outcome, chosen in enumerate(lists):
        for place in set(chosen):
            utilities[:, outcome, place] = 1 - distances[:, place]
    return utilities


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_no_lie_pays_in_random_games(epsilon):
    """Rows 10-7 and 10-8, theorem 10.3: all profiles of 3 agents in games of 3 types, outcomes and reactions."""
    generator = np.random.default_rng(5)
    paid = 0
    for _ in range(6):
        utilities = generator.integers(0, 5, (3, 3, 3)) / 4
        gap = commitment_gap(utilities)
        if gap <= 0:
            continue
        q = punishing_parameters(3, 3, gap, epsilon=epsilon).probability
        assert largest_gain(utilities, 3, epsilon, q) <= 1e-9
        paid += largest_gain(utilities, 3, epsilon, 0.0) > 1e-6
    assert paid, "without punishment some lie pays"


def test_the_gap_of_facilities():
    """Row 10-9, erratum E30: for m = 4 the gap is 0 with one facility and 1/4 with two, for lists as for sets."""
    ones = facility_utilities(4, list(itertools.product(range(5), repeat=1)))
    twos = facility_utilities(4, list(itertools.product(range(5), repeat=2)))
    sets = facility_utilities(4, list(itertools.combinations(range(5), 2)))
    assert commitment_gap(ones) == 0
    assert commitment_gap(twos) == commitment_gap(sets) == 0.25
    with pytest.raises(ParameterError, match="without a gap"):
        dpf.punishing_mechanism([0, 1], ones)


@pytest.mark.parametrize("facilities", [1, 2])
def test_no_lie_pays_about_facilities_but_one(facilities):
    """Row 10-9: with one facility a lie pays however often reports bind; with two it never does."""
    steps, epsilon = 5, 1.0
    sets = list(itertools.combinations(range(steps + 1), facilities))
    utilities = facility_utilities(steps, sets)
    q = punishing_parameters(len(sets), 3, 1 / steps, epsilon=epsilon).probability
    assert largest_gain(utilities, 3, epsilon, 0.0) > 1e-4
    assert (largest_gain(utilities, 3, epsilon, q) <= 1e-9) == (facilities == 2)
    if facilities == 1:
        assert largest_gain(utilities, 3, epsilon, 0.9) > 1e-4


def test_facilities_are_the_punishing_mechanism_of_their_utilities(monkeypatch):
    seen = []

    def spy(scores, epsilon, sensitivity, monotonic, kind, source):
        seen.append(np.asarray(scores) / sensitivity)
        return 0

    monkeypatch.setattr(punishing, "select", spy)
    monkeypatch.setattr(punishing, "_falls", lambda *given: False)
    homes = pl.Series([0.0, 0.3, 0.3, 1.0, 7.0, np.nan, None])
    place_facilities(homes, 2, steps=4, epsilon=1.0)
    utilities = facility_utilities(4, list(itertools.combinations(range(5), 2)))
    # No report leaves anybody out, or it might pay: what is missing is type 0.
    dpf.punishing_mechanism(pl.Series([0, 1, 1, 4, 4, -1, None]), utilities, epsilon=1.0)
    dpf.punishing_mechanism([0, 1, 1, 4, 4, 0, 0], utilities, epsilon=1.0)
    np.testing.assert_allclose(seen[0], seen[1], atol=1e-8)
    np.testing.assert_array_equal(seen[1], seen[2])


def test_how_often_reports_bind(seed):
    """They bind with probability q, and then outcomes are uniform. Fails in fewer than 1 of 5 * 10**7 runs."""
    utilities = facility_utilities(2, list(itertools.combinations(range(3), 2)))
    random = SeededRandom(seed)
    drawn = [dpf.punishing_mechanism([0] * 50, utilities, epsilon=2.0, random=random) for _ in range(3000)]
    q = drawn[0].parameters.probability
    bound = [one.outcome for one in drawn if one.committed]
    assert abs(len(bound) - 3000 * q) < 6 * math.sqrt(3000 * q * (1 - q))
    for outcome in range(3):
        assert abs(bound.count(outcome) - len(bound) / 3) < 6 * math.sqrt(len(bound) * 2 / 9)
    assert {one.outcome for one in drawn if not one.committed} == {0, 1}, "the best two, each worth the same"
    assert drawn[0].reactions.tolist() == utilities[:, drawn[0].outcome].argmax(axis=1).tolist()


def test_edges_and_payment():
    ledger = dpf.Ledger(epsilon=1.0)
    dpf.place_facilities([], 2, steps=2, epsilon=0.5, ledger=ledger)
    dpf.place_facilities([0.5] * 10, 2, steps=2, ledger=ledger)
    assert ledger.spent.epsilon > 0.5
    assert ledger.identity.neighbors == "replace"
    for wrong in ({"facilities": 2, "steps": 1}, {"facilities": 9, "steps": 100}):
        with pytest.raises(ParameterError, match="steps"):
            dpf.place_facilities([0.5], **wrong)
    utilities = facility_utilities(2, list(itertools.combinations(range(3), 2)))
    nobody = pl.Series([None, None], dtype=pl.Int64)
    assert dpf.punishing_mechanism(nobody, utilities, epsilon=1.0).outcome in range(3)
