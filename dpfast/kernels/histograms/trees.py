"""Sums over a tree of blocks of cells, and the two passes of weighted least squares over it.

Level 0 holds the cells; a block of a level is fan_out neighbouring blocks of the level below, the last block what is
left of them. A node v has a measurement y of variance 1 / w**2 times w (so that y = w times the sum of its cells, plus
noise of variance 1) and, from its own subtree alone, an estimate z of precision p. Its children's estimates add up to
one of the same sum with variance V = sum of 1 / p over them, so that

    p = w**2 + 1 / V,        z = (w y + (1 / V) sum of the children's z) / p          upward.

Given the parent's final estimate x, least squares spreads what the children lack in proportion to their variance:

    x_child = z_child + (1 / p_child) / V * (x - sum of the children's z)             downward.

All blocks of a level but the last are alike, so that these factors are numbers, not columns (Hay, Rastogi, Miklau,
Suciu 2010; Qardaji, Yang, Li 2013). The passes are post-processing and run in float64. Arrays have two dimensions, a
tree a row.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import inlined, kernel

__all__ = ["estimate_blocks", "settle_blocks", "sum_blocks"]


@inlined
def _sum_whole(row, fan_out, limit, whole, sums):
    """Set sums of whole blocks; where fan_out is a constant the loop over a block's entries is unrolled."""
    for j in range(whole):
        total = np.int64(0)
        for i in range(fan_out):
            total += min(max(row[j * fan_out + i], -limit), limit)
        sums[j] = total


@inlined
def _estimate_whole(row, measured, fan_out, own, children, whole, estimates):
    """Set estimates of whole blocks."""
    for j in range(whole):
        total = 0.0
        for i in range(fan_out):
            total += row[j * fan_out + i]
        estimates[j] = own * measured[j] + children * total


@inlined
def _settle_whole(row, above, fan_out, unit, share, whole, settled):
    """Set the entries of whole blocks."""
    for j in range(whole):
        total = 0.0
        for i in range(fan_out):
            total += row[j * fan_out + i]
        lacking = share * (above[j] - unit * total)
        for i in range(fan_out):
            settled[j * fan_out + i] = unit * row[j * fan_out + i] + lacking


@kernel
def sum_blocks(values, fan_out, limit, sums):
    """Set sums[r, j] to the sum of values[r, j * fan_out : (j + 1) * fan_out], each moved into [-limit, limit]."""
    for r in range(sums.shape[0]):
        row, out = values[r], sums[r]
        whole = row.size // fan_out
        if fan_out == 2:
            _sum_whole(row, 2, limit, whole, out)
        elif fan_out == 4:
            _sum_whole(row, 4, limit, whole, out)
        else:
            _sum_whole(row, fan_out, limit, whole, out)
        if whole < out.size:
            total = np.int64(0)
            for i in range(whole * fan_out, row.size):
                total += min(max(row[i], -limit), limit)
            out[whole] = total


@kernel
def estimate_blocks(below, measured, fan_out, own, children, last_own, last_children, estimates):
    """Set estimates[r, j] to own * measured[r, j] + children * (the sum of block j's entries of ``below``).

    The last block of each row has factors of its own. ``below`` is float64, or int64 where it is the level of cells.
    """
    for r in range(estimates.shape[0]):
        row, y, out = below[r], measured[r], estimates[r]
        last = out.size - 1
        if fan_out == 2:
            _estimate_whole(row, y, 2, own, children, last, out)
        elif fan_out == 4:
            _estimate_whole(row, y, 4, own, children, last, out)
        else:
            _estimate_whole(row, y, fan_out, own, children, last, out)
        total = 0.0
        for i in range(last * fan_out, row.size):
            total += row[i]
        out[last] = last_own * y[last] + last_children * total


@kernel
def settle_blocks(below, above, fan_out, unit, share, last_share, last_child_share, settled):
    """Set settled to the entries of ``below`` times ``unit``, moved so that those of a block add up to ``above``.

    Every entry takes ``share`` of what its block lacks; in the last block ``last_share``, its last entry
    ``last_child_share``.
    """
    for r in range(above.shape[0]):
        row, x, out = below[r], above[r], settled[r]
        last = x.size - 1
        if fan_out == 2:
            _settle_whole(row, x, 2, unit, share, last, out)
        elif fan_out == 4:
            _settle_whole(row, x, 4, unit, share, last, out)
        else:
            _settle_whole(row, x, fan_out, unit, share, last, out)
        total = 0.0
        for i in range(last * fan_out, row.size):
            total += row[i]
        lacking = x[last] - unit * total
        for i in range(last * fan_out, row.size - 1):
            out[i] = unit * row[i] + last_share * lacking
        out[row.size - 1] = unit * row[row.size - 1] + last_child_share * lacking


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
