"""Multiplicative weights kept as logarithms: an update adds, and cannot overflow or lose a cell.

They are read through exp(logarithm - reference), the reference being the largest of them or above: no weight exceeds
1, and those below exp(-708) of the largest count 0. The exponential is off by 2.5u, as in
`dpfast.kernels.weights.exponential_weights`.
"""

from __future__ import annotations

import numpy as np
from numba import types

from dpfast.kernels.compilation import by_types, kernel
from dpfast.kernels.intrinsics import bit_and, choose, shift_right
from dpfast.kernels.selection.differences import best_score
from dpfast.kernels.weights.cells import BLOCK, WORD, cut, total_of
from dpfast.kernels.weights.exponential_weights import exp_f64

__all__ = ["add_blocks", "find_highest", "read_blocks"]

_ZERO, _ONE = np.uint64(0), np.uint64(1)
_LOWEST = -708.0


@by_types(inline=False)
def add(logarithms, query, terms):
    """Add the query's terms to a block's logarithms in place."""
    if isinstance(terms, types.Array):
        return _add_levels
    if isinstance(query.dtype, types.Float):
        return _add_floats
    return _add_bits if query.dtype == types.uint64 else _add_bytes


def _add_bytes(logarithms, query, terms):
    for i in range(logarithms.size):
        logarithms[i] += choose(query[i] != 0, terms, 0.0)


def _add_bits(logarithms, query, terms):
    for k in range(logarithms.size // WORD):
        word = query[k]
        own = logarithms[k * WORD : (k + 1) * WORD]
        for j in range(WORD):
            own[j] += choose(bit_and(shift_right(word, np.uint64(j)), _ONE) != _ZERO, terms, 0.0)
    rest = logarithms[logarithms.size // WORD * WORD :]
    for j in range(rest.size):
        rest[j] += choose(bit_and(shift_right(query[-1], np.uint64(j)), _ONE) != _ZERO, terms, 0.0)


def _add_floats(logarithms, query, terms):
    for i in range(logarithms.size):
        logarithms[i] += terms * np.float64(query[i])


def _add_levels(logarithms, query, terms):
    for i in range(logarithms.size):
        logarithms[i] += terms[query[i]]


@kernel
def add_blocks(logarithms, query, terms):
    """Add rate * coefficient to every logarithm, in place.

    Parameters
    ----------
    logarithms
        Cells, float64; they begin with a block.
    query
        Bytes, bits, floats or levels, as in `dpfast.kernels.weights.cells`.
    terms
        The rate, a float64; for levels a table of rate * coefficient.

    """
    for block in range((logarithms.size + BLOCK - 1) // BLOCK):
        add(logarithms[block * BLOCK : (block + 1) * BLOCK], cut(query, block), terms)


@kernel
def find_highest(logarithms, maxima):
    """Set the largest logarithm of every block."""
    for block in range(maxima.size):
        maxima[block] = best_score(logarithms[block * BLOCK : (block + 1) * BLOCK])


@kernel
def read_weights(logarithms, reference, weights):
    """Set every weight to exp(logarithm - reference), for a reference not below any logarithm."""
    for i in range(logarithms.size):
        gap = logarithms[i] - reference
        weights[i] = choose(gap >= _LOWEST, exp_f64(gap), 0.0)


@kernel
def read_blocks(logarithms, reference, weights, sums):
    """Set all weights, and the sum of every block's, relative to a reference."""
    for block in range(sums.size):
        own = weights[block * BLOCK : (block + 1) * BLOCK]
        read_weights(logarithms[block * BLOCK : (block + 1) * BLOCK], reference, own)
        sums[block] = total_of(own)


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
