"""Multiplicative weights of many independent histograms, one a row, each normalised when its update is done.

A row is read once before anything is written: for the sum of its weights, or, where coefficients are 0 and 1, for the
two sums of those within the query and without. These two give the new sum beforehand, and so the factors of a single
pass that normalises as well; other rows are divided by their new sum in a pass of their own, while they are in cache.
"""

from __future__ import annotations

import math

import numpy as np
from numba import types

from dpfast.kernels.compilation import by_types, kernel
from dpfast.kernels.intrinsics import add_in_any_order, bit_or, bits_of_f64, choose
from dpfast.kernels.weights.cells import BLOCK, SIGN, inspect, multiply, scale

__all__ = ["multiply_rows", "weigh_rows"]

_ZERO = np.uint64(0)


@by_types(inline=False)
def _sides(weights, query):
    """Return the sums of a block's weights where the coefficient is 0 and 1, and the bits of all of them, joined.

    Where coefficients are floats the first is the sum of all weights and the second 0.
    """
    return _sum if isinstance(query.dtype, types.Float) else _sum_both


def _sum(weights, query):
    total, bits = inspect(weights)
    return total, 0.0, bits


def _sum_both(weights, query):
    outside, inside, bits = 0.0, 0.0, _ZERO
    for i in range(weights.size):
        inside = add_in_any_order(inside, weights[i] * choose(query[i] != 0, 1.0, 0.0))
        outside = add_in_any_order(outside, weights[i] * choose(query[i] != 0, 0.0, 1.0))
        bits = bit_or(bits, bits_of_f64(weights[i]))
    return outside, inside, bits


@kernel
def weigh_rows(weights, query, outside, inside):
    """Set two sums for every row; return whether a weight has a minus sign.

    Parameters
    ----------
    weights
        Histograms, one a row, float64 in two dimensions.
    query
        Coefficients in two dimensions, of one row for all or of a row for each: uint8 of 0 and 1, or floats.
    outside, inside
        For each row the sums of the weights where the coefficient is 0 and where it is 1; where coefficients are
        floats the sum of all, and 0.

    """
    bits = _ZERO
    for row in range(weights.shape[0]):
        own, its_query = weights[row], query[row % query.shape[0]]
        outside[row], inside[row] = 0.0, 0.0
        for start in range(0, own.size, BLOCK):
            sums = _sides(own[start : start + BLOCK], its_query[start : start + BLOCK])
            outside[row] += sums[0]
            inside[row] += sums[1]
            bits = bit_or(bits, sums[2])
    return bits >= SIGN


@kernel
def _multiply_row(weights, query, factors):
    """Multiply a row's weights by the query's factors; return their sum."""
    total = 0.0
    for start in range(0, weights.size, BLOCK):
        total += multiply(weights[start : start + BLOCK], query[start : start + BLOCK], factors)
    return total


@by_types(inline=False)
def _update(weights, query, eta, outside, inside):
    """Multiply a row's weights and normalise them; return their new sum before that."""
    return _update_floats if isinstance(query.dtype, types.Float) else _update_bytes


def _update_floats(weights, query, eta, outside, inside):
    total = _multiply_row(weights, query, (eta, 1.0 / outside, 1.0))
    scale(weights, 1.0 / total)
    return total


def _update_bytes(weights, query, eta, outside, inside):
    growth = math.exp(eta)
    total = outside + growth * inside
    _multiply_row(weights, query, (1.0 / total, growth / total))
    return total


@kernel
def multiply_rows(weights, query, eta, outside, inside, totals):
    """Multiply every weight by exp(eta * its coefficient) and divide every row by its sum, in place.

    Parameters
    ----------
    weights, query, outside, inside
        As in `weigh_rows`.
    eta
        One float64 for all rows, or one for each.
    totals
        For each row what it was divided by in the end.

    """
    for row in range(weights.shape[0]):
        its_query, its_eta = query[row % query.shape[0]], eta[row % eta.shape[0]]
        totals[row] = _update(weights[row], its_query, its_eta, outside[row], inside[row])


# Stamp of all kernel sources (scripts/stamp_kernels.py): 725c5de447cbb0dc
