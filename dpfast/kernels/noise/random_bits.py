"""Bits that are 1 with any probability q, 64 rows to a word; randomized response of bits made of them.

Row i has a U of its own, uniform on [0, 1), and its bit is 1 if U < q. The first 8 bits of U lie in 8 planes: bit i of
plane p is bit p of row i's U, the most significant one first. Comparing plane by plane with the first 8 bits t of q
tells of 64 rows at once whether U < q, U >= q, or neither yet. One row in 256 is of the last kind: its first 8 bits
are t. These rows read 64 bits more, and compare them with the next 64 bits of q. A row that ties again, with
probability 2**-64, is left to a caller, and so are the rows for which there are no words.

Rows stand in words as Arrow keeps bits: the least significant bit is the first row.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import kernel
from dpfast.kernels.intrinsics import bit_and, bit_or, bit_xor, choose, count_ones, shift_right, subtract

__all__ = ["align_bits", "compare_planes", "respond_bits", "respond_numbers", "settle_ties"]

_NONE, _ONE, _TWO = np.uint64(0), np.uint64(1), np.uint64(2)
_ALL = np.uint64(2**64 - 1)
_LOWEST = np.uint64(63)


@kernel
def compare_planes(planes, leading, ones, ties):
    """Store where U < q, and where the first 8 bits do not tell.

    Parameters
    ----------
    planes
        uint64, 8 planes of as many words as ``ones``, one after the other.
    leading
        uint64, 8 of them: all ones where that bit of q is 1, else zero.
    ones, ties
        uint64: out.

    """
    size = ones.size
    for i in range(size):
        less, equal = _NONE, _ALL
        for p in range(8):
            word, bit = planes[p * size + i], leading[p]
            less = bit_or(less, bit_and(bit_and(equal, bit), bit_xor(word, _ALL)))
            equal = bit_and(equal, bit_xor(bit_xor(word, bit), _ALL))
        ones[i] = less
        ties[i] = equal


@kernel
def settle_ties(ones, ties, words, following, left):
    """Settle ties with 64 further bits each; return how many rows are left.

    Parameters
    ----------
    ones, ties
        As `compare_planes` left them; ``ones`` in and out.
    words
        uint64, the further bits: the first is the first tie's.
    following
        uint64, the 64 bits of q after the first 8.
    left
        int64, two for every row that is left: its number, and that of the word that it read, or -1 where there was
        none. It has place for all of them.

    """
    read = 0
    remaining = 0
    for i in range(ties.size):
        open_rows = ties[i]
        while open_rows != _NONE:
            lowest = bit_and(open_rows, subtract(_NONE, open_rows))
            open_rows = bit_xor(open_rows, lowest)
            if read < words.size and words[read] != following:
                ones[i] = bit_or(ones[i], choose(words[read] < following, lowest, _NONE))
            elif 2 * remaining + 1 < left.size:
                left[2 * remaining] = 64 * i + np.int64(count_ones(subtract(lowest, _ONE)))
                left[2 * remaining + 1] = read if read < words.size else -1
                remaining += 1
            read += 1
    return remaining


@kernel
def align_bits(source, first, target):
    """Copy bits from bit ``first`` (0 to 7) of ``source`` on into whole bytes; what lies past its end is zero."""
    up = np.uint8(8) - np.uint8(first)
    down = np.uint8(first)
    for i in range(target.size):
        low = source[i] if i < source.size else np.uint8(0)
        high = source[i + 1] if i + 1 < source.size else np.uint8(0)
        # A shift by 8 would be none.
        target[i] = low if first == 0 else np.uint8((low >> down) | (high << up))


@kernel
def respond_bits(values, valid, flips, fair, released):
    """Store each row's bit, flipped where ``flips`` is 1, and a fair one where it is not valid; all uint8, packed."""
    for i in range(released.size):
        known = valid[i]
        released[i] = bit_or(
            bit_and(known, bit_xor(values[i], flips[i])), bit_and(bit_xor(known, np.uint8(255)), fair[i])
        )


@kernel
def respond_numbers(values, flips, fair, released):
    """Do as `respond_bits` for rows that are numbers of any type; what is neither 0 nor 1 is not valid.

    ``flips`` and ``fair`` are uint64, packed; there may be more of them than rows.
    """
    for i in range(released.size >> 6):
        flip, coin = flips[i], fair[i]
        for j in range(64):
            value = np.uint64(values[64 * i + j])
            place = np.uint64(j)
            own = bit_xor(value, bit_and(shift_right(flip, place), _ONE))
            other = bit_and(shift_right(coin, place), _ONE)
            released[64 * i + j] = choose(value < _TWO, own, other)
    for row in range(released.size >> 6 << 6, released.size):
        value = np.uint64(values[row])
        place = bit_and(np.uint64(row), _LOWEST)
        own = bit_xor(value, bit_and(shift_right(flips[row >> 6], place), _ONE))
        other = bit_and(shift_right(fair[row >> 6], place), _ONE)
        released[row] = choose(value < _TWO, own, other)


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
