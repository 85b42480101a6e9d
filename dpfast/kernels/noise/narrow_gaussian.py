"""Gaussian noise on a column, block by block: float32 first, what that leaves open in float64 from the same bits.

Row j and row half + j of a chunk of n rows share a radius and an angle, half = ceil(n / 2); its words are the radii and
then the angles. A block is small enough for its noise to stay in the second cache, and long enough for the processor
to fetch values ahead. What both precisions leave open is listed for the caller. Which of them decides a value changes
no bit of it: gaussian_f32.py and gaussian.py have the bounds.
"""

from __future__ import annotations

import numpy as np
from numba import types

from dpfast.kernels.compilation import by_types, inlined, kernel
from dpfast.kernels.noise.fractions import fraction_of
from dpfast.kernels.noise.gaussian import draw_gaussian
from dpfast.kernels.noise.gaussian_f32 import draw_values, find_roots
from dpfast.kernels.noise.joining import add_noise, join_grid
from dpfast.kernels.noise.laplace import UNDECIDED
from dpfast.kernels.noise.preparation import prepare_grid
from dpfast.kernels.parameters import at, part

__all__ = ["WORK_WORDS", "release_gaussian_on_grids", "release_gaussian_on_ones"]

PAIRS = 16384
_HALF, _EIGHTH = PAIRS // 2, PAIRS // 8
_PIECE = 1024
"""Roots are found and used so many at a time."""
_GROUP = 64
"""Open pairs are settled so many at a time, in whole vectors."""

#: What stands where in the work memory, in words of 64 bits. First what tells of the noise and is forgotten at the end.
_ROOTS = 2 * _HALF
_SPREADS = _ROOTS + _PIECE // 2
_WORDS = _SPREADS + _PIECE // 2
_LOW_WORDS = _WORDS + _GROUP
_FOUND = _LOW_WORDS + _GROUP // 2
_SECRET = _FOUND + _GROUP
_MARKS = _SECRET
_PLACES = _MARKS + _EIGHTH
_NARROW = _PLACES + PAIRS
_FRACTIONS = _NARROW + 2 * _HALF
_SCALES = _FRACTIONS + 2 * _HALF
_GRIDS = _SCALES + 2 * PAIRS
_INVERSES = _GRIDS + 2 * PAIRS
_OPEN_SCALES = _INVERSES + 2 * PAIRS
_OPEN_FRACTIONS = _OPEN_SCALES + 2 * _GROUP
WORK_WORDS = _OPEN_FRACTIONS + 2 * _GROUP
"""How many words of 64 bits the work memory has."""

_CLOSED, _NO_MARKS, _NOTHING, _ONE = np.uint8(0), np.uint64(0), np.float32(0.0), np.float32(1.0)
_NO_ROWS = np.int64(0)


