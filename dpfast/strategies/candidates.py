"""The strategies that are considered for a workload."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal
from weakref import WeakKeyDictionary

import numpy as np

from dpfast.accounting.budget import Budget
from dpfast.errors import ParameterError, Words
from dpfast.showing import number_of
from dpfast.strategies.axes import axis_ranges, terms_of
from dpfast.strategies.axis_search import best_product, uniform_products
from dpfast.strategies.best_marginals import best_marginals
from dpfast.strategies.explicit import Explicit
from dpfast.strategies.hierarchy import hierarchies, weighted_hierarchy
from dpfast.strategies.identity import Identity
from dpfast.strategies.nested import details_of
from dpfast.strategies.noise import mechanisms_of
from dpfast.strategies.optimal import optimal, p_identity
from dpfast.strategies.square_root import LARGEST_SQUARE_ROOT, has_closed_form, square_root
from dpfast.strategies.strategy import Strategy
from dpfast.strategies.wavelet import wavelet
from dpfast.strategies.weighting import best_weights, ladder, largest_weight
from dpfast.workloads.shapes import LARGEST_ARRAY
from dpfast.workloads.workload import Workload

__all__ = ["candidates"]

_BRANCHINGS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32)

#: Up to so many cells a strategy is optimized for the workload, in about a tenth of a second.
_SMALL = 128

_MADE: WeakKeyDictionary[Workload, dict[int, Explicit]] = WeakKeyDictionary()

#: What was found for a workload, as long as that lives: at most one list for each kind of budget.
_FOUND: WeakKeyDictionary[Workload, dict[tuple[Literal[1, 2], ...], list[Strategy]]] = WeakKeyDictionary()


def candidates(workload: Workload, budget: Budget) -> list[Strategy]:
    """Return the strategies to consider: all with an error in closed form, and small ones made for the workload.

    They are made once for a workload: of the budget they depend on no more than the kinds of noise that it allows.
    """
    orders: list[Literal[1, 2]] = [1 if mechanism == "laplace" else 2 for mechanism in mechanisms_of(budget)]
    try:
        known = _FOUND.setdefault(workload, {})
    except TypeError:  # a class of one's own that cannot be a key
        return _all_for(workload, orders)
    if tuple(orders) not in known:
        known[tuple(orders)] = _all_for(workload, orders)
    return list(known[tuple(orders)])


def _all_for(workload: Workload, orders: list[Literal[1, 2]]) -> list[Strategy]:
    """Return all strategies to consider for kinds of noise."""
    if workload.cells > LARGEST_ARRAY:
        return _without_cells(workload, orders)
    found: list[Strategy] = [Identity(workload.shape)]
    if 1 < workload.cells <= _SMALL:
        found += [made for order in orders if (made := _made_for(workload, order)) is not None]
    if len(workload.shape) == 1:
        return found + list(_line(workload, orders))
    for order in orders:
        best = best_product(workload, order)
        found += [] if best is None else [best]
        found += best_marginals(workload, order)
    if terms_of(workload) or axis_ranges(workload):
        found += uniform_products(workload.shape)
    return found


def _without_cells(workload: Workload, orders: list[Literal[1, 2]]) -> list[Strategy]:
    """Return strategies for a workload over more cells than an array holds: of marginals alone."""
    found: list[Strategy] = [best for order in orders for best in best_marginals(workload, order)]
    if not found:
        allowed = f"over at most {LARGEST_ARRAY:,} cells, or of few marginals"
        mend = "give marginals and ranges to dpf.plan_marginals, or use coarser cells or fewer attributes"
        raise ParameterError("workload", Words(f"over {number_of(workload.cells, 'cell')}"), allowed, mend)
    return found


def _made_for(workload: Workload, order: Literal[1, 2]) -> Explicit | None:
    """Return the strategy that is optimized for a workload, once; None where no search for it comes to an end."""
    known = _MADE.setdefault(workload, {})
    if order not in known:
        try:
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                known[order] = p_identity(workload) if order == 1 else optimal(workload)
        except np.linalg.LinAlgError:  # queries that leave out a cell, or differ in signs, may make matrices singular
            return None
    return known[order]


def _line(workload: Workload, orders: list[Literal[1, 2]]) -> Iterator[Strategy]:
    cells = workload.cells
    yield from hierarchies(cells, _BRANCHINGS)
    if cells & (cells - 1) == 0:
        yield wavelet(cells)
    if 2 in orders and (has_closed_form(workload) or cells <= _SMALL) and cells <= LARGEST_SQUARE_ROOT:
        yield square_root(cells)
    seen = set()
    for branching in _BRANCHINGS:
        for order in orders if branching < cells else ():
            rungs = ladder(cells, branching)
            sizes, weights = best_weights(details_of(workload, rungs), rungs, order, largest_weight((cells,)))
            if (sizes, weights) not in seen and len(sizes) > 1:
                seen.add((sizes, weights))
                yield weighted_hierarchy(cells, sizes, weights)
