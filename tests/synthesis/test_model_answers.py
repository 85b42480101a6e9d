"""Answers of workloads by a model: as from all cells where memory holds them, and beyond where it does not."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.errors import ParameterError

SIZES = {"a": 3, "b": 2, "c": 4, "d": 5}
SHAPE = tuple(SIZES.values())
W = dpf.workloads


@pytest.fixture(scope="module")
def model():
    """Return a model of four columns that hang together, made of two pairs."""
    generator = np.random.default_rng(1)
    first = generator.integers(0, 60, 5_000)
    frame = pl.DataFrame({name: (first + generator.integers(0, 2, 5_000)) % size for name, size in SIZES.items()})
    ledger = dpf.Ledger(epsilon=2)
    sets = [("a", "b"), ("b", "c"), ("c", "d")]
    return dpf.synthesize(frame, dpf.Domain(SIZES), sets, epsilon=2.0, rounds=3, ledger=ledger).estimate


@pytest.fixture(scope="module")
def many():
    """Return a model of 70 columns of 4 values: 10^42 cells."""
    codes = np.random.default_rng(2).integers(0, 4, 2_000)
    frame = pl.DataFrame({f"x{place}": (codes + place) % 4 for place in range(70)})
    domain = dpf.Domain(dict.fromkeys(frame.columns, 4))
    pairs = [(f"x{place}", f"x{place + 1}") for place in range(5)]
    return dpf.synthesize(frame, domain, pairs, epsilon=2.0, rounds=3, ledger=dpf.Ledger(epsilon=2)).estimate


def rectangles(count):
    generator = np.random.default_rng(3)
    ends = np.sort(generator.integers(0, np.array(SHAPE), (2, count, 4)), axis=0)
    return W.rectangles(SHAPE, ends[0], ends[1] + 1)


WORKLOADS = {
    "total": W.total(SHAPE),
    "cells": W.identity(SHAPE),
    "pairs": W.marginals(SHAPE, k=2),
    "some marginals": W.marginals(SHAPE, attributes=[(), (2,), (1, 3), (0, 1, 2, 3)]),
    "rectangles": rectangles(20),
    "a product": W.kronecker(W.identity(3), W.total(2), W.prefix(4), W.total(5)),
    "a product of several axes": W.kronecker(W.marginals((3, 2), k=1), W.total(4), W.all_range(5)),
    "one factor that is no total": W.kronecker(W.total((3, 2)), W.prefix(4), W.total(5)),
    "totals alone": W.kronecker(W.total(3), W.total((2, 4)), W.total(5)),
    "a sum": W.marginals(SHAPE, k=1) + W.kronecker(W.total((3, 2, 4)), W.prefix(5)) + W.total(SHAPE),
}


@pytest.mark.parametrize("name", WORKLOADS)
def test_answers_are_those_of_all_cells(model, name):
    workload = WORKLOADS[name]
    cells = model.marginal(list(SIZES))
    found = model.answer(workload)
    assert found.shape == (len(workload),)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, workload.answer(cells), rtol=1e-9, atol=1e-6)


def test_answers_over_more_cells_than_any_integer_counts(many):
    shape = (4,) * 70
    pairs = many.answer(W.marginals(shape, attributes=[(3, 69), ()]))
    np.testing.assert_allclose(pairs[:16].reshape(4, 4), many.marginal(["x3", "x69"]))
    assert pairs[16] == pytest.approx(many.total)
    ranges = many.answer(W.kronecker(W.total(shape[:40]), W.prefix(4), W.total(shape[41:])))
    np.testing.assert_allclose(ranges, many.marginal(["x40"]).cumsum())


def test_what_it_cannot_answer_is_refused_in_one_line(model, many):
    one = W.ranges(4, [0], [2])
    for estimate, workload, said in (
        (model, W.marginals((3, 2, 4), k=1), r"workload .* over the cells of the domain"),
        (many, W.kronecker(W.total((4,) * 69), W.prefix(5)), r"workload .* over the cells of the domain"),
        (many, W.kronecker(*[one] * 20, W.total((4,) * 50)), r"workload must be of at most .* cells"),
        (many, W.kronecker(*[one] * 70), r"workload must be about at most 32 attributes"),
        (model, "pairs", r"workload must be"),
        (model, None, r"workload must be"),
    ):
        with pytest.raises(ParameterError, match=said) as caught:
            estimate.answer(workload)
        assert "\n" not in str(caught.value)


def test_records_of_a_histogram_answer_too():
    frame = pl.DataFrame({"a": [0, 1, 2] * 40, "b": [0, 1] * 60})
    made = dpf.synthesize(frame, dpf.Domain({"a": 3, "b": 2}), epsilon=5.0, ledger=dpf.Ledger(epsilon=5))
    np.testing.assert_allclose(made.answer(W.marginals((3, 2), attributes=[(0,)])), made.marginal(["a"]))
    with pytest.raises(ParameterError, match="over the cells of the domain"):
        made.answer(W.prefix(6))


def test_rectangles_over_any_number_of_cells_are_answered_from_the_columns_that_they_cut(many):
    upper = np.full((3, 70), 4)
    lower = np.zeros((3, 70), np.int64)
    lower[0, 3], upper[1, 5], lower[1, 4] = 2, 1, 3
    answers = many.answer(W.rectangles((4,) * 70, lower, upper))
    expected = many.marginal(["x3"])[2:].sum(), many.marginal(["x4", "x5"])[3, 0], many.total
    np.testing.assert_allclose(answers, expected)


def test_a_model_is_made_for_what_ranges_are_about():
    frame = pl.DataFrame({f"x{place}": np.arange(500) % 4 for place in range(40)})
    domain = dpf.Domain(dict.fromkeys(frame.columns, 4))
    asked = W.about(domain, {"x3": W.prefix(4), "x9": W.all_range(4)}) + W.about(domain, {"x5": W.prefix(4)})
    assert "2 sets of columns" in dpf.plan_synthesis(domain, asked, epsilon=2.0).explain()
    made = dpf.synthesize(frame, domain, asked, epsilon=2.0, rounds=2, ledger=dpf.Ledger(epsilon=2))
    assert made.answer(asked).shape == (44,)
    assert ("x3", "x9") in made.estimate.cliques
