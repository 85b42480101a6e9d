"""Values that can be measured: how a column's are whole numbers, and how figures made of these are shown.

Decimals are their number of last places: 1.25 of two places is 125. Dates, moments, durations and times of day are the
numbers of days, milli-, micro- or nanoseconds that Polars holds them as. Bounds are read as such numbers, rounded to
the nearest; everything up to the noise is computed of them, exactly, as of integers, and so sensitivities are those of
integers. Answers come back in the column's own type.
"""

from __future__ import annotations

import datetime
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.columns.bounds import ReadBounds
from dpfast.columns.dtypes import dtype_name
from dpfast.columns.grid import PublicGrid
from dpfast.errors import ColumnError, ParameterError
from dpfast.showing import Shown

__all__ = [
    "LARGEST_TICK",
    "NUMBERS",
    "Decimals",
    "Moments",
    "ValueKind",
    "denoted",
    "ticks_of",
    "values_of",
    "whole_edges",
    "within",
]

ShownFigures: TypeAlias = "pl.Series | NDArray[Any]"

#: No value is as large in magnitude.
LARGEST_TICK = 2**127 - 1
_MOST = 2**63 - 1
_MOST_DECIMAL = 10**38 - 1
_DAY_SECONDS = 86_400
_EPOCH = datetime.datetime(1970, 1, 1)
#: Of the numbers that Polars holds times as, how many are a second.
_A_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9}


@dataclass(frozen=True)
class ValueKind(Shown):
    """Plain numbers, and what other kinds say of theirs.

    Attributes
    ----------
    whole
        Whether values are whole numbers.

    """

    whole: bool = False

    @property
    def tick(self) -> Fraction:
        """What one whole number is worth where figures are told: in the column's unit, or in seconds."""
        return Fraction(1)

    @property
    def is_wide(self) -> bool:
        """Whether answers may be made of whole numbers beyond int64."""
        return False

    def limits(self, bounds: ReadBounds, column: str) -> tuple[float, float] | tuple[int, int]:
        """Return bounds as numbers of ticks.

        Raises
        ------
        ParameterError
            They are of another kind than the column, or no two different values of it.

        """
        lower, upper = bounds
        if isinstance(lower, (int, float, Decimal)) and isinstance(upper, (int, float, Decimal)):
            return float(lower), float(upper)
        raise ParameterError("bounds", bounds, f"two numbers for the column {column!r}, which holds no times")

    def edges(self, edges: Sequence[Any], column: str) -> tuple[Fraction, ...] | None:
        """Return edges in ticks, exactly; None where values are compared with them as float64.

        Raises
        ------
        ParameterError
            They are of another kind than the column.

        """
        _refuse_times(edges, column)
        return None

    def refuse_sum(self, column: str) -> None:
        """Refuse to add up values of which there is no sum."""

    def refuse_product(self, column: str) -> None:
        """Refuse to multiply values of which there is no product."""

    def refuse_grid(self, grid: object, column: str) -> None:
        """Refuse a distance between points, where there is another one already."""

    def sums(self, steps: NDArray[np.int64], exponent: int) -> ShownFigures:
        """Return so many steps of ``2**exponent`` ticks: whole ones as they are."""
        shown: ShownFigures = steps if self.whole and exponent == 0 else steps * 2.0**exponent
        return shown

    def points(self, numbers: NDArray[np.int64], grid: PublicGrid) -> ShownFigures:
        """Return the points of a grid of ticks."""
        if self.whole and grid.exponent >= 0:
            return numbers * int(grid.step)
        return grid.values(numbers)

    def near(self, middle: Fraction, beyond: NDArray[np.float64], low: Fraction, high: Fraction) -> ShownFigures:
        """Return what lies so many ticks beyond the middle, cut off at the bounds; all in ticks."""
        shown: ShownFigures = np.clip(float(middle) + beyond, float(low), float(high))
        return shown

    def distances(self, told: NDArray[np.float64], toward: np.ufunc = np.ceil) -> ShownFigures:
        """Return distances between values, as scales of noise are: told in the column's unit or in seconds.

        ``toward`` is how what has whole units is rounded.
        """
        return told


NUMBERS = ValueKind()


