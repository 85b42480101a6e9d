"""Parameters that are one number for a whole column, one number a row, or absent."""

from __future__ import annotations

from numba import types

from dpfast.kernels.compilation import by_types

__all__ = ["at", "is_marked", "largest_of_rows", "part"]


@by_types(inline=True)
def at(parameter, row):
    """Return the parameter of a row: itself if it is a number, its entry if an array, None if it is None."""
    if isinstance(parameter, types.Array):
        return lambda parameter, row: parameter[row]
    if isinstance(parameter, types.NoneType):
        return lambda parameter, row: None
    return lambda parameter, row: parameter


@by_types(inline=True)
def part(parameter, start, stop):
    """Return the parameter of some rows: itself if it is a number or None, a view if an array."""
    if isinstance(parameter, types.Array):
        return lambda parameter, start, stop: parameter[start:stop]
    return lambda parameter, start, stop: parameter


@by_types(inline=True)
def is_marked(marks, row):
    """Return whether the mark (uint8) of a row is not 0; all rows are marked where ``marks`` is None."""
    if isinstance(marks, types.NoneType):
        return lambda marks, row: True
    return lambda marks, row: marks[row] != 0


@by_types(inline=True)
def largest_of_rows(parameter, offsets, row, stop):
    """Return the largest parameter of the rows from ``row`` on that begin before ``stop``: itself if it is a number."""
    if not isinstance(parameter, types.Array):
        return lambda parameter, offsets, row, stop: parameter

    def of_array(parameter, offsets, row, stop):
        largest, one = parameter[row], row
        while one < parameter.size and offsets[one] < stop:
            largest = max(largest, parameter[one])
            one += 1
        return largest

    return of_array


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
