"""A table of queries in one call: what is charged, what noise is drawn, what is refused."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpfast as dpf
from dpfast.accounting.accountants import basic, zcdp
from dpfast.accounting.events import DiscreteLaplace, Gaussian, Laplace
from dpfast.errors import BudgetExceededError, ColumnError, LedgerError, ParameterError
from dpfast.mechanisms.noise.calibration import analytic_gaussian_scale

ROWS = 2_000


@pytest.fixture
def queries():
    generator = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "count": generator.integers(0, 10_000, ROWS),
            "mean": generator.normal(0, 100, ROWS),
            "epsilon": generator.uniform(1e-3, 1e-1, ROWS),
            "sensitivity": generator.integers(1, 5, ROWS),
            "half": generator.uniform(0.1, 2, ROWS),
            "weight": generator.uniform(1, 3, ROWS),
            "mechanism": ["laplace", "gaussian"] * (ROWS // 2),
        }
    )


def exact_charge(epsilon):
    """The decimal that a float denotes, rounded up to units."""
    return math.ceil(Fraction(repr(float(epsilon))) * 10**18)


def test_ten_tenths():
    """Soundness rule 10: ten rows of 0.1 fit into 1 exactly."""
    ledger = dpf.Ledger(1.0)
    table = pl.DataFrame({"x": range(10), "e": [0.1] * 10})
    dpf.answer(table, value="x", epsilon="e", ledger=ledger)
    assert ledger.remaining.epsilon == 0.0
    with pytest.raises(BudgetExceededError):
        dpf.answer(table[:1], value="x", epsilon=1e-18, ledger=ledger)


def test_charge_is_enough(queries):
    """Soundness rule 10, in rationals: scale * charge >= sensitivity in every row, and the ledger has every charge."""
    ledger = dpf.Ledger(1e6)
    answered = dpf.answer(queries, value="count", epsilon="epsilon", sensitivity="sensitivity", ledger=ledger)
    charged = [exact_charge(epsilon) for epsilon in queries["epsilon"]]
    rows = zip(answered["answer_scale"], charged, queries["sensitivity"], strict=True)
    for scale, units, sensitivity in rows:
        assert Fraction(scale) * units >= sensitivity * 10**18
        assert Fraction(scale) * units <= sensitivity * 10**18 * (1 + Fraction(1, 2**40))
    spent = ledger._store.account("").spent[0]
    assert sum(charged) <= spent <= sum(charged) * (1 + Fraction(1, 2**49)) + ROWS


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(1e-18, 1e6), min_size=1, max_size=20))
def test_amounts_as_written(amounts):
    """No charge is below the decimal; decimals of up to 15 digits are charged exactly."""
    from dpfast.kernels.amounts.calibrating import LIMB_BITS, sum_amounts

    for given_amounts in (amounts, [round(x, 9) + 1e-9 for x in amounts]):
        good, wholes, highs, lows = sum_amounts(np.array(given_amounts))
        units = wholes * 10**18 + (highs << LIMB_BITS) + lows
        exact = sum(map(exact_charge, given_amounts))
        assert good or max(given_amounts) > 1e6
        assert exact <= units <= exact * (1 + Fraction(1, 2**49)) + len(given_amounts)
    short = [round(x, 6) for x in amounts if 1e-6 <= x < 900]
    if short:
        _, wholes, highs, lows = sum_amounts(np.array(short))
        assert wholes * 10**18 + (highs << LIMB_BITS) + lows == sum(map(exact_charge, short))


def test_events_in_the_ledger(queries):
    """What the ledger notes is what was drawn: kinds, scales, sensitivities, and their epsilon fits the charge."""
    ledger = dpf.Ledger(1e6)
    whole = dpf.answer(queries, value="count", epsilon="epsilon", sensitivity="sensitivity", ledger=ledger)
    real = dpf.answer(queries, value="mean", epsilon="epsilon", ledger=ledger)
    first, second = ledger._store.entries()
    assert (first.item.kind, second.item.kind) == (DiscreteLaplace, Laplace)
    assert first.item.parameters["scale"].tolist() == whole["answer_scale"].to_list()
    assert first.item.parameters["sensitivity"].tolist() == queries["sensitivity"].to_list()
    assert second.item.parameters["scale"].tolist() == real["answer_scale"].to_list()
    for item in (first.item, second.item):
        for row in range(0, ROWS, 97):
            event = item.kind(item.parameters["scale"][row], int(item.parameters["sensitivity"][row]))
            assert basic.cost(event)[0] <= exact_charge(queries["epsilon"][row])


def test_weights_share_a_total(queries):
    """Shares are in proportion, never more than the total, and less by a part in 10**12 at most."""
    ledger = dpf.Ledger(1.0)
    answered = dpf.answer(queries, value="count", epsilon=1.0, weight="weight", ledger=ledger)
    assert 0 <= ledger.remaining.epsilon < 1e-11
    ratio = answered["answer_scale"] * queries["weight"]
    assert ratio.max() / ratio.min() < 1 + 1e-12


@pytest.mark.parametrize("accountant", ["zcdp", "rdp"])
def test_rho(queries, accountant):
    """By rho, noise is Gaussian, and the ledger is charged no more than was asked."""
    ledger = dpf.Ledger(1e4, 1e-6, accountant=accountant)
    answered = dpf.answer(queries, value="count", rho="epsilon", sensitivity="half", ledger=ledger)
    scale = queries["half"] / (2 * queries["epsilon"]).sqrt()
    assert ((answered["answer_scale"] / scale - 1).abs() < 2**-35).all()
    if accountant == "zcdp":
        asked = math.fsum(queries["epsilon"])
        assert asked * (1 - 1e-9) < ledger.spent.rho <= asked


@pytest.mark.parametrize(("column", "limit"), [("count", 3.67), ("mean", 1.634)])
def test_least_variance_by_rho(queries, column, limit):
    """Beyond the limit Laplace noise has the smaller variance at the same rho; below it Gaussian noise has."""
    rho = np.linspace(limit / 2, limit * 2, ROWS)
    ledger = dpf.Ledger(1e5, 1e-6, accountant="zcdp")
    scales = {}
    for mechanism in ("laplace", "gaussian", "auto"):
        table = queries.with_columns(rho=rho)
        before = ledger.spent.rho
        answered = dpf.answer(table, value=column, rho="rho", mechanism=mechanism, ledger=ledger)
        scales[mechanism] = answered["answer_scale"].to_numpy()
        assert ledger.spent.rho - before <= rho.sum() * (1 + 1e-9)
    event = DiscreteLaplace if column == "count" else Laplace
    for row in range(0, ROWS, 53):
        assert zcdp.cost(event(scales["laplace"][row]))[0] <= math.ceil(rho[row] * 1e18)
        assert zcdp.cost(Gaussian(scales["gaussian"][row]))[0] <= math.ceil(rho[row] * 1e18)
    variances = {"laplace": 2 * scales["laplace"] ** 2, "gaussian": scales["gaussian"] ** 2}
    away = abs(rho / limit - 1) > 0.02
    laplace_wins = variances["laplace"] < variances["gaussian"]
    assert (laplace_wins == (rho > limit))[away].all()
    assert (scales["auto"] == np.where(rho > limit, scales["laplace"], scales["gaussian"])).all()


def test_gaussian_by_epsilon_and_delta(queries):
    """Analytic calibration of every row by itself, of few pairs and of many."""
    ledger = dpf.Ledger(1e6, 0.5)
    few = queries.with_columns(pl.col("epsilon").round(2) + 0.01)
    for table in (few, queries):
        answered = dpf.answer(table, value="count", epsilon="epsilon", delta=1e-6, mechanism="gaussian", ledger=ledger)
        for row in range(0, ROWS, 191):
            assert answered["answer_scale"][row] >= analytic_gaussian_scale(1.0, table["epsilon"][row], 1e-6)
    assert ledger.spent.delta == pytest.approx(2 * ROWS * 1e-6)


def test_mixed_mechanisms(queries):
    """A column of mechanisms: each row has its own noise, in its place."""
    ledger = dpf.Ledger(1e6, 0.5)
    answered = dpf.answer(queries, value="mean", epsilon="epsilon", delta=1e-7, mechanism="mechanism", ledger=ledger)
    alike = pl.col("mechanism") == "laplace"
    scale = answered.filter(alike)["answer_scale"] * answered.filter(alike)["epsilon"]
    assert ((scale - 1).abs() < 1e-12).all()
    assert (answered.filter(~alike)["answer_scale"] * answered.filter(~alike)["epsilon"] > 2).all()
    off = (answered["answer"] - queries["mean"]).abs() / answered["answer_scale"]
    # P(an error above 40 scales) is below 2000 * e**-40 for either mechanism.
    assert off.max() < 40
    assert {entry.item.kind for entry in ledger._store.entries()} == {Laplace, Gaussian}


@pytest.mark.statistical
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("dtype", [pl.Int64, pl.Int32, pl.UInt32, pl.Float64, pl.Float32])
def test_intervals_hold_the_truth(mechanism, dtype):
    """At least 95% of 20,000 intervals hold the true value; false failures below 1e-9 (binomial, 6.2 sigma)."""
    size = 20_000
    table = pl.DataFrame({"x": pl.Series([1000] * size, dtype=dtype), "e": np.geomspace(0.01, 5, size)})
    ledger = dpf.Ledger(1e6, 0.9)
    answered = dpf.answer(table, value="x", epsilon="e", delta=1e-5, mechanism=mechanism, ledger=ledger)
    inside = ((answered["answer_lower"] <= 1000) & (answered["answer_upper"] >= 1000)).sum()
    assert inside >= 0.95 * size - 6.2 * math.sqrt(size * 0.05 * 0.95)
    assert answered["answer_lower"].dtype == (pl.Float64 if dtype.is_float() else pl.Int64)


def test_saturates():
    """Answers and bounds stay within their type at its ends."""
    table = pl.DataFrame({"x": [2**63 - 1, -(2**63), 0], "e": [1e-9] * 3})
    answered = dpf.answer(table, value="x", epsilon="e", ledger=dpf.Ledger(1))
    assert (answered["answer_lower"] <= answered["answer"]).all()
    assert (answered["answer_upper"] >= answered["answer"]).all()


def test_missing_values_are_never_seen():
    """Soundness rule 12: after the charge no value is an error, and answers are never null."""
    ledger = dpf.Ledger(100)
    for values in ([1, None, 3], [True, None, False], [1.0, None, math.nan], [math.inf, -math.inf, 1.0]):
        answered = dpf.answer(pl.DataFrame({"x": values}), value="x", epsilon=1.0, ledger=ledger)
        assert answered["answer"].null_count() == 0
        assert answered["answer"].is_finite().all()
    small = pl.DataFrame({"x": pl.Series([1, None, 200], dtype=pl.UInt8)})
    assert dpf.answer(small, value="x", epsilon=1.0, ledger=ledger, missing=7)["answer"].dtype == pl.Int64
    huge = pl.DataFrame({"x": pl.Series([2**64 - 1], dtype=pl.UInt64)})
    assert dpf.answer(huge, value="x", epsilon=1.0, ledger=ledger)["answer"][0] > 2**62


@pytest.mark.parametrize(
    ("dtype", "fits", "beyond"),
    [
        (pl.Int8, 2**63 - 1, 2**63),
        (pl.Int32, 2**31 - 1, 2**31),
        (pl.UInt32, 0, -1),
        (pl.UInt64, -(2**63), -(2**63) - 1),
        (pl.Boolean, -5.5, 1e19),
    ],
)
def test_missing_fits_the_answers(dtype, fits, beyond):
    """Soundness rule 12: neither an error nor the answers' type tells whether a value was missing."""
    types = set()
    for values in ([1, 0], [1, None]):
        table = pl.DataFrame({"x": pl.Series(values).cast(dtype)})
        ledger = dpf.Ledger(10)
        with pytest.raises(ParameterError, match="missing"):
            dpf.answer(table, value="x", epsilon=1, missing=beyond, ledger=ledger)
        assert ledger.spent.epsilon == 0
        types.add(dpf.answer(table, value="x", epsilon=1, missing=fits, ledger=ledger).schema["answer"])
    assert len(types) == 1


