"""Multiplicative weights over all cells: every weight times exp(eta * query), the sum beside it, in one pass.

A query gives each cell a coefficient. Four forms are read in place:

    bytes    bool or uint8, 0 or 1: a weight is multiplied by the lower or the higher of two factors
    bits     uint64 words, the first cell in the lowest bit: the same, from an eighth of the memory
    numbers  float64, float32 or uint8, in a unit: a weight is multiplied by scale * exp(rate * unit * number)
    levels   uint8 that number the entries of a table of 256 factors

Where |rate| is at most SMALL = 2**-6, as in most algorithms, exp(y) is summed up to y**6 / 6!, and what is left out,
y**7 / 7! and so on, is below 2**-54: no reduction of the argument, and the pass waits for memory again.

What a weight was to be divided by after the last update is part of the factors of this one, so that normalising costs
no pass. A block of weights is multiplied, and multiplied again by the next query's coefficients while it is in the
first-level cache. Sums are kept block by block: they do not depend on the number of threads. Nothing here decides an
outcome, so that sums within a block may be taken in any order: a relative error of at most BLOCK u for weights, which
are all positive, whatever the order (u = 2**-53).
"""

from __future__ import annotations

import numpy as np
from numba import types

from dpfast.kernels.compilation import by_types, inlined, kernel
from dpfast.kernels.intrinsics import (
    add_in_any_order,
    bit_and,
    bit_or,
    bits_of_f64,
    choose,
    polynomial,
    shift_right,
)
from dpfast.kernels.weights.exponential_weights import exp_f64

__all__ = [
    "BLOCK",
    "HIGHEST_SUM",
    "LOWEST_SUM",
    "SIGN",
    "SMALL",
    "WORD",
    "check_coefficients",
    "divide",
    "dot_blocks",
    "inspect_and_dot",
    "inspect_blocks",
    "multiply_and_dot",
    "multiply_blocks",
    "scale",
    "sum_blocks",
]

BLOCK = 4096
"""Cells of a block: their weights take 32 KiB."""
WORD = 64
"""Cells of a word of bits."""

SMALL = 2.0**-6
"""Rates up to this take a short series for the exponential."""
LOWEST_SUM, HIGHEST_SUM = 1e-80, 1e80
"""Sums beyond these are divided out before an update: times exp(500) either way they fit into a float64."""
SIGN = np.uint64(2**63)
"""The bit of a float64 that is set where it is negative."""

_ZERO, _ONE = np.uint64(0), np.uint64(1)
_SERIES = (1.0, 1.0, 0.5, 1.0 / 6.0, 1.0 / 24.0, 1.0 / 120.0, 1.0 / 720.0)


@inlined
def exp_small(y):
    """Return exp(y) for y from -SMALL to SMALL, up to 2u."""
    return polynomial(y, _SERIES)


