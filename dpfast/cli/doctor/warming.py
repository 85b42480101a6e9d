"""Calls that compile what dpfast is mostly used for, beside those of checks.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import polars as pl

import dpfast as dpf

__all__ = ["CALLS", "calls"]

_ROWS = 4096


def _values() -> np.ndarray[Any, Any]:
    return np.arange(_ROWS) * 7919 % 1009


def _frame() -> pl.DataFrame:
    values = pl.Series(_values())
    return pl.DataFrame(
        {"group": values % 10, "shop": (values % 3).cast(pl.String), "x": values, "y": values / 8, "unit": values}
    )


def _releases() -> Iterator[tuple[str, Callable[[], object]]]:
    queries: dict[str, Any] = {
        "counts, sums and means": {
            "n": dpf.count(),
            "x": dpf.sum("x", bounds=(0, 9)),
            "y": dpf.mean("y", bounds=(0, 9)),
        },
        "variances": {"y": dpf.variance("y", bounds=(0, 100))},
        "quantiles": {"y": dpf.quantile("y", 0.5, bounds=(0, 100))},
        "histograms": {"y": dpf.histogram("y", [0, 50, 100])},
        "modes": {"s": dpf.mode("shop", candidates=["0", "1", "2"])},
    }
    units = {
        "a row": {"privacy_unit": "row"},
        "units": {"privacy_unit": "unit", "max_groups": 2, "max_rows_per_group": 2},
    }
    for name, asked in queries.items():
        for by in ("group", "shop"):
            for whose, unit in units.items():

                def run(asked: Any = asked, by: str = by, unit: Any = unit) -> object:
                    ledger = dpf.Ledger(epsilon=1.0, delta=1e-6)
                    return dpf.release(_frame(), by, **asked, **unit, epsilon=1.0, delta=1e-6, ledger=ledger)

                yield f"{name} by {by}, {whose}", run


def _histograms() -> Iterator[tuple[str, Callable[[], object]]]:
    counts, prefix = np.bincount(_values(), minlength=1024), dpf.workloads.prefix(1024)
    plane, pairs = counts.reshape(32, 32), dpf.workloads.marginals((32, 32), k=1)
    yield "adaptive_hierarchy", lambda: dpf.adaptive_hierarchy(counts, prefix, epsilon=1.0)
    yield "ahp", lambda: dpf.ahp(counts, prefix, epsilon=1.0)
    yield "dawa", lambda: dpf.dawa(counts, prefix, epsilon=1.0)
    yield "adaptive_hierarchy in the plane", lambda: dpf.adaptive_hierarchy(plane, epsilon=1.0)
    yield "mwem, ranges", lambda: dpf.mwem(counts, prefix, epsilon=1.0, rounds=3)
    yield "mwem, marginals", lambda: dpf.mwem(plane, pairs, epsilon=1.0, rounds=2)
    yield "matrix_mechanism", lambda: dpf.matrix_mechanism(counts, prefix, epsilon=1.0)
    yield "projection_mechanism", lambda: dpf.projection_mechanism(counts, prefix, epsilon=1.0)


def _noise() -> Iterator[tuple[str, Callable[[], object]]]:
    integers, floats = _values().astype(np.int32), _values().astype(np.float32)
    yield "laplace, int32", lambda: dpf.laplace(integers, 10.0)
    yield "laplace, float32", lambda: dpf.laplace(floats, 10.0)
    yield "gaussian, int32", lambda: dpf.gaussian(integers, 10.0)
    yield "gaussian, float32", lambda: dpf.gaussian(floats, 10.0)
    table = pl.DataFrame({"count": _values(), "epsilon": np.full(_ROWS, 1e-4)})
    yield "answer", lambda: dpf.answer(table, value="count", epsilon="epsilon", ledger=dpf.Ledger(epsilon=1.0))


CALLS: dict[str, Callable[[], object]] = {**dict(_noise()), **dict(_releases()), **dict(_histograms())}


def calls() -> dict[str, Callable[[], None]]:
    """Return all calls by name, also those of checks.py. They return None, as results need not be JSON."""
    from dpfast.cli.doctor.checks import CHECKS
    from dpfast.testing import SeededRandom

    def silent(call: Callable[[], object]) -> Callable[[], None]:
        def made() -> None:
            call()

        return made

    checks: dict[str, Callable[[], object]] = {check.name: partial(check.draw, SeededRandom(1)) for check in CHECKS}
    return {name: silent(call) for name, call in {**checks, **CALLS}.items()}
