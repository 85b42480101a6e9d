"""After the charge no error depends on counts: every public function of synthesis (mistakes: tests/arguments)."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import dpfast as dpf
from dpfast.errors import ParameterError


def online(histogram, **given):
    made = dpf.PrivateMultiplicativeWeights(histogram, **{"updates": 3} | given)
    return made.answer_all(dpf.workloads.prefix(len(histogram)))["value"].to_numpy()


def answers(function, workload=dpf.workloads.prefix, **fixed):
    def run(histogram, **given):
        return function(histogram, workload(len(histogram)), **fixed | given).answers

    return run


def answers_of_table(workload, **fixed):
    """Run on a table of three axes that repeats the counts."""

    def run(histogram, **given):
        table = np.resize(histogram, (6, 5, 4))
        return dpf.estimate_histogram(table, workload, **fixed | given).answers

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
    "estimate of a table": answers_of_table(dpf.workloads.marginals((6, 5, 4), k=1)),
    "estimate of a table's cells": answers_of_table(dpf.workloads.identity((6, 5, 4))),
}
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
