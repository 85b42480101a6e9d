"""Matrices of queries times a histogram, and coefficients times such a matrix: dense of any type, and sparse rows.

Integers are multiplied modulo 2**64. Floats of a row are summed in LANES sums side by side, and these one after the
other: with u = 2**-53 the error is less than (cells / LANES + LANES + 2) u times the sum of the magnitudes.
"""

from __future__ import annotations

from dpfast.kernels.compilation import kernel

__all__ = [
    "LANES",
    "multiply_columns",
    "multiply_rows",
    "multiply_sparse_columns",
    "multiply_sparse_rows",
    "square_block_sums",
]

LANES = 64
"""Sums of a row that run side by side."""

_CELLS = 2048


@kernel
def multiply_rows(matrix, histogram, lanes, out):
    """Write each row's product with a histogram; ``lanes`` is scratch, LANES numbers of the type of ``out``."""
    cells = histogram.size
    whole = cells // LANES * LANES
    for i in range(len(matrix)):
        lanes[:] = 0
        for start in range(0, whole, LANES):
            for j in range(LANES):
                lanes[j] += out.dtype.type(matrix[i, start + j]) * histogram[start + j]
        total = out.dtype.type(0)
        for j in range(LANES):
            total += lanes[j]
        for j in range(whole, cells):
            total += out.dtype.type(matrix[i, j]) * histogram[j]
        out[i] = total


@kernel
def multiply_columns(matrix, coefficients, out):
    """Add to ``out`` each row times its coefficient, four rows at a time."""
    fours = len(matrix) // 4 * 4
    for start in range(0, out.size, _CELLS):
        own = out[start : start + _CELLS]
        for i in range(0, fours, 4):
            c0, c1, c2, c3 = coefficients[i], coefficients[i + 1], coefficients[i + 2], coefficients[i + 3]
            m0, m1 = matrix[i, start : start + own.size], matrix[i + 1, start : start + own.size]
            m2, m3 = matrix[i + 2, start : start + own.size], matrix[i + 3, start : start + own.size]
            for j in range(own.size):
                own[j] += (c0 * m0[j] + c1 * m1[j]) + (c2 * m2[j] + c3 * m3[j])
        for i in range(fours, len(matrix)):
            for j in range(own.size):
                own[j] += coefficients[i] * matrix[i, start + j]


@kernel
def square_block_sums(matrix, edges, zero):
    """Return the sum over rows and blocks edges[j]:edges[j + 1] of the square of the row's sum over the block.

    ``zero`` is of the type that sums over blocks take: int64 for integers, float64 for floats.
    """
    squares = 0.0
    for i in range(len(matrix)):
        row = 0.0
        for j in range(edges.size - 1):
            total = zero
            for k in range(edges[j], edges[j + 1]):
                total += matrix[i, k]
            row += float(total) * float(total)
        squares += row
    return squares


@kernel
def multiply_sparse_rows(offsets, cells, numbers, histogram, out):
    """Write each row's product with a histogram: row i has ``numbers`` from offsets[i] on, in ``cells``."""
    for i in range(out.size):
        total = out.dtype.type(0)
        for j in range(offsets[i], offsets[i + 1]):
            total += out.dtype.type(numbers[j]) * histogram[cells[j]]
        out[i] = total


@kernel
def multiply_sparse_columns(offsets, cells, numbers, coefficients, out):
    """Add to ``out`` each row times its coefficient."""
    for i in range(coefficients.size):
        for j in range(offsets[i], offsets[i + 1]):
            out[cells[j]] += coefficients[i] * numbers[j]


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
