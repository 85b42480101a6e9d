"""Pseudo-marginals: the projection and both fits against other solvers, and against trees where these are exact."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import nnls

from dpfast.graphical import local_consistency
from dpfast.graphical.junction_tree import JunctionTree
from dpfast.graphical.local_consistency import fit_locally
from dpfast.graphical.shared_marginals import SharedMarginals, shared_sets
from dpfast.graphical.tree_weights import Measurement, TreeWeights

SIZES = (3, 2, 4, 2)
TREE = [(0, 1), (1, 2), (2, 3)]
TRIANGLE = [(0, 1), (1, 2), (0, 2)]
MANY = [(0, 1, 2), (1, 2, 3), (0, 3), (2,)]
CLIQUES = {"tree": TREE, "triangle": TRIANGLE, "many": MANY}


def marginal_matrix(sizes, clique, held):
    """Return the matrix from a clique's cells to those of the marginal over some of its attributes."""
    matrix = np.ones((1, 1))
    for a in clique:
        matrix = np.kron(matrix, np.eye(sizes[a]) if a in held else np.ones((1, sizes[a])))
    return matrix


def agreement(sizes, cliques):
    """Return the rows whose products with all cells are 0 if tables agree; each pair of tables, and all they share."""
    lengths = [math.prod(sizes[a] for a in clique) for clique in cliques]
    ends = np.concatenate([[0], np.cumsum(lengths)])
    rows = []
    for one, other in itertools.combinations(range(len(cliques)), 2):
        held = set(cliques[one]) & set(cliques[other])
        left, right = (marginal_matrix(sizes, cliques[c], held) for c in (one, other))
        row = np.zeros((len(left), ends[-1]))
        row[:, ends[one] : ends[one + 1]] = left
        row[:, ends[other] : ends[other + 1]] -= right
        rows.append(row)
    return np.concatenate(rows), ends


def noisy(sizes, cliques, seed, total=120.0, scale=6.0):
    """Return noisy marginals of a random table, whose small cells noise takes below 0."""
    generator = np.random.default_rng(seed)
    every = tuple(range(len(sizes)))
    table = generator.dirichlet(np.full(math.prod(sizes), 0.2)) * total
    exact = [marginal_matrix(sizes, every, clique) @ table for clique in cliques]
    return exact, [one + generator.normal(0.0, scale, one.size) for one in exact]


def fitted(sizes, cliques, values, deviations, total, method):
    return fit_locally(sizes, cliques, shared_sets(cliques, 100), values, deviations, total, method)


@pytest.mark.parametrize("kind", CLIQUES)
def test_shared_sets_are_closed_under_intersection(kind):
    cliques = CLIQUES[kind]
    shared = [set(held) for held in shared_sets(cliques, 100)]
    assert set() in shared
    assert all(set(one) & set(other) in shared for one, other in itertools.combinations(cliques, 2))
    assert all(one & other in shared for one, other in itertools.combinations(shared, 2))
    assert shared_sets(cliques, len(shared)) is not None
    assert shared_sets(cliques, len(shared) - 1) is None


@pytest.mark.parametrize("kind", CLIQUES)
def test_what_is_lacking_is_the_projection(kind):
    """Against the same least squares by a pseudo-inverse of all constraints."""
    cliques, softness = CLIQUES[kind], [2.0, 0.5, 7.0, 1.0][: len(CLIQUES[kind])]
    matrix, right, spread = constrained(cliques, softness, 50.0)
    start = np.random.default_rng(3).normal(0.0, 5.0, spread.size)
    scaled = matrix * np.sqrt(spread)
    wanted = start + np.sqrt(spread) * (np.linalg.pinv(scaled) @ (right - matrix @ start))
    shared = SharedMarginals(SIZES, cliques, shared_sets(cliques, 100), softness)
    _, ends = agreement(SIZES, cliques)
    tables = [start[a:b] for a, b in itertools.pairwise(ends)]
    sums = [
        np.array([marginal_matrix(SIZES, cliques[c], held) @ tables[c] for c in holders])
        for held, holders in zip(shared.shared, shared.holders, strict=True)
    ]
    made = [table.copy() for table in tables]
    for held, holders, lacking in zip(shared.shared, shared.holders, shared.lacking(sums, 50.0), strict=True):
        for row, c in enumerate(holders):
            made[c] += marginal_matrix(SIZES, cliques[c], held).T @ lacking[row]
    np.testing.assert_allclose(np.concatenate(made), wanted, atol=1e-9)


@pytest.mark.parametrize("seed", [1, 2])
def test_of_a_tree_least_squares_is_that_over_whole_tables(seed, monkeypatch):
    """Where cliques form a tree the local polytope is exact: the best table's marginals, found over all its cells."""
    monkeypatch.setattr(local_consistency, "TOLERANCE", 1e-11)
    deviations, total = [6.0, 3.0, 9.0], 120.0
    _, values = noisy(SIZES, TREE, seed)
    every = tuple(range(len(SIZES)))
    maps = [marginal_matrix(SIZES, every, clique) for clique in TREE]
    heavy = 1e4
    left = np.concatenate([*(one / own for one, own in zip(maps, deviations, strict=True)), heavy * np.ones((1, 48))])
    right = np.concatenate([*(one / own for one, own in zip(values, deviations, strict=True)), [heavy * total]])
    table, _ = nnls(left, right)
    made = fitted(SIZES, TREE, values, deviations, total, "least_squares")
    assert made.disagreement <= 1e-8
    for one, own in zip(maps, made.tables, strict=True):
        np.testing.assert_allclose(own, one @ table, atol=1e-4)


