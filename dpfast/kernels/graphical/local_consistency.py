"""Cells of one table of pseudo-marginals, from the terms that shared marginals add to them.

The fit of `dpfast.graphical.local_consistency` has a closed form for each cell: with the softness s, the terms t of the
cell and the noisy count y, it is the count that minimises

    (x - y)**2 / (2 s) - t x  over x >= 0,  or  x ln(x / q) - x + (x - y)**2 / (2 s) - t x  over x > 0.

The first is max(y + s t, 0). The second is s w with w + ln w = t + y / s + ln(q / s).
"""

from __future__ import annotations

import math

from dpfast.kernels.compilation import kernel
from dpfast.kernels.weights.replay import root

__all__ = ["entropy_cells", "least_squares_cells"]

#: Below that e**level is 0 beside any count.
_LEAST_LEVEL = -600.0
#: Steps of a search near a known root, and by which part of itself the last one may move it.
_MOST_STEPS, _NEAR = 6, 1e-7


@kernel
def least_squares_cells(levels, terms, softness, cells):
    """Set each cell to the least-squares count; arrays of one length, float64.

    Parameters
    ----------
    levels
        Of each cell y / s.
    terms, softness
        t of each cell, and s.
    cells
        Out.

    """
    for i in range(cells.size):
        cells[i] = softness * max(levels[i] + terms[i], 0.0)


@kernel
def _root_near(level, start):
    """Return w > 0 with w + ln(w) = level up to a relative 1e-13: by Newton's method, which ends soon if near."""
    w = start
    for _ in range(_MOST_STEPS):
        new = w * (1.0 + level - math.log(w)) / (1.0 + w)
        if not new > 0.0:
            break
        if abs(new - w) <= _NEAR * new:
            # The next step would be about the square of this one.
            return new
        w = new
    return root(level)


@kernel
def entropy_cells(levels, terms, softness, cells):
    """Set each cell to the count of least relative entropy and misfit; arrays as in `least_squares_cells`.

    Of each cell ``levels`` has y / s + ln(q / s). What ``cells`` hold is where the search begins; 0 says nothing.
    """
    for i in range(cells.size):
        level = levels[i] + terms[i]
        if level < _LEAST_LEVEL:
            cells[i] = 0.0
        elif cells[i] > 0.0:
            cells[i] = softness * _root_near(level, cells[i] / softness)
        else:
            cells[i] = softness * root(level)


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
