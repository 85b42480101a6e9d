"""Intervals of a line of counts: how uneven each is, and the partition into intervals of least cost.

Intervals have 2**l cells; those of two cells and more begin at multiples of half their length, so that neighbours
overlap by half: about four times as many as there are cells, and each is two intervals of half its length.

The deviation of an interval is the least sum of abs(x_j - m) over its cells, which a median m attains: with the counts
sorted it is the sum of the upper half less that of the lower half, an integer.
"""

from __future__ import annotations

from dpfast.kernels.compilation import kernel

__all__ = ["choose_partition", "merge_halves"]


@kernel
def merge_halves(halves, step, half, merged, deviations):
    """Merge sorted intervals of ``half`` cells, i * step and i * step + step, into interval i; give its deviation.

    ``halves`` and ``merged`` (int64) hold intervals one after the other, each sorted; ``deviations`` one number each.
    The lower half of the outcome is merged from the front and the upper one from the back: neither can run out of one
    of its two sources before it is full, so that no step depends on a comparison but for what it moves.
    """
    size = 2 * half
    for i in range(deviations.size):
        left = i * step * half
        right = (i + 1) * step * half
        left_back, right_back = left + half - 1, right + half - 1
        front = i * size
        back = front + size - 1
        deviation = 0
        for _ in range(half):
            one, other = halves[left], halves[right]
            first = one <= other
            value = one if first else other
            left += 1 if first else 0
            right += 0 if first else 1
            merged[front] = value
            front += 1
            one, other = halves[left_back], halves[right_back]
            last = one > other
            upper = one if last else other
            left_back -= 1 if last else 0
            right_back -= 0 if last else 1
            merged[back] = upper
            back -= 1
            deviation += upper - value
        deviations[i] = deviation


@kernel
def choose_partition(costs, firsts, prices, best, back):
    """Find the partition of the cells into intervals whose costs, each plus its level's price, have the least sum.

    ``costs`` (int64) has level after level. Level l begins at ``firsts[l]``, and each of its costs is raised by
    ``prices[l]`` (int64). ``best[e]`` becomes the least sum for the first e cells, and ``back[e]`` where the last
    interval before e begins. Of equal sums the one with the shorter last interval stays: a fixed order of all
    partitions. Returns how many intervals the partition has.
    """
    cells = best.size - 1
    best[0] = 0
    for end in range(1, cells + 1):
        best[end] = best[end - 1] + costs[firsts[0] + end - 1] + prices[0]
        back[end] = end - 1
        length = 2
        level = 1
        while length <= end:
            stride = length // 2
            start = end - length
            if start % stride == 0:
                total = best[start] + costs[firsts[level] + start // stride] + prices[level]
                if total < best[end]:
                    best[end] = total
                    back[end] = start
            length *= 2
            level += 1
    count = 0
    end = cells
    while end > 0:
        end = back[end]
        count += 1
    return count


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
