"""Charges of a table that follow from errors: intervals are no wider, charges are the least, nothing else is asked."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.errors import ParameterError

RNG = np.random.default_rng(14)
ROWS = 500
ERRORS = np.exp(RNG.uniform(np.log(1.0), np.log(1e6), ROWS))
WIDTHS = np.exp(RNG.uniform(np.log(1e-2), np.log(1e2), ROWS))
VALUES = {"int64": pl.Int64, "int32": pl.Int32, "bool": pl.Boolean, "float64": pl.Float64, "float32": pl.Float32}


def table(dtype=pl.Float64):
    values = pl.Series([i % 2 for i in range(ROWS)]).cast(dtype)
    return pl.DataFrame({"value": values, "error": ERRORS, "width": WIDTHS})


def a_ledger(accountant="basic"):
    return dpf.Ledger(epsilon=10**6, delta=0.0 if accountant == "basic" else 1e-6, accountant=accountant)


def half_widths(answers):
    return ((answers["answer_upper"] - answers["answer_lower"]) / 2).to_numpy()


@pytest.mark.parametrize("dtype", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("accountant", ["basic", "zcdp", "rdp"])
@pytest.mark.parametrize("sensitivity", [1.0, "width"])
def test_no_interval_is_wider_than_was_wished_and_hardly_one_is_narrower(dtype, accountant, sensitivity):
    given = {"value": "value", "error": "error", "sensitivity": sensitivity}
    answered = dpf.answer(table(dtype), **given, ledger=a_ledger(accountant))
    # Of integers h = floor(reach * scale + 1), of which the scale is the largest.
    wished = np.floor(ERRORS) if dtype not in (pl.Float64, pl.Float32) else ERRORS
    # Floats may be rounded when half of the difference of two large ones is worked out here.
    slack = 1e-9 * (1 + ERRORS)
    assert (half_widths(answered) <= wished + slack).all()
    assert (
        half_widths(answered)
        >= (wished - 1 if dtype not in (pl.Float64, pl.Float32) else wished) - slack - 1e-7 * ERRORS
    ).all()


@pytest.mark.parametrize("dtype", [pl.Int64, pl.Float64])
@pytest.mark.parametrize("accountant", ["basic", "zcdp"])
def test_what_is_charged_is_the_least(dtype, accountant):
    """By epsilon the scale reaches the error, and the charge is what it costs; by rho no other noise is less."""
    wished = a_ledger(accountant)
    scales = dpf.answer(table(dtype), value="value", error="error", ledger=wished)["answer_scale"]
    if accountant == "basic":
        assert wished.spent.epsilon == pytest.approx((1 / scales).sum(), rel=1e-9)
        limit = np.floor(ERRORS) if dtype == pl.Int64 else ERRORS
        np.testing.assert_allclose(scales.to_numpy() * np.log(20), limit, rtol=1e-5)
    for mechanism in ("gaussian", "laplace") if accountant == "zcdp" else ():
        alone = a_ledger(accountant)
        dpf.answer(table(dtype), value="value", error="error", mechanism=mechanism, ledger=alone)
        assert wished.spent.rho <= alone.spent.rho


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"error": 30, "epsilon": 1}, "epsilon must be left out where error is given"),
        ({"error": 30, "rho": 1}, "rho must be left out where error is given"),
        ({"error": 30, "delta": 1e-6}, "delta must be left out where error is given"),
        ({"error": 30, "weight": "width"}, "weight must be left out where error is given"),
        ({"error": 30, "mechanism": "gaussian"}, "mechanism must be"),
        ({"error": 0}, "error must be"),
        ({"error": "none such"}, "error must be"),
        ({"error": "value"}, "error must be a public column"),
        ({"error": 1e-9}, "epsilon"),
    ],
)
def test_what_makes_no_sense_beside_errors_is_refused_and_nothing_charged(given, said):
    ledger = a_ledger()
    with pytest.raises(ParameterError, match="^" + said):
        dpf.answer(table(), value="value", ledger=ledger, **given)
    assert ledger.spent.epsilon == 0


def test_an_integer_is_not_wished_within_less_than_one():
    with pytest.raises(ParameterError, match=r"^error\[0\] must be at least 1"):
        dpf.answer(table(pl.Int64), value="value", error=0.5, ledger=a_ledger())


def test_selections_have_no_error_beforehand():
    lists = pl.DataFrame({"value": [[1, 2], [3, 4]]})
    with pytest.raises(ParameterError, match=r"^error must be left out for selections"):
        dpf.answer(lists, value="value", error=3, ledger=a_ledger())


def test_intervals_hold_the_truth():
    """20,000 rows, each missed with probability 0.05 at most: more than 1,250 misses have probability 2.3e-15.

    The figure is the binomial tail P(X > 1250), X of 20,000 trials at 0.05.
    """
    rows = pl.DataFrame({"value": np.arange(20_000)})
    answered = dpf.answer(rows, value="value", error=25, ledger=a_ledger())
    truth = rows["value"]
    missed = ((answered["answer_lower"] > truth) | (answered["answer_upper"] < truth)).sum()
    assert missed <= 1250
