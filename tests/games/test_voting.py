"""The vote between two outcomes: its law for all small electorates, and when the truth pays."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import dpfast as dpf
from dpfast.games import welfare
from dpfast.games.welfare import UTILITY_UNITS
from dpfast.testing import SeededRandom

GRID = (0.0, 0.25, 1.0)
ROWS = list(itertools.product(GRID, repeat=2))


@pytest.fixture
def given_to_the_selection(monkeypatch):
    """Return a function: arguments of a vote -> the exact law of the selection that is made of them."""
    seen = {}

    def spy(sums, epsilon, sensitivity, monotonic, kind, source):
        mechanism = {welfare.EXPONENTIAL: "permute_and_flip", welfare.GUMBEL: "exponential"}[kind]
        seen["law"] = dpf.selection_probabilities(sums, epsilon, sensitivity, monotonic, mechanism)
        return 0

    monkeypatch.setattr(welfare, "select", spy)

    def law(call, *given, **named):
        call(*given, **named)
        return seen["law"]

    return law


def book_loss(margin):
    """Row 10-14 as printed, Laplace noise of scale 1 / epsilon on either sum, epsilon 1: its loss at a margin.

    P(the lesser wins) = exp(-d) (1 + d / 2) / 2, and a replaced voter moves d by 2.
    """

    def logarithm(d):
        return -d + math.log((1 + d / 2) / 2)

    return logarithm(margin) - logarithm(margin + 2)


def test_the_vote_as_printed_loses_twice_its_epsilon():
    """Row 10-14, erratum E32 (a privacy bug): 1.3069, 1.8458 and 1.9972 at margins 0, 10 and 700, toward 2 epsilon."""
    assert [round(book_loss(margin), 4) for margin in (0, 10, 700)] == [1.3069, 1.8458, 1.9972]
    assert book_loss(0) > 1


@pytest.mark.parametrize("neighbors", ["replace", "add_remove"])
def test_every_neighbour_of_small_electorates(given_to_the_selection, neighbors):
    """Row 10-14: no loss above epsilon over all electorates of up to 3 voters, and epsilon is reached."""
    epsilon = 0.75

    def law(rows):
        array = np.array(rows).reshape(len(rows), 2)
        return np.log(given_to_the_selection(dpf.two_outcome_vote, array, epsilon=epsilon, neighbors=neighbors))

    laws = {rows: law(rows) for count in range(4) for rows in itertools.combinations_with_replacement(ROWS, count)}
    worst = 0.0
    for rows, own in laws.items():
        for place in range(len(rows)):
            others = rows[:place] + rows[place + 1 :]
            near = [others] if neighbors == "add_remove" else [tuple(sorted((*others, row))) for row in ROWS]
            worst = max(worst, *(np.abs(own - laws[other]).max() for other in near))
    assert worst == pytest.approx(epsilon, rel=1e-9)
    assert worst <= epsilon * (1 + 1e-12)


def test_the_law_is_that_of_one_laplace_draw(given_to_the_selection):
    for d in (0.0, 0.25, 3.0):
        rows = np.array([[1.0, 0.0]] * int(d) + [[d - int(d), 0.0]])
        losing = given_to_the_selection(dpf.two_outcome_vote, rows, epsilon=0.5)[1]
        assert losing == pytest.approx(math.exp(-0.5 * d / 2) / 2, rel=1e-8)


def payoffs(law_of, worth, ballots, others):
    """Return what each ballot is worth to a voter who pays the outcome's loss for the outcome."""
    laws = [law_of([*others, ballot]) for ballot in ballots]
    costs = dpf.theory.outcome_costs(laws)
    return [float(law @ (np.array(worth) - costs)) for law in laws]


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_whoever_prefers_by_epsilon_votes_for_it(given_to_the_selection, epsilon):
    """Row 10-14: brute force over all ballots of up to 5 others; for less than epsilon a lie can pay."""

    def law_of(ballots):
        return given_to_the_selection(dpf.two_outcome_vote, np.array(ballots), epsilon=epsilon)

    ballots = [(1.0, 0.0), (0.0, 1.0)]
    lies = False
    for count in range(6):
        for others in itertools.combinations_with_replacement(ballots, count):
            true, lie = payoffs(law_of, (epsilon, 0.0), ballots, others)
            assert true >= lie - 1e-12
            true, lie = payoffs(law_of, (epsilon / 20, 0.0), ballots, others)
            lies |= lie > true + 1e-12
    assert lies


def test_who_may_write_numbers_exaggerates(given_to_the_selection):
    """The reason for ballots: between 0 and 1 the truth is not the best report, even for who cares for no privacy."""

    def law_of(rows):
        return given_to_the_selection(dpf.two_outcome_vote, np.array(rows), epsilon=1.0)

    worth = np.array([0.6, 0.1])
    assert law_of([(1.0, 0.0)]) @ worth > law_of([worth]) @ worth


def test_frames_lists_and_missing_values_are_one_election():
    import pandas as pd
    import polars as pl

    rows = [[1.0, 0.0], [0.5, 2.0], [float("nan"), -1.0]]
    kinds = [rows, np.array(rows), pl.DataFrame(rows, schema=["a", "b"], orient="row"), pd.DataFrame(rows)]
    sums = [welfare.added_utilities(welfare.read_utilities(kind)).tolist() for kind in kinds]
    assert sums == [[1.5 * UTILITY_UNITS, UTILITY_UNITS]] * 4
    nothing = np.zeros((0, 2))
    assert dpf.two_outcome_vote(nothing, epsilon=1.0, random=SeededRandom(1)) in (0, 1)


def test_a_vote_is_paid_before_it_is_read():
    ledger = dpf.Ledger(epsilon=1.0)
    dpf.two_outcome_vote([[0.0, 1.0]], epsilon=0.75, ledger=ledger)
    assert ledger.spent.epsilon == 0.75
    with pytest.raises(dpf.errors.BudgetExceededError):
        dpf.two_outcome_vote([[0.0, 1.0]], epsilon=0.75, ledger=ledger)
