"""Multiplicative weights of many independent histograms, one a row, each normalised when its update is done.

A row is read once before anything is written: for the sum T of its weights, and, where coefficients are 0 and 1, for
the sum I of those within the query. These two give the new sum beforehand, and so the factors of a single pass, which
then adds nothing up. Other rows are divided by their new sum in a pass of their own.

With u = 2**-53, T and I are off by e = (BLOCK + blocks) u at most, in relative terms, in whatever order their positive
terms are added. The new sum, relative to the old one, is s = 1 + d with d = (g - 1) I / T and g = exp(eta). Where d is
negative it is -1 at least. So where s is at least LEAST_SHARE = 1/2, abs(d) is at most 2s, and what is computed for s
is off by 2s (2e + 4u) at most. The factors of T and s add e and a few u. So the weights that are left add up to 1 but
for 6 (BLOCK + blocks + 8) u: 3e-12 for a million cells, and mostly a thousandth of that. Where s is smaller, too many
bits of d are lost, and the new weights are summed, as those of other rows are.
"""

from __future__ import annotations

import math

import numpy as np
from numba import types

from dpfast.kernels.compilation import by_types, kernel
from dpfast.kernels.intrinsics import add_in_any_order, bit_or, bits_of_f64, choose
from dpfast.kernels.weights.cells import (
    BLOCK,
    HIGHEST_SUM,
    LOWEST_SUM,
    SIGN,
    divide,
    inspect,
    multiply,
    scale,
)

__all__ = ["LEAST_SHARE", "multiply_rows", "update_rows", "weigh_rows"]

LEAST_SHARE = 0.5
"""Where the new sum is a smaller share of the old one, it is added up again."""

_ZERO, _NO_BITS = np.uint64(0), np.uint8(0)


@by_types(inline=False)
def _sums(weights, query):
    """Return the sum of a block's weights, that of those whose coefficient is 1, and the bits of all of each, joined.

    Where coefficients are floats the second sum is 0, and so are their bits.
    """
    return _sum if isinstance(query.dtype, types.Float) else _sum_both


def _sum(weights, query):
    total, bits = inspect(weights)
    return total, 0.0, bits, _NO_BITS


def _sum_both(weights, query):
    total, inside, bits, bits_of_query = 0.0, 0.0, _ZERO, _NO_BITS
    for i in range(query.size):
        bits_of_query = bit_or(bits_of_query, query[i])
    for i in range(weights.size):
        total = add_in_any_order(total, weights[i])
        inside = add_in_any_order(inside, weights[i] * choose(query[i] != 0, 1.0, 0.0))
        bits = bit_or(bits, bits_of_f64(weights[i]))
    return total, inside, bits, bits_of_query


@kernel
def weigh_rows(weights, query, totals, insides):
    """Set two sums for every row; return whether a weight has a minus sign, and whether a byte is neither 0 nor 1.

    Parameters
    ----------
    weights
        Histograms, one a row, float64 in two dimensions.
    query
        Coefficients in two dimensions, of one row for all or of a row for each: uint8 of 0 and 1, or floats.
    totals, insides
        For each row the sum of its weights, and that of the weights whose coefficient is 1; where coefficients are
        floats the second is 0.

    """
    bits, bits_of_query = _ZERO, _NO_BITS
    for row in range(weights.shape[0]):
        own, its_query = weights[row], query[row % query.shape[0]]
        totals[row], insides[row] = 0.0, 0.0
        for start in range(0, own.size, BLOCK):
            sums = _sums(own[start : start + BLOCK], its_query[start : start + BLOCK])
            totals[row] += sums[0]
            insides[row] += sums[1]
            bits, bits_of_query = bit_or(bits, sums[2]), bit_or(bits_of_query, sums[3])
    return bits >= SIGN, bits_of_query > 1


@kernel
def _multiply_row(weights, query, factors):
    """Multiply a row's weights by the query's factors; return their sum."""
    total = 0.0
    for start in range(0, weights.size, BLOCK):
        total += multiply(weights[start : start + BLOCK], query[start : start + BLOCK], factors)
    return total


@kernel
def _multiply_bytes(weights, query, low, high):
    """Multiply a row's weights, and add nothing up."""
    for i in range(weights.size):
        weights[i] *= choose(query[i] != 0, high, low)


@by_types(inline=False)
def _update(weights, query, eta, total, inside):
    """Multiply a row's weights and normalise them."""
    return _update_floats if isinstance(query.dtype, types.Float) else _update_bytes


def _update_floats(weights, query, eta, total, inside):
    scale(weights, 1.0 / _multiply_row(weights, query, (eta, 1.0 / total, 1.0)))


def _update_bytes(weights, query, eta, total, inside):
    growth = math.exp(eta)
    share = 1.0 + (growth - 1.0) * (inside / total)
    low, high = 1.0 / total, growth / total
    if share >= LEAST_SHARE:
        _multiply_bytes(weights, query, low / share, high / share)
    else:
        scale(weights, 1.0 / _multiply_row(weights, query, (low, high)))


@kernel
def multiply_rows(weights, query, eta, totals, insides):
    """Multiply every weight by exp(eta * its coefficient) and divide every row by its sum, in place.

    Parameters
    ----------
    weights, query, totals, insides
        As in `weigh_rows`.
    eta
        One float64 for all rows, or one for each.

    """
    for row in range(weights.shape[0]):
        its_query, its_eta = query[row % query.shape[0]], eta[row % eta.shape[0]]
        total, inside = totals[row], insides[row]
        if not LOWEST_SUM < total < HIGHEST_SUM:
            divide(weights[row], total)
            total, inside = 1.0, inside / total
        _update(weights[row], its_query, its_eta, total, inside)


@kernel
def update_rows(weights, query, eta, totals, insides):
    """Weigh and multiply all rows; return whether they were fit for it, and else leave them as they are.

    They are if no weight has a minus sign, every sum is positive and finite, and no byte is neither 0 nor 1.
    """
    signed, other = weigh_rows(weights, query, totals, insides)
    fit = not signed and not other
    for row in range(totals.size):
        fit = fit and 0.0 < totals[row] < math.inf
    if fit:
        multiply_rows(weights, query, eta, totals, insides)
    return fit


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
