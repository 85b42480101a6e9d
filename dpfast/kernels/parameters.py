"""Parameters that are one number for a whole column, one number a row, or absent."""

from __future__ import annotations

from numba import types
from numba.extending import overload

__all__ = ["at", "part"]


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


# Stamp of all kernel sources (scripts/stamp_kernels.py): b3aad8710f731143
