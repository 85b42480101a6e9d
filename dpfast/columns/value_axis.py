"""The public axis on which a column's values are looked for, and bounds of its own type from places on it.

Places are numbers of ticks (`dpfast.columns.values`). Values beyond the axis count as its ends. Of floats, the axis
has 2**16 points for each doubling of the magnitude; of all others each tick is a point.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.columns.bounds import ReadBounds
from dpfast.columns.grid import MANTISSA, PublicGrid, number_of, public_grid
from dpfast.columns.values import Decimals, Moments, ValueKind, ticks_of

__all__ = ["ValueAxis", "axis_of"]

#: Differences of places on an axis of whole numbers fit into int64.
_MOST_WHOLE = 2**62 - 2
#: Squares of floats on the axis are floats.
_MOST_FLOAT = Fraction(2) ** 400
#: Bounds of whole numbers lie at least so many times their size apart: sums are counted in steps of 2**53 a bound.
_LEAST_APART = Fraction(1, 2**40)
_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)
#: Where nothing tells where values lie: days, moments and times of day of this range, else numbers next to 0.
_DAYS = datetime.date(1970, 1, 1), datetime.date(2070, 1, 1)


@dataclass(frozen=True)
class ValueAxis:
    """Where values may be.

    Attributes
    ----------
    values
        How the column's values are measured.
    grid
        The axis's points, in ticks.
    unit
        How many ticks make what bounds are told in: of nanoseconds 1,000, as datetimes hold microseconds.
    least, most
        What bounds may be, in ticks.

    """

    values: ValueKind
    grid: PublicGrid
    unit: int
    least: int | Fraction
    most: int | Fraction

    @property
    def whole(self) -> bool:
        """Whether places are whole numbers."""
        return self.values.whole

    def finest(self, place: Fraction) -> Fraction:
        """Return how far bounds around a place must lie apart at least."""
        least, relative = Fraction(self.unit), _LEAST_APART
        if not self.whole:
            least, relative = Fraction(1, 2**-self.grid.finest), Fraction(1, 2 ** (MANTISSA - 2))
        own = abs(place) * relative
        return own if own > least else least

    def numbers(self, edges: Sequence[Fraction]) -> NDArray[np.int64]:
        """Return the numbers of the first points from each edge on, increasing with the edges.

        Points are numbered from 1, as `dpfast.aggregation.grouped_points` does.
        """
        grid = self.grid
        found = []
        for edge in edges:
            if grid.doublings:
                number = number_of(edge, grid.finest, grid.doublings)
            else:
                number = -(-edge.numerator // edge.denominator)
            found.append(min(max(number, grid.lower), grid.upper + 1) - grid.lower + 1)
        return np.array(found, np.int64)

    def first_floats(self, edges: Sequence[Fraction]) -> NDArray[np.float64]:
        """Return the first float from each edge on, as float64."""
        found = []
        for edge in edges:
            numerator, denominator = edge.numerator, edge.denominator
            near = numerator / denominator
            over, under = near.as_integer_ratio()
            # As fractions they would be reduced first, which takes far longer.
            is_below = over * denominator < numerator * under
            found.append(math.nextafter(near, math.inf) if is_below else near)
        return np.array(found, np.float64)

    def first_wholes(self, edges: Sequence[Fraction]) -> NDArray[np.int64]:
        """Return the first whole number from each edge on, of those on the axis and the next one."""
        least, most = self.grid.lower, self.grid.upper + 1
        return np.array([min(max(math.ceil(edge), least), most) for edge in edges], np.int64)

    def bounds(self, low: Fraction, high: Fraction) -> ReadBounds:
        """Return two places as bounds of the column's own type, the lower one first and apart.

        Places beyond what the type holds are moved to its ends, and those too close to each other apart.
        """
        least, most = Fraction(self.least), Fraction(self.most)
        low, high = min(max(low, least), most), min(max(high, least), most)
        apart = self.finest(max(abs(low), abs(high)))
        if high - low < apart:
            low = min(max((low + high - apart) / 2, least), most - apart)
            high = low + apart
        if not self.whole:
            return float(low), float(high)
        unit = self.unit
        lower = math.floor(max(low, least) / unit) * unit
        upper = math.ceil(min(high, most) / unit) * unit
        if isinstance(self.values, Decimals):
            places = self.values.scale
            return Decimal(lower).scaleb(-places), Decimal(upper).scaleb(-places)
        if isinstance(self.values, Moments):
            return _moment(lower, self.values.dtype), _moment(upper, self.values.dtype)
        return float(lower), float(upper)

    def unknown(self) -> tuple[Fraction, Fraction]:
        """Return where values are taken to be where nothing is known of them."""
        if not isinstance(self.values, Moments):
            return Fraction(-1) / self.values.tick, Fraction(1) / self.values.tick
        dtype = self.values.dtype
        if isinstance(dtype, pl.Time):
            return Fraction(self.least), Fraction(self.most)
        if isinstance(dtype, pl.Duration):
            day = Fraction(86_400) / self.values.tick
            return -day, day
        days = [Fraction((day - _EPOCH.date()).days) for day in _DAYS]
        in_a_day = Fraction(86_400) / self.values.tick
        return days[0] * in_a_day, days[1] * in_a_day


def _moment(ticks: int, dtype: pl.DataType) -> Any:
    """Return the date, datetime, timedelta or time of so many ticks, of which microseconds are left."""
    if isinstance(dtype, pl.Date):
        return _EPOCH.date() + datetime.timedelta(days=ticks)
    unit = "ns" if isinstance(dtype, pl.Time) else dtype.time_unit  # type: ignore[attr-defined]
    since = {"ms": 1000, "us": 1}[unit] * ticks * _MICROSECOND if unit != "ns" else ticks // 1000 * _MICROSECOND
    if isinstance(dtype, pl.Duration):
        return since
    if isinstance(dtype, pl.Time):
        return (_EPOCH + since).time()
    moment = _EPOCH + since
    return moment.replace(tzinfo=datetime.UTC) if dtype.time_zone is not None else moment  # type: ignore[attr-defined]


@cache
def axis_of(values: ValueKind) -> ValueAxis:
    """Return the axis of a column.

    Examples
    --------
    >>> from dpfast.columns.values import values_of
    >>> str(axis_of(values_of(pl.Date())).bounds(Fraction(19_000), Fraction(19_001, 1))[0])
    '2022-01-08'
    >>> axis = axis_of(values_of(pl.Float64()))
    >>> (axis.numbers([Fraction(3), Fraction(6)]) - axis.numbers([Fraction(3, 2), Fraction(3)])).tolist()
    [65536, 65536]

    """
    if not values.whole:
        grid = public_grid((-_MOST_FLOAT, _MOST_FLOAT), None, whole=False)
        return ValueAxis(values, grid, 1, -_MOST_FLOAT, _MOST_FLOAT)
    grid = PublicGrid(0, -_MOST_WHOLE, _MOST_WHOLE)
    least, most, unit = -_MOST_WHOLE, _MOST_WHOLE, 1
    if isinstance(values, Moments):
        dtype = values.dtype
        in_nanoseconds = isinstance(dtype, pl.Time) or getattr(dtype, "time_unit", "us") == "ns"
        unit = 1000 if in_nanoseconds else 1
        first, last = _held_by(dtype)
        least, most = max(least, first), min(most, last) // unit * unit
        least = -(-least // unit) * unit
    return ValueAxis(values, grid, unit, least, most)


def _held_by(dtype: pl.DataType) -> tuple[int, int]:
    """Return the first and the last value of a dtype that Python's holds as well, in ticks."""
    ends: tuple[Any, Any]
    if isinstance(dtype, pl.Date):
        ends = datetime.date.min, datetime.date.max
    elif isinstance(dtype, pl.Time):
        ends = datetime.time.min, datetime.time.max
    elif isinstance(dtype, pl.Duration):
        ends = datetime.timedelta.min, datetime.timedelta.max
    else:
        ends = datetime.datetime.min, datetime.datetime.max
        if dtype.time_zone is not None:  # type: ignore[attr-defined]
            # A day within, so that every zone can show them.
            day = datetime.timedelta(days=2)
            ends = (ends[0] + day).replace(tzinfo=datetime.UTC), (ends[1] - day).replace(tzinfo=datetime.UTC)
    found = [ticks_of(end, dtype) for end in ends]
    assert found[0] is not None
    assert found[1] is not None
    return -int(-found[0] // 1), int(found[1] // 1)
