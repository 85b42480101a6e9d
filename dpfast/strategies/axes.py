"""Workloads over several attributes, taken apart into workloads over one attribute each."""

from __future__ import annotations

from itertools import product as combinations_of
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.workloads.cells import Identity, Total
from dpfast.workloads.kronecker import Kronecker
from dpfast.workloads.marginals import Marginals
from dpfast.workloads.ranges import Intervals, Ranges
from dpfast.workloads.rectangles import Rectangles
from dpfast.workloads.workload import Union, Workload

__all__ = ["Bounds", "Term", "axis_ranges", "bounds_of", "terms_of"]

#: A product of queries: a workload for each axis.
Term: TypeAlias = tuple[Workload, ...]

#: Lower and upper bounds of ranges, a query each.
Bounds: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]


def bounds_of(workload: Workload) -> Bounds | None:
    """Return the bounds of all queries of a workload over one attribute; None if it asks for others than ranges.

    Examples
    --------
    >>> import dpfast as dpf
    >>> bounds_of(dpf.workloads.identity(3) + dpf.workloads.total(3))
    (array([0, 1, 2, 0]), array([1, 2, 3, 3]))

    """
    if isinstance(workload, Intervals):
        return workload.bounds()
    if isinstance(workload, Identity) and len(workload.shape) == 1:
        cells = np.arange(workload.cells)
        return cells, cells + 1
    if isinstance(workload, Total) and len(workload.shape) == 1:
        return np.zeros(1, np.int64), np.array([workload.cells])
    if isinstance(workload, Rectangles) and len(workload.shape) == 1:
        return workload.lower[:, 0], workload.upper[:, 0]
    if isinstance(workload, Union):
        parts = [bounds_of(part) for part in workload.parts]
        known = [part for part in parts if part is not None]
        if len(known) == len(parts):
            lower, upper = (np.concatenate(bounds) for bounds in zip(*known, strict=True))
            return lower, upper
    if isinstance(workload, Marginals) and len(workload.shape) == 1:
        return bounds_of(Union(*(term[0] for term in _marginal_terms(workload))))
    return bounds_of(workload.factors[0]) if isinstance(workload, Kronecker) and len(workload.factors) == 1 else None


def _marginal_terms(workload: Marginals) -> list[Term]:
    return [
        tuple((Identity if axis in kept else Total)(size) for axis, size in enumerate(workload.shape))
        for kept in workload.attributes
    ]


def terms_of(workload: Workload) -> list[Term] | None:
    """Return products of workloads over one attribute whose queries, one after the other, are the workload's.

    The queries of a product are ordered by the first axis's, then by the second's, and so on. None where a workload is
    no union of products.

    Examples
    --------
    >>> import dpfast as dpf
    >>> [[type(axis).__name__ for axis in term] for term in terms_of(dpf.workloads.marginals((2, 3, 4), k=2)) or ()]
    [['Identity', 'Identity', 'Total'], ['Identity', 'Total', 'Identity'], ['Total', 'Identity', 'Identity']]

    """
    if len(workload.shape) == 1:
        return [(workload,)]
    if isinstance(workload, (Identity, Total)):
        return [tuple(type(workload)(size) for size in workload.shape)]
    if isinstance(workload, Marginals):
        return _marginal_terms(workload)
    if isinstance(workload, Kronecker):
        factors = [terms_of(factor) for factor in workload.factors]
        known = [terms for terms in factors if terms is not None]
        # Of a factor that is itself a union, the products would come in another order than the queries.
        if len(known) < len(factors) or any(len(terms) > 1 for terms in known[1:]):
            return None
        return [sum(parts, ()) for parts in combinations_of(*known)]
    if isinstance(workload, Union):
        parts = [terms_of(part) for part in workload.parts]
        return None if None in parts else [term for terms in parts for term in terms or ()]
    return None


def axis_ranges(workload: Workload) -> list[Ranges] | None:
    """Return the ranges of each axis, a query for each rectangle; None for a workload that is not of rectangles."""
    if not isinstance(workload, Rectangles):
        return None
    # An empty range along one axis makes a rectangle empty.
    sides = zip(workload.shape, workload.lower.T, workload.upper.T, strict=True)
    return [Ranges(size, lower, upper) for size, lower, upper in sides]
