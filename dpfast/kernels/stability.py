"""How far sorted values are from another interquartile bin, and how steep the gaps around a rank are: in one pass."""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import inlined, kernel

__all__ = ["LONGEST_STACK", "rows_to_leave", "steepest_gap"]

#: Stretches that wait: one for every halving of at most 2**63 ranks.
LONGEST_STACK = 64


@inlined
def is_nearer(high, low, width):
    """Return whether high - low < width, exactly, for floats of magnitude up to 2**1000.

    The difference d rounds to ``width`` or to another float, which decides. If it rounds to ``width`` itself, the
    error of the subtraction, which is a float (Moller 1965, Knuth 1969), tells on which side d lies.
    """
    difference = high - low
    if difference != width:
        return difference < width
    other = difference - high
    return (high - (difference - other)) + (-low - other) < 0.0


@inlined
def least_steps(first, second, most):
    """Return the least v + t + u >= 0 with first <= 3 v - t + u and second <= 3 t - v + u, u <= most.

    One step in v or t brings both sums nearer by 2 together, as one in u does; so k steps reach at most
    first + second <= 2 k, first <= 3 k, second <= 3 k, and up to three of u even out what does not divide by 4.
    """
    steps = 0
    if first > 0:
        steps = (first + 2) // 3
    if second > 0:
        steps = max(steps, (second + 2) // 3)
    if first + second > 0:
        steps = max(steps, (first + second + 1) // 2)
    while True:
        for u in range(min(most, min(steps, 3)) + 1):
            v = max(0, (first + steps - 2 * u + 3) // 4)
            t = max(0, (second + steps - 2 * u + 3) // 4)
            if v + t + u <= steps:
                return steps
        steps += 1


@inlined
def first_apart(x, i, width):
    """Return where the first value stands that is ``width`` or more above x[i], in sorted x; its size for none."""
    near, apart = i, x.size
    while near < apart:
        middle = (near + apart) // 2
        if is_nearer(x[middle], x[i], width):
            near = middle + 1
        else:
            apart = middle
    return apart


@inlined
def rows_to_exchange(x, low, high, a, b):
    """Return what `rows_to_leave` does, where rows are exchanged.

    A window that begins before rank a needs as many rows moved up as the one at rank a, or more; one that begins later
    needs a row more for each rank. So it is with two values far apart, the lower one of rank a or above. Only so many
    ranks are looked at as the rows that are needed at last.
    """
    n = x.size
    best = n + 2
    if low > 0.0 and n > 0:
        within = first_apart(x, a - 1, low)
        for i in range(a - 1, n):
            if i + 1 - a > best:
                break
            while within < n and is_nearer(x[within], x[i], low):
                within += 1
            best = min(best, i + 1 - a + max(0, b - within))
    # Before the lowest value stands -infinity, and infinity after the highest.
    best = min(best, a + max(0, 1 - b))
    upper = first_apart(x, a - 1, high) if n > 0 else 0
    for i in range(a - 1, -1, -1):
        if a - (i + 1) > best:
            break
        while upper > i + 1 and not is_nearer(x[upper - 1], x[i], high):
            upper -= 1
        best = min(best, a - (i + 1) + max(0, upper + 1 - b))
    return best


@kernel
def rows_to_leave(x, low, high, replace):
    """Return the least number of rows to change before the distance between the quartiles is < low or >= high.

    ``x`` (float64) is sorted, of magnitude up to 2**1000. The quartiles of n values are those of ranks a = ceil(n / 4)
    and b = ceil(3 n / 4). Rows are exchanged for others if ``replace``, and otherwise added and removed.

    Below ``low``: for a window of that width from some value on, l values are below it and r above. The quartiles of
    n' values lie in it if l < a, that is 4 l < n', and r <= n' - b, that is 4 r <= n'. Exchanged rows move into it; or
    rows are removed from below (v) or above (t), or added within (u).

    At ``high`` or above: for two values so far apart, L values are up to the lower one and R from the upper one on. The
    quartiles of n' values are no nearer if L >= a, that is 4 L >= n', and R > n' - b, that is 4 R > n'. Exchanged rows
    move to the ends; or rows are added below (v) or above (t), or removed from between (u).
    """
    n = x.size
    a, b = (n + 3) // 4, (3 * n + 3) // 4
    if replace:
        return rows_to_exchange(x, low, high, a, b)
    best = n + 2
    within = 0
    if low > 0.0:
        for i in range(n):
            while within < n and is_nearer(x[within], x[i], low):
                within += 1
            best = min(best, least_steps(4 * i - n + 1, 4 * (n - within) - n, n))
    # The lowest value that is so far above the one before: -infinity comes first, and infinity last.
    upper = 0
    for i in range(-1, n):
        upper = max(upper, i + 1)
        if i >= 0:
            while upper < n and is_nearer(x[upper], x[i], high):
                upper += 1
        best = min(best, least_steps(n - 4 * (i + 1), n - 4 * (n - upper) + 1, upper - (i + 1)))
    return best


@kernel
def steepest_gap(x, decay, first, last, least, most, span):
    """Return the largest (x[j] - x[i]) * decay[j - i - span], first <= i <= last, least <= j <= most, j - i >= span.

    ``x`` (float64) is sorted and ``decay`` geometric. Which j is best rises with i: where j beats an earlier one for
    some i, it does for all later ones, since x[i] then weighs against both, and more against the earlier. So the best
    j of the middle i parts the others (Nissim, Raskhodnikova, Smith 2007). Of a product that rounding makes the largest
    instead of another the same holds but for the roundings of ``decay``.
    """
    waiting = np.empty((LONGEST_STACK, 4), np.int64)
    waiting[0] = first, last, least, most
    height = 1
    best = 0.0
    while height:
        height -= 1
        low, high, left, right = waiting[height]
        if low > high:
            continue
        i = (low + high) // 2
        start = max(left, i + span)
        place, own = start, -1.0
        for j in range(start, right + 1):
            value = (x[j] - x[i]) * decay[j - i - span]
            if value > own:
                place, own = j, value
        best = max(best, own)
        waiting[height] = low, i - 1, left, place
        waiting[height + 1] = i + 1, high, place, right
        height += 2
    return best


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
