"""The second parts of words, 16 bits each, made where they are needed.

The n words of a chunk are 4 n bytes of first parts, and behind them 2 n bytes of second ones. Up to the scales that
float32 draws for, at most about one sample in 2**14 needs its second part. Where kernels make the keystream
(keystream.py), only the first parts are made for all, and a block of the cipher for each word that needs its second
one. The bits are the same, whoever makes them and when.

A kernel takes second parts as None for words of 32 bits; as an array (uint16); or as a tuple of an array, round keys
(uint64) and the counter of the chunk's first block (int64). If the array of a tuple is empty, they are made.
"""

from __future__ import annotations

import numpy as np
from numba import types

from dpfast.kernels.compilation import by_types, kernel
from dpfast.kernels.keystream import fill_words

__all__ = ["are_asked_last", "second_part", "those_at_once"]

_BLOCK, _BYTES = np.int64(16), np.int64(2)


@by_types(inline=True)
def are_asked_last(low):
    """Return whether second parts are read only for what the first ones do not decide in float64: those of a tuple."""
    last = isinstance(low, types.BaseTuple)
    return lambda low: last


@by_types(inline=True)
def those_at_once(low):
    """Return the second parts that are read from the beginning: none of a tuple."""
    if isinstance(low, types.BaseTuple):
        return lambda low: None
    return lambda low: low


@kernel
def _made_part(schedule, counter, words, i):
    """Encrypt the block with the second part of word ``i`` of a chunk of so many words; return the part (uint16)."""
    place = np.int64(4) * words + _BYTES * i
    block = np.empty(_BLOCK, np.uint8)
    fill_words(schedule, counter + place // _BLOCK, block)
    part = block.view(np.uint16)[place % _BLOCK // _BYTES]
    block[:] = np.uint8(0)
    return part


@by_types(inline=False)
def second_part(low, words, i):
    """Return the second part (uint16) of word ``i``, of so many words of a chunk."""
    if isinstance(low, types.BaseTuple):

        def of_tuple(low, words, i):
            parts, schedule, counter = low
            return parts[i] if parts.size > 0 else _made_part(schedule, counter, words, i)

        return of_tuple
    return lambda low, words, i: low[i]


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
