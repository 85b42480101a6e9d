"""Nodes of binary trees over the steps of a stream: what is measured at a step, and the prefix sums made of it.

Levels count from 0, the single steps, to ``top``; nodes of the top level are not joined. Step s, counted from 1, ends a
node of level j, the number of zero bits at the end of s, at most ``top``. Row l of a stack has what belongs to the
prefix at the last step that ended with a node of level l: that prefix, without this node, is the one before. So the
prefix at s is that at step s - 2**j and one node more.

Of eight steps after a multiple of eight the first seven need no stack: their prefixes end at that multiple, or at each
other. What they leave in the stack nobody reads: the next steps' prefixes end at later ones.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import inlined, kernel

__all__ = ["add_columns", "merge_estimates", "open_nodes", "run_nodes", "sum_nodes"]

_NONE, _ONE, _THREE, _SEVEN = np.int64(0), np.int64(1), np.int64(3), np.int64(7)


@inlined
def clamped(increment, limit):
    """Return an increment moved into [-limit, limit]."""
    return min(max(increment, -limit), limit)


@inlined
def level_of(step, least, top):
    """Return the level of the node that ends at a step: the zero bits at the end of a positive number, or ``top``.

    There are at least ``least`` of them.
    """
    level = least
    while level < top and (step >> level) & _ONE == 0:
        level += _ONE
    return level


@inlined
def level_before(step, level, top):
    """Return the row of the prefix before that node; ``top + 1``, the empty prefix's, where it is the first one."""
    before = step - (_ONE << level)
    return top + _ONE if before == 0 else level_of(before, min(level, top), top)


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
    i = 0
    while i < nodes.size:
        least = _NONE
        if top >= 3 and step & _SEVEN == 0 and i + 8 <= nodes.size:
            one, two = clamped(increments[i], limit), clamped(increments[i + 1], limit)
            three, four = clamped(increments[i + 2], limit), clamped(increments[i + 3], limit)
            five, six = clamped(increments[i + 4], limit), clamped(increments[i + 5], limit)
            seven = clamped(increments[i + 6], limit)
            nodes[i], nodes[i + 1], nodes[i + 2], nodes[i + 3] = one, one + two, three, one + two + three + four
            nodes[i + 4], nodes[i + 5], nodes[i + 6] = five, five + six, seven
            total += one + two + three + four + five + six + seven
            step += _SEVEN
            i += 7
            least = _THREE
        total += clamped(increments[i], limit)
        step += _ONE
        level = level_of(step, least, top)
        nodes[i] = total - stack[level_before(step, level, top)]
        stack[level] = total
        i += 1
    return total


@kernel
def sum_nodes(nodes, step, top, stack, sums):
    """Set ``sums`` to the noisy prefix sums that noisy nodes of consecutive steps of one counter make.

    ``step`` have been before; ``stack``, int64 of ``top + 2`` rows, holds the noisy prefixes.
    """
    last = stack[top + _ONE if step == 0 else level_of(step, _NONE, top)]
    i = 0
    while i < nodes.size:
        least = _NONE
        if top >= 3 and step & _SEVEN == 0 and i + 8 <= nodes.size:
            before = last
            two, four = before + nodes[i + 1], before + nodes[i + 3]
            six = four + nodes[i + 5]
            sums[i], sums[i + 1], sums[i + 2], sums[i + 3] = before + nodes[i], two, two + nodes[i + 2], four
            sums[i + 4], sums[i + 5], sums[i + 6] = four + nodes[i + 4], six, six + nodes[i + 6]
            step += _SEVEN
            i += 7
            least = _THREE
        step += _ONE
        level = level_of(step, least, top)
        last = nodes[i] + stack[level_before(step, level, top)]
        sums[i] = stack[level] = last
        i += 1


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
