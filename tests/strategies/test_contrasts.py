"""Contrasts of one attribute: norms and errors beside dense algebra, and that none of a smaller error are missed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

import dpfast as dpf
from dpfast.strategies.best_contrasts import best_contrasts, rounded_contrasts
from dpfast.strategies.contrasts import EvenContrasts, MatrixContrasts
from dpfast.strategies.halves import contrasts_of_halves

ask = dpf.workloads
ASKED = {
    "prefixes": ask.prefix,
    "all ranges": ask.all_range,
    "few ranges": lambda n: ask.random_ranges(n, 3, seed=2),
    "cells": ask.identity,
    "signed": lambda n: ask.matrix(np.random.default_rng(n).normal(size=(4, n))),
    "stacked": lambda n: ask.prefix(n) + ask.total(n) + ask.identity(n),
}
SIZES = [2, 3, 5, 8, 17]


def written_out(one):
    return one.matrix if isinstance(one, MatrixContrasts) else one.size * np.eye(one.size, dtype=np.int64) - 1


def made(kind, workload):
    if kind == "even":
        return EvenContrasts(workload.cells)
    real = best_contrasts if kind == "best" else contrasts_of_halves
    found = rounded_contrasts(real(workload.gram()), 1 << 10)
    assert found is not None
    return found


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("kind", ["even", "best", "halves"])
def test_all_that_is_said_of_them_is_so(kind, asked, size):
    workload = ASKED[asked](size)
    one = made(kind, workload)
    matrix = written_out(one)
    gram = matrix.T @ matrix
    assert not matrix.sum(axis=1).any()
    assert np.linalg.matrix_rank(matrix) == size - 1
    assert (one.rows, one.size) == matrix.shape
    assert one.largest == np.abs(matrix).max()
    assert one.magnitudes == np.abs(matrix).sum(axis=0).max()
    assert one.squares == gram.diagonal().max()
    assert one.inner == gram.min()
    rests = workload.rows(0, len(workload)).astype(float)
    rests -= rests.mean(axis=1, keepdims=True)
    covariance = np.linalg.pinv(gram.astype(float), rcond=1e-12)
    expected = np.einsum("qi,qi->q", rests @ covariance, rests)
    np.testing.assert_allclose(one.variances(workload), expected, rtol=1e-6, atol=1e-9 * expected.max())
    np.testing.assert_allclose(one.of_values, one.variances(ask.identity(size)), rtol=1e-9)
    table = np.random.default_rng(1).integers(0, 9, (3, size, 2))
    measured = one.measure(table, 1)
    assert measured.dtype == np.int64
    np.testing.assert_array_equal(measured, np.einsum("ri,ain->arn", matrix, table))
    back = one.estimate(measured.astype(float), 1)
    np.testing.assert_allclose(back, table - table.mean(axis=1, keepdims=True), atol=1e-9)


@pytest.mark.parametrize("asked", ["prefixes", "all ranges", "signed"])
@pytest.mark.parametrize("size", [3, 4, 5])
def test_none_errs_less_under_gaussian_noise(size, asked):
    """A search over all matrices of as many rows, from several starts, finds none that is better by more than 2%."""
    gram, generator = ASKED[asked](size).gram(), np.random.default_rng(size)

    def error(flat):
        matrix = flat.reshape(size, size)
        matrix = matrix - matrix.mean(axis=1, keepdims=True)
        own = matrix.T @ matrix
        return float((np.linalg.pinv(own, rcond=1e-10) * gram).sum()) * own.diagonal().max()

    found = error(best_contrasts(gram).reshape(-1))
    for _ in range(4):
        start = generator.normal(size=size * size)
        assert minimize(error, start, method="Powell", options={"maxiter": 30}).fun > found * 0.98


@pytest.mark.parametrize("size", SIZES)
def test_of_cells_the_best_are_even(size):
    one = made("best", ask.identity(size))
    error = float(one.variances(ask.identity(size)).sum()) * one.squares
    even = EvenContrasts(size)
    assert error == pytest.approx(float(even.variances(ask.identity(size)).sum()) * even.squares, rel=0.01)


@pytest.mark.parametrize("size", [16, 85, 100])
@pytest.mark.parametrize("asked", ["prefixes", "all ranges", "few ranges"])
def test_halves_err_less_than_cells_under_laplace_noise(asked, size):
    workload = ASKED[asked](size)
    one, even = made("halves", workload), made("even", workload)
    assert one.magnitudes**2 * one.variances(workload).sum() < 0.9 * even.magnitudes**2 * even.variances(workload).sum()


@pytest.mark.parametrize("largest", [1, 2, 3, 100])
def test_rounding_keeps_to_the_largest_number(largest):
    """Where whole numbers are too coarse to tell all values apart there are none."""
    for size in (2, 5, 40):
        one = rounded_contrasts(best_contrasts(ask.prefix(size).gram()), largest)
        assert one is None or one.largest <= largest
    assert rounded_contrasts(best_contrasts(ask.prefix(40).gram()), 1) is None


def test_contrasts_that_leave_values_alike_are_refused():
    with pytest.raises(np.linalg.LinAlgError):
        MatrixContrasts(np.array([[1, -1, 0, 0]]))


def test_nothing_asked_and_one_value():
    assert np.isfinite(best_contrasts(np.zeros((4, 4)))).all()
    assert np.isfinite(contrasts_of_halves(np.zeros((4, 4)))).all()
    one = EvenContrasts(1)
    assert (one.magnitudes, one.squares, one.inner) == (0, 0, 0)
    assert one.variances(ask.prefix(1)).tolist() == [0.0]
