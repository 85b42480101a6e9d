"""Cells that are clearly not empty, and little for others: best for sums over many cells of which few are full."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["clear_cells"]

Floats = NDArray[np.float64]

#: A cell is clear where so much of its noisy count is expected to be no noise.
_CLEAR = 0.5
#: What is not in clear cells is nothing, unless it is so many deviations of its noise.
_SURE = 4.0


def clear_cells(cells: Floats, noisy: Floats, deviation: float, records: tuple[float, float] | None = None) -> Floats:
    """Return the cells, but without those whose noisy count is expected to be noise for the larger part.

    An empty cell whose noise stands out may be a spike, and so something is expected of it; over thousands of empty
    cells this adds up to more than the noise of the full ones. So cells that are not clear are 0. If surely some
    records are in them all together, by their own noisy sum and by ``records``, these are spread evenly over them:
    a few in each of thousands are many.

    Parameters
    ----------
    cells
        What each cell is expected to hold, 0 or more.
    noisy
        The cells with noise, of the same shape.
    deviation
        The standard deviation of each cell's noise. A cell that is expected to hold less than half of it is not clear.
    records
        What else is known of the number of records, and the variance of that; None for nothing.

    """
    clear = cells >= _CLEAR * np.maximum(noisy, deviation)
    found = np.where(clear, cells, 0.0)
    others = cells.size - int(np.count_nonzero(clear))
    if others:
        rest, variance = float(noisy[~clear].sum()), others * deviation**2
        if records is not None:
            by_records = records[0] - float(found.sum()), records[1] + (cells.size - others) * deviation**2
            weight = variance / (variance + by_records[1])
            rest, variance = rest + weight * (by_records[0] - rest), weight * by_records[1]
        if rest > _SURE * math.sqrt(variance):
            found[~clear] = rest / others
    return found