@by_types(inline=True)
def cut(query, block):
    """Return a query's part for one block of cells."""
    if query.dtype == types.uint64:
        return lambda query, block: query[block * (BLOCK // WORD) : (block + 1) * (BLOCK // WORD)]
    return lambda query, block: query[block * BLOCK : (block + 1) * BLOCK]


@by_types(inline=False)
def multiply(weights, query, factors):
    """Multiply a block's weights by the query's factors in place; return their sum."""
    if isinstance(factors, types.Array):
        return _multiply_levels
    if factors.count == 3:
        return _multiply_numbers
    return _multiply_bits if query.dtype == types.uint64 else _multiply_bytes


def _multiply_bytes(weights, query, factors):
    low, high = factors
    total = 0.0
    for i in range(weights.size):
        weight = weights[i] * choose(query[i] != 0, high, low)
        weights[i] = weight
        total = add_in_any_order(total, weight)
    return total


def _multiply_bits(weights, query, factors):
    low, high = factors
    total = 0.0
    for k in range(weights.size // WORD):
        word, part = query[k], 0.0
        own = weights[k * WORD : (k + 1) * WORD]
        for j in range(WORD):
            bit = bit_and(shift_right(word, np.uint64(j)), _ONE)
            weight = own[j] * choose(bit != _ZERO, high, low)
            own[j] = weight
            part = add_in_any_order(part, weight)
        total = add_in_any_order(total, part)
    rest = weights[weights.size // WORD * WORD :]
    for j in range(rest.size):
        bit = bit_and(shift_right(query[-1], np.uint64(j)), _ONE)
        rest[j] *= choose(bit != _ZERO, high, low)
        total = add_in_any_order(total, rest[j])
    return total


def _multiply_numbers(weights, query, factors):
    rate, scale, unit = factors
    slope = rate * unit
    total = 0.0
    if abs(rate) <= SMALL:
        for i in range(weights.size):
            weight = weights[i] * (scale * exp_small(slope * np.float64(query[i])))
            weights[i] = weight
            total = add_in_any_order(total, weight)
    else:
        for i in range(weights.size):
            # The proof of exp_f64 holds for positive exponents up to 708 as for negative ones.
            weight = weights[i] * (scale * exp_f64(slope * np.float64(query[i])))
            weights[i] = weight
            total = add_in_any_order(total, weight)
    return total


def _multiply_levels(weights, query, factors):
    for i in range(weights.size):
        weights[i] *= factors[query[i]]
    return total_of(weights)


@by_types(inline=False)
def dot(weights, query, values):
    """Return the sum of a block's weights, each times its coefficient.

    ``values`` are the coefficients of levels, the unit of numbers, or None for bytes and bits.
    """
    if isinstance(values, types.Array):
        return _dot_levels
    if isinstance(values, types.Float):
        return _dot_numbers
    return _dot_bits if query.dtype == types.uint64 else _dot_bytes


def _dot_bytes(weights, query, values):
    inside = 0.0
    for i in range(weights.size):
        # A choice of the weight or 0 would become a masked load, which takes twice as long from memory.
        inside = add_in_any_order(inside, weights[i] * choose(query[i] != 0, 1.0, 0.0))
    return inside


def _dot_bits(weights, query, values):
    inside = 0.0
    for k in range(weights.size // WORD):
        word, part = query[k], 0.0
        own = weights[k * WORD : (k + 1) * WORD]
        for j in range(WORD):
            bit = bit_and(shift_right(word, np.uint64(j)), _ONE)
            part = add_in_any_order(part, own[j] * choose(bit != _ZERO, 1.0, 0.0))
        inside = add_in_any_order(inside, part)
    rest = weights[weights.size // WORD * WORD :]
    for j in range(rest.size):
        bit = bit_and(shift_right(query[-1], np.uint64(j)), _ONE)
        inside = add_in_any_order(inside, rest[j] * choose(bit != _ZERO, 1.0, 0.0))
    return inside


def _dot_numbers(weights, query, values):
    inside = 0.0
    for i in range(weights.size):
        inside = add_in_any_order(inside, weights[i] * np.float64(query[i]))
    return inside * values


def _dot_levels(weights, query, values):
    inside = 0.0
    for i in range(weights.size):
        inside = add_in_any_order(inside, weights[i] * values[query[i]])
    return inside


@kernel
def total_of(weights):
    """Return the sum of a block's weights."""
    total = 0.0
    for i in range(weights.size):
        total = add_in_any_order(total, weights[i])
    return total


@kernel
def sum_blocks(weights, sums):
    """Set the sum of every block's weights."""
    for block in range(sums.size):
        sums[block] = total_of(weights[block * BLOCK : (block + 1) * BLOCK])


@kernel
def dot_blocks(weights, query, values, dots):
    """Set the sum of every block's weights times their coefficients, in one pass that writes nothing."""
    for block in range(dots.size):
        dots[block] = dot(weights[block * BLOCK : (block + 1) * BLOCK], cut(query, block), values)


@kernel
def multiply_blocks(weights, query, factors, sums):
    """Multiply every weight by the factor of its coefficient, in place; set every block's sum.

    Parameters
    ----------
    weights
        Cells, float64.
    query
        Bytes, bits, numbers or levels, see above.
    factors
        For bytes and bits the factors of 0 and of 1; for numbers the rate, the scale and the unit; for levels a table.
    sums
        One for each BLOCK of cells.

    """
    for block in range(sums.size):
        sums[block] = multiply(weights[block * BLOCK : (block + 1) * BLOCK], cut(query, block), factors)


@kernel
def multiply_and_dot(weights, query, factors, following, values, sums, dots):
    """Multiply as above, and set for every block the sum of its new weights times the coefficients of another query."""
    for block in range(sums.size):
        own = weights[block * BLOCK : (block + 1) * BLOCK]
        sums[block] = multiply(own, cut(query, block), factors)
        dots[block] = dot(own, cut(following, block), values)


@kernel
def scale(weights, factor):
    """Multiply every weight by one factor."""
    for i in range(weights.size):
        weights[i] *= factor


@kernel
def divide(weights, total):
    """Divide every weight by their sum, of which the reciprocal may be no float."""
    for i in range(weights.size):
        weights[i] /= total


@kernel
def inspect(weights):
    """Return the sum of a block's weights, and the bits of all of them, joined: the top one is set by a minus sign."""
    total, bits = 0.0, _ZERO
    for i in range(weights.size):
        total = add_in_any_order(total, weights[i])
        bits = bit_or(bits, bits_of_f64(weights[i]))
    return total, bits


@kernel
def inspect_blocks(weights, sums):
    """Set the sum of every block's weights; return whether one of them has a minus sign (-0.0 has one, too)."""
    bits = _ZERO
    for block in range(sums.size):
        sums[block], its = inspect(weights[block * BLOCK : (block + 1) * BLOCK])
        bits = bit_or(bits, its)
    return bits >= SIGN


@kernel
def inspect_and_dot(weights, query, values, sums, dots):
    """Multiply as above, and set for every block the sum of its weights times their coefficients."""
    bits = _ZERO
    for block in range(sums.size):
        own = weights[block * BLOCK : (block + 1) * BLOCK]
        sums[block], its = inspect(own)
        dots[block] = dot(own, cut(query, block), values)
        bits = bit_or(bits, its)
    return bits >= SIGN


@kernel
def check_coefficients(query):
    """Return 1 if a coefficient is outside [0, 1] or NaN, else 0."""
    broken = _ZERO
    for i in range(query.size):
        coefficient = np.float64(query[i])
        broken = bit_or(broken, choose(coefficient >= 0.0, _ZERO, _ONE))
        broken = bit_or(broken, choose(coefficient <= 1.0, _ZERO, _ONE))
    return broken


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
