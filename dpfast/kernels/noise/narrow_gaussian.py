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
from dpfast.kernels.noise.fractions import find_fractions
from dpfast.kernels.noise.gaussian import draw_gaussian
from dpfast.kernels.noise.gaussian_f32 import draw_values, find_roots
from dpfast.kernels.noise.joining import add_noise, join_grid
from dpfast.kernels.noise.laplace import UNDECIDED
from dpfast.kernels.noise.preparation import prepare_grid
from dpfast.kernels.noise.releasing import release_block_on_grids, release_block_on_ones
from dpfast.kernels.parameters import part

__all__ = ["PAIRS", "WORK_WORDS", "release_gaussian_on_grids", "release_gaussian_on_ones"]

PAIRS = 16384
_PIECE = 1024
"""Roots are found and used so many at a time."""
_GROUP = 64
"""Open pairs are settled so many at a time, in whole vectors."""
_PADDING = 8
_HALF, _EIGHTH, _LIST = PAIRS // 2, PAIRS // 8, PAIRS + _GROUP

#: What stands where in the work memory, in words of 64 bits. First what tells of the noise and is forgotten at the end.
_ROOTS = 2 * _HALF
_SPREADS = _ROOTS + _PIECE // 2
_WORDS = _SPREADS + _PIECE // 2
_LOW_WORDS = _WORDS + _GROUP
_FOUND = _LOW_WORDS + _GROUP // 2
_SECRET = _FOUND + _GROUP
#: Then marks, places, and what is known of a block's rows and of open ones, for first rows and for second rows.
_MARKS = _SECRET
_PLACES = _MARKS + _EIGHTH
_NARROW = _PLACES + _LIST
_FRACTIONS = _NARROW + 2 * _HALF
_GRIDS = _FRACTIONS + 2 * _HALF
_OPEN = _GRIDS + 2 * 3 * PAIRS
_OPEN_SIDE = 8 * _GROUP
WORK_WORDS = _OPEN + 2 * _OPEN_SIDE
"""How many words of 64 bits the work memory has."""

_CLOSED, _NO_MARKS, _NOTHING, _ONE = np.uint8(0), np.uint64(0), np.float32(0.0), np.float32(1.0)
_NO_ROWS, _DECIDED = np.int64(0), np.uint32(0)


