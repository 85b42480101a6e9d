"""`dpf.multiplicative_weights`: one histogram or rows of them, in place and normalised."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpfast as dpf
from dpfast.errors import ParameterError
from dpfast.kernels.weights.cells import BLOCK
from dpfast.weights.linear_queries import BitQuery, LevelQuery
from dpfast.weights.query_tables import Marginal
from dpfast.weights.slab_queries import MarginalCell, RangeQuery


def expected(weights, coefficients, eta):
    eta = np.asarray(eta, float)
    exponents = (eta[:, None] if eta.ndim else eta) * np.asarray(coefficients, float)
    new = weights * np.exp(exponents - exponents.max(axis=-1, keepdims=True))
    return new / new.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("cells", [1, 3, 1000, 5000])
@pytest.mark.parametrize("rows", [None, 1, 7])
def test_arrays(cells, rows, seed):
    generator = np.random.default_rng(seed)
    shape = (cells,) if rows is None else (rows, cells)
    for own in {(cells,), shape}:
        bits = generator.random(own) < 0.5
        floats = generator.random(own)
        for query in (bits, bits.astype(np.uint8), bits.astype(np.int32), floats, floats.astype(np.float32)):
            for eta in (0.7, -3.0, 100.0, -200.0, *([generator.normal(size=rows)] if rows else [])):
                weights = generator.random(shape) * 1e3
                wanted = expected(weights, query, eta)
                assert dpf.multiplicative_weights(weights, query, eta) is weights
                np.testing.assert_allclose(weights, wanted, rtol=1e-11, atol=1e-300)


@pytest.mark.parametrize("eta", [1e-3, -0.5, 0.7, -40.0, 500.0, -500.0])
@pytest.mark.parametrize("share", [0.0, 1e-9, 0.5, 1.0 - 1e-9, 1.0])
def test_what_is_left_adds_up_to_one(eta, share, seed):
    """By the bound of the kernels' docstring, whether the new sum is known beforehand or added up again."""
    cells = 10_000
    query = np.arange(cells) < cells // 2
    weights = np.random.default_rng(seed).random(cells)
    weights[query] *= share / weights[query].sum()
    weights[~query] *= (1.0 - share) / weights[~query].sum()
    wanted = expected(weights, query, eta)
    for form in (query, query.astype(np.uint8), pl.Series(query).cast(pl.UInt8)):
        updated = dpf.multiplicative_weights(weights.copy(), form, eta)
        blocks = -(-cells // BLOCK)
        assert abs(math.fsum(updated) - 1.0) <= 6 * (BLOCK + blocks + 8) * 2**-53
        np.testing.assert_allclose(updated, wanted, rtol=1e-11, atol=1e-300)


@pytest.mark.parametrize("size", [1e307, 1e-300, 1e-315])
@pytest.mark.parametrize("eta", [500.0, 1.0, -1.0, -500.0])
def test_sums_near_the_largest_and_the_smallest_float(size, eta):
    bits = BitQuery(np.array([0b10], np.uint8), 2)
    wanted = expected(np.array([1.0, 2.0]), [0, 1], eta)
    for query in (np.array([0, 1], np.uint8), np.array([0.0, 1.0]), bits, RangeQuery(1, 2)):
        found = dpf.multiplicative_weights(np.array([1.0, 2.0]) * size, query, eta)
        np.testing.assert_allclose(found, wanted, rtol=1e-7 if size < 1e-307 else 1e-13, atol=1e-300)


@pytest.mark.parametrize("rows", [None, 3])
def test_other_queries(rows, seed):
    generator = np.random.default_rng(seed)
    cells = 5000
    bits = BitQuery(np.packbits(generator.random(cells) < 0.5, bitorder="little"), cells)
    levels = LevelQuery(generator.integers(0, 256, cells).astype(np.uint8))
    whole = MarginalCell((1, cells), (0,), (0,))
    for query in (bits, levels, whole, RangeQuery(100, 4000)):
        coefficients = query.coefficients(getattr(query, "shape", (cells,))).reshape(-1)
        for eta in (0.5, -40.0):
            weights = generator.random(cells if rows is None else (rows, cells))
            wanted = expected(weights, coefficients, eta)
            dpf.multiplicative_weights(weights, query, eta)
            np.testing.assert_allclose(weights, wanted, rtol=1e-11, atol=1e-300)


def test_a_whole_marginal(seed):
    generator = np.random.default_rng(seed)
    weights, eta = generator.random(20), generator.normal(size=4)
    wanted = weights * np.repeat(np.exp(eta), 5)
    dpf.multiplicative_weights(weights, Marginal((4, 5), (0,)), eta)
    np.testing.assert_allclose(weights, wanted / wanted.sum(), rtol=1e-12)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.floats(0.0, 1e6), min_size=1, max_size=20).filter(lambda values: sum(values) > 1e-3),
    st.floats(-20.0, 20.0),
    st.data(),
)
def test_it_is_a_distribution_and_two_updates_add_up(values, eta, data):
    query = np.array(data.draw(st.lists(st.floats(0.0, 1.0), min_size=len(values), max_size=len(values))))
    once, twice = np.array(values), np.array(values)
    dpf.multiplicative_weights(once, query, eta)
    assert once.sum() == pytest.approx(1.0)
    assert (once >= 0).all()
    dpf.multiplicative_weights(twice, query, eta / 2)
    dpf.multiplicative_weights(twice, query, eta / 2)
    np.testing.assert_allclose(once, twice, rtol=1e-9, atol=1e-300)


