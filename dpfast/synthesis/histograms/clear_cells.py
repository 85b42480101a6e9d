"""Cells that are clearly not empty, and 0 for all others: best for sums over many cells of which few are full."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["clear_cells"]

Floats = NDArray[np.float64]

#: A cell is clear where so much of its noisy count is expected to be no noise.
_CLEAR = 0.5


def clear_cells(cells: Floats, noisy: Floats, deviation: float) -> Floats:
    """Return the cells, but 0 for those whose noisy count is expected to be noise for the larger part.

    An empty cell whose noise stands out may be a spike, and so something is expected of it; over thousands of empty
    cells this adds up to more than the noise of the full ones. Where nearly all records are in full cells, what is lost
    of the others is less than that.

    Parameters
    ----------
    cells
        What each cell is expected to hold, 0 or more.
    noisy
        The cells with noise, of the same shape.
    deviation
        The standard deviation of each cell's noise. A cell that is expected to hold less than half of it is not clear.

    """
    return np.where(cells >= _CLEAR * np.maximum(noisy, deviation), cells, 0.0)
