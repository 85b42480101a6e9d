"""Parameters that are one number for a whole column, one number a row, or absent."""

from __future__ import annotations

from numba import types
from numba.extending import overload

__all__ = ["at", "largest_of_rows", "part"]


def at(parameter, row):
    """Return the parameter of a row: itself if it is a number, its entry if an array, None if it is None."""
    raise NotImplementedError("compiled code only")


@overload(at, inline="always")
def _at(parameter, row):
    if isinstance(parameter, types.Array):
        return lambda parameter, row: parameter[row]
    if isinstance(parameter, types.NoneType):
        return lambda parameter, row: None
    return lambda parameter, row: parameter


def part(parameter, start, stop):
    """Return the parameter of some rows: itself if it is a number or None, a view if an array."""
    raise NotImplementedError("compiled code only")


@overload(part, inline="always")
def _part(parameter, start, stop):
    if isinstance(parameter, types.Array):
        return lambda parameter, start, stop: parameter[start:stop]
    return lambda parameter, start, stop: parameter


def largest_of_rows(parameter, offsets, row, stop):
    """Return the largest parameter of the rows from ``row`` on that begin before ``stop``: itself if it is a number."""
    raise NotImplementedError("compiled code only")


@overload(largest_of_rows, inline="always")
def _largest_of_rows(parameter, offsets, row, stop):
    if not isinstance(parameter, types.Array):
        return lambda parameter, offsets, row, stop: parameter

    def of_array(parameter, offsets, row, stop):
        largest, one = parameter[row], row
        while one < parameter.size and offsets[one] < stop:
            largest = max(largest, parameter[one])
            one += 1
        return largest

    return of_array


# Stamp of all kernel sources (scripts/stamp_kernels.py): 07ff452c6ba15edf
