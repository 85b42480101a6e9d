"""How a column's values spread, and how two columns' values go together."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from fractions import Fraction

from dpfast.columns.bounds import AUTO, AskedBounds, NumberBounds, OrderedBounds, read_bounds, show_bounds
from dpfast.columns.values import NUMBERS, ValueKind
from dpfast.errors import ParameterError
from dpfast.queries.basic import Name, Query, are_computed
from dpfast.rows.values import NAME

__all__ = ["CovarianceQuery", "covariance", "half_widths", "std", "variance"]

#: Squares of larger bounds, and of bounds that are closer to each other, are no floats.
_LARGEST_BOUND, _LEAST_WIDTH = 1e150, 1e-130


@dataclass(frozen=True, repr=False)
class CovarianceQuery(Query):
    """The covariance of two columns in every group: what `covariance` returns."""

    other: str = ""
    other_bounds: AskedBounds = (0.0, 1.0)
    other_values: ValueKind = field(default=NUMBERS, repr=False, compare=False)

    def other_limits(self) -> tuple[Fraction, Fraction]:
        """Return the other column's bounds as numbers of ticks."""
        if isinstance(self.other_bounds, str):
            raise ParameterError("other_bounds", self.other_bounds, "two values here", "give bounds")
        lower, upper = self.other_values.limits(self.other_bounds, self.other)
        return Fraction(lower), Fraction(upper)

    @property
    def leaves_open(self) -> tuple[str, ...]:
        """The names of the bounds that are chosen privately."""
        return (*super().leaves_open, *(("other_bounds",) if self.other_bounds == AUTO else ()))

    @property
    def in_words(self) -> str:
        """What is asked."""
        assert self.bounds is not None
        columns = ((self.column, self.bounds), (self.other, self.other_bounds))
        clipped = " and ".join(f"{column} clipped to {show_bounds(bounds)}" for column, bounds in columns)
        return f"covariance of {clipped}, of rows where neither is missing"


def variance(column: Name, *, bounds: NumberBounds) -> Query:
    """Ask for the variance of a column's values in every group, each value clipped to the bounds.

    It is the sample variance, as of Polars' ``var``: the sum of squared differences to the mean, divided by the number
    of values less 1. Of fewer than two values it is 0. It is made of three answers that share the query's budget: the
    sums of the differences to the middle of the bounds and of their squares, and the number of values that are not
    missing. It is never negative.

    Parameters
    ----------
    column
        A column of integers, floats, decimals or Booleans. Null and NaN count as missing; infinities are clipped.
    bounds
        Two numbers, as for `sum`; of magnitude up to 1e150. Or ``"auto"``.

    Examples
    --------
    >>> variance("dep_delay", bounds=(-60, 600)).bounds
    (-60.0, 600.0)

    """
    return Query("variance", NAME.read("column", column), _read_bounds(bounds, "bounds"), are_computed(bounds))


def std(column: Name, *, bounds: OrderedBounds) -> Query:
    """Ask for the standard deviation of a column's values in every group: the root of `variance`.

    Parameters
    ----------
    column, bounds
        As for `variance`, or of dates, datetimes, durations or times: their standard deviation is a duration.

    Examples
    --------
    >>> std("dep_delay", bounds=(-60, 600)).kind
    'std'

    """
    checked = _read_bounds(bounds, "bounds", times=True)
    return Query("std", NAME.read("column", column), checked, are_computed(bounds))


def covariance(column: Name, other: Name, *, bounds: NumberBounds, other_bounds: NumberBounds) -> CovarianceQuery:
    """Ask for the covariance of two columns in every group, each value clipped to its column's bounds.

    It is the sample covariance, as Polars' ``pl.cov``, of the rows in which neither value is missing; of fewer than two
    of them it is 0. It is made of four answers that share the query's budget: the sums of the differences to the middle
    of each column's bounds, of their products, and the number of such rows.

    Parameters
    ----------
    column, other
        Two columns of integers, floats, decimals or Booleans. Null and NaN count as missing; infinities are clipped.
    bounds, other_bounds
        The lowest and the highest value of ``column``, and of ``other``, that counts in full: public, chosen without
        looking at the data; of magnitude up to 1e150. Or ``"auto"``, for either or both.

    Examples
    --------
    >>> covariance("distance", "air_time", bounds=(0, 5000), other_bounds=(0, 700)).other_bounds
    (0.0, 700.0)

    """
    checked = _read_bounds(bounds, "bounds"), _read_bounds(other_bounds, "other_bounds")
    computed = are_computed(bounds) or are_computed(other_bounds)
    first, second = NAME.read("column", column), NAME.read("other", other)
    return CovarianceQuery("covariance", first, checked[0], computed, other=second, other_bounds=checked[1])


def _read_bounds(bounds: object, argument: str, *, times: bool = False) -> AskedBounds:
    """Return bounds of numbers, of which squares are floats; with ``times`` maybe of dates or times."""
    read = read_bounds(bounds, argument)
    if isinstance(read, str):
        return read
    if isinstance(read[0], (datetime.date, datetime.time, datetime.timedelta)):
        if times:
            return read
        mend = "ask for the standard deviation, dpf.std, which is a duration"
        raise ParameterError(argument, bounds, "two numbers: a product of times has no unit", mend)
    lower, upper = map(float, read)
    if max(abs(lower), abs(upper)) > _LARGEST_BOUND or upper - lower < _LEAST_WIDTH:
        raise ParameterError(argument, bounds, "of magnitude up to 1e150, and 1e-130 apart or more", "scale the column")
    return read


def half_widths(query: Query) -> tuple[Fraction, Fraction]:
    """Return half of the widths of a query's bounds, of both columns or twice that of the one, where figures are told.

    Examples
    --------
    >>> half_widths(std("dep_delay", bounds=(-60, 600)))
    (Fraction(330, 1), Fraction(330, 1))

    """
    lower, upper = query.limits()
    first = (upper - lower) * query.values.tick / 2
    if not isinstance(query, CovarianceQuery):
        return first, first
    lower, upper = query.other_limits()
    return first, (upper - lower) * query.other_values.tick / 2
