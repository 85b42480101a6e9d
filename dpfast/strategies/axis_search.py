"""The best product of strategies for a workload over several attributes, found axis by axis.

The error of a product is a sum over the parts of a workload, rectangles or products of workloads, of the product of the
axes' errors, times the product of their norms. For one axis, with the others as they are, that is a weighted sum of the
parts' errors: the best of many strategies is known, and the best weights of a hierarchy's levels too. Taking the axes
in turns only lowers the error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpfast.strategies.axes import axis_ranges, terms_of
from dpfast.strategies.hierarchy import hierarchies, hierarchy, weighted_hierarchy
from dpfast.strategies.identity import Identity
from dpfast.strategies.nested import details_of, differences, squares_of_ranges
from dpfast.strategies.product import Product
from dpfast.strategies.strategy import LineStrategy
from dpfast.strategies.weighting import best_weights, ladder, largest_weight
from dpfast.workloads.ranges import Ranges
from dpfast.workloads.workload import Workload

__all__ = ["best_product", "uniform_products"]

_TURNS = 4
_BRANCHINGS = (2, 3, 4, 8, 16)


class _Axis:
    """The parts of a workload along one axis: a range for each rectangle, or a workload for each product."""

    def __init__(self, parts: Ranges | Sequence[Workload]) -> None:
        self._ranges = parts if isinstance(parts, Ranges) else None
        self._parts = [] if isinstance(parts, Ranges) else list(parts)
        # Marginals have the same two workloads along an axis again and again.
        self._different = list({id(part): part for part in self._parts}.values())
        self.cells = parts.cells if isinstance(parts, Ranges) else self._parts[0].cells

    def errors(self, strategy: LineStrategy) -> NDArray[np.float64]:
        """Return each part's error."""
        if self._ranges is not None:
            return strategy.variances(self._ranges)
        errors = {id(part): strategy.error(part) for part in self._different}
        return np.array([errors[id(part)] for part in self._parts])

    def details(self, sizes: tuple[int, ...], importance: NDArray[np.float64]) -> list[float]:
        """Return the parts' energy in the details of each level of blocks, each part times its importance."""
        if self._ranges is None:
            totals: dict[int, float] = {}
            for part, weight in zip(self._parts, importance, strict=True):
                totals[id(part)] = totals.get(id(part), 0.0) + weight
            rows = [np.multiply(details_of(part, sizes), totals[id(part)]) for part in self._different]
            return list(np.sum(rows, axis=0))
        bounds = self._ranges.bounds()
        return differences([float(importance @ squares_of_ranges(*bounds, size)) / size for size in sizes])


def _axes(workload: Workload) -> list[_Axis] | None:
    ranges = axis_ranges(workload)
    if ranges is not None:
        return [_Axis(parts) for parts in ranges]
    terms = terms_of(workload)
    return None if terms is None else [_Axis(parts) for parts in zip(*terms, strict=True)]


def _weighted(axis: _Axis, importance: NDArray[np.float64], order: Literal[1, 2], largest: int) -> list[LineStrategy]:
    """Return hierarchies with the best weights for an axis, the other axes being as they are."""
    found: list[LineStrategy] = []
    for branching in {*(b for b in _BRANCHINGS if b < axis.cells), axis.cells} - {1}:
        sizes = ladder(axis.cells, branching)
        best = best_weights(axis.details(sizes, importance), sizes, order, largest)
        found.append(weighted_hierarchy(axis.cells, *best))
    return found


def best_product(workload: Workload, order: Literal[1, 2]) -> Product | None:
    """Return the product of the least error among those tried, for Laplace (1) or Gaussian noise (2).

    None for a workload that is neither of rectangles nor a union of products, or where the identity is best.
    """
    axes = _axes(workload)
    if axes is None:
        return None
    largest = largest_weight(workload.shape)
    plain = []
    for axis in axes:
        strategies: list[LineStrategy] = [Identity((axis.cells,)), *hierarchies(axis.cells, _BRANCHINGS)]
        plain.append([(one, axis.errors(one)) for one in strategies])
    chosen = [tried[0] for tried in plain]
    for _ in range(_TURNS):
        for place, axis in enumerate(axes):
            others = [errors for other, (_, errors) in enumerate(chosen) if other != place]
            importance = np.prod(others, axis=0) if others else np.ones_like(chosen[place][1])
            weighted = [(one, axis.errors(one)) for one in _weighted(axis, importance, order, largest)]

            def cost(
                tried: tuple[LineStrategy, NDArray[np.float64]], importance: NDArray[np.float64] = importance
            ) -> float:
                one, errors = tried
                return float(one.l1**2 if order == 1 else one.l2_squared) * float(importance @ errors)

            chosen[place] = min([chosen[place], *plain[place], *weighted], key=cost)
    if all(isinstance(one, Identity) for one, _ in chosen):
        return None
    return Product(*(one for one, _ in chosen))


def uniform_products(shape: tuple[int, ...]) -> list[Product]:
    """Return products of one kind of hierarchy along all axes, to compare with."""
    return [
        Product(*(hierarchy(cells, branching, root=root) for cells in shape))
        for branching in (2, 4, 16)
        for root in (False, True)
        if branching < max(shape)
    ]
