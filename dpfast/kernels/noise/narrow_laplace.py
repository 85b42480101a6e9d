"""Laplace noise on a column, block by block: in float32, what that leaves open in float64 from the same bits, released.

A block is small enough for all that happens to it to stay in the nearest cache. What both leave open is listed for
the caller. `laplace.py` has the bounds; which precision decides a sample changes no bit of it.
"""

from __future__ import annotations

import numpy as np
from numba import types

from dpfast.kernels.compilation import by_types, kernel
from dpfast.kernels.intrinsics import bit_or, choose
from dpfast.kernels.noise.fractions import fraction_of
from dpfast.kernels.noise.joining import add_noise, join_grid
from dpfast.kernels.noise.laplace import (
    LARGEST_NARROW_SCALE,
    UNDECIDED,
    draw_laplace_f64,
    laplace_f32,
    laplace_f64,
    leading_bits,
)
from dpfast.kernels.noise.offsets import discrete_offset
from dpfast.kernels.noise.preparation import prepare_discrete, prepare_grid, prepare_narrow
from dpfast.kernels.parameters import at, part

__all__ = ["NOISE_WORDS", "WORK_WORDS", "release_laplace_on_grids", "release_laplace_on_ones"]

BLOCK = 1024
_HALF, _EIGHTH = BLOCK // 2, BLOCK // 8

#: What stands where in the work memory, in words of 64 bits: first what has one entry a row of the block.
_MARKS = _HALF
_FIRST = _MARKS + _EIGHTH
_SECOND = _FIRST + _HALF
_SCALES = _SECOND + _HALF
_GRIDS = _SCALES + BLOCK
_INVERSES = _GRIDS + BLOCK
#: Then one entry for each row that float32 leaves open.
_PLACES = _INVERSES + BLOCK
_SIGNS = _PLACES + BLOCK
_REST = _SIGNS + BLOCK
_OPEN_SCALES = _REST + BLOCK
_OFFSETS = _OPEN_SCALES + BLOCK
_FRACTIONS = _OFFSETS + BLOCK
_FOUND = _FRACTIONS + BLOCK
_DECIDED = _FOUND + _HALF
WORK_WORDS = _DECIDED + _EIGHTH
"""How many words of 64 bits the work memory has."""

#: Samples are settled so many at a time, so that whole vectors are filled.
_PADDING = 32
_OPEN, _CLOSED = np.uint8(1), np.uint8(0)
_NO_MARKS = np.uint64(0)
_NO_ROWS = np.int64(0)
_NOTHING = 0.0


@kernel
def _draw_f32(high, scale, offset, fraction, noise, marks):
    """Fill ``noise`` in float32 and mark what is open; return 1 if anything is."""
    any_open = _CLOSED
    for i in range(noise.size):
        one = at(scale, i)
        n, decided = laplace_f32(high[i], scale, one, at(offset, i), at(fraction, i))
        noise[i] = n
        mark = choose(decided, _CLOSED, _OPEN)
        marks[i] = mark
        any_open = bit_or(any_open, mark)
    return any_open


@kernel
def _settle(rest, m_plus_one, signs, scales, offsets, fractions, found, decided):
    """Draw in float64 for words that are gathered."""
    for k in range(rest.size):
        n, certain = laplace_f64(rest[k], m_plus_one, signs[k], scales[k], offsets[k], fractions[k])
        found[k] = n
        decided[k] = choose(certain, _OPEN, _CLOSED)


@by_types(inline=True)
def _find_offsets(offset, scales, offsets):
    """Set what discrete noise adds before rounding: the offset of all, or that of each scale where it is None."""
    if isinstance(offset, types.NoneType):

        def of_each(offset, scales, offsets):
            for k in range(scales.size):
                offsets[k] = discrete_offset(scales[k])

        return of_each

    def of_all(offset, scales, offsets):
        for k in range(scales.size):
            offsets[k] = offset

    return of_all


