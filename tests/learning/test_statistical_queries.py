"""The oracle of statistical queries: what it adds up, its noise, its budget; and a learner that sees nothing else."""

from __future__ import annotations

import copy
import itertools
import math
import os
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpfast as dpf
from dpfast.errors import BudgetExceededError, LedgerError, ParameterError
from dpfast.mechanisms.noise.integer_noise import IntegerNoise
from dpfast.testing import SeededRandom

UNITS = 2**30


def test_what_is_drawn(monkeypatch):
    """Row 11-3: m queries, each with Laplace noise of scale m / epsilon on the sum (m / (epsilon n) on the mean)."""
    seen = []
    monkeypatch.setattr(IntegerNoise, "add", lambda self, values, random: seen.append((self, values[0])) or values)
    oracle = dpf.StatisticalQueryOracle(np.arange(8), queries=5, epsilon=0.5)
    assert oracle.ask(lambda rows: rows >= 6) == 0.25
    assert oracle.ask(lambda rows: np.where(rows > 3, 7.0, -1.0)) == 0.5
    assert oracle.ask(lambda rows: np.where(rows > 3, np.nan, 0.5)) == 0.25
    noise, exact = seen[0]
    assert (noise.mechanism, noise.scale, exact) == ("laplace", 5 / 0.5 * UNITS, 2 * UNITS)
    # The guarantee of theorem 3.8 with sensitivity 1: all m within (m / epsilon) ln(m / miss) of the truth.
    assert oracle.error(0.05) * 8 == pytest.approx(5 / 0.5 * math.log(5 / 0.05), rel=1e-6)
    several = dpf.StatisticalQueryOracle(np.arange(8), queries=4, rho=0.5)
    several.ask(lambda rows: rows > 9)
    assert seen[-1][0].mechanism == "gaussian"
    assert seen[-1][0].scale == pytest.approx(UNITS * math.sqrt(4 / (2 * 0.5)))


def test_no_neighbour_moves_a_sum_by_more_than_one():
    """All pairs of rows of a few wild numbers; a query cannot answer more than 1 for a row."""
    wild = [-np.inf, -5.0, 0.0, 0.3, 1.0, 7.0, np.inf, np.nan]
    oracle = dpf.StatisticalQueryOracle(np.zeros(1), queries=1, epsilon=1.0)
    sums = []
    for number in wild:
        oracle._given = (np.array([number]),)
        sums.append(oracle._sum(lambda rows: rows))
    assert max(abs(a - b) for a, b in itertools.product(sums, repeat=2)) == UNITS


def test_a_failing_query_tells_nothing_and_is_spent():
    def picky(rows):
        if len(rows) and rows.max() > 5:
            message = f"secret {rows.max()}"
            raise ValueError(message)
        return rows * 0.0

    oracle = dpf.StatisticalQueryOracle(np.arange(2000), queries=2, epsilon=10.0, random=SeededRandom(1))
    assert abs(oracle.ask(picky)) < 0.01
    assert oracle.remaining == 1
    for wrong in (lambda rows: 1.0, lambda rows: np.zeros(3), lambda rows: rows.nothing, lambda: 0):
        with pytest.raises(ParameterError, match="query"):
            oracle.ask(wrong)
    assert oracle.remaining == 1


@pytest.mark.parametrize("kind", [np.asarray, pl.Series, pd.Series, list])
def test_kinds_of_rows(kind):
    oracle = dpf.StatisticalQueryOracle(kind([0, 1, 1, 1] * 5000), queries=1, epsilon=10.0, random=SeededRandom(1))
    assert oracle.ask(lambda rows: rows) == pytest.approx(0.75, abs=0.01)


@pytest.mark.parametrize("rows", [0, 1, 20_000])
def test_the_number_of_examples_is_measured_where_it_is_private(rows):
    random = SeededRandom(2)
    given = {"neighbors": "add_remove", "random": random}
    oracle = dpf.StatisticalQueryOracle(np.zeros(rows), queries=3, epsilon=1.0, **given)
    assert oracle.size >= 1
    assert abs(oracle.size - max(rows, 1)) < 4 * 30
    assert oracle.size != rows or rows < 2
    assert np.isfinite(oracle.ask(lambda rows: rows == 0))