@dataclass(frozen=True)
class Decimals(ValueKind):
    """Decimals of ``scale`` places, in steps of 10**-scale times a power of two; sums and quantiles are decimals."""

    whole: bool = True
    scale: int = 0

    @property
    def tick(self) -> Fraction:
        """The last place."""
        return Fraction(1, 10**self.scale)

    @property
    def is_wide(self) -> bool:
        """Decimals have up to 38 digits."""
        return True

    def limits(self, bounds: ReadBounds, column: str) -> tuple[int, int]:
        """Return bounds in last places."""
        lower, upper = bounds
        if not isinstance(lower, (int, float, Decimal)) or not isinstance(upper, (int, float, Decimal)):
            raise ParameterError("bounds", bounds, f"two numbers for the column {column!r} of decimals")
        most = Fraction(_MOST_DECIMAL)
        low, high = (round(min(max(Fraction(bound) / self.tick, -most), most)) for bound in (lower, upper))
        return _apart(low, high, bounds, f"{float(self.tick):g}, the last place of the column {column!r}, apart")

    def edges(self, edges: Sequence[Any], column: str) -> tuple[Fraction, ...]:
        """Return edges in last places."""
        _refuse_times(edges, column)
        return tuple(denoted(Fraction(edge)) / self.tick for edge in edges)

    def refuse_grid(self, grid: object, column: str) -> None:
        """Refuse powers of two, which are no whole numbers of last places."""
        if grid is not None:
            allowed = f"left out for the column {column!r} of decimals, whose points are multiples of its last place"
            raise ParameterError("grid", grid, allowed)

    def sums(self, steps: NDArray[np.int64], exponent: int) -> ShownFigures:
        """Return decimals of 38 digits, the largest ones in place of larger ones."""
        most = _MOST_DECIMAL >> exponent
        wide = pl.col("x").cast(pl.Int128).clip(pl.lit(-most, pl.Int128), pl.lit(most, pl.Int128))
        places = pl.DataFrame({"x": steps}).select(wide * pl.lit(1 << exponent, pl.Int128)).to_series()
        return self.of_places(places)

    def points(self, numbers: NDArray[np.int64], grid: PublicGrid) -> ShownFigures:
        """Return decimals of 38 digits."""
        return self.sums(numbers, grid.exponent)

    def near(self, middle: Fraction, beyond: NDArray[np.float64], low: Fraction, high: Fraction) -> ShownFigures:
        """Return floats: a quotient has no last place."""
        tick = float(self.tick)
        shown: ShownFigures = np.clip(
            float(middle * self.tick) + beyond * tick, float(low * self.tick), float(high * self.tick)
        )
        return shown

    def of_places(self, places: pl.Series) -> pl.Series:
        """Return the decimals of so many last places: the same numbers, read with a decimal point."""
        import pyarrow as pa  # not at the top: it takes long to import

        array = places.cast(pl.Decimal(38, 0)).rechunk().to_arrow()
        pointed = pa.Array.from_buffers(pa.decimal128(38, self.scale), len(array), array.buffers(), -1, array.offset)
        return pl.Series("", pointed, dtype=pl.Decimal(38, self.scale))


