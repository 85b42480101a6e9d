"""Every strategy against the matrix written out: least squares, sensitivity, error, exactness."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpfast as dpf
from dpfast.accounting.privacy_unit import PrivacyUnit
from dpfast.errors import ParameterError
from dpfast.strategies.residuals import MarginalResiduals

from .dense import all_ranges, matrix_of, parts_like, prefixes

made = dpf.strategies
prefix, all_range, identity = dpf.workloads.prefix, dpf.workloads.all_range, dpf.workloads.identity


def dense(n):
    return dpf.workloads.matrix(np.arange(2 * n).reshape(2, n) % 3)


FULL = {
    "identity": made.identity(12),
    "H2": made.hierarchy(16, 2),
    "H2 with root": made.hierarchy(16, 2, root=True),
    "H4 of 32": made.hierarchy(32, 4, root=True),
    "H8 of 16": made.hierarchy(16, 8),
    "mixed": made.hierarchy(24, (3, 4, 2)),
    "weighted": made.hierarchy(12, (3, 2), weights=(5, 2, 9)),
    "wavelet": made.wavelet(16),
    "wavelet of 2": made.wavelet(2),
    "wavelet of 1": made.wavelet(1),
    "square root": made.square_root(13),
    "square root of 1": made.square_root(1),
    "matrix": made.matrix([[2, 0, 1], [0, 1, 1], [0, 0, -3], [1, 1, 1]]),
    "the best": made.optimal(dpf.workloads.prefix(12)),
    "p-Identity": made.p_identity(dpf.workloads.all_range(10), 3),
    "one cell": made.hierarchy(1, 2, root=True),
}
RAGGED = {
    "H2 of 13": made.hierarchy(13, 2),
    "H3 of 22 with root": made.hierarchy(22, 3, root=True),
    "weighted, of 17": made.hierarchy(17, (4, 3), weights=(3, 1, 2)),
    "one block": made.hierarchy(5, (8,)),
    "two": made.hierarchy(2, 16),
}
MANY = {
    "product": made.product(made.hierarchy(4, 2), made.hierarchy(3, (3,), weights=(2, 1))),
    "product with a wavelet": made.product(made.wavelet(4), made.identity(3)),
    "marginals": made.marginals((2, 3, 2), [(0, 1, 2), (0,), (1, 2), ()], weights=[3, 1, 2, 4]),
    "one full table": made.marginals((2, 3, 2), [(0, 1, 2)]),
    "residuals": MarginalResiduals((2, 3), [(), (0,), (1,), (0, 1)], [7, 3, 2, 1]),
    # Inner products of either sign: -1 times -1 is no bound of a product's.
    "product of signs": made.product(made.matrix([[1, -1], [1, 0], [0, 1]]), made.matrix([[1, -1], [1, 0], [0, 1]])),
    "product of square roots": made.product(made.square_root(3), made.square_root(4)),
    "marginals with all cells": made.marginals((3, 2, 4), [(0, 1), (0, 1, 2), (2,)], weights=[3, 1, 2]),
}
ALL = FULL | RAGGED | MANY
every = pytest.mark.parametrize("strategy", ALL.values(), ids=ALL)


@every
def test_reconstruction_is_least_squares(strategy, seed):
    A = matrix_of(strategy).astype(float)
    assert len(strategy) == len(A)
    noisy = np.random.default_rng(seed).normal(0.0, 100.0, len(A))
    expected = np.linalg.lstsq(A, noisy, rcond=None)[0]
    found = strategy.reconstruct(parts_like(strategy, noisy))
    assert found.shape == strategy.shape
    assert found.dtype == np.float64
    np.testing.assert_allclose(found.reshape(-1), expected, rtol=1e-9, atol=1e-8)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_hierarchies_of_any_size_are_least_squares(data):
    cells = data.draw(st.integers(1, 60), "cells")
    fan_outs = []
    while np.prod(fan_outs, initial=1) < cells and data.draw(st.booleans()):
        fan_outs.append(data.draw(st.integers(2, 9), "fan-out"))
    weights = data.draw(st.lists(st.integers(1, 9), min_size=len(fan_outs) + 1, max_size=len(fan_outs) + 1))
    strategy = made.hierarchy(cells, fan_outs, weights=weights)
    A = matrix_of(strategy)
    noisy = np.random.default_rng(cells).integers(-100, 100, len(A))
    found = strategy.reconstruct(parts_like(strategy, noisy))
    np.testing.assert_allclose(found, np.linalg.lstsq(A.astype(float), noisy, rcond=None)[0], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(found[None], strategy.reconstruct_rows(noisy[None].astype(float)), rtol=1e-12)


@every
def test_norms_are_those_of_the_columns(strategy):
    """Soundness rule 25: of the matrix as it is measured."""
    A = matrix_of(strategy).astype(object)
    assert strategy.l1 == abs(A).sum(0).max()
    assert strategy.l2_squared == (A**2).sum(0).max()
    assert strategy.row >= abs(A).sum(1).max()
    assert strategy.norm(1) == strategy.l1
    assert strategy.norm(2) ** 2 == pytest.approx(strategy.l2_squared, rel=1e-14)
    if strategy.cells > 1:
        products = (A.T @ A)[~np.eye(A.shape[1], dtype=bool)]
        assert strategy.inner <= products.min()


def farthest(A, groups, rows, neighbors):
    """Return the largest L1 and squared L2 by brute force over all units: which cells, and how many rows in each."""
    cells = A.shape[1]
    own = set()
    for chosen in itertools.combinations(range(cells), min(groups, cells)):
        for counts in itertools.product(range(rows + 1), repeat=len(chosen)):
            unit = [0] * cells
            for cell, count in zip(chosen, counts, strict=True):
                unit[cell] = count
            own.add(tuple(unit))
    moves = np.array(sorted(own))
    if neighbors == "replace":
        moves = (moves[:, None, :] - moves[None, :, :]).reshape(-1, cells)
    moved = moves @ A.T
    return abs(moved).sum(1).max(), (moved**2).sum(1).max()


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize(("groups", "rows"), [(1, 1), (1, 3), (2, 1), (3, 2)])
@pytest.mark.parametrize(
    "strategy",
    [
        made.identity(6),
        made.hierarchy(7, 2),
        made.hierarchy(7, 2, root=True),
        made.hierarchy(6, (3, 2), weights=(1, 2, 3)),
        made.wavelet(8),
        made.wavelet(2),
        # A row that leaves all cells moves these more than one that is put elsewhere.
        made.wavelet(1),
        made.hierarchy(5, (5,), weights=(1, 5)),
        made.square_root(6),
        made.product(made.hierarchy(2, 2, root=True), made.hierarchy(3, (3,), weights=(2, 1))),
        made.product(made.wavelet(2), made.wavelet(4)),
        made.matrix([[2, 0, 1], [0, 1, 1], [0, 0, -3], [1, 1, 1]]),
        made.marginals((2, 3), [(0, 1), (0,), ()], weights=[1, 2, 1]),
        made.marginals((2, 3), [(0,), (1,)]),
        MarginalResiduals((2, 3), [(), (0,), (1,), (0, 1)], [7, 3, 2, 1]),
        MarginalResiduals((3, 2), [(), (0, 1)], [1, 2]),
    ],
    ids=str,
)
def test_sensitivities_are_those_of_all_units(strategy, groups, rows, neighbors):
    """Soundness rule 14: never below brute force over all pairs of neighbours; and no looser than is known."""
    l1, l2_squared = farthest(matrix_of(strategy), groups, rows, neighbors)
    found = strategy.sensitivity(PrivacyUnit("person", groups, rows, neighbors))
    assert found.l1 >= l1
    assert found.l2_squared >= l2_squared
    if "matrix" in strategy.name or "residuals" in strategy.name:
        return
    if "square root" in strategy.name or len(strategy.shape) > 1:
        # Bounded by the first column twice, or by the triangle inequality.
        assert found.l1 <= 3 * l1
        assert found.l2_squared <= 3 * l2_squared
    elif groups == 1 or (neighbors == "add_remove" and "wavelet" not in strategy.name):
        assert found.l1 == l1
        assert found.l2_squared == l2_squared


@pytest.mark.parametrize("strategy", FULL.values(), ids=FULL)
@pytest.mark.parametrize("workload", [prefixes, all_ranges, prefix, all_range, identity, dense])
def test_error_is_the_trace(strategy, workload):
    A = matrix_of(strategy).astype(float)
    asked = workload(strategy.cells)
    assert strategy.error(asked) == pytest.approx(np.trace(asked.gram() @ np.linalg.inv(A.T @ A)), rel=1e-9)


@pytest.mark.parametrize("strategy", RAGGED.values(), ids=RAGGED)
@pytest.mark.parametrize("workload", [prefixes, all_ranges])
def test_error_of_ragged_trees_is_bounded(strategy, workload):
    A = matrix_of(strategy).astype(float)
    asked = workload(strategy.cells)
    true = np.trace(asked.gram() @ np.linalg.inv(A.T @ A))
    assert true * (1 - 1e-9) <= strategy.error(asked) <= 2.0 * true


@every
@pytest.mark.parametrize("workload", [prefix, all_range, identity, dense])
def test_variances_are_those_of_the_queries(strategy, workload):
    asked = workload(strategy.cells)
    if asked.shape != strategy.shape:
        asked = dpf.workloads.matrix(asked.rows(0, len(asked)), strategy.shape)
    A = matrix_of(strategy).astype(float)
    W = asked.rows(0, len(asked)).astype(float)
    true = np.einsum("qi,ij,qj->q", W, np.linalg.inv(A.T @ A), W)
    found = strategy.variances(asked)
    if strategy not in RAGGED.values():
        np.testing.assert_allclose(found, true, rtol=1e-9, atol=1e-12)
        assert found.sum() == pytest.approx(strategy.error(asked), rel=1e-9)
    else:
        assert (found >= true * (1 - 1e-9) - 1e-12).all()


def kinds_of_workload(shape):
    """Workloads of every kind over a histogram: what is charged for must be readable."""
    random = np.random.default_rng(3)
    kinds = {
        "marginals": dpf.workloads.marginals(shape, k=len(shape)) + dpf.workloads.marginals(shape, k=0),
        "rectangles": dpf.workloads.random_rectangles(shape, 9, 1),
        "rectangles and a total": dpf.workloads.random_rectangles(shape, 9, 1) + dpf.workloads.total(shape),
        "matrix": dpf.workloads.matrix(random.integers(-2, 3, (5, *shape))),
        "matrix and cells": dpf.workloads.matrix(random.normal(size=(3, *shape))) + dpf.workloads.identity(shape),
        "products": dpf.workloads.kronecker(*map(dpf.workloads.all_range, shape)),
        "products of unions": dpf.workloads.kronecker(*(prefix(n) + dpf.workloads.total(n) for n in shape)),
    }
    if len(shape) == 1:
        empty = dpf.workloads.ranges(shape[0], [0, 1, shape[0]], [0, 1, shape[0]])
        kinds["ranges"] = dpf.workloads.random_ranges(shape[0], 30, 2) + empty
    return kinds


@every
def test_variances_are_known_whatever_the_workload(strategy):
    A = matrix_of(strategy).astype(float)
    covariance = np.linalg.inv(A.T @ A)
    for kind, asked in kinds_of_workload(strategy.shape).items():
        W = asked.rows(0, len(asked)).astype(float)
        true = np.einsum("qi,ij,qj->q", W, covariance, W)
        found = strategy.variances(asked)
        if strategy not in RAGGED.values():
            np.testing.assert_allclose(found, true, rtol=1e-9, atol=1e-12, err_msg=kind)
            assert found.sum() == pytest.approx(strategy.error(asked), rel=1e-9)
        else:
            assert (found >= true * (1 - 1e-9) - 1e-12).all(), kind


@every
def test_measurements_never_wrap(strategy):
    """Counts beyond the public limit are moved to it: sums stay exact, and neighbours no further apart."""
    A = matrix_of(strategy).astype(object)
    assert abs(A).sum(1).max() * strategy.largest_count <= 2**62
    for extreme in (2**63 - 1, -(2**63)):
        full = np.full(strategy.shape, extreme, np.int64)
        before = np.concatenate(strategy.measure(full)).astype(object)
        full[(0,) * full.ndim] -= 1 if extreme > 0 else -1
        moved = abs(np.concatenate(strategy.measure(full)).astype(object) - before)
        assert (moved <= abs(A[:, 0])).all()
    most = strategy.largest_count
    whole = np.full(strategy.cells, most, np.int64)
    exact = A @ whole.astype(object)
    assert (np.concatenate(strategy.measure(whole.reshape(strategy.shape))).astype(object) == exact).all()


def test_marginals_of_any_counts_are_measured():
    """Of no count is a sum of all cells too large, even where no table has that sum: it would show in an error."""
    pairs = made.marginals((8, 8), [(0,), (1,)])
    for extreme in (2**63 - 1, -(2**63)):
        rows, columns = pairs.measure(np.full((8, 8), extreme, np.int64))
        assert abs(rows).max() <= 2**62
        assert abs(columns).max() <= 2**62


@every
def test_histograms_are_refused_by_their_type_and_shape(strategy):
    with pytest.raises(ParameterError, match="histogram"):
        strategy.measure(np.zeros(strategy.cells + 1, np.int64))
    with pytest.raises(ParameterError, match="of integers"):
        strategy.measure(np.zeros(strategy.cells))


def test_a_wrong_norm_is_seen():
    """The mutant: a hierarchy that forgets a level in its norm fails the checks above."""
    mutants = made.hierarchy(16, 2), made.hierarchy(7, 2)
    for strategy in mutants:
        strategy.l1 = sum(strategy.weights[1:])
    with pytest.raises(AssertionError):
        test_norms_are_those_of_the_columns(mutants[0])
    with pytest.raises(AssertionError):
        test_sensitivities_are_those_of_all_units(mutants[1], 1, 1, "add_remove")
