"""Models of many columns: of thousands of pairs those are measured that say most, and shortcuts change nothing."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.graphical.junction_tree import JunctionTree, pairs_among
from dpfast.graphical.tree_marginals import TreeMarginals
from dpfast.graphical.tree_weights import Measurement, TreeWeights
from dpfast.synthesis.fitted.exact_workload import public_steps
from dpfast.synthesis.graphical.candidates import LARGEST_COUNT, SCORE_BITS, Candidates

COLUMNS, ROUNDS = 150, 40


@pytest.mark.statistical
def test_columns_that_are_alike_are_found_among_thousands_of_pairs():
    """False-failure rate below 1e-9: cells of a pair that is alike are 1,000 records off, of any other one below 200.

    All pairs have one weight, so that another one is selected with probability exp(-1,000) for each, as a selection's
    epsilon is above 1. Noise has a deviation below 1.
    """
    generator = np.random.default_rng(5)
    ends = generator.integers(0, 2, (COLUMNS // 2, 4_000))
    domain = dpf.Domain(dict.fromkeys((f"x{place}" for place in range(COLUMNS)), 2))
    frame = pl.DataFrame({f"x{place}": ends[place // 2] for place in range(COLUMNS)})
    ledger = dpf.Ledger(epsilon=1_000.0, delta=1e-9)
    made = dpf.synthesize(frame, domain, epsilon=1_000.0, delta=1e-9, rounds=ROUNDS, ledger=ledger)
    pairs = [tuple(held) for held in made.estimate.rounds["columns"][-ROUNDS:].to_list()]
    assert len(set(pairs)) == ROUNDS
    assert set(pairs) <= {(f"x{place}", f"x{place + 1}") for place in range(0, COLUMNS, 2)}
    for held in pairs:
        assert made.marginal(held)[0, 1] < 20
        assert made.marginal(held)[0, 0] == pytest.approx((ends[int(held[0][1:]) // 2] == 0).sum(), abs=20)


@pytest.mark.parametrize("trial", range(5))
def test_pairs_along_a_chain_are_those_of_larger_tables(trial, monkeypatch):
    """Whether what was told is kept, or there is no room for it."""
    generator = np.random.default_rng(trial)
    sizes = tuple(generator.integers(2, 5, 9).tolist())
    sets = [(0, 1, 2), (1, 2, 3), (2, 3, 4), (4, 5), (5, 6), (5, 7)]
    measured = [
        Measurement(held, generator.uniform(0, 9, np.prod([sizes[a] for a in held])), 1.0, 1.0) for held in sets
    ]
    weights = TreeWeights(JunctionTree.holding(sizes, sets), 50.0, measured)
    weights.fit(50)
    kept = TreeMarginals(weights)
    monkeypatch.setattr("dpfast.graphical.tree_marginals._ROOM", 0)
    forgetful = TreeMarginals(weights)
    forgetful._room = 0
    for one, other in itertools.combinations(range(len(sizes)), 2):
        third = next(a for a in range(len(sizes)) if a not in (one, other))
        held = tuple(sorted((one, other, third)))
        table = kept.marginal(held).reshape([sizes[a] for a in held]).sum(axis=held.index(third)).reshape(-1)
        for marginals in (kept, forgetful):
            np.testing.assert_allclose(marginals.marginal((one, other)), table, rtol=1e-9, atol=1e-12)


def test_scores_of_many_sets_together_are_those_of_each():
    """Soundness rule 25: whole numbers, of a set's own counts alone."""
    generator = np.random.default_rng(2)
    sizes = (2, 3, 50, 200, 150, 7, 4)
    candidates = Candidates(sizes, [*itertools.combinations(range(7), 2), (0, 1, 2), (5,)])
    exact = {held: generator.integers(0, 90, np.prod([sizes[a] for a in held])) for held in candidates.sets}
    exact[0, 1][:2] = 2**62, LARGEST_COUNT
    made = {held: generator.normal(30.0, 30.0, counts.size) for held, counts in exact.items()}
    made[0, 2][:3] = np.nan, np.inf, -1e300
    places, threshold = list(range(len(candidates.sets)))[::-1], 3.3
    near = round(threshold * 2**SCORE_BITS)
    expected = []
    for place in places:
        held = candidates.sets[place]
        limit = min(2.0**60 / (exact[held].size * candidates.weights[place]), 2.0**50)
        steps = public_steps(made[held] * 2**SCORE_BITS, limit)
        far = np.abs((np.minimum(exact[held], LARGEST_COUNT) << SCORE_BITS) - steps) - near
        expected.append(candidates.weights[place] * int(np.maximum(far, 0).sum()))
    assert candidates.scores(places, exact, made.__getitem__, threshold).tolist() == expected
    assert candidates.scores([], exact, made.__getitem__, threshold).tolist() == []


def test_pairs_among_sets_are_where_they_stand():
    places, (one, other) = pairs_among([(0,), (1, 2), (0, 1, 2), (3, 5)])
    assert (places.tolist(), one.tolist(), other.tolist()) == ([1, 3], [1, 3], [2, 5])
    assert pairs_among([(0,)])[1].shape == (2, 0)
