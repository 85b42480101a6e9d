"""Laplace noise on a column, block by block: in float32, what that leaves open in float64 from the same bits, released.

A block is small enough for all that happens to it to stay in the nearest cache. What both leave open is listed for
the caller. `laplace.py` has the bounds; which precision decides a sample changes no bit of it.
"""

from __future__ import annotations

import numpy as np
from numba import types

from dpfast.kernels.compilation import by_types, inlined, kernel
from dpfast.kernels.intrinsics import bit_and, bit_or, choose, shift_right, subtract, trailing_zeros
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

__all__ = [
    "NOISE_WORDS",
    "WORK_WORDS",
    "draw_laplace_on_grids",
    "draw_laplace_on_ones",
    "release_laplace_on_grids",
    "release_laplace_on_ones",
]

BLOCK = 512
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
_NO_MARKS, _ONE_MARK, _MARK_BITS = np.uint64(0), np.uint64(1), np.uint64(3)
_NO_ROWS = np.int64(0)
_NOTHING, _NOTHING_F32 = 0.0, np.float32(0.0)


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
def _settle(size, m_plus_one, gathered, offsets, found, decided):
    """Draw in float64 for the first ``size`` words that are gathered."""
    _, signs, rest, scales, fractions = gathered
    for k in range(size):
        n, certain = laplace_f64(rest[k], m_plus_one, signs[k], scales[k], offsets[k], fractions[k])
        found[k] = n
        decided[k] = choose(certain, _OPEN, _CLOSED)


@by_types(inline=True)
def _find_offsets(offset, scales, size, offsets):
    """Set what discrete noise adds before rounding: the offset of all, or that of each scale where it is None."""
    if isinstance(offset, types.NoneType):

        def of_each(offset, scales, size, offsets):
            for k in range(size):
                offsets[k] = discrete_offset(scales[k])

        return of_each

    def of_all(offset, scales, size, offsets):
        for k in range(size):
            offsets[k] = offset

    return of_all


@inlined
def _views(work):
    """Return the work memory by what stands there; see above."""
    marks = work[_MARKS:_FIRST]
    gathered = (
        work[_PLACES:_SIGNS].view(np.int64),
        work[_SIGNS:_REST],
        work[_REST:_OPEN_SCALES],
        work[_OPEN_SCALES:_OFFSETS].view(np.float64),
        work[_FRACTIONS:_FOUND].view(np.float64),
    )
    offsets, found = work[_OFFSETS:_FRACTIONS].view(np.float64), work[_FOUND:_DECIDED].view(np.int32)
    decided = work[_DECIDED:WORK_WORDS].view(np.uint8)
    return work[:_HALF].view(np.int32), marks.view(np.uint8), marks, gathered, offsets, found, decided


