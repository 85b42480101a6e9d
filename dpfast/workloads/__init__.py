"""Workloads: linear queries over a histogram, answered without materialising their matrix.

A histogram is an array of counts, one for each combination of values of the attributes. What is made here is public,
and so are its parameters: a workload says what to ask, holds no data and keeps no budget. Its ``answer`` is exact and
private; what releases answers is a mechanism (`dpfast.mwem`, `dpfast.matrix_mechanism`, `dpfast.plan`).

All of them have ``answer`` (int64, exact, of a histogram of integers), ``transposed``, ``rows``, ``gram``, ``energy``
and ``frame``: see `Workload`. Shapes, bounds and matrices that are not as described are a ParameterError; counts of
which a sum could pass int64 are a DataError. More than 2**30 queries are refused before any memory is taken. Marginals,
totals, rectangles and products may be over more cells than any array has, 10**17 and far more: their queries, groups
and frames are there as always, and what needs a number for each cell is refused.

>>> import dpfast as dpf
>>> workload = dpf.workloads.prefix(4) + dpf.workloads.ranges(4, lower=[1], upper=[3])
>>> workload.answer([3, 1, 4, 1])
array([3, 4, 8, 9, 5])
"""

from __future__ import annotations

from typing import Annotated

from dpfast.arguments import Whole
from dpfast.domain import Domain, histogram
from dpfast.workloads.attributes import OfDomain, Queries, products_about
from dpfast.workloads.bounds import draw_bounds
from dpfast.workloads.cells import Identity, Total
from dpfast.workloads.kronecker import Kronecker
from dpfast.workloads.marginals import Marginals, Sets, Together
from dpfast.workloads.matrix import Matrix, Rows, SparseMatrix, is_sparse
from dpfast.workloads.ranges import AllRanges, Prefixes, Ranges
from dpfast.workloads.rectangles import Rectangles
from dpfast.workloads.shapes import ANY_SHAPE, CELLS, AnyShape, Bounds, Cells, OwnShape, Shape, check_size
from dpfast.workloads.workload import Asked, Union, Workload

