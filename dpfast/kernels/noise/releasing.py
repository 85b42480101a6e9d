"""Drawn noise released with its values: blocks of integers, and single rows of integers and floats.

Without values or a grid the noise is released alone. Blocks of floats are released by sums.py.
"""

from __future__ import annotations

from numba import types

from dpfast.kernels.compilation import by_types, inlined
from dpfast.kernels.noise.joining import add_noise, joined_on_grid, joined_on_ones

__all__ = ["release_block_on_ones", "release_row_on_grid", "release_row_on_ones"]


@inlined
def _copy(noise, released):
    for i in range(released.size):
        released[i] = noise[i]


@by_types(inline=True)
def release_block_on_ones(values, noise, smallest, largest, released):
    """Release integers of a block; without values, its noise."""
    if isinstance(values, types.NoneType):
        return lambda values, noise, smallest, largest, released: _copy(noise, released)
    return lambda values, noise, smallest, largest, released: add_noise(values, noise, smallest, largest, released)


@by_types(inline=True)
def release_row_on_ones(values, row, n, smallest, largest, released):
    """Release a row's integer; without values, its noise."""
    if isinstance(values, types.NoneType):

        def alone(values, row, n, smallest, largest, released):
            released[row] = n

        return alone

    def joined(values, row, n, smallest, largest, released):
        released[row] = joined_on_ones(values[row], n, smallest, largest)

    return joined


@by_types(inline=True)
def release_row_on_grid(grids, values, row, inverse, grid, n, largest, released):
    """Release a row's float on its own grid; where ``grids`` is None, its noise."""
    if isinstance(grids, types.NoneType):

        def alone(grids, values, row, inverse, grid, n, largest, released):
            released[row] = n

        return alone

    def joined(grids, values, row, inverse, grid, n, largest, released):
        total = joined_on_grid(values[row], inverse, grid, n, largest)
        released[row] = released.dtype.type(total) + released.dtype.type(0.0)

    return joined


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
