"""What is compared: every strategy and every algorithm, as functions of a histogram and epsilon."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

import dpfast as dpf
from dpfast.strategies import Strategy
from dpfast.strategies.choosing import choose
from dpfast.strategies.matrix_mechanism import matrix_mechanism
from dpfast.testing import SeededRandom
from dpfast.workloads import Workload

__all__ = ["CHOICE", "Algorithm", "algorithms"]

Algorithm = Callable[[NDArray[np.int64], float, SeededRandom], NDArray[np.float64]]

CHOICE = "adaptive hierarchy"
"""What `dpf.estimate_histogram` takes for prefixes and rectangles where records are few."""

_MWEM_CELLS = 2**12


def uniform(counts: NDArray[np.int64], epsilon: float, random: SeededRandom) -> NDArray[np.float64]:
    """The noisy number of records, spread evenly: the baseline."""
    total = dpf.laplace(int(counts.sum()), 1.0 / epsilon, random=random)
    return np.full(counts.shape, max(total, 0) / counts.size)


def _measured(workload: Workload, strategy: Strategy) -> Algorithm:
    def estimate(counts: NDArray[np.int64], epsilon: float, random: SeededRandom) -> NDArray[np.float64]:
        return matrix_mechanism(counts, workload, epsilon=epsilon, strategy=strategy, random=random).histogram

    return estimate


def _synthesized(function: Callable[..., object], workload: Workload, **keywords: object) -> Algorithm:
    def estimate(counts: NDArray[np.int64], epsilon: float, random: SeededRandom) -> NDArray[np.float64]:
        return function(counts, workload, epsilon=epsilon, random=random, **keywords).histogram

    return estimate


@cache
def _planned(workload: Workload, epsilon: float) -> Strategy:
    return choose(workload, epsilon=epsilon).strategy


def _lines(cells: int) -> Iterator[tuple[str, Strategy]]:
    for branching in (2, 4, 16):
        yield f"hierarchy {branching}", dpf.strategies.hierarchy(cells, branching)
    yield "wavelet", dpf.strategies.wavelet(cells)


def _planes(shape: tuple[int, ...]) -> Iterator[tuple[str, Strategy]]:
    for branching in (4, 16) if hasattr(dpf.strategies, "product") else ():
        sides = [dpf.strategies.hierarchy(side, branching, root=True) for side in shape]
        yield f"product of hierarchies {branching}", dpf.strategies.product(*sides)


def algorithms(workload: Workload, epsilon: float) -> dict[str, Algorithm]:
    """Return all that fit a workload, by name."""
    shape = workload.shape
    found: dict[str, Algorithm] = {"uniform": uniform}
    found["identity"] = _measured(workload, dpf.strategies.identity(shape))
    for name, strategy in _lines(shape[0]) if len(shape) == 1 else _planes(shape):
        found[name] = _measured(workload, strategy)
    found["best in closed form"] = _measured(workload, _planned(workload, epsilon))
    if len(shape) == 1:
        found["DAWA"] = _synthesized(dpf.dawa, workload)
    found["AHP"] = _synthesized(dpf.ahp, workload)
    if workload.cells <= _MWEM_CELLS and hasattr(dpf, "mwem"):
        found["MWEM"] = _synthesized(dpf.mwem, workload, rounds=10)
    found[CHOICE] = _synthesized(dpf.adaptive_hierarchy, workload)
    return found
