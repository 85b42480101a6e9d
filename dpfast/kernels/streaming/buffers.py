"""A step of many counters whose noise goes through exponentially decaying buffers.

Buffers are whole multiples of a unit u, a power of two, kept as float64 numbers of units: below 2**51 units every
product with a rate in [0, 1) is off by at most 1/8 unit before it is rounded, and sums and differences are exact. What
is proved of these steps stands in dpfast/streaming/buffers.py: every line here is one of its lines.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import kernel
from dpfast.kernels.intrinsics import round_half_even

__all__ = ["ROWS", "advance_buffers", "settle_buffers"]

ROWS = 2048
"""Counters whose positions stay in the nearest cache while all their buffers pass."""


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
    for first in range(0, positions.size, ROWS):
        last = min(first + ROWS, positions.size)
        # Slices count from 0, which the compiler knows of them.
        place, total, given = positions[first:last], totals[first:last], increments[first:last]
        for i in range(place.size):
            total[i] += min(max(given[i], -limit), limit)
            place[i] = 0.0
        for j in range(rates.size):
            rate, weight = rates[j], weights[j]
            buffer = buffers[j][start + first : start + last]
            for i in range(place.size):
                decayed = round_half_even(rate * buffer[i])
                buffer[i] = decayed
                place[i] += weight * decayed
        for i in range(place.size):
            place[i] = round_half_even(place[i]) * grids_per_unit
        if coarse != 0:
            for i in range(place.size):
                place[i] += np.float64(total[i] & coarse) * (units_per_one * grids_per_unit)


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
    for first in range(0, positions.size, ROWS):
        last = min(first + ROWS, positions.size)
        place, total, drawn, figures = (
            positions[first:last],
            totals[first:last],
            noise[first:last],
            released[first:last],
        )
        for i in range(place.size):
            position = place[i]
            nearest = round_half_even(position)
            grids = np.int64(nearest) + np.int64(drawn[i])
            figures[i] = total[i] - (total[i] & coarse) + (((grids << up) + half) >> down)
            place[i] = ((nearest - position) + np.float64(drawn[i])) * units_per_grid
        for j in range(buffers.shape[0]):
            buffer = buffers[j][start + first : start + last]
            for i in range(place.size):
                buffer[i] += place[i]


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
