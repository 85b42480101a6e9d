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
The product p = a * score is off by 2u |p| (the conversion of an integer, the product) plus an underflow
below 2**-1074, the sum rounds by u (|p| + 110), adding 8u |p| again by about as much: 4u |p| and 4e-14 together.
A p below -2**1000 is raised to that, +inf stays; NaN does not occur, since 0 < a <= 2**980 and finite scores
are required (others are reported).

Step 2, likewise: log2(x) <= k + f + 0.08608, 0.05967 in ln x, and the cell's upper end is 1/r further in the
logarithm. -ln(1 - V) <= V / sqrt(1 - V) and ln(1 - V) / 2 >= -V for V <= 3/4 + 2**-31, so that Gumbel noise is
at least -ln V - V there; 0.0597 in the code leaves 3e-5 for the roundings of x and of the cell's end in V. Other
words take the close bounds of step 3.

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
from dpfast.kernels.parameters import at, part

__all__ = ["BLOCK", "EXPONENTIAL", "GUMBEL", "LAPLACE", "compare_groups", "select_chunk"]

GUMBEL, EXPONENTIAL, LAPLACE = 0, 1, 2

BLOCK = 2048
"""Candidates whose upper bounds are held at a time: 16 kB, which stay in the first-level cache."""

_REST_32, _SIGN_32, _ZERO_32 = np.uint32(0x7FFFFFFF), np.uint32(0x80000000), np.uint32(0)
_REST_64, _ZERO_64, _ONE_64 = np.uint64(0x7FFFFFFF), np.uint64(0), np.uint64(1)
_INFINITY = np.inf
_HUGE, _HALF_HUGE = 2.0**1000, 2.0**999
_LN2 = 0.6931471805599453
_STEP, _START = -_LN2 * 2.0**-23, 158 * _LN2 + 2.0**-23
# The largest x at which log2(x) - (k + f) is largest has it 0.08608: times ln 2, 0.05967.
_START_BELOW = 158 * _LN2 - 0.0597
_LATE = np.uint32(3 << 29)
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


def _half_difference(score, other):
    """Return (score - other) / 2, rounded once, as float64: the difference itself could overflow."""
    raise NotImplementedError("compiled code only")


@overload(_half_difference, inline="always")
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


@kernel
def _bound_above(scores, words, a, sign_bit, keys):
    """Fill ``keys`` with upper bounds of the candidates' keys (step 1), ordered; return 1 if a score is not finite."""
    broken = _ZERO_64
    for i in range(keys.size):
        word = words[i]
        r = bit_and(word, _REST_32)
        bits = i32_from_u32(bits_of_f32(f32_from_i32(r)))
        noise = fused_multiply_add(f64_from_i32(bits), _STEP, _START)
        noise = choose(r == _ZERO_32, _INFINITY, noise)
        noise = choose(bit_and(word, sign_bit) == _ZERO_32, noise, 0.0)
        score = np.float64(scores[i])
        product = maximum(at(a, i) * score, -_HUGE)
        keys[i] = _ordered(fused_multiply_add(absolute(product), _SLACK, product + noise))
        broken = bit_or(broken, choose(absolute(score) < _INFINITY, _ZERO_64, _ONE_64))
    return broken


@kernel
def _largest(keys):
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
def _count_from(keys, threshold):
    count = 0
    for i in range(keys.size):
        count += 1 if keys[i] >= threshold else 0
    return count


@kernel
def _noise(word, kind):
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
def _interval(score, reference, a, word, kind):
    """Return two ends between which a * (score - reference) + noise lies (step 3)."""
    noise, below, above = _noise(word, kind)
    d = (2.0 * a) * _half_difference(score, reference)
    # Out of range, d dwarfs every noise but that of the outermost cells, which is unbounded.
    if d > _HUGE:
        return _HALF_HUGE - below, _INFINITY
    if d < -_HUGE:
        return -_INFINITY, above - _HALF_HUGE
    error = _CLOSE_SLACK * (abs(d) + abs(noise) + 1.0)
    return (d + noise) - (below + error), (d + noise) + (above + error)


