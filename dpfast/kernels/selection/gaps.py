"""Certified gaps: how far the largest of two noisy scores lies above the other, rounded to a multiple of a grid.

For two candidates with scores s and t, noise N and M (`key_bounds`) and u = 2**-53, the gap in units of the grid is

    y = ((s - t) + (N - M) / a) / grid

in which (s - t) / 2 is off by 2u of itself, N - M by 5.1u (N + |M|) and its rounding, the quotients by u each and the
sum by u: the code's 16u ((|s - t| + (|N| + |M| + 1) / a) / grid) is more than twice that; quotients that underflow
lose less than 2**-1000, and the unread bits add their widths over a and grid. The multiple is certain if y is at least
so far from the middle between two of them, and below 2**51.

Of a row that lies in a chunk, the two candidates with the largest upper bounds get close bounds on both sides. They are
its first two, in order, if the lower end of the one lies above the upper end of the other, and that one's lower end
above all other upper bounds; else the row is ranked (`ranking`).
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import kernel
from dpfast.kernels.intrinsics import absolute, bit_or, choose
from dpfast.kernels.parameters import at
from dpfast.kernels.selection.differences import best_of_chunk, half_difference, unordered
from dpfast.kernels.selection.key_bounds import (
    BLOCK,
    EXPONENTIAL,
    LOWEST_KEY,
    SHORT,
    bound_stretch,
    exponential_of,
    largest_key,
    last_place,
    noise_of,
)
from dpfast.kernels.selection.ranking import end_of_stretch, rank_part

__all__ = ["OPEN", "gap_chunk", "round_gaps"]

OPEN = -1
_SLACK, _TINY, _LARGEST = 16 * 2.0**-53, 2.0**-1000, 2.0**51
_OPEN = float(OPEN)
# A literal number would have what it is passed to compiled once more.
_FIRST, _TWO, _KIND = np.int64(0), np.int64(2), np.int64(EXPONENTIAL)
#: The bits that hold a place in a row of up to SHORT candidates.
_PLACE = np.int64(2 * SHORT - 1)
_ZERO_64 = np.uint64(0)


@kernel
def _round_gap(half, word, other_word, a, grid, kind):
    """Return the number of grid steps of the gap of two candidates, ``half`` half their scores' difference, or OPEN."""
    difference = 2.0 * half
    noise, below, above = noise_of(word, kind)
    other, other_below, other_above = noise_of(other_word, kind)
    y = (difference + (noise - other) / a) / grid
    width = max(below + other_above, above + other_below) + _SLACK * (abs(noise) + abs(other) + 1.0)
    error = 1.0625 * ((_SLACK * abs(difference) + width / a) / grid) + _TINY
    whole = np.floor(y)
    if y < _LARGEST and abs((y - whole) - 0.5) > error:
        return np.int64(whole) + (1 if y - whole > 0.5 else 0)
    return OPEN


@kernel
def round_gaps(scores, words, others, other_words, a, grid, kind, gaps):
    """Fill ``gaps`` (int64) with the number of grid steps of each pair's gap, OPEN where it is not certain.

    ``scores`` and ``words`` are those of the winners, ``others`` and ``other_words`` those of the runners-up; ``a``
    and ``grid`` are one number, or one for each pair.
    """
    for i in range(gaps.size):
        half = half_difference(scores[i], others[i])
        gaps[i] = _round_gap(half, words[i], other_words[i], at(a, i), at(grid, i), kind)


@kernel
def _top_three(bounds):
    """Return where the two largest bounds of a row stand, the largest first, and the largest of the others."""
    if bounds.size > SHORT:
        first = last_place(bounds, largest_key(bounds))
        kept, bounds[first] = bounds[first], LOWEST_KEY
        second = last_place(bounds, largest_key(bounds))
        kept_second, bounds[second] = bounds[second], LOWEST_KEY
        third = largest_key(bounds)
        bounds[first], bounds[second] = kept, kept_second
        return first, second, third
    best = second = third = LOWEST_KEY
    for k in range(bounds.size):
        # The last bits say where a bound stands: a larger bound is one as well, and no branch depends on what is best.
        key = (bounds[k] | _PLACE) ^ k
        lower = min(best, key)
        best = max(best, key)
        lowest = min(second, lower)
        second = max(second, lower)
        third = max(third, lowest)
    return (best & _PLACE) ^ _PLACE, (second & _PLACE) ^ _PLACE, third | _PLACE


