"""Nodes of binary trees over the steps of a stream: what is measured at a step, and the prefix sums made of it.

Levels count from 0, the single steps, to ``top``; nodes of the top level are not joined. Step s, counted from 1, ends a
node of level j, the number of zero bits at the end of s, at most ``top``. Row l of a stack has what belongs to the
prefix at the last step that ended with a node of level l: that prefix, without this node, is the one before. So the
prefix at s is that at step s - 2**j and one node more.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import inlined, kernel

__all__ = ["add_columns", "merge_estimates", "open_nodes", "run_nodes", "sum_nodes"]

_ONE = np.int64(1)


@inlined
def level_of(step, top):
    """Return the level of the node that ends at a step: the zero bits at the end of a positive number, or ``top``."""
    level = np.int64(0)
    while level < top and (step >> level) & _ONE == 0:
        level += _ONE
    return level


@inlined
def level_before(step, level, top):
    """Return the row of the prefix before that node; ``top + 1``, the empty prefix's, where it is the first one."""
    before = step - (_ONE << level)
    return top + _ONE if before == 0 else level_of(before, top)


@kernel
def open_nodes(increments, limit, totals, before, nodes):
    """Add increments, moved into [-limit, limit], to the totals; set ``nodes`` to what has come since ``before``."""
    for i in range(nodes.size):
        totals[i] += min(max(increments[i], -limit), limit)
        nodes[i] = totals[i] - before[i]


@kernel
def add_columns(x, y, out):
    """Set ``out`` to x + y; it may be one of them."""
    for i in range(out.size):
        out[i] = x[i] + y[i]


@kernel
def merge_estimates(noisy, share, left, estimates):
    """Replace the estimates of right children by their parents': ``share`` times noisy, the rest the children's."""
    for i in range(estimates.size):
        estimates[i] = share * np.float64(noisy[i]) + (1.0 - share) * (left[i] + estimates[i])


@kernel
def run_nodes(increments, limit, step, top, stack, total, nodes):
    """Do `open_nodes` for consecutive steps of one counter; return its total.

    ``step`` have been before, ``total`` is the sum of their increments, ``stack`` int64 of ``top + 2`` rows.
    """
    for i in range(nodes.size):
        total += min(max(increments[i], -limit), limit)
        step += _ONE
        level = level_of(step, top)
        nodes[i] = total - stack[level_before(step, level, top)]
        stack[level] = total
    return total


@kernel
def sum_nodes(nodes, step, top, stack):
    """Replace noisy nodes of consecutive steps of one counter by noisy prefix sums; ``stack`` holds those before."""
    for i in range(nodes.size):
        step += _ONE
        level = level_of(step, top)
        nodes[i] += stack[level_before(step, level, top)]
        stack[level] = nodes[i]


# Stamp of all kernel sources (scripts/stamp_kernels.py): c43332877ab5277a
