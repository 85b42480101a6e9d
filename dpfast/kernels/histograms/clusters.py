"""Clusters of numbers in sorted order."""

from __future__ import annotations

from dpfast.kernels.compilation import kernel

__all__ = ["cluster_sorted"]


@kernel
def cluster_sorted(values, price, starts):
    """Join each number to the cluster before it where that costs less than ``price``; return how many clusters.

    The cost is how much the squared distances from the cluster's mean add up to more: (y - mean)**2 k / (k + 1) for the
    one that joins k others. ``starts`` (int64) gets the place of each cluster's first number.
    """
    count = 0
    size = 0
    mean = 0.0
    for place in range(values.size):
        distance = values[place] - mean
        if size > 0 and distance * distance * size < price * (size + 1):
            size += 1
            mean += distance / size
        else:
            starts[count] = place
            count += 1
            size = 1
            mean = values[place]
    return count


# Stamp of all kernel sources (scripts/stamp_kernels.py): f689c65833beaa9a
