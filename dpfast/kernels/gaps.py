"""Certified gaps: how far the largest of two noisy scores lies above the other, rounded to a multiple of a grid.

For two candidates with scores s and t, noise N and M (selection.py) and u = 2**-53, the gap in units of the grid is

    y = ((s - t) + (N - M) / a) / grid

in which (s - t) / 2 is off by 2u of itself, N - M by 5.1u (N + |M|) and its rounding, the quotients by u each and the
sum by u: the code's 16u ((|s - t| + (|N| + |M| + 1) / a) / grid) is more than twice that; quotients that underflow
lose less than 2**-1000, and the unread bits add their widths over a and grid. The multiple is certain if y is at least
so far from the middle between two of them, and below 2**51.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import kernel
from dpfast.kernels.parameters import at
from dpfast.kernels.selection import half_difference, noise_of

__all__ = ["OPEN", "round_gaps"]

OPEN = -1
_SLACK, _TINY, _LARGEST = 16 * 2.0**-53, 2.0**-1000, 2.0**51


@kernel
def round_gaps(scores, words, others, other_words, a, grid, kind, gaps):
    """Fill ``gaps`` (int64) with the number of grid steps of each pair's gap, OPEN where it is not certain.

    ``scores`` and ``words`` are those of the winners, ``others`` and ``other_words`` those of the runners-up; ``a``
    and ``grid`` are one number, or one for each pair.
    """
    for i in range(gaps.size):
        difference = 2.0 * half_difference(scores[i], others[i])
        noise, below, above = noise_of(words[i], kind)
        other, other_below, other_above = noise_of(other_words[i], kind)
        step, slope = at(grid, i), at(a, i)
        y = (difference + (noise - other) / slope) / step
        width = max(below + other_above, above + other_below) + _SLACK * (abs(noise) + abs(other) + 1.0)
        error = 1.0625 * ((_SLACK * abs(difference) + width / slope) / step) + _TINY
        whole = np.floor(y)
        if y < _LARGEST and abs((y - whole) - 0.5) > error:
            gaps[i] = np.int64(whole) + (1 if y - whole > 0.5 else 0)
        else:
            gaps[i] = OPEN


# Stamp of all kernel sources (scripts/stamp_kernels.py): 1a6b6976592eef7c
