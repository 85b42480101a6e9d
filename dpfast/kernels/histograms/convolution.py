"""Exact convolution of whole numbers: transforms over the integers modulo p = 2**64 - 2**32 + 1.

p is a prime, and 2**32 divides p - 1, so that there are roots of unity of every power of two up to that: the transform
of Fourier exists modulo p, with no rounding. A sum of products below p / 2 in magnitude is known from its residue.

A product of two residues, x = h 2**64 + l with h = a 2**32 + b, is reduced by 2**64 = 2**32 - 1 and 2**96 = -1 modulo
p: x = l - a + b (2**32 - 1). A borrow of 2**64 counts -(2**32 - 1), a carry 2**32 - 1; neither can happen twice, as
what is left then lies at least 2**32 away from the other end.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import inlined, kernel
from dpfast.kernels.intrinsics import add, bit_and, choose, high_product, low_product, shift_right, subtract

__all__ = ["PRIME", "multiply_residues", "residues", "signed", "transform"]

PRIME = 2**64 - 2**32 + 1

_P = np.uint64(PRIME)
_ZERO, _ONE, _HALF_WORD = np.uint64(0), np.uint64(1), np.uint64(32)
_LOW = np.uint64(2**32 - 1)
_MIDDLE = np.uint64(PRIME // 2)


@inlined
def _sum(x, y):
    """Return x + y modulo p, both below p."""
    total = add(x, y)
    # 2**64 - p = 2**32 - 1: a sum that wrapped is off by that much.
    total = choose(total < x, add(total, _LOW), total)
    return choose(total >= _P, subtract(total, _P), total)


@inlined
def _difference(x, y):
    """Return x - y modulo p, both below p."""
    return choose(x < y, subtract(add(x, _P), y), subtract(x, y))


@inlined
def _product(x, y):
    """Return x y modulo p, both below p."""
    high, low = high_product(x, y), low_product(x, y)
    upper, lower = shift_right(high, _HALF_WORD), bit_and(high, _LOW)
    first = subtract(low, upper)
    first = choose(low < upper, subtract(first, _LOW), first)
    second = low_product(lower, _LOW)
    total = add(first, second)
    total = choose(total < second, add(total, _LOW), total)
    return choose(total >= _P, subtract(total, _P), total)


@kernel
def residues(values, limit, out):
    """Set out to the residues of int64 values moved into [-limit, limit], limit < p / 2, and to 0 beyond them."""
    for i in range(values.size):
        x = min(max(values[i], -limit), limit)
        out[i] = choose(x < 0, subtract(_P, np.uint64(-x)), np.uint64(x))
    out[values.size :] = _ZERO


@kernel
def signed(x, out):
    """Set out to the int64 of least magnitude with these residues; those must be below 2**63."""
    for i in range(out.size):
        out[i] = np.int64(choose(x[i] > _MIDDLE, subtract(x[i], _P), x[i]))


@kernel
def multiply_residues(x, y, factor):
    """Replace x by x y factor, entry by entry, modulo p."""
    for i in range(x.size):
        x[i] = _product(_product(x[i], y[i]), factor)


@kernel
def transform(x, roots, forward):
    """Replace x by its transform, places in bit-reversed order; or, if not forward, such a one by its inverse times n.

    Parameters
    ----------
    x
        n residues, n a power of two.
    roots
        w**0, w**1, ..., w**(n / 2 - 1), where w is a root of unity of order n; its inverse to go back.
    forward
        Whether large blocks come first, which leaves bit-reversed places, or small ones, which takes them.

    """
    n = x.size
    half = n // 2 if forward else 1
    while 1 <= half < n:
        step = n // (2 * half)
        for start in range(0, n, 2 * half):
            for j in range(half):
                one, other = x[start + j], x[start + half + j]
                root = roots[j * step]
                if forward:
                    x[start + j] = _sum(one, other)
                    x[start + half + j] = _product(_difference(one, other), root)
                else:
                    other = _product(other, root)
                    x[start + j] = _sum(one, other)
                    x[start + half + j] = _difference(one, other)
        half = half // 2 if forward else half * 2


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