GOOD = np.array([True, False, True])


def read_only():
    weights = np.ones(3)
    weights.flags.writeable = False
    return weights


@pytest.mark.parametrize(
    ("weights", "query", "eta", "argument", "told"),
    [
        ([1.0, 1.0, 1.0], GOOD, 1.0, "weights", "np.array"),
        (np.ones(3, np.float32), GOOD, 1.0, "weights", "float64"),
        (np.ones((2, 2, 2)), GOOD, 1.0, "weights", "two dimensions"),
        (np.ones(0), np.ones(0), 1.0, "weights", "at least one"),
        (np.ones(6)[::2], GOOD, 1.0, "weights", "copy"),
        (read_only(), GOOD, 1.0, "weights", "copy"),
        (np.array([1.0, -1e-9, 1.0]), GOOD, 1.0, "weights", "negative"),
        (np.array([1.0, np.nan, 1.0]), GOOD, 1.0, "weights", "NaN"),
        (np.array([1.0, np.inf, 1.0]), GOOD, 1.0, "weights", "infinities"),
        (np.zeros(3), GOOD, 1.0, "weights", "zeros"),
        (np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]), GOOD, 1.0, "weights", "zeros"),
        (np.array([1.0, np.nan, 1.0]), RangeQuery(0, 1), 1.0, "weights", "NaN"),
        (np.array([1.0, -1.0, 1.0]), BitQuery(np.array([5], np.uint8), 3), 1.0, "weights", "negative"),
        (np.ones(3), GOOD[:2], 1.0, "query", "shape"),
        (np.ones(3), [0, 1, 2], 1.0, "query", "0 to 1"),
        (np.ones(3), np.array([0, 255, 1], np.uint8), 1.0, "query", "0 to 1"),
        (np.ones((2, 3)), np.array([[0, 1, 1], [1, 2, 0]], np.uint8), 1.0, "query", "0 to 1"),
        (np.ones(3), pl.Series([0, 1, 2], dtype=pl.UInt8), 1.0, "query", "0 to 1"),
        (np.ones(5000), np.arange(5000) // 4999 * 128, 1.0, "query", "0 to 1"),
        (np.ones(5000), (np.arange(5000) // 4999 * 128).astype(np.uint8), 1.0, "query", "0 to 1"),
        (np.ones(3), [0.0, 1.5, 1.0], 1.0, "query", "0 to 1"),
        (np.ones(3), [0.0, np.nan, 1.0], 1.0, "query", "NaN"),
        (np.ones(3), ["a", "b", "c"], 1.0, "query", "of type"),
        (np.ones(3), (2, 1), 1.0, "query", "start <= stop"),
        (np.ones(3), (-1, 1), 1.0, "query", "start must be a whole number from 0"),
        (np.ones(3), BitQuery(np.array([5], np.uint8), 4), 1.0, "query", "(4,)"),
        (np.ones((2, 3)), Marginal((3,), (0,)), 1.0, "query", "table"),
        (np.ones(3), GOOD, np.inf, "eta", "-500 to 500"),
        (np.ones(3), GOOD, np.nan, "eta", "-500 to 500"),
        (np.ones(3), GOOD, 501.0, "eta", "LogWeights"),
        (np.ones(3), (0, 1), -501.0, "eta", "LogWeights"),
        (np.ones(3), GOOD, "1", "eta", "number"),
        (np.ones((2, 3)), GOOD, [1.0, 2.0, 3.0], "eta", "shape"),
        (np.ones((2, 3)), GOOD, [1.0, np.nan], "eta", "everywhere"),
    ],
)
def test_bad_input_is_named_and_changes_nothing(weights, query, eta, argument, told):
    before = np.array(weights, copy=True)
    with pytest.raises(ParameterError) as caught:
        dpf.multiplicative_weights(weights, query, eta)
    assert caught.value.argument == argument
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
    assert np.array_equal(before, weights, equal_nan=True)


def test_minus_zero_is_no_negative_weight():
    np.testing.assert_allclose(dpf.multiplicative_weights(np.array([-0.0, 1.0]), [True, True], 1.0), [0.0, 1.0])
