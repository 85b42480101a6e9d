"""Certified ranking: the ``wanted`` candidates with the largest keys ``a * score + noise`` in every row, in order.

The keys, their bounds and the words are those of `key_bounds`. Of every row, or part of a row, those with the largest
upper bounds are found first; the smallest of their lower bounds is a threshold that ``wanted`` candidates certainly
reach. A candidate whose upper bound does not reach it is out. Those left get close bounds on both sides and are sorted
by the lower ends. The order is certain if each of the first ``wanted`` lower ends lies above the upper ends of all that
come after it; otherwise a caller must compare those whose order is open with more bits of the same words.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import inlined, kernel
from dpfast.kernels.intrinsics import bit_or
from dpfast.kernels.parameters import at
from dpfast.kernels.selection.differences import best_of_chunk, best_score, half_difference, halve_row, ordered
from dpfast.kernels.selection.key_bounds import (
    BLOCK,
    HIGHEST_KEY,
    LOWEST_KEY,
    bound_above,
    bound_closely,
    bound_stretch,
    interval,
    largest_key,
    lower_bound,
)
from dpfast.kernels.selection.sorting import sort_descending, threshold_of_largest

__all__ = ["end_of_stretch", "rank_again", "rank_chunk", "rank_groups", "rank_part", "rank_row"]

# A literal 0 would have what it is passed to compiled once more.
_ZERO_64, _FIRST = np.uint64(0), np.int64(0)
_INFINITY = np.inf
#: Up to so many candidates are sorted by insertion.
_FEW = 96
_STRETCH = 64
#: Candidates of which a threshold is guessed.
_SAMPLE = 16_384


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
def gather(bounds, halves, words, a, kind, wanted, heap, owners, counts, places):
    """Fill ``places`` with the candidates of a row, or of a part of one, that may be among the best; return how many.

    Those with the largest upper bounds are found first: the smallest of their lower bounds is a threshold which as many
    as are wanted certainly reach. They are kept in ``heap`` where they fit, else counted by their digits. ``counts`` is
    scratch memory, 2048 int64. Places ascend.
    """
    size = bounds.size
    if size <= wanted:
        for k in range(size):
            places[k] = k
        return size
    threshold = HIGHEST_KEY
    if wanted <= heap.size:
        best = heap[:wanted]
        for k in range(wanted):
            best[k] = LOWEST_KEY - 1  # below every bound
        for start in range(0, size, _STRETCH):
            stop = min(start + _STRETCH, size)
            if size > _STRETCH and largest_key(bounds[start:stop]) <= best[0]:
                continue
            for k in range(start, stop):
                if bounds[k] > best[0]:
                    _replace_smallest(best, owners, bounds[k], k)
        for k in range(wanted):
            i = owners[k]
            threshold = min(threshold, lower_bound(halves[i], a, words[i], kind))
    else:
        first = threshold_of_largest(bounds, wanted, counts)
        for i in range(size):
            if bounds[i] >= first:
                threshold = min(threshold, lower_bound(halves[i], a, words[i], kind))
    count = 0
    for k in range(size):
        if bounds[k] >= threshold:
            places[count] = k
            count += 1
    return count


@kernel
def _sort(lows, highs, places, count):
    """Sort the first ``count`` entries of all three by the lower ends, the largest first."""
    if count > _FEW:
        sort_descending(lows[:count], highs[:count], places[:count])
        return
    for k in range(1, count):
        low, high, place = lows[k], highs[k], places[k]
        j = k
        while j > 0 and lows[j - 1] < low:
            lows[j], highs[j], places[j] = lows[j - 1], highs[j - 1], places[j - 1]
            j -= 1
        lows[j], highs[j], places[j] = low, high, place


@kernel
def is_certain(lows, highs, count, wanted):
    """Return whether each of the first ``wanted`` lower ends lies above all the upper ends that follow."""
    largest_after, certain = -_INFINITY, True
    for k in range(count - 1, -1, -1):
        if k < wanted and k < count - 1 and not lows[k] > largest_after:
            certain = False
        largest_after = max(largest_after, highs[k])
    return certain


@kernel
def rank(scores, words, a, kind, places, count, lows, highs, wanted):
    """Sort the first ``count`` places of a row by their keys; return whether the first ``wanted`` are certain."""
    reference = scores[places[0]]
    for k in range(1, count):
        reference = max(reference, scores[places[k]])
    for k in range(count):
        i = places[k]
        lows[k], highs[k] = interval(half_difference(scores[i], reference), a, words[i], kind)
    _sort(lows, highs, places, count)
    return is_certain(lows, highs, count, wanted)


@kernel
def end_of_stretch(first, offsets, row, start, size):
    """Return where a stretch of a chunk's rows ends that begins at ``start``: one row, or about BLOCK candidates."""
    stop = min(offsets[row + 1] - first, size)
    while stop < size and stop - start < BLOCK:
        row += 1
        stop = min(offsets[row + 1] - first, size)
    return stop


