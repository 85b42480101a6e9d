"""Strategies of marginals: least squares where cells are not all told apart, the best weights."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dpfast as dpf
from dpfast.errors import ParameterError
from dpfast.strategies.axes import terms_of
from dpfast.strategies.best_marginals import best_marginals
from dpfast.strategies.marginal_spaces import energies_of, parts_of
from dpfast.strategies.residuals import MarginalResiduals
from dpfast.testing import SeededRandom

from .dense import matrix_of, parts_like, rmse

made, workloads = dpf.strategies, dpf.workloads

PARTIAL = {
    "pairs": made.marginals((2, 3, 4), [(0, 1), (1, 2)], weights=[1, 2]),
    "with a total": made.marginals((3, 2, 2), [(0,), (2,), ()], weights=[2, 3, 1]),
    "a single value": made.marginals((3, 1, 2), [(0, 1), (2,)]),
    "residuals": MarginalResiduals((2, 3, 4), [(), (0,), (1,), (0, 1), (2,)], [9, 4, 3, 1, 2]),
}
every = pytest.mark.parametrize("strategy", PARTIAL.values(), ids=PARTIAL)


@every
def test_what_is_not_told_is_left_out(strategy, seed):
    A = matrix_of(strategy).astype(float)
    noisy = np.random.default_rng(seed).normal(0.0, 100.0, len(A))
    expected = np.linalg.lstsq(A, noisy, rcond=None)[0]
    found = strategy.reconstruct(parts_like(strategy, noisy)).reshape(-1)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


@every
def test_errors_of_marginals_are_the_trace_and_others_infinite(strategy):
    A = matrix_of(strategy).astype(float)
    inverse = np.linalg.pinv(A.T @ A)
    told = strategy.spaces[-1:] + strategy.spaces[:2]
    asked = workloads.marginals(strategy.shape, attributes=told)
    W = asked.rows(0, len(asked)).astype(float)
    true = np.einsum("qi,ij,qj->q", W, inverse, W)
    np.testing.assert_allclose(strategy.variances(asked), true, rtol=1e-8)
    assert strategy.error(asked) == pytest.approx(true.sum())
    for untold in (
        workloads.identity(strategy.shape),
        workloads.random_rectangles(strategy.shape, 9, 1),
        workloads.kronecker(*(workloads.prefix(size) for size in strategy.shape)),
    ):
        assert strategy.error(untold) == math.inf
        assert (strategy.variances(untold) == math.inf).all()
        with pytest.raises(ParameterError, match="determine all answers"):
            made.choose(untold, epsilon=1, among=[strategy])


@pytest.mark.parametrize(("shape", "k"), [((4, 3, 5), 2), ((2,) * 9, 3), ((7, 1, 3), 1), ((16, 2, 9, 4), 2)])
def test_residuals_are_the_best_under_gaussian_noise(shape, k):
    """Of all that treat an attribute's values alike: (sum of sqrt(E_T d_T))**2, d_T a space's share of the diagonal."""
    workload = workloads.marginals(shape, k=k)
    spaces = parts_of(workload.attributes)
    energy = np.sum([energies_of(term, spaces) for term in terms_of(workload)], axis=0)
    diagonal = [
        math.prod((size - 1) / size if axis in space else 1 / size for axis, size in enumerate(shape))
        for space in spaces
    ]
    least = math.sqrt(np.sqrt(energy * diagonal).sum() ** 2 / len(workload))
    found = min(rmse(strategy, workload, 2) for strategy in best_marginals(workload, 2))
    assert least * (1 - 1e-9) <= found <= least * 1.002
    if math.prod(shape) <= 100:
        assert rmse(made.optimal(workload), workload, 2) == pytest.approx(least, rel=1e-3)


def test_weights_of_tables_are_better_than_none():
    workload = workloads.marginals((2, 3, 4, 5, 6, 7), k=2)
    plain = made.marginals(workload.shape, workload.attributes)
    tables = best_marginals(workload, 1)[0]
    assert rmse(tables, workload, 1) < 0.95 * rmse(plain, workload, 1)
    assert tables.largest_count >= 2**31


@pytest.mark.parametrize("budget", [{"epsilon": 1}, {"rho": 0.5}])
def test_a_release_of_marginals(budget):
    workload = workloads.marginals((5, 4, 3, 2, 2, 2), k=2)
    counts = np.random.default_rng(2).integers(0, 50, workload.shape)
    release = dpf.matrix_mechanism(counts, workload, **budget, random=SeededRandom(8))
    assert release.strategy.name == ("identity" if "epsilon" in budget else "residuals of marginals")
    errors = release.answers - workload.answer(counts)
    assert abs(errors).max() < 8 * release.scale.max()
    assert 0.3 < (errors**2).mean() / release.rmse**2 < 3
    sums = [table.sum() for table in workload.split(release.answers)]
    np.testing.assert_allclose(sums, sums[0])


def test_other_workloads_have_no_strategy_of_marginals():
    assert best_marginals(workloads.random_rectangles((4, 4), 3, 1), 1) == []
    assert best_marginals(workloads.kronecker(workloads.prefix(4), workloads.identity(3)), 1) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"attributes": [(0, 1), (1, 0)]}, "attributes"),
        ({"weights": [1]}, "weights must be 2 whole numbers"),
        ({"weights": [1, 2**21]}, "weights must be 2 whole numbers"),
    ],
)
def test_what_are_no_marginals_is_refused(arguments, message):
    with pytest.raises(ParameterError, match=message):
        made.marginals(**{"shape": (2, 3), "attributes": [(0,), (1,)], **arguments})


def test_too_many_pairs_for_a_strategy_are_planned_by_residuals():
    asked = workloads.marginals((2,) * 60, k=2)
    with pytest.raises(ParameterError, match=r"or of few marginals, .*; give marginals and ranges to dpf\.plan_m"):
        made.choose(asked, rho=1.0)
    domain = dpf.Domain(dict.fromkeys((f"x{place}" for place in range(60)), 2))
    assert dpf.plan_marginals(domain, asked, rho=1.0).to_frame().height == 60 * 59 // 2