@pytest.mark.parametrize("dtype", [pl.Float32, pl.Float64])
def test_missing_of_hundreds_of_digits(dtype):
    """Soundness rule 12: likewise for floats, which any finite number fits."""
    for values in ([1.0, 2.0], [1.0, None], [math.nan, 2.0]):
        table = pl.DataFrame({"x": pl.Series(values, dtype=dtype)})
        answered = dpf.answer(table, value="x", epsilon=1, missing=10**308, ledger=dpf.Ledger(2))
        assert answered.schema["answer"] == dtype


def test_largest_epsilon():
    """10**6, the largest epsilon there is, is charged as written."""
    ledger = dpf.Ledger(1e6)
    dpf.answer(pl.DataFrame({"x": [1]}), value="x", epsilon=1e6, ledger=ledger)
    assert ledger.remaining.epsilon == 0


def test_true_values_do_not_leave(queries):
    """The column of true values is not in the result, under any name or in any buffer that it borrows."""
    answered = dpf.answer(queries.select("count", "epsilon"), value="count", epsilon="epsilon", ledger=dpf.Ledger(1e6))
    assert answered.columns == ["epsilon", "answer", "answer_scale", "answer_lower", "answer_upper"]
    same_name = dpf.answer(
        queries.select("count", "epsilon"), value="count", name="count", epsilon="epsilon", ledger=dpf.Ledger(1e6)
    )
    assert (same_name["count"] != queries["count"]).mean() > 0.5


