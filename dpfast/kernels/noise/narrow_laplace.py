"""Laplace noise on a column, block by block: in float32, what that leaves open in float64 from the same bits, released.

A block is so short that all its memory stays in the nearest cache. What neither precision decides is listed for the
caller. laplace.py has the bounds; which precision decides a sample changes no bit of it.
"""

from __future__ import annotations

import numpy as np
from numba import types

from dpfast.kernels.compilation import by_types, inlined, kernel
from dpfast.kernels.intrinsics import bit_and, bit_or, choose, shift_right, subtract, trailing_zeros
from dpfast.kernels.noise.fractions import fraction_of
from dpfast.kernels.noise.laplace import (
    ALL_BITS,
    LARGEST_NARROW_SCALE,
    UNDECIDED,
    bits_read,
    draw_laplace_f64,
    laplace_f32,
    laplace_f64,
    laplace_value_f32,
    leading_bits,
    with_more_bits,
    with_second_part,
)
from dpfast.kernels.noise.offsets import discrete_offset
from dpfast.kernels.noise.preparation import prepare_discrete, prepare_grid, prepare_narrow
from dpfast.kernels.noise.releasing import release_block_on_ones, release_row_on_grid, release_row_on_ones
from dpfast.kernels.noise.second_parts import second_part, those_at_once
from dpfast.kernels.noise.sums import mark_open, sum_block
from dpfast.kernels.parameters import at, part
from dpfast.kernels.views import borrowed

__all__ = ["NOISE_WORDS", "WORK_WORDS", "release_laplace_on_grids", "release_laplace_on_ones"]

BLOCK = 512
"""Few enough for the processor to fetch the next block's values while it draws for this one."""
#: So many open samples are settled at a time, filled up to a multiple of the second: whole vectors.
_ENOUGH, _PADDING = 64, 32
_LIST = BLOCK + _ENOUGH
_HALF, _EIGHTH = BLOCK // 2, BLOCK // 8

#: What stands where in the work memory, in words of 64 bits: first what has one entry a row of the block.
_DISTANCES = _HALF
_LIMITS = _DISTANCES + _HALF
_MARKS = _LIMITS + _HALF
_FIRST = _MARKS + _EIGHTH
_SECOND = _FIRST + _HALF
_SCALES = _SECOND + _HALF
_GRIDS = _SCALES + BLOCK
_INVERSES = _GRIDS + BLOCK
#: Then one entry for each row that float32 leaves open.
_ROWS = _INVERSES + BLOCK
_SIGNS = _ROWS + _LIST
_REST = _SIGNS + _LIST
_OPEN_SCALES = _REST + _LIST
_FRACTIONS = _OPEN_SCALES + _LIST
_POSITIONS = _FRACTIONS + _LIST
_OPEN_GRIDS = _POSITIONS + _LIST
_OFFSETS = _OPEN_GRIDS + _LIST
_FOUND = _OFFSETS + _LIST
_DECIDED = _FOUND + _LIST // 2
WORK_WORDS = _DECIDED + _LIST // 8
"""How many words of 64 bits the work memory has."""

NOISE_WORDS = _MARKS
"""How many of its first words hold noise, or what noise can be told from."""

_OPEN, _CLOSED = np.uint8(1), np.uint8(0)
_NO_MARKS, _ONE_MARK, _MARK_BITS = np.uint64(0), np.uint64(1), np.uint64(3)
_NO_ROWS, _NO_NOISE = np.int64(0), np.int32(0)
_NOTHING = 0.0


@kernel
def _draw_f32(high, scale, offset, noise, marks):
    """Fill ``noise`` in float32 and mark what is open; return 1 if anything is."""
    any_open = _CLOSED
    for i in range(noise.size):
        one = at(scale, i)
        n, decided = laplace_f32(high[i], scale, one, at(offset, i))
        noise[i] = n
        mark = choose(decided, _CLOSED, _OPEN)
        marks[i] = mark
        any_open = bit_or(any_open, mark)
    return any_open


@kernel
def _draw_values_f32(high, scale, values, limits):
    """Fill ``values`` with noise (float32), and ``limits`` with how far from an integer a sum with it may be."""
    for i in range(values.size):
        v, limit = laplace_value_f32(high[i], scale, at(scale, i))
        values[i] = v
        limits[i] = limit


