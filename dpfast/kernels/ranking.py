"""Certified ranking: the ``count`` candidates with the largest keys ``a * score + noise`` in every row, in order.

The keys, their bounds and the words are those of selection.py. Here the ``count`` largest lower bounds met so far are
kept in a heap, and whoever's upper bound does not reach the smallest of these is out: ``count`` others are certainly
larger. (Of a row that lies in one block, those with the largest upper bounds are found first, and they alone need
lower ones.) Those left at the end of a row get close bounds on both sides and are sorted by the lower ends. The order
is certain if each of the first ``count`` lower ends lies above the upper ends of all that come after it; otherwise a
caller must compare all of them with more bits of the same words.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import kernel
from dpfast.kernels.intrinsics import bit_or
from dpfast.kernels.parameters import at
from dpfast.kernels.selection import (
    BLOCK,
    HIGHEST_KEY,
    LOWEST_KEY,
    bound_above,
    count_from,
    interval,
    largest_key,
    lower_bound,
    spread,
)

__all__ = ["rank_chunk", "rank_groups"]

_ZERO_64 = np.uint64(0)
_INFINITY = np.inf
#: Up to so many candidates are sorted by insertion.
_FEW = 48


@kernel
def _replace_smallest(heap, owners, key, owner):
    """Put a key in the place of the smallest one, ``heap[0]``: no entry is larger than those at 2i + 1 and 2i + 2."""
    place, child = 0, 1
    while child < heap.size:
        if child + 1 < heap.size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= key:
            break
        heap[place], owners[place] = heap[child], owners[child]
        place, child = child, 2 * child + 1
    heap[place], owners[place] = key, owner


@kernel
def _gather_row(scores, words, a, kind, bounds, begin, heap, owners, places):
    """Fill ``places`` with the candidates of a whole row that may be among the best; return how many.

    Those with the largest upper bounds are found first, so that they alone need lower ones.
    """
    if bounds.size <= heap.size:
        for k in range(bounds.size):
            places[k] = begin + k
        return bounds.size
    heap[:] = LOWEST_KEY - 1  # below every bound
    for k in range(bounds.size):
        if bounds[k] > heap[0]:
            _replace_smallest(heap, owners, bounds[k], k)
    threshold = HIGHEST_KEY
    for k in range(heap.size):
        i = begin + owners[k]
        places[k] = i
        threshold = min(threshold, lower_bound(scores[i], a, words[i], kind))
    count = heap.size
    if count_from(bounds, threshold) > count:
        count = 0
        for k in range(bounds.size):
            if bounds[k] >= threshold:
                places[count] = begin + k
                count += 1
    return count


@kernel
def _sort(lows, highs, places, count):
    """Sort the first ``count`` entries of all three by the lower ends, the largest first."""
    if count > _FEW:
        order = np.argsort(-lows[:count])
        lows[:count], highs[:count], places[:count] = lows[order], highs[order], places[order]
        return
    for k in range(1, count):
        low, high, place = lows[k], highs[k], places[k]
        j = k
        while j > 0 and lows[j - 1] < low:
            lows[j], highs[j], places[j] = lows[j - 1], highs[j - 1], places[j - 1]
            j -= 1
        lows[j], highs[j], places[j] = low, high, place


@kernel
def _rank(scores, words, a, kind, places, count, lows, highs, wanted):
    """Sort the first ``count`` places of a row by their keys; return whether the first ``wanted`` are certain."""
    reference = scores[places[0]]
    for k in range(1, count):
        reference = max(reference, scores[places[k]])
    for k in range(count):
        i = places[k]
        lows[k], highs[k] = interval(scores[i], reference, a, words[i], kind)
    _sort(lows, highs, places, count)
    largest_after, certain = -_INFINITY, True
    for k in range(count - 1, -1, -1):
        if k < wanted and k < count - 1 and not lows[k] > largest_after:
            certain = False
        largest_after = max(largest_after, highs[k])
    return certain


@kernel
def rank_chunk(
    scores,
    words,
    a,
    kind,
    first,
    offsets,
    row,
    keys,
    slopes,
    heap,
    owners,
    places,
    lows,
    highs,
    winners,
    won,
    opened,
):
    """Rank every row of a chunk of candidates, and hand on what the chunk alone does not decide.

    Parameters
    ----------
    scores, words, a, kind, first, offsets, row, keys, slopes
        As for `select_chunk`.
    heap, owners, places, lows, highs
        Scratch memory: two int64 for each winner wanted; one int64 and two float64 for each candidate of the chunk.
    winners, won
        The winners of each row, the largest first, counted over all rows (int64, 2-D), and their words (uint32); set
        for every row that lies in the chunk and is decided. A row of fewer candidates has them all.
    opened
        Filled with the candidates that are left of every other row or part of a row, counted in the chunk (int64),
        in any order within a row.

    Returns
    -------
    tuple
        How many candidates are left open, and 1 if a score is not finite; then nothing else means anything.

    """
    size = words.size
    begin, end = offsets[row] - first, offsets[row + 1] - first
    left_open, count, broken = 0, 0, _ZERO_64
    heap[:] = LOWEST_KEY
    for start in range(0, size, BLOCK):
        stop = min(start + BLOCK, size)
        own = spread(a, offsets, row, first + start, slopes[: stop - start])
        broken = bit_or(
            broken, bound_above(scores[start:stop], words[start:stop], own, kind, True, keys[: stop - start])
        )
        piece = start
        while piece < stop:
            piece_stop = min(end, stop)
            bounds = keys[piece - start : piece_stop - start]
            a_row = at(a, row)
            whole = piece == begin and piece_stop == end
            if whole:
                count = _gather_row(scores, words, a_row, kind, bounds, begin, heap, owners, places)
            elif largest_key(bounds) >= heap[0]:
                for k in range(bounds.size):
                    if bounds[k] >= heap[0]:
                        i = piece + k
                        low = lower_bound(scores[i], a_row, words[i], kind)
                        if low > heap[0]:
                            _replace_smallest(heap, owners, low, i)
                        places[count] = i
                        # The upper bound, for now, where places that are left open may go.
                        opened[left_open + count] = bounds[k]
                        count += 1
            piece = piece_stop
            if piece in (end, size):
                kept = count if whole else 0
                for k in range(0 if whole else count):
                    if opened[left_open + k] >= heap[0]:
                        places[kept] = places[k]
                        kept += 1
                wanted = min(heap.size, end - begin)
                if begin >= 0 and piece == end and _rank(scores, words, a_row, kind, places, kept, lows, highs, wanted):
                    for k in range(wanted):
                        winners[row, k] = first + places[k]
                        won[row, k] = words[places[k]]
                else:
                    for k in range(kept):
                        opened[left_open] = places[k]
                        left_open += 1
                count = 0
                heap[:] = LOWEST_KEY
                while piece == end and piece < size:  # rows may be empty
                    row += 1
                    begin, end = end, offsets[row + 1] - first
    return left_open, broken


@kernel
def rank_groups(scores, words, a, kind, starts, wanted, places, lows, highs, certain):
    """Rank what is left open of every row: sort its places, and set whether the first ``wanted[g]`` are certain.

    Row g has the candidates from ``starts[g]`` up to ``starts[g + 1]``, of which ``places`` are the numbers, and is
    multiplied by ``a``, or ``a[g]``. ``lows`` and ``highs`` are filled with the ends of their keys, in the same order.
    """
    for g in range(certain.size):
        own = slice(starts[g], starts[g + 1])
        count = starts[g + 1] - starts[g]
        certain[g] = _rank(scores, words, at(a, g), kind, places[own], count, lows[own], highs[own], wanted[g])


# Stamp of all kernel sources (scripts/stamp_kernels.py): 1a6b6976592eef7c
