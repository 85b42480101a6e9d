"""Cliques, trees, the fit and marginals, each against all cells of small domains."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dpfast.graphical.drawing import draw_parts
from dpfast.graphical.elimination import find_cliques, model_cells
from dpfast.graphical.junction_tree import JunctionTree
from dpfast.graphical.tree_marginals import TreeMarginals
from dpfast.graphical.tree_weights import Measurement, TreeWeights
from dpfast.testing import SeededRandom


def draw_codes(weights, records, source):
    """Return the codes of all records."""
    return np.concatenate(list(draw_parts(weights, records, source)), axis=1)


def some_problem(generator):
    attributes = int(generator.integers(2, 7))
    sizes = tuple(int(size) for size in generator.integers(1, 5, attributes))
    sets = {
        tuple(
            sorted(generator.choice(attributes, generator.integers(1, min(4, attributes + 1)), replace=False).tolist())
        )
        for _ in range(int(generator.integers(1, 6)))
    }
    return sizes, sorted(sets)


def summed(table, kept):
    return table.sum(axis=tuple(axis for axis in range(table.ndim) if axis not in kept)).reshape(-1)


def fitted(sizes, sets, generator):
    """Return weights that fit noisy marginals of a made-up table, and all their cells."""
    table = generator.gamma(0.5, 1.0, sizes)
    table *= 100.0 / table.sum()
    measured = [
        Measurement(held, summed(table, held) + generator.normal(0, 5, summed(table, held).size), 25.0, 2.5)
        for held in sets
    ]
    weights = TreeWeights(JunctionTree.holding(sizes, sets), 100.0, measured)
    weights.fit(5000, 1e-13)
    cells = np.full(sizes, 100.0 / math.prod(sizes))
    for one in measured:
        cells = cells * np.exp(one.duals).reshape([size if a in one.attributes else 1 for a, size in enumerate(sizes)])
    return weights, measured, cells


@pytest.mark.parametrize("trial", range(30))
def test_trees_hold_every_set_and_each_attribute_in_one_piece(trial):
    sizes, sets = some_problem(np.random.default_rng(trial))
    tree = JunctionTree.holding(sizes, sets)
    assert all(tree.home(held) is not None for held in sets)
    assert {attribute for clique in tree.cliques for attribute in clique} == set(range(len(sizes)))
    for attribute in range(len(sizes)):
        holding = {place for place, clique in enumerate(tree.cliques) if attribute in clique}
        assert sum(tree.parents[place] not in holding for place in holding) == 1
    for one, other in itertools.permutations(tree.cliques, 2):
        assert not set(one) <= set(other)


@pytest.mark.parametrize("trial", range(30))
def test_a_model_is_no_larger_than_foretold(trial):
    """The search for the tree that is used tries the orders by which the size was foretold, and others."""
    sizes, sets = some_problem(np.random.default_rng(trial))
    candidates = list(itertools.combinations(range(len(sizes)), 2))
    for candidate, cells in zip(candidates, model_cells(sizes, sets, candidates), strict=True):
        assert sum(math.prod(sizes[a] for a in clique) for clique in find_cliques(sizes, [*sets, candidate])) <= cells


def test_a_chain_stays_a_chain_and_a_circle_is_cut():
    chain = [(place, place + 1) for place in range(69)]
    assert find_cliques((2,) * 70, chain) == tuple(chain)
    cliques = find_cliques((2,) * 70, [*chain, (0, 69)])
    assert len(cliques) == 68
    assert {len(clique) for clique in cliques} == {3}


@pytest.mark.parametrize("trial", range(30))
def test_the_fit_is_that_of_all_cells(trial):
    """At the least of entropy and misfit each dual is the misfit over the softness, or the least dual there is."""
    generator = np.random.default_rng(trial)
    weights, measured, cells = fitted(*some_problem(generator), generator)
    for one in measured:
        misfit = (one.values - summed(cells, one.attributes)) / 2.5
        np.testing.assert_allclose(one.duals, np.maximum(misfit, -30.0), atol=1e-6)
    assert weights.total == pytest.approx(cells.sum(), rel=1e-9)


@pytest.mark.parametrize("trial", range(30))
def test_marginals_are_those_of_all_cells(trial):
    generator = np.random.default_rng(trial)
    weights, _, cells = fitted(*some_problem(generator), generator)
    marginals = TreeMarginals(weights)
    for size in range(1, cells.ndim + 1):
        for attributes in itertools.combinations(range(cells.ndim), size):
            np.testing.assert_allclose(marginals.marginal(attributes), summed(cells, attributes), rtol=1e-8)


def test_a_fit_goes_on_in_another_tree():
    """Duals are kept: with one more set the weights begin where they ended."""
    generator = np.random.default_rng(3)
    sizes = (3, 4, 2, 5)
    weights, measured, _ = fitted(sizes, [(0, 1), (2, 3)], generator)
    other = TreeWeights(JunctionTree.holding(sizes, [(0, 1), (1, 2), (2, 3)]), 100.0, measured)
    first, second = TreeMarginals(weights), TreeMarginals(other)
    for attributes in [(0, 1), (2, 3), (1, 2), (0, 3)]:
        np.testing.assert_allclose(first.marginal(attributes), second.marginal(attributes), rtol=1e-9)


def test_repeated_measurements_are_weighed():
    one = Measurement((0,), np.array([10.0, 20.0]), 4.0, 1.0)
    one.add(np.array([16.0, 20.0]), 2.0)
    np.testing.assert_allclose(one.values, [14.0, 20.0])
    assert one.variance == pytest.approx(4 / 3)


@pytest.mark.parametrize("records", [0, 1, 7, 10_000])
def test_each_clique_has_its_share_of_the_records(records):
    """Of the first clique each cell is rounded; each further one adds one rounding for each value in common."""
    generator = np.random.default_rng(5)
    weights, _, cells = fitted((3, 4, 2, 5), [(0, 1), (1, 2), (2, 3)], generator)
    codes = draw_codes(weights, records, SeededRandom(1))
    assert codes.shape == (4, records)
    share = records / cells.sum()
    for held, off in (((0, 1), 1.0), ((1, 2), 4.0), ((2, 3), 8.0)):
        number = codes[held[0]].astype(np.int64) * cells.shape[held[1]] + codes[held[1]]
        counts = np.bincount(number, minlength=cells.shape[held[0]] * cells.shape[held[1]])
        assert np.abs(counts - summed(cells, held) * share).max() <= off + 1e-6


def test_what_a_clique_gives_does_not_depend_on_the_rest():
    """Given the middle one, first and last attribute of a chain are independent: chi-square of 16 degrees a value.

    False failures: each of 3 statistics exceeds 120 with probability below 1e-17 (the counts of a systematic draw vary
    less than independent ones).
    """
    generator = np.random.default_rng(6)
    weights, _, _ = fitted((5, 3, 5), [(0, 1), (1, 2)], generator)
    codes = draw_codes(weights, 60_000, SeededRandom(2))
    for value in range(3):
        own = codes[:, codes[1] == value]
        table = np.bincount(own[0].astype(np.int64) * 5 + own[2], minlength=25).reshape(5, 5).astype(float)
        expected = table.sum(1, keepdims=True) * table.sum(0) / table.sum()
        known = expected > 0
        assert (((table - expected) ** 2)[known] / expected[known]).sum() < 120


def test_the_same_key_draws_the_same_records():
    weights, _, _ = fitted((3, 4, 2), [(0, 1), (1, 2)], np.random.default_rng(7))
    first, again, other = (draw_codes(weights, 500, SeededRandom(seed)) for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


def test_a_tree_may_be_deeper_than_calls_may_be_nested():
    columns = 1_200
    links = tuple((place, place + 1) for place in range(columns - 1))
    tree = JunctionTree((2,) * columns, links, tuple(range(-1, columns - 2)))
    weights = TreeWeights(
        tree, 100.0, [Measurement(link, np.array([45.0, 5.0, 5.0, 45.0]), 1.0, 1.0) for link in links]
    )
    weights.fit(2)
    ends = TreeMarginals(weights).marginal((0, columns - 1))
    assert np.isfinite(ends).all()
    assert ends.sum() == pytest.approx(weights.total)


@pytest.mark.parametrize("trial", range(10))
def test_cliques_are_joined_to_those_they_have_most_in_common_with(trial):
    sizes, sets = some_problem(np.random.default_rng(trial))
    tree = JunctionTree.holding(sizes, sets)

    def weight(clique, other):
        common = set(tree.cliques[clique]) & set(tree.cliques[other])
        return len(common), math.prod(sizes[attribute] for attribute in common)

    for clique in range(1, len(tree.cliques)):
        later = range(clique, len(tree.cliques))
        best = max(weight(one, other) for one in later for other in range(clique))
        assert weight(clique, tree.parents[clique]) == best


@pytest.mark.parametrize("walks", [1, 5])
@pytest.mark.parametrize("trial", range(20))
def test_every_marginal_sums_to_what_was_measured_of_the_total(trial, walks):
    """However early the fit ends: the number of records is fitted last, and moves every table alike."""
    generator = np.random.default_rng(trial)
    sizes, sets = some_problem(generator)
    measured = [
        Measurement(held, generator.normal(20, 40, math.prod(sizes[a] for a in held)), 1600.0, 40.0) for held in sets
    ]
    measured.append(Measurement((), np.array([1234.5]), 1e-12, 1e-12))
    weights = TreeWeights(JunctionTree.holding(sizes, sets), 900.0, measured)
    weights.fit(walks)
    marginals = TreeMarginals(weights)
    for size in range(len(sizes) + 1):
        for attributes in itertools.combinations(range(len(sizes)), size):
            if attributes:
                assert marginals.marginal(attributes).sum() == pytest.approx(1234.5, rel=1e-9)


@pytest.mark.parametrize("trial", range(20))
def test_marginals_are_told_to_the_clique_where_that_is_least(trial):
    """Every clique of the part is tried as the root, and what is told across each edge is counted anew."""
    generator = np.random.default_rng(trial)
    attributes = 8
    sizes = tuple(int(size) for size in generator.integers(2, 9, attributes))
    sets = [tuple(sorted((place, int(generator.integers(place))))) for place in range(1, attributes)]
    tree = JunctionTree.holding(sizes, sets)
    marginals = TreeMarginals(TreeWeights(tree, 1.0, []))
    for wanted in itertools.combinations(range(attributes), 2):
        if tree.home(wanted) is not None:
            continue
        root, below = marginals._part(wanted)
        order = [root]
        for clique in order:
            order += below[clique]
        edges = [(child, clique) for clique in order for child in below[clique]]

        def told(start, edges=edges, wanted=wanted):
            cells, walk = 0, [(start, -1)]
            for clique, crossed in walk:
                for child, parent in edges:
                    if child != crossed and clique in (child, parent):
                        side = reach(child, {parent, child} - {clique}, edges)
                        common = tree.separators[child]
                        own = {a for a in wanted if any(a in tree.cliques[c] for c in side)} | set(common)
                        cells += math.prod(sizes[a] for a in own)
                        walk.append((child if clique == parent else parent, child))
            return cells

        best = marginals._best_root(order, set(wanted), below)
        assert told(best) == min(map(told, order))


def reach(cut, found, edges):
    """Return the cliques on one side of an edge that is cut."""
    found = set(found)
    for _ in edges:
        for child, parent in edges:
            if child != cut and (child in found or parent in found):
                found |= {child, parent}
    return found
