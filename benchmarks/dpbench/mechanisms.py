"""What is compared, by name: a small adapter each, from exact counts and epsilon to an estimate of every cell.

A mechanism of your own is a function ``estimate(counts, workload, epsilon, generator)``. It gets a histogram (int64),
the queries (`dpfast.workloads`), the whole budget and a `numpy.random.Generator`, and returns a number for each cell.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

import dpfast as dpf
from dpfast.errors import ParameterError
from dpfast.strategies import Strategy
from dpfast.strategies.choosing import choose
from dpfast.synthesis.estimate import Estimate as HistogramEstimate
from dpfast.testing import SeededRandom
from dpfast.workloads import Workload

__all__ = ["BASELINE", "CHOICE", "OURS", "Mechanism", "imported", "mechanisms_named"]

Estimate = Callable[[NDArray[np.int64], Workload, float, int], ArrayLike]
"""From counts, queries, epsilon and a seed to cells."""

CHOICE, BASELINE = "estimate_histogram", "uniform"
#: Products of queries and cells beyond which a mechanism that walks over all cells for each query takes too long.
_MOST_OF_MWEM, _MOST_OF_PROJECTION = 2**25, 2**19


@dataclass(frozen=True)
class Mechanism:
    """A mechanism by name, and which queries it is for."""

    name: str
    estimate: Estimate
    fits: Callable[[Workload], bool] = lambda workload: True


def uniform(counts: NDArray[np.int64], workload: Workload, epsilon: float, seed: int) -> NDArray[np.float64]:
    """The noisy number of records, spread evenly: the baseline, which is no contestant."""
    total = dpf.laplace(int(counts.sum()), 1.0 / epsilon, random=SeededRandom(seed))
    return np.full(counts.shape, max(float(total), 0.0) / counts.size)


def _measured(strategy: Callable[[Workload, float], Strategy]) -> Estimate:
    def estimate(counts: NDArray[np.int64], workload: Workload, epsilon: float, seed: int) -> NDArray[np.float64]:
        chosen = strategy(workload, epsilon)
        return dpf.matrix_mechanism(
            counts, workload, epsilon=epsilon, strategy=chosen, random=SeededRandom(seed), threads=1
        ).histogram

    return estimate


@lru_cache(64)
def _identity(workload: Workload, epsilon: float) -> Strategy:
    return dpf.strategies.identity(workload.shape)


@lru_cache(64)
def _hierarchy(workload: Workload, epsilon: float) -> Strategy:
    if len(workload.shape) == 1:
        return dpf.strategies.hierarchy(workload.cells, 16)
    return dpf.strategies.product(*(dpf.strategies.hierarchy(side, 16, root=True) for side in workload.shape))


@lru_cache(64)
def _wavelet(workload: Workload, epsilon: float) -> Strategy:
    return dpf.strategies.wavelet(workload.cells)


@lru_cache(64)
def _best(workload: Workload, epsilon: float) -> Strategy:
    return choose(workload, epsilon=epsilon).strategy


def _fitted(function: Callable[..., HistogramEstimate], **keywords: object) -> Estimate:
    def estimate(counts: NDArray[np.int64], workload: Workload, epsilon: float, seed: int) -> NDArray[np.float64]:
        given = {"epsilon": epsilon, "random": SeededRandom(seed), "threads": 1, **keywords}
        return function(counts, workload, **given).histogram

    return estimate


def _line(workload: Workload) -> bool:
    return len(workload.shape) == 1


def _few(most: int) -> Callable[[Workload], bool]:
    return lambda workload: len(workload) * workload.cells <= most


OURS = {
    mechanism.name: mechanism
    for mechanism in (
        Mechanism(BASELINE, uniform),
        Mechanism("identity", _measured(_identity)),
        Mechanism("hierarchy", _measured(_hierarchy)),
        Mechanism("wavelet", _measured(_wavelet), _line),
        Mechanism("matrix_mechanism", _measured(_best)),
        Mechanism("adaptive_hierarchy", _fitted(dpf.adaptive_hierarchy)),
        Mechanism("dawa", _fitted(dpf.dawa), _line),
        Mechanism("ahp", _fitted(dpf.ahp)),
        Mechanism("mwem", _fitted(dpf.mwem, rounds=10), _few(_MOST_OF_MWEM)),
        Mechanism("projection_mechanism", _fitted(dpf.projection_mechanism), _few(_MOST_OF_PROJECTION)),
        Mechanism(CHOICE, _fitted(dpf.estimate_histogram)),
    )
}
"""All that dpfast has for histograms."""


def imported(text: str) -> Mechanism:
    """Return a user's mechanism, written as ``module:function``."""
    module, _, name = text.partition(":")
    try:
        function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        allowed = "one of " + ", ".join(OURS) + ", or module:function that can be imported"
        raise ParameterError("mechanisms", text, f"{allowed} ({error})") from None
    return Mechanism(text, _own(function))


def _own(function: Callable[[NDArray[np.int64], Workload, float, np.random.Generator], ArrayLike]) -> Estimate:
    def estimate(counts: NDArray[np.int64], workload: Workload, epsilon: float, seed: int) -> ArrayLike:
        return function(counts.copy(), workload, epsilon, np.random.default_rng(seed))

    return estimate


@lru_cache(64)
def _mechanism(name: str) -> Mechanism:
    return OURS[name] if name in OURS else imported(name)


def mechanisms_named(names: Iterable[str]) -> list[Mechanism]:
    """Return mechanisms by name, a user's by ``module:function``."""
    return [_mechanism(name) for name in names]