def test_kinds():
    """An Arrow table gives an Arrow table; chunks do not matter."""
    chunked = pa.table({"x": pa.chunked_array([[1, 2], [3]]), "e": pa.chunked_array([[0.1], [0.2, 0.3]])})
    answered = dpf.answer(chunked, value="x", epsilon="e", ledger=dpf.Ledger(1))
    assert isinstance(answered, pa.Table)
    assert answered.num_rows == 3


def test_charged_before_values_are_read(queries, monkeypatch):
    """Nothing is drawn where the charge does not fit, and a charge stays where drawing fails."""
    from dpfast.answering import table as module

    ledger = dpf.Ledger(1.0)
    monkeypatch.setattr(module, "cleaned", lambda *_: pytest.fail("read before the charge"))
    with pytest.raises(BudgetExceededError):
        dpf.answer(queries, value="count", epsilon="epsilon", ledger=ledger)
    assert ledger.spent.epsilon == 0.0

    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "cleaned", fail)
    with pytest.raises(KeyboardInterrupt):
        dpf.answer(queries[:10], value="count", epsilon=0.01, ledger=ledger)
    assert ledger.spent.epsilon == 0.1


def test_a_million_queries_are_one_entry(tmp_path):
    """Run-length encoding: a million equal queries are one row; the durable ledger is read and verified again."""
    table = pl.DataFrame({"x": np.zeros(10**6, np.int64)})
    with dpf.Ledger.open(tmp_path / "ledger.db", 1.0) as ledger:
        dpf.answer(table, value="x", epsilon=1e-6, ledger=ledger)
    again = dpf.Ledger.open(tmp_path / "ledger.db")
    assert again.remaining.epsilon == 0.0
    assert again.history().select("entry", "count").rows() == [(1, 10**6)]
    assert (tmp_path / "ledger.db").stat().st_size < 50_000


