"""What other libraries' ways to divide a budget make of the flights: `python -m benchmarks.flight_errors` shows them.

Neither runs beside today's Polars, so that their formulas are evaluated on rows that are bounded here, with noise of
NumPy: 10 groups of 20 rows for each aircraft, its flights counted, and its delays averaged around the middle of bounds.

- Tumult Analytics: each query has a half of the budget, a mean halves it again between its sum and its own count.
- PipelineDP: one count serves both, so that it and the sum have a half each; Laplace or Gaussian noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

import dpfast as dpf
from dpfast.mechanisms.noise.calibration import analytic_gaussian_scale

__all__ = ["PEERS", "Figures", "Peer", "bounded_figures"]

_GROUPS, _ROWS = 10, 20
_Noise = Callable[[float, float], NDArray[np.float64]]
#: Counts and means.
Found: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64]]


class Figures:
    """Exact figures of rows that are bounded: how many there are, how many have a value, their sum from the middle."""

    def __init__(
        self, rows: NDArray[Any], values: NDArray[Any], sums: NDArray[Any], bounds: tuple[float, float]
    ) -> None:
        self.bounds, self.middle, self.reach = bounds, (bounds[0] + bounds[1]) / 2, (bounds[1] - bounds[0]) / 2
        self.rows, self.values, self.sums = rows, values, sums - self.middle * values

    def mean(self, sums: NDArray[np.float64], counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return means by noisy sums and counts, within the bounds."""
        return np.clip(self.middle + sums / np.maximum(counts, 1.0), *self.bounds)


def bounded_figures(flights: pl.DataFrame, keys: pl.DataFrame, bounds: tuple[float, float]) -> Figures:
    """Return the figures of one draw of the rows that count, by a release with next to no noise."""
    asked: dict[str, Any] = {
        "n": dpf.count(),
        "v": dpf.count("dep_delay"),
        "s": dpf.sum("dep_delay", bounds=bounds),
    }
    found = dpf.release(
        flights, keys.columns, keys=keys, epsilon=1e6, ledger=dpf.Ledger(epsilon=1e6), privacy_unit="tailnum",
        max_groups=_GROUPS, max_rows_per_group=_ROWS, **asked,
    ).frame  # fmt: skip
    return Figures(found["n"].to_numpy(), found["v"].to_numpy(), found["s"].to_numpy(), bounds)


def _laplace(size: int) -> _Noise:
    """Return a function from a sensitivity for one row, and an epsilon, to noise."""
    generator = np.random.default_rng()
    return lambda each, epsilon: generator.laplace(0, each * _GROUPS * _ROWS / epsilon, size)


def _gaussian(size: int, delta: float) -> _Noise:
    """Return the same of Gaussian noise."""
    generator = np.random.default_rng()
    reach = math.sqrt(_GROUPS) * _ROWS
    return lambda each, epsilon: generator.normal(0, analytic_gaussian_scale(each * reach, epsilon, delta), size)


def tumult(bounded: Figures, epsilon: float, delta: float) -> Found:
    """Return counts and means: Laplace noise, a half of the budget for each, a quarter for each part of the mean."""
    noise = _laplace(bounded.rows.size)
    means = bounded.mean(bounded.sums + noise(bounded.reach, epsilon / 4), bounded.values + noise(1.0, epsilon / 4))
    return bounded.rows + noise(1.0, epsilon / 2), means


def pipeline(bounded: Figures, epsilon: float, delta: float) -> Found:
    """Return counts and means that share a count: Laplace noise, a half of the budget for it and for the sum."""
    noise = _laplace(bounded.rows.size)
    counts = bounded.rows + noise(1.0, epsilon / 2)
    return counts, bounded.mean(bounded.sums + noise(bounded.reach, epsilon / 2), counts)


def pipeline_gaussian(
    bounded: Figures, epsilon: float, delta: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the same with Gaussian noise, a half of delta each."""
    noise = _gaussian(bounded.rows.size, delta / 2)
    counts = bounded.rows + noise(1.0, epsilon / 2)
    return counts, bounded.mean(bounded.sums + noise(bounded.reach, epsilon / 2), counts)


#: From exact figures, epsilon and delta to counts and means.
Peer: TypeAlias = Callable[[Figures, float, float], Found]
PEERS: dict[str, Peer] = {
    "by Tumult's formula": tumult,
    "by PipelineDP's, Laplace": pipeline,
    "by PipelineDP's, Gaussian": pipeline_gaussian,
}