@kernel
def _list_open(marks, size, places):
    """List the marked pairs of a block and return how many there are; the last one stands up to a multiple of 8."""
    marks[size : (size + 7) // 8 * 8] = _CLOSED
    groups = marks[: (size + 7) // 8 * 8].view(np.uint64)
    count = 0
    for group in range(groups.size):
        if groups[group] != _NO_MARKS:
            for place in range(8 * group, 8 * group + 8):
                places[count] = place
                count += np.int64(marks[place])
    if count > 0:
        places[count : (count + 7) // 8 * 8] = places[count - 1]
    return count


@by_types(inline=True)
def _gather_low(low, places, start, room):
    """Return the second parts of some words, None where they have none."""
    if isinstance(low, types.NoneType):
        return lambda low, places, start, room: None

    def gather(low, places, start, room):
        for k in range(places.size):
            room[k] = low[start + places[k]]
        return room[: places.size]

    return gather


@by_types(inline=True)
def _gather_scales(scales, places, room):
    """Return the scales of some rows; 1 for one that is not there."""
    if not isinstance(scales, types.Array):
        return lambda scales, places, room: scales

    def gather(scales, places, room):
        for k in range(places.size):
            room[k] = 1.0
            if places[k] < scales.size:
                room[k] = scales[places[k]]
        return room[: places.size]

    return gather


@by_types(inline=True)
def _gather_fractions(values, position, places, room):
    """Return the fractions of some rows, None where every value is a grid point; 0 for a row that is not there."""
    if isinstance(position, types.NoneType):
        return lambda values, position, places, room: None

    def gather(values, position, places, room):
        for k in range(places.size):
            room[k] = 0.0
            if places[k] < values.size:
                room[k] = fraction_of(values[places[k]], at(position, places[k]))
        return room[: places.size]

    return gather


@by_types(inline=True)
def _of_fractions(position):
    """Return the position of fractions themselves: see fractions.py."""
    return (lambda position: None) if isinstance(position, types.NoneType) else (lambda position: 1.0)


@kernel
def _settle_open(
    high, low, half, start, others, scale, other_scale, values, other_values, position, other_position, work,
    open_pairs, count, undecided,
):  # fmt: skip
    """Settle the listed pairs of the block that begins at ``start`` in float64; return how many rows are undecided.

    Scales, values and positions are those of the block's rows, first and second ones, of which there are ``others``.
    The rows that stay open are put into ``undecided`` from ``count`` on.
    """
    noise, other_noise = work[:_HALF].view(np.int32), work[_HALF:_ROOTS].view(np.int32)
    radii, angles = (
        work[_WORDS : _WORDS + _GROUP // 2].view(np.uint32),
        work[_WORDS + _GROUP // 2 : _LOW_WORDS].view(np.uint32),
    )
    lows = work[_LOW_WORDS:_FOUND].view(np.uint16)
    found = work[_FOUND:_SECRET].view(np.int32)
    scales, fractions = (
        work[_OPEN_SCALES:_OPEN_FRACTIONS].view(np.float64),
        work[_OPEN_FRACTIONS:WORK_WORDS].view(np.float64),
    )
    for first in range(0, open_pairs, _GROUP):
        some = min(_GROUP, open_pairs - first)
        padded = (some + 7) // 8 * 8
        places = work[_PLACES + first : _PLACES + first + padded].view(np.int64)
        for k in range(padded):
            radii[k] = high[start + places[k]]
            angles[k] = high[half + start + places[k]]
        draw_gaussian(
            radii[:padded], _gather_low(low, places, start, lows[:_GROUP]),
            angles[:padded], _gather_low(low, places, half + start, lows[_GROUP:]),
            _gather_scales(scale, places, scales[:_GROUP]), _gather_scales(other_scale, places, scales[_GROUP:]),
            _gather_fractions(values, position, places, fractions[:_GROUP]),
            _gather_fractions(other_values, other_position, places, fractions[_GROUP:]),
            _of_fractions(position), _of_fractions(other_position),
            found[:padded], found[_GROUP : _GROUP + padded],
        )  # fmt: skip
        for k in range(some):
            place = places[k]
            noise[place], other_noise[place] = found[k], found[_GROUP + k]
            if found[k] == UNDECIDED:
                undecided[count] = start + place
                count += 1
            if found[_GROUP + k] == UNDECIDED and place < others:
                undecided[count] = half + start + place
                count += 1
    return count


@by_types(inline=True)
def _narrow_scales(scale, other_scale, work):
    """Return the block's scales in float32 for first and second rows: one number and None, or one a row."""
    if not isinstance(scale, types.Array):
        return lambda scale, other_scale, work: (np.float32(scale), None)

    def of_rows(scale, other_scale, work):
        narrow, pairs = work[_NARROW:_FRACTIONS].view(np.float32), scale.size
        others = narrow[PAIRS : PAIRS + pairs]
        for i in range(pairs):
            narrow[i] = np.float32(scale[i])
        for i in range(other_scale.size):
            others[i] = np.float32(other_scale[i])
        others[other_scale.size :] = _ONE
        return narrow[:pairs], others

    return of_rows


@kernel
def _find_fractions(values, position, fractions):
    for i in range(values.size):
        fractions[i] = np.float32(fraction_of(values[i], at(position, i)))
    fractions[values.size :] = _NOTHING


@kernel
def _draw_block(
    high, low, half, start, pairs, others, scale, other_scale, fractions, other_fractions, values, other_values,
    position, other_position, work, count, undecided,
):  # fmt: skip
    """Draw the block of so many pairs that begins at ``start``; see `_settle_open` for the rest."""
    noise, other_noise = work[:_HALF].view(np.int32)[:pairs], work[_HALF:_ROOTS].view(np.int32)[:pairs]
    roots, spreads = work[_ROOTS:_SPREADS].view(np.float32), work[_SPREADS:_WORDS].view(np.float32)
    marks, places = work[_MARKS:_PLACES].view(np.uint8), work[_PLACES:_NARROW].view(np.int64)
    narrow, other_narrow = _narrow_scales(scale, other_scale, work)
    for first in range(0, pairs, _PIECE):
        last = min(first + _PIECE, pairs)
        size = last - first
        find_roots(high[start + first : start + last], roots[:size], spreads[:size])
        draw_values(
            high[half + start + first : half + start + last], roots[:size], spreads[:size], part(narrow, first, last),
            part(other_narrow, first, last), part(fractions, first, last), part(other_fractions, first, last),
            noise[first:last], other_noise[first:last], marks[first:last],
        )  # fmt: skip
    open_pairs = _list_open(marks, pairs, places)
    if open_pairs == 0:
        return count
    return _settle_open(
        high, low, half, start, others, scale, other_scale, values, other_values, position, other_position, work,
        open_pairs, count, undecided,
    )  # fmt: skip


@inlined
def _forget(work, pairs):
    """Wipe what blocks of at most so many pairs have left of the noise."""
    work[: (pairs + 1) // 2] = _NO_MARKS
    work[_HALF : _HALF + (pairs + 1) // 2] = _NO_MARKS
    work[_ROOTS:_SECRET] = _NO_MARKS


@inlined
def _copy(noise, released):
    for i in range(released.size):
        released[i] = noise[i]


@by_types(inline=True)
def _join_ones(values, noise, smallest, largest, released):
    """Release values and noise together, or noise alone where there are no values."""
    if isinstance(values, types.NoneType):
        return lambda values, noise, smallest, largest, released: _copy(noise, released)
    return lambda values, noise, smallest, largest, released: add_noise(values, noise, smallest, largest, released)


@by_types(inline=True)
def _join_grids(values, inverses, grids, noise, largest, released):
    """Release values and noise together, or noise alone where there is no grid."""
    if isinstance(grids, types.NoneType):
        return lambda values, inverses, grids, noise, largest, released: _copy(noise, released)
    return lambda values, inverses, grids, noise, largest, released: join_grid(
        values, inverses, grids, noise, largest, released
    )


@kernel
def release_gaussian_on_ones(high, low, scale, values, smallest, largest, work, released, undecided):
    """Release integers with Gaussian noise; return how many rows stay undecided, listed in ``undecided``.

    Parameters
    ----------
    high, low
        The words: 32 bits (uint32), and 16 more (uint16) or None; an even number of them.
    scale
        float64: one number or one a row, at most LARGEST_SCALE of gaussian_f32.py.
    values
        int64, int32 or uint32; None for the noise alone.
    smallest, largest
        The limits of what is released.
    work
        WORK_WORDS words (uint64). Nothing of the noise is left there.
    released
        int64 or int32 as the limits allow; int32 for the noise. What stands there for undecided rows means nothing.
    undecided
        int64, as long as the rows.

    """
    count, rows, half = _NO_ROWS, released.size, high.size // 2
    noise, other_noise = work[:_HALF].view(np.int32), work[_HALF:_ROOTS].view(np.int32)
    for start in range(0, half, PAIRS):
        stop = min(start + PAIRS, half)
        other, end = half + start, min(half + stop, rows)
        count = _draw_block(
            high, low, half, start, stop - start, end - other, part(scale, start, stop), part(scale, other, end), None,
            None, None, None, None, None, work, count, undecided,
        )  # fmt: skip
        _join_ones(part(values, start, stop), noise, smallest, largest, released[start:stop])
        _join_ones(part(values, other, end), other_noise, smallest, largest, released[other:end])
    _forget(work, min(half, PAIRS))
    return count


@by_types(inline=True)
def _grids_of(scale, position, grid, start, stop, work, side):
    """Return (scale / grid, 1 / grid, grid) of some rows, numbers or one a row."""
    if not isinstance(scale, types.Array) or isinstance(position, types.Array):
        return lambda scale, position, grid, start, stop, work, side: (
            part(scale, start, stop), part(position, start, stop), part(grid, start, stop)
        )  # fmt: skip

    def of_rows(scale, position, grid, start, stop, work, side):
        low, high = side * PAIRS, side * PAIRS + stop - start
        scales = work[_SCALES + low : _SCALES + high].view(np.float64)
        grids = work[_GRIDS + low : _GRIDS + high].view(np.float64)
        inverses = work[_INVERSES + low : _INVERSES + high].view(np.float64)
        prepare_grid(scale[start:stop], inverses, grids, scales)
        return scales, inverses, grids

    return of_rows


@kernel
def release_gaussian_on_grids(high, low, scale, position, grid, values, largest, work, released, undecided):
    """Release floats with Gaussian noise on their grids; return how many rows stay undecided, listed in ``undecided``.

    Parameters
    ----------
    high, low, work, undecided
        As for `release_gaussian_on_ones`.
    scale, position, grid
        float64: scales in units of the grid, 1 / grid and the grid, numbers or one a row, and None for the grid where
        the noise alone is released; or one scale a row, in no unit, and None for both.
    values
        float64 or float32; what is not finite stays undecided.
    largest
        The largest number that is released.
    released
        Of the same type; int32 for the noise.

    """
    count, rows, half = _NO_ROWS, released.size, high.size // 2
    noise, other_noise = work[:_HALF].view(np.int32), work[_HALF:_ROOTS].view(np.int32)
    fractions = work[_FRACTIONS:_SCALES].view(np.float32)
    for start in range(0, half, PAIRS):
        stop = min(start + PAIRS, half)
        pairs, other, end = stop - start, half + start, min(half + stop, rows)
        ones, others = values[start:stop], values[other:end]
        scales, inverses, grids = _grids_of(scale, position, grid, start, stop, work, 0)
        other_scales, other_inverses, other_grids = _grids_of(scale, position, grid, other, end, work, 1)
        _find_fractions(ones, inverses, fractions[:pairs])
        _find_fractions(others, other_inverses, fractions[PAIRS : PAIRS + pairs])
        count = _draw_block(
            high, low, half, start, pairs, end - other, scales, other_scales, fractions[:pairs],
            fractions[PAIRS : PAIRS + pairs], ones, others, inverses, other_inverses, work, count, undecided,
        )  # fmt: skip
        _join_grids(ones, inverses, grids, noise, largest, released[start:stop])
        _join_grids(others, other_inverses, other_grids, other_noise, largest, released[other:end])
    _forget(work, min(half, PAIRS))
    return count


# Stamp of all kernel sources (scripts/stamp_kernels.py): 9ce2d34c21dbfc36
