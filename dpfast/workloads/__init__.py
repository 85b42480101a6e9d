"""Workloads: linear queries over a histogram, answered without materialising their matrix.

>>> import dpfast as dpf
>>> dpf.workloads.prefix(4).answer([3, 1, 4, 1])
array([3, 4, 8, 9])
"""

from __future__ import annotations

from typing import Any

from dpfast.workloads.bounds import draw_bounds
from dpfast.workloads.cells import Identity, Total
from dpfast.workloads.domain import Domain, histogram
from dpfast.workloads.kronecker import Kronecker
from dpfast.workloads.marginals import Marginals
from dpfast.workloads.matrix import Matrix, SparseMatrix
from dpfast.workloads.ranges import AllRanges, Prefixes, Ranges
from dpfast.workloads.rectangles import Rectangles
from dpfast.workloads.shapes import check_size, checked_integer, checked_shape
from dpfast.workloads.union import Union
from dpfast.workloads.workload import Workload

__all__ = [
    "Domain",
    "Workload",
    "all_range",
    "histogram",
    "identity",
    "kronecker",
    "marginals",
    "matrix",
    "prefix",
    "random_ranges",
    "random_rectangles",
    "ranges",
    "rectangles",
    "stack",
    "total",
]


def identity(shape: Any) -> Identity:
    """Ask for every cell's own count."""
    return Identity(shape)


def total(shape: Any) -> Total:
    """Ask for the sum of all cells."""
    return Total(shape)


def prefix(n: int) -> Prefixes:
    """Ask for the sums of the first 1, 2, ..., n cells."""
    return Prefixes(n)


def all_range(n: int) -> AllRanges:
    """Ask for the sums over all n(n+1)/2 ranges, by their lower bound, then by their upper bound."""
    return AllRanges(n)


def ranges(n: int, lower: Any, upper: Any) -> Ranges:
    """Ask for the sums over the cells lower[i] to upper[i] - 1."""
    return Ranges(n, lower, upper)


def random_ranges(n: int, count: int, seed: int) -> Ranges:
    """Ask for the sums over so many ranges, any of the n(n+1)/2 being as likely; the seed is public."""
    drawn = random_rectangles(checked_integer(n, "n", 1), count, seed)
    return Ranges(n, drawn.lower[:, 0], drawn.upper[:, 0])


def rectangles(shape: Any, lower: Any, upper: Any) -> Rectangles:
    """Ask for the sums over the cells lower[i] to upper[i] - 1 along every axis: bounds of queries by axes."""
    return Rectangles(shape, lower, upper)


def random_rectangles(shape: Any, count: int, seed: int) -> Rectangles:
    """Ask for the sums over so many rectangles, any of the n(n+1)/2 ranges along each axis being as likely."""
    sizes = checked_shape(shape)
    check_size(checked_integer(count, "count", 1) * len(sizes), "count", "bounds")
    return Rectangles(sizes, *draw_bounds(sizes, count, checked_integer(seed, "seed")))


def marginals(shape: Any, k: int | None = None, attributes: Any = None) -> Marginals:
    """Ask for all marginals of k attributes, or for those of ``attributes``: [(0, 3), (1,)], say."""
    return Marginals(shape, k, attributes)


def matrix(rows: Any, shape: Any = None) -> Matrix | SparseMatrix:
    """Ask the rows of a matrix: an array of queries by cells, of numbers or Booleans, or a sparse one of SciPy."""
    return SparseMatrix(rows, shape) if hasattr(rows, "tocsr") else Matrix(rows, shape)


def kronecker(*workloads: Workload) -> Kronecker:
    """Ask all products of a query of each workload, every one over attributes of its own."""
    return Kronecker(*workloads)


def stack(*workloads: Workload) -> Union:
    """Ask the queries of several workloads over one histogram, one after another: ``a + b`` for many."""
    return Union(*workloads)
