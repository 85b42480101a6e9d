"""Releases without their noise, so that what is exact in them can be compared."""

from __future__ import annotations

from importlib import import_module

import pytest

import dpfast as dpf
from dpfast.mechanisms.noise.integer_noise import IntegerNoise

DRAWING = import_module("dpfast.releases.drawing")


@pytest.fixture
def without_noise(monkeypatch):
    """Add no noise; show the keys that at least 100 units hold."""

    monkeypatch.setattr(IntegerNoise, "add", lambda self, values, random, threads=1: values.copy())
    monkeypatch.setattr(DRAWING, "select_keys", lambda units, table, source: units >= 100)


@pytest.fixture
def released():
    """Plan and run on a ledger with room for it."""

    def run(data, by=None, **arguments):
        selects = arguments.get("keys") is None and by not in (None, [], ())
        settled = {"key_selection": "optimal"} if selects else {}
        settled |= {"epsilon": 1.0, "delta": 1e-6 if selects else 0.0}
        return dpf.release(
            data, by, ledger=dpf.Ledger(epsilon=1e6, delta=0.9), **{"privacy_unit": "row", **settled, **arguments}
        )

    return run
