"""Least squares over a simplex whose corners are columns of a matrix: the inner loop of projections.

A point is a sum of columns, each times a weight of at least 0; all weights add up to a total. Columns are sparse:
column a has the entries values[offsets[a]] to values[offsets[a + 1]] at the rows given by places. Nothing here
decides a private outcome: what is projected has its noise already.
"""

from __future__ import annotations

from dpfast.kernels.compilation import kernel

__all__ = ["balance_weights", "combine_columns", "multiply_columns"]


@kernel
def multiply_columns(vector, offsets, places, values, products):
    """Write the inner product of a vector with every column."""
    for a in range(products.size):
        total = 0.0
        for entry in range(offsets[a], offsets[a + 1]):
            total += vector[places[entry]] * values[entry]
        products[a] = total


@kernel
def combine_columns(weights, offsets, places, values, point):
    """Add every column, times its weight, to a point."""
    for a in range(weights.size):
        weight = weights[a]
        if weight != 0.0:
            for entry in range(offsets[a], offsets[a + 1]):
                point[places[entry]] += weight * values[entry]


@kernel
def balance_weights(gram, tolerance, most, weights, gradient):
    """Move weight between columns until no move lowers abs(C w - t)**2 / 2 much; return the number of moves.

    ``gram`` is C' C, ``gradient`` = C' (C w - t), kept up to date. A move takes weight from column j to column i, the
    one of least gradient: it gains (g_j - g_i)**2 / (2 abs(c_i - c_j)**2) or what there is to take, and j is the one
    that gains most (the choice of pairs of Fan, Chen, Lin 2005 for support vector machines). The end is where
    sum w (g - min g) is at most ``tolerance``: the gap to the least value over these columns (Frank, Wolfe 1956).
    """
    columns = weights.size
    for move in range(most):
        i = 0
        for a in range(1, columns):
            if gradient[a] < gradient[i]:
                i = a
        gap = 0.0
        best = 0.0
        j = -1
        for a in range(columns):
            if weights[a] > 0.0:
                slope = gradient[a] - gradient[i]
                gap += weights[a] * slope
                if slope > 0.0:
                    apart = max(gram[i, i] + gram[a, a] - 2.0 * gram[i, a], 1e-300)
                    step = min(slope / apart, weights[a])
                    gain = step * (slope - 0.5 * step * apart)
                    if gain > best:
                        best = gain
                        j = a
        if gap <= tolerance or j < 0:
            return move
        slope = gradient[j] - gradient[i]
        apart = max(gram[i, i] + gram[j, j] - 2.0 * gram[i, j], 1e-300)
        if slope / apart >= weights[j]:
            step = weights[j]
            weights[j] = 0.0
        else:
            step = slope / apart
            weights[j] -= step
        weights[i] += step
        for a in range(columns):
            gradient[a] += step * (gram[i, a] - gram[j, a])
    return most


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