@inlined
def rank_part(scores, words, a, kind, layout, stretch, wanted, bounding, scratch, outcome):
    """Rank a row of a stretch of a chunk, or gather of the part of a row that lies in it.

    ``layout`` and ``stretch`` are those of `bound_stretch`, ``row`` being the row; ``outcome`` is ``winners, won`` and
    ``opened`` of `rank_chunk`, and how many candidates are left open so far.

    Return how many winners are certain and in order, as many as are wanted or as there are, and how many candidates are
    left open then. Where the winners are not certain, none is returned: those that may be among the best stay open.
    """
    first, offsets, row = layout
    start, stop = stretch
    keys, halves, _ = bounding
    heap, owners, counts, places, lows, highs = scratch
    winners, won, opened, left_open = outcome
    begin, end = offsets[row] - first, offsets[row + 1] - first
    place, part = max(begin, start), min(end, stop)
    here = slice(place - start, part - start)
    count = gather(keys[here], halves[here], words[place:part], a, kind, wanted, heap, owners, counts, places)
    for k in range(count):
        places[k] += place
    needed = min(wanted, part - place)
    if begin >= 0 and part == end and rank(scores, words, a, kind, places, count, lows, highs, needed):
        for k in range(needed):
            winners[row, k], won[row, k] = first + places[k], words[places[k]]
        return needed, left_open
    for k in range(count):
        opened[left_open + k] = places[k]
    return 0, left_open + count


@kernel
def rank_chunk(scores, words, a, kind, layout, wanted, bounding, scratch, winners, won, opened):
    """Rank every row of a chunk of candidates, and hand on what the chunk alone does not decide.

    Parameters
    ----------
    scores, words, a, kind
        As for `select_chunk`.
    layout
        Its ``first``, ``offsets`` and ``row``.
    wanted
        How many winners.
    bounding
        Scratch memory ``keys, halves, slopes``: for each candidate of the chunk one int64 and two float64.
    scratch
        Scratch memory ``heap, owners, counts``: two int64 for each winner wanted, or none where these are many; 2048
        int64. ``places, lows, highs``: for each candidate of the chunk one int64 and two float64.
    winners, won
        The winners of each row, the largest first, counted over all rows (int64, 2-D), and their words (uint32); set
        for every row that lies in the chunk and is decided. A row of fewer candidates has them all.
    opened
        Filled with the candidates that are left of every other row or part of a row, counted in the chunk (int64), in
        any order.

    Returns
    -------
    tuple
        How many candidates are left open, and 1 if a score is not finite; then nothing else means anything.

    """
    first, offsets, row = layout
    size = words.size
    left_open, broken, start = _FIRST, _ZERO_64, _FIRST
    best, common = best_of_chunk(scores, a, first, offsets, row)
    while start < size:
        stop = end_of_stretch(first, offsets, row, start, size)
        stretch = (start, stop)
        best, bad = bound_stretch(scores, words, a, kind, (first, offsets, row), stretch, best, common, True, bounding)
        broken = bit_or(broken, bad)
        place = start
        while place < stop:
            end = offsets[row + 1] - first
            if end > place:
                _, left_open = rank_part(
                    scores,
                    words,
                    at(a, row),
                    kind,
                    (first, offsets, row),
                    stretch,
                    wanted,
                    bounding,
                    scratch,
                    (winners, won, opened, left_open),
                )
                place = min(end, stop)
            if place == end:
                row += 1
        start = stop
    return left_open, broken


@kernel
def _guess_threshold(scores, words, a, kind, wanted, best, counts):
    """Return a number that somewhat more candidates than are wanted reach with their upper bounds, very probably.

    It comes of every so many-th candidate; four standard deviations more of them are asked for.
    """
    stride = max(scores.size // _SAMPLE, 1)
    some, own = scores[::stride].copy(), words[::stride].copy()
    share = wanted * (some.size / scores.size)
    reaching = np.int64(share + 4.0 * np.sqrt(share)) + 8
    if reaching > some.size // 2:
        return LOWEST_KEY
    halves, bounds = np.empty(some.size), np.empty(some.size, np.int64)
    halve_row(some, best, halves)
    bound_above(halves, own, a, kind, True, bounds)
    return threshold_of_largest(bounds, reaching, counts)


@kernel
def _survive(scores, words, a, kind, best, threshold, halves, bounds, places):
    """Keep the candidates of a row whose upper bounds reach a threshold; return how many, and 1 if one is not finite.

    The first ``halves`` (float64), ``bounds`` (int64) and ``places`` (int64) are theirs. Where they are longer than
    what is given, the number returned is larger than that.
    """
    below, above, reaching = np.empty(BLOCK), np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64)
    count, broken = 0, _ZERO_64
    for start in range(0, scores.size, BLOCK):
        stop = min(start + BLOCK, scores.size)
        own, keys = below[: stop - start], above[: stop - start]
        halve_row(scores[start:stop], best, own)
        broken = bit_or(broken, bound_above(own, words[start:stop], a, kind, True, keys))
        found = 0
        for k in range(keys.size):
            reaching[found] = k
            found += 1 if keys[k] >= threshold else 0
        if count + found > places.size:
            return scores.size + 1, broken
        for i in range(found):
            k = reaching[i]
            halves[count + i], bounds[count + i], places[count + i] = own[k], keys[k], start + k
        count += found
    return count, broken


