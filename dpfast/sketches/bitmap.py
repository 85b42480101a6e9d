"""Bits that values set, by level, and how many different values there are for bits that were answered at random."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.accounting.privacy_unit import Neighbors
from dpfast.exact.balls import ball
from dpfast.mechanisms.noise.exact import decided, unique_floor
from dpfast.randomness import RandomSource, fresh_words

__all__ = ["LEVELS", "answer_at_random", "estimate_values", "false_answers", "places_of"]

#: The last is for all values whose hash has so many zeros; 2**32 values a bucket are told apart.
LEVELS = 32
_FAIR = 2**63
#: Numbers of values that are tried, each larger by so much; and the largest, in multiples of the number of buckets.
_GROWTH, _FARTHEST = 1.01, 2.0**34


def places_of(hashes: NDArray[np.uint64], buckets: int) -> NDArray[np.int64]:
    """Return the place of the bit that each hash sets: of one of the buckets, a power of two, one of the levels.

    The lowest bits of a hash are the number of its bucket, and how many zeros follow them the level.

    Examples
    --------
    >>> places_of(np.array([1, 0b101, 0b1001, 0], np.uint64), 4).tolist()
    [63, 32, 33, 31]

    """
    bucket = hashes & np.uint64(buckets - 1)
    rest = hashes >> np.uint64(buckets.bit_length() - 1)
    rest |= np.uint64(1 << (LEVELS - 1))
    lowest = (rest & (~rest + np.uint64(1))).astype(np.float64)
    # The exponent of a power of two.
    level = (lowest.view(np.int64) >> 52) - 1023
    return bucket.astype(np.int64) * LEVELS + level


@lru_cache(maxsize=64)
def false_answers(epsilon: Fraction, values: int, neighbors: Neighbors) -> int:
    """Return how likely a bit that nobody set is to be shown as 1, times 2**64, rounded up.

    Guarantee
        With q this probability, and 1/2 for bits that are set, a privacy unit that sets at most so many bits is
        epsilon-differentially private: `dpfast.sketches.distinct` has the proof.

    Examples
    --------
    >>> false_answers(Fraction(1), 1, "add_remove") / 2**64, false_answers(Fraction(1), 1, "replace") / 2**64
    (0.18393972058572117, 0.2689414213699951)

    """

    def scaled() -> Any:
        grown = ball(epsilon / values).exp()
        return 2**64 / (2 * grown if neighbors == "add_remove" else 1 + grown)

    return min(decided(lambda _: unique_floor(scaled()), 128 + 2 * int(epsilon)) + 1, _FAIR)


def answer_at_random(bits: NDArray[np.bool_], false: int, source: RandomSource) -> NDArray[np.bool_]:
    """Return 1 with probability 1/2 for every bit that is set, and with ``false`` / 2**64 for every other, exactly."""
    words = fresh_words(source, bits.size)
    # One comparison for each, whatever the bit is; no limit is above 2**63.
    return words < np.where(bits, np.uint64(_FAIR), np.uint64(false))


def estimate_values(ones: NDArray[np.int64], buckets: int, contrast: float, miss: float) -> tuple[float, float, float]:
    """Return the likeliest number of values, and an interval.

    Parameters
    ----------
    ones
        How many bits of each level are 1, of one for each bucket.
    buckets
        How many there are.
    contrast
        A bit that nobody set is 1 with probability (1 - contrast) / 2, and one that is set with 1/2.
    miss
        The probability with which the interval misses.

    Notes
    -----
    A value has level l with probability p = 2**-(l + 1), and n of them leave a bit of it unset with probability
    z = (1 - p / buckets)**n. So it is 1 with probability P = 1/2 - contrast z / 2. The estimate has the largest
    likelihood of bits that are taken to be independent; those of one sketch are a little less spread than that. The
    interval has every n whose score, sum over l of (ones - buckets P) P' / (P (1 - P)) with P' = dP/dn, lies within
    normal quantiles of 0: the score of so many independent bits has the variance sum of buckets P'**2 / (P (1 - P)).

    """
    levels = np.arange(LEVELS)
    chances = np.where(levels < LEVELS - 1, 0.5 ** (levels + 1), 0.5 ** (LEVELS - 1)) / buckets
    rates = -np.log1p(-chances)
    steps = math.ceil(math.log(_FARTHEST * buckets) / math.log(_GROWTH))
    tried = np.append(0.0, np.expm1(math.log(_GROWTH) * np.arange(1, steps + 1)))

    def scores(numbers: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        unset = np.exp(-np.outer(numbers, rates))
        # A bit that nobody set is 1 with probability 2**-64 at least (`false_answers`), though contrast may round to 1.
        p = np.maximum(0.5 - contrast / 2 * unset, 2.0**-64)
        slope = contrast / 2 * rates * unset
        score = ((ones - buckets * p) * slope / (p * (1 - p))).sum(axis=1)
        spread = np.sqrt((buckets * slope**2 / (p * (1 - p))).sum(axis=1))
        likelihood = (np.log(p) * ones + np.log1p(-p) * (buckets - ones)).sum(axis=1)
        return score, spread, likelihood

    score, spread, likelihood = scores(tried)
    best = int(np.argmax(likelihood))
    low, high = tried[max(best - 1, 0)], tried[min(best + 1, steps)]
    while high - low > 1e-6 * (1 + high):
        middle = (low + high) / 2
        low, high = (middle, high) if scores(np.array([middle]))[0][0] > 0 else (low, middle)
    estimate = 0.0 if best == 0 and score[0] <= 0 else float(low + high) / 2
    within = np.flatnonzero(np.abs(score) <= -NormalDist().inv_cdf(miss / 2) * spread)
    if not within.size:
        return estimate, estimate, estimate
    # From the last number that does not fit to the next one.
    first, last = max(int(within[0]) - 1, 0), min(int(within[-1]) + 1, steps)
    return estimate, min(float(tried[first]), estimate), max(float(tried[last]), estimate)
