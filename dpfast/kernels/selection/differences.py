"""Scores relative to the best one of their row, exactly where they are integers; and floats in the order of integers.

Rows of a chunk share one best score, the chunk's, where a times every difference is small: bounds that err by a few
units of 2**-53 of a product stay as close as they are for the row's own.

Halves of differences are taken, (score - best) / 2, since a difference itself may overflow. That of two integers is
exact before it is converted to float64, with one rounding; that of two floats rounds once, and halving a subnormal
loses 2**-1075.
"""

from __future__ import annotations

import numpy as np
from numba import types

from dpfast.kernels.compilation import by_types, inlined, kernel
from dpfast.kernels.intrinsics import bit_xor, bits_of_f64, f64_from_bits, shift_right, spread_sign, subtract
from dpfast.kernels.parameters import largest_of_rows

__all__ = [
    "best_of_chunk",
    "best_score",
    "half_below",
    "half_difference",
    "halve_below",
    "halve_row",
    "ordered",
    "unordered",
]

_ONE_64 = np.uint64(1)
#: What a times a difference may be where rows share a best score: its error stays below 2**-33.
_SMALL = 2.0**16


@inlined
def ordered(x):
    """Return an int64 that is ordered as the floats are: the larger of two is a vector instruction for it."""
    bits = bits_of_f64(x)
    return np.int64(bit_xor(bits, shift_right(spread_sign(bits), _ONE_64)))


@inlined
def unordered(key):
    """Return the float whose ordered integer this is."""
    bits = np.uint64(key)
    return f64_from_bits(bit_xor(bits, shift_right(spread_sign(bits), _ONE_64)))


@by_types(inline=True)
def half_difference(score, other):
    """Return (score - other) / 2, rounded once, as float64: the difference itself could overflow."""
    if isinstance(score, types.Float):
        return lambda score, other: 0.5 * np.float64(score) - 0.5 * np.float64(other)

    def of_integers(score, other):
        # The difference of two int64 fits into a uint64, once one knows its sign.
        x, y = np.uint64(np.int64(score)), np.uint64(np.int64(other))
        if score >= other:
            return 0.5 * np.float64(subtract(x, y))
        return -0.5 * np.float64(subtract(y, x))

    return of_integers


@by_types(inline=True)
def half_below(score, reference):
    """Return (score - reference) / 2 for a score that is not above the reference, rounded once."""
    if isinstance(score, types.Float):
        return lambda score, reference: 0.5 * np.float64(score) - 0.5 * np.float64(reference)
    # The difference of two int64 fits into a uint64, as the score is not above the reference.
    return lambda score, reference: (
        -0.5 * np.float64(subtract(np.uint64(np.int64(reference)), np.uint64(np.int64(score))))
    )


@by_types(inline=True)
def _rank(score):
    """Return an int64 that is ordered as the scores are; a NaN is above all or below all."""
    if isinstance(score, types.Float):
        return lambda score: ordered(np.float64(score))
    return lambda score: np.int64(score)


@by_types(inline=True)
def _ranked(rank, score):
    """Return the score of a rank: a float64 if ``score`` is a float, else an int64."""
    if isinstance(score, types.Float):
        return lambda rank, score: unordered(rank)
    return lambda rank, score: rank


@kernel
def best_score(scores):
    """Return the best of some scores, as a float64 or an int64."""
    best = _rank(scores[0])
    for i in range(scores.size):
        best = max(best, _rank(scores[i]))
    return _ranked(best, scores[0])


@kernel
def best_of_chunk(scores, a, first, offsets, row):
    """Return the best of a chunk's scores, and whether it may take the place of the best of each row.

    ``first``, ``offsets`` and ``row`` are those of `select_chunk`, and so is ``a``. NaN and infinities may not.
    """
    best = worst = _rank(scores[0])
    for i in range(scores.size):
        best = max(best, _rank(scores[i]))
        worst = min(worst, _rank(scores[i]))
    highest, lowest = _ranked(best, scores[0]), _ranked(worst, scores[0])
    slope = largest_of_rows(a, offsets, row, first + scores.size)
    return highest, (2.0 * slope) * half_difference(highest, lowest) <= _SMALL


@kernel
def halve_below(scores, first, offsets, row, start, best, halves):
    """Fill ``halves`` with (score - best) / 2 for the candidates of a chunk from ``start`` on, each in its own row.

    The best score is that of the part of its row that lies in the chunk: ``best`` for a row that begins before
    ``start``. That of the last row is returned. ``first``, ``offsets`` and ``row`` are those of `select_chunk`, ``row``
    being that of ``start``.
    """
    stop = start + halves.size
    place = start
    while place < stop:
        begin, end = max(offsets[row] - first, 0), min(offsets[row + 1] - first, scores.size)
        if end > place:
            if place == begin:
                best = best_score(scores[place:end])
            for i in range(place, min(end, stop)):
                halves[i - start] = half_below(scores[i], best)
            place = min(end, stop)
        row += 1
    return best


@kernel
def halve_row(scores, best, halves):
    """Fill ``halves`` with (score - best) / 2 for scores of one row, none above ``best``."""
    for i in range(halves.size):
        halves[i] = half_below(scores[i], best)


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
