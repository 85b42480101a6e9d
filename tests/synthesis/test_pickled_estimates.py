"""What is pickled with an estimate: nothing that was in the process's memory before.

Memory that NumPy gives without setting it may hold private counts that were freed.
"""

from __future__ import annotations

import pickle

import numpy as np
import polars as pl
import pytest

import dpfast as dpf

#: What memory holds here before it is set.
_LEFT = 1234567.890625


def some_rows():
    generator = np.random.default_rng(1)
    return pl.DataFrame({f"a{place}": generator.integers(0, 4, 900) for place in range(5)})


ROWS, DOMAIN = some_rows(), dpf.Domain({f"a{place}": 4 for place in range(5)})
CELLS = dpf.Domain({"a0": 4, "a1": 4})
PAIRS = [("a0", "a1"), ("a1", "a2"), ("a3", "a4")]
MADE = {
    "rounds of a model": lambda ledger: dpf.synthesize(ROWS, DOMAIN, epsilon=0.05, delta=1e-9, ledger=ledger),
    "a model at once": lambda ledger: dpf.synthesize(ROWS, DOMAIN, PAIRS, epsilon=2.0, delta=1e-9, ledger=ledger),
    "a model of little room": lambda ledger: dpf.synthesize(
        ROWS, DOMAIN, epsilon=9.0, delta=1e-9, max_megabytes=0.01, ledger=ledger
    ),
    "a model of impossible cells": lambda ledger: dpf.synthesize(
        ROWS, DOMAIN, epsilon=2.0, delta=1e-9, impossible=dpf.column("a0") == 3, ledger=ledger
    ),
    "a histogram": lambda ledger: dpf.synthesize(ROWS, CELLS, epsilon=1.0, ledger=ledger),
    "marginals": lambda ledger: dpf.release_marginals(ROWS, DOMAIN, epsilon=1.0, delta=1e-9, ledger=ledger),
    "multiplicative weights": lambda ledger: dpf.mwem(
        CELLS.open(ROWS).count, dpf.workloads.marginals((4, 4), 1), epsilon=1.0, ledger=ledger
    ),
}


@pytest.mark.parametrize("name", MADE)
def test_an_estimate_holds_nothing_that_was_in_memory_before(name, monkeypatch):
    empty = np.empty

    def left(shape, dtype=float, **given):
        made = empty(shape, dtype, **given)
        if made.dtype == np.float64:
            made[...] = _LEFT
        return made

    monkeypatch.setattr(np, "empty", left)
    made = MADE[name](dpf.Ledger(epsilon=100, delta=1e-3))
    held = pickle.dumps(getattr(made, "estimate", made))
    assert np.float64(_LEFT).tobytes() not in held
