"""The weights exp(a * (score - best score)) of the exponential mechanism, summed block by block.

A block is BLOCK candidates or fewer, and its reference the best score among them. With u = 2**-53, x = a * (reference
- score) for a candidate, and first-order terms rounded up:

**Gap.** h = score / 2 - reference / 2 rounds once (of integers: their difference is exact as a uint64, and its
conversion rounds), and so does y = 2a * h: the relative error is 2.01u. Halving a subnormal loses 2**-1075, which
makes 2**-93 of y for a <= 2**980; a product below 2**-1022 loses as little. y = -inf where a product overflows.

**Exponential.** y below -708 is raised to that, where exp is 2**-1021.4. t = y log2(e) + 1.5 * 2**52 rounds to an
integer, as neighbours are 1 apart there: k = t - 1.5 * 2**52 has |y - k ln 2| <= (1/2 + 2**-42) ln 2 < 0.3466. With
ln 2 = LN2 + LN2_REST + 2**-109 at most, r = (y - k LN2) - k LN2_REST is rounded twice by u/4, each difference being
below 1/2. exp(r) = 1 + r Q(r), Q a minimax polynomial, whose own error is 0.09u (a test bounds it in ball
arithmetic). Q is off by u from its last step and by 0.25u from those before, which makes 0.44u of r Q and 0.62u of
exp(r) >= 0.707; the sum rounds by u. The exponent k is added to the bits without rounding: exp(r) lies in [0.707,
1.415] and k >= -1022 where y >= -708, so that the result is normal. Altogether 0.5 + 0.62 + 1 + 0.09 < 2.5 u.

**Weight.** The two together: a relative error of at most (2.01 x + 2.6) u where x <= 708; otherwise both the weight
and what is computed for it are below 2**-1021.

**Sums.** Halves are added to each other, elementwise, until one number is left: ceil(log2 n) additions of positive
numbers above each other, a relative error of 1.01 u for each.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import inlined, kernel
from dpfast.kernels.intrinsics import (
    add,
    bit_or,
    bits_of_f64,
    choose,
    f64_from_bits,
    fused_multiply_add,
    maximum,
    polynomial,
    shift_left,
)
from dpfast.kernels.selection.differences import best_score, half_below

__all__ = ["BLOCK", "POLYNOMIAL", "exp_f64", "locate", "sum_halves", "weigh", "weigh_blocks"]

BLOCK = 2048
"""Candidates that share a reference: their scores and weights stay in the first-level cache."""

# Minimax on +-(ln(2) / 2 + 2**-20) for (exp(r) - 1) / r.
POLYNOMIAL = (
    1.0,
    0.5000000000000006,
    0.1666666666666667,
    0.04166666666657314,
    0.008333333333326141,
    0.0013888888932489319,
    0.00019841269874801046,
    2.4801504346083914e-05,
    2.7557255425043745e-06,
    2.7626357621833605e-07,
    2.510520666647184e-08,
)

_LOWEST = -708.0
_LOG2_E, _LN2, _LN2_REST = 1.4426950408889634, 0.6931471805599453, 2.3190468138462996e-17
_ONES = 1.5 * 2.0**52
_EXPONENT, _ZERO, _ONE = np.uint64(52), np.uint64(0), np.uint64(1)
_INFINITY = np.inf


@inlined
def exp_f64(y):
    """Return exp(y) for y in [-708, 0], up to 2.5u in relative terms; exp(-708) below that."""
    y = maximum(y, _LOWEST)
    t = fused_multiply_add(y, _LOG2_E, _ONES)
    k = t - _ONES
    r = fused_multiply_add(k, -_LN2, y)
    r = fused_multiply_add(k, -_LN2_REST, r)
    mantissa = fused_multiply_add(r, polynomial(r, POLYNOMIAL), 1.0)
    return f64_from_bits(add(bits_of_f64(mantissa), shift_left(bits_of_f64(t), _EXPONENT)))


@kernel
def weigh(scores, reference, a, weights):
    """Fill ``weights`` with exp(a * (score - reference)) for every score; return 1 if one is not finite."""
    broken = _ZERO
    for i in range(scores.size):
        half = half_below(scores[i], reference)
        weights[i] = exp_f64((2.0 * a) * half)
        # Half the difference of finite scores is finite.
        broken = bit_or(broken, choose(half > -_INFINITY, _ZERO, _ONE))
    return broken


@kernel
def sum_halves(numbers):
    """Return the sum of positive numbers, which are overwritten."""
    size = numbers.size
    while size > 1:
        half = (size + 1) // 2
        for i in range(size - half):
            numbers[i] = numbers[i] + numbers[i + half]
        size = half
    return numbers[0]


@kernel
def weigh_blocks(scores, a, weights, references, sums):
    """Set every block's reference (float64 or int64) and its sum of weights relative to it.

    Parameters
    ----------
    scores
        A chunk's scores (int64 or float64); a block begins at every multiple of BLOCK.
    a
        What scores are multiplied by, a float64.
    weights
        Scratch memory, BLOCK float64.
    references, sums
        One entry for each block.

    Returns
    -------
    int
        1 if a score is not finite; then nothing else means anything.

    """
    broken = _ZERO
    for block in range(sums.size):
        own = scores[block * BLOCK : (block + 1) * BLOCK]
        reference = best_score(own)
        references[block] = reference
        broken = bit_or(broken, weigh(own, reference, a, weights))
        sums[block] = sum_halves(weights[: own.size])
    return broken


@kernel
def locate(scores, reference, a, unit, target, doubt, weights):
    """Return the first and the last candidate of a block in whose part of the line the target may lie.

    Candidate j's part goes from ``unit`` times the sum of the weights before it to where the next one's begins. The
    sums are taken in order, so that each addition rounds by u of the block's sum at most.

    Parameters
    ----------
    scores, reference, a
        The block's, as in `weigh`.
    unit, target
        What a weight of 1 measures, and the target, seen from the block's begin.
    doubt
        How far any end of a part may be from where it is computed to be.
    weights
        Scratch memory, a float64 for each candidate.

    """
    weigh(scores, reference, a, weights)
    first, last, total = scores.size, 0, 0.0
    for j in range(scores.size):
        if total * unit <= target + doubt:
            last = j
        total += weights[j]
        if first == scores.size and total * unit > target - doubt:
            first = j
    return min(first, last), last


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
