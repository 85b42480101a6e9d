"""Cells without noise, whose sums over boxes stay near those of the noisy cells."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpfast.synthesis.histograms.denoising import LARGEST_BITS, order_of_tree

__all__ = ["with_sums_of_boxes"]

Floats = NDArray[np.float64]

#: Boxes of fewer places are left as they are.
_SMALLEST = 64
#: How much of a sum's deviation is taken for noise, in variances of it: with 2 a sum may err by 1.4 deviations.
_DOUBT = 2.0


def with_sums_of_boxes(cells: Floats, noisy: Floats, deviation: float) -> Floats:
    """Return cells of 0 or more whose sums over large boxes are moved to those of noisy ones where these are clear.

    What is expected of each cell errs little for every cell, but in a region all of it may err to the same side, by
    less in each cell than could be seen; for wide queries that adds up to more than noise, of which the sum over m
    cells has a deviation of sqrt(m) only. So the boxes of the binary tree of `denoised`, from the whole to 64 places,
    get back what noise is too small for: of a difference d from the noisy sum, of variance v, d (1 - 2 v / d**2), or 0
    (the nonnegative garrote: Breiman 1995; Gao 1998). It is added evenly, or taken from the cells by their shares. Only
    what was measured is used, and the public noise. Histograms too large for one tree are left as they are.

    Parameters
    ----------
    cells
        What each cell is expected to hold, 0 or more.
    noisy
        The cells with noise, of the same shape.
    deviation
        Of the noise of each.

    """
    if sum((side - 1).bit_length() for side in cells.shape) > LARGEST_BITS:
        return cells
    order, offsets = order_of_tree(cells.shape)
    measured, moved = noisy.reshape(-1)[order], cells.reshape(-1)[order]
    places = offsets.size - 1
    while places >= _SMALLEST:
        bounds = offsets[::places]
        sizes = np.diff(bounds)
        starts, sizes = bounds[:-1][sizes > 0], sizes[sizes > 0]
        missing = np.add.reduceat(measured - moved, starts)
        held = np.add.reduceat(moved, starts)
        noise = _DOUBT * sizes * deviation**2
        clear = np.where(missing**2 > noise, missing - noise / np.where(missing == 0.0, 1.0, missing), 0.0)
        shares = np.where(clear < 0.0, np.maximum(held + clear, 0.0) / np.where(held > 0.0, held, 1.0), 1.0)
        moved = moved * np.repeat(shares, sizes) + np.repeat(np.maximum(clear, 0.0) / sizes, sizes)
        places //= 2
    result = np.empty(moved.size)
    result[order] = moved
    return result.reshape(cells.shape)