@kernel
def _settle_pairs(facts, pair_halves, pair_words, count):
    """Find which candidate of each pair wins, a row's two with the largest bounds, and by how many steps.

    ``pair_halves`` and ``pair_words`` are those of the one candidate and of the other. ``facts`` has a row each for the
    slopes and the grids of the pairs' rows, half the differences of their scores, the largest bounds of the others, and
    two that are filled: the verdicts and the steps. A verdict is 1 if the one wins, -1 if the other does, and 0 if that
    is not certain; NaN makes nothing certain.
    """
    slopes, grids, differences = facts[0], facts[1], facts[2]
    thirds, verdicts, steps = facts[3], facts[4], facts[5]
    for i in range(count):
        e, _, width = exponential_of(pair_words[0, i])
        other, _, other_width = exponential_of(pair_words[1, i])
        slope, step = slopes[i], grids[i]
        d, other_d = (2.0 * slope) * pair_halves[0, i], (2.0 * slope) * pair_halves[1, i]
        error = width + _SLACK * (absolute(d) + e + 1.0)
        other_error = other_width + _SLACK * (absolute(other_d) + other + 1.0)
        low, high = (d + e) - error, (d + e) + error
        other_low, other_high = (other_d + other) - other_error, (other_d + other) + other_error
        verdict = choose(low > other_high, choose(other_low > thirds[i], 1.0, 0.0), 0.0)
        verdict = choose(other_low > high, choose(low > thirds[i], -1.0, verdict), verdict)
        difference = 2.0 * differences[i]
        y = verdict * ((difference + (e - other) / slope) / step)
        widths = (width + other_width) + _SLACK * (e + other + 1.0)
        doubt = 1.0625 * ((_SLACK * absolute(difference) + widths / slope) / step) + _TINY
        whole = np.floor(y)
        rest = y - whole
        nearest = whole + choose(rest > 0.5, 1.0, 0.0)
        certain = choose(absolute(rest - 0.5) > doubt, nearest, _OPEN)
        steps[i] = choose(y < _LARGEST, certain, _OPEN)
        verdicts[i] = verdict


@kernel
def gap_chunk(scores, words, a, grid, layout, bounding, scratch, winners, won, gaps, opened):
    """Find the first two of every row of a chunk and their gap, and hand on what the chunk alone does not decide.

    Parameters
    ----------
    scores, words, a, layout, bounding, scratch, winners, won
        As for `rank_chunk`, with two winners wanted; the noise is EXPONENTIAL.
    grid
        What gaps are counted in: a float64, or one for each row.
    gaps
        Filled with the number of steps of each row's gap (float64), OPEN where it is not certain.
    opened
        As for `rank_chunk`.

    Returns
    -------
    tuple
        How many candidates are left open, and 1 if a score is not finite; then nothing else means anything.

    """
    first, offsets, row = layout
    keys, halves, _ = bounding
    places, size = scratch[3], words.size
    left_open, broken, start = _FIRST, _ZERO_64, _FIRST
    best, common = best_of_chunk(scores, a, first, offsets, row)
    most = BLOCK // 2 + 1  # pairs of a stretch
    pairs, pair_words = np.empty((2, most), np.int64), np.empty((2, most), np.uint32)
    pair_rows = np.empty(most, np.int64)
    # Of each pair: slope, grid, half the difference, the third bound, the verdict, the steps; and two halves.
    facts, pair_halves = np.empty((6, most)), np.empty((2, most))
    other_rows = np.empty(BLOCK, np.int64)
    while start < size:
        stop = end_of_stretch(first, offsets, row, start, size)
        stretch = (start, stop)
        best, bad = bound_stretch(scores, words, a, _KIND, (first, offsets, row), stretch, best, common, True, bounding)
        broken = bit_or(broken, bad)
        place, count, others = start, _FIRST, _FIRST
        while place < stop:
            begin, end = offsets[row] - first, offsets[row + 1] - first
            if begin >= 0 and end <= size and end - begin > 1:
                one, two, third = _top_three(keys[place - start : end - start])
                one, two = place + one, place + two
                pairs[0, count], pairs[1, count], pair_rows[count] = one, two, row
                pair_words[0, count], pair_words[1, count] = words[one], words[two]
                pair_halves[0, count], pair_halves[1, count] = halves[one - start], halves[two - start]
                facts[0, count], facts[1, count] = at(a, row), at(grid, row)
                facts[2, count] = half_difference(scores[one], scores[two])
                facts[3, count] = unordered(third)
                count += 1
            else:
                winners[row, 0] = winners[row, 1] = gaps[row] = OPEN
                if end > place:
                    other_rows[others] = row
                    others += 1
            place = min(end, stop)
            if end <= stop:
                row += 1
        _settle_pairs(facts, pair_halves, pair_words, count)
        for pair in range(count):
            verdict, own_row = facts[4, pair], pair_rows[pair]
            better = 0 if verdict > 0.0 else 1
            one, two = pairs[better, pair], pairs[1 - better, pair]
            winners[own_row, 0], winners[own_row, 1] = first + one, first + two
            won[own_row, 0], won[own_row, 1] = words[one], words[two]
            gaps[own_row] = facts[5, pair]
            if verdict == 0.0:
                gaps[own_row], other_rows[others] = OPEN, own_row
                others += 1
        for other in range(others):
            own_row = other_rows[other]
            layout, outcome = (first, offsets, own_row), (winners, won, opened, left_open)
            found, left_open = rank_part(
                scores, words, at(a, own_row), _KIND, layout, stretch, _TWO, bounding, scratch, outcome
            )
            if found == 2:
                one, two = places[0], places[1]
                half = half_difference(scores[one], scores[two])
                steps = _round_gap(half, words[one], words[two], at(a, own_row), at(grid, own_row), _KIND)
                gaps[own_row] = np.float64(steps)
        start = stop
    return left_open, broken


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