@inlined
def _threshold(score, a, word, kind):
    """Return a lower bound of the key a * score + noise, -inf for want of a better one; ordered (step 2)."""
    r = bit_and(word, _REST_32)
    negative = kind == LAPLACE and word >= _SIGN_32
    if r == _ZERO_32 or negative or (kind == GUMBEL and r >= _LATE):
        noise, below, _ = _noise(word, kind)
        noise -= below
    else:
        x = f32_from_i32(r)
        noise = fused_multiply_add(f64_from_i32(i32_from_u32(bits_of_f32(x))), _STEP, _START_BELOW)
        noise -= 1.0 / np.float64(x) + (np.float64(x) * 2.0**-31 if kind == GUMBEL else 0.0)
    product = a * np.float64(score)
    low = (product + noise) - _CLOSE_SLACK * (abs(product) + abs(noise) + 1.0)
    # +inf (and NaN) comes of an overflow, and says nothing.
    return _ordered(low if low < _INFINITY else -_INFINITY)


@kernel
def _keep_contenders(scores, words, a, kind, places, count, highs):
    """Keep of the first ``count`` places those of contenders (step 3), in order; return how many."""
    best = places[0]
    for k in range(1, count):
        if scores[places[k]] > scores[best]:
            best = places[k]
    reference = scores[best]
    best_low = -_INFINITY
    for k in range(count):
        i = places[k]
        low, highs[k] = _interval(scores[i], reference, at(a, i), words[i], kind)
        if low > best_low:
            best_low = low
    kept = 0
    for k in range(count):
        if not highs[k] < best_low:
            places[kept] = places[k]
            kept += 1
    return kept


@kernel
def select_chunk(scores, words, a, kind, first, width, keys, places, highs, winners, open_index, open_word):
    """Select in every row of a chunk of candidates, and hand on what the chunk alone does not decide.

    Parameters
    ----------
    scores, words
        The chunk's scores (int64, int32, uint32, float64 or float32) and words (uint32).
    a
        What scores are multiplied by: a float64, or one for each candidate.
    kind
        GUMBEL, EXPONENTIAL or LAPLACE.
    first, width
        The chunk's first candidate, counted over all rows, and the number of candidates a row.
    keys, places, highs
        Scratch memory: BLOCK int64, one int64 and one float64 for each candidate of the chunk.
    winners
        The winner's place in its row (int64), set for every row that lies in the chunk and is decided.
    open_index, open_word
        Filled with the candidates, counted over all rows, that are left of every other row or part of a row
        (int64), and their words (uint32).

    Returns
    -------
    tuple
        How many candidates are left open, and 1 if a score is not finite; then nothing else means anything.

    """
    sign_bit = _SIGN_32 if kind == LAPLACE else _ZERO_32
    size = words.size
    row = first // width
    begin, end = row * width - first, (row + 1) * width - first
    opened, broken = 0, _ZERO_64
    count, threshold = 0, _ordered(-_INFINITY)
    for start in range(0, size, BLOCK):
        stop = min(start + BLOCK, size)
        broken = bit_or(
            broken,
            _bound_above(scores[start:stop], words[start:stop], part(a, start, stop), sign_bit, keys[: stop - start]),
        )
        piece = start
        while piece < stop:
            piece_stop = min(end, stop)
            bounds = keys[piece - start : piece_stop - start]
            largest = _largest(bounds)
            if largest >= threshold:
                likely = piece + _last_place(bounds, largest)
                threshold = max(threshold, _threshold(scores[likely], at(a, likely), words[likely], kind))
                if _count_from(bounds, threshold) == 1:
                    places[count] = likely
                    count += 1
                else:
                    for i in range(bounds.size):
                        if bounds[i] >= threshold:
                            places[count] = piece + i
                            count += 1
            piece = piece_stop
            if piece in (end, size):
                whole = begin >= 0 and piece == end
                if count > 1:
                    count = _keep_contenders(scores, words, a, kind, places, count, highs)
                if whole and count == 1:
                    winners[row] = places[0] - begin
                else:
                    for k in range(count):
                        open_index[opened] = first + places[k]
                        open_word[opened] = words[places[k]]
                        opened += 1
                row += 1
                begin, end = end, end + width
                count, threshold = 0, _ordered(-_INFINITY)
    return opened, broken


@kernel
def compare_groups(scores, words, a, kind, starts, places, highs, contenders):
    """Compare what is left open of every row: fill ``contenders`` with how many places each row keeps.

    Row g has the candidates from ``starts[g]`` up to ``starts[g + 1]``; ``places`` counts from 0 and keeps, from
    ``starts[g]`` on, those of its contenders. ``highs`` is scratch memory, a float64 for each candidate of all rows.
    """
    for g in range(contenders.size):
        own = places[starts[g] : starts[g + 1]]
        contenders[g] = _keep_contenders(scores, words, a, kind, own, own.size, highs)


# Stamp of all kernel sources (scripts/stamp_kernels.py): ffcc92228daefa70
