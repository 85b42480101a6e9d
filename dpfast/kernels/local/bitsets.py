"""Reports that are sets of values, a bit for each: own bits placed, subsets of one size drawn, columns counted.

A report has ``width`` bytes, the least significant bit of the first one for value 0. Bits past the last value are zero.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import kernel
from dpfast.kernels.intrinsics import bit_and, bit_or, bit_xor, count_ones, shift_left, shift_right, subtract

__all__ = ["count_columns", "draw_subsets", "place_bits"]

_NONE, _ONE = np.uint64(0), np.uint64(1)
_ALL, _LOWEST = np.uint64(2**64 - 1), np.uint64(63)
_QUARTER = np.uint64(16)
_PLANES = 8


@kernel
def place_bits(noise, fair, start, values, first_row, domain, width, released):
    """Store noise bits (bytes), but for each row's own value a fair bit, and zeros past the last value.

    Parameters
    ----------
    noise, fair, start, released
        uint8: the bytes of all reports from byte ``start`` on.
    values, first_row
        The values of rows from ``first_row`` on, all those of which a byte is here; what is not from 0 to
        ``domain`` - 1 is no value.
    domain, width
        How many values there are (uint64), and how many bytes a report has.

    """
    for i in range(released.size):
        released[i] = noise[i]
    spare = np.int64(width) * 8 - np.int64(domain)
    for i in range(values.size):
        begin = (first_row + i) * width - start
        v = np.uint64(values[i])
        own = begin + np.int64(v >> np.uint64(3))
        if v < domain and own >= 0 and own < released.size:
            bit = np.uint8(np.uint8(1) << np.uint8(v & np.uint64(7)))
            released[own] = (released[own] & ~bit) | (fair[own] & bit)
        last = begin + width - 1
        if spare > 0 and last >= 0 and last < released.size:
            released[last] &= np.uint8(255 >> spare)


@kernel
def draw_subsets(words, values, domain, size, truth, leading, state, scratch, released):
    """Draw subsets of ``size`` values until all rows are done or the words are used up; return how many were read.

    A row's own value is in its subset with probability truth / 2**64, and the others fill it up, every choice of them
    being as probable as any other: each is in at first by itself, with the same probability; then places are drawn
    evenly, and one that mends the number of members is taken. Called again with further words, it goes on where it
    stopped.

    Parameters
    ----------
    words
        uint64: a row needs 1 + 8 * ``scratch.size`` at first, and a quarter of one for each place that is tried.
    values, domain
        Each row's value; what is not from 0 to ``domain`` - 1 (uint64, at most 2**16) is no value: then any subset of
        this size is as probable as any other.
    size, truth, leading
        Members of a subset, T, and 8 masks: the bits of the probability with which others are in at first.
    state
        int64, in and out: the row to go on with, whether its first bits are drawn, its members, how many it is to have
        beside its own value, and whether that is in.
    scratch
        uint64, in and out: its members.
    released
        uint8, rows by bytes.

    """
    read = 0
    chunks, width = scratch.size, released.shape[1]
    places = np.uint64(1)
    while places < domain:
        places = shift_left(places, _ONE)
    while state[0] < released.shape[0]:
        v = np.uint64(values[state[0]])
        inside = v < domain
        if state[1] == 0:
            if read + 1 + _PLANES * chunks > words.size:
                return read
            included = inside and words[read] < truth
            read += 1
            members = 0
            for i in range(chunks):
                less, equal = _NONE, _ALL
                for p in range(_PLANES):
                    word = words[read + p * chunks + i]
                    less = bit_or(less, bit_and(bit_and(equal, leading[p]), bit_xor(word, _ALL)))
                    equal = bit_and(equal, bit_xor(bit_xor(word, leading[p]), _ALL))
                if i == chunks - 1 and bit_and(domain, _LOWEST) != _NONE:
                    less = bit_and(less, subtract(shift_left(_ONE, bit_and(domain, _LOWEST)), _ONE))
                if inside and np.int64(v >> np.uint64(6)) == i:
                    less = bit_and(less, bit_xor(shift_left(_ONE, bit_and(v, _LOWEST)), _ALL))
                scratch[i] = less
                members += np.int64(count_ones(less))
            read += _PLANES * chunks
            state[1], state[2], state[4] = 1, members, 1 if included else 0
            state[3] = size - 1 if included else size
        while state[2] != state[3]:
            if read == words.size:
                return read
            quarters = words[read]
            read += 1
            for _ in range(4):
                place = bit_and(quarters, subtract(places, _ONE))
                quarters = shift_right(quarters, _QUARTER)
                if place < domain and place != v:
                    chunk, bit = np.int64(place >> np.uint64(6)), shift_left(_ONE, bit_and(place, _LOWEST))
                    is_in = bit_and(scratch[chunk], bit) != _NONE
                    if (state[2] < state[3] and not is_in) or (state[2] > state[3] and is_in):
                        scratch[chunk] = bit_xor(scratch[chunk], bit)
                        state[2] += -1 if is_in else 1
        if state[4] == 1:
            scratch[v >> np.uint64(6)] |= shift_left(_ONE, bit_and(v, _LOWEST))
        for i in range(width):
            byte = shift_right(scratch[i >> 3], np.uint64(8 * (i & 7)))
            released[state[0], i] = np.uint8(byte & np.uint64(255))
        state[0] += 1
        state[1] = 0
    return read


@kernel
def count_columns(reports, counts):
    """Add to ``counts`` (int64, 8 for a byte) how many reports (uint8, two-dimensional) have each bit."""
    width = reports.shape[1]
    sums = np.zeros((8, width), np.uint8)
    for first in range(0, reports.shape[0], 255):
        sums[:] = 0
        for row in range(first, min(first + 255, reports.shape[0])):
            for bit in range(8):
                for i in range(width):
                    sums[bit, i] += (reports[row, i] >> np.uint8(bit)) & np.uint8(1)
        for i in range(width):
            for bit in range(8):
                counts[8 * i + bit] += np.int64(sums[bit, i])


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
