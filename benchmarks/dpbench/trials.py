"""One combination of dataset, shape, scale, epsilon and workload: mechanisms run on samples of it, and their errors.

Every number that is drawn follows from the seed and from what it is drawn for alone: the same trial gives the same row
in any order, in any process, and whatever else is run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import count

import numpy as np
import polars as pl
from numpy.typing import NDArray

from .datasets import Dataset, digest, number_of
from .mechanisms import mechanisms_named
from .questions import scaled_errors, workload_named

__all__ = ["SCHEMA", "Combination", "in_turns", "measure", "shape_name"]

SCHEMA = pl.Schema(
    {
        "dataset": pl.String(),
        "kind": pl.String(),
        "axes": pl.Int64(),
        "shape": pl.String(),
        "scale": pl.Int64(),
        "epsilon": pl.Float64(),
        "workload": pl.String(),
        "mechanism": pl.String(),
        "trial": pl.Int64(),
        "l2": pl.Float64(),
        "l1": pl.Float64(),
        "seconds": pl.Float64(),
        "refused": pl.String(),
        "seed": pl.Int64(),
        "data": pl.String(),
        "code": pl.String(),
    }
)
"""A row for each trial of a mechanism. Where it refused, or failed, the errors are null, and ``refused`` says why."""


@dataclass(frozen=True)
class Combination:
    """What mechanisms are compared on."""

    dataset: Dataset
    shape: tuple[int, ...]
    scale: int
    epsilon: float
    workload: str

    @property
    def key(self) -> tuple[str, str, int, float, str]:
        """What tells it from others in a table."""
        return self.dataset.name, shape_name(self.shape), self.scale, self.epsilon, self.workload


def shape_name(shape: tuple[int, ...]) -> str:
    """Return how a shape is written."""
    return " x ".join(map(str, shape))


def _sample(combination: Combination, seed: int, trial: int) -> NDArray[np.int64]:
    """Return a histogram of ``scale`` records; the same one for all epsilons, workloads and mechanisms."""
    dataset, shape, scale = combination.dataset, combination.shape, combination.scale
    generator = np.random.default_rng(number_of(seed, dataset.name, shape, scale, trial))
    counts = generator.multinomial(scale, dataset.shares(shape).reshape(-1))
    return counts.astype(np.int64).reshape(shape)


def measure(
    combination: Combination, wanted: Iterable[tuple[str, int]], seed: int, code: str
) -> list[tuple[object, ...]]:
    """Run mechanisms, each on the trials that are wanted of it, and return a row of `SCHEMA` for each."""
    dataset, workload = combination.dataset, workload_named(combination.workload, combination.shape)
    data = digest(dataset.shares(combination.shape))
    by_trial: dict[int, list[str]] = {}
    for name, trial in wanted:
        by_trial.setdefault(trial, []).append(name)
    rows: list[tuple[object, ...]] = []
    for trial, names in sorted(by_trial.items()):
        counts = _sample(combination, seed, trial)
        for mechanism in mechanisms_named(names):
            l2, l1, refused = None, None, None
            started = time.perf_counter()
            try:
                own_seed = number_of(seed, *combination.key, mechanism.name, trial)
                estimate = np.asarray(mechanism.estimate(counts, workload, combination.epsilon, own_seed), np.float64)
                seconds = time.perf_counter() - started
                if estimate.shape != counts.shape or not np.isfinite(estimate).all():
                    raise ValueError(f"{estimate.shape} cells, or one that is not finite, for {counts.shape}")
                l2, l1 = scaled_errors(combination.workload, counts, estimate, combination.scale)
            except Exception as error:  # one mechanism that fails is a row of the table, not the end of the run
                seconds, refused = time.perf_counter() - started, f"{type(error).__name__}: {error}"
            about = (dataset.name, dataset.kind, dataset.axes, *combination.key[1:])
            rows.append((*about, mechanism.name, trial, l2, l1, seconds, refused, seed, data, code))
    return rows


def in_turns(
    combination: Combination, names: Iterable[str], seed: int = 2016, error: str = "l2"
) -> dict[str, Callable[[], float]]:
    """Return for each mechanism a function whose calls give the errors of trial after trial; NaN where it refused."""
    place = SCHEMA.names().index(error)

    def one(name: str, trials: Iterable[int]) -> float:
        found = measure(combination, [(name, next(iter(trials)))], seed, "")[0][place]
        return float("nan") if found is None else float(found)  # type: ignore[arg-type]

    return {name: partial(one, name, count()) for name in names}
