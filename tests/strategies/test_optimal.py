"""Strategies made for a workload: against published errors, and against the bound of the dual problem."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import dpfast as dpf
from dpfast.errors import ParameterError
from dpfast.strategies.descent import descend
from dpfast.strategies.explicit import rounded

from .dense import rmse

optimal_module = importlib.import_module("dpfast.strategies.optimal")
made, workloads = dpf.strategies, dpf.workloads


@pytest.mark.parametrize(
    ("workload", "published"), [(workloads.prefix(128), 2.3121), (workloads.all_range(128), 2.5992)], ids=repr
)
def test_the_best_is_no_worse_than_published(workload, published):
    """Numerical optimization with HDMM's code found the published ones; the singular values' bound lies below."""
    best = made.optimal(workload)
    found = rmse(best, workload, 2)
    assert found <= published * 1.0003
    bound = np.sqrt(np.maximum(np.linalg.eigvalsh(workload.gram()), 0)).sum() / np.sqrt(workload.cells * len(workload))
    assert bound <= found <= 1.03 * bound


def test_no_strategy_is_better_under_gaussian_noise(seed):
    workload = workloads.random_ranges(24, 60, 4)
    best = rmse(made.optimal(workload), workload, 2)
    generator = np.random.default_rng(seed)
    others = [one.strategy for one in made.choose(workload, rho=1).considered]
    others += [made.matrix(generator.integers(-20, 20, (30, 24)) + 60 * np.eye(30, 24, dtype=int)) for _ in range(20)]
    assert best <= min(rmse(other, workload, 2) for other in others) * 1.0002


@pytest.mark.parametrize("order", [1, 2])
def test_p_identity_is_better_than_hierarchies(order):
    workload = workloads.all_range(48)
    fitted = made.p_identity(workload, 4, order=order)
    others = [made.identity(48), *(made.hierarchy(48, b, root=root) for b in (2, 4, 8, 16) for root in (False, True))]
    assert rmse(fitted, workload, order) < 0.97 * min(rmse(other, workload, order) for other in others)


@pytest.mark.parametrize("order", [1, 2])
def test_the_gradient_is_that_of_the_error(order, monkeypatch):
    caught = []
    monkeypatch.setattr(optimal_module, "descend", lambda function, start: caught.append((function, start)) or start)
    made.p_identity(workloads.all_range(9), 3, order=order)
    function, start = caught[0]
    gradient = function(start)[1]
    for place in range(0, start.size, 4):
        step = np.zeros(start.size)
        step[place] = 1e-6
        slope = (function(start + step)[0] - function(start - step)[0]) / 2e-6
        assert gradient[place] == pytest.approx(slope, rel=1e-4)


def test_small_domains_get_a_strategy_of_their_own():
    assert made.choose(workloads.prefix(32), rho=1).strategy.name == "the best under Gaussian noise"
    assert made.choose(workloads.prefix(32), epsilon=1).strategy.name.startswith("p-Identity")
    any_queries = workloads.matrix(np.arange(60).reshape(5, 3, 4) % 7)
    assert (
        made.choose(any_queries, rho=1).best.rmse
        < made.choose(any_queries, rho=1, among=[made.identity((3, 4))]).best.rmse
    )


def test_descent_finds_minima():
    """Rosenbrock's valley, whose minimum is at (1, 1)."""

    def valley(x):
        value = 1 + (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
        slope = -2 * (1 - x[0]) - 400 * x[0] * (x[1] - x[0] ** 2), 200 * (x[1] - x[0] ** 2)
        return value, np.array(slope)

    np.testing.assert_allclose(descend(valley, np.array([-1.2, 1.0])), 1.0, atol=2e-3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: made.optimal(workloads.prefix(2000)), "workload must be one over at most 1,024 cells"),
        (lambda: made.p_identity(workloads.prefix(8), 9), "p must be a whole number from 1 to 8"),
        (lambda: made.matrix([[1, 1]]), "rows must be of full column rank"),
        (lambda: made.matrix([[-(2**20)]]), "rows must be a matrix of whole numbers below"),
        (lambda: made.matrix(np.zeros((0, 3), int)), "rows must be a matrix of whole numbers below"),
        (lambda: made.matrix(np.eye(4, dtype=int), (3,)), "shape must be of 4 cells"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ParameterError, match=message):
        call()


@pytest.mark.parametrize("number", [-(2**63), 2**63, 2**64 - 1])
def test_numbers_whose_magnitude_wraps_are_refused(number):
    """Else their norm is negative, another column's is taken, and the noise hides only that: 2**63 shows a parity."""
    kind = np.int64 if number < 0 else np.uint64
    with pytest.raises(ParameterError, match="below 2\\*\\*20"):
        made.matrix(np.array([[number, 0], [0, 2**19], [2**18, 0]], kind))


def test_rows_whose_squares_wrap_are_refused():
    """2**44 more than 2**64, say: the norm in int64 would be a millionth of the true one."""
    largest = 2**20 - 1
    rows = -(-(2**64) // largest**2)
    with pytest.raises(ParameterError, match="up to 2\\*\\*22 rows"):
        made.matrix(np.broadcast_to(np.int64(largest), (rows, 1)))
    assert 2**22 * largest**2 < 2**63


def test_a_strategys_numbers_cannot_be_changed_behind_its_norms():
    with pytest.raises(ValueError, match="read-only"):
        made.matrix([[1, 0], [0, 1]]).numbers[0, 0] = 1000


@pytest.mark.parametrize("budget", [{"epsilon": 1}, {"rho": 1}])
@pytest.mark.parametrize(
    "workload",
    [
        workloads.ranges(4, [1], [1]),
        workloads.matrix([[0.0, 0.0, 0.0]]),
        workloads.matrix([[1e60, 1e60, 0.0], [0.0, 1e60, 1e-60]]),
        workloads.matrix([[1e-60, 1e-60, 0.0], [0.0, 1e-60, 3e-60]]),
    ],
    ids=["empty", "zeros", "large", "small"],
)
def test_extreme_workloads_have_a_strategy_of_finite_numbers(workload, budget):
    release = dpf.matrix_mechanism(np.arange(workload.cells), workload, **budget)
    assert np.isfinite(release.scale).all()
    assert all(one.strategy.l2_squared > 0 for one in release.choice.considered)


def test_no_strategy_is_made_of_nan():
    """It would be -2**63 in int64, whose magnitude and square wrap: norms of 0, and noise that hides nothing."""
    with pytest.raises(ParameterError, match="workload must be less extreme"):
        rounded((2,), np.array([[np.nan, 0.0], [0.0, 1.0]]), "none")
