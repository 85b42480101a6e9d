"""Bounds of a column's values: two numbers, or two dates, moments, durations or times of day."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any, Final, Literal, TypeAlias

import numpy as np

from dpfast.arguments import Numeric, Special, is_numeric
from dpfast.columns.grid import LARGEST_BOUND, check_bounds, no_bounds
from dpfast.errors import ParameterError

__all__ = [
    "AUTO",
    "AskedBounds",
    "NumberBounds",
    "OrderedBounds",
    "OwnAddedBounds",
    "OwnUnitBounds",
    "ReadBounds",
    "ordered_bounds",
    "read_bounds",
    "show_bound",
    "show_bounds",
]

_NUMBERS: TypeAlias = tuple[Numeric | Decimal, Numeric | Decimal]
_DURATIONS: TypeAlias = tuple[datetime.timedelta, datetime.timedelta]
_DATES: TypeAlias = tuple[datetime.date, datetime.date]
_TIMES: TypeAlias = tuple[datetime.time, datetime.time]

#: What bounds are once they are read: of a kind, the lower one first. Moments are dates to type checkers.
ReadBounds: TypeAlias = tuple[float, float] | tuple[Decimal, Decimal] | _DURATIONS | _DATES | _TIMES
#: In place of bounds: they are chosen privately.
AUTO: Final = "auto"
_AUTO: TypeAlias = Literal["auto"]
AskedBounds: TypeAlias = ReadBounds | _AUTO

_KINDS = (datetime.datetime, datetime.date, datetime.timedelta, datetime.time)


def _no_ordered() -> Iterator[object]:
    yield from no_bounds()
    day, moment, hour = datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29), datetime.timedelta(hours=1)
    yield from ((day, day), (moment, day), (day, moment), (hour, 0), (0, hour), (hour, -hour), ("2024-01-01", day))
    yield from ((moment, moment.replace(tzinfo=datetime.UTC)), (datetime.time(2), datetime.time(1)))
    yield from ((Decimal("NaN"), 1), (Decimal(2), Decimal(1)), (0, Decimal("Infinity")), (0, Decimal("1e301")))


def _no_numbers() -> Iterator[object]:
    yield from _no_ordered()
    yield from ((datetime.timedelta(0), datetime.timedelta(1)), (datetime.time(1), datetime.time(2)))


#: Of numbers alone.
NumberBounds: TypeAlias = Annotated[_NUMBERS | _AUTO, Special(_no_numbers)]
#: Of values that can be added up.
OwnAddedBounds: TypeAlias = Annotated[_NUMBERS | _DURATIONS | _AUTO | None, Special(_no_ordered, optional=True)]
#: Of what units add, which are not chosen.
OwnUnitBounds: TypeAlias = Annotated[_NUMBERS | _DURATIONS | None, Special(_no_ordered, optional=True)]
#: Of values that are ordered, and have differences.
OrderedBounds: TypeAlias = Annotated[_NUMBERS | _DURATIONS | _DATES | _TIMES | _AUTO, Special(_no_ordered)]


def read_bounds(bounds: object, argument: str = "bounds") -> AskedBounds:
    """Return two bounds of one kind, as `ordered_bounds` does, or ``"auto"``.

    Examples
    --------
    >>> read_bounds((0, 600)), read_bounds("auto")
    ((0.0, 600.0), 'auto')

    """
    if isinstance(bounds, str):
        if bounds == AUTO:
            return AUTO
        allowed = 'two values, the lower one first, or "auto" to have them chosen privately'
        raise ParameterError(argument, bounds, allowed, f"write for example {argument}=(0, 600)")
    return ordered_bounds(bounds, argument)


def ordered_bounds(bounds: object, argument: str = "bounds") -> ReadBounds:
    """Return two bounds of one kind, numbers as floats, or both as decimals where one is.

    Raises
    ------
    ParameterError
        They are not two of a kind, the lower one first; or one of two moments has a time zone.

    Examples
    --------
    >>> ordered_bounds((0, 600)), ordered_bounds((0, Decimal("9.99")))
    ((0.0, 600.0), (Decimal('0'), Decimal('9.99')))

    """
    if isinstance(bounds, (tuple, list)) and len(bounds) == 2:
        lower, upper = bounds
        kind = next((kind for kind in _KINDS if isinstance(lower, kind)), None)
        if kind is not None or any(isinstance(upper, kind) for kind in (*_KINDS, np.datetime64, np.timedelta64)):
            return _temporal(bounds, kind, argument)
        if isinstance(lower, Decimal) or isinstance(upper, Decimal):
            return _decimal(bounds, argument)
    return check_bounds(bounds, argument)


def _temporal(bounds: Any, kind: type | None, argument: str) -> ReadBounds:
    lower, upper = bounds
    try:
        # A moment is a date, too.
        alike = kind is not None and kind is next(kind for kind in _KINDS if isinstance(upper, kind))
        ordered = alike and lower < upper
    except (StopIteration, TypeError):
        ordered = False
    if not ordered:
        allowed = (
            "two dates, datetimes, timedeltas or times, both with a time zone or both without, the lower one first"
        )
        mend = f"write for example {argument}=(datetime(2024, 1, 1), datetime(2025, 1, 1))"
        raise ParameterError(argument, bounds, allowed, mend)
    return lower, upper


def _decimal(bounds: Any, argument: str) -> ReadBounds:
    """Return bounds, of which one is a decimal at least, as decimals."""
    allowed = "two finite numbers, the lower one first, of magnitude up to 1e300"
    read = [
        Decimal(bound) if isinstance(bound, (Decimal, int)) else Decimal(float(bound))
        for bound in bounds
        if _is_finite(bound)
    ]
    if len(read) < 2 or not read[0] < read[1]:
        raise ParameterError(argument, bounds, allowed, f'write for example {argument}=(0, Decimal("99.99"))')
    return read[0], read[1]


def _is_finite(bound: object) -> bool:
    if isinstance(bound, Decimal):
        return bound.is_finite() and bound.copy_abs() <= LARGEST_BOUND
    return is_numeric(bound) and abs(bound) <= LARGEST_BOUND  # type: ignore[arg-type]


def show_bounds(bounds: AskedBounds) -> str:
    """Return bounds in words: ``[0, 600]``.

    Examples
    --------
    >>> show_bounds((0.0, 600.0)), show_bounds((datetime.date(2024, 1, 1), datetime.date(2025, 1, 1)))
    ('[0, 600]', '[2024-01-01, 2025-01-01]')

    """
    if isinstance(bounds, str):
        return "bounds that are chosen privately"
    lower, upper = map(show_bound, bounds)
    return f"[{lower}, {upper}]"


def show_bound(bound: object) -> str:
    """Return one of them in words."""
    if isinstance(bound, datetime.timedelta):
        return f"{bound.total_seconds():.15g} s"
    return f"{bound:g}" if isinstance(bound, float) else str(bound)
