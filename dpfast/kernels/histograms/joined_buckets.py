"""Which neighbouring buckets are joined: those whose noisy counts differ by no more than noise."""

from __future__ import annotations

from dpfast.kernels.compilation import kernel

__all__ = ["join_buckets"]


@kernel
def join_buckets(counts, widths, price, window, best, back, means):
    """Cut buckets into runs of one height each, of least cost; return how many runs there are.

    ``counts`` (float64) are in deviations of their noise, ``widths`` (float64) in cells. A run costs the least sum of
    (count - height * width)**2 over its buckets, and ``price``; it has at most ``window`` buckets. Afterwards the run
    that ends before bucket e begins at ``back[e]`` (int64) and has the height ``means[e]`` (float64); the last one ends
    before ``counts.size``. Squared distances are updated with the height as a run grows, so that large counts lose no
    digits.
    ``best`` (float64) is scratch; it, ``back`` and ``means`` have one entry more than there are buckets.
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


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