@kernel
def _list_open(marks, size, start, places, some):
    """List the marked pairs of a block that begins at ``start`` behind ``some``; return how many there are then."""
    marks[size : (size + 7) // 8 * 8] = _CLOSED
    groups = marks[: (size + 7) // 8 * 8].view(np.uint64)
    for group in range(groups.size):
        if groups[group] != _NO_MARKS:
            for place in range(8 * group, 8 * group + 8):
                places[some] = start + place
                some += np.int64(marks[place])
    return some


@by_types(inline=True)
def _gathered(parameter, first, places, room):
    """Return a parameter's entries of the rows ``first`` + places, the last one's for a row behind all; or itself."""
    if not isinstance(parameter, types.Array):
        return lambda parameter, first, places, room: parameter

    def gather(parameter, first, places, room):
        last = parameter.size - 1
        for k in range(places.size):
            room[k] = parameter[min(first + places[k], last)]
        return room[: places.size]

    return gather


@by_types(inline=True)
def _grids_of(scale, position, grid, room):
    """Return (scale / grid, 1 / grid, grid) of some rows, numbers or one a row."""
    if not isinstance(scale, types.Array) or isinstance(position, types.Array):
        return lambda scale, position, grid, room: (scale, position, grid)

    def of_rows(scale, position, grid, room):
        size, third = scale.size, room.size // 3
        scales, inverses, grids = room[:size], room[third : third + size], room[2 * third : 2 * third + size]
        prepare_grid(scale, inverses, grids, scales)
        return scales, inverses, grids

    return of_rows


@kernel
def _open_places(places, some):
    """Return the first listed pairs, at most a group; the last one stands up to a multiple of whole vectors."""
    for k in range(some, (some + _PADDING - 1) // _PADDING * _PADDING):
        places[k] = places[some - 1]
    return places[: (some + _PADDING - 1) // _PADDING * _PADDING]


@kernel
def _draw_open(high, low, places, scale, other_scale, values, other_values, position, other_position, work):
    """Draw listed pairs in float64; return the noise of first rows and of second ones, and 1 if any is undecided."""
    words, lows = work[_WORDS:_LOW_WORDS].view(np.uint32), work[_LOW_WORDS:_FOUND].view(np.uint16)
    found, size, half = work[_FOUND:_SECRET].view(np.int32), places.size, high.size // 2
    some_undecided = draw_gaussian(
        _gathered(high, _NO_ROWS, places, words[:_GROUP]), _gathered(low, _NO_ROWS, places, lows[:_GROUP]),
        _gathered(high, half, places, words[_GROUP:]), _gathered(low, half, places, lows[_GROUP:]),
        scale, other_scale, values, other_values, position, other_position,
        found[:size], found[_GROUP : _GROUP + size],
    )  # fmt: skip
    return found[:_GROUP], found[_GROUP:], some_undecided


@kernel
def _list_undecided(places, some, found, first, rows, undecided, count):
    """List what float64 did not decide either, behind ``count`` rows; return how many are listed then."""
    for k in range(some):
        row = first + places[k]
        if row < rows and found[k] == UNDECIDED:
            undecided[count] = row
            count += 1
    return count


@kernel
def _scatter(places, some, first, totals, released):
    for k in range(some):
        row = first + places[k]
        if row < released.size:
            # The sum turns a -0.0 that a small number became in float32 into 0.0.
            released[row] = released.dtype.type(totals[k]) + released.dtype.type(0.0)


@by_types(inline=True)
def _release_open_on_ones(places, some, first, found, values, smallest, largest, room, released):
    """Release listed rows; without values, their noise."""
    if isinstance(values, types.NoneType):

        def alone(places, some, first, found, values, smallest, largest, room, released):
            _scatter(places, some, first, found, released)

        return alone

    def joined(places, some, first, found, values, smallest, largest, room, released):
        own = _gathered(values, first, places, room[:_GROUP].view(np.int64))
        totals = room[_GROUP : _GROUP + own.size].view(np.int64)
        add_noise(own, found, smallest, largest, totals)
        _scatter(places, some, first, totals, released)

    return joined


@kernel
def _settle_on_ones(high, low, scale, values, smallest, largest, some, work, released, undecided, count):
    """Release the first listed pairs from float64; return how many rows are undecided, listed behind ``count``."""
    half, places = high.size // 2, _open_places(work[_PLACES:_NARROW].view(np.int64), some)
    room = work[_OPEN:WORK_WORDS]
    scales = _gathered(scale, _NO_ROWS, places, room[:_GROUP].view(np.float64))
    others = _gathered(scale, half, places, room[_GROUP : 2 * _GROUP].view(np.float64))
    found, other_found, some_undecided = _draw_open(high, low, places, scales, others, None, None, None, None, work)
    _release_open_on_ones(places, some, _NO_ROWS, found, values, smallest, largest, room, released)
    _release_open_on_ones(places, some, half, other_found, values, smallest, largest, room, released)
    if some_undecided != _DECIDED:
        count = _list_undecided(places, some, found, _NO_ROWS, released.size, undecided, count)
        count = _list_undecided(places, some, other_found, half, released.size, undecided, count)
    return count


@inlined
def _open_on_grids(scale, position, grid, values, first, places, room):
    """Return the values of listed rows, and (scale / grid, 1 / grid, grid)."""
    own = _gathered(values, first, places, room[:_GROUP])
    scales = _gathered(scale, first, places, room[_GROUP : 2 * _GROUP])
    positions = _gathered(position, first, places, room[2 * _GROUP : 3 * _GROUP])
    grids = _gathered(grid, first, places, room[3 * _GROUP : 4 * _GROUP])
    return own, _grids_of(scales, positions, grids, room[4 * _GROUP : 7 * _GROUP])


@by_types(inline=True)
def _release_open_on_grids(places, some, first, found, values, inverses, grids, largest, totals, released):
    """Release listed rows, from their values in float64; without a grid, their noise."""
    if isinstance(grids, types.NoneType):

        def alone(places, some, first, found, values, inverses, grids, largest, totals, released):
            _scatter(places, some, first, found, released)

        return alone

    def joined(places, some, first, found, values, inverses, grids, largest, totals, released):
        join_grid(values, inverses, grids, found, largest, totals[: values.size])
        _scatter(places, some, first, totals, released)

    return joined


@kernel
def _settle_on_grids(high, low, scale, position, grid, values, largest, some, work, released, undecided, count):
    """Do as `_settle_on_ones` for floats."""
    half, places = high.size // 2, _open_places(work[_PLACES:_NARROW].view(np.int64), some)
    room = work[_OPEN:WORK_WORDS].view(np.float64)
    totals, other_totals = room[7 * _GROUP : 8 * _GROUP], room[15 * _GROUP :]
    own, (scales, inverses, grids) = _open_on_grids(scale, position, grid, values, _NO_ROWS, places, room)
    other, (other_scales, other_inverses, other_grids) = _open_on_grids(
        scale, position, grid, values, half, places, room[_OPEN_SIDE:]
    )
    found, other_found, some_undecided = _draw_open(
        high, low, places, scales, other_scales, own, other, inverses, other_inverses, work
    )
    _release_open_on_grids(places, some, _NO_ROWS, found, own, inverses, grids, largest, totals, released)
    _release_open_on_grids(
        places, some, half, other_found, other, other_inverses, other_grids, largest, other_totals, released
    )
    if some_undecided != _DECIDED:
        count = _list_undecided(places, some, found, _NO_ROWS, released.size, undecided, count)
        count = _list_undecided(places, some, other_found, half, released.size, undecided, count)
    return count


@inlined
def _number_to_settle(some, is_last):
    """Return how many listed pairs are settled now: whole groups, and all at last."""
    return min(some, _GROUP) if some >= _GROUP or is_last else _NO_ROWS


@kernel
def _close(work, some, settled):
    """Move the listed pairs that are not settled to the front; return how many there are."""
    places = work[_PLACES:_NARROW]
    for k in range(some - settled):
        places[k] = places[settled + k]
    return some - settled


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
def _draw_block(high, start, pairs, scale, other_scale, fractions, other_fractions, work, some):
    """Draw the block of so many pairs that begins at ``start``; return how many pairs are listed as open then.

    Scales are those of the block's rows, first and second ones, and fractions too, or None.
    """
    noise, other_noise = work[:_HALF].view(np.int32), work[_HALF:_ROOTS].view(np.int32)
    roots, spreads = work[_ROOTS:_SPREADS].view(np.float32), work[_SPREADS:_WORDS].view(np.float32)
    marks, places = work[_MARKS:_PLACES].view(np.uint8), work[_PLACES:_NARROW].view(np.int64)
    narrow, other_narrow = _narrow_scales(scale, other_scale, work)
    angles = high.size // 2 + start
    for first in range(0, pairs, _PIECE):
        last = min(first + _PIECE, pairs)
        size = last - first
        find_roots(high[start + first : start + last], roots[:size], spreads[:size])
        draw_values(
            high[angles + first : angles + last], roots[:size], spreads[:size], part(narrow, first, last),
            part(other_narrow, first, last), part(fractions, first, last), part(other_fractions, first, last),
            noise[first:last], other_noise[first:last], marks[first:last],
        )  # fmt: skip
    return _list_open(marks, pairs, start, places, some)


@inlined
def _forget(work, pairs):
    """Wipe what blocks of at most so many pairs have left of the noise, and what open pairs have."""
    work[: (pairs + 1) // 2] = _NO_MARKS
    work[_HALF : _HALF + (pairs + 1) // 2] = _NO_MARKS
    work[_ROOTS:_SECRET] = _NO_MARKS


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
        int64, as long as the rows; listed in no order.

    """
    count, some, rows, half = _NO_ROWS, _NO_ROWS, released.size, high.size // 2
    noise, other_noise = work[:_HALF].view(np.int32), work[_HALF:_ROOTS].view(np.int32)
    for start in range(0, half, PAIRS):
        stop = min(start + PAIRS, half)
        other, end = half + start, min(half + stop, rows)
        some = _draw_block(
            high, start, stop - start, part(scale, start, stop), part(scale, other, end), None, None, work, some
        )
        ones, others = noise[: stop - start], other_noise[: end - other]
        release_block_on_ones(part(values, start, stop), ones, smallest, largest, released[start:stop])
        release_block_on_ones(part(values, other, end), others, smallest, largest, released[other:end])
        settled = _number_to_settle(some, stop == half)
        while settled > _NO_ROWS:
            count = _settle_on_ones(
                high, low, scale, values, smallest, largest, settled, work, released, undecided, count
            )
            some = _close(work, some, settled)
            settled = _number_to_settle(some, stop == half)
    _forget(work, min(half, PAIRS))
    return count


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
    count, some, rows, half = _NO_ROWS, _NO_ROWS, released.size, high.size // 2
    noise, other_noise = work[:_HALF].view(np.int32), work[_HALF:_ROOTS].view(np.int32)
    room = work[_GRIDS:_OPEN].view(np.float64)
    fractions, other_fractions = (
        work[_FRACTIONS : _FRACTIONS + _HALF].view(np.float32),
        work[_FRACTIONS + _HALF : _GRIDS].view(np.float32),
    )
    for start in range(0, half, PAIRS):
        stop = min(start + PAIRS, half)
        pairs, other, end = stop - start, half + start, min(half + stop, rows)
        own, others = values[start:stop], values[other:end]
        scales, inverses, grids = _grids_of(
            part(scale, start, stop), part(position, start, stop), part(grid, start, stop), room[: 3 * PAIRS]
        )
        other_scales, other_inverses, other_grids = _grids_of(
            part(scale, other, end), part(position, other, end), part(grid, other, end), room[3 * PAIRS :]
        )
        near = find_fractions(own, inverses, fractions)
        others_near = find_fractions(others, other_inverses, other_fractions)
        other_fractions[others.size : pairs] = _NOTHING
        some = _draw_block(
            high, start, pairs, scales, other_scales, fractions[:pairs], other_fractions[:pairs], work, some
        )
        release_block_on_grids(own, inverses, grids, noise[:pairs], near, largest, released[start:stop])
        release_block_on_grids(
            others, other_inverses, other_grids, other_noise[: end - other], others_near, largest, released[other:end]
        )
        settled = _number_to_settle(some, stop == half)
        while settled > _NO_ROWS:
            count = _settle_on_grids(
                high, low, scale, position, grid, values, largest, settled, work, released, undecided, count
            )
            some = _close(work, some, settled)
            settled = _number_to_settle(some, stop == half)
    _forget(work, min(half, PAIRS))
    return count


# Stamp of all kernel sources (scripts/stamp_kernels.py): a0fc3638aed39405
