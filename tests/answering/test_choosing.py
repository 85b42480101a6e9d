"""dpf.answer on lists of scores: one selection a row, charged before any score is read."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import dpfast as dpf
from dpfast.accounting.events import ExponentialMechanism, PermuteAndFlip, Pure
from dpfast.answering import choosing
from dpfast.errors import BudgetExceededError, ColumnError, ParameterError
from dpfast.mechanisms.selection.ranking import rank_rows

SCORES = pl.DataFrame(
    {
        "ward": ["a", "b", "c"],
        "cases": [[900, 3], [1, 2, 800], [None, 700]],
        "illness": [["flu", "gout"], ["flu", "mumps", "rash"], ["flu", "gout"]],
        "epsilon": [0.5, 1.0, 0.25],
    }
)


def entries(ledger):
    return [entry.item for entry in ledger._store.entries()]


@pytest.mark.parametrize("mechanism", ["auto", "exponential", "permute_and_flip", "noisy_max"])
def test_winners_and_charges(mechanism):
    ledger = dpf.Ledger(1.75)
    answered = dpf.answer(SCORES, value="cases", epsilon="epsilon", mechanism=mechanism, ledger=ledger)
    assert answered.columns == ["ward", "illness", "epsilon", "answer"]
    assert answered["answer"].to_list() == [0, 2, 1]  # gaps of 600 and more: other winners have less than e**-75
    assert ledger.remaining.epsilon == 0
    kinds = {"exponential": ExponentialMechanism, "noisy_max": Pure}
    assert [item.kind for item in entries(ledger)] == [kinds.get(mechanism, PermuteAndFlip)]
    with pytest.raises(BudgetExceededError):
        dpf.answer(SCORES, value="cases", epsilon="epsilon", mechanism=mechanism, ledger=ledger)


def test_values_of_candidates():
    ledger = dpf.Ledger(10)
    answered = dpf.answer(SCORES, value="cases", candidates="illness", epsilon=1, name="worst", ledger=ledger)
    assert answered.rows() == [("a", 0.5, "flu"), ("b", 1.0, "rash"), ("c", 0.25, "gout")]
    assert answered.columns == ["ward", "epsilon", "worst"]
    table = dpf.answer(SCORES.to_arrow(), value="cases", candidates="illness", epsilon=1, ledger=ledger)
    assert isinstance(table, pa.Table)
    assert table["answer"].to_pylist() == ["flu", "rash", "gout"]


def test_several_winners():
    """k winners in order; what is charged for them is the whole, in k parts that a ledger in rho discounts."""
    ledger = dpf.Ledger(1)
    answered = dpf.answer(SCORES[:2], value="cases", candidates="illness", epsilon=0.5, k=2, ledger=ledger)
    assert answered["answer"][0].to_list() == ["flu", "gout"]
    assert answered["answer"][1].to_list()[0] == "rash"
    assert 0.999 < ledger.spent.epsilon <= 1
    assert {type(item.event) for item in entries(ledger)} == {ExponentialMechanism}
    by_rho = dpf.Ledger(3, 1e-6, accountant="zcdp")
    dpf.answer(SCORES, value="cases", rho=0.01, k=2, ledger=by_rho)
    assert 0.0299 < by_rho.spent.rho <= 0.03


def test_more_winners_than_candidates(monkeypatch):
    """All are charged, but no memory is taken for those that no row can have."""
    wanted = []

    def recorded(candidates, slope, kind, count, *others):
        wanted.append(count)
        return rank_rows(candidates, slope, kind, count, *others)

    monkeypatch.setattr(choosing, "rank_rows", recorded)
    for rows, longest in (([[1, 2], [3], None], 2), ([[], None], 1)):
        table = pl.DataFrame({"s": rows}, schema={"s": pl.List(pl.Int64)})
        ledger = dpf.Ledger(3)
        answered = dpf.answer(table, value="s", epsilon=1, k=100, ledger=ledger)
        assert answered["answer"].list.len().to_list() == [len(row or []) for row in rows]
        assert wanted.pop() == longest
        assert 0.99 * len(rows) < ledger.spent.epsilon <= len(rows)


@pytest.mark.parametrize("mechanism", ["auto", "exponential", "permute_and_flip", "noisy_max"])
def test_by_rho(mechanism):
    """Soundness rule 22: a rho buys more of the exponential mechanism, whose index alone is released."""
    ledger = dpf.Ledger(3, 1e-6, accountant="zcdp")
    dpf.answer(SCORES, value="cases", rho=0.01, mechanism=mechanism, ledger=ledger)
    assert 0.0299 < ledger.spent.rho <= 0.03
    epsilon = entries(ledger)[0].event.epsilon
    assert epsilon == pytest.approx(math.sqrt(0.08 if mechanism in ("auto", "exponential") else 0.02), rel=0.01)


def test_weights_share_the_total():
    ledger = dpf.Ledger(1)
    dpf.answer(SCORES, value="cases", epsilon=1, weight="epsilon", ledger=ledger)
    assert 0.9999 < ledger.spent.epsilon <= 1


@pytest.mark.statistical
def test_probabilities():
    """Every row is an exponential mechanism of its own epsilon; false failures below 1e-9 (binomial, 6.2 sigma)."""
    rows = 40_000
    table = pl.DataFrame({"s": [[0, 1]] * rows, "e": np.tile([1.0, 4.0], rows // 2)})
    chosen = dpf.answer(table, value="s", epsilon="e", mechanism="exponential", ledger=dpf.Ledger(1e6))["answer"]
    for first, epsilon in ((0, 1.0), (1, 4.0)):
        p = 1 / (1 + math.exp(-epsilon / 2))
        n = rows // 2
        assert abs(chosen[first::2].sum() - n * p) < 6.2 * math.sqrt(n * p * (1 - p))
    monotonic = dpf.answer(
        table, value="s", epsilon="e", mechanism="exponential", monotonic=True, ledger=dpf.Ledger(1e6)
    )
    p = 1 / (1 + math.exp(-1.0))
    assert abs(monotonic["answer"][::2].sum() - rows / 2 * p) < 6.2 * math.sqrt(rows / 2 * p * (1 - p))


@pytest.mark.parametrize("dtype", [pl.Int8, pl.Int64, pl.UInt32, pl.UInt64, pl.Boolean, pl.Float32, pl.Float64])
def test_types(dtype):
    table = pl.DataFrame({"s": [[0, 1], [1, 0]]}, schema={"s": pl.List(pl.Int64)}).cast({"s": pl.List(dtype)})
    for scores in (table, table.with_columns(pl.col("s").list.to_array(2))):
        answered = dpf.answer(scores, value="s", epsilon=1e5, ledger=dpf.Ledger(1e6))
        assert answered["answer"].to_list() == [1, 0]


def test_no_error_depends_on_scores():
    """Soundness rule 12: NaN and infinities are mapped by the declared rule, after the charge."""
    table = pl.DataFrame({"s": [[math.nan, 1.0], [math.inf, 1.0], [-math.inf, 1.0], [None, -5.0], [2**63 * 1.0, 0.0]]})
    answered = dpf.answer(table, value="s", epsilon=100, ledger=dpf.Ledger(1000))
    assert answered["answer"].to_list() == [1, 0, 1, 1, 0]
    for missing in (9, 10**308):
        answered = dpf.answer(table, value="s", epsilon=100, missing=missing, ledger=dpf.Ledger(1000))
        assert answered["answer"].to_list() == [0, 0, 1, 1, 0]


def test_rows_without_candidates():
    """Lengths and nulls are public: such rows are charged like any other, and have no winner."""
    table = pl.DataFrame({"s": [[], None, [None], [3.0]], "c": [[], [], ["x"], ["y"]]})
    ledger = dpf.Ledger(4)
    assert dpf.answer(table, value="s", candidates="c", epsilon=1, ledger=ledger)["answer"].to_list() == [None] * 3 + [
        "y"
    ]
    assert ledger.remaining.epsilon == 0


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"epsilon": None}, "epsilon"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": 1e7}, "epsilon"),
        ({"epsilon": "cases"}, "epsilon"),
        ({"epsilon": "nowhere"}, "epsilon"),
        ({"rho": 0.1}, "epsilon"),
        ({"epsilon": None, "rho": 0.1}, "rho"),
        ({"delta": 1e-6}, "delta"),
        ({"sensitivity": 1e-300}, "sensitivity"),
        ({"mechanism": "laplace"}, "mechanism"),
        ({"mechanism": "permute_and_flip", "k": 2}, "mechanism"),
        ({"candidates": "ward"}, "candidates"),
        ({"candidates": "cases"}, "candidates"),
        ({"candidates": "short"}, "candidates"),
        ({"name": "ward"}, "name"),
    ],
)
def test_bad_input(change, named):
    """A one-line error that names the argument; nothing is charged."""
    ledger = dpf.Ledger(10)
    table = SCORES.with_columns(short=pl.Series([["a"]] * 3))
    with pytest.raises((ParameterError, ColumnError), match=named) as error:
        dpf.answer(table, **({"value": "cases", "epsilon": 1, "ledger": ledger} | change))
    assert "\n" not in str(error.value)
    assert ledger.spent.epsilon == 0


@pytest.mark.parametrize("argument", ["monotonic", "candidates", "k"])
def test_numbers_take_no_arguments_of_selections(argument):
    ledger = dpf.Ledger(10)
    given = {"monotonic": True, "candidates": "ward", "k": 1}[argument]
    with pytest.raises(ParameterError, match=argument):
        dpf.answer(SCORES, value="epsilon", epsilon=1, ledger=ledger, **{argument: given})
    with pytest.raises(ColumnError, match="value"):
        dpf.answer(SCORES, value="illness", epsilon=1, ledger=ledger)
    assert ledger.spent.epsilon == 0
