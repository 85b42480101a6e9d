"""A public grid between two bounds: the points that values are rounded to, and chosen from.

The default for floats. Its points are evenly spaced, 2**59 of them or up to twice as many: data that fill a millionth
of the bounds keep 2**39 points, and rounding to them costs nothing that shows beside the noise. Near zero points are
spaced by size: below 2**17 steps each further halving of the magnitude halves the step too, down to 2**-64 times that
magnitude, and to 2**-64 whatever the bounds are. So bounds may be too wide by any factor, and values still keep 16 bits
or more. These points are few, 2**24 or 2**-35 of all with usual bounds: they must not draw quantiles towards zero. By
their number, points are nearly uniform between the bounds, as Smith (2011) draws.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Numeric, Special, is_numeric, no_numbers
from dpfast.errors import ParameterError

__all__ = [
    "LARGEST_BOUND",
    "MANTISSA",
    "Bounds",
    "Grid",
    "PublicGrid",
    "check_bounds",
    "no_bounds",
    "public_grid",
    "read_grid",
]

LARGEST_BOUND = 1e300
#: Their numbers, and differences of these, fit into int64.
MOST_POINTS = 2**61
#: By default, floats have 2**59 evenly spaced points or up to twice as many.
_FINENESS = 59
MANTISSA = 16
"""Points near zero: 2**16 for each doubling of the magnitude."""
_LEAST_DOUBLINGS = 64
_FINEST_EXPONENT = -960
#: Of a grid that is given, so that floats hold every point.
_LARGEST_STEPS = 2**53


@dataclass(frozen=True)
class PublicGrid:
    """Points between two bounds, evenly spaced, or more closely near zero.

    Attributes
    ----------
    exponent
        Of the widest step, a power of two.
    lower, upper
        The first and the last point's number; zero has the number 0, and numbers rise with points.
    doublings
        How many times the step doubles from zero on; 0 where it never does, and the points are
        ``k * 2**exponent`` for ``lower <= k <= upper``. Otherwise, with e = exponent - doublings, the points below
        2**(MANTISSA + 1 + e) are multiples of 2**e, and those from there on up to twice as much multiples of
        2**(e + 1), and so on.

    """

    exponent: int
    lower: int
    upper: int
    doublings: int = 0

    @property
    def step(self) -> float:
        """The widest distance between points, exactly."""
        return 2.0**self.exponent

    @property
    def finest(self) -> int:
        """The exponent of the distance between points next to zero."""
        return self.exponent - self.doublings

    @property
    def points(self) -> int:
        """How many there are."""
        return self.upper - self.lower + 1

    def values(self, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the points of these numbers, each exactly or, beyond 53 bits, rounded.

        Examples
        --------
        >>> PublicGrid(0, 0, 2**25, doublings=1).values(np.array([3, 2**17 + 1])).tolist()
        [1.5, 65537.0]

        """
        if not self.doublings:
            return numbers.astype(np.float64) * self.step
        sizes = np.abs(numbers)
        doubled = np.clip((sizes >> MANTISSA) - 1, 0, self.doublings)
        steps = np.where(numbers < 0, -1.0, 1.0) * (sizes - (doubled << MANTISSA))
        points: NDArray[np.float64] = np.ldexp(steps, (self.finest + doubled).astype(np.int32)) + 0.0
        return points

    def describe(self, worth: float = 1.0) -> str:
        """Return what the points are, in words; ``worth`` is that of a distance of 1."""
        apart = f"{self.points} points, {self.step * worth:g} apart"
        if not self.doublings:
            return apart
        return f"{apart}, near 0 closer: 2**{MANTISSA} for each doubling from {2.0 ** (self.finest + MANTISSA):g} on"


def number_of(value: Fraction, finest: int, doublings: int) -> int:
    """Return the number of the point nearest to a value."""
    if not value:
        return 0
    size = abs(value)
    # Off by one at most: numerator and denominator have this many bits more or one fewer.
    doubled = size.numerator.bit_length() - size.denominator.bit_length() - (MANTISSA + finest)
    doubled -= size < Fraction(2) ** (MANTISSA + finest + doubled)
    doubled = min(max(doubled, 0), doublings)
    steps = round(size / Fraction(2) ** (finest + doubled)) + (doubled << MANTISSA)
    return -steps if value < 0 else steps


def no_bounds() -> Iterator[object]:
    """Yield what is no pair of bounds."""
    yield from (5, "01", b"01", (), (1,), (0, 1, 2), {0: 1}, {0, 1}, object(), np.zeros(2), (5, 5), (9, 0))
    yield from ((0, other) for other in (*no_numbers(), None, 1e301))


def _no_grids() -> Iterator[object]:
    yield from (*no_numbers(), 0, -1, 0.3, 3, [1], np.ones(2), 2.0**-961)


Bounds: TypeAlias = Annotated[tuple[Numeric, Numeric], Special(no_bounds)]
#: A power of two, or None for one that suits the bounds.
Grid: TypeAlias = Annotated[Numeric | None, Special(_no_grids, optional=True)]