@dataclass(frozen=True, kw_only=True)
class Moments(ValueKind):
    """Dates, moments, durations and times of day: answers in their dtype, means of dates as moments; scales durations.

    Attributes
    ----------
    dtype
        The column's.

    """

    whole: bool = True
    dtype: pl.DataType

    @property
    def tick(self) -> Fraction:
        """In seconds."""
        return Fraction(_DAY_SECONDS) if self.dtype == pl.Date else Fraction(1, _A_SECOND[self._unit])

    @property
    def _unit(self) -> str:
        """The unit of durations between values."""
        if isinstance(self.dtype, (pl.Datetime, pl.Duration)):
            return str(self.dtype.time_unit)
        return "ns" if self.dtype == pl.Time else "us"

    @property
    def _parts(self) -> int:
        """How many parts of a tick are told apart in means, and in durations between values."""
        return _DAY_SECONDS * _A_SECOND["us"] if self.dtype == pl.Date else 1

    @property
    def _fine(self) -> pl.DataType:
        """The dtype of parts of ticks."""
        return pl.Datetime("us") if self.dtype == pl.Date else self.dtype

    def limits(self, bounds: ReadBounds, column: str) -> tuple[int, int]:
        """Return bounds in ticks: moments from 1970 on, times of day from midnight on."""
        low, high = (round(self._ticks(bound, bounds, column)) for bound in bounds)
        if not -_MOST <= low < high + 1 <= _MOST:
            held = "that the column's dtype holds; of nanoseconds from 1677-09-22 to 2262-04-11"
            raise ParameterError("bounds", bounds, f"two values for the column {column!r} {held}")
        return _apart(low, high, bounds, f"a {self._unit} of the column {column!r} apart")

    def edges(self, edges: Sequence[Any], column: str) -> tuple[Fraction, ...]:
        """Return edges in ticks."""
        return tuple(self._ticks(edge, edges, column, "edges") for edge in edges)

    def _ticks(self, bound: object, given: object, column: str, argument: str = "bounds") -> Fraction:
        """Return a value in ticks, exactly."""
        aware = isinstance(self.dtype, pl.Datetime) and self.dtype.time_zone is not None
        expected: dict[type[pl.DataType], tuple[str, str]] = {
            pl.Date: ("dates", "date(2024, 1, 1), date(2025, 1, 1)"),
            pl.Datetime: ("datetimes", "datetime(2024, 1, 1), datetime(2025, 1, 1)"),
            pl.Duration: ("timedeltas", "timedelta(0), timedelta(hours=10)"),
            pl.Time: ("times", "time(6), time(22)"),
        }
        named, example = expected[type(self.dtype)]
        if aware:
            named, example = "datetimes with a time zone", example.replace("1, 1)", "1, 1, tzinfo=timezone.utc)")
        ticks = ticks_of(bound, self.dtype)
        if ticks is None:
            two = "two " * (argument == "bounds")
            allowed = f"{two}{named} for the column {column!r} of dtype {dtype_name(self.dtype)}"
            raise ParameterError(argument, given, allowed, f"write for example {argument}=({example})")
        return ticks

    def refuse_sum(self, column: str) -> None:
        """Refuse to add up what is no duration."""
        if not isinstance(self.dtype, pl.Duration):
            raise ColumnError(
                f"cannot sum the column {column!r} of dtype {dtype_name(self.dtype)}: only durations add up; ask for "
                "its mean, or cast it to a number"
            )

    def refuse_product(self, column: str) -> None:
        """Refuse to multiply times."""
        raise ColumnError(
            f"cannot multiply values of the column {column!r} of dtype {dtype_name(self.dtype)}: ask for its standard "
            "deviation, dpf.std, which is a duration, or cast it to a number"
        )

    def refuse_grid(self, grid: object, column: str) -> None:
        """Refuse powers of two of what is no number."""
        if grid is not None:
            dtype = dtype_name(self.dtype)
            raise ParameterError("grid", grid, f"left out for the column {column!r} of dtype {dtype}")

    def sums(self, steps: NDArray[np.int64], exponent: int) -> ShownFigures:
        """Return durations, the largest ones in place of larger ones."""
        most = _MOST >> exponent
        return self._cast(np.clip(steps, -most, most) << exponent, self.dtype)

    def points(self, numbers: NDArray[np.int64], grid: PublicGrid) -> ShownFigures:
        """Return values of the column's dtype."""
        return self._cast(numbers << grid.exponent, self.dtype)

    def near(self, middle: Fraction, beyond: NDArray[np.float64], low: Fraction, high: Fraction) -> ShownFigures:
        """Return moments, the nearest ones: whole numbers from the middle on, so that no digit is lost."""
        parts = self._parts
        origin = round(middle * parts)
        rest = float(middle * parts - origin)
        within = np.clip(beyond, float(low - middle), float(high - middle))
        numbers = origin + np.rint(within * parts + rest).astype(np.int64)
        return self._cast(np.clip(numbers, round(low * parts), round(high * parts)), self._fine)

    def distances(self, told: NDArray[np.float64], toward: np.ufunc = np.ceil) -> ShownFigures:
        """Return durations."""
        # The largest float below 2**63.
        with np.errstate(over="ignore"):
            whole = np.minimum(toward(told * float(self._parts / self.tick)), float(2**63 - 2**10))
        return self._cast(whole.astype(np.int64), pl.Duration(self._unit))  # type: ignore[arg-type]

    @staticmethod
    def _cast(numbers: NDArray[np.int64], dtype: pl.DataType) -> pl.Series:
        held = pl.Series("", numbers, dtype=pl.Int64)
        return (held.cast(pl.Int32) if dtype == pl.Date else held).cast(dtype)


