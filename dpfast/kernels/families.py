"""Families: children that share a parent's sum. Their noisy values are drawn to their mean, and made to fit the sum.

Families lie one after the other, family f from offsets[f] to offsets[f + 1], as children of a tree's level do.
"""

from __future__ import annotations

import math

from dpfast.kernels.compilation import kernel

__all__ = ["fit_families", "shrink_families"]


@kernel
def shrink_families(values, variances, offsets, out):
    """Draw the members of each family together, by as much as their differences look like noise.

    Of k members with variance v (the family's mean one), sum of squares S about their mean, one of two ways is taken:

        all of them keep the part c = max(0, 1 - (k - 3) v / S) of their distance from the mean (James and Stein);
        the h largest stay as they are, and the others move to their own mean.

    It is the one with the least estimate of the error, up to the same constant (Mallows; Foster and George for the
    price of looking for the largest): (1 - c)**2 S + 2 v (1 + c (k - 1)), or the squares about the others' mean plus
    2 v (1 + h (1 + ln(k / h))). Families of three or fewer stay as they are.
    """
    for f in range(offsets.size - 1):
        first, last = offsets[f], offsets[f + 1]
        size = last - first
        out[first:last] = values[first:last]
        if size <= 3:
            continue
        total = 0.0
        variance = 0.0
        for i in range(first, last):
            total += values[i]
            variance += variances[i]
        mean = total / size
        variance /= size
        squares = 0.0
        for i in range(first, last):
            squares += (values[i] - mean) ** 2
        kept = max(0.0, 1.0 - (size - 3) * variance / squares) if squares > 0.0 else 0.0
        least = (1.0 - kept) ** 2 * squares + 2.0 * variance * (1.0 + kept * (size - 1))
        low = last
        low_mean = mean
        out[first:last].sort()
        # The lowest 1, 2, 3, ... about their own mean (Welford): a sum of squares of the lowest alone stays exact
        # enough beside others that are a billion times as large.
        about = 0.0
        left = 0.0
        for rest in range(1, size):
            distance = out[first + rest - 1] - about
            about += distance / rest
            left += distance * (out[first + rest - 1] - about)
            high = size - rest
            error = left + 2.0 * variance * (1.0 + high * (1.0 + math.log(size / high)))
            if error < least:
                least, low, low_mean = error, first + rest, about
        if low == last:
            for i in range(first, last):
                out[i] = mean + kept * (values[i] - mean)
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


# Stamp of all kernel sources (scripts/stamp_kernels.py): 6465f39d16b02983
