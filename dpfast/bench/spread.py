"""The spread of figures: a median, and an interval for it that holds whatever the law of the figures is."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["COVERAGE", "Spread", "false_alarm", "rank_of", "spread_of"]

#: With this probability an interval covers the median, where there are rounds enough: from 8 on.
COVERAGE = 0.99


@dataclass(frozen=True)
class Spread:
    """A median of figures, and an interval for the median of their law.

    Attributes
    ----------
    median
        Of the figures.
    low, high
        Of the figures in their order, the one of rank k from below and the one of rank k from above (`rank_of`).
    rounds
        How many figures there are.

    """

    median: float
    low: float
    high: float
    rounds: int


def rank_of(rounds: int) -> int:
    """Return the largest rank k whose figures from below and from above cover the median with 99%, or 1.

    Guarantee
        Of independent figures with one law, the interval misses the median of that law with probability at most
        2 P(Binomial(rounds, 1/2) < k): below its lower end lie fewer than k figures (David and Nagaraja, Order
        Statistics, 2003, section 7.1). For 7 rounds and fewer k is 1, and the interval has all figures.

    Examples
    --------
    >>> rank_of(5), rank_of(7), rank_of(8), rank_of(31), rank_of(101)
    (1, 1, 1, 8, 38)

    """
    below, rank = 0, 0
    while 2 * (below + math.comb(rounds, rank)) <= (1 - COVERAGE) * 2**rounds:
        below += math.comb(rounds, rank)
        rank += 1
    return max(rank, 1)


def spread_of(figures: Sequence[float]) -> Spread:
    """Return the spread of figures, one at least.

    Examples
    --------
    >>> spread_of([3.0, 1.0, 2.0])
    Spread(median=2.0, low=1.0, high=3.0, rounds=3)

    """
    ordered = sorted(figures)
    rank = rank_of(len(ordered))
    return Spread(statistics.median(ordered), ordered[rank - 1], ordered[-rank], len(ordered))


def false_alarm(old: int, new: int) -> float:
    """Return how likely the interval of new rounds lies wholly above that of old ones though nothing changed.

    Guarantee
        If the figures of both are exchangeable (nothing changed, and no round is like its neighbours), every order of
        them is equally likely. Then the number of new figures below the old one of rank r is negative
        hypergeometric, and the new interval lies above if fewer than k of them do. The same holds for below.

    Examples
    --------
    >>> false_alarm(7, 7) == 1 / 3432  # all of seven above all of seven others
    True
    >>> false_alarm(3, 3), false_alarm(31, 31) < 1e-4
    (0.05, True)

    """
    rank = old - rank_of(old) + 1
    orders = sum(
        math.comb(rank - 1 + below, below) * math.comb(old - rank + new - below, new - below)
        for below in range(rank_of(new))
    )
    return orders / math.comb(old + new, new)