def ticks_of(value: object, dtype: pl.DataType) -> Fraction | None:
    """Return a date or time as a number of what Polars holds a dtype as, exactly; None if it is of another kind.

    Examples
    --------
    >>> ticks_of(datetime.time(0, 0, 1), pl.Time()), ticks_of(datetime.date(1970, 1, 2), pl.Datetime("us"))
    (Fraction(1000000000, 1), None)

    """
    if isinstance(dtype, pl.Date):
        is_day = isinstance(value, datetime.date) and not isinstance(value, datetime.datetime)
        return Fraction(value.toordinal() - _EPOCH.toordinal()) if is_day else None  # type: ignore[attr-defined]
    since: object = value
    if isinstance(dtype, pl.Datetime):
        aware = dtype.time_zone is not None
        if not isinstance(value, datetime.datetime) or (value.tzinfo is not None) != aware:
            return None
        since = value - (_EPOCH.replace(tzinfo=datetime.UTC) if aware else _EPOCH)
    elif isinstance(dtype, pl.Time):
        if not isinstance(value, datetime.time) or value.tzinfo is not None:
            return None
        since = datetime.datetime.combine(_EPOCH, value) - _EPOCH
    if not isinstance(since, datetime.timedelta):
        return None
    unit = "ns" if isinstance(dtype, pl.Time) else dtype.time_unit  # type: ignore[attr-defined]
    return Fraction(since // datetime.timedelta(microseconds=1) * _A_SECOND[unit], 10**6)


def _refuse_times(edges: Sequence[Any], column: str) -> None:
    """Refuse edges of a column of numbers that are none."""
    if not all(isinstance(edge, (int, float, Decimal)) for edge in edges):
        raise ParameterError("edges", edges, f"numbers for the column {column!r}, which holds no times")


def _apart(low: int, high: int, bounds: ReadBounds, words: str) -> tuple[int, int]:
    if low == high:
        raise ParameterError("bounds", bounds, f"two numbers at least {words}")
    return low, high


def values_of(dtype: pl.DataType) -> ValueKind:
    """Return how a column's values are measured; as plain numbers, which refuse what is none, if nothing else is known.

    Examples
    --------
    >>> values_of(pl.Decimal(9, 2)).limits((0.0, 99.99), "price"), values_of(pl.Int8()).whole
    ((0, 9999), True)

    """
    if isinstance(dtype, pl.Decimal):
        return Decimals(scale=dtype.scale)
    if isinstance(dtype, (pl.Date, pl.Datetime, pl.Duration, pl.Time)):
        return Moments(dtype=dtype)
    return ValueKind(whole=dtype.is_integer() or dtype == pl.Boolean)


def whole_edges(values: ValueKind, edges: Sequence[Any], column: str) -> tuple[int, ...] | None:
    """Return the least whole numbers of ticks from each edge on; None where values are compared as float64.

    Examples
    --------
    >>> whole_edges(values_of(pl.Decimal(9, 2)), (0.125, 5), "price")
    (13, 500)

    """
    ticks = values.edges(edges, column)
    return None if ticks is None else tuple(within(math.ceil(edge)) for edge in ticks)


def denoted(number: Fraction) -> Fraction:
    """Return the decimal that a number denotes, if it is a float: 0.1 for the float that is nearest to that.

    Examples
    --------
    >>> denoted(Fraction(0.1)), denoted(Fraction(1, 3))
    (Fraction(1, 10), Fraction(1, 3))

    """
    if number.denominator == 1 or abs(number) > sys.float_info.max or float(number) != number:
        return number
    return Fraction(repr(float(number)))


def within(tick: int) -> int:
    """Return a number of ticks that 128 bits hold, on the same side of all values.

    Examples
    --------
    >>> within(-(10**60)) == -LARGEST_TICK
    True

    """
    return min(max(tick, -LARGEST_TICK), LARGEST_TICK)
