"""Mistakes are found before the charge; after it no error depends on counts: every public function of synthesis."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import dpfast as dpf
from dpfast.errors import ParameterError

COUNTS = np.array([500, 20, 0, 0, 90, 40])


def online(histogram, **given):
    made = dpf.PrivateMultiplicativeWeights(histogram, **{"updates": 3} | given)
    return made.answer_all(dpf.workloads.prefix(len(histogram)))["value"].to_numpy()


def answers(function, workload=dpf.workloads.prefix, **fixed):
    def run(histogram, **given):
        cells = 1 if histogram is None else len(histogram)
        return function(histogram, workload(cells), **fixed | given).answers

    return run


FUNCTIONS = {
    "mwem": answers(dpf.mwem, rounds=2),
    "online": online,
    "projection": answers(dpf.projection_mechanism),
    "boosting": answers(dpf.boost_queries, rounds=2, samples=2),
    "dawa": answers(dpf.dawa),
    "ahp": answers(dpf.ahp),
    "adaptive hierarchy": answers(dpf.adaptive_hierarchy),
    "estimate": answers(dpf.estimate_histogram),
    "estimate of cells": answers(dpf.estimate_histogram, dpf.workloads.identity),
}
NAN = float("nan")
MISTAKES = {
    name: {"epsilon": [0, -1, "x", NAN], "rho": [1.0], "neighbors": ["near"], "threads": [0, 2.5, "all"]}
    for name in FUNCTIONS
}
MISTAKES["mwem"] |= {
    "rounds": [0, -1, 2.5, "x"],
    "selection": ["best"],
    "total": [-1, 2.5],
    "prior": [[1, 2], [0] * 6, "x", [NAN] * 6],
    "replays": [0],
    "selection_share": [0, 1],
    "total_share": [0, 1],
    "repeat": ["x"],
    "pay": ["later"],
    "progress": [3],
}
MISTAKES["online"] |= {
    "updates": [0, "x"],
    "threshold": [-1, NAN],
    "signed": ["x"],
    "total": [-1],
    "prior": [[1, 2], "x"],
    "test_share": [0, 1],
    "softness": [0],
    "replays": [0],
}
del MISTAKES["online"]["threads"]
MISTAKES["projection"] |= {
    "delta": [-1, 2],
    "mechanism": ["noise"],
    "calibration": ["loose"],
    "total": [0, 2.5],
    "body": ["cube"],
    "tolerance": [0, -1, NAN, "x"],
    "iterations": [0, 2.5],
}
MISTAKES["boosting"] |= {
    "rounds": [0, "x"],
    "samples": [0],
    "advantage": [0, 0.5],
    "accuracy": [-1],
    "generator": ["guess"],
    "mechanism": ["noise"],
    "calibration": ["loose"],
    "share": [0, 1],
    "remember": [3],
}


@pytest.mark.parametrize(
    ("name", "argument", "value"),
    [(name, argument, value) for name, some in MISTAKES.items() for argument, many in some.items() for value in many],
)
def test_a_mistake_costs_nothing(name, argument, value):
    ledger = dpf.Ledger(epsilon=10.0, delta=1e-3)
    with pytest.raises(ParameterError):
        FUNCTIONS[name](COUNTS, **{"epsilon": 1.0, argument: value}, ledger=ledger)
    assert ledger.history().height == 0


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("histogram", [[1.5] * 6, ["a"] * 6, [True] * 6, [[1, 2], [3]], None])
def test_a_histogram_of_another_type_costs_nothing(name, histogram):
    ledger = dpf.Ledger(epsilon=10.0)
    with pytest.raises(ParameterError):
        FUNCTIONS[name](histogram, epsilon=1.0, ledger=ledger)
    assert ledger.history().height == 0


ODD = [
    np.zeros(6, np.int64),
    np.full(6, -3),
    np.full(6, 2**62),
    np.full(6, 2**64 - 1, np.uint64),
    np.array([2**63 - 1, -(2**63), 0, 1, 2, 3]),
    np.array([100, 100, 100, -128, 0, 1], np.int8),
    np.array([7]),
]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize(("amount", "accountant"), [(1e-6, "basic"), (1e5, "basic"), (0.1, "zcdp"), (1e5, "zcdp")])
def test_with_a_ledger_no_counts_are_an_error(name, neighbors, amount, accountant):
    """From budgets at which noise drowns all, to those at which there is none: a result, without a warning."""
    for histogram in ODD:
        ledger = dpf.Ledger(epsilon=1e6, delta=0.0 if accountant == "basic" else 1e-6, accountant=accountant)
        budget = {"epsilon": amount} if accountant == "basic" else {"rho": amount}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                found = FUNCTIONS[name](histogram, **budget, neighbors=neighbors, ledger=ledger)
            except ParameterError:
                # Parameters alone were wrong, so all counts are refused, and nothing is charged.
                assert ledger.history().height == 0
                with pytest.raises(ParameterError):
                    FUNCTIONS[name](np.ones_like(histogram), **budget, neighbors=neighbors, ledger=ledger)
                continue
        assert np.isfinite(found).all()
        assert ledger.history().height > 0
