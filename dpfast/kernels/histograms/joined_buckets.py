"""Neighbouring buckets whose noisy counts differ by no more than noise: which of them are joined."""

from __future__ import annotations

from dpfast.kernels.compilation import kernel

__all__ = ["join_buckets"]


@kernel
def join_buckets(counts, widths, price, window, best, back, means):
    """Cut buckets into runs of equal height, of least cost; return how many runs, with ``back[e]`` where one begins.

    ``counts`` (float64) are in deviations of their noise, ``widths`` (float64) in cells. A run costs the least sum of
    (count - height width)**2 over its buckets, and ``price``; it has at most ``window`` buckets. ``means[e]`` becomes
    the height of the run that ends before bucket e. Sums are kept by updates of the height, so that large counts lose
    no digits. Scratch (``best`` float64, ``back`` int64) is for one number more than there are buckets.
    """
    best[0] = 0.0
    for end in range(1, counts.size + 1):
        weight = widths[end - 1] * widths[end - 1]
        height = counts[end - 1] / widths[end - 1]
        distances = 0.0
        best[end] = best[end - 1] + price
        back[end] = end - 1
        means[end] = height
        for start in range(end - 2, max(end - 1 - window, -1), -1):
            width = widths[start]
            off = counts[start] - height * width
            more = weight + width * width
            distances += off * off * (weight / more)
            height += off * width / more
            weight = more
            total = best[start] + distances + price
            if total < best[end]:
                best[end] = total
                back[end] = start
                means[end] = height
    end = counts.size
    runs = 0
    while end > 0:
        end = back[end]
        runs += 1
    return runs


# Stamp of all kernel sources (scripts/stamp_kernels.py): a7103dd3021f4f24
