"""Joins neighbouring buckets that were measured apart and differ by no more than noise."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpfast.kernels.histograms.joined_buckets import join_buckets
from dpfast.synthesis.histograms.edges import edges_of

__all__ = ["joined"]

#: At most so many buckets become one.
_WINDOW = 256
#: The price of a run at first, the least and the largest, and how often runs are cut: the best by experiment.
_FIRST, _LEAST, _MOST, _ROUNDS = 6.0, 3.0, 14.0, 3
#: What a run costs beyond the odds that one begins, since its height is fitted.
_BASE = 6.0


def joined(
    counts: NDArray[np.float64], edges: NDArray[np.int64], deviation: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the edges of runs of buckets, and the height of each run's cells: no less than 0.

    It is made of noisy counts, the public partition and the public noise alone, and so as private as they are. All
    cells of a run have one height, the least-squares fit to its buckets' counts. Of all cuts into runs the one of least
    cost is taken: the squared distances, in deviations of the noise, and a price for each run. The price follows from
    the last cut: -2 log(odds) that a bucket begins a run, and 6.

    Parameters
    ----------
    counts
        Of the buckets, with independent noise of one ``deviation``.
    edges
        Where buckets begin, and the number of cells.
    deviation
        The standard deviation of that noise. If it is 0, every bucket stays by itself.

    References
    ----------
    Auger, Lawrence (1989) for the best cut of a line; Yao (1988) for prices by the number of changes.

    """
    widths = np.diff(edges).astype(np.float64)
    if deviation == 0.0:
        return edges, np.maximum(counts / widths, 0.0)
    buckets = widths.size
    best, means = np.empty(buckets + 1), np.empty(buckets + 1)
    back, price = np.empty(buckets + 1, np.int64), _FIRST
    for _ in range(_ROUNDS):
        runs = join_buckets(counts / deviation, widths, price, _WINDOW, best, back, means)
        share = runs / (buckets + 1)
        price = min(max(2.0 * math.log((1.0 - share) / share) + _BASE, _LEAST), _MOST)
    ends = edges_of(back, runs, buckets)
    return edges[ends], np.maximum(means[ends[1:]] * deviation, 0.0)
