"""Multiplicative weights where a query is 1 on a slab of cells and 0 elsewhere: only the slab is touched.

A slab is what ranges, rectangles and cells of marginals have in common: its cells lie at ``offset`` plus a whole
multiple of a stride for each axis, from 0 up to the axis's size. The last axis is walked in a loop of its own, so
that it should be a long one, and of stride 1 where possible.

Many ranges at once cut the cells into segments, within which all cells are in the same ranges.
"""

from __future__ import annotations

from dpfast.kernels.compilation import kernel
from dpfast.kernels.intrinsics import add_in_any_order
from dpfast.kernels.weights.cells import total_of

__all__ = ["add_to_segments", "add_to_slab", "multiply_segments", "multiply_slab", "sum_segments", "sum_slab"]


@kernel
def multiply_run(weights, factor):
    """Multiply some weights by a factor, in place; return what their sum was."""
    total = 0.0
    for i in range(weights.size):
        weight = weights[i]
        weights[i] = weight * factor
        total = add_in_any_order(total, weight)
    return total


@kernel
def add_to_run(logarithms, term):
    """Add a term to some logarithms of weights, in place."""
    for i in range(logarithms.size):
        logarithms[i] += term


@kernel
def _start(offset, sizes, strides, number):
    """Return the first cell of the slab's run of this number: the last axis, at one place of the others."""
    for axis in range(sizes.size - 2, -1, -1):
        offset += number % sizes[axis] * strides[axis]
        number //= sizes[axis]
    return offset


@kernel
def _runs(sizes):
    """Return how many runs a slab has."""
    count = 1
    for axis in range(sizes.size - 1):
        count *= sizes[axis]
    return count


@kernel
def multiply_slab(weights, offset, sizes, strides, factor):
    """Multiply the slab's weights by a factor, in place; return what their sum was.

    Parameters
    ----------
    weights
        All cells, float64.
    offset, sizes, strides
        The slab: an integer, and an int64 for each axis.
    factor
        A float64.

    """
    total, length, stride = 0.0, sizes[-1], strides[-1]
    for number in range(_runs(sizes)):
        start = _start(offset, sizes, strides, number)
        if stride == 1:
            # A slice whose stride is known to be 1 fills whole vectors.
            total += multiply_run(weights[start : start + length], factor)
        else:
            total += multiply_run(weights[start : start + (length - 1) * stride + 1 : stride], factor)
    return total


@kernel
def sum_slab(weights, offset, sizes, strides):
    """Return the sum of the slab's weights."""
    total, length, stride = 0.0, sizes[-1], strides[-1]
    for number in range(_runs(sizes)):
        start = _start(offset, sizes, strides, number)
        if stride == 1:
            total += total_of(weights[start : start + length])
        else:
            total += total_of(weights[start : start + (length - 1) * stride + 1 : stride])
    return total


@kernel
def add_to_slab(logarithms, offset, sizes, strides, term):
    """Add a term to the slab's logarithms of weights, in place."""
    length, stride = sizes[-1], strides[-1]
    for number in range(_runs(sizes)):
        start = _start(offset, sizes, strides, number)
        if stride == 1:
            add_to_run(logarithms[start : start + length], term)
        else:
            add_to_run(logarithms[start : start + (length - 1) * stride + 1 : stride], term)


@kernel
def multiply_segments(weights, edges, factors):
    """Multiply the weights of every segment by its factor, in place; return the sum of the new weights.

    Parameters
    ----------
    weights
        All cells, float64.
    edges
        Segment i has the cells from edges[i] up to edges[i + 1], int64.
    factors
        A float64 for each segment.

    """
    total = 0.0
    for i in range(factors.size):
        factor = factors[i]
        total += factor * multiply_run(weights[edges[i] : edges[i + 1]], factor)
    return total


@kernel
def sum_segments(weights, edges, sums):
    """Set the sum of every segment's weights."""
    for i in range(sums.size):
        sums[i] = total_of(weights[edges[i] : edges[i + 1]])


@kernel
def add_to_segments(logarithms, edges, terms):
    """Add its segment's term to every logarithm, in place."""
    for i in range(terms.size):
        add_to_run(logarithms[edges[i] : edges[i + 1]], terms[i])


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