@pytest.mark.parametrize("kind", ["triangle", "many"])
def test_least_squares_is_the_minimum_over_all_tables_that_agree(kind, monkeypatch):
    """Against nonnegative least squares with the constraints as heavy rows."""
    monkeypatch.setattr(local_consistency, "TOLERANCE", 1e-11)
    cliques, total = CLIQUES[kind], 120.0
    deviations = [6.0, 3.0, 9.0, 5.0][: len(cliques)]
    _, values = noisy(SIZES, cliques, 5)
    matrix, right, spread = constrained(cliques, deviations, total)
    heavy = 1e4
    left = np.concatenate([np.diag(1.0 / spread), heavy * matrix])
    wanted, _ = nnls(left, np.concatenate([np.concatenate(values) / spread, heavy * right]))
    made = fitted(SIZES, cliques, values, deviations, total, "least_squares")
    assert made.disagreement <= 1e-8
    np.testing.assert_allclose(np.concatenate(made.tables), wanted, atol=1e-4)


@pytest.mark.parametrize("kind", CLIQUES)
def test_entropy_is_the_minimum_over_all_tables_that_agree(kind, monkeypatch):
    """All counts are above 0, the objective is convex, and its slope is 0 along every way on which tables agree."""
    monkeypatch.setattr(local_consistency, "TOLERANCE", 1e-11)
    cliques, total = CLIQUES[kind], 120.0
    deviations = [6.0, 3.0, 9.0, 5.0][: len(cliques)]
    _, values = noisy(SIZES, cliques, 5)
    matrix, _, spread = constrained(cliques, deviations, total)
    made = fitted(SIZES, cliques, values, deviations, total, "entropy")
    found = np.concatenate(made.tables)
    assert made.disagreement <= 1e-8
    assert found.min() > 0.0
    plain = fitted(SIZES, cliques, values, deviations, total, "least_squares")
    shares = local_consistency._log_shares(SIZES, cliques, plain.tables)
    independent = [
        total * np.exp(sum(marginal_matrix(SIZES, clique, {a}).T @ shares[a] for a in clique)) for clique in cliques
    ]
    cells = np.concatenate([np.full(one.size, one.size) for one in values])
    soft = spread * np.clip(2.0 * np.sqrt(spread * cells / total), 0.3, 8.0)
    slope = np.log(found / np.concatenate(independent)) + (found - np.concatenate(values)) / soft
    multipliers, *_ = np.linalg.lstsq(matrix.T, slope, rcond=None)
    np.testing.assert_allclose(matrix.T @ multipliers, slope, atol=1e-7)


def constrained(cliques, deviations, total):
    """Return the rows and the right side of what tables keep that agree, and the deviation of each cell's noise."""
    rows, ends = agreement(SIZES, cliques)
    totals = np.zeros((1, ends[-1]))
    totals[0, : ends[1]] = 1.0
    spread = np.concatenate(
        [np.full(b - a, one) for (a, b), one in zip(itertools.pairwise(ends), deviations, strict=True)]
    )
    return np.concatenate([rows, totals]), np.concatenate([np.zeros(len(rows)), [total]]), spread


def test_where_a_tree_fits_both_say_the_same():
    """Exact marginals, nearly without noise: the tree's own fit, and the local one."""
    exact, _ = noisy(SIZES, TREE, 4)
    measured = [Measurement(held, one, 1e-6, 1e-3) for held, one in zip(TREE, exact, strict=True)]
    weights = TreeWeights(JunctionTree.holding(SIZES, TREE), 120.0, measured)
    weights.fit(500, 1e-9)
    for method in ("least_squares", "entropy"):
        made = fitted(SIZES, TREE, exact, [1e-3] * 3, 120.0, method)
        for clique, own in zip(TREE, made.tables, strict=True):
            table = weights.tables[weights.tree.cliques.index(clique)]
            np.testing.assert_allclose(own, table, atol=0.02)


@pytest.mark.parametrize("method", ["least_squares", "entropy"])
@pytest.mark.parametrize("kind", CLIQUES)
def test_counts_are_nonnegative_and_agree_within_the_residual(kind, method):
    cliques = CLIQUES[kind]
    _, values = noisy(SIZES, cliques, 6)
    made = fitted(SIZES, cliques, values, [6.0] * len(cliques), 120.0, method)
    assert min(one.min() for one in made.tables) >= 0.0
    rows, _ = agreement(SIZES, cliques)
    apart = np.abs(rows @ np.concatenate(made.tables)).max()
    assert apart <= made.disagreement + 1e-9
    assert made.disagreement <= 120.0 * local_consistency.TOLERANCE
    assert max(abs(one.sum() - 120.0) for one in made.tables) <= made.disagreement + 1e-9


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", CLIQUES)
def test_least_squares_goes_nearer_to_the_truth_always(kind, seed):
    """A projection onto a convex set that holds the truth: by the weighted distance, whatever the noise is."""
    cliques = CLIQUES[kind]
    exact, values = noisy(SIZES, cliques, seed)
    made = fitted(SIZES, cliques, values, [6.0] * len(cliques), 120.0, "least_squares")
    before, after = (
        sum(float(((one - own) ** 2).sum()) for one, own in zip(exact, tables, strict=True))
        for tables in (values, made.tables)
    )
    assert after <= before


def test_a_fit_that_runs_out_of_steps_says_how_far_tables_are_apart(monkeypatch):
    monkeypatch.setattr(local_consistency, "_MOST_STEPS", 2)
    _, values = noisy(SIZES, MANY, 6)
    made = fitted(SIZES, MANY, values, [6.0] * 4, 120.0, "least_squares")
    rows, _ = agreement(SIZES, MANY)
    assert made.steps == 2
    assert np.abs(rows @ np.concatenate(made.tables)).max() > 1.0
    assert np.abs(rows @ np.concatenate(made.tables)).max() <= made.disagreement + 1e-9
