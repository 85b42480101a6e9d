"""Clusters of sorted numbers: the cut of least cost, of all ways to cut them."""

from __future__ import annotations

from dpfast.kernels.compilation import inlined, kernel

__all__ = ["cluster_sorted"]


@inlined
def _total(best, sums, squares, first, last, price):
    """Return the least cost of the numbers before ``last`` whose last cluster begins at ``first``."""
    size = last - first
    of_them = sums[last] - sums[first]
    return best[first] + squares[last] - squares[first] - of_them * of_them / size + price / size


@kernel
def cluster_sorted(values, price, best, sums, squares, back, candidates, since):
    """Cut descending numbers (float64) into clusters of least cost; return how many clusters there are.

    A cluster of k numbers costs the sum of their squared distances from its mean, and ``price`` / k. Afterwards the
    cluster that ends before number e begins at ``back[e]``: the last cluster ends before ``values.size``.

    Both parts of the cost satisfy the quadrangle inequality (numbers are sorted; 1 / k is convex in k). So once a later
    beginning of the last cluster is better than an earlier one, it stays better for all later ends. Beginnings wait in
    a queue, each with the end from which on it is the best; a binary search finds that end (Hirschberg, Larmore 1987;
    Galil, Giancarlo 1989). Between neighbours more than sqrt(3 ``price``) apart a cut pays, whatever else is cut. Sums
    begin anew there, and are of differences from the first number, so that large numbers lose no digits.

    ``back`` (int64) is the result; ``best``, ``sums`` and ``squares`` (float64), ``candidates`` and ``since`` (int64)
    are scratch. All have one entry more than there are numbers.
    """
    count = values.size
    begin = 0
    best[0] = 0.0
    while begin < count:
        stop = begin + 1
        while stop < count:
            gap = values[stop - 1] - values[stop]
            if gap * gap > 3.0 * price:
                break
            stop += 1
        sums[begin] = 0.0
        squares[begin] = 0.0
        best[begin] = 0.0
        for place in range(begin, stop):
            distance = values[begin] - values[place]
            sums[place + 1] = sums[place] + distance
            squares[place + 1] = squares[place] + distance * distance
        head = 0
        tail = 0
        candidates[0] = begin
        since[0] = begin + 1
        for end in range(begin + 1, stop + 1):
            while head < tail and since[head + 1] <= end:
                head += 1
            back[end] = candidates[head]
            best[end] = _total(best, sums, squares, candidates[head], end, price)
            if end == stop:
                break
            while tail > head and since[tail] > end:
                at = since[tail]
                new = _total(best, sums, squares, end, at, price)
                if new > _total(best, sums, squares, candidates[tail], at, price):
                    break
                tail -= 1
            low = max(end, since[tail] - 1)
            high = stop + 1
            while high - low > 1:
                middle = (low + high) // 2
                new = _total(best, sums, squares, end, middle, price)
                if new <= _total(best, sums, squares, candidates[tail], middle, price):
                    high = middle
                else:
                    low = middle
            if high <= stop:
                tail += 1
                candidates[tail] = end
                since[tail] = high
        begin = stop
    end = count
    clusters = 0
    while end > 0:
        end = back[end]
        clusters += 1
    return clusters


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
