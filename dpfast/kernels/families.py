"""Families: children that share a parent's sum. Their noisy values are drawn together, and made to fit the sum.

Families lie one after the other, family f from offsets[f] to offsets[f + 1], as children of a tree's level do.
"""

from __future__ import annotations

import math

from dpfast.kernels.compilation import kernel

__all__ = ["fit_families", "shrink_families"]


@kernel
def shrink_families(values, variances, offsets, out):
    """Draw the members of each family together as far as their differences look like noise.

    Of k members with variance v (the family's mean one), the h largest stay as they are and the others move to their
    own mean, for the h from 0 to k with the least estimate of the error: the squares about that mean, plus 2 v for it
    and for every member that stays (Mallows), and 2 v h ln(k / h) for having looked for the largest (Foster and
    George). Families of three or fewer stay as they are.
    """
    for f in range(offsets.size - 1):
        first, last = offsets[f], offsets[f + 1]
        size = last - first
        out[first:last] = values[first:last]
        if size <= 3:
            continue
        variance = 0.0
        for i in range(first, last):
            variance += variances[i]
        variance /= size
        out[first:last].sort()
        # The lowest 1, 2, 3, ... about their own mean (Welford): a sum of squares of the lowest alone stays exact
        # enough beside others that are a billion times as large.
        least = 2.0 * variance * size
        low = first
        low_mean = 0.0
        mean = 0.0
        squares = 0.0
        for rest in range(1, size + 1):
            distance = out[first + rest - 1] - mean
            mean += distance / rest
            squares += distance * (out[first + rest - 1] - mean)
            high = size - rest
            price = 1.0 + high
            if high > 0:
                price += high * math.log(size / high)
            error = squares + 2.0 * variance * price
            if error < least:
                least, low, low_mean = error, first + rest, mean
        if low == last:
            out[first:last] = low_mean
        else:
            bound = out[low]
            for i in range(first, last):
                out[i] = values[i] if values[i] >= bound else low_mean


@kernel
def fit_families(values, variances, totals, offsets, out):
    """Make each family nonnegative with its parent's sum: the nearest such values, distances in units of variances.

    The nearest are max(0, y_i + t v_i) for the one t with the right sum: starting from all members, those that would be
    negative drop out, t falls, and so on until none does.
    """
    for f in range(offsets.size - 1):
        first, last = offsets[f], offsets[f + 1]
        if totals[f] <= 0.0:
            for i in range(first, last):
                out[i] = 0.0
            continue
        for i in range(first, last):
            out[i] = 1.0
        shift = 0.0
        dropped = True
        while dropped:
            missing = totals[f]
            weight = 0.0
            for i in range(first, last):
                if out[i] > 0.0:
                    missing -= values[i]
                    weight += variances[i]
            shift = missing / weight
            dropped = False
            for i in range(first, last):
                if out[i] > 0.0 and values[i] + shift * variances[i] <= 0.0:
                    out[i] = 0.0
                    dropped = True
        for i in range(first, last):
            if out[i] > 0.0:
                out[i] = values[i] + shift * variances[i]


# Stamp of all kernel sources (scripts/stamp_kernels.py): 1a6b6976592eef7c
