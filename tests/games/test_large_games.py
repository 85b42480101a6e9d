"""Equilibria of crowds: beach and mountain, rules that invite lies, and one that does not."""

from __future__ import annotations

import itertools
import math

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.errors import ParameterError
from dpfast.games import large_games
from dpfast.mechanisms.noise.integer_noise import IntegerNoise
from dpfast.testing import SeededRandom

BEACH, MOUNTAIN = 0, 1
#: What beach and mountain are worth to those who love the one or the other, against one more person there.
PAYOFFS = np.array([[[10.0, 0.0], [0.0, 5.0]], [[5.0, 0.0], [0.0, 10.0]]])


def payoff(kind, action, share_of_beach):
    """As the text has it: 10 p and 5 (1 - p) for a beach lover, 5 p and 10 (1 - p) for the other."""
    p = share_of_beach
    return [[10 * p, 5 * (1 - p)], [5 * p, 10 * (1 - p)]][kind][action]


def regret(actions, beach_lovers):
    """What somebody gains by another action, in a large crowd with this share of beach lovers."""
    shares = (beach_lovers, 1 - beach_lovers)
    p = sum(share for share, action in zip(shares, actions, strict=True) if action == BEACH)
    return max(payoff(kind, 1 - action, p) - payoff(kind, action, p) for kind, action in enumerate(actions))


def test_both_pure_profiles_are_equilibria():
    """Row 10-4, definition 10.3: whoever they are, all at the beach is an equilibrium, and all on the mountain too."""
    for share in np.linspace(0, 1, 11):
        assert regret((BEACH, BEACH), share) <= 0
        assert regret((MOUNTAIN, MOUNTAIN), share) <= 0
    assert regret((BEACH, MOUNTAIN), 0.5) <= 0 < regret((BEACH, MOUNTAIN), 0.1)


def test_sending_all_where_the_few_want_to_go_invites_lies():
    """Row 10-4: a rule that knows exact counts, by brute force; the private choice gains little for any lie."""

    def minority(counts):
        return BEACH if counts[BEACH] < counts[MOUNTAIN] else MOUNTAIN

    gains = []
    for others in itertools.product(range(6), repeat=2):
        for kind, lie in ((BEACH, MOUNTAIN), (MOUNTAIN, BEACH)):
            ends = []
            for said in (kind, lie):
                counts = list(others)
                counts[said] += 1
                everybody = minority(counts)
                ends.append(payoff(kind, everybody, 1.0 if everybody == BEACH else 0.0))
            gains.append(ends[1] - ends[0])
    assert max(gains) == 5


@pytest.fixture
def noise(monkeypatch):
    """Return a list that sets the noise of the next measurements, and a list of what was measured, and how."""
    added, seen = [0, 0], []

    def add(self, values, random, threads=1):
        seen.append((self, values.tolist()))
        return values + np.array(added)

    monkeypatch.setattr(IntegerNoise, "add", add)
    return added, seen


def test_a_lie_gains_no_more_than_it_says(noise):
    """Row 10-5: the exact law of the suggestion over all noise, all lies and disobedience, for crowds of 12.

    Outside of the miss, no deviation gains more than the largest regret; and false reports move the law by
    tanh(epsilon / 2).
    """
    added, seen = noise
    people, epsilon = 12, 0.8
    draws = range(-40, 41)
    q = math.exp(-epsilon / 2)
    weight = {k: (1 - q) / (1 + q) * q ** abs(k) for k in draws}
    found = {}

    def suggestion(counts):
        """The suggestion for measured counts, by the function itself."""
        key = tuple(max(count, 0) for count in counts)
        if key not in found:
            added[:] = [key[0] - 1, key[1] - 1]
            found[key] = dpf.select_equilibrium([0, 1], PAYOFFS, epsilon=epsilon)
        return found[key]

    for beach in range(0, people, 4):
        values = {}
        for said in (BEACH, MOUNTAIN):
            counts = [beach + (said == BEACH), people - 1 - beach + (said == MOUNTAIN)]
            for kind in (BEACH, MOUNTAIN):
                followed = best = 0.0
                for a, b in itertools.product(draws, repeat=2):
                    chance = weight[a] * weight[b]
                    actions = suggestion((counts[0] + a, counts[1] + b)).actions
                    going = (beach * (actions[0] == BEACH) + (people - 1 - beach) * (actions[1] == BEACH)) / people
                    ends = [payoff(kind, own, going + (own == BEACH) / people) for own in (BEACH, MOUNTAIN)]
                    followed += chance * ends[actions[kind]]
                    best += chance * max(ends)
                values[said, kind] = followed, best
        for kind, lie in ((BEACH, MOUNTAIN), (MOUNTAIN, BEACH)):
            honest, disobedient = values[kind, kind]
            gain = values[lie, kind][1] - honest
            assert gain <= math.tanh(epsilon / 2) * 10 + (disobedient - honest) + 1e-9
    assert {measured.scale for measured, _ in seen} == {2 / epsilon}


def test_what_is_left_to_gain(seed):
    """Row 10-5: at epsilon = n**(-1/4) the incentive falls like n**(-1/4); and the regret holds for the true crowd."""
    for people in (10**4, 10**6):
        epsilon = people**-0.25
        for share in (0.1, 0.5, 0.9):
            crowd = (np.arange(people) >= share * people).astype(np.int64)
            found = dpf.select_equilibrium(crowd, PAYOFFS, epsilon=epsilon, random=SeededRandom(seed))
            assert found.regret == 0
            assert regret(tuple(found.actions), share) <= found.largest_regret(1e-6)
            assert found.incentive(0.001) / 10 <= 2 * epsilon


def test_without_an_equilibrium_regret_is_told():
    """Of one type that wants to be where others are not, no rule is an equilibrium."""
    shy = np.array([[[0.0, 1.0], [1.0, 0.0]]])
    found = dpf.select_equilibrium([0] * 1000, shy, epsilon=1.0, random=SeededRandom(1))
    assert found.regret == 1.0
    assert found.incentive() == 1.0


def test_edges():
    ledger = dpf.Ledger(epsilon=1.0)
    nobody = pl.Series([None, 7, -1], dtype=pl.Int64)
    for types in ([], nobody, [0]):
        found = dpf.select_equilibrium(types, PAYOFFS, epsilon=0.25, ledger=ledger)
        assert 0 <= found.largest_regret() <= found.incentive() <= 10
    assert ledger.spent.epsilon == 0.75
    with pytest.raises(ParameterError, match="rules"):
        dpf.select_equilibrium([0], np.zeros((17, 2, 2)), epsilon=0.1, ledger=ledger)
    assert ledger.spent.epsilon == 0.75
    assert "Equilibrium" in repr(found)
    assert large_games.__all__


def test_what_others_do_counts_twice_where_two_actions_are_compared():
    """A person among few: the difference of two actions moves by what one person moves both (found by a review)."""
    payoffs = np.array([[[0, 0.5, 0.5], [0.5, 1, 0], [0.5, 0.5, 0.5]], [[1, 0, 0.5], [0, 0, 0], [0, 1, 0]]])
    types = np.array([0, 1])
    for seed in range(20):
        found = dpf.select_equilibrium(types, payoffs, epsilon=12.0, random=SeededRandom(seed))
        taken = found.actions[types]
        regret = max(
            float((payoffs[kind][:, taken[1 - person]] - payoffs[kind][taken[person], taken[1 - person]]).max())
            for person, kind in enumerate(types)
        )
        assert regret <= found.largest_regret(miss=0.05) + 1e-12
