"""Public candidates of a mode: plain values of one kind, each once."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Annotated, Any, TypeAlias

import numpy as np
import polars as pl

from dpfast.arguments import Special
from dpfast.columns.declarations import TypedColumn
from dpfast.errors import ParameterError, Words

__all__ = ["LARGEST_NUMBER", "LONGEST", "Candidates", "OwnCandidates", "as_series", "read_candidates"]

#: More candidates than this are no list that anybody wrote down.
LARGEST_NUMBER = 2**16
#: What a duration in microseconds may be.
LONGEST = datetime.timedelta(microseconds=2**63 - 1)

_PLAIN = "a list of different strings, integers, Booleans or dates, all of one kind, and None for null if it counts"
_ALLOWED = (
    "a list of different strings, bytes, integers, decimals, Booleans, dates, datetimes, times or durations, all of "
    "one kind, and None for null if it counts"
)
_MEND = 'write for example {}=["AA", "UA"]'


def _no_candidates() -> Iterator[object]:
    yield from ("AA", b"AA", 5, 0.5, True, object(), {"a": 1}, {"a"}, range(3), pl.DataFrame({"a": [1]}))
    yield from ([], [None], ["a", "a"], ["a", 1], [1, True], [0.5], [[1]], [["a"]], [1j], [object()], [2**64])
    yield from ([-1, 2**63], np.ones((2, 2), int), pl.Series([0.5]), list(range(LARGEST_NUMBER + 1)))


_DTYPES: dict[type, pl.DataType] = {
    str: pl.String(),
    bytes: pl.Binary(),
    bool: pl.Boolean(),
    datetime.date: pl.Date(),
    datetime.time: pl.Time(),
    datetime.timedelta: pl.Duration("us"),
}
_KINDS = {*_DTYPES, int, Decimal, datetime.datetime}
_PLAIN_KINDS = {str, int, bool, datetime.date}

#: Values of one kind, each once.
Candidates: TypeAlias = Annotated[Sequence[Any] | TypedColumn, Special(_no_candidates)]
#: The same, or None.
OwnCandidates: TypeAlias = Annotated[Sequence[Any] | TypedColumn | None, Special(_no_candidates, optional=True)]


def read_candidates(candidates: Candidates, argument: str = "candidates", *, plain: bool = False) -> tuple[Any, ...]:
    """Return candidates as plain Python values, checked.

    Parameters
    ----------
    candidates
        A list, tuple, or one-dimensional array or Series.
    argument
        The name that an error gives to them.
    plain
        Whether they may be strings, integers, Booleans and dates only.

    Raises
    ------
    ParameterError
        They are none, of several kinds or of another, repeated, too many, or integers that no type of 64 bits holds.

    Examples
    --------
    >>> read_candidates(np.array([3, 1])), read_candidates(["a", None])
    ((3, 1), ('a', None))

    """
    convert = getattr(candidates, "to_list", None) or getattr(candidates, "tolist", None)
    listed = convert() if callable(convert) else candidates
    allowed, known = (_PLAIN, _PLAIN_KINDS) if plain else (_ALLOWED, _KINDS)
    if not isinstance(listed, (list, tuple)):
        raise ParameterError(argument, candidates, allowed, _MEND.format(argument))
    values = [value.item() if isinstance(value, np.generic) else value for value in listed]
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) != 1 or not kinds <= known or not _of_one_type(values):
        raise ParameterError(argument, values[:8], allowed, _MEND.format(argument))
    if len(set(values)) < len(values):
        raise ParameterError(argument, values[:8], "different from each other", "leave repeated ones out")
    if len(values) > LARGEST_NUMBER:
        raise ParameterError(argument, Words(f"{len(values)} values"), f"at most {LARGEST_NUMBER}", "take fewer")
    if kinds == {int} and _dtype(values) is None:
        raise ParameterError(argument, values[:8], "integers that Int64 or UInt64 holds, all of them")
    return tuple(values)


def as_series(candidates: tuple[Any, ...]) -> pl.Series:
    """Return candidates that were read as a series: String, Int64 (UInt64 beyond it), Datetime in microseconds.

    Examples
    --------
    >>> as_series((3, 2**63)).dtype, as_series((True, None)).dtype, as_series((Decimal("0.25"),)).dtype
    (UInt64, Boolean, Decimal(precision=38, scale=2))

    """
    return pl.Series("candidates", list(candidates), dtype=_dtype(candidates))


def _of_one_type(values: list[Any]) -> bool:
    """Return whether one dtype holds all: moments with a time zone or none, and finite decimals."""
    held = [value for value in values if value is not None]
    if type(held[0]) is Decimal:
        return all(value.is_finite() for value in held) and _scale(held) is not None
    if type(held[0]) is datetime.timedelta:
        return all(abs(value) <= LONGEST for value in held)
    if type(held[0]) is datetime.time:
        return all(value.tzinfo is None for value in held)
    if type(held[0]) is not datetime.datetime:
        return True
    return len({value.tzinfo is None for value in held}) == 1 and all(map(_has_utc, held))


def _has_utc(moment: datetime.datetime) -> bool:
    """Return whether a moment is one of the years 1 to 9999 in UTC, too."""
    try:
        return moment.tzinfo is None or moment.astimezone(datetime.UTC) is not None
    except OverflowError:
        return False


def _scale(decimals: list[Decimal]) -> int | None:
    """Return the number of decimal places that all need; None if some need more than 38 digits with it."""
    scale = max(max(-int(value.as_tuple().exponent), 0) for value in decimals)
    return scale if all(value.adjusted() + 1 + scale <= 38 for value in decimals) and scale <= 38 else None


def _dtype(candidates: Any) -> pl.DataType | None:
    values = [value for value in candidates if value is not None]
    kind = type(values[0])
    if kind is Decimal:
        return pl.Decimal(38, _scale(values) or 0)
    if kind is datetime.datetime:
        return pl.Datetime("us", None if values[0].tzinfo is None else "UTC")
    if kind is not int:
        return _DTYPES[kind]
    lowest, largest = min(values), max(values)
    if lowest >= -(2**63) and largest < 2**63:
        return pl.Int64()
    return pl.UInt64() if lowest >= 0 and largest < 2**64 else None