def test_durable_columns(queries, tmp_path):
    """Columns of charges come back from the file as they were, sums and all."""
    with dpf.Ledger.open(tmp_path / "ledger.db", 1e6, 0.5) as ledger:
        dpf.answer(queries, value="count", epsilon="epsilon", sensitivity="sensitivity", ledger=ledger)
        dpf.answer(queries, value="count", epsilon="epsilon", delta=1e-8, mechanism="mechanism", ledger=ledger)
        spent, entries = ledger.spent, ledger._store.entries()
    again = dpf.Ledger.open(tmp_path / "ledger.db")
    assert again.spent == spent
    for before, after in zip(entries, again._store.entries(), strict=True):
        assert before.cost == after.cost
        for name, column in before.item.columns.items():
            assert (after.item.columns[name] == column).all()


#: Beside what tests/arguments makes of declarations.
BAD = {
    "no epsilon": ({}, "epsilon"),
    "both": ({"epsilon": 1, "rho": 1}, "epsilon"),
    "rho with basic": ({"rho": 0.1}, "rho"),
    "text": ({"epsilon": "text"}, "epsilon"),
    "nan in a column": ({"epsilon": "nan"}, "epsilon"),
    "null in a column": ({"epsilon": "null"}, "epsilon"),
    "zero in a column": ({"epsilon": "zero"}, "epsilon"),
    "too much noise": ({"epsilon": 1e-18, "sensitivity": 1e6}, "epsilon"),
    "sensitivity nan in a column": ({"epsilon": 1, "sensitivity": "nan"}, "sensitivity"),
    "mechanism column": ({"epsilon": 1, "mechanism": "text"}, "mechanism"),
    "gaussian without delta": ({"epsilon": 1, "mechanism": "gaussian"}, "delta"),
    "weight zero": ({"epsilon": 1, "weight": "zero"}, "weight"),
    "total too small": ({"epsilon": 1e-18, "weight": "ones"}, "epsilon"),
    "epsilon is private": ({"epsilon": "x"}, "epsilon"),
    "sensitivity is private": ({"epsilon": 1, "sensitivity": "x"}, "sensitivity"),
    "weight is private": ({"epsilon": 1, "weight": "x"}, "weight"),
    "mechanism is private": ({"epsilon": 1, "value": "text", "mechanism": "text"}, "value"),
    "missing beyond int64": ({"epsilon": 1, "missing": 1e300}, "missing"),
    "floats of 16 bits": ({"epsilon": 1, "table": pa.table({"x": np.ones(2, np.float16)})}, "value"),
    "name taken": ({"epsilon": 1, "name": "text"}, "name"),
    "value of text": ({"epsilon": 1, "value": "text"}, "value"),
    "value of dates": ({"epsilon": 1, "value": "date"}, "value"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case):
    """A clear, one-line error that names the argument; nothing is charged."""
    arguments, named = BAD[case]
    table = pl.DataFrame(
        {
            "x": [1, 2],
            "text": ["a", "b"],
            "date": [None, None],
            "nan": [1.0, math.nan],
            "null": [1.0, None],
            "zero": [1.0, 0.0],
            "ones": [1.0, 1.0],
        },
        schema_overrides={"date": pl.Date},
    )
    ledger = dpf.Ledger(100, 0.5)
    with pytest.raises((ParameterError, ColumnError)) as caught:
        dpf.answer(**{"table": table, "value": "x", "ledger": ledger, **arguments})
    message = str(caught.value)
    assert named in message
    assert "\n" not in message
    assert ledger.spent == type(ledger.spent)(0.0, 0.0)


def test_other_identity():
    """A ledger about something else refuses."""
    ledger = dpf.Ledger(1, privacy_unit="column:user")
    with pytest.raises(LedgerError, match="privacy unit"):
        dpf.answer(pl.DataFrame({"x": [1]}), value="x", epsilon=1, ledger=ledger, privacy_unit="row")
