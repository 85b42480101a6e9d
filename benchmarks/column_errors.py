"""Errors of a count, a sum, a mean and a median of one column, beside other libraries at the same epsilon.

A figure is the root mean square of the errors of some releases, by what each library's documentation shows first. Rows
are added or removed; to diffprivlib their number is public, so that it draws no noise for it in a mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import polars as pl

import dpfast as dpf

from .cells import OURS, Cell, Errors
from .contestants import Statistics, diffprivlib, opendp, python_dp

__all__ = ["cells"]

_EPSILON = 1.0
_RUNS = 10
_SIZES = (1_000, 10_000, 100_000)
_STATISTICS: dict[str, Callable[[np.ndarray], float]] = {
    "count": lambda values: float(values.size),
    "sum": lambda values: float(values.sum()),
    "mean": lambda values: float(values.mean()),
    "median": lambda values: float(np.median(values)),
}
#: Values of every shape, and bounds that hold all of them.
_SHAPES: dict[str, tuple[Callable[[np.random.Generator, int], np.ndarray], tuple[float, float]]] = {
    "normal": (lambda draw, size: draw.normal(50.0, 10.0, size).clip(0.0, 100.0), (0.0, 100.0)),
    "lognormal": (lambda draw, size: draw.lognormal(3.0, 1.0, size).clip(0.0, 1000.0), (0.0, 1000.0)),
}
_PEERS = {"OpenDP": opendp, "diffprivlib": diffprivlib, "python-dp": python_dp}


def cells() -> Iterator[Cell]:
    """Yield a cell for every statistic, shape and number of values."""
    for shape in _SHAPES:
        for size in _SIZES:
            for statistic in _STATISTICS:
                told = f"{statistic.capitalize()} of {size:,} values, {shape}"
                yield Cell(told, "error", partial(_of, statistic, shape, size), (shape, size) == ("normal", 10_000))


def _of(statistic: str, shape: str, size: int, is_quick: bool) -> Errors:
    make, bounds = _SHAPES[shape]
    values = make(np.random.default_rng(size), size)
    exact = _STATISTICS[statistic](values)
    everyone = {OURS: _ours(values, bounds)}
    everyone |= {name: peer.statistics(values, bounds, _EPSILON) for name, peer in _PEERS.items()}
    return {name: partial(_error, some[statistic], exact) for name, some in everyone.items() if statistic in some}


def _error(release: Callable[[], float], exact: float) -> float:
    return float(np.sqrt(np.mean([(release() - exact) ** 2 for _ in range(_RUNS)])))


def _ours(values: np.ndarray, bounds: tuple[float, float]) -> Statistics:
    frame = pl.DataFrame({"x": values})

    def released(query: Any) -> float:
        ledger = dpf.Ledger(epsilon=_EPSILON)
        return float(dpf.release(frame, q=query, privacy_unit="row", epsilon=_EPSILON, ledger=ledger).frame["q"][0])

    return {
        "count": lambda: released(dpf.count()),
        "sum": lambda: released(dpf.sum("x", bounds=bounds)),
        "mean": lambda: released(dpf.mean("x", bounds=bounds)),
        "median": lambda: released(dpf.quantile("x", 0.5, bounds=bounds)),
    }