@kernel
def _settle_open(high, low, scale, offset, values, position, first, start, stop, views, count, undecided):
    """Settle the marked rows of a block in float64; return how many are undecided then, altogether.

    The block has the rows from ``start`` up to ``stop``; of ``scale`` and ``position`` the entry ``first`` is that of
    its first row. The rows that stay open are put into ``undecided`` from ``count`` on.
    """
    noise, marks, groups, gathered, offsets, found, decided = views
    places, signs, rest, scales, fractions = gathered
    size = stop - start
    number = (size + 7) // 8
    for i in range(size, 8 * number):
        marks[i] = _CLOSED
    m_plus_one, some = 0.0, _NO_ROWS
    for group in range(number):
        left = groups[group]
        while left != _NO_MARKS:
            i = 8 * group + np.int64(shift_right(trailing_zeros(left), _MARK_BITS))
            left = bit_and(left, subtract(left, _ONE_MARK))
            sign, r, m_plus_one = leading_bits(high, low, start + i)
            places[some] = i
            signs[some] = sign
            rest[some] = r
            scales[some] = at(scale, first + i)
            fractions[some] = fraction_of(at(values, start + i), at(position, first + i))
            some += 1
    padded = min((some + _PADDING - 1) // _PADDING * _PADDING, BLOCK)
    for k in range(some, padded):
        signs[k] = _NO_MARKS
        rest[k] = _NO_MARKS
        scales[k] = 1.0
        fractions[k] = _NOTHING
    _find_offsets(offset, scales, padded, offsets)
    _settle(padded, m_plus_one, gathered, offsets, found, decided)
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
def _draw_wide(high, low, scale, work, start, stop, count, undecided):
    """Draw a block of wide scales in float64 alone, from long words; of others there is none."""
    if isinstance(low, types.NoneType) or not isinstance(scale, types.Array):
        return lambda high, low, scale, work, start, stop, count, undecided: count

    def long(high, low, scale, work, start, stop, count, undecided):
        size = stop - start
        noise = work[:_HALF].view(np.int32)[:size]
        same, offsets = work[_SCALES:_GRIDS].view(np.float64)[:size], work[_GRIDS:_INVERSES].view(np.float64)[:size]
        prepare_discrete(scale[start:stop], same, offsets)
        if draw_laplace_f64(high[start:stop], low[start:stop], same, offsets, None, None, noise) != np.uint32(0):
            for i in range(size):
                if noise[i] == UNDECIDED:
                    undecided[count] = start + i
                    count += 1
        return count

    return long


@kernel
def _draw_block_on_ones(high, low, scale, offset, start, stop, work, views, count, undecided):
    """Draw for the rows of a block; return how many are undecided then, altogether."""
    scales, offsets, wide = _ones_of(part(scale, start, stop), offset, work)
    if wide:
        return _draw_wide(high, low, scale, work, start, stop, count, undecided)
    if _draw_f32(high[start:stop], scales, offsets, None, views[0][: stop - start], views[1]) == _CLOSED:
        return count
    return _settle_open(high, low, scale, offset, None, None, start, start, stop, views, count, undecided)


@kernel
def _draw_block_on_grids(high, low, scale, values, position, first, start, stop, work, views, count, undecided):
    """Draw as `_draw_block_on_ones`; of ``scale`` and ``position`` the entry ``first`` is that of the first row."""
    last, fractions = first + stop - start, work[_FIRST:_SECOND].view(np.float32)[: stop - start]
    _find_fractions(values[start:stop], part(position, first, last), fractions)
    narrow = _narrowed(part(scale, first, last), work)
    if _draw_f32(high[start:stop], narrow, _NOTHING_F32, fractions, views[0][: stop - start], views[1]) == _CLOSED:
        return count
    return _settle_open(high, low, scale, _NOTHING, values, position, first, start, stop, views, count, undecided)


@inlined
def _keep(views, start, stop, before, count, undecided, noise):
    """Copy a block's noise, with UNDECIDED where it is."""
    drawn = views[0]
    for i in range(stop - start):
        noise[start + i] = drawn[i]
    for k in range(before, count):
        noise[undecided[k]] = UNDECIDED


@kernel
def draw_laplace_on_ones(high, low, scale, offset, work, undecided, noise):
    """Fill ``noise`` (int32), with UNDECIDED where it is; return how many are, listed in ``undecided``.

    The others are as for `release_laplace_on_ones`.
    """
    count, views = _NO_ROWS, _views(work)
    for start in range(0, noise.size, BLOCK):
        stop, before = min(start + BLOCK, noise.size), count
        count = _draw_block_on_ones(high, low, scale, offset, start, stop, work, views, count, undecided)
        _keep(views, start, stop, before, count, undecided, noise)
    return count


@kernel
def draw_laplace_on_grids(high, low, scale, values, position, work, undecided, noise):
    """Fill ``noise`` (int32) as `draw_laplace_on_ones`.

    ``scale`` in units of the grid and ``position``, 1 / grid, are numbers or have one entry a row.
    """
    count, views = _NO_ROWS, _views(work)
    for start in range(0, noise.size, BLOCK):
        stop, before = min(start + BLOCK, noise.size), count
        count = _draw_block_on_grids(
            high, low, scale, values, position, start, start, stop, work, views, count, undecided
        )
        _keep(views, start, stop, before, count, undecided, noise)
    return count


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
    count, views = _NO_ROWS, _views(work)
    for start in range(0, released.size, BLOCK):
        stop = min(start + BLOCK, released.size)
        count = _draw_block_on_ones(high, low, scale, offset, start, stop, work, views, count, undecided)
        add_noise(values[start:stop], views[0][: stop - start], smallest, largest, released[start:stop])
    return count


@by_types(inline=True)
def _grids_of(scale, position, grid, start, stop, work):
    """Prepare a block's grids: (scale / grid, 1 / grid, grid, where its first entries stand), numbers or arrays."""
    if isinstance(scale, types.Array):

        def of_rows(scale, position, grid, start, stop, work):
            size = stop - start
            scales, inverses = work[_SCALES:_GRIDS].view(np.float64)[:size], work[_INVERSES:_PLACES].view(np.float64)
            grids = work[_GRIDS:_INVERSES].view(np.float64)[:size]
            prepare_grid(scale[start:stop], inverses[:size], grids, scales)
            return scales, inverses[:size], grids, _NO_ROWS

        return of_rows

    return lambda scale, position, grid, start, stop, work: (scale, position, grid, _NO_ROWS)


@by_types(inline=True)
def _narrowed(scale, work):
    """Return a scale, or those of a block, in float32."""
    if isinstance(scale, types.Array):

        def of_rows(scale, work):
            narrow = work[_SECOND:_SCALES].view(np.float32)[: scale.size]
            for i in range(scale.size):
                narrow[i] = np.float32(scale[i])
            return narrow

        return of_rows

    return lambda scale, work: np.float32(scale)


@kernel
def _find_fractions(values, position, fractions):
    for i in range(values.size):
        fractions[i] = np.float32(fraction_of(values[i], at(position, i)))


@kernel
def release_laplace_on_grids(high, low, scale, position, grid, values, largest, work, released, undecided):
    """Release floats with Laplace noise on their grids; return how many rows stay undecided, listed in ``undecided``.

    Parameters
    ----------
    high, low, work, undecided
        As for `release_laplace_on_ones`.
    scale, position, grid
        float64: the scale in units of the grid, 1 / grid and the grid; or one scale a row, in no unit, and None twice.
    values
        float64 or float32; what is not finite stays undecided.
    largest
        The largest number that is released.
    released
        Of the same type.

    """
    count, views = _NO_ROWS, _views(work)
    for start in range(0, released.size, BLOCK):
        stop = min(start + BLOCK, released.size)
        scales, inverses, grids, first = _grids_of(scale, position, grid, start, stop, work)
        count = _draw_block_on_grids(
            high, low, scales, values, inverses, first, start, stop, work, views, count, undecided
        )
        join_grid(values[start:stop], inverses, grids, views[0][: stop - start], largest, released[start:stop])
    return count


NOISE_WORDS = _HALF
"""How many of the work memory's first words hold noise."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): 4fded7752047baae
