"""A workload over cells, asked of buckets of consecutive cells instead."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpfast.workloads.cells import Identity
from dpfast.workloads.matrix import Matrix
from dpfast.workloads.ranges import AllRanges, Intervals, Ranges
from dpfast.workloads.workload import Workload

__all__ = ["bucketed"]

#: A matrix of so many numbers is formed at most.
_LARGEST_MATRIX = 2**24

#: Of more ranges every second is looked at, or every third, and so on.
_MOST_RANGES = 2**10


def bucketed(workload: Workload, edges: NDArray[np.int64]) -> Workload:
    """Return about what a workload asks of buckets: it serves to predict errors, no answer comes from it.

    Bucket j has the cells edges[j] to edges[j + 1], evenly. Ranges are widened to whole buckets; of other workloads a
    query's coefficient for a bucket is its mean over the bucket's cells, where that makes no more than 2**24 numbers;
    else every bucket is asked for.
    """
    buckets = edges.size - 1
    if isinstance(workload, AllRanges):
        return AllRanges(buckets)
    if isinstance(workload, Intervals):
        step = -(-len(workload) // _MOST_RANGES)
        lower, upper = (bounds[::step] for bounds in workload.bounds())
        first = np.searchsorted(edges, lower, side="right") - 1
        last = np.searchsorted(edges, upper, side="left")
        return Ranges(buckets, np.minimum(first, last), last)
    if isinstance(workload, Identity) or len(workload) * buckets > _LARGEST_MATRIX:
        return Identity(buckets)
    width = np.diff(edges)
    rows = [np.add.reduceat(block.astype(np.float64), edges[:-1], axis=1) / width for block in workload.blocks()]
    return Matrix(np.concatenate(rows))
