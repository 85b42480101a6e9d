"""Soundness rule 24 by brute force: all small neighbouring data sets, every transcript, exact probabilities."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest

from dpfast.columns.ranks import PARTS
from dpfast.mechanisms import quantile_nodes
from dpfast.mechanisms.quantile_nodes import node_slope, quantile_tree, rank_error

from .oracles import distribution, transcripts

POINTS = 3


def data_sets(most):
    """Return every multiset of at most so many points."""
    points = range(1, POINTS + 1)
    return [values for n in range(most + 1) for values in itertools.combinations_with_replacement(points, n)]


def neighbours(most, rows, relation):
    """Return pairs of data sets that differ by one unit of at most ``rows`` rows."""
    sets = data_sets(most)
    if relation == "add_remove":
        extra = [added for added in data_sets(rows) if added]
        return [(values, tuple(sorted(values + added))) for values in sets for added in extra]
    units = [unit for unit in data_sets(rows) if len(unit) == rows]
    return [
        (tuple(sorted(values + one)), tuple(sorted(values + other)))
        for values in data_sets(most - rows)
        for one, other in itertools.combinations(units, 2)
    ]


def largest_loss(quantiles, share, rows, relation, pairs, calibrated=None):
    """Return the largest log ratio of the probabilities of a transcript over the pairs."""
    tree = quantile_tree([round(q * PARTS) for q in quantiles])

    def slope_of(node):
        return Fraction(node_slope(node, share, *(calibrated or (rows, relation))))

    known = {}

    def probabilities(values):
        if values not in known:
            known[values] = transcripts(values, 1, POINTS, tree.root, slope_of)
        return known[values]

    worst = 0.0
    for one, other in pairs:
        first, second = probabilities(one), probabilities(other)
        assert first.keys() == second.keys()
        worst = max(worst, max(abs(math.log(p / second[key])) for key, p in first.items()))
    return worst


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("q", [0.5, 0.25, 0.9, 0.0, 1.0])
def test_one_quantile(q, rows, relation):
    """The exact loss of a node is at most epsilon, and comes near it: the sensitivity is no larger than needed."""
    pairs = neighbours(7, rows, relation)
    loss = largest_loss([q], Fraction(1), rows, relation, pairs)
    print(f"largest loss {loss:.4f} of 1")
    # Quantiles near the ends need more values than these to come near it.
    assert (0.3 if q == 0.9 else 0.6) < loss <= 1 + 1e-12


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("quantiles", [[0.25, 0.75], [0.25, 0.5, 0.75], [0.1, 0.2, 0.9]])
def test_several_quantiles(monkeypatch, quantiles, rows, relation):
    """All levels together, every transcript with its cells: at most epsilon times the nodes that a unit pays for."""
    monkeypatch.setattr(quantile_nodes, "CELLS", 2)
    tree = quantile_tree([round(q * PARTS) for q in quantiles])
    share = Fraction(1) / tree.touched(rows, relation)
    loss = largest_loss(quantiles, share, rows, relation, neighbours(3, rows, relation))
    print(f"largest loss {loss:.4f} of 1")
    assert loss <= 1 + 1e-12


def test_wrong_sensitivities_are_caught():
    """Mutants: max(q, 1 - q) for replaced rows, one row's sensitivity for units of two, one epsilon for each level."""
    pairs = neighbours(6, 1, "replace")
    assert largest_loss([0.5], Fraction(1), 1, "replace", pairs, (1, "add_remove")) > 1.2
    pairs = neighbours(6, 2, "add_remove")
    assert largest_loss([0.5], Fraction(1), 2, "add_remove", pairs, (1, "add_remove")) > 1.2


def test_levels_do_not_come_free(monkeypatch):
    """Mutant: a share of epsilon a node, as if all levels were disjoint too."""
    monkeypatch.setattr(quantile_nodes, "CELLS", 2)
    assert largest_loss([0.25, 0.5, 0.75], Fraction(1), 1, "add_remove", neighbours(4, 1, "add_remove")) > 1.05


def test_nodes_that_a_unit_pays_for():
    """Levels for a row added or removed; else the nodes of each level that its rows can lie in."""
    seven = quantile_tree([i * PARTS // 8 for i in range(1, 8)])
    assert [len(level) for level in seven.levels] == [1, 2, 4]
    assert seven.touched(1, "add_remove") == 3
    assert seven.touched(1, "replace") == 1 + 2 + 2
    assert seven.touched(3, "add_remove") == 1 + 2 + 3
    assert seven.touched(100, "replace") == 7
    one = quantile_tree([PARTS // 2])
    assert one.touched(1, "add_remove") == one.touched(9, "replace") == 1


@pytest.mark.parametrize("q", [0.5, 0.9])
def test_the_median_of_zeros_and_millions(q):
    """Inventory 7-6: n even, 1 + n / 2 zeros of n + 1 rows or n / 2 of n; noise of local sensitivity tells them apart.

    On a grid of 0 .. 10**6 the exponential mechanism's probabilities differ by a factor of e at most.
    """
    n, low, high = 20, 0, 10**6
    y = [low] * (n // 2) + [high] * (n // 2)
    x = [*y, low]
    slope = Fraction(1) / (2 * Fraction(str(max(q, 1 - q))))

    def weights(values):
        # Three blocks: the two ends and all that lies between.
        scores = dict(distribution_of(values, low, high, Fraction(str(q))))
        return scores, sum(width * math.exp(slope * score) for width, score in scores.values())

    (one, first), (other, second) = weights(x), weights(y)
    losses = [abs(float(slope * (one[k][1] - other[k][1])) - math.log(first / second)) for k in one]
    assert max(losses) <= 1 + 1e-12


def distribution_of(values, low, high, q):
    """Return (name, (width, score)) of the points at both ends and between them."""
    from .oracles import tied_score

    for name, width, y in (("low", 1, low), ("between", high - low - 1, (low + high) // 2), ("high", 1, high)):
        yield name, (width, tied_score(values, y, q))


def test_rank_error_holds_exactly():
    """Theorem 3.11: the probability of straying by more ranks is at most the one that was asked for."""
    tree = quantile_tree([PARTS // 2])
    slope = node_slope(tree.root, Fraction(1), 1, "add_remove")
    values, points = list(range(1, 41, 2)), 40
    for miss in (0.5, 0.05, 0.001):
        ranks = rank_error(tree.root, slope, points, miss)
        outcomes = distribution(values, 1, points, Fraction(1, 2), 0, Fraction(slope) * tree.root.d)
        strays = math.fsum(
            p
            for (y, _), p in outcomes
            if max(10 - sum(v <= y for v in values), sum(v < y for v in values) - 10) > ranks
        )
        assert strays <= miss
