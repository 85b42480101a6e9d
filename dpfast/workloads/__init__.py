"""Workloads: linear queries over a histogram, answered without materialising their matrix.

>>> import dpfast as dpf
>>> dpf.workloads.prefix(4).answer([3, 1, 4, 1])
array([3, 4, 8, 9])
"""

from __future__ import annotations

from typing import Any

from dpfast.workloads.cells import Identity, Total
from dpfast.workloads.marginals import Marginals
from dpfast.workloads.matrix import Matrix
from dpfast.workloads.random_ranges import draw_bounds
from dpfast.workloads.ranges import AllRanges, Prefixes, Ranges
from dpfast.workloads.shapes import check_size, checked_integer, checked_shape
from dpfast.workloads.workload import Workload

__all__ = [
    "Workload",
    "all_range",
    "identity",
    "marginals",
    "matrix",
    "prefix",
    "random_ranges",
    "ranges",
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
    (size,) = checked_shape(checked_integer(n, "n", 1), "n")
    check_size(checked_integer(count, "count", 1), "count", "queries")
    lower, upper = draw_bounds((size,), count, checked_integer(seed, "seed"))
    return Ranges(size, lower[:, 0], upper[:, 0])


def marginals(shape: Any, k: int | None = None, attributes: Any = None) -> Marginals:
    """Ask for all marginals of k attributes, or for those of ``attributes``: [(0, 3), (1,)], say."""
    return Marginals(shape, k, attributes)


def matrix(rows: Any, shape: Any = None) -> Matrix:
    """Ask the rows of a matrix."""
    return Matrix(rows, shape)
