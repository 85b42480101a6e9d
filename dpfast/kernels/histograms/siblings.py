"""Siblings: children of one parent in a tree. Their noisy values are drawn together, and made to fit its sum.

Families lie one after the other, family f from offsets[f] to offsets[f + 1], as children of a tree's level do.
"""

from __future__ import annotations

import math

from dpfast.kernels.compilation import kernel

__all__ = ["fit_siblings", "shrink_siblings"]


@kernel
def shrink_siblings(values, variances, offsets, unions, parents, above, tail, out, moved, sums, spreads):
    """Draw the members of each family together as far as their differences look like noise.

    Of k members with variance v (the family's mean one), the h largest stay as they are, and the others move to their
    own mean or to 0, for the h from 0 to k and the one of both with the least estimate of the error: the squares about
    where they move to, plus 2 v for the mean if they have one and for every member that stays (Mallows), and
    2 v h ln(k / h) for having looked for the largest (Foster and George). The largest of k Gaussian noises is about
    sqrt(2 v ln k), and of Laplace noises of scale b = sqrt(v / 2) it is b ln k: for these 2 v h ln(k / h)**2 / 4 comes
    on top, so that a single one stays from b (2 + ln k) on. And what their sum is off the box's own value counts as
    another square, in units of its noise. Families of three or fewer stay as they are.

    Parameters
    ----------
    values, variances
        Of all members.
    offsets
        As above.
    parents, above
        For each family its box's value, and the variance of that.
    tail
        What ln(k / h)**2 is multiplied by: 1/4 for Laplace noise, 0 for Gaussian.
    unions
        Whether a family's last member is not one of its kind: it moves to 0 if it is less than sqrt(2) deviations, or
        negative, and else stays as it is. (Its part of no more than noise would be taken from the others.)
    out, moved
        The members drawn together, and whether each was moved.
    sums, spreads
        For each family the sum of what came out, and its variance: noise of members that moved to 0 is not in it.

    """
    for f in range(offsets.size - 1):
        first, last = offsets[f], offsets[f + 1]
        union_value = 0.0
        union_variance = 0.0
        if unions[f]:
            last -= 1
            union_value, union_variance = values[last], variances[last]
            if last > first and union_value < math.sqrt(2.0 * union_variance):
                union_value, union_variance = 0.0, 0.0
            out[last], moved[last] = union_value, False
        size = last - first
        whole = 0.0
        wide = 0.0
        for i in range(first, last):
            out[i], moved[i] = values[i], False
            whole += values[i]
            wide += variances[i]
        sums[f], spreads[f] = whole + union_value, wide + union_variance
        if size <= 3:
            continue
        variance = wide / size
        out[first:last].sort()
        # The lowest 1, 2, 3, ... about their own mean (Welford): a sum of squares of the lowest alone stays exact
        # enough beside others that are a billion times as large.
        off = whole + union_value - parents[f]
        all_off = variance * off * off / (above[f] + wide + union_variance)
        least = 2.0 * variance * size + all_off
        kept = whole
        low = first
        low_mean = 0.0
        mean = 0.0
        squares = 0.0
        for rest in range(1, size + 1):
            distance = out[first + rest - 1] - mean
            mean += distance / rest
            squares += distance * (out[first + rest - 1] - mean)
            high = size - rest
            price = float(high)
            kept -= out[first + rest - 1]
            empty = 0.0
            if high > 0:
                searched = math.log(size / high)
                price += high * (searched + tail * searched * searched)
                off = kept + union_value - parents[f]
                empty = rest * mean * mean + variance * off * off / (above[f] + high * variance + union_variance)
            error = squares + 2.0 * variance * price
            if high > 0 and (mean <= 0.0 or empty < 2.0 * variance + all_off):
                if error + empty < least:
                    least, low, low_mean = error + empty, first + rest, 0.0
            elif error + 2.0 * variance + all_off < least:
                least, low, low_mean = error + 2.0 * variance + all_off, first + rest, mean
        if low == first:
            out[first:last] = values[first:last]
        elif low == last:
            out[first:last] = low_mean
            moved[first:last] = True
        else:
            bound = out[low]
            if low_mean == 0.0:
                sums[f], spreads[f] = union_value, union_variance
            for i in range(first, last):
                if values[i] >= bound:
                    out[i] = values[i]
                    if low_mean == 0.0:
                        sums[f] += values[i]
                        spreads[f] += variances[i]
                else:
                    out[i], moved[i] = low_mean, True


@kernel
def fit_siblings(values, variances, totals, offsets, out):
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


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
