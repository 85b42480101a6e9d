"""How stable a column is: exact figures, as private as the column, to be explored on data of one's own."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Annotated, Literal, TypeAlias

from dpfast.accounting.privacy_unit import Neighbors, read_neighbors
from dpfast.arguments import Choice, Number, Real, Special
from dpfast.columns.grid import Bounds
from dpfast.columns.private import borrow_numbers
from dpfast.errors import ParameterError
from dpfast.stability.instability import (
    LARGEST,
    count_labels,
    edges,
    interquartile_scale_of,
    median_instability_of,
    mode_of,
    rows_until_wide,
)
from dpfast.stability.interquartile_scale import BASE, Values
from dpfast.stability.named import Bounded, OptionalGrid, floats_of, points_of, read_grid_of
from dpfast.stability.release_if_stable import column_of
from dpfast.stability.rows import Data, read_rows
from dpfast.stability.smooth import gaps_around, smooth_sensitivity_of

__all__ = [
    "distance_to_instability",
    "distance_to_wide_median",
    "local_sensitivity_of_median",
    "scale_distances",
    "smooth_sensitivity_of_median",
]


def _no_bounds() -> tuple[object, ...]:
    return (5, "01", (), (1,), (0, 1, 2), (5, 5), (9, 0), (0, float("nan")), (0, 1e301), object())


_GivenBounds: TypeAlias = Annotated[Bounds, Special(_no_bounds)]
_FUNCTION = Choice(("mode", "median"))
_BETA = Number(2.0**-30, 1e6)
_BOUND = Number(0, 1e300)


def distance_to_instability(
    data: Data,
    function: Annotated[Literal["mode", "median"], _FUNCTION],
    *,
    bounds: Bounded = None,
    grid: OptionalGrid = None,
    neighbors: Neighbors = "add_remove",
) -> int:
    """Return how many rows can change while the mode, or the median, stays the same for all neighbours too.

    Guarantee
        None: it is as private as the data. It is 0 where a neighbour of the data has another value, and differs by 1 at
        most between neighbours. For the mode it may be too low by 1, as ties are taken to be lost.

    Parameters
    ----------
    data
        A column, as for `dpfast.release_if_stable`.
    function
        ``"mode"`` or ``"median"``.
    bounds, grid
        For the median, as for `dpfast.propose_test_release`.
    neighbors
        What a step is: ``"add_remove"`` a row more or fewer, ``"replace"`` one exchanged.

    Returns
    -------
    int
        Rows.

    Raises
    ------
    ParameterError, ColumnError
        An argument is not as above.

    References
    ----------
    Dwork, Roth (2014), definitions 7.2 and 7.3.

    Examples
    --------
    >>> distance_to_instability(["a"] * 9 + ["b"] * 3, "mode")
    5
    >>> distance_to_instability([1, 2, 2, 2, 2, 3, 9], "median", bounds=(0, 9), neighbors="replace")
    1

    """
    relation, rows = read_neighbors(neighbors), read_rows(data)
    if _FUNCTION.read("function", function) == "median":
        points = read_grid_of(bounds, grid)
        return median_instability_of(points_of(borrow_numbers(data, "data"), points, relation), relation)
    for name, given in (("bounds", bounds), ("grid", grid)):
        if given is not None:
            raise ParameterError(name, given, "left out for the mode")
    return mode_of(count_labels(column_of(rows)()), relation)[1]


def distance_to_wide_median(
    values: Values,
    bound: Annotated[Real, _BOUND],
    *,
    bounds: _GivenBounds,
    grid: OptionalGrid = None,
    neighbors: Neighbors = "add_remove",
) -> int | None:
    """Return how many rows must change before the median's local sensitivity exceeds a bound.

    Guarantee
        None: it is as private as the values.

    Parameters
    ----------
    values, bounds, grid, neighbors
        As for `dpfast.propose_test_release`.
    bound
        From 0.

    Returns
    -------
    int or None
        Rows; None if the bounds are no farther apart than the bound.

    Raises
    ------
    ParameterError, ColumnError
        An argument is not as above.

    References
    ----------
    Dwork, Roth (2014), section 7.2.

    Examples
    --------
    >>> distance_to_wide_median([10, 11, 12, 13, 14], 3, bounds=(0, 100), grid=1)
    3

    """
    relation, points = read_neighbors(neighbors), read_grid_of(bounds, grid)
    limit = math.floor(_BOUND.read_exactly("bound", bound) / Fraction(points.step))
    own = points_of(borrow_numbers(values, "values"), points, relation)
    return rows_until_wide(own, points.lower, points.upper, limit, relation)


def local_sensitivity_of_median(
    values: Values, *, bounds: _GivenBounds, grid: OptionalGrid = None, neighbors: Neighbors = "add_remove"
) -> float:
    """Return how far the lower median is from that of the neighbour where it is farthest.

    Guarantee
        None: it is as private as the values. Noise in proportion to it is not private: with half of n values at 0 and
        half at 10**6 it may be 0 for n values and 10**6 for n + 1.

    Parameters
    ----------
    values, bounds, grid, neighbors
        As for `smooth_sensitivity_of_median`.

    Returns
    -------
    float
        The local sensitivity.

    Raises
    ------
    ParameterError, ColumnError
        An argument is not as above.

    References
    ----------
    Dwork, Roth (2014), definition 7.1.

    Examples
    --------
    >>> ages = [20, 31, 35, 36, 70]
    >>> [local_sensitivity_of_median(ages, bounds=(0, 120), grid=1, neighbors=by) for by in ("replace", "add_remove")]
    [4.0, 4.0]

    """
    relation, points = read_neighbors(neighbors), read_grid_of(bounds, grid)
    own = points_of(borrow_numbers(values, "values"), points, relation)
    return gaps_around(own, points.lower, points.upper, relation) * points.step


def smooth_sensitivity_of_median(
    values: Values,
    beta: Annotated[Real, _BETA],
    *,
    bounds: _GivenBounds,
    grid: OptionalGrid = None,
    neighbors: Neighbors = "add_remove",
) -> float:
    """Return the largest local sensitivity of the median of any data, less by exp(-beta) for each row of difference.

    Guarantee
        None: it is as private as the values. It falls by exp(-beta) at most between neighbours, and is not below the
        local sensitivity.

    Parameters
    ----------
    values
        A column of numbers, as for `dpfast.smooth_median`.
    beta
        From 2**-30.
    bounds, grid, neighbors
        As for `dpfast.smooth_median`.

    Returns
    -------
    float
        The sensitivity, or up to a relative 1e-7 / beta more: mostly far less.

    Raises
    ------
    ParameterError, ColumnError
        An argument is not as above.

    References
    ----------
    Nissim, Raskhodnikova, Smith (2007), definition 2.1 and proposition 3.4.

    Examples
    --------
    >>> round(smooth_sensitivity_of_median([20, 31, 35, 36, 70], 0.5, bounds=(0, 120), grid=1, neighbors="replace"), 6)
    31.269753

    """
    relation, points = read_neighbors(neighbors), read_grid_of(bounds, grid)
    slope = _BETA.read("beta", beta)
    own = points_of(borrow_numbers(values, "values"), points, relation)
    return smooth_sensitivity_of(own, points.lower, points.upper, slope, relation) * points.step


def scale_distances(
    values: Values, *, base: Annotated[Real, BASE] = 2.0, neighbors: Neighbors = "replace"
) -> tuple[int, int]:
    """Return how many rows must change before the interquartile range is in another bin, of either partition.

    Guarantee
        None: it is as private as the values.

    Parameters
    ----------
    values, base, neighbors
        As for `dpfast.interquartile_scale`.

    Returns
    -------
    tuple of int
        For bins [base**k, base**(k + 1)) and for those shifted by half a bin; 1 or more.

    Raises
    ------
    ParameterError, ColumnError
        An argument is not as above.

    Notes
    -----
    After sorting, a window slides over the values once for the lower and once for the upper edge: O(n).

    References
    ----------
    Dwork, Roth (2014), section 7.2.1.

    Examples
    --------
    >>> scale_distances([1_000 + 7 * k for k in range(2_000)])
    (171, 173)

    """
    relation, width = read_neighbors(neighbors), BASE.read("base", base)
    x = floats_of(borrow_numbers(values, "values"), LARGEST, relation)
    first, second = (interquartile_scale_of(x, way, relation)[1] + 1 for way in edges(width))
    return first, second
