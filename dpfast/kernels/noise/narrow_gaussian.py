"""Gaussian noise on a column, block by block: float32 first, what that leaves open in float64 from the same bits.

Rows share radii and angles within blocks of BLOCK_ROWS, as gaussian.py says. A block is so short that all its memory
stays in the nearest cache, while the processor fetches the values of the next one. What neither precision decides is
listed for the caller. Which of them decides a value changes no bit of it: gaussian_f32.py and gaussian.py have the
bounds.
"""

from __future__ import annotations

import numpy as np
from numba import types

from dpfast.kernels.compilation import by_types, inlined, kernel
from dpfast.kernels.noise.gaussian import BLOCK_ROWS, draw_gaussian
from dpfast.kernels.noise.gaussian_f32 import draw_numbers, draw_values, find_roots
from dpfast.kernels.noise.joining import add_noise, join_grid
from dpfast.kernels.noise.laplace import UNDECIDED
from dpfast.kernels.noise.open_pairs import list_open_pairs
from dpfast.kernels.noise.preparation import prepare_grid
from dpfast.kernels.noise.second_parts import are_asked_last, second_part, those_at_once
from dpfast.kernels.noise.sums import sum_block
from dpfast.kernels.parameters import part
from dpfast.kernels.views import borrowed

__all__ = ["WORK_WORDS", "release_gaussian_on_grids", "release_gaussian_on_ones"]

_PAIRS = BLOCK_ROWS // 2
_GROUP = 64
"""Open pairs are settled as soon as there are so many, in whole vectors."""
_PADDING = 8
#: The most pairs that are open at a time. Lists have as many entries for first rows, and as many for second rows.
_LIST = _PAIRS + _GROUP
_HALF_LIST = _LIST // 2

#: Where things stand in the work memory, in words of 64 bits. First a block's noise and what it can be told from.
_DRAWN = 0
_DISTANCES = _DRAWN + _PAIRS
_LIMITS = _DISTANCES + _PAIRS
_ROOTS = _LIMITS + _PAIRS
_SPREADS = _ROOTS + _PAIRS // 2
#: Then the same of open pairs: their words, noise and sums. All before _SECRET is wiped at the end.
_WORDS = _SPREADS + _PAIRS // 2
_LOW_WORDS = _WORDS + _LIST
_FOUND = _LOW_WORDS + _HALF_LIST
_TOTALS = _FOUND + _LIST
_SECRET = _TOTALS + _LIST
#: Then what may stay there: which pairs are open, scales in float32, grids.
_MARKS = _SECRET
_NARROW = _MARKS + _PAIRS // 8
_GRIDS = _NARROW + _PAIRS
_PLACES = _GRIDS + 3 * BLOCK_ROWS
_OPEN = _PLACES + 2 * _LIST
_OPEN_SIDE = 7 * _LIST
WORK_WORDS = _OPEN + 2 * _OPEN_SIDE
"""How many words of 64 bits the work memory has."""

_CLOSED, _NO_MARKS = np.uint8(0), np.uint64(0)
_NO_ROWS, _DECIDED = np.int64(0), np.uint32(0)
_NOTHING, _ONE = np.float32(0.0), np.float32(1.0)