__all__ = [
    "Domain",
    "Workload",
    "about",
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

_COUNT, _SEED = Whole(1), Whole(0)


def identity(shape: Shape) -> Identity:
    """Ask for every cell's own count.

    Parameters
    ----------
    shape
        How many cells along each attribute: positive integers, or one.

    Examples
    --------
    >>> identity((2, 2)).answer([[3, 1], [4, 1]])
    array([3, 1, 4, 1])

    """
    return Identity(shape)


def total(shape: AnyShape) -> Total:
    """Ask for the sum of all cells.

    Examples
    --------
    >>> total((2, 2)).answer([[3, 1], [4, 1]])
    array([9])

    """
    return Total(shape)


def prefix(n: Cells) -> Prefixes:
    """Ask for the sums of the first 1, 2, ..., n cells: a cumulative distribution.

    Examples
    --------
    >>> prefix(4).answer([3, 1, 4, 1])
    array([3, 4, 8, 9])

    """
    return Prefixes(n)


def all_range(n: Cells) -> AllRanges:
    """Ask for the sums over all n(n+1)/2 ranges, by their lower bound, then by their upper bound.

    Examples
    --------
    >>> all_range(3).answer([3, 1, 4])
    array([3, 4, 8, 1, 5, 4])

    """
    return AllRanges(n)


def ranges(n: Cells, lower: Bounds, upper: Bounds) -> Ranges:
    """Ask for the sums over the cells lower[i] to upper[i] - 1.

    Parameters
    ----------
    n
        The number of cells.
    lower, upper
        Arrays of integers with 0 <= lower <= upper <= n, one for each query.

    Examples
    --------
    >>> ranges(4, lower=[0, 2], upper=[1, 4]).answer([3, 1, 4, 1])
    array([3, 5])

    """
    return Ranges(n, lower, upper)


def random_ranges(n: Cells, count: Annotated[int, _COUNT], seed: Annotated[int, _SEED]) -> Ranges:
    """Ask for the sums over so many ranges, any of the n(n+1)/2 being as likely; the seed is public.

    Examples
    --------
    >>> random_ranges(4096, count=3, seed=1).frame().rows()
    [(812, 2635), (263, 4087), (328, 394)]

    """
    drawn = random_rectangles(CELLS.read("n", n), count, seed)
    return Ranges(n, drawn.lower[:, 0], drawn.upper[:, 0])


def rectangles(shape: AnyShape, lower: Bounds, upper: Bounds) -> Rectangles:
    """Ask for the sums over the cells from lower[i] up to, not including, upper[i] along every axis.

    Parameters
    ----------
    shape
        How many cells along each attribute.
    lower, upper
        Arrays of integers with 0 <= lower <= upper <= shape: queries by attributes.

    Examples
    --------
    >>> rectangles((2, 3), lower=[[0, 1]], upper=[[2, 3]]).answer([[3, 1, 4], [1, 5, 9]])
    array([19])

    """
    return Rectangles(shape, lower, upper)


def random_rectangles(shape: AnyShape, count: Annotated[int, _COUNT], seed: Annotated[int, _SEED]) -> Rectangles:
    """Ask for the sums over so many rectangles, any of the n(n+1)/2 ranges along each axis being as likely.

    Examples
    --------
    >>> random_rectangles((64, 64), count=2000, seed=1)
    Rectangles(2000 queries over 64 x 64 cells)

    """
    sizes = ANY_SHAPE.read("shape", shape)
    check_size(_COUNT.read("count", count) * len(sizes), "count", "bounds")
    return Rectangles(sizes, *draw_bounds(sizes, count, _SEED.read("seed", seed)))


def marginals(shape: AnyShape, k: Together | None = None, attributes: Sets | None = None) -> Marginals:
    """Ask for the counts of all combinations of values of some attributes, for many sets of attributes.

    Parameters
    ----------
    shape
        How many values each attribute has.
    k
        For all sets of so many attributes.
    attributes
        Or for these: ``[(0, 3), (1,)]``, say, counted from 0.

    Examples
    --------
    >>> pairs = marginals((2, 3, 2), k=2)
    >>> len(pairs.attributes), len(pairs)
    (3, 16)
    >>> marginals((2, 3), attributes=[(0,), (1,)]).answer([[3, 1, 4], [1, 5, 9]])
    array([ 8, 15,  4,  6, 13])

    Of more cells than there is memory for:

    >>> len(marginals((100,) * 14, k=2))
    910000

    """
    return Marginals(shape, k, attributes)


def matrix(rows: Rows, shape: OwnShape = None) -> Matrix | SparseMatrix:
    """Ask the rows of a matrix.

    Parameters
    ----------
    rows
        An array of queries by cells, or queries by the axes of a histogram, of Booleans, integers or floats: kept by
        reference where its rows lie side by side. Or a sparse array of SciPy.
    shape
        The histogram's shape; None for what the array has.

    Examples
    --------
    >>> import numpy as np
    >>> matrix(np.array([[True, False, True], [False, True, True]])).answer([3, 1, 4])
    array([7, 5])

    """
    return SparseMatrix(rows, shape) if is_sparse(rows) else Matrix(rows, shape)


def kronecker(*workloads: Asked) -> Kronecker:
    """Ask every product of queries, one of each workload; each workload has attributes of its own.

    Examples
    --------
    >>> kronecker(prefix(2), total(3)).answer([[3, 1, 4], [1, 5, 9]])
    array([ 8, 23])

    """
    return Kronecker(*workloads)


def about(domain: OfDomain, queries: Queries) -> Kronecker:
    """Ask products of queries about some attributes, of any number of cells: totals along all others.

    Parameters
    ----------
    domain
        A `dpfast.Domain`, whose attributes have names; or a shape, whose attributes are counted from 0.
    queries
        A workload for each of some attributes, over as many cells as it has values; at least one.

    Raises
    ------
    ParameterError
        There is no such attribute, or a workload is not over one attribute of its size.

    Examples
    --------
    >>> domain = Domain({"age": 100, "sex": ["f", "m"], "job": 50})
    >>> about(domain, {"age": prefix(100), "sex": identity(2)})
    Kronecker(200 queries over 100 x 2 x 50 cells)
    >>> about((100,) * 14, {3: all_range(100)})
    Kronecker(5050 queries over 100 x 100 x 100 x 100 x 100 x 100 x 100 x 100 x 100 x 100 x 100 x 100 x 100 x 100 cells)

    """
    return products_about(domain, queries)


def stack(*workloads: Asked) -> Union:
    """Ask the queries of several workloads over one histogram, one after another: ``a + b`` for many.

    Examples
    --------
    >>> stack(prefix(3), total(3)).answer([3, 1, 4])
    array([3, 4, 8, 8])

    """
    return Union(*workloads)
