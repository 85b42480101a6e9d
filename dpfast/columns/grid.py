"""A public grid between two bounds: the multiples of a power of two that values are rounded to, and chosen from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpfast.errors import ParameterError

__all__ = ["PublicGrid", "check_bounds", "public_grid"]

LARGEST_BOUND = 1e300
#: So many points, times the cells that a point is divided into, stay below 2**53.
MOST_POINTS = 2**36
#: By default, floats have 2**20 points or up to twice as many.
_FINENESS = 20
_FINEST_EXPONENT = -960
_LARGEST_STEPS = 2**53


@dataclass(frozen=True)
class PublicGrid:
    """The points ``k * 2**exponent`` for ``lower <= k <= upper``.

    Attributes
    ----------
    exponent
        Of the step, a power of two.
    lower, upper
        The first and the last point, in steps.

    """

    exponent: int
    lower: int
    upper: int

    @property
    def step(self) -> float:
        """The distance between points, exactly."""
        return 2.0**self.exponent

    @property
    def points(self) -> int:
        """How many there are."""
        return self.upper - self.lower + 1


def check_bounds(bounds: object) -> tuple[float, float]:
    """Return two bounds as floats.

    Raises
    ------
    ParameterError
        They are not two finite numbers, the lower one first.

    """
    allowed = "two finite numbers, the lower one first"
    mend = "write for example bounds=(0, 600)"
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
        raise ParameterError("bounds", bounds, allowed, mend)
    numbers = []
    for bound in bounds:
        kind = type(bound)
        if kind is bool or not issubclass(kind, (int, float, np.integer, np.floating)):
            raise ParameterError("bounds", bounds, allowed, mend)
        try:
            numbers.append(float(bound))
        except OverflowError:
            raise ParameterError("bounds", bounds, allowed, mend) from None
    lower, upper = numbers
    if not (lower < upper and abs(lower) <= LARGEST_BOUND and abs(upper) <= LARGEST_BOUND):
        raise ParameterError("bounds", bounds, allowed + ", of magnitude up to 1e300", mend)
    return lower, upper


def public_grid(bounds: tuple[float, float], grid: Any, *, whole: bool) -> PublicGrid:
    """Return the grid between two bounds, each rounded to the nearest point.

    Parameters
    ----------
    bounds
        As `check_bounds` returns them.
    grid
        The step, a power of two; None for 2**20 to 2**21 points, and for a step of at least 1 if ``whole``: all whole
        numbers, as long as there are no more than 2**36.
    whole
        Whether values are integers.

    Raises
    ------
    ParameterError
        The step is no power of two, or leaves more than 2**36 points or a single one; or ``whole`` points do not fit
        into an int64.

    Examples
    --------
    >>> public_grid((-60.0, 600.0), None, whole=True)
    PublicGrid(exponent=0, lower=-60, upper=600)
    >>> public_grid((0.0, 1.0), None, whole=False).points - 1 == 2**20
    True

    """
    lower, upper = (Fraction(bound) for bound in bounds)
    if grid is None:
        spread, widest = math.frexp(float(upper / 2 - lower / 2)), math.frexp(max(map(abs, bounds)))
        exponent = max(spread[1] - _FINENESS, widest[1] - 53, _FINEST_EXPONENT)
        if whole:
            exponent = max(0, spread[1] + 1 - 36)
    else:
        allowed = "a power of two from 2**-960, such as 1, 0.5 or 0.25"
        kind = type(grid)
        if kind is bool or not issubclass(kind, (int, float, np.integer, np.floating)):
            raise ParameterError("grid", grid, allowed)
        try:
            mantissa, above = math.frexp(grid)
        except OverflowError:
            mantissa, above = math.nan, 0
        exponent = above - 1
        if not (mantissa == 0.5 and exponent >= _FINEST_EXPONENT):
            raise ParameterError("grid", grid, allowed)
    while True:
        step = Fraction(2) ** exponent
        low, high = round(lower / step), round(upper / step)
        if high - low < MOST_POINTS and max(abs(low), abs(high)) <= _LARGEST_STEPS:
            break
        if grid is not None:
            raise ParameterError("grid", grid, "coarser: at most 2**36 points between the bounds, of 53 bits each")
        exponent += 1
    if whole and exponent >= 0 and not (low * 2**exponent >= -(2**63) and high * 2**exponent < 2**63):
        # Points of a column of integers are released as int64.
        allowed = "such that all points are at least -2**63 and below 2**63 for a column of integers"
        raise ParameterError("bounds", bounds, allowed)
    if low == high:
        argument, given = ("bounds", bounds) if grid is None else ("grid", grid)
        raise ParameterError(argument, given, "such that the grid has more than one point between the bounds")
    return PublicGrid(exponent, low, high)
