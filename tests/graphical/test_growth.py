"""A tree with two attributes more together: what it grows by is foretold, by all routes, and never exceeded."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dpfast.graphical.junction_tree import JunctionTree


def some_tree(generator, attributes):
    sizes = tuple(generator.integers(1, 6, attributes).tolist())
    sets = [(a,) for a in range(attributes)]
    for _ in range(int(generator.integers(0, 2 * attributes))):
        held = generator.choice(attributes, min(attributes, int(generator.integers(2, 4))), replace=False)
        sets.append(tuple(sorted(held.tolist())))
    return sizes, sets, JunctionTree.holding(sizes, sets)


@pytest.mark.parametrize("attributes", [2, 3, 5, 8, 12, 70])
def test_growth_is_what_the_joining_cliques_have_and_the_next_tree_has_no_more(attributes):
    generator = np.random.default_rng(attributes)
    for _ in range(2 if attributes > 20 else 15):
        sizes, sets, tree = some_tree(generator, attributes)
        growth = {source: tree.growth(source) for source in range(attributes)}
        pairs = list(itertools.combinations(range(attributes), 2))
        for one, other in pairs if attributes < 20 else pairs[::37]:
            joining = tree.joined(one, other)
            foretold = growth[one][other]
            assert foretold == growth[other][one] == sum(math.prod(sizes[a] for a in clique) for clique in joining)
            assert (foretold == 0.0) == (tree.home((one, other)) is not None)
            known = tree.holding_one_more((one, other))
            following = JunctionTree.holding(sizes, [*sets, (one, other)], known)
            assert following.cells <= tree.cells + foretold
            assert all(following.home(held) is not None for held in [*sets, (one, other)])


@pytest.mark.parametrize("attributes", [4, 9, 66])
def test_what_a_tree_would_have_at_most_is_never_exceeded(attributes):
    """Pairs, single attributes and larger sets, with few attributes and with many."""
    generator = np.random.default_rng(attributes + 50)
    sizes, sets, tree = some_tree(generator, attributes)
    candidates = [tuple(sorted(generator.choice(attributes, k, replace=False).tolist())) for k in (1, 2, 2, 2, 3, 3, 4)]
    candidates.append(tree.cliques[-1])
    for held, most in zip(candidates, tree.cells_with(sets, candidates), strict=True):
        following = JunctionTree.holding(sizes, [*sets, held], tree.holding_one_more(held))
        assert following.cells <= most
        if tree.home(held) is not None:
            assert most <= tree.cells


def test_attributes_that_have_nothing_in_common_are_joined_by_themselves():
    tree = JunctionTree.holding((2, 3, 5, 7), [(0, 1), (2, 3)])
    assert tree.parts == (0, 1)
    assert tree.joined(0, 3) == [(0, 3)]
    assert tree.growth(0).tolist() == [0.0, 0.0, 10.0, 14.0]


def test_a_chain_closed_to_a_circle_carries_one_end_along_or_both():
    """Separators of sizes 2, 9, 2: the ends meet at a small one, and the larger end is carried the shorter way."""
    tree = JunctionTree.holding((3, 2, 9, 2, 4), [(0, 1), (1, 2), (2, 3), (3, 4)])
    assert tree.growth(0)[4] == 3 * 2 * 9 + 3 * 9 * 2 + 3 * 2 * 4
    assert sorted(tree.joined(0, 4)) == [(0, 1, 2), (0, 2, 3), (0, 3, 4)]
