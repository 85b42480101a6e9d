"""Edges of bins: increasing numbers, or dates, moments, durations or times of day."""

from __future__ import annotations

import datetime
import math
import zoneinfo
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any, TypeAlias

import numpy as np

from dpfast.arguments import Numeric, Special, is_real, no_numbers
from dpfast.columns.bounds import show_bound
from dpfast.columns.candidates import LONGEST
from dpfast.columns.declarations import TypedColumn
from dpfast.columns.values import denoted
from dpfast.errors import ParameterError

__all__ = ["Edge", "Edges", "Points", "are_times", "floats_of", "read_edges", "show_edges"]

#: An edge once it is read.
Edge: TypeAlias = float | datetime.date | datetime.timedelta | datetime.time

_TIMES = (datetime.datetime, datetime.date, datetime.timedelta, datetime.time)
_ALLOWED = "{} or more finite, increasing numbers of float64, or dates, datetimes, timedeltas or times"


def _no_edges() -> Iterator[object]:
    yield from ([0], [datetime.date(2024, 2, 29)])
    yield from _no_points()


def _no_points() -> Iterator[object]:
    yield from (5, 0.5, "01", b"01", object(), {0: 1}, [], [0, 0], [1, 0], [0, "1"], [0, True], [0, 2**53 + 1])
    yield from (np.zeros((2, 2)), ["a", "b"], *([0, number] for number in (*no_numbers(), None)))
    day, moment = datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29)
    later = datetime.datetime(2025, 1, 1, tzinfo=datetime.UTC)
    yield from ([day, day], [0, day], [day, moment], [moment, later])
    yield [datetime.timedelta(0), datetime.timedelta.max]


_Listed: TypeAlias = (
    Sequence[Numeric] | Sequence[datetime.date] | Sequence[datetime.timedelta] | Sequence[datetime.time] | TypedColumn
)
Edges: TypeAlias = Annotated[_Listed, Special(_no_edges)]
#: Of points one may be alone.
Points: TypeAlias = Annotated[_Listed, Special(_no_points)]


def read_edges(edges: object, *, least: int = 2) -> tuple[Edge, ...]:
    """Return edges, checked: integers if all are whole numbers, else floats; or dates or times as they are.

    There must be ``least`` of them, two or one.

    Raises
    ------
    ParameterError
        They are too few, not increasing, not of one kind, or numbers that no float denotes.

    Examples
    --------
    >>> read_edges([0, 6.0, 12]), read_edges((0, 0.5))
    ((0, 6, 12), (0.0, 0.5))

    """
    allowed = _ALLOWED.format("two" if least == 2 else "one")
    if isinstance(edges, (str, bytes, dict)):
        raise ParameterError("edges", edges, allowed)
    try:
        given = tuple(edge.item() if isinstance(edge, np.generic) else edge for edge in edges)  # type: ignore[attr-defined]
        times = bool(given) and all(type(edge) is type(given[0]) and isinstance(edge, _TIMES) for edge in given)
        fits = times or all(map(_is_denoted, given))
        # Moments with a time zone are not compared with those without.
        fits = fits and len(given) >= least and all(left < right for left, right in pairwise(map(_compared, given)))
        fits = fits and not any(isinstance(edge, datetime.timedelta) and abs(edge) > LONGEST for edge in given)
    except (TypeError, ValueError, OverflowError):
        fits = False
    if not fits:
        raise ParameterError("edges", edges, allowed)
    if times:
        return _held(given)
    whole = all(float(edge).is_integer() and -(2**53) <= edge <= 2**53 for edge in given)
    return tuple((int if whole else float)(edge) for edge in given)


def _held(times: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return times as one column holds them: moments of several time zones, or of none that has a name, in UTC."""
    zones = {edge.tzinfo for edge in times if isinstance(edge, datetime.datetime)}
    if zones <= {None} or (len(zones) == 1 and all(isinstance(zone, zoneinfo.ZoneInfo) for zone in zones)):
        return times
    return tuple(edge.astimezone(datetime.UTC) for edge in times)


def _compared(edge: Any) -> Any:
    """Return an edge as it is compared: within one zone, Python compares what clocks show, also when they go back."""
    aware = isinstance(edge, datetime.datetime) and edge.tzinfo is not None
    return edge.astimezone(datetime.UTC) if aware else edge


def _is_denoted(edge: Any) -> bool:
    """Return whether a number is finite, and a float or the decimal that a float denotes."""
    if not is_real(edge) or not math.isfinite(edge):
        return False
    return float(edge) == edge or denoted(Fraction(float(edge))) == Fraction(edge)


def are_times(edges: Sequence[Edge]) -> bool:
    """Return whether edges are dates or times."""
    return isinstance(edges[0], _TIMES)


def floats_of(edges: Sequence[Edge]) -> tuple[float, ...]:
    """Return edges that are numbers as float64."""
    return tuple(float(edge) for edge in edges)  # type: ignore[arg-type]  # dates and times have ticks


def show_edges(first: Edge, last: Edge) -> tuple[str, str]:
    """Return two edges in words.

    Examples
    --------
    >>> show_edges(0, datetime.date(2024, 1, 1))
    ('0', '2024-01-01')

    """
    shown = [f"{edge:g}" if isinstance(edge, (int, float)) else show_bound(edge) for edge in (first, last)]
    return shown[0], shown[1]
