"""Certified bounds on keys ``a * score + noise``, from the first bits of the noise: what selections compare.

Scores are taken relative to the best one of their row, of the row's part at hand, or of a chunk of rows
(differences.py), which changes no comparison of keys: differences of integers are exact however large the integers
are. A kernel halves them, h = (score - best) / 2, since the difference itself may overflow, and p = (2 a) * h.

A word is 32 random bits: a sign, then the first 31 bits r of a number V or U in [r, r+1) * 2**-31. The noise is

    GUMBEL        -ln(-ln(1 - V))      the exponential mechanism
    EXPONENTIAL   -ln U                permute-and-flip; the sign is not used
    LAPLACE       -s ln U              report noisy max

Three steps. (1) For every candidate an upper bound of its key, crude and cheap. (2) The candidate with the largest
one gets a lower bound; upper bounds that do not reach it are out, which mostly leaves one. (3) Those left get
close bounds on both sides; the ones whose upper end reaches the best lower end are the contenders. A single one has
won. Otherwise a caller must compare *all* of them with more bits of the same words: three or more may contend.

Step 1, in float64 with u = 2**-53. All three kinds of noise are at most -ln(r 2**-31) if r > 0 (-ln(1 - V) >= V),
and at most 0 if negative. Let x be r rounded to float32 and x = 2**k (1 + f): its bits, read as an integer, are
2**23 (k + f + 127), and log2(x) >= k + f as log2 is concave. So the noise is at most

    158 ln 2 - ln 2 * 2**-23 * bits + 2**-24 (1 + 2**-20)     the last term for the rounding to x

and at most 0.06 more than -ln(r 2**-31); 2**-23 in the code leaves 5e-8 for the rounding of these 110 in float64.
Where rows are short, two terms make it closer. log2(1 + f) >= f + f (1 - f) (A + B f) with A = 0.41888, B = -0.15825.
Write D for the difference with A' = 0.418880.. and B' = -0.158248.., for which D and its slope are 0 at f = 0.46567..:
D is 0 at both ends too, and its second derivative is concave, below 0 at both ends and above 0 there, so that D is
concave, convex, concave. The convex part lies above its tangent there, which is 0, and a concave part lies above the
chord between two ends where D is at least 0. A + B f lies below A' + B' f on [0, 1]; in float32 the term errs by 2**-24
at most. And ln(-ln(1 - V)) = ln V + V / 2 + 5 V**2 / 24 + .., where all coefficients are positive (they are those of
Gregory's partial sums, 1/2, 5/12, 3/8, 251/720.., over 1, 2, 3..): Gumbel noise is at most -ln V - V / 2 - 5 V**2 / 24.
The product p is off by 2u |p|: the difference of two int64 is taken exactly as an unsigned integer, and converted with
one rounding; that of two floats rounds once (its half is finite where both are), and halving a subnormal loses
2**-1075, which makes 2**-94 for a <= 2**980; the product rounds once more, and loses 2**-1074 where it underflows. The
sum rounds by u (|p| + 110), adding 8u |p| again by about as much: 4u |p| and 4e-14 together. A p below -2**1000 is
raised to that; NaN does not occur, since a is positive and finite scores are required (others are reported).

Step 2, likewise: log2(x) <= k + f + f (1 - f) (A + B f) + 0.001276, 0.000885 in ln x, and the cell's upper end is 1/r
further in the logarithm. By the series above, ln(-ln(1 - V)) - ln V - V / 2 - 5 V**2 / 24 over V**3 rises with V, up to
0.4012 for V <= 7/8 + 2**-31, so that Gumbel noise is at least the bound above less 0.403 V**3 there; 0.00099 in the
code leaves 1e-4 for the roundings of x, of the constants and of the cell's end in V. Other words take the close bounds
of step 3.

Step 3. The difference d is p as above, with a relative error of 2u. Errors of the noise, beside the unread bits:

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

Where the first 31 bits leave an order open, words of 48 bits are read in the same way: all the above holds with 2**-48
in place of 2**-31, r + 1/2 being a float64 still.
"""

from __future__ import annotations

import numpy as np
from numba import types