@inlined
def _views(work):
    """Return the work memory by what stands there: of the block, and of the samples that are open."""
    marks = work[_MARKS:_FIRST]
    opened = (
        work[_ROWS:_SIGNS].view(np.int64),
        work[_SIGNS:_REST],
        work[_REST:_OPEN_SCALES],
        work[_OPEN_SCALES:_FRACTIONS].view(np.float64),
        work[_FRACTIONS:_POSITIONS].view(np.float64),
        work[_POSITIONS:_OPEN_GRIDS].view(np.float64),
        work[_OPEN_GRIDS:_OFFSETS].view(np.float64),
    )
    settled = (
        work[_OFFSETS:_FOUND].view(np.float64),
        work[_FOUND:_DECIDED].view(np.int32),
        work[_DECIDED:WORK_WORDS].view(np.uint8),
    )
    return (work[:_HALF].view(np.int32), marks.view(np.uint8), marks), opened, settled


@by_types(inline=True)
def _number(parameter, row):
    """Return the parameter of a row, 0.0 where there is none."""
    if isinstance(parameter, types.NoneType):
        return lambda parameter, row: 0.0
    return lambda parameter, row: at(parameter, row)


@kernel
def _gather(high, scale, values, position, grid, first, start, stop, block, opened, some):
    """Put a block's marked rows behind the ``some`` that are open already; return how many there are then.

    The block has the rows from ``start`` up to ``stop``; of ``scale``, ``position`` and ``grid`` the entry ``first`` is
    that of its first row.
    """
    _, marks, groups = block
    rows, signs, rest, scales, fractions, positions, grids = opened
    size = stop - start
    number = (size + 7) // 8
    for i in range(size, 8 * number):
        marks[i] = _CLOSED
    for group in range(number):
        left = groups[group]
        while left != _NO_MARKS:
            i = 8 * group + np.int64(shift_right(trailing_zeros(left), _MARK_BITS))
            left = bit_and(left, subtract(left, _ONE_MARK))
            rows[some] = start + i
            signs[some], rest[some] = leading_bits(high, start + i)
            scales[some] = at(scale, first + i)
            fractions[some] = fraction_of(at(values, start + i), at(position, first + i))
            positions[some] = _number(position, first + i)
            grids[some] = _number(grid, first + i)
            some += 1
    return some


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


@by_types(inline=False)
def _settle_last(some, low, words, opened, settled):
    """Draw once more, from all bits, for those of a chunk's ``words`` whose first parts do not decide."""
    if not isinstance(low, types.BaseTuple):
        return lambda some, low, words, opened, settled: None

    def settle(some, low, words, opened, settled):
        rows, signs, rest, scales, fractions, _, _ = opened
        offsets, found, decided = settled
        for k in range(some):
            # No number of bits decides what is added to NaN.
            if decided[k] == _CLOSED and fractions[k] == fractions[k]:
                r = with_second_part(rest[k], second_part(low, words, rows[k]))
                n, certain = laplace_f64(r, ALL_BITS + 1.0, signs[k], scales[k], offsets[k], fractions[k])
                found[k] = n
                decided[k] = choose(certain, _OPEN, _CLOSED)

    return settle


@kernel
def _settle(some, low, words, offset, opened, settled):
    """Draw in float64 for the words that are open, of a chunk of so many; wipe them."""
    rows, signs, rest, scales, fractions, _, _ = opened
    offsets, found, decided = settled
    at_once = those_at_once(low)
    # Many at a time: the rest of a word is seldom in the nearest cache, and one need not wait for another.
    for k in range(some):
        rest[k] = with_more_bits(rest[k], at_once, rows[k])
    m_plus_one = bits_read(at_once) + 1.0
    size = (some + _PADDING - 1) // _PADDING * _PADDING
    for k in range(some, size):
        signs[k] = _NO_MARKS
        rest[k] = _NO_MARKS
        scales[k] = 1.0
        fractions[k] = _NOTHING
    _find_offsets(offset, scales, size, offsets)
    for k in range(size):
        n, certain = laplace_f64(rest[k], m_plus_one, signs[k], scales[k], offsets[k], fractions[k])
        found[k] = n
        decided[k] = choose(certain, _OPEN, _CLOSED)
    _settle_last(some, low, words, opened, settled)
    for k in range(size):
        signs[k] = _NO_MARKS
        rest[k] = _NO_MARKS