@kernel
def _lowest_of(bounds, first, lows):
    """Return the smallest lower end of those whose upper bounds are not below ``first``."""
    lowest = _INFINITY
    for k in range(bounds.size):
        if bounds[k] >= first:
            lowest = min(lowest, lows[k])
    return lowest


@kernel
def rank_row(scores, words, a, kind, wanted, places, lows, highs):
    """Rank one long row: sort those of its candidates that may be among the first ``wanted``.

    Only candidates whose upper bounds reach a guessed threshold are looked at; where it proves too high, all are.

    Parameters
    ----------
    scores, words, a, kind
        The row's, as for `select_chunk`.
    wanted
        How many winners, at most as many as candidates.
    places, lows, highs
        Filled with those that stay and the ends of their keys, the largest first (int64 and float64), one for each
        candidate of the row.

    Returns
    -------
    tuple
        How many stay, whether the first are certain, and 1 if a score is not finite; then nothing else means anything.

    """
    size, counts = scores.size, np.empty(2048, np.int64)
    best = best_score(scores)
    threshold = _guess_threshold(scores, words, a, kind, wanted, best, counts)
    while True:
        room = size if threshold == LOWEST_KEY else min(size, wanted + wanted // 2 + 4 * BLOCK)
        halves, bounds = np.empty(room), np.empty(room, np.int64)
        count, broken = _survive(scores, words, a, kind, best, threshold, halves, bounds, places[:room])
        if broken != _ZERO_64:
            return 0, False, broken
        if wanted <= count <= room:
            own = np.empty(count, np.uint32)
            for k in range(count):
                own[k] = words[places[k]]
            bound_closely(halves[:count], own, a, kind, lows, highs)
            first = threshold_of_largest(bounds[:count], wanted, counts)
            lowest = ordered(_lowest_of(bounds[:count], first, lows))
            # What has an upper bound below it is out: as many as are wanted are certainly above.
            if threshold == LOWEST_KEY or lowest >= threshold:
                break
        threshold = LOWEST_KEY
    kept = _FIRST
    for k in range(count):
        if bounds[k] >= lowest:
            places[kept], lows[kept], highs[kept] = places[k], lows[k], highs[k]
            kept += 1
    _sort(lows, highs, places, kept)
    return kept, is_certain(lows, highs, kept, wanted), broken


@kernel
def rank_groups(scores, words, a, kind, starts, wanted, places, lows, highs, kept, certain):
    """Rank what is left open of every row: sort the places of those that may be among the first ``wanted[g]``.

    Row g has the candidates from ``starts[g]`` up to ``starts[g + 1]``, of which ``places`` are the numbers, and is
    multiplied by ``a``, or ``a[g]``. ``kept[g]`` of them stay, and ``lows`` and ``highs`` are filled with the ends of
    their keys, in the same order, the largest first; ``certain[g]`` says whether the first are certain. Scores are
    finite.
    """
    for g in range(certain.size):
        start, size = starts[g], starts[g + 1] - starts[g]
        own = slice(start, start + size)
        if size > _FEW:
            kept[g], certain[g], _ = rank_row(
                scores[own], words[own], at(a, g), kind, wanted[g], places[own], lows[own], highs[own]
            )
            for k in range(kept[g]):
                places[start + k] += start
        else:
            kept[g] = size
            certain[g] = rank(scores, words, at(a, g), kind, places[own], size, lows[own], highs[own], wanted[g])


@kernel
def rank_again(scores, words, a, kind, starts, places, lows, highs, certain):
    """Rank runs whose order is open by longer words (uint64, as `noise_of` says); like `rank_groups`, but all stay."""
    for g in range(certain.size):
        own, size = slice(starts[g], starts[g + 1]), starts[g + 1] - starts[g]
        certain[g] = rank(scores, words, a, kind, places[own], size, lows[own], highs[own], size)


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
