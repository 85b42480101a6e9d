"""Columns of numbers as points of a public grid, for the functions that have names here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.accounting.privacy_unit import Neighbors
from dpfast.arguments import Special
from dpfast.columns import BLOCK_ROWS, Column
from dpfast.columns.elements import as_floats
from dpfast.columns.grid import Bounds, Grid, PublicGrid, check_bounds, public_grid
from dpfast.columns.private import borrow_numbers
from dpfast.errors import ParameterError
from dpfast.mechanisms.quantiles.quantiles import place_points
from dpfast.stability.rows import Rows

__all__ = ["Bounded", "OptionalGrid", "floats_of", "load_points", "points_of", "read_grid_of"]

_FINENESS = 40


def _no_bounds() -> tuple[object, ...]:
    return (5, "01", (), (1,), (0, 1, 2), (5, 5), (9, 0), (0, float("nan")), (0, 1e301), object())


#: The lowest and the highest value, public; None where there are none.
Bounded: TypeAlias = Annotated[Bounds | None, Special(_no_bounds, optional=True)]

#: The step of a public grid, or None.
OptionalGrid: TypeAlias = Annotated[Grid, Special(lambda: (0, -1, 0.3, 3, "1", [1]), optional=True)]


def read_grid_of(bounds: Any, grid: Any) -> PublicGrid:
    """Return evenly spaced points between bounds that must be given: 2**39 to 2**40 steps, or those asked for."""
    if bounds is None:
        raise ParameterError("bounds", None, "given for numbers", "write for example bounds=(0, 600)")
    lower, upper = check_bounds(bounds)
    if grid is None:
        least = int(np.frexp(upper / 2.0 - lower / 2.0)[1]) + 1 - _FINENESS
        grid = float(np.ldexp(1.0, max(least, int(np.frexp(max(abs(lower), abs(upper)))[1]) - 53, -959)))
    return public_grid((lower, upper), grid, whole=False)


def load_points(rows: Rows, grid: PublicGrid, neighbors: Neighbors) -> Callable[[], NDArray[np.int64]]:
    """Return what gives the points of a column, sorted, once it may be looked at."""
    column = borrow_numbers(rows.data, "data")
    return lambda: points_of(column, grid, neighbors)


def points_of(column: Column, grid: PublicGrid, neighbors: Neighbors) -> NDArray[np.int64]:
    """Return a column's points, sorted.

    Nulls and NaN are left out under add/remove. Under replace the number of rows is public, and they count as the
    lower bound.
    """
    points = np.empty(column.length, np.int64)
    for start in range(0, column.length, BLOCK_ROWS):
        stop = min(start + BLOCK_ROWS, column.length)
        place_points(column.block(start, stop), column.missing(start, stop), grid, points[start:stop])
    if neighbors == "add_remove":
        points = points[points > 0]
    else:
        np.maximum(points, 1, out=points)
    points += grid.lower - 1
    points.sort()
    return points


def floats_of(column: Column, largest: float, neighbors: Neighbors) -> NDArray[np.float64]:
    """Return a column's values as floats within a magnitude, sorted; nulls and NaN as in `points_of`, 0 for them."""
    values, kept = np.empty(column.length), 0
    for start in range(0, column.length, BLOCK_ROWS):
        stop = min(start + BLOCK_ROWS, column.length)
        block = as_floats(column.block(start, stop))
        missing = column.missing(start, stop)
        absent = np.isnan(block) if missing is None else np.isnan(block) | missing
        if neighbors != "add_remove":
            block[absent] = 0.0
        elif absent.any():
            block = block[~absent]
        np.clip(block, -largest, largest, out=values[kept : kept + block.size])
        kept += block.size
    values = values[:kept]
    values.sort()
    return values