def test_the_budget():
    ledger = dpf.Ledger(epsilon=1.0)
    oracle = dpf.StatisticalQueryOracle(np.zeros(9), queries=3, epsilon=0.6, ledger=ledger)
    assert 0.59 < ledger.spent.epsilon <= 0.6
    for _ in range(3):
        oracle.ask(lambda rows: rows)
    with pytest.raises(BudgetExceededError):
        oracle.ask(lambda rows: rows)
    with pytest.raises(BudgetExceededError):
        dpf.StatisticalQueryOracle(np.zeros(9), queries=3, epsilon=0.6, ledger=ledger)
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(LedgerError):
            copied(oracle)
    assert "0." not in repr(oracle)


def test_a_fork_may_not_ask():
    oracle = dpf.StatisticalQueryOracle(np.zeros(9), queries=3, epsilon=0.6)
    child = os.fork()
    if not child:
        try:
            oracle.ask(lambda rows: rows)
        except LedgerError:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


def test_every_conjunction_of_three_features_is_learnt():
    """Row 11-1 and 11-3: a learner that asks for means alone, over all conjunctions of features and negations."""
    bits = np.random.default_rng(3).integers(0, 2, (40_000, 3))
    for wanted in itertools.product([None, True, False], repeat=3):
        labels = np.ones(len(bits), bool)
        for feature, value in enumerate(wanted):
            labels &= True if value is None else bits[:, feature] == value
        oracle = dpf.StatisticalQueryOracle(bits, labels, queries=6, epsilon=1.0, random=SeededRandom(4))
        true, false = dpf.learn_conjunction(oracle, features=3)
        learnt = bits[:, true].all(axis=1) & ~bits[:, false].any(axis=1)
        assert not (learnt & ~labels).any()
        assert (learnt != labels).mean() <= 4 * 3 * oracle.error()
        assert oracle.remaining == 0


def test_what_never_is_true_is_learnt_as_that():
    frame = pl.DataFrame({"a": [True, False] * 5000, "b": [True] * 10_000})
    labels = pl.Series([False] * 10_000)
    oracle = dpf.StatisticalQueryOracle(frame, labels, queries=4, epsilon=1.0, random=SeededRandom(4))
    true, false = dpf.learn_conjunction(oracle, features=2)
    assert set(true) & set(false)
    with pytest.raises(ParameterError, match="half of the oracle's"):
        dpf.learn_conjunction(oracle, features=2)
    with pytest.raises(ParameterError, match="labels"):
        dpf.learn_conjunction(dpf.StatisticalQueryOracle(frame, queries=4, epsilon=1.0), features=2)


@pytest.mark.parametrize(
    "kind", [list, np.array, pl.Series, pd.Series, pa.array], ids=["list", "numpy", "polars", "pandas", "arrow"]
)
def test_an_example_on_which_a_query_fails_moves_its_own_number_alone(kind):
    """Soundness rule 12: were all numbers 0 where one fails, one example would move a sum by their number."""
    known = {"a": 1.0, "b": 0.0}
    queries = (
        lambda rows: [known.get(str(row)) for row in rows],
        lambda rows: [known[str(row)] for row in rows],
        lambda rows: [float({"a": "1", "b": "0"}.get(str(row), row)) for row in rows],
    )
    for query in queries:
        for bad in range(3):
            rows = ["a", "b"] * 100 + ["a"] * (3 - bad) + ["zzz"] * bad
            oracle = dpf.StatisticalQueryOracle(kind(rows), queries=1, epsilon=1.0)
            assert oracle._sum(query) == (103 - bad) * 2**30


def test_rows_that_cannot_be_taken_in_parts_are_refused():
    for rows in ({1: 2}, {1, 2}, object()):
        with pytest.raises(ParameterError, match="examples must be rows with a length and slices"):
            dpf.StatisticalQueryOracle(rows, queries=1, epsilon=1.0)


def test_a_conjunction_of_more_features_than_columns_asks_nothing():
    oracle = dpf.StatisticalQueryOracle(np.ones((5, 2)), np.ones(5), queries=8, epsilon=1.0)
    with pytest.raises(ParameterError, match="features must be at most the number"):
        dpf.learn_conjunction(oracle, features=4)
    assert oracle.remaining == 8