@kernel
def _list_open(marks, size, start, middle, places, others, some):
    """List a block's marked pairs behind the ``some`` that are listed already; return how many there are then.

    Pair j has the rows ``start`` + j and ``middle`` + j, which are listed in ``places`` and ``others``.
    """
    marks[size : (size + 7) // 8 * 8] = _CLOSED
    groups = marks[: (size + 7) // 8 * 8].view(np.uint64)
    for group in range(groups.size):
        if groups[group] != _NO_MARKS:
            for place in range(8 * group, 8 * group + 8):
                places[some] = start + place
                others[some] = middle + place
                some += np.int64(marks[place])
    return some


@kernel
def _fill_up(places, others, some):
    """Fill the list up to whole vectors with copies of its last pair; return how many are listed then."""
    stop = (some + _PADDING - 1) // _PADDING * _PADDING
    for k in range(some, stop):
        places[k] = places[some - 1]
        others[k] = others[some - 1]
    return stop


@by_types(inline=True)
def _gathered(parameter, places, room):
    """Return a parameter's entries of some rows, the last one's for a row behind all; or itself."""
    if not isinstance(parameter, types.Array):
        return lambda parameter, places, room: parameter

    def gather(parameter, places, room):
        last = parameter.size - 1
        for k in range(places.size):
            room[k] = parameter[min(places[k], last)]
        return room[: places.size]

    return gather


@by_types(inline=True)
def _gathered_parts(low, words, places, room):
    """Return the second parts of some words, of so many of a chunk; None for words without."""
    if isinstance(low, types.NoneType):
        return lambda low, words, places, room: None

    def gather(low, words, places, room):
        for k in range(places.size):
            room[k] = second_part(low, words, places[k])
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
def _draw_open(high, low, places, others, scale, other_scale, values, other_values, position, other_position, work):
    """Draw listed pairs in float64; return the noise of first rows and of second ones, and 1 if any is undecided."""
    words, lows = work[_WORDS:_LOW_WORDS].view(np.uint32), work[_LOW_WORDS:_FOUND].view(np.uint16)
    found, size = work[_FOUND:_TOTALS].view(np.int32), places.size
    one, other = found[:size], found[_LIST : _LIST + size]
    # A pair's radius is the word at its first row's place, its angle the word at its second row's.
    some_undecided = draw_gaussian(
        _gathered(high, places, words[:_LIST]), _gathered_parts(low, high.size, places, lows[:_LIST]),
        _gathered(high, others, words[_LIST:]), _gathered_parts(low, high.size, others, lows[_LIST:]),
        scale, other_scale, values, other_values, position, other_position, one, other,
    )  # fmt: skip
    return one, other, some_undecided


@kernel
def _scatter(places, some, totals, released):
    for k in range(some):
        if places[k] < released.size:
            # The sum turns a -0.0 that a small number became in float32 into 0.0.
            released[places[k]] = released.dtype.type(totals[k]) + released.dtype.type(0.0)


@inlined
def _places(work):
    """Return the lists of the first rows of open pairs, and of the second ones."""
    places = work[_PLACES:_OPEN].view(np.int64)
    return places[:_LIST], places[_LIST:]


@inlined
def _may_be_decided(values, row, n, rows):
    """Return whether a row has no noise yet and would have some, had its words more bits."""
    return row < rows and n == UNDECIDED and np.isfinite(values[row])


@kernel
def _list_undecided(values, some, work, rows, undecided, count, by_more_bits):
    """List the rows that float64 did not decide either, behind ``count`` rows.

    If ``by_more_bits``, pairs of which more bits may decide a row stay listed instead. Return how many pairs stay, and
    how many rows are listed.
    """
    places, others = _places(work)
    found, stay = work[_FOUND:_TOTALS].view(np.int32), _NO_ROWS
    for k in range(some):
        one, other, n, m = places[k], others[k], found[k], found[_LIST + k]
        if by_more_bits and (_may_be_decided(values, one, n, rows) or _may_be_decided(values, other, m, rows)):
            places[stay], others[stay] = one, other
            stay += 1
            continue
        if one < rows and n == UNDECIDED:
            undecided[count] = one
            count += 1
        if other < rows and m == UNDECIDED:
            undecided[count] = other
            count += 1
    return stay, count


@kernel
def _release_on_ones(high, low, scale, values, smallest, largest, some, work, released):
    """Release the listed pairs from float64; return 1 if any row is undecided, else 0."""
    places, others = _places(work)
    size = _fill_up(places, others, some)
    places, others, room = places[:size], others[:size], work[_OPEN:WORK_WORDS]
    scales = _gathered(scale, places, room[:_LIST].view(np.float64))
    other_scales = _gathered(scale, others, room[_LIST : 2 * _LIST].view(np.float64))
    one, other, some_undecided = _draw_open(
        high, low, places, others, scales, other_scales, None, None, None, None, work
    )
    own, totals = room[2 * _LIST : 3 * _LIST].view(np.int64), work[_TOTALS : _TOTALS + size].view(np.int64)
    for rows, found in ((places, one), (others, other)):
        add_noise(_gathered(values, rows, own), found, smallest, largest, totals)
        _scatter(rows, some, totals, released)
    return some_undecided


@kernel
def _settle_on_ones(high, low, scale, values, smallest, largest, some, work, released, undecided, count):
    """Release the listed pairs; return how many rows are undecided, listed behind ``count``."""
    limits, last = (smallest, largest), are_asked_last(low)
    if _release_on_ones(high, those_at_once(low), scale, values, *limits, some, work, released) != _DECIDED:
        some, count = _list_undecided(values, some, work, released.size, undecided, count, last)
        if some > _NO_ROWS and _release_on_ones(high, low, scale, values, *limits, some, work, released) != _DECIDED:
            _, count = _list_undecided(values, some, work, released.size, undecided, count, False)
    return count


@inlined
def _open_on_grids(scale, position, grid, values, places, room):
    """Return the values of listed rows, and (scale / grid, 1 / grid, grid)."""
    own = _gathered(values, places, room[:_LIST])
    scales = _gathered(scale, places, room[_LIST : 2 * _LIST])
    positions = _gathered(position, places, room[2 * _LIST : 3 * _LIST])
    grids = _gathered(grid, places, room[3 * _LIST : 4 * _LIST])
    return own, _grids_of(scales, positions, grids, room[4 * _LIST : 7 * _LIST])


@by_types(inline=True)
def _release_open(places, some, found, values, inverses, grids, largest, totals, released):
    """Release listed rows, from their values in float64; without a grid, their noise."""
    if isinstance(grids, types.NoneType):
        return lambda places, some, found, values, inverses, grids, largest, totals, released: _scatter(
            places, some, found, released
        )

    def joined(places, some, found, values, inverses, grids, largest, totals, released):
        join_grid(values, inverses, grids, found, largest, totals[: values.size])
        _scatter(places, some, totals, released)

    return joined


@kernel
def _release_on_grids(high, low, scale, position, grid, values, largest, some, work, released):
    """Do as `_release_on_ones` for floats."""
    places, others = _places(work)
    size = _fill_up(places, others, some)
    places, others, room = places[:size], others[:size], work[_OPEN:WORK_WORDS].view(np.float64)
    totals = work[_TOTALS:_SECRET].view(np.float64)
    own, (scales, inverses, grids) = _open_on_grids(scale, position, grid, values, places, room[:_OPEN_SIDE])
    other, (other_scales, other_inverses, other_grids) = _open_on_grids(
        scale, position, grid, values, others, room[_OPEN_SIDE:]
    )
    found, other_found, some_undecided = _draw_open(
        high, low, places, others, scales, other_scales, own, other, inverses, other_inverses, work
    )
    _release_open(places, some, found, own, inverses, grids, largest, totals, released)
    _release_open(others, some, other_found, other, other_inverses, other_grids, largest, totals, released)
    return some_undecided


@kernel
def _settle_on_grids(high, low, scale, position, grid, values, largest, some, work, released, undecided, count):
    """Do as `_settle_on_ones` for floats."""
    on_grids, last = (scale, position, grid, values, largest), are_asked_last(low)
    if _release_on_grids(high, those_at_once(low), *on_grids, some, work, released) != _DECIDED:
        some, count = _list_undecided(values, some, work, released.size, undecided, count, last)
        if some > _NO_ROWS and _release_on_grids(high, low, *on_grids, some, work, released) != _DECIDED:
            _, count = _list_undecided(values, some, work, released.size, undecided, count, False)
    return count


@by_types(inline=True)
def _narrow_scales(scale, half, work):
    """Return a block's scales in float32, of first and of second rows: one number and None, or one a row."""
    if not isinstance(scale, types.Array):
        return lambda scale, half, work: (np.float32(scale), None)

    def of_rows(scale, half, work):
        narrow = work[_NARROW:_GRIDS].view(np.float32)
        for i in range(scale.size):
            narrow[i] = np.float32(scale[i])
        narrow[scale.size : 2 * half] = _ONE
        return narrow[:half], narrow[half : 2 * half]

    return of_rows


@by_types(inline=True)
def _limits_of(narrow, half, work):
    """Return the memory for the limits of first rows, and of second rows: None where scales are one number."""
    if not isinstance(narrow, types.Array):
        return lambda narrow, half, work: (work[_LIMITS:_ROOTS].view(np.float32)[:half], None)

    def of_rows(narrow, half, work):
        limits = work[_LIMITS:_ROOTS].view(np.float32)
        return limits[:half], limits[half : 2 * half]

    return of_rows


@inlined
def _roots_of(high, start, half, work):
    """Find the roots of a block's pairs; return the words of its angles, the roots and their spreads."""
    roots, spreads = work[_ROOTS:_SPREADS].view(np.float32)[:half], work[_SPREADS:_WORDS].view(np.float32)[:half]
    find_roots(high[start : start + half], roots, spreads)
    return high[start + half : start + 2 * half], roots, spreads


@kernel
def release_gaussian_on_ones(high, low, scale, values, smallest, largest, work, released, undecided):
    """Release integers with Gaussian noise; return how many rows stay undecided, listed in ``undecided``.

    Parameters
    ----------
    high, low
        The words: 32 bits (uint32), and 16 more or None, as second_parts.py says; an even number of them.
    scale
        float64: one number or one a row, at most LARGEST_SCALE of gaussian_f32.py.
    values
        int64, int32 or uint32.
    smallest, largest
        The limits of what is released.
    work
        WORK_WORDS words (uint64). Nothing of the noise is left there.
    released
        int64 or int32 as the limits allow. What stands there for undecided rows means nothing.
    undecided
        int64, as long as the rows; listed in no order.

    """
    count, some, rows = _NO_ROWS, _NO_ROWS, released.size
    high, low, scale, values = borrowed(high), borrowed(low), borrowed(scale), borrowed(values)
    work, released, undecided = borrowed(work), borrowed(released), borrowed(undecided)
    noise, marks = work[_DRAWN:_DISTANCES].view(np.int32), work[_MARKS:_NARROW].view(np.uint8)
    places, others = _places(work)
    for start in range(0, rows, BLOCK_ROWS):
        stop = min(start + BLOCK_ROWS, rows)
        half = (stop - start + 1) // 2
        narrow, other_narrow = _narrow_scales(part(scale, start, stop), half, work)
        angles, roots, spreads = _roots_of(high, start, half, work)
        draw_numbers(angles, roots, spreads, narrow, other_narrow, noise[:half], noise[half : 2 * half], marks[:half])
        add_noise(values[start:stop], noise[: stop - start], smallest, largest, released[start:stop])
        some = _list_open(marks, half, start, start + half, places, others, some)
        if some >= _GROUP or (some > _NO_ROWS and stop == rows):
            count = _settle_on_ones(high, low, scale, values, smallest, largest, some, work, released, undecided, count)
            some = _NO_ROWS
    work[:_SECRET] = _NO_MARKS
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
    count, some, rows = _NO_ROWS, _NO_ROWS, released.size
    high, low, values, released = borrowed(high), borrowed(low), borrowed(values), borrowed(released)
    scale, position, grid = borrowed(scale), borrowed(position), borrowed(grid)
    work, undecided = borrowed(work), borrowed(undecided)
    drawn, distances = work[_DRAWN:_DISTANCES].view(np.float32), work[_DISTANCES:_LIMITS].view(np.float32)
    room = work[_GRIDS:_PLACES].view(np.float64)
    places, others = _places(work)
    for start in range(0, rows, BLOCK_ROWS):
        stop = min(start + BLOCK_ROWS, rows)
        size, half = stop - start, (stop - start + 1) // 2
        scales, inverses, grids = _grids_of(
            part(scale, start, stop), part(position, start, stop), part(grid, start, stop), room
        )
        narrow, other_narrow = _narrow_scales(scales, half, work)
        limits, other_limits = _limits_of(narrow, half, work)
        angles, roots, spreads = _roots_of(high, start, half, work)
        draw_values(
            angles, roots, spreads, narrow, other_narrow, drawn[:half], drawn[half : 2 * half], limits, other_limits
        )
        distances[size : 2 * half] = _NOTHING
        own, freed = values[start:stop], released[start:stop]
        sum_block(own, inverses, grids, drawn[:size], largest, freed, distances[:size])
        some = list_open_pairs(
            distances[:half], distances[half : 2 * half], limits, other_limits, start, start + half, places, others,
            some,
        )  # fmt: skip
        if some >= _GROUP or (some > _NO_ROWS and stop == rows):
            count = _settle_on_grids(
                high, low, scale, position, grid, values, largest, some, work, released, undecided, count
            )
            some = _NO_ROWS
    work[:_SECRET] = _NO_MARKS
    return count


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
