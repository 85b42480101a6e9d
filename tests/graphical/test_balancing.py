"""Records whose pairs are near the expected counts, in cliques and across them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dpfast.graphical import balancing
from dpfast.graphical.balancing import balances, draw_balanced_codes
from dpfast.graphical.drawing import TreeRecords, draw_parts
from dpfast.graphical.junction_tree import JunctionTree
from dpfast.graphical.tree_marginals import TreeMarginals
from dpfast.graphical.tree_weights import Measurement, TreeWeights
from dpfast.testing import SeededRandom

SIZES = (30, 4, 25, 3, 20, 6)
SETS = [(0, 1), (1, 2), (2, 3), (3, 4, 5)]


def some_weights(seed=1, zeros=False):
    generator = np.random.default_rng(seed)
    measured = []
    for held in SETS:
        values = generator.exponential(20.0, int(np.prod([SIZES[a] for a in held])))
        one = Measurement(held, values, 25.0, 25.0)
        if zeros:
            # So far below that nothing is left of it.
            one.duals = np.where(generator.random(values.size) < 0.3, -2_000.0, 0.0)
        measured.append(one)
    weights = TreeWeights(JunctionTree.holding(SIZES, SETS), 10_000.0, measured)
    if not zeros:
        weights.fit(20)
    return weights


def count(codes, held):
    sizes = [SIZES[a] for a in held]
    return np.bincount(np.ravel_multi_index(list(codes[list(held)]), sizes), minlength=int(np.prod(sizes)))


def test_all_pairs_are_nearer_than_independent_draws():
    """Of 20,000 records, pairs in cliques are within a few records of the expected ones, and pairs across them within
    a third of the deviation of independent records: root mean squares over 10 pairs of up to 750 cells."""
    weights, records = some_weights(), 20_000
    codes = draw_balanced_codes(weights, records, SeededRandom(1))
    marginals = TreeMarginals(weights)
    for held in itertools.combinations(range(6), 2):
        expected = marginals.marginal(held) * (records / weights.total)
        apart = np.square(count(codes, held) - expected).mean()
        within = any(set(held) <= set(one) for one in SETS)
        assert apart < (4.0 if within else expected.mean() / 9 + 4.0)


def test_single_attributes_are_within_a_few_records():
    weights = some_weights()
    for records in (0, 1, 7, 500):
        codes = draw_balanced_codes(weights, records, SeededRandom(2))
        assert codes.shape == (6, records)
        for attribute in range(6):
            expected = TreeMarginals(weights).marginal((attribute,)) * (records / weights.total)
            assert np.abs(count(codes, (attribute,)) - expected).max() < 6.0


def test_what_has_no_weight_is_drawn_by_nobody():
    weights = some_weights(zeros=True)
    codes = draw_balanced_codes(weights, 5_000, SeededRandom(3))
    for held in SETS:
        table = TreeMarginals(weights).marginal(held)
        assert (table == 0.0).any()
        assert not count(codes, held)[table == 0.0].any()


def test_cells_are_right_on_average():
    """Of 600 draws of 50 records each cell of two attributes has its share but for a tenth: the mean of 120 cells is
    off by less than 6 standard errors more. Counts vary less than Poisson's, which the standard error is taken of: a
    false failure has a probability below 120 * 2e-9. Where all tables begin with nothing lacking, rare cells get half
    of their share, and this fails."""
    weights = some_weights()
    expected = TreeMarginals(weights).marginal((0, 1)) * (50 / weights.total)
    source = SeededRandom(4)
    found = sum(count(draw_balanced_codes(weights, 50, source), (0, 1)) for _ in range(600)) / 600
    assert (np.abs(found - expected) < 6 * np.sqrt(expected / 600) + 0.1 * expected + 0.01).all()


def test_the_same_key_draws_the_same_records():
    weights = some_weights()
    first, again, other = (draw_balanced_codes(weights, 500, SeededRandom(seed)) for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


def test_many_records_are_drawn_in_parts(monkeypatch):
    weights = some_weights()
    assert balances(weights, 2**18)
    assert not balances(weights, 2**18 + 1)
    for most in (70, 10**6):
        few = np.concatenate(list(draw_parts(weights, 500, SeededRandom(5), most)), axis=1)
        assert (few == draw_balanced_codes(weights, 500, SeededRandom(5))).all()
    monkeypatch.setattr(balancing, "_MOST_WORK", 0)
    parts = [part.shape[1] for part in draw_parts(weights, 500, SeededRandom(5), 200)]
    assert parts == [200, 200, 100]
    assert sum(part.shape[1] for part in TreeRecords(weights, 500, SeededRandom(5)).parts(200)) == 500


@pytest.mark.parametrize("columns", [1, 300])
def test_few_and_many_attributes(columns):
    sizes = (3,) * columns
    sets = [(place, place + 1) for place in range(columns - 1)] or [(0,)]
    weights = TreeWeights(JunctionTree.holding(sizes, sets), 90.0, [])
    codes = draw_balanced_codes(weights, 900, SeededRandom(6))
    counts = np.array([np.bincount(code, minlength=3) for code in codes])
    assert np.abs(counts - 300).max() < 20