def check_bounds(bounds: object, argument: str = "bounds") -> tuple[float, float]:
    """Return two bounds as floats.

    Raises
    ------
    ParameterError
        They are not two finite numbers, the lower one first.

    """
    allowed = "two finite numbers, the lower one first"
    mend = f"write for example {argument}=(0, 600)"
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2 or not all(map(is_numeric, bounds)):
        raise ParameterError(argument, bounds, allowed, mend)
    try:
        lower, upper = map(float, bounds)
    except OverflowError:
        raise ParameterError(argument, bounds, allowed, mend) from None
    if not (lower < upper and abs(lower) <= LARGEST_BOUND and abs(upper) <= LARGEST_BOUND):
        raise ParameterError(argument, bounds, allowed + ", of magnitude up to 1e300", mend)
    return lower, upper


def read_grid(grid: Grid) -> float:
    """Return the distance between points as a float.

    Raises
    ------
    ParameterError
        It is no power of two that floats hold.

    """
    mantissa, above = math.nan, 0
    if grid is not None and is_numeric(grid):
        with suppress(OverflowError):
            mantissa, above = math.frexp(grid)
    if not (mantissa == 0.5 and above > _FINEST_EXPONENT):
        raise ParameterError("grid", grid, "a power of two from 2**-960, such as 1, 0.5 or 0.25")
    return math.ldexp(mantissa, above)


def public_grid(
    bounds: tuple[float, float] | tuple[Fraction, Fraction], grid: Grid, *, whole: bool, wide: bool = False
) -> PublicGrid:
    """Return the grid between two bounds, each rounded to the nearest point.

    Parameters
    ----------
    bounds
        As `check_bounds` returns them, or as fractions.
    grid
        The step, a power of two; None for 2**59 to 2**60 evenly spaced points and closer ones near zero, but none
        closer than floats where zero is far; or, if ``whole``, for all whole numbers as long as there are no more than
        2**60, else every second, fourth, ... one.
    whole
        Whether values are integers.
    wide
        Whether these may lie beyond int64.

    Raises
    ------
    ParameterError
        The step is no power of two, or leaves points of more than 53 bits or a single one; or points do not fit into an
        int64 where ``whole``.

    Examples
    --------
    >>> public_grid((-60.0, 600.0), None, whole=True)
    PublicGrid(exponent=0, lower=-60, upper=600, doublings=0)
    >>> public_grid((0.0, 1e9), None, whole=False).describe()
    '1073741824004194305 points, 9.31323e-10 apart, near 0 closer: 2**16 for each doubling from 3.30872e-24 on'
    >>> public_grid((1.0, 2.0), None, whole=False).points - 1 == 2**52
    True

    """
    lower, upper = (Fraction(bound) for bound in bounds)
    if grid is None:
        spread = math.frexp(float(upper / 2 - lower / 2))
        # Floats of one sign are no closer than those next to the bound nearer to zero.
        nearest = math.frexp(min(map(abs, bounds)))[1] - 53 if lower * upper > 0 else _FINEST_EXPONENT
        exponent = max(spread[1] - _FINENESS, nearest, _FINEST_EXPONENT)
        if whole:
            exponent = max(0, exponent)
    else:
        exponent = math.frexp(read_grid(grid))[1] - 1
    while True:
        step = Fraction(2) ** exponent
        low, high = round(lower / step), round(upper / step)
        if max(abs(low), abs(high)) <= (MOST_POINTS if grid is None else _LARGEST_STEPS):
            break
        if grid is not None:
            raise ParameterError("grid", grid, "coarser: multiples of it up to the bounds have at most 53 bits")
        exponent += 1
    if whole and not wide and exponent >= 0 and not (low * 2**exponent >= -(2**63) and high * 2**exponent < 2**63):
        # Points of a column of integers are released as int64.
        allowed = "such that all points are at least -2**63 and below 2**63 for a column of integers"
        raise ParameterError("bounds", bounds, allowed)
    if low == high:
        argument, given = ("bounds", bounds) if grid is None else ("grid", grid)
        raise ParameterError(argument, given, "such that the grid has more than one point between the bounds")
    if grid is not None or whole:
        return PublicGrid(exponent, low, high)
    doublings = _doublings(exponent, low, high)
    if doublings:
        low, high = (number_of(bound, exponent - doublings, doublings) for bound in (lower, upper))
    return PublicGrid(exponent, low, high, doublings)


def _doublings(exponent: int, low: int, high: int) -> int:
    """Return how many times the step doubles from zero on: not at all where no point is small."""
    if low >= 2 ** (MANTISSA + 1) or high <= -(2 ** (MANTISSA + 1)):
        return 0
    # Down to 2**-64 of what is closely spaced, and to 2**-64 itself.
    wanted = max(_LEAST_DOUBLINGS, exponent + MANTISSA + 64)
    return max(min(wanted, exponent - _FINEST_EXPONENT), 0)
