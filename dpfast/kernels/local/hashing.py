"""Local hashing: reports are lines over a prime field, drawn so that the own value lies in a short interval.

With the prime p = 2**29 - 3, a report (a, c) supports every value u for which (a u + c) mod p < L. A row of value v
draws a uniform, w uniform below L with probability T / 2**64, else uniform from L to p - 1, and c = (w - a v) mod p. A
row of no value draws w uniform below p. Given w, a (u - v) + w is uniform for u != v, so that a report supports each
other value with probability L / p exactly.

A report is one number, a * 2**29 + c. Uniform numbers below a bound are floors of bound * word / 2**64; where a word's
interval holds two of them the row becomes -1, and a caller finishes it with more bits of the same word.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import inlined, kernel
from dpfast.kernels.intrinsics import add, bit_and, choose, high_product, low_product, shift_left, shift_right, subtract

__all__ = ["PRIME", "count_range", "count_values", "hash_rows"]

PRIME = 2**29 - 3

_BITS, _MASK, _P = np.uint64(29), np.uint64(2**29 - 1), np.uint64(PRIME)
_THREE, _ALL, _TO_29_BITS, _ONE = np.uint64(3), np.uint64(2**64 - 1), np.uint64(35), np.uint64(1)
_UNDECIDED = np.int64(-1)
#: Reports that are counted at a time: their halves stay in the first cache.
_AT_A_TIME = 1024


@inlined
def _reduced(x):
    """Return x mod p for x < 2**60."""
    x = add(bit_and(x, _MASK), low_product(shift_right(x, _BITS), _THREE))
    x = add(bit_and(x, _MASK), low_product(shift_right(x, _BITS), _THREE))
    return choose(x >= _P, subtract(x, _P), x)


@kernel
def hash_rows(words, values, domain, truth, width, released):
    """Fill ``released`` with reports (int64); return 1 if some row is undecided, else 0.

    Parameters
    ----------
    words
        uint64, three a row: for the truth, for w and for a.
    values
        Integers; what is not from 0 to ``domain`` - 1 is no value.
    domain, truth, width
        How many values there are (at most p), T and L (uint64).
    released
        int64: out.

    """
    undecided = 0
    for i in range(released.size):
        v = np.uint64(values[i])
        inside, truthful = v < domain, words[3 * i] < truth
        bound = choose(inside, choose(truthful, width, subtract(_P, width)), _P)
        start = choose(inside & (not truthful), width, np.uint64(0))
        w = add(start, high_product(words[3 * i + 1], bound))
        certain = low_product(words[3 * i + 1], bound) <= subtract(_ALL, subtract(bound, _ONE))
        a = shift_right(words[3 * i + 2], _TO_29_BITS)
        a = choose(a >= _P, subtract(a, _P), a)
        own = choose(inside, v, np.uint64(0))
        # p - v stands for -v.
        c = _reduced(add(low_product(a, subtract(_P, own)), w))
        report = np.int64(add(shift_left(a, _BITS), c))
        released[i] = report if certain else _UNDECIDED
        undecided |= 0 if certain else 1
    return undecided


@kernel
def count_values(reports, values, width, counts):
    """Add to ``counts`` (int64) how many reports (int64) support each of the values (uint64, below p)."""
    slopes, starts = np.empty(_AT_A_TIME, np.uint64), np.empty(_AT_A_TIME, np.uint64)
    for first in range(0, reports.size, _AT_A_TIME):
        size = min(_AT_A_TIME, reports.size - first)
        for i in range(size):
            report = np.uint64(reports[first + i])
            slopes[i], starts[i] = bit_and(shift_right(report, _BITS), _MASK), bit_and(report, _MASK)
        for place in range(values.size):
            v = values[place]
            found = np.uint64(0)
            for i in range(size):
                x = _reduced(add(low_product(slopes[i], v), starts[i]))
                found = add(found, choose(x < width, _ONE, np.uint64(0)))
            counts[place] += np.int64(found)


@kernel
def count_range(reports, first_value, width, counts):
    """Do as `count_values` for consecutive values from ``first_value`` (uint64) on, by one addition each."""
    slopes, places = np.empty(_AT_A_TIME, np.uint32), np.empty(_AT_A_TIME, np.uint32)
    modulus, narrow = np.uint32(PRIME), np.uint32(width)
    for first in range(0, reports.size, _AT_A_TIME):
        size = min(_AT_A_TIME, reports.size - first)
        for i in range(size):
            report = np.uint64(reports[first + i])
            slope = bit_and(shift_right(report, _BITS), _MASK)
            slopes[i] = np.uint32(slope)
            places[i] = np.uint32(_reduced(add(low_product(slope, first_value), bit_and(report, _MASK))))
        for place in range(counts.size):
            found = np.uint32(0)
            for i in range(size):
                x = places[i]
                found = add(found, choose(x < narrow, np.uint32(1), np.uint32(0)))
                further = add(x, slopes[i])
                places[i] = choose(further >= modulus, subtract(further, modulus), further)
            counts[place] += np.int64(found)


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
