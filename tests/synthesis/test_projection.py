"""Projections onto what a histogram can answer: against exact least squares, and their certificates."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import nnls

import dpfast as dpf
from dpfast.synthesis.fitted.projection import project_answers

from .dense import Dense


def nearest(matrix, target, total, body):
    """Return the exact projection of a target, by nonnegative least squares with a heavy equation for the sum."""
    matrix = np.asarray(matrix, float)
    origin = np.zeros((len(matrix), 1))
    columns = np.hstack({"simplex": [matrix], "capped": [matrix, origin], "ball": [matrix, -matrix, origin]}[body])
    heavy = 1e6 * max(1.0, np.abs(columns).max())
    rows = np.vstack([columns, np.full((1, columns.shape[1]), heavy)])
    weights, _ = nnls(rows, np.append(target, heavy * total), maxiter=10_000)
    return columns @ weights


def problems(seed, count=25):
    generator = np.random.default_rng(seed)
    for _ in range(count):
        queries, cells = generator.integers(1, 30), generator.integers(1, 25)
        if generator.random() < 0.5:
            matrix = (generator.random((queries, cells)) < 0.5).astype(np.uint8)
        else:
            matrix = generator.random((queries, cells))
        counts = generator.integers(0, 30, cells)
        noise = generator.normal(0.0, generator.choice([0.1, 10.0, 1000.0]), queries)
        yield matrix, counts, matrix @ counts + noise


@pytest.mark.parametrize("body", ["simplex", "capped", "ball"])
def test_it_is_the_nearest_point_and_the_certificate_holds(body, seed):
    """Row 12-19."""
    for matrix, counts, noisy in problems(seed):
        total = counts.sum()
        exact = nearest(matrix, noisy, total, body)
        slack = 1e-6 * (1 + np.abs(noisy).max())
        for tolerance in (1e-5 * (1 + np.abs(noisy).max()), 0.1, 100.0):
            fitted = project_answers(noisy, Dense(matrix), total=total, body=body, tolerance=tolerance)
            assert fitted.complete
            away = np.linalg.norm(fitted.answers - exact)
            assert away <= fitted.distance + slack
            assert fitted.distance <= tolerance * math.sqrt(len(noisy)) * (1 + 1e-9)
            assert np.allclose(matrix @ fitted.histogram, fitted.answers, atol=slack)
            assert np.abs(fitted.histogram).sum() <= total * (1 + 1e-9)
            if body != "ball":
                assert fitted.histogram.min() >= 0
            if body == "simplex":
                assert fitted.histogram.sum() == pytest.approx(total)


def test_a_projection_stopped_early_says_so(seed):
    generator = np.random.default_rng(seed)
    matrix = np.tril(np.ones((400, 400), np.uint8))
    noisy = generator.multinomial(5000, np.full(400, 1 / 400)).cumsum() + generator.normal(0.0, 100.0, 400)
    fitted = project_answers(noisy, Dense(matrix), total=5000, tolerance=1e-9, iterations=2)
    assert (fitted.iterations, fitted.complete) == (2, False)
    better = project_answers(noisy, Dense(matrix), total=5000, tolerance=1e-3)
    assert better.complete
    assert better.gap < fitted.gap
    assert np.linalg.norm(fitted.answers - better.answers) <= fitted.distance + better.distance


def test_lemma_12_9_without_its_factor_of_two(seed):
    """abs(p - a)**2 <= <p - a, t - a> for the projection p of t onto a convex set with a in it, a plain inequality.

    Row 12-18.
    """
    for matrix, counts, noisy in problems(seed):
        answers = matrix @ counts
        for body in ("simplex", "capped", "ball"):
            p = project_answers(noisy, Dense(matrix), total=counts.sum(), body=body, tolerance=1e-7).answers
            inner = (p - answers) @ (noisy - answers)
            assert np.square(p - answers).sum() <= inner + 1e-5 * (1 + np.abs(noisy - answers).max() ** 2)


@pytest.mark.parametrize("body", ["simplex", "capped", "ball"])
def test_it_may_start_anywhere(body, seed):
    """The same point from another projection, from a histogram of another total, and from none.

    From the point itself it takes fewer steps over all problems, though not for each of them.
    """
    anew = from_there = 0
    for matrix, counts, noisy in problems(seed):
        plain = project_answers(noisy, Dense(matrix), total=counts.sum(), body=body, tolerance=1e-3)
        for start in (plain.histogram, counts, np.zeros(counts.size), np.arange(counts.size)):
            other = project_answers(noisy, Dense(matrix), total=counts.sum(), body=body, tolerance=1e-3, start=start)
            assert other.complete
            assert np.linalg.norm(other.answers - plain.answers) <= plain.distance + other.distance + 1e-6
            assert np.allclose(matrix @ other.histogram, other.answers, atol=1e-6 * (1 + np.abs(noisy).max()))
        if counts.sum():
            again = project_answers(
                noisy, Dense(matrix), total=counts.sum(), body=body, tolerance=1e-3, start=plain.histogram
            )
            anew, from_there = anew + plain.iterations, from_there + again.iterations
    assert from_there < anew


def test_what_floats_cannot_reach_is_not_waited_for(seed):
    for matrix, counts, noisy in problems(seed):
        for body in ("simplex", "capped", "ball"):
            assert (
                project_answers(noisy, Dense(matrix), total=counts.sum(), body=body, tolerance=1e-14).iterations < 200
            )


def test_answers_of_a_histogram_stay_as_they_are(seed):
    generator = np.random.default_rng(seed)
    matrix = generator.random((20, 10))
    counts = generator.integers(0, 9, 10)
    for body in ("simplex", "capped", "ball"):
        fitted = project_answers(matrix @ counts, Dense(matrix), total=counts.sum(), body=body, tolerance=1e-6)
        assert np.allclose(fitted.answers, matrix @ counts, atol=1e-4)


def test_nobody_is_projected_onto_nobody():
    fitted = project_answers([5.0, -3.0], Dense([[1, 0, 1], [0, 1, 1]]), total=0)
    assert fitted.histogram.tolist() == [0, 0, 0]
    assert fitted.answers.tolist() == [0, 0]
    assert fitted.complete


def test_many_equal_and_empty_columns():
    matrix = np.zeros((3, 200), np.uint8)
    matrix[:, 7] = 1
    matrix[0, 100:150] = 1
    fitted = project_answers([30.0, 10.0, 10.0], Dense(matrix), total=40, tolerance=1e-6)
    assert np.allclose(fitted.answers, [30, 10, 10], atol=1e-5)


@pytest.mark.parametrize("body", ["simplex", "capped", "ball"])
@pytest.mark.parametrize("shift", [-100.0, 0.0, 300.0])
def test_a_gap_is_that_of_the_histogram(body, shift):
    """Also after a single iteration, and where all targets are negative: never below what is left to be gained."""
    target = shift - np.abs(np.random.default_rng(4).normal(0.0, 3.0, 500))
    best = project_answers(target, dpf.workloads.identity(500), total=1000, body=body, tolerance=1e-6)
    assert best.complete

    def error(fitted):
        return np.square(fitted.answers - target).sum() / 2

    for iterations in (1, 2, 5):
        fitted = project_answers(
            target, dpf.workloads.identity(500), total=1000, body=body, tolerance=1e-6, iterations=iterations
        )
        assert error(fitted) - error(best) <= fitted.gap + 1e-6
