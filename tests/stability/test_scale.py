"""The interquartile scale: exact privacy on all small data, the threshold as printed caught, and its edges."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.exact.amounts import budget_units
from dpfast.stability.instability import edges, interquartile_scale_of
from dpfast.stability.passing import PassingTest
from dpfast.testing import SeededRandom

from .laws import every, excess, neighbors_of

UNIVERSE = (0, 1, 2, 3, 5, 9)
RELATIONS = ("add_remove", "replace")


def law(data, relation, chance_of):
    """What the two tests show: the bin of the first that passes."""
    x = np.array(data, np.float64)
    (first, near), (second, far) = (interquartile_scale_of(x, way, relation) for way in edges(2.0))
    p, q = chance_of(near), chance_of(far)
    return {("first", first): p, ("second", second): (1 - p) * q, "none": (1 - p) * (1 - q)}


def largest_excess(relation, epsilon, chance_of):
    law_of = cache(lambda data: law(data, relation, chance_of))
    return max(
        excess(law_of(data), law_of(other), epsilon)
        for data in every(UNIVERSE, 5, least=2)
        for other in neighbors_of(data, UNIVERSE, relation)
    )


@pytest.mark.parametrize("kind", ["optimal", "laplace", "book"])
@pytest.mark.parametrize("relation", RELATIONS)
def test_scale_is_private_on_all_small_data(kind, relation):
    """Row 7-9: (epsilon, delta) for both ways together, half of each for each way."""
    epsilon, delta = 1.4, 0.02
    passing = PassingTest(kind, budget_units(epsilon / 2, "epsilon"), budget_units(delta / 2, "delta"))
    assert largest_excess(relation, epsilon, passing.probability) <= delta * (1 + 1e-9)


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_threshold_as_printed_is_caught(relation):
    """Row 7-9, erratum E21: R <= 1 + ln(1/delta), where noise has scale 1/epsilon."""
    epsilon, delta = 0.1, 1e-6

    def printed(distance):
        beyond = math.log(1 / delta) - distance
        return 0.5 * math.exp(-epsilon * beyond) if beyond > 0 else 1 - 0.5 * math.exp(epsilon * beyond)

    assert printed(0) == pytest.approx(0.1256, abs=5e-5)
    assert largest_excess(relation, 4 * epsilon, printed) > 0.01

    def mended(distance):
        beyond = math.log(1 / delta) / epsilon - distance
        return 0.5 * math.exp(-epsilon * beyond) if beyond > 0 else 1 - 0.5 * math.exp(epsilon * beyond)

    assert mended(0) == pytest.approx(5e-7)
    assert largest_excess(relation, 4 * epsilon, mended) <= delta


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("constants", [None, "book"])
def test_scale_is_near_the_range(relation, constants):
    """Row 7-9: within a factor 2**1.5 at most for the middle of a bin, and near with noise."""
    values = np.random.default_rng(3).normal(0, 1e5, 40_001)
    found = dpf.interquartile_scale(
        values, epsilon=2.0, delta=1e-6, neighbors=relation, constants=constants, random=SeededRandom(1)
    )
    exact = np.subtract(*np.quantile(values, [0.75, 0.25]))
    assert abs(math.log2(found.value / exact)) < (0.51 if constants is None else 60)
    assert found.epsilon == 2.0
    assert found.delta == 1e-6
    assert len(found.events) == (2 if constants is None else 4)


def test_noise_of_the_book_is_laplace_on_the_logarithm():
    """Row 7-9: s = IQR * 2**Z, Z of scale 1 / epsilon, a quarter of what is given."""
    values = np.arange(20_001.0)
    logs = [
        math.log2(
            dpf.interquartile_scale(values, epsilon=4.0, delta=1e-6, constants="book", random=SeededRandom(k)).value
        )
        - math.log2(10_000)
        for k in range(150)
    ]
    # Mean magnitude 1 with deviation 1 / sqrt(150); the seeds are fixed.
    assert abs(np.mean(np.abs(logs)) - 1.0) < 0.5
    assert abs(np.mean(logs)) < 0.5


def test_better_base():
    """Row 7-10: a base nearer to 1 gives a closer range, where rows suffice."""
    values = np.arange(1_000_001.0)
    found = dpf.interquartile_scale(values, epsilon=1.0, delta=1e-6, base=1 + 1 / math.log(1e6), random=SeededRandom(1))
    assert abs(found.value / 500_000 - 1) < 0.04


@pytest.mark.parametrize("relation", RELATIONS)
def test_edges(relation):
    """Rows 7-8 and 7-10: nothing, one row, equal rows, nulls, infinities, large numbers, tiny ones."""

    def of(values):
        return dpf.interquartile_scale(
            values, epsilon=1.0, delta=1e-6, neighbors=relation, random=SeededRandom(2)
        ).value

    assert of(np.empty(0)) is None
    assert of([5]) is None
    assert of(np.full(1000, 7)) == 0.0
    assert of(pl.Series([None] * 1000, dtype=pl.Float64)) == (0.0 if relation == "replace" else None)
    assert of(np.full(1000, np.nan)) == (0.0 if relation == "replace" else None)
    assert of(np.tile([-np.inf, np.inf], 1000)) > 2.0**1000
    assert of(np.tile([-1e308, 1e308], 1000)) == of(np.tile([-np.inf, np.inf], 1000))
    assert of(np.tile([0, 5e-324], 1000)) == 0.0
    assert of(np.tile(np.array([2**62, -(2**62)]), 1000)) in (2.0**63.5, 2.0**63)
    assert of(pl.Series([1, 1000, None] * 1000, dtype=pl.Int32)) is not None
    assert of(np.array([1, 3] * 1000, np.float32)) is not None


def test_ledger_is_charged_for_all_of_it_once():
    ledger = dpf.Ledger(epsilon=1.0, delta=1e-6)
    found = dpf.interquartile_scale([1, 2, 3], epsilon=1.0, delta=1e-6, ledger=ledger)
    assert found.entry == 1
    assert (ledger.spent.epsilon, ledger.spent.delta) == (1.0, 1e-6)
    with pytest.raises(dpf.errors.BudgetExceededError):
        dpf.interquartile_scale([1, 2, 3], epsilon=1.0, delta=1e-6, ledger=ledger)
    assert "neighbours add_remove" in found.explain()
