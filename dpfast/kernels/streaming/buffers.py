"""A step of many counters whose noise goes through exponentially decaying buffers.

Buffers are whole multiples of a unit u, a power of two, kept as float64 numbers of units: below 2**51 units every
product with a rate in [0, 1) is off by at most 1/8 unit before it is rounded, and sums and differences are exact. What
is proved of these steps stands in dpfast/streaming/buffers.py: every line here is one of its lines.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import kernel
from dpfast.kernels.intrinsics import round_half_even

__all__ = ["advance_buffers", "settle_buffers"]


@kernel
def advance_buffers(
    increments, limit, totals, buffers, start, rates, weights, coarse, units_per_one, grids_per_unit, positions
):
    """Add increments to the totals, let the buffers decay, and set ``positions`` to what the noise is added to.

    Parameters
    ----------
    increments, limit
        int64, one a row, moved into [-limit, limit] first.
    totals
        int64, of the same rows.
    buffers
        float64, (buffers, counters), in units.
    start
        The counter of the first row.
    rates, weights
        float64, of every buffer.
    coarse
        The grid less one where the grid is above 1, else 0 (int64).
    units_per_one, grids_per_unit
        1 / u and u / grid.
    positions
        float64: the total modulo the grid plus what the buffers say, in grids.

    """
    rows = positions.size
    for i in range(rows):
        totals[i] += min(max(increments[i], -limit), limit)
        positions[i] = 0.0
    for j in range(rates.size):
        rate, weight = rates[j], weights[j]
        buffer = buffers[j][start : start + rows]
        for i in range(rows):
            decayed = round_half_even(rate * buffer[i])
            buffer[i] = decayed
            positions[i] += weight * decayed
    for i in range(rows):
        positions[i] = round_half_even(positions[i]) * grids_per_unit
    if coarse != 0:
        for i in range(rows):
            positions[i] += np.float64(totals[i] & coarse) * (units_per_one * grids_per_unit)


@kernel
def settle_buffers(noise, positions, totals, buffers, start, units_per_grid, coarse, up, half, down, released):
    """Add what the noise was to the buffers, and set ``released`` to the noisy totals, rounded to whole numbers.

    Parameters
    ----------
    noise
        int32: with p the position, round(p + noise) less the whole number next to p.
    positions
        As `advance_buffers` left them; they are overwritten.
    totals, buffers, start, coarse
        As there.
    units_per_grid
        grid / u.
    up, half, down
        What turns a number of grids into a whole number: (k << up) + half >> down (int64).
    released
        int64.

    """
    rows = positions.size
    for i in range(rows):
        position = positions[i]
        nearest = round_half_even(position)
        grids = np.int64(nearest) + np.int64(noise[i])
        released[i] = totals[i] - (totals[i] & coarse) + (((grids << up) + half) >> down)
        positions[i] = ((nearest - position) + np.float64(noise[i])) * units_per_grid
    for j in range(buffers.shape[0]):
        buffer = buffers[j][start : start + rows]
        for i in range(rows):
            buffer[i] += positions[i]


# Stamp of all kernel sources (scripts/stamp_kernels.py): d3883510e00f6302
