"""Rows brought together by their group, in one pass: a counting sort over small group numbers."""

from __future__ import annotations

from dpfast.kernels.compilation import kernel

__all__ = ["count_rows", "order_rows"]


@kernel
def count_rows(groups, lowest, counts):
    """Add to ``counts[g - lowest]`` (int64) the number of rows of each group g."""
    for row in range(groups.size):
        counts[groups[row] - lowest] += 1


@kernel
def order_rows(groups, lowest, nexts, order):
    """Fill ``order`` with the rows, group by group, in their order within each; ``nexts`` are where groups begin.

    ``nexts`` (int64, one for each group number from ``lowest`` on) ends up where the groups end.
    """
    for row in range(groups.size):
        g = groups[row] - lowest
        order[nexts[g]] = row
        nexts[g] += 1


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
