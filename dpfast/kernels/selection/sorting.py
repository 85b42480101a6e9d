"""Numbers in order: a threshold that the largest ones reach, and a sort of float64 by their first bits."""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import kernel
from dpfast.kernels.intrinsics import add, bit_and, bit_xor, shift_left, shift_right, subtract
from dpfast.kernels.selection.differences import ordered, unordered

__all__ = ["sort_descending", "threshold_of_largest"]

_SIGN, _ZERO = np.uint64(1 << 63), np.uint64(0)
_ALL = np.uint64(2**64 - 1)
#: From so many numbers on, digits have 11 bits.
_LONG = 4096
_DIGIT_BITS, _DIGIT, _DIGITS = np.uint64(11), np.uint64(2047), 2048
_FIRST_SHIFT = np.uint64(53)


@kernel
def threshold_of_largest(keys, wanted, counts):
    """Return a number that at least ``wanted`` of the keys (int64) are not below, and not many more.

    Digit by digit, of 11 bits: how many keys have each value of it, among those that agree with the wanted-th largest
    in the digits before. It ends where the rest makes few more. ``counts`` is scratch memory, 2048 int64.
    """
    shift, prefix, left, few = _FIRST_SHIFT, _ZERO, wanted, wanted // 64 + 16
    while True:
        counts[:] = 0
        if shift == _FIRST_SHIFT:
            for i in range(keys.size):
                counts[np.int64(shift_right(bit_xor(np.uint64(keys[i]), _SIGN), _FIRST_SHIFT))] += 1
        else:
            above = shift + _DIGIT_BITS if shift > _ZERO else np.uint64(9)
            mask = _DIGIT if shift > _ZERO else np.uint64(511)
            for i in range(keys.size):
                key = bit_xor(np.uint64(keys[i]), _SIGN)
                if shift_right(key, above) == prefix:
                    counts[np.int64(bit_and(shift_right(key, shift), mask))] += 1
        digit = _DIGITS - 1
        while counts[digit] < left:
            left -= counts[digit]
            digit -= 1
        width = _DIGIT_BITS if shift > _ZERO else np.uint64(9)
        prefix = np.uint64(digit) if shift == _FIRST_SHIFT else shift_left(prefix, width) + np.uint64(digit)
        if counts[digit] - left <= few or shift == _ZERO:
            return np.int64(bit_xor(shift_left(prefix, shift), _SIGN))
        shift = shift - _DIGIT_BITS if shift > _DIGIT_BITS else _ZERO


@kernel
def sort_descending(lows, highs, places):
    """Sort numbers (float64, no NaN), the largest first up to nearly equal ones, and two other arrays with them.

    Up to 2**32 of them. Digit by digit, the last first, over the first 40 or 44 bits by which their ordered integers
    differ: numbers that agree in these keep the order in which they came. A caller checks the order that it relies on.
    """
    size = lows.size
    keys, other_keys = np.empty(size, np.uint64), np.empty(size, np.uint64)
    order, other_order = np.empty(size, np.uint32), np.empty(size, np.uint32)
    least, most = _ALL, _ZERO
    for i in range(size):
        # Complements descend where the numbers ascend.
        key = bit_xor(bit_xor(np.uint64(ordered(lows[i])), _SIGN), _ALL)
        keys[i], order[i] = key, i
        least, most = min(least, key), max(most, key)
    bits, digits = (np.uint64(8), 5) if size < _LONG else (np.uint64(11), 4)
    span, shift = subtract(most, least), _ZERO
    while shift_right(shift_right(span, shift), bits * np.uint64(digits)) != _ZERO:
        shift = add(shift, np.uint64(1))
    mask = subtract(shift_left(np.uint64(1), bits), np.uint64(1))
    starts = np.empty(np.int64(mask) + 1, np.int64)
    for _ in range(digits):
        if shift_right(span, shift) == _ZERO:
            break
        starts[:] = 0
        for i in range(size):
            starts[np.int64(bit_and(shift_right(subtract(keys[i], least), shift), mask))] += 1
        place = 0
        for digit in range(starts.size):
            starts[digit], place = place, place + starts[digit]
        for i in range(size):
            digit = np.int64(bit_and(shift_right(subtract(keys[i], least), shift), mask))
            to = starts[digit]
            other_keys[to], other_order[to] = keys[i], order[i]
            starts[digit] = to + 1
        keys, other_keys, order, other_order = other_keys, keys, other_order, order
        shift = add(shift, bits)
    other_highs, other_places = highs.copy(), places.copy()
    for i in range(size):
        came = np.int64(order[i])
        lows[i] = unordered(np.int64(bit_xor(bit_xor(keys[i], _ALL), _SIGN)))
        highs[i], places[i] = other_highs[came], other_places[came]


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
