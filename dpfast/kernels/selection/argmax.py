"""Certified private selection: the candidate with the largest key ``a * score + noise`` in every row.

The bounds on keys, the words and the three steps are those of key_bounds.py.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import inlined, kernel
from dpfast.kernels.intrinsics import bit_or
from dpfast.kernels.parameters import at
from dpfast.kernels.selection.differences import best_of_chunk, half_difference
from dpfast.kernels.selection.key_bounds import (
    BLOCK,
    EXPONENTIAL,
    GUMBEL,
    LAPLACE,
    LOWEST_KEY,
    SHORT,
    are_short,
    bound_stretch,
    count_from,
    interval,
    largest_key,
    last_place,
    lower_bound,
)

__all__ = ["BLOCK", "EXPONENTIAL", "GUMBEL", "LAPLACE", "compare_groups", "select_chunk", "select_row"]

_ZERO_64, _FIRST = np.uint64(0), np.int64(0)
_INFINITY = np.inf


@inlined
def _top_two(keys, start, stop):
    """Return where the largest key of a row stands, and the largest other: for few keys faster than vectors are."""
    best, second, place = keys[start], LOWEST_KEY, start
    for i in range(start + 1, stop):
        key = keys[i]
        second = max(second, min(best, key))
        place = i if key > best else place
        best = max(best, key)
    return place, second


@kernel
def _keep_contenders(scores, words, a, kind, places, count, highs):
    """Keep of the first ``count`` places of a row those of contenders (step 3), in order; return how many."""
    best = places[0]
    for k in range(1, count):
        if scores[places[k]] > scores[best]:
            best = places[k]
    reference = scores[best]
    best_low = -_INFINITY
    for k in range(count):
        i = places[k]
        low, highs[k] = interval(half_difference(scores[i], reference), a, words[i], kind)
        if low > best_low:
            best_low = low
    kept = 0
    for k in range(count):
        if not highs[k] < best_low:
            places[kept] = places[k]
            kept += 1
    return kept


@kernel
def select_chunk(
    scores, words, a, kind, first, offsets, row, keys, halves, slopes, places, highs, winners, open_index, open_word
):
    """Select in every row of a chunk of candidates, and hand on what the chunk alone does not decide.

    Parameters
    ----------
    scores, words
        The chunk's scores (int64 or float64, read-only) and words (uint32).
    a
        What scores are multiplied by: a float64, or one for each row.
    kind
        GUMBEL, EXPONENTIAL or LAPLACE.
    first, offsets, row
        The chunk's first candidate, counted over all rows; where each row begins, counted so too, and where the
        last one ends (int64); the row of the first candidate.
    keys, halves, slopes, places, highs
        Scratch memory: int64 and twice float64 for BLOCK candidates, or for all of the chunk if these are fewer; one
        int64 and one float64 for each candidate of the chunk.
    winners
        The winner of each row (int64), counted over all rows, set for every row that lies in the chunk and is decided.
    open_index, open_word
        Filled with the candidates, counted over all rows, that are left of every other row or part of a row
        (int64), and their words (uint32).

    Returns
    -------
    tuple
        How many candidates are left open, and 1 if a score is not finite; then nothing else means anything.

    """
    size, close = words.size, are_short(offsets)
    begin, end = offsets[row] - first, offsets[row + 1] - first
    opened, broken = 0, _ZERO_64
    count, threshold = 0, LOWEST_KEY
    best, common = best_of_chunk(scores, a, first, offsets, row)
    for start in range(0, size, BLOCK):
        stop = min(start + BLOCK, size)
        layout, bounding = (first, offsets, row), (keys, halves, slopes)
        best, bad = bound_stretch(scores, words, a, kind, layout, (start, stop), best, common, close, bounding)
        broken = bit_or(broken, bad)
        piece = start
        while piece < stop:
            piece_stop = min(end, stop)
            a_row = at(a, row)
            decided = False
            if piece_stop - piece <= SHORT and piece == begin and piece_stop == end:
                place, second = _top_two(keys, piece - start, piece_stop - start)
                likely = start + place
                if second < lower_bound(halves[likely - start], a_row, words[likely], kind):
                    winners[row] = first + likely
                    decided = True
            if not decided:
                bounds = keys[piece - start : piece_stop - start]
                largest = largest_key(bounds)
                if largest >= threshold:
                    likely = piece + last_place(bounds, largest)
                    threshold = max(threshold, lower_bound(halves[likely - start], a_row, words[likely], kind))
                    if count_from(bounds, threshold) == 1:
                        places[count] = likely
                        count += 1
                    else:
                        for i in range(bounds.size):
                            if bounds[i] >= threshold:
                                places[count] = piece + i
                                count += 1
            piece = piece_stop
            if piece in (end, size):
                if not decided:
                    if count > 1:
                        count = _keep_contenders(scores, words, a_row, kind, places, count, highs)
                    if begin >= 0 and piece == end and count == 1:
                        winners[row] = first + places[0]
                    else:
                        for k in range(count):
                            open_index[opened] = first + places[k]
                            open_word[opened] = words[places[k]]
                            opened += 1
                    count, threshold = 0, LOWEST_KEY
                while piece == end and piece < size:  # rows may be empty
                    row += 1
                    begin, end = end, offsets[row + 1] - first
    return opened, broken


@kernel
def select_row(scores, words, a, kind):
    """Return the winner of one row, a chunk by itself; -1 if it is left open, or if a score is not finite.

    What `select_chunk` does, with memory of its own: to hand that over takes longer than to select among a few.
    """
    size = words.size
    block = min(size, BLOCK)
    offsets, winners = np.empty(2, np.int64), np.empty(1, np.int64)
    offsets[0], offsets[1], winners[0] = 0, size, -1
    keys, halves, slopes = np.empty(block, np.int64), np.empty(block), np.empty(block)
    places, highs = np.empty(size, np.int64), np.empty(size)
    index, word = np.empty(size, np.int64), np.empty(size, np.uint32)
    _, broken = select_chunk(
        scores, words, a, kind, _FIRST, offsets, _FIRST, keys, halves, slopes, places, highs, winners, index, word
    )
    return winners[0] if broken == _ZERO_64 else np.int64(-1)


@kernel
def compare_groups(scores, words, a, kind, starts, places, highs, contenders):
    """Compare what is left open of every row: fill ``contenders`` with how many places each row keeps.

    Row g has the candidates from ``starts[g]`` up to ``starts[g + 1]``, and is multiplied by ``a``, or ``a[g]``;
    ``places`` counts from 0 and keeps, from ``starts[g]`` on, those of its contenders. ``highs`` is scratch memory,
    a float64 for each candidate of all rows.
    """
    for g in range(contenders.size):
        own = places[starts[g] : starts[g + 1]]
        contenders[g] = _keep_contenders(scores, words, at(a, g), kind, own, own.size, highs)


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
