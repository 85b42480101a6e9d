"""Randomized response among k categories: one word a row decides whether it tells the truth, and else what it says.

With W = exp(epsilon) + k - 1, U uniform on [0, 1) and X = W U, a row of category c answers

    c                                          if X >= k - 1,       with probability exp(epsilon) / W,
    the floor(X)-th of the k - 1 others        if X < k - 1,        each with probability 1 / W;

a row of no category answers floor(k U), each of the k with probability 1 / k.

A word of B bits (32 or 64) is an integer r with U in [r, r + 1) * 2**-B. A caller gives w = floor(W 2**(B - m)), where
2**(m - 1) <= W < 2**m and m <= B, so that with s = 2 B - m, in exact integers,

    r w <= 2**s X < (r + 1) (w + 1) = r w + r + w + 1.

An answer is stored where both ends say the same: the lower end is at k - 1 or above, or the floors of r w / 2**s and
(r w + r + w) / 2**s agree. For rows of no category r k and r k + k - 1 likewise, divided by 2**B. The others become
the largest word of their type (-1 where it has a sign), which is no category, and a caller finishes them with more
bits of the same U. Where W is 2**(B - 1) or more, the caller gives w = 2**(B - 1) and m = B, a lower end alone, and
says that no lie is ``certain``.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import inlined, kernel
from dpfast.kernels.intrinsics import add, bit_or, choose, high_product, low_product, shift_right, subtract

__all__ = ["respond_long", "respond_short"]

_NONE, _SOME, _WORD = np.uint64(0), np.uint64(1), np.uint64(32)
_UNDECIDED = np.uint64(2**64 - 1)


@inlined
def _answer(code, categories, other, certain, anything, anything_certain):
    """Return a row's answer (uint64), _UNDECIDED where the bits read do not decide it."""
    inside = code < categories
    truthful = other >= subtract(categories, _SOME)
    lie = add(other, choose(other >= code, _SOME, _NONE))
    own = choose(truthful, code, choose(certain, lie, _UNDECIDED))
    return choose(inside, own, choose(anything_certain, anything, _UNDECIDED))


@kernel
def respond_short(words, values, categories, weight, shift, certain, released):
    """Fill ``released`` with answers by words of 32 bits; return 1 if some row is undecided, else 0.

    Parameters
    ----------
    words
        uint32, one a row.
    values
        The category of each row, from 0 to k - 1 (int64, int32 or uint32); any other number is no category.
    categories, weight, shift
        k, w and s of the module's docstring (uint64); k <= 2**32.
    certain
        Whether w bounds W from above as well.
    released
        An array of the values' type.

    """
    undecided = _NONE
    for i in range(released.size):
        r, code = np.uint64(words[i]), np.uint64(values[i])
        low = low_product(r, weight)
        other = shift_right(low, shift)
        same = shift_right(add(low, add(r, weight)), shift) == other
        spread = low_product(r, categories)
        anything = shift_right(spread, _WORD)
        whole = shift_right(add(spread, subtract(categories, _SOME)), _WORD) == anything
        answer = _answer(code, categories, other, same & certain, anything, whole)
        undecided = bit_or(undecided, choose(answer == _UNDECIDED, _SOME, _NONE))
        released[i] = answer
    return undecided


@kernel
def respond_long(words, values, categories, weight, shift, certain, released):
    """Do as `respond_short` by words of 64 bits (uint64); ``shift`` is s - 64."""
    undecided = _NONE
    for i in range(released.size):
        r, code = words[i], np.uint64(values[i])
        high, low = high_product(r, weight), low_product(r, weight)
        other = shift_right(high, shift)
        raised = add(low, r)
        carried = choose(raised < low, _SOME, _NONE)
        further = add(raised, weight)
        carried = add(carried, choose(further < raised, _SOME, _NONE))
        same = shift_right(add(high, carried), shift) == other
        anything = high_product(r, categories)
        rest = low_product(r, categories)
        whole = rest <= subtract(_UNDECIDED, subtract(categories, _SOME))
        answer = _answer(code, categories, other, same & certain, anything, whole)
        undecided = bit_or(undecided, choose(answer == _UNDECIDED, _SOME, _NONE))
        released[i] = answer
    return undecided


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
