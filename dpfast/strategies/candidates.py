"""The strategies that are considered for a workload."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from dpfast.strategies.hierarchy import Hierarchy, hierarchy
from dpfast.strategies.identity import Identity
from dpfast.strategies.nested import Energies
from dpfast.strategies.noise import Budget
from dpfast.strategies.square_root import LARGEST_SQUARE_ROOT, has_closed_form, square_root
from dpfast.strategies.strategy import Strategy
from dpfast.strategies.wavelet import wavelet
from dpfast.strategies.weighting import best_weights
from dpfast.workloads.workload import Workload

__all__ = ["candidates"]

_BRANCHINGS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32)

#: Up to so many cells matrices of cells by cells take no time.
_SMALL = 512


def candidates(workload: Workload, budget: Budget) -> list[Strategy]:
    """Return the strategies to consider: all with an error in closed form, and small ones made for the workload."""
    found: list[Strategy] = [Identity(workload.shape)]
    if len(workload.shape) == 1:
        found += _line(workload, budget)
    return found


def _line(workload: Workload, budget: Budget) -> Iterator[Strategy]:
    cells = workload.cells
    for branching in _BRANCHINGS:
        if branching < cells:
            for root in (False, True):
                yield hierarchy(cells, branching, root=root)
    if cells & (cells - 1) == 0:
        yield wavelet(cells)
    orders: list[Literal[1, 2]] = [1 if mechanism == "laplace" else 2 for mechanism in budget.mechanisms]
    if 2 in orders and (has_closed_form(workload) or cells <= _SMALL) and cells <= LARGEST_SQUARE_ROOT:
        yield square_root(cells)
    seen = set()
    for branching in _BRANCHINGS:
        for order in orders if branching < cells else ():
            rungs = _ladder(cells, branching)
            sizes, weights = best_weights(Energies.of(workload).details(rungs), rungs, order)
            if (sizes, weights) not in seen and len(sizes) > 1:
                seen.add((sizes, weights))
                blocks = "weighted blocks of " + ", ".join(map(str, sizes))
                yield Hierarchy(cells, sizes, weights, f"weighted H{branching}" if sizes == rungs else blocks)


def _ladder(cells: int, branching: int) -> tuple[int, ...]:
    """Return 1, b, b**2 and so on, up to the first that holds all cells."""
    sizes = [1]
    while sizes[-1] < cells:
        sizes.append(sizes[-1] * branching)
    return tuple(sizes)
