"""Domains that are proposed by a private look: what they cost, and what they are made of."""

from __future__ import annotations

import datetime

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.errors import BudgetExceededError, ColumnError, LedgerError, ParameterError
from dpfast.releases import domain_proposal


def some_table(rows=4_000):
    generator = np.random.default_rng(16)
    return pl.DataFrame(
        {
            "age": generator.integers(0, 90, rows),
            "gain": np.where(generator.random(rows) < 0.9, 0, 5_000),
            "city": generator.choice(["Rome", "Oslo"], rows),
            "name": [f"person {row}" for row in range(rows)],
            "day": [datetime.date(2024, 1, 1) + datetime.timedelta(days=row % 500) for row in range(rows)],
            "yes": generator.random(rows) < 0.5,
            "code": generator.integers(0, 3, rows),
        }
    )


def test_bins_and_categories_of_a_table():
    """The noise of epsilon 100 moves a quantile by more than 1 in 100 of the rows, or hides one of the cities, which
    2,000 rows have, with probability below e**-100; no value of a single row passes with more than delta, 1e-9."""
    ledger = dpf.Ledger(epsilon=600.0, delta=1e-3)
    table = some_table()
    found = dpf.propose_domain(table, ledger=ledger, epsilon=600.0, delta=1e-9, bins=4, listed=["code"])
    assert set(found.attributes) == set(table.columns)
    assert sorted(found.attributes["city"]) == ["Oslo", "Rome"]
    assert sorted(found.attributes["code"]) == [0, 1, 2]
    assert found.attributes["yes"] == [False, True]
    assert list(found.attributes["name"]) == [""]
    # Nine in ten are 0, which has a bin of its own.
    assert {0, 1} <= set(found.attributes["gain"].edges)
    ages = found.domain.open(table).count_marginals([(0,)])[0]
    assert 700 < ages.max() < 1_300
    assert found.attributes["day"].edges[0] <= datetime.date(2024, 1, 6)
    assert found.spent.epsilon == ledger.spent.epsilon == 600.0
    # Rows that fit nowhere have a cell.
    assert found.domain.outside == "null"
    assert found.domain.open(table).count_marginals([(3,)])[0].tolist() == [0, 4_000]


@pytest.mark.parametrize("rows", [0, 1])
def test_an_empty_table_costs_the_same_and_has_a_domain(rows):
    ledger = dpf.Ledger(epsilon=1.0, delta=1e-6)
    found = dpf.propose_domain(some_table().head(rows), ledger=ledger, epsilon=1.0, delta=1e-6)
    assert ledger.spent.epsilon == 1.0
    counts = found.domain.open(some_table(50)).count_marginals([(place,) for place in range(7)])
    assert all(int(table.sum()) == 50 for table in counts)


def test_all_null_columns():
    table = some_table(500).select(pl.lit(None).cast(dtype).alias(name) for name, dtype in some_table(1).schema.items())
    ledger = dpf.Ledger(epsilon=1.0, delta=1e-6)
    found = dpf.propose_domain(table, ledger=ledger, epsilon=1.0, delta=1e-6)
    assert all(
        counts[-1] == table.height or name == "yes"
        for name, counts in zip(
            table.columns, found.domain.open(table).count_marginals([(place,) for place in range(7)]), strict=True
        )
    )


def test_what_is_declared_costs_nothing():
    ledger = dpf.Ledger(epsilon=1.0)
    table = some_table(10)
    declared = {"age": dpf.bins("age", [0, 50, 100]), "city": ["Rome"]}
    found = dpf.propose_domain(table, declared, columns=["age", "city", "yes"], ledger=ledger, epsilon=1.0)
    assert found.spent is found.entry is None
    assert ledger.spent.epsilon == 0.0
    assert found.domain.shape == (3, 2, 3)


def test_declared_bounds_hold():
    ledger = dpf.Ledger(epsilon=50.0)
    table = some_table()
    found = dpf.propose_domain(table, ledger=ledger, columns=["age"], epsilon=50.0, bins=2, bounds={"age": (10, 60)})
    edges = found.attributes["age"].edges
    assert (edges[0], edges[-1]) == (10, 61)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"epsilon": 1.5}, BudgetExceededError),
        ({"delta": 0.0}, ParameterError),
        ({"columns": ["none such"]}, ColumnError),
        ({"columns": ["at"]}, ColumnError),
        ({"bins": 0}, ParameterError),
        ({"categories": 0}, ParameterError),
        ({"bounds": {"city": (0, 1)}}, ParameterError),
        ({"bounds": {"none such": (0, 1)}}, ParameterError),
        ({"bounds": {"age": (1, 0)}}, ParameterError),
        ({"attributes": {"city": [1.5]}}, ParameterError),
        ({"listed": ["none such"]}, ColumnError),
        ({"columns": ["share"], "listed": ["share"]}, ParameterError),
        ({"outside": "other"}, ParameterError),
        ({"dataset": "another"}, LedgerError),
    ],
)
def test_nothing_is_charged_for_what_cannot_be(changes, error):
    ledger = dpf.Ledger(epsilon=1.0, delta=1e-6, dataset="people")
    table = some_table(100).with_columns(pl.lit(1).cast(pl.Decimal(10, 2)).alias("at"), share=pl.lit(0.5))
    given = {"columns": ["age", "city"], "epsilon": 1.0, "delta": 1e-6, "dataset": "people"}
    with pytest.raises(error):
        dpf.propose_domain(table, ledger=ledger, **{**given, **changes})
    assert ledger.spent.epsilon == 0.0


def test_no_row_is_read_before_the_charge():
    read = []
    lazy = pl.LazyFrame({"age": [1, 2]}).select(
        pl.col("age").map_batches(lambda column: read.append(ledger.spent.epsilon) or column, return_dtype=pl.Int64)
    )
    ledger = dpf.Ledger(epsilon=1.0)
    dpf.propose_domain(lazy, ledger=ledger, epsilon=1.0)
    assert read
    assert set(read) == {1.0}


MOST_DATE, MOST_TIME = datetime.date.max, datetime.datetime.max


@pytest.mark.parametrize(
    ("values", "whole"),
    [
        ([2**60, 2**60 + 5, 2**62], True),
        ([-(2**62), 0, 2**63], True),
        ([float(2**53), float(2**53) + 2], True),
        ([datetime.date(2000, 1, 1), MOST_DATE, MOST_DATE], False),
        ([MOST_DATE, MOST_DATE], False),
        ([MOST_TIME, MOST_TIME], False),
        ([datetime.time.max, datetime.time.max], False),
        ([datetime.timedelta(microseconds=2**63 - 1)] * 2, False),
        ([1e308, 1.7976931348623157e308], False),
    ],
)
def test_edges_at_the_end_of_all_values_are_bins(values, whole):
    """Whether there is an error may not depend on what was released: it was paid for."""
    edges = domain_proposal._edges(values, whole=whole)
    assert len(edges) >= 2
    assert edges == sorted(set(edges))
    dpf.bins("x", edges)
