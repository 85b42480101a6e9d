"""Certified sparse vector: which values, with noise, reach a noisy threshold, in every run up to its last positive.

Value q of a run is *above* where ``a (q - T) + E >= ratio E0``, E = -ln U of the value's own word and E0 = -ln U of
the run's one threshold word (`dpfast.mechanisms.thresholds.sparse_vector` says why). A word is 32 random bits of which
the last 31, r, have U in [r, r + 1) * 2**-31; the first is not used.

(1) Of every value an upper bound of the left side, without a branch. Most are below the threshold's lower end, and
that is their answer. (2) The others, in order, get close bounds on both sides; where these leave doubt, the run stops
there and a caller decides this one value with more bits of the two words.

Step 1 bounds E as `key_bounds` does, by the bits of r as a float32: for r > 0

    E <= 158 ln 2 - ln 2 * 2**-23 * bits + 2**-24 (1 + 2**-20)

which is at most 0.06 too large, with 5e-8 left in the code's constant for the rounding of these 110 in float64.

The product p = a * (q - T), with u = 2**-53: the conversion of an int64 is off by u |q| <= u (|q - T| + |T|), the
difference by u of itself, the product by another u and by an underflow below 2**-1074. Together
3u |p| + u a |T|; the last term only where q is an int64 (the others convert exactly), so that ``margin`` is 1 + a |T|
there and 1 elsewhere, both rounded up. A p below -2**1000, -inf among them, is raised to that in step 1; T and the
values are finite, a is positive, so that no NaN occurs before p + E.

Close bounds: E is off by 5.1u E beside the unread bits (1.0607 * width), the sum p + E by u |p| + u E, each end of
the interval by as much again: 5u |p| + 7.1u E + u margin, of which the code's 16u (|p| + E + margin) is more than
twice. An infinite p makes both ends infinite or NaN, and NaN compares as doubt. The threshold: ratio E0 with
ratio <= 2 likewise, off by 7.1u ratio E0, the code has 16u.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import kernel
from dpfast.kernels.intrinsics import (
    absolute,
    bit_and,
    bits_of_f32,
    choose,
    f32_from_i32,
    f64_from_i32,
    fused_multiply_add,
    i32_from_u32,
    maximum,
)
from dpfast.kernels.selection.key_bounds import exponential_of

__all__ = ["BLOCK", "bound_thresholds", "scan_runs"]

BLOCK = 512
"""Values whose upper bounds are held at a time: 4 kB."""

_REST_32, _ZERO_32 = np.uint32(0x7FFFFFFF), np.uint32(0)
_INFINITY = np.inf
_HUGE = 2.0**1000
_LN2 = 0.6931471805599453
_STEP, _START = -_LN2 * 2.0**-23, 158 * _LN2 + 2.0**-23
_SLACK = 16 * 2.0**-53


@kernel
def bound_thresholds(words, ratio, lows, highs):
    """Fill ``lows`` and ``highs`` with bounds of ratio * E0 for every run's threshold word (uint32)."""
    for run in range(words.size):
        e, below, above = exponential_of(words[run])
        error = _SLACK * (e + 2.0**-1000)
        lows[run] = ratio * (e - (below + error))
        highs[run] = ratio * (e + (above + error))


@kernel
def _bound_above(values, words, a, threshold, margin, bounds):
    """Fill ``bounds`` with upper bounds of a * (q - threshold) + E (step 1)."""
    for i in range(bounds.size):
        r = bit_and(words[i], _REST_32)
        bits = i32_from_u32(bits_of_f32(f32_from_i32(r)))
        noise = fused_multiply_add(f64_from_i32(bits), _STEP, _START)
        noise = choose(r == _ZERO_32, _INFINITY, noise)
        product = maximum(a * (np.float64(values[i]) - threshold), -_HUGE)
        bounds[i] = fused_multiply_add(absolute(product) + margin, _SLACK, product + noise)


@kernel
def _count_reaching(bounds, low):
    count = 0
    for i in range(bounds.size):
        count += 0 if bounds[i] < low else 1
    return count


@kernel
def scan_runs(values, words, a, thresholds, margins, lows, highs, offset, bounds, positions, found, places):
    """Test the values of every run in order until it has all its positives, its values end, or one is in doubt.

    Parameters
    ----------
    values, words
        One run after the other, equally long: the values (int64 or float64), and a word (uint32) for each.
    a
        What differences from the threshold are multiplied by (float64).
    thresholds, margins
        T and the margin of each run (float64).
    lows, highs
        Between which each run's noisy threshold ratio * E0 lies (float64).
    offset
        What is added to places in a run.
    bounds
        Scratch memory: BLOCK float64.
    positions
        The next value of each run (int64), counted from 0; the length of a run where none is left to test.
    found
        How many positives each run has so far (int64).
    places
        The positives of each run (int64), a row each and as many columns as it may have: filled from ``found`` on.

    Returns
    -------
    int
        How many runs stopped in doubt: at their position, with columns of ``places`` to spare.

    """
    runs, count = places.shape
    width = values.size // max(runs, 1)
    doubtful = 0
    for run in range(runs):
        own = values[run * width : (run + 1) * width]
        own_words = words[run * width : (run + 1) * width]
        threshold, margin, low, high = thresholds[run], margins[run], lows[run], highs[run]
        position, positives = positions[run], found[run]
        in_doubt = False
        while position < width and positives < count and not in_doubt:
            stop = min(position + BLOCK, width)
            block = bounds[: stop - position]
            _bound_above(own[position:stop], own_words[position:stop], a, threshold, margin, block)
            first = position
            position = stop
            if _count_reaching(block, low) == 0:
                continue
            for i in range(block.size):
                if block[i] < low:
                    continue
                e, below, above = exponential_of(own_words[first + i])
                product = a * (np.float64(own[first + i]) - threshold)
                key = product + e
                error = _SLACK * (abs(product) + e + margin)
                if key - (below + error) >= high:
                    places[run, positives] = offset + first + i
                    positives += 1
                    if positives == count:
                        position = first + i + 1
                        break
                elif not key + (above + error) < low:
                    position = first + i
                    in_doubt = True
                    doubtful += 1
                    break
        positions[run], found[run] = position, positives
    return doubtful


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