@kernel
def _list_undecided(some, opened, settled, count, undecided):
    """List what float64 did not decide either, behind ``count`` rows; return how many are listed then."""
    rows, decided = opened[0], settled[2]
    for k in range(some):
        if decided[k] == _CLOSED:
            undecided[count] = rows[k]
            count += 1
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
        int64, int32 or uint32; None for the noise alone.
    smallest, largest
        The limits of what is released.
    work
        WORK_WORDS words (uint64), whose first NOISE_WORDS hold noise afterwards.
    released
        int64 or int32 as the limits allow. What stands there for undecided rows means nothing.
    undecided
        int64, as long as the rows; listed in no order.

    """
    count, some = _NO_ROWS, _NO_ROWS
    high, low, scale, values = borrowed(high), borrowed(low), borrowed(scale), borrowed(values)
    released, undecided = borrowed(released), borrowed(undecided)
    work = borrowed(work)
    block, opened, settled = _views(work)
    for start in range(0, released.size, BLOCK):
        stop = min(start + BLOCK, released.size)
        drawn = block[0][: stop - start]
        scales, offsets, wide = _ones_of(part(scale, start, stop), offset, work)
        if wide:
            count = _draw_wide(high, low, scale, work, start, stop, count, undecided)
        elif _draw_f32(high[start:stop], scales, offsets, drawn, block[1]) != _CLOSED:
            some = _gather(high, scale, None, None, None, start, start, stop, block, opened, some)
        release_block_on_ones(part(values, start, stop), drawn, smallest, largest, released[start:stop])
        if some >= _ENOUGH or (some > _NO_ROWS and stop == released.size):
            _settle(some, low, high.size, offset, opened, settled)
            for k in range(some):
                release_row_on_ones(values, opened[0][k], settled[1][k], smallest, largest, released)
                settled[1][k] = _NO_NOISE
            count = _list_undecided(some, opened, settled, count, undecided)
            some = _NO_ROWS
    return count


@by_types(inline=True)
def _grids_of(scale, position, grid, start, stop, work):
    """Prepare a block's grids: (scale / grid, 1 / grid, grid, where its first entries stand), numbers or arrays."""
    if isinstance(scale, types.Array) and isinstance(position, types.NoneType):

        def of_rows(scale, position, grid, start, stop, work):
            size = stop - start
            scales, inverses = work[_SCALES:_GRIDS].view(np.float64)[:size], work[_INVERSES:_ROWS].view(np.float64)
            grids = work[_GRIDS:_INVERSES].view(np.float64)[:size]
            prepare_grid(scale[start:stop], inverses[:size], grids, scales)
            return scales, inverses[:size], grids, _NO_ROWS

        return of_rows

    return lambda scale, position, grid, start, stop, work: (scale, position, grid, start)


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
def release_laplace_on_grids(high, low, scale, position, grid, values, largest, work, released, undecided):
    """Release floats with Laplace noise on their grids; return how many rows stay undecided, listed in ``undecided``.

    Parameters
    ----------
    high, low, work, undecided
        As for `release_laplace_on_ones`; ``low`` may be a tuple, too, as second_parts.py says.
    scale, position, grid
        float64: the scale in units of the grid, 1 / grid and the grid, numbers or arrays; or one scale a row, in no
        unit, and None twice. Where the grid alone is None, the noise alone is released.
    values
        float64 or float32; what is not finite stays undecided.
    largest
        The largest number that is released.
    released
        Of the same type, or int32 for the noise.

    """
    count, some = _NO_ROWS, _NO_ROWS
    high, low, values, released = borrowed(high), borrowed(low), borrowed(values), borrowed(released)
    scale, position, grid = borrowed(scale), borrowed(position), borrowed(grid)
    work, undecided = borrowed(work), borrowed(undecided)
    block, opened, settled = _views(work)
    drawn, distances, limits = (
        work[:_DISTANCES].view(np.float32), work[_DISTANCES:_LIMITS].view(np.float32),
        work[_LIMITS:_MARKS].view(np.float32),
    )  # fmt: skip
    for start in range(0, released.size, BLOCK):
        stop = min(start + BLOCK, released.size)
        size = stop - start
        scales, inverses, grids, first = _grids_of(scale, position, grid, start, stop, work)
        inverses_here, grids_here = part(inverses, first, first + size), part(grids, first, first + size)
        _draw_values_f32(
            high[start:stop], _narrowed(part(scales, first, first + size), work), drawn[:size], limits[:size]
        )
        sum_block(
            values[start:stop], inverses_here, grids_here, drawn[:size], largest, released[start:stop],
            distances[:size],
        )  # fmt: skip
        mark_open(distances[:size], limits[:size], block[1])
        some = _gather(high, scales, values, inverses, grids, first, start, stop, block, opened, some)
        if some >= _ENOUGH or (some > _NO_ROWS and stop == released.size):
            _settle(some, low, high.size, _NOTHING, opened, settled)
            for k in range(some):
                row, inverse, own_grid = opened[0][k], opened[5][k], opened[6][k]
                release_row_on_grid(grids, values, row, inverse, own_grid, settled[1][k], largest, released)
                settled[1][k] = _NO_NOISE
            count = _list_undecided(some, opened, settled, count, undecided)
            some = _NO_ROWS
    return count


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