@kernel
def _settle_open(high, low, scale, offset, values, position, start, work, count, undecided):
    """Settle the marked rows of the block that begins at ``start`` in float64; return how many are undecided then.

    ``scale`` is a number or one a row of the block, in units of the grid; ``values`` and ``position`` are the block's.
    The rows that stay open are put into ``undecided`` from ``count`` on.
    """
    size = high.size
    noise, marks = work[:_HALF].view(np.int32), work[_MARKS:_FIRST].view(np.uint8)
    groups, places = work[_MARKS:_FIRST], work[_PLACES:_SIGNS].view(np.int64)
    signs, rest = work[_SIGNS:_REST], work[_REST:_OPEN_SCALES]
    scales, offsets = work[_OPEN_SCALES:_OFFSETS].view(np.float64), work[_OFFSETS:_FRACTIONS].view(np.float64)
    fractions, found = work[_FRACTIONS:_FOUND].view(np.float64), work[_FOUND:_DECIDED].view(np.int32)
    decided = work[_DECIDED:WORK_WORDS].view(np.uint8)
    marks[size : (size + 7) // 8 * 8] = _CLOSED
    m_plus_one, some = 0.0, _NO_ROWS
    for group in range((size + 7) // 8):
        if groups[group] == _NO_MARKS:
            continue
        for i in range(8 * group, min(8 * group + 8, size)):
            if marks[i] != _CLOSED:
                sign, r, m_plus_one = leading_bits(high, low, i)
                places[some] = i
                signs[some] = sign
                rest[some] = r
                scales[some] = at(scale, i)
                fractions[some] = fraction_of(at(values, i), at(position, i))
                some += 1
    padded = min((some + _PADDING - 1) // _PADDING * _PADDING, BLOCK)
    for k in range(some, padded):
        signs[k] = _NO_MARKS
        rest[k] = _NO_MARKS
        scales[k] = 1.0
        fractions[k] = _NOTHING
    _find_offsets(offset, scales[:padded], offsets[:padded])
    _settle(
        rest[:padded], m_plus_one, signs[:padded], scales[:padded], offsets[:padded], fractions[:padded],
        found[:padded], decided[:padded],
    )  # fmt: skip
    for k in range(some):
        noise[places[k]] = found[k]
        if decided[k] == _CLOSED:
            undecided[count] = start + places[k]
            count += 1
        # No random bits stay here.
        rest[k] = _NO_MARKS
        found[k] = np.int32(0)
    return count


@by_types(inline=True)
def _ones_of(scale, offset, work):
    """Prepare a block's scales and offsets in float32: (scale, offset, whether a scale is too large for float32)."""
    if isinstance(scale, types.Array):

        def of_rows(scale, offset, work):
            scales = work[_FIRST:_SECOND].view(np.float32)[: scale.size]
            offsets = work[_SECOND:_SCALES].view(np.float32)[: scale.size]
            wide = prepare_narrow(scale, LARGEST_NARROW_SCALE, scales, offsets)
            return scales, offsets, wide

        return of_rows

    return lambda scale, offset, work: (np.float32(scale), np.float32(offset), False)


@by_types(inline=True)
def _draw_wide(high, low, scale, work, start, count, undecided):
    """Draw a block of wide scales in float64 alone, from long words; of others there is none."""
    if isinstance(low, types.NoneType) or not isinstance(scale, types.Array):
        return lambda high, low, scale, work, start, count, undecided: count

    def long(high, low, scale, work, start, count, undecided):
        size = high.size
        noise = work[:_HALF].view(np.int32)[:size]
        same, offsets = work[_SCALES:_GRIDS].view(np.float64)[:size], work[_GRIDS:_INVERSES].view(np.float64)[:size]
        prepare_discrete(scale, same, offsets)
        if draw_laplace_f64(high, low, same, offsets, None, None, noise) != np.uint32(0):
            for i in range(size):
                if noise[i] == UNDECIDED:
                    undecided[count] = start + i
                    count += 1
        return count

    return long


@kernel
def release_laplace_on_ones(high, low, scale, offset, values, smallest, largest, work, released, undecided):
    """Release integers with discrete Laplace noise; return how many rows stay undecided, listed in ``undecided``.

    Parameters
    ----------
    high, low
        The words: 32 bits (uint32), and 16 more (uint16) or None.
    scale, offset
        float64: one number and its offset; or one a row, and None. A number is at most LARGEST_NARROW_SCALE, and all of
        a row are where words are short.
    values
        int64, int32 or uint32.
    smallest, largest
        The limits of what is released.
    work
        WORK_WORDS words (uint64), whose first NOISE_WORDS hold noise afterwards.
    released
        int64 or int32 as the limits allow. What stands there for undecided rows means nothing.
    undecided
        int64, as long as the rows.

    """
    count = _NO_ROWS
    for start in range(0, released.size, BLOCK):
        stop = min(start + BLOCK, released.size)
        size = stop - start
        noise, marks = work[:_HALF].view(np.int32)[:size], work[_MARKS:_FIRST].view(np.uint8)[:size]
        words, rest, exact = high[start:stop], part(low, start, stop), part(scale, start, stop)
        scales, offsets, wide = _ones_of(exact, offset, work)
        if wide:
            count = _draw_wide(words, rest, exact, work, start, count, undecided)
        elif _draw_f32(words, scales, offsets, None, noise, marks) != _CLOSED:
            count = _settle_open(words, rest, exact, offset, None, None, start, work, count, undecided)
        add_noise(values[start:stop], noise, smallest, largest, released[start:stop])
    return count


@by_types(inline=True)
def _grids_of(scale, position, grid, work):
    """Prepare a block's grids: (1 / grid, grid, scale / grid, and that in float32), numbers or one a row."""
    if isinstance(scale, types.Array):

        def of_rows(scale, position, grid, work):
            size = scale.size
            scales, narrow = work[_SCALES:_GRIDS].view(np.float64)[:size], work[_SECOND:_SCALES].view(np.float32)[:size]
            grids, inverses = work[_GRIDS:_INVERSES].view(np.float64)[:size], work[_INVERSES:_PLACES].view(np.float64)
            prepare_grid(scale, inverses[:size], grids, scales)
            for i in range(size):
                narrow[i] = np.float32(scales[i])
            return inverses[:size], grids, scales, narrow

        return of_rows

    return lambda scale, position, grid, work: (position, grid, scale, np.float32(scale))


@kernel
def _find_fractions(values, position, fractions):
    for i in range(fractions.size):
        fractions[i] = np.float32(fraction_of(values[i], at(position, i)))


@kernel
def release_laplace_on_grids(high, low, scale, position, grid, values, largest, work, released, undecided):
    """Release floats with Laplace noise on their grids; return how many rows stay undecided, listed in ``undecided``.

    Parameters
    ----------
    high, low, work, undecided
        As for `release_laplace_on_ones`.
    scale, position, grid
        float64: the scale in units of the grid, 1 / grid and the grid; or one scale a row, in no unit, and None for both.
    values
        float64 or float32; what is not finite stays undecided.
    largest
        The largest number that is released.
    released
        Of the same type.

    """
    count = _NO_ROWS
    for start in range(0, released.size, BLOCK):
        stop = min(start + BLOCK, released.size)
        size = stop - start
        noise, marks = work[:_HALF].view(np.int32)[:size], work[_MARKS:_FIRST].view(np.uint8)[:size]
        words, rest, given = high[start:stop], part(low, start, stop), values[start:stop]
        inverses, grids, scales, narrow = _grids_of(part(scale, start, stop), position, grid, work)
        fractions = work[_FIRST:_SECOND].view(np.float32)[:size]
        _find_fractions(given, inverses, fractions)
        if _draw_f32(words, narrow, _NOTHING, fractions, noise, marks) != _CLOSED:
            count = _settle_open(words, rest, scales, _NOTHING, given, inverses, start, work, count, undecided)
        join_grid(given, inverses, grids, noise, largest, released[start:stop])
    return count


NOISE_WORDS = _HALF
"""How many of the work memory's first words hold noise."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): 8db3440a9c93b2d7
