"""Edges of bins: increasing numbers, or dates, moments, durations or times of day."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any, TypeAlias

import numpy as np

from dpfast.arguments import Numeric, Special, is_real, no_numbers
from dpfast.columns.bounds import show_bound
from dpfast.columns.declarations import TypedColumn
from dpfast.columns.values import denoted
from dpfast.errors import ParameterError

__all__ = ["Edge", "Edges", "are_times", "floats_of", "read_edges", "show_edges"]

#: An edge once it is read.
Edge: TypeAlias = float | datetime.date | datetime.timedelta | datetime.time

_TIMES = (datetime.datetime, datetime.date, datetime.timedelta, datetime.time)
_ALLOWED = "at least two finite, increasing numbers, or dates, datetimes, timedeltas or times"


def _no_edges() -> Iterator[object]:
    yield from (5, 0.5, "01", b"01", object(), {0: 1}, [], [0], [0, 0], [1, 0], [0, "1"], [0, True], [0, 2**53 + 1])
    yield from (np.zeros((2, 2)), ["a", "b"], *([0, number] for number in (*no_numbers(), None)))
    day, moment = datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29)
    later = datetime.datetime(2025, 1, 1, tzinfo=datetime.UTC)
    yield from ([day], [day, day], [0, day], [day, moment], [moment, later])


Edges: TypeAlias = Annotated[
    Sequence[Numeric] | Sequence[datetime.date] | Sequence[datetime.timedelta] | Sequence[datetime.time] | TypedColumn,
    Special(_no_edges),
]


def read_edges(edges: object) -> tuple[Edge, ...]:
    """Return edges, checked: integers if all are whole numbers, else floats; or dates or times as they are.

    Raises
    ------
    ParameterError
        They are fewer than two, not increasing, not of one kind, or numbers that no float denotes.

    Examples
    --------
    >>> read_edges([0, 6.0, 12]), read_edges((0, 0.5))
    ((0, 6, 12), (0.0, 0.5))

    """
    if isinstance(edges, (str, bytes)):
        raise ParameterError("edges", edges, _ALLOWED)
    try:
        given = tuple(edge.item() if isinstance(edge, np.generic) else edge for edge in edges)  # type: ignore[attr-defined]
        times = bool(given) and all(type(edge) is type(given[0]) and isinstance(edge, _TIMES) for edge in given)
        fits = times or all(map(_is_denoted, given))
        # Moments with a time zone are not compared with those without.
        fits = fits and len(given) >= 2 and all(left < right for left, right in pairwise(given))
    except (TypeError, ValueError, OverflowError):
        fits = False
    if not fits:
        raise ParameterError("edges", edges, _ALLOWED)
    if times:
        return given
    whole = all(float(edge).is_integer() and -(2**53) <= edge <= 2**53 for edge in given)
    return tuple((int if whole else float)(edge) for edge in given)


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