from dpfast.kernels.compilation import by_types, inlined, kernel
from dpfast.kernels.intrinsics import (
    absolute,
    bit_and,
    bit_or,
    bits_of_f32,
    bits_of_f64,
    choose,
    f32_from_bits,
    f32_from_i32,
    f64_from_i32,
    fused_multiply_add,
    i32_from_u32,
    maximum,
    subtract,
    u64_from_u32,
)
from dpfast.kernels.logarithm import exponential_f64, half_above, minus_log_f64
from dpfast.kernels.parameters import at
from dpfast.kernels.selection.differences import halve_below, halve_row, ordered

__all__ = [
    "BLOCK",
    "EXPONENTIAL",
    "GUMBEL",
    "HIGHEST_KEY",
    "LAPLACE",
    "LOWEST_KEY",
    "SHORT",
    "are_short",
    "bound_above",
    "bound_closely",
    "bound_stretch",
    "count_from",
    "exponential_of",
    "interval",
    "largest_key",
    "last_place",
    "lower_bound",
    "noise_of",
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
SHORT = 32
"""Candidates of a row for which closer bounds save more than they cost."""
_HUGE, _HALF_HUGE = 2.0**1000, 2.0**999
_LN2 = 0.6931471805599453
_STEP, _START = -_LN2 * 2.0**-23, 158 * _LN2 + 2.0**-23
_BEND_AT_0, _BEND_RISE, _START_BELOW = np.float32(0.41888), np.float32(-0.15825), 158 * _LN2 - 0.00099
_TO_V = 2.0**-31 * (1 - 2.0**-22)  # rounds V down
_MANTISSA_32, _ONE_BITS_32 = np.uint32(0x7FFFFF), np.uint32(0x3F800000)
_ONE_F32, _TWO_F32 = np.float32(1.0), np.float32(2.0)
_LATE = np.uint32(7 << 28)
_SLACK, _CLOSE_SLACK = 8 * 2.0**-53, 16 * 2.0**-53
_WIDTH_E, _WIDTH_G = 1.0625, 1.52
# Of the m = 31 or 48 bits of a word: all of them set, m + 1, 2**-m; 2**(m + 2) and m + 3; and two bounds. E > 2**-m, as
# r = 0 is apart, and times 2**(m + 2) it is above 1/2, as minus_log_f64 asks. The noise of the cell r = 0 is larger
# than the first bound (m ln 2 = 21.48756.., 33.27106..), and Gumbel noise of the last cell is smaller than the second
# (-ln(m ln 2) = -3.0675.., -3.5046..).
_LAYOUT_31 = (_REST_64, 32.0, 2.0**-31, 2.0**33, 34.0, 21.4875, -3.06)
_LAYOUT_48 = (np.uint64(2**48 - 1), 49.0, 2.0**-48, 2.0**50, 51.0, 33.271, -3.504)
_SIGN_64 = np.uint64(1 << 63)


@inlined
def _bend(bits):
    """Return f (1 - f) (A + B f) for the mantissa 1 + f of a float32, from its bits."""
    mantissa = f32_from_bits(bit_or(bit_and(bits, _MANTISSA_32), _ONE_BITS_32))
    f = mantissa - _ONE_F32
    return np.float64((f * (_TWO_F32 - mantissa)) * (_BEND_AT_0 + _BEND_RISE * f))


@inlined
def _upper_bound(half, word, twice_a, gumbel, signed, close):
    """Return an upper bound of the key 2 a * half + noise, ordered, and 1 if it is not finite (step 1)."""
    r = bit_and(word, _REST_32)
    x = f32_from_i32(r)
    bits = bits_of_f32(x)
    noise = fused_multiply_add(f64_from_i32(i32_from_u32(bits)), _STEP, _START)
    if close:
        noise = fused_multiply_add(_bend(bits), -_LN2, noise)
        if gumbel:
            v = _TO_V * np.float64(x)
            noise = fused_multiply_add(fused_multiply_add(v, -5 / 24, -0.5), v, noise)
    noise = choose(r == _ZERO_32, _INFINITY, noise)
    if signed:
        noise = choose(bit_and(word, _SIGN_32) == _ZERO_32, noise, 0.0)
    product = maximum(twice_a * half, -_HUGE)
    key = ordered(fused_multiply_add(absolute(product), _SLACK, product + noise))
    return key, choose(absolute(half) < _INFINITY, _ZERO_64, _ONE_64)


@kernel
def bound_above(halves, words, a, kind, close, keys):
    """Fill ``keys`` with upper bounds of the candidates' keys (step 1), ordered; return 1 if a score is not finite.

    ``halves`` are those of `halve_below`, and ``a`` is one number, or one for each. ``close`` asks for closer bounds of
    GUMBEL noise, which take half as long again; those of other noise are always close.
    """
    broken = _ZERO_64
    if kind == EXPONENTIAL:
        for i in range(keys.size):
            keys[i], bad = _upper_bound(halves[i], words[i], 2.0 * at(a, i), False, False, True)
            broken = bit_or(broken, bad)
    elif kind == LAPLACE:
        for i in range(keys.size):
            keys[i], bad = _upper_bound(halves[i], words[i], 2.0 * at(a, i), False, True, True)
            broken = bit_or(broken, bad)
    elif close:
        for i in range(keys.size):
            keys[i], bad = _upper_bound(halves[i], words[i], 2.0 * at(a, i), True, False, True)
            broken = bit_or(broken, bad)
    else:
        for i in range(keys.size):
            keys[i], bad = _upper_bound(halves[i], words[i], 2.0 * at(a, i), True, False, False)
            broken = bit_or(broken, bad)
    return broken


@inlined
def are_short(offsets):
    """Return whether rows have so few candidates that closer bounds save more than they cost."""
    return offsets[offsets.size - 1] <= SHORT * (offsets.size - 1)


@kernel
def largest_key(keys):
    """Return the largest of some keys."""
    largest = keys[0]
    for i in range(keys.size):
        largest = max(largest, keys[i])
    return largest


@kernel
def last_place(keys, key):
    """Return the last place where a key stands, 0 if nowhere."""
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


@by_types(inline=True)
def _layout(word):
    """Return a word's bits r, its sign, and what `_LAYOUT_31` or `_LAYOUT_48` says of words of its type."""
    if word == types.uint32:
        return lambda word: (bit_and(u64_from_u32(word), _REST_64), word >= _SIGN_32, _LAYOUT_31)
    return lambda word: (bit_and(word, _LAYOUT_48[0]), word >= _SIGN_64, _LAYOUT_48)


@kernel
def noise_of(word, kind):
    """Return (noise, below, above): the noise of a word lies in [noise - below, noise + above], unread bits alone.

    A word is one of 32 bits, or of 64: a sign, and its last 48 for the number.
    """
    r, sign, (largest, m_plus_one, unit, scale, scale_plus_one, above_first, below_last) = _layout(word)
    if kind == GUMBEL:
        if r == _ZERO_64:
            return above_first, 0.0, _INFINITY
        if r == largest:
            return below_last, _INFINITY, 0.0
        rest = subtract(largest, r)
        e, _ = exponential_f64(rest, m_plus_one)
        noise, _ = minus_log_f64(bits_of_f64(e * scale), scale_plus_one)
        width = (_WIDTH_G * 0.5 * unit) / (e * ((np.float64(rest) + 0.5) * unit))
        return noise, width, width
    negative = kind == LAPLACE and sign
    if r == _ZERO_64:
        return (-above_first, _INFINITY, 0.0) if negative else (above_first, 0.0, _INFINITY)
    e, cell = exponential_f64(r, m_plus_one)
    width = _WIDTH_E * cell
    return (-e, width, width) if negative else (e, width, width)


@kernel
def interval(half, a, word, kind):
    """Return two ends between which 2 a * half + noise lies (step 3)."""
    noise, below, above = noise_of(word, kind)
    d = (2.0 * a) * half
    # Out of range, d dwarfs every noise but that of the outermost cells, which is unbounded.
    if d > _HUGE:
        return _HALF_HUGE - below, _INFINITY
    if d < -_HUGE:
        return -_INFINITY, above - _HALF_HUGE
    error = _CLOSE_SLACK * (abs(d) + abs(noise) + 1.0)
    return (d + noise) - (below + error), (d + noise) + (above + error)


@inlined
def exponential_of(word):
    """Return (E, below, above), without branches: E = -ln U of a word of 32 bits lies in [E - below, E + above]."""
    r = bit_and(word, _REST_32)
    e, cell = exponential_f64(u64_from_u32(r), _LAYOUT_31[1])
    first, width = r == _ZERO_32, _WIDTH_E * cell
    return choose(first, _LAYOUT_31[5], e), choose(first, 0.0, width), choose(first, _INFINITY, width)


@inlined
def _gumbel(word):
    """Return (noise, width) of a word by GUMBEL, without branches; the outermost cells have an infinite width."""
    r = bit_and(u64_from_u32(word), _REST_64)
    outermost = bit_or(choose(r == _ZERO_64, _ONE_64, _ZERO_64), choose(r == _REST_64, _ONE_64, _ZERO_64)) == _ONE_64
    rest = subtract(_REST_64, r)
    e, _ = exponential_f64(rest, _LAYOUT_31[1])
    noise, _ = minus_log_f64(bits_of_f64(e * _LAYOUT_31[3]), _LAYOUT_31[4])
    unit = _LAYOUT_31[2]
    width = (_WIDTH_G * 0.5 * unit) / (e * (half_above(rest) * unit))
    return choose(outermost, 0.0, noise), choose(outermost, _INFINITY, width)


@kernel
def bound_closely(halves, words, a, kind, lows, highs):
    """Fill ``lows`` and ``highs`` with the ends of `interval` for candidates of one row."""
    if kind != GUMBEL:
        for i in range(halves.size):
            lows[i], highs[i] = interval(halves[i], a, words[i], kind)
        return
    for i in range(halves.size):
        noise, width = _gumbel(words[i])
        d = maximum((2.0 * a) * halves[i], -_HUGE)
        error = _CLOSE_SLACK * (absolute(d) + absolute(noise) + 1.0)
        lows[i] = (d + noise) - (width + error)
        highs[i] = (d + noise) + (width + error)
    for i in range(halves.size):
        r = bit_and(u64_from_u32(words[i]), _REST_64)
        if r in (_ZERO_64, _REST_64) or not (2.0 * a) * halves[i] > -_HUGE:
            lows[i], highs[i] = interval(halves[i], a, words[i], kind)


@inlined
def lower_bound(half, a, word, kind):
    """Return a lower bound of the key 2 a * half + noise, -inf for want of a better one; ordered (step 2)."""
    r = bit_and(word, _REST_32)
    negative = kind == LAPLACE and word >= _SIGN_32
    if r == _ZERO_32 or negative or (kind == GUMBEL and r >= _LATE):
        noise, below, _ = noise_of(word, kind)
        noise -= below
    else:
        x = f32_from_i32(r)
        bits = bits_of_f32(x)
        noise = fused_multiply_add(f64_from_i32(i32_from_u32(bits)), _STEP, _START_BELOW)
        noise = fused_multiply_add(_bend(bits), -_LN2, noise)
        v = np.float64(x) * 2.0**-31
        noise -= 1.0 / np.float64(x) + (v * (0.5 + v * (5 / 24 + 0.403 * v)) if kind == GUMBEL else 0.0)
    product = (2.0 * a) * half
    low = (product + noise) - _CLOSE_SLACK * (abs(product) + abs(noise) + 1.0)
    # +inf (and NaN) comes of an overflow, and says nothing.
    return ordered(low if low < _INFINITY else -_INFINITY)


@by_types(inline=False)
def spread(a, offsets, row, start, slopes):
    """Return what the candidates from ``start`` on are multiplied by: a number, or ``slopes``, which it fills."""
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
def bound_stretch(scores, words, a, kind, layout, stretch, best, common, close, bounding):
    """Bound the keys of a stretch of a chunk from above; return the best score, and 1 if a score is not finite.

    ``layout`` is ``first``, ``offsets`` and ``row`` of `select_chunk`, ``row`` being that of the first candidate, and
    ``stretch`` where the stretch begins and ends in the chunk. ``best`` and ``common`` are those of `best_of_chunk`,
    ``best`` then what was returned for the stretch before. ``bounding`` is ``keys, halves, slopes``, of which ``keys``
    gets the bounds.
    """
    first, offsets, row = layout
    start, stop = stretch
    keys, halves, slopes = bounding
    below = halves[: stop - start]
    if common:
        halve_row(scores[start:stop], best, below)
    else:
        best = halve_below(scores, first, offsets, row, start, best, below)
    own = spread(a, offsets, row, first + start, slopes[: stop - start])
    return best, bound_above(below, words[start:stop], own, kind, close, keys[: stop - start])


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
