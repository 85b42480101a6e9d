"""Propose, test, release, and release if stable: their privacy on small data, their order, and their edges."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpfast as dpf
from dpfast.errors import ColumnError, ParameterError
from dpfast.exact.amounts import budget_units
from dpfast.stability.instability import rows_until_wide
from dpfast.stability.passing import PassingTest
from dpfast.testing import SeededRandom

from . import functions
from .laws import every, neighbors_of

UNIVERSE = range(5)
RELATIONS = ("add_remove", "replace")


def median(data):
    return data[(len(data) + 1) // 2 - 1] if data else 0


@cache
def excess_of_mixtures(one, other, epsilon):
    """The least delta between two laws: nothing, or a value with Laplace noise."""
    (p, f), (q, g), (_, scale) = one[:2], other[:2], one[2:] and (0, one[2])
    y = np.linspace(-60 * scale - 5, 60 * scale + 10, 60_001)
    dense = [chance * np.exp(-np.abs(y - value) / scale) / (2 * scale) for chance, value in ((p, f), (q, g))]
    shown = np.trapezoid(np.maximum(dense[0] - math.exp(epsilon) * dense[1], 0.0), y)
    return shown + max(0.0, (1 - p) - math.exp(epsilon) * (1 - q))


def largest_excess(relation, bound, epsilon, distance_of, kind="optimal", delta=0.02):
    passing = PassingTest(kind, budget_units(epsilon / 2, "epsilon"), budget_units(delta, "delta"))
    worst, laws = 0.0, {}

    def of(data):
        if data not in laws:
            laws[data] = passing.probability(distance_of(data)), median(data), bound / (epsilon / 2)
        return laws[data]

    for data in every(UNIVERSE, 4, least=1 if relation == "replace" else 0):
        for other in neighbors_of(data, UNIVERSE, relation):
            worst = max(worst, excess_of_mixtures(of(data), of(other), epsilon))
    return worst


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("kind", ["optimal", "laplace"])
def test_the_median_is_private_on_all_small_data(relation, kind):
    """Row 7-7: all data of up to 4 rows over 5 values and all neighbours, by integration."""

    def far(data):
        return rows_until_wide(np.array(data, np.int64), 0, 4, 1, relation)

    assert largest_excess(relation, 1, 1.0, far, kind) <= 0.02 * (1 + 1e-3)


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_distance_that_is_too_long_is_caught(relation):
    """Row 7-7: the distance plus 1, or a test of the local sensitivity alone, are not private."""

    def far(data):
        return rows_until_wide(np.array(data, np.int64), 0, 4, 1, relation)

    assert largest_excess(relation, 1, 1.0, lambda data: far(data) + 1) > 0.0205
    assert largest_excess(relation, 1, 1.0, lambda data: 100 if far(data) else 0) > 0.1


def test_medians_are_released_where_rows_are_many():
    """Row 7-7."""
    ages = [20 + k % 40 for k in range(2000)]
    for relation in RELATIONS:
        found = dpf.propose_test_release(
            ages,
            "median",
            bound=1,
            bounds=(0, 120),
            epsilon=4.0,
            delta=1e-6,
            neighbors=relation,
            random=SeededRandom(1),
        )
        assert abs(found.value - 39) < 10
        few = dpf.propose_test_release(
            [20, 90] * 3, "median", bound=1, bounds=(0, 120), epsilon=4.0, delta=1e-12, neighbors=relation
        )
        assert few.value is None
        assert few.explain().endswith("no value: the test did not pass")


@pytest.mark.parametrize("workers", [0, 1])
def test_functions_of_the_users(workers):
    """Rows 7-7 and 7-12: in a process of their own, or in this one."""
    budget = {"epsilon": 20.0, "delta": 1e-9, "workers": workers, "random": SeededRandom(3)}
    found = dpf.propose_test_release([1, 2, 3] * 9, functions.tenth, functions.nearly_all, bound=0.1, **budget)
    assert abs(found.value - 5.4) < 0.5
    assert dpf.release_if_stable([1, 2, 3] * 9, functions.tenth, functions.nearly_all, **budget).value == 5.4
    # What is no distance is 0; what is no number is the default.
    assert dpf.propose_test_release([1], functions.tenth, functions.text, bound=0.1, **budget).value is None
    assert dpf.release_if_stable([1], functions.tenth, functions.broken, **budget).value is None
    given = dpf.propose_test_release([1] * 50, functions.broken, functions.nearly_all, bound=0.01, default=77, **budget)
    assert abs(given.value - 77) < 1
    assert dpf.release_if_stable([1] * 50, functions.broken, functions.nearly_all, **budget).value is None
    assert dpf.release_if_stable([1] * 50, functions.text, functions.nearly_all, **budget).value == "text"


@pytest.mark.parametrize(
    "column",
    [
        pl.Series(["tea"] * 90 + [None] * 5 + ["milk"] * 10),
        pl.Series(["tea"] * 90 + [None] * 5 + ["milk"] * 10, dtype=pl.Categorical),
        pd.Series(["tea"] * 90 + [None] * 5 + ["milk"] * 10),
        pd.Series(["tea"] * 90 + ["milk"] * 10).astype("category"),
        pa.array(["tea"] * 90 + [None] * 5 + ["milk"] * 10),
        pa.chunked_array([["tea"] * 90, ["milk"] * 10]),
        pa.array(["tea"] * 90 + ["milk"] * 10).dictionary_encode(),
        np.array(["tea"] * 90 + ["milk"] * 10),
        np.array(["tea"] * 90 + ["milk"] * 10, object),
        ["tea"] * 90 + [None, float("nan"), object()] + ["milk"] * 10,
    ],
    ids=lambda column: f"{type(column).__module__}.{getattr(column, 'dtype', '')}",
)
def test_the_mode_of_any_column(column):
    """Row 7-13."""
    for relation in RELATIONS:
        found = dpf.release_if_stable(column, "mode", epsilon=2.0, delta=1e-6, neighbors=relation)
        assert found.value == "tea"
        lead = dpf.stability.distance_to_instability(column, "mode", neighbors=relation)
        assert lead == (79 if relation == "add_remove" else 39)


def test_modes_of_other_values():
    """Numbers are equal to equal numbers of other types, dates are texts, lists are tuples."""
    for values, mode in (
        ([1, 1.0, np.int64(1), True] * 40, 1),
        ([0.0, -0.0] * 40, 0),
        (np.full(90, np.nan), None),
        (pl.Series([0.5] * 90), 0.5),
        ([(1, 2), [1, 2]] * 40, (1, 2)),
        (pl.Series(["2024-02-29"] * 90).str.to_date(), "2024-02-29"),
        ([b"x"] * 90, b"x"),
        ([True] * 90, True),
    ):
        assert dpf.release_if_stable(values, "mode", epsilon=2.0, delta=1e-6).value == mode


@pytest.mark.parametrize("relation", RELATIONS)
def test_edges_of_columns(relation):
    """Nothing, one row, nulls only, equal rows: the same kind of answer, and no error."""
    nulls = pl.Series([None] * 200, dtype=pl.Float64)
    budget = {"epsilon": 1.0, "delta": 1e-9, "neighbors": relation, "random": SeededRandom(4)}
    for values in ([], np.empty(0), [5], pl.Series([], dtype=pl.Int64)):
        if not len(values) and isinstance(values, list):
            assert dpf.release_if_stable(values, "mode", **budget).value is None
            continue
        assert dpf.release_if_stable(values, "mode", **budget).value is None
        assert dpf.release_if_stable(values, "median", bounds=(0, 9), **budget).value is None
        dpf.propose_test_release(values, "median", bound=1, bounds=(0, 9), **budget)
    assert dpf.release_if_stable(nulls, "mode", **budget).value is None
    lower = dpf.release_if_stable(nulls, "median", bounds=(3, 9), **budget).value
    assert lower == (3.0 if relation == "replace" else None)
    assert dpf.release_if_stable(np.full(200, 5), "median", bounds=(3, 9), **budget).value == 5.0
    assert dpf.release_if_stable(np.full(200, np.inf), "median", bounds=(3, 9), **budget).value == 9.0


def test_nothing_is_spent_before_a_refusal():
    ledger = dpf.Ledger(epsilon=10, delta=0.1)
    for call in (
        lambda: dpf.release_if_stable({"a": [1]}, "mode", epsilon=1, delta=1e-6, ledger=ledger),
        lambda: dpf.release_if_stable(pl.DataFrame({"a": [1]}), "mode", epsilon=1, delta=1e-6, ledger=ledger),
        lambda: dpf.release_if_stable(np.array(["a"]), "median", bounds=(0, 1), epsilon=1, delta=1e-6, ledger=ledger),
        lambda: dpf.propose_test_release([1], max, bound=1, epsilon=1, delta=1e-6, ledger=ledger),
        lambda: dpf.propose_test_release(
            [1], "median", bound=1, bounds=(0, 1), epsilon=1, delta=1e-6, ledger=ledger, random=SeededRandom(1)
        ),
    ):
        with pytest.raises((ParameterError, ColumnError)):
            call()
    assert ledger.history().is_empty()


def test_test_and_noise_are_two_entries_that_add_up():
    for accountant in ("basic", "rdp"):
        ledger = dpf.Ledger(epsilon=2, delta=1e-3, accountant=accountant) if accountant == "basic" else None
        found = dpf.propose_test_release(
            [1, 2, 3], "median", bound=1, bounds=(0, 9), epsilon=1.0, delta=1e-6, test_share=0.3, ledger=ledger
        )
        assert (found.epsilon, found.delta) == (1.0, 1e-6)
        if ledger is not None:
            assert ledger.history().height == 2
            assert (ledger.spent.epsilon, ledger.spent.delta) == (1.0, 1e-6)
