"""Certified private selection: the candidate with the largest key ``a * score + noise`` in every row.

A word is 32 random bits: a sign, then the first 31 bits r of a number V or U in [r, r+1) * 2**-31. The noise is

    GUMBEL        -ln(-ln(1 - V))      the exponential mechanism
    EXPONENTIAL   -ln U                permute-and-flip; the sign is not used
    LAPLACE       -s ln U              report noisy max

Three steps. (1) For every candidate an upper bound of its key, crude and cheap. (2) The candidate with the largest
one gets a lower bound; whoever's upper bound does not reach it is out, which mostly leaves one. (3) Those left get
close bounds on both sides; the ones whose upper end reaches the best lower end are the contenders. A single one has
won. Otherwise a caller must compare *all* of them with more bits of the same words: three or more may contend.

Step 1, in float64 with u = 2**-53. All three kinds of noise are at most -ln(r 2**-31) if r > 0 (-ln(1 - V) >= V),
and at most 0 if negative. Let x be r rounded to float32 and x = 2**k (1 + f): its bits, read as an integer, are
2**23 (k + f + 127), and log2(x) >= k + f as log2 is concave. So the noise is at most

    158 ln 2 - ln 2 * 2**-23 * bits + 2**-24 (1 + 2**-20)     the last term for the rounding to x

and at most 0.06 more than -ln(r 2**-31); 2**-23 in the code leaves 5e-8 for the rounding of these 110 in float64.
Where rows are short, two terms make it closer. log2(1 + f) >= f + K f (1 - f), K = 1 - 1 / (2 ln 2) = 0.27865..: the
difference is 0 at both ends, with slope 0 at f = 1, first concave, then convex; f (1 - f) in float32 errs by 2**-27.
And ln(-ln(1 - V)) = ln V + V / 2 + 5 V**2 / 24 + .., where all coefficients are positive (they are those of Gregory's
partial sums, 1/2, 5/12, 3/8, 251/720.., over 1, 2, 3..): Gumbel noise is at most -ln V - V / 2 - 5 V**2 / 24.
The product p = a * score is off by 2u |p| (the conversion of an integer, the product) plus an underflow
below 2**-1074, the sum rounds by u (|p| + 110), adding 8u |p| again by about as much: 4u |p| and 4e-14 together.
A p below -2**1000 is raised to that, +inf stays; NaN does not occur, since 0 < a <= 2**980 and finite scores
are required (others are reported).

Step 2, likewise: log2(x) <= k + f + K f (1 - f) + 0.02013, 0.01396 in ln x, and the cell's upper end is 1/r further in
the logarithm. By the series above, ln(-ln(1 - V)) - ln V - V / 2 - 5 V**2 / 24 over V**3 rises with V, up to 0.4012
for V <= 7/8 + 2**-31, so that Gumbel noise is at least the bound above less 0.403 V**3 there; 0.0141 in the code leaves
1e-4 for the roundings of x, of the constants and of the cell's end in V. Other words take the close bounds of step 3.

Step 3. Scores are taken relative to the best one among those compared, which changes no comparison of keys:
d = 2a * ((score - best) / 2) has a relative error of 3u (integers are subtracted exactly, then rounded), and halving
a subnormal loses 2**-1075, which makes 2**-94 for a <= 2**980. Errors of the noise, beside the unread bits:

    EXPONENTIAL, LAPLACE   5.1u E for E = -ln((r + 1/2) 2**-31)        logarithm.py
    GUMBEL                 1.3u |G| + 6.5u                             below

G = -ln E with E = -ln(1 - V), 1 - V = (2**31 - r - 1/2) 2**-31 without rounding, so that E has a relative error
of 5.1u also next to V = 0, where the best candidates lie. For the outer logarithm, with E = M 2**k, M in [sqrt(1/2),
sqrt(2)): ln M is off by 3.2u |ln M| <= 1.12u, k ln 2 by 0.3u (|G| + 0.35), the last operation by u |G|.
The sum d + noise rounds once and so does each end of the interval: the code's 16u (|d| + |noise| + 1) is more than
twice all of this.

The unread bits: 1.0607 * width for E (logarithm.py). For G, with U = 1 - V: |dG/dU| = 1 / phi, phi(U) = -U ln U,
concave and 0 at 0 and 1, hence within the cell, whose half is 2**-32, phi >= (2/3) phi(middle) for
1 <= r <= 2**31 - 2: at most 1.5 * 2**-32 / phi(middle), about 3 / (4r) for small r. The two outermost cells are
unbounded on one side.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import overload

from dpfast.kernels.compilation import inlined, kernel
from dpfast.kernels.intrinsics import (
    absolute,
    bit_and,
    bit_or,
    bit_xor,
    bits_of_f32,
    bits_of_f64,
    choose,
    f32_from_bits,
    f32_from_i32,
    f64_from_i32,
    fused_multiply_add,
    i32_from_u32,
    maximum,
    shift_right,
    spread_sign,
    subtract,
    u64_from_u32,
)
from dpfast.kernels.logarithm import exponential_f64, minus_log_f64
from dpfast.kernels.parameters import at

__all__ = [
    "BLOCK",
    "EXPONENTIAL",
    "GUMBEL",
    "HIGHEST_KEY",
    "LAPLACE",
    "LOWEST_KEY",
    "are_short",
    "bound_above",
    "compare_groups",
    "count_from",
    "half_difference",
    "interval",
    "largest_key",
    "lower_bound",
    "noise_of",
    "select_chunk",
    "spread",
]

GUMBEL, EXPONENTIAL, LAPLACE = 0, 1, 2

BLOCK = 2048
"""Candidates whose upper bounds are held at a time: 16 kB, which stay in the first-level cache."""

_REST_32, _SIGN_32, _ZERO_32 = np.uint32(0x7FFFFFFF), np.uint32(0x80000000), np.uint32(0)
_REST_64, _ZERO_64, _ONE_64 = np.uint64(0x7FFFFFFF), np.uint64(0), np.uint64(1)
_INFINITY = np.inf
LOWEST_KEY = np.int64(np.array(-np.inf).view(np.int64) ^ np.int64(2**63 - 1))
HIGHEST_KEY = np.int64(np.array(np.inf).view(np.int64))
_SHORT = 32
_HUGE, _HALF_HUGE = 2.0**1000, 2.0**999
_LN2 = 0.6931471805599453
_STEP, _START = -_LN2 * 2.0**-23, 158 * _LN2 + 2.0**-23
_BEND, _START_BELOW = -0.2786 * _LN2, 158 * _LN2 - 0.0141
_TO_V = 2.0**-31 * (1 - 2.0**-22)  # rounds V down
_MANTISSA_32, _ONE_BITS_32 = np.uint32(0x7FFFFF), np.uint32(0x3F800000)
_ONE_F32, _TWO_F32 = np.float32(1.0), np.float32(2.0)
_LATE = np.uint32(7 << 28)
_SLACK, _CLOSE_SLACK = 8 * 2.0**-53, 16 * 2.0**-53
_M_PLUS_ONE = 32.0
_WIDTH_E, _WIDTH_G = 1.0625, 1.52 * 2.0**-32
# E > 2**-31, as r = 0 is apart; times 2**33 it is above 1/2, as minus_log_f64 asks.
_SCALE_E, _SCALE_E_PLUS_ONE = 2.0**33, 34.0
_ABOVE_FIRST_CELL = 21.4875  # 31 ln 2 = 21.48756..: noise of the cell r = 0 is larger
_BELOW_LAST_CELL = -3.06  # -ln(31 ln 2) = -3.0675..: Gumbel noise of the cell r = 2**31 - 1 is smaller


@inlined
def _ordered(x):
    """Return an int64 that is ordered as the floats are: the larger of two is a vector instruction for it."""
    bits = bits_of_f64(x)
    return np.int64(bit_xor(bits, shift_right(spread_sign(bits), _ONE_64)))


def half_difference(score, other):
    """Return (score - other) / 2, rounded once, as float64: the difference itself could overflow."""
    raise NotImplementedError("compiled code only")


@overload(half_difference, inline="always")
def _half_difference_of(score, other):
    if isinstance(score, types.Float):
        return lambda score, other: 0.5 * np.float64(score) - 0.5 * np.float64(other)

    def of_integers(score, other):
        # The difference of two int64 fits into a uint64, once one knows its sign.
        x, y = np.uint64(np.int64(score)), np.uint64(np.int64(other))
        if score >= other:
            return 0.5 * np.float64(subtract(x, y))
        return -0.5 * np.float64(subtract(y, x))

    return of_integers


@inlined
def _bend(bits):
    """Return f * (1 - f) for the mantissa 1 + f of a float32, from its bits."""
    mantissa = f32_from_bits(bit_or(bit_and(bits, _MANTISSA_32), _ONE_BITS_32))
    return np.float64((mantissa - _ONE_F32) * (_TWO_F32 - mantissa))


@inlined
def _upper_bound(score, word, a, sign_bit, to_v, close):
    """Return an upper bound of the key a * score + noise, ordered, and 1 if the score is not finite (step 1)."""
    r = bit_and(word, _REST_32)
    x = f32_from_i32(r)
    bits = bits_of_f32(x)
    noise = fused_multiply_add(f64_from_i32(i32_from_u32(bits)), _STEP, _START)
    if close:
        v = to_v * np.float64(x)
        noise = fused_multiply_add(_bend(bits), _BEND, noise)
        noise = fused_multiply_add(fused_multiply_add(v, -5 / 24, -0.5), v, noise)
    noise = choose(r == _ZERO_32, _INFINITY, noise)
    noise = choose(bit_and(word, sign_bit) == _ZERO_32, noise, 0.0)
    product = maximum(a * score, -_HUGE)
    key = _ordered(fused_multiply_add(absolute(product), _SLACK, product + noise))
    return key, choose(absolute(score) < _INFINITY, _ZERO_64, _ONE_64)


@kernel
def bound_above(scores, words, a, kind, close, keys):
    """Fill ``keys`` with upper bounds of the candidates' keys (step 1), ordered; return 1 if a score is not finite.

    ``close`` asks for closer ones, which take half as long again.
    """
    sign_bit = _SIGN_32 if kind == LAPLACE else _ZERO_32
    to_v = _TO_V if kind == GUMBEL else 0.0
    broken = _ZERO_64
    if close:
        for i in range(keys.size):
            keys[i], bad = _upper_bound(np.float64(scores[i]), words[i], at(a, i), sign_bit, to_v, True)
            broken = bit_or(broken, bad)
    else:
        for i in range(keys.size):
            keys[i], bad = _upper_bound(np.float64(scores[i]), words[i], at(a, i), sign_bit, to_v, False)
            broken = bit_or(broken, bad)
    return broken


@inlined
def are_short(offsets):
    """Return whether rows have so few candidates that closer bounds save more than they cost."""
    return offsets[offsets.size - 1] <= _SHORT * (offsets.size - 1)


@kernel
def largest_key(keys):
    """Return the largest of some keys."""
    largest = keys[0]
    for i in range(keys.size):
        largest = max(largest, keys[i])
    return largest


@kernel
def _last_place(keys, key):
    place = 0
    for i in range(keys.size):
        place = max(place, i if keys[i] == key else 0)
    return place


@kernel
def count_from(keys, threshold):
    """Return how many keys are not below a threshold."""
    count = 0
    for i in range(keys.size):
        count += 1 if keys[i] >= threshold else 0
    return count


@kernel
def noise_of(word, kind):
    """Return (noise, below, above): the noise of a word lies in [noise - below, noise + above], unread bits alone."""
    r = bit_and(u64_from_u32(word), _REST_64)
    if kind == GUMBEL:
        if r == _ZERO_64:
            return _ABOVE_FIRST_CELL, 0.0, _INFINITY
        if r == _REST_64:
            return _BELOW_LAST_CELL, _INFINITY, 0.0
        rest = subtract(_REST_64, r)
        e, _ = exponential_f64(rest, _M_PLUS_ONE)
        noise, _ = minus_log_f64(bits_of_f64(e * _SCALE_E), _SCALE_E_PLUS_ONE)
        width = _WIDTH_G / (e * ((np.float64(rest) + 0.5) * 2.0**-31))
        return noise, width, width
    negative = kind == LAPLACE and word >= _SIGN_32
    if r == _ZERO_64:
        return (-_ABOVE_FIRST_CELL, _INFINITY, 0.0) if negative else (_ABOVE_FIRST_CELL, 0.0, _INFINITY)
    e, cell = exponential_f64(r, _M_PLUS_ONE)
    width = _WIDTH_E * cell
    return (-e, width, width) if negative else (e, width, width)


@kernel
def interval(score, reference, a, word, kind):
    """Return two ends between which a * (score - reference) + noise lies (step 3)."""
    noise, below, above = noise_of(word, kind)
    d = (2.0 * a) * half_difference(score, reference)
    # Out of range, d dwarfs every noise but that of the outermost cells, which is unbounded.
    if d > _HUGE:
        return _HALF_HUGE - below, _INFINITY
    if d < -_HUGE:
        return -_INFINITY, above - _HALF_HUGE
    error = _CLOSE_SLACK * (abs(d) + abs(noise) + 1.0)
    return (d + noise) - (below + error), (d + noise) + (above + error)


@inlined
def lower_bound(score, a, word, kind):
    """Return a lower bound of the key a * score + noise, -inf for want of a better one; ordered (step 2)."""
    r = bit_and(word, _REST_32)
    negative = kind == LAPLACE and word >= _SIGN_32
    if r == _ZERO_32 or negative or (kind == GUMBEL and r >= _LATE):
        noise, below, _ = noise_of(word, kind)
        noise -= below
    else:
        x = f32_from_i32(r)
        bits = bits_of_f32(x)
        noise = fused_multiply_add(f64_from_i32(i32_from_u32(bits)), _STEP, _START_BELOW)
        noise = fused_multiply_add(_bend(bits), _BEND, noise)
        v = np.float64(x) * 2.0**-31
        noise -= 1.0 / np.float64(x) + (v * (0.5 + v * (5 / 24 + 0.403 * v)) if kind == GUMBEL else 0.0)
    product = a * np.float64(score)
    low = (product + noise) - _CLOSE_SLACK * (abs(product) + abs(noise) + 1.0)
    # +inf (and NaN) comes of an overflow, and says nothing.
    return _ordered(low if low < _INFINITY else -_INFINITY)


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


def spread(a, offsets, row, start, slopes):
    """Return what the candidates from ``start`` on are multiplied by: a number, or ``slopes``, which it fills."""
    raise NotImplementedError("compiled code only")


@overload(spread)
def _spread_of(a, offsets, row, start, slopes):
    if not isinstance(a, types.Array):
        return lambda a, offsets, row, start, slopes: a

    def of_rows(a, offsets, row, start, slopes):
        filled = 0
        while filled < slopes.size:
            stop = min(offsets[row + 1] - start, slopes.size)
            for i in range(filled, stop):
                slopes[i] = a[row]
            filled = stop
            row += 1
        return slopes

    return of_rows


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
        low, highs[k] = interval(scores[i], reference, a, words[i], kind)
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
    scores, words, a, kind, first, offsets, row, keys, slopes, places, highs, winners, open_index, open_word
):
    """Select in every row of a chunk of candidates, and hand on what the chunk alone does not decide.

    Parameters
    ----------
    scores, words
        The chunk's scores (int64, int32, uint32, float64 or float32) and words (uint32).
    a
        What scores are multiplied by: a float64, or one for each row.
    kind
        GUMBEL, EXPONENTIAL or LAPLACE.
    first, offsets, row
        The chunk's first candidate, counted over all rows; where each row begins, counted so too, and where the
        last one ends (int64); the row of the first candidate.
    keys, slopes, places, highs
        Scratch memory: BLOCK int64 and BLOCK float64, one int64 and one float64 for each candidate of the chunk.
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
    for start in range(0, size, BLOCK):
        stop = min(start + BLOCK, size)
        own = spread(a, offsets, row, first + start, slopes[: stop - start])
        broken = bit_or(
            broken, bound_above(scores[start:stop], words[start:stop], own, kind, close, keys[: stop - start])
        )
        piece = start
        while piece < stop:
            piece_stop = min(end, stop)
            a_row = at(a, row)
            decided = False
            if piece_stop - piece <= _SHORT and piece == begin and piece_stop == end:
                place, second = _top_two(keys, piece - start, piece_stop - start)
                likely = start + place
                if second < lower_bound(scores[likely], a_row, words[likely], kind):
                    winners[row] = first + likely
                    decided = True
            if not decided:
                bounds = keys[piece - start : piece_stop - start]
                largest = largest_key(bounds)
                if largest >= threshold:
                    likely = piece + _last_place(bounds, largest)
                    threshold = max(threshold, lower_bound(scores[likely], a_row, words[likely], kind))
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
def compare_groups(scores, words, a, kind, starts, places, highs, contenders):
    """Compare what is left open of every row: fill ``contenders`` with how many places each row keeps.

    Row g has the candidates from ``starts[g]`` up to ``starts[g + 1]``, and is multiplied by ``a``, or ``a[g]``;
    ``places`` counts from 0 and keeps, from ``starts[g]`` on, those of its contenders. ``highs`` is scratch memory,
    a float64 for each candidate of all rows.
    """
    for g in range(contenders.size):
        own = places[starts[g] : starts[g + 1]]
        contenders[g] = _keep_contenders(scores, words, at(a, g), kind, own, own.size, highs)


# Stamp of all kernel sources (scripts/stamp_kernels.py): 1a6b6976592eef7c
