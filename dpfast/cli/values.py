"""Text of a command line -> numbers, dates, moments, durations, times of day, and values of a column."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, TypeAlias

from dpfast.rows.durations import read_duration

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Plain", "find_bounds", "find_edges", "read_number", "read_plain", "read_value"]

#: What stands for a number, a date or a time by its form alone.
Plain: TypeAlias = float | datetime.date | datetime.timedelta | datetime.time

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TIME = re.compile(r"\d\d:\d\d(:\d\d(\.\d+)?)?")


def read_number(text: str) -> float:
    """Read a number, as an integer where it is one, or raise ValueError."""
    try:
        return int(text)
    except ValueError:
        return float(text)


def read_plain(text: str) -> Plain:
    """Read a number, or what the text has the form of, or raise ValueError.

    Examples
    --------
    >>> read_plain("2.5"), read_plain("2024-02-29"), read_plain("-1h30m")
    (2.5, datetime.date(2024, 2, 29), datetime.timedelta(days=-1, seconds=81000))
    >>> read_plain("2024-02-29T12:30"), read_plain("06:00")
    (datetime.datetime(2024, 2, 29, 12, 30), datetime.time(6, 0))

    """
    text = text.strip()
    if _DATE.fullmatch(text):
        return datetime.date.fromisoformat(text)
    if _DATE.match(text):
        return datetime.datetime.fromisoformat(text)
    if _TIME.fullmatch(text):
        return datetime.time.fromisoformat(text)
    if text[-1:] in ("d", "h", "m", "s") and text[:-1]:
        return read_duration(text)
    return read_number(text)


def find_bounds(text: str) -> tuple[str, str, str] | None:
    """Split ``COLUMN:LOW:HIGH`` where both bounds can be read; None if they cannot.

    Moments and times hold colons themselves: both bounds hold as many.

    Examples
    --------
    >>> find_bounds("at:06:00:22:00"), find_bounds("a:b:0:1"), find_bounds("a:low:1")
    (('at', '06:00', '22:00'), ('a:b', '0', '1'), None)

    """
    places = [place for place, letter in enumerate(text) if letter == ":"]
    for first, place in enumerate(places):
        inner = len(places) - first - 1
        if inner % 2 and place:
            middle = places[first + 1 + inner // 2]
            bounds = text[place + 1 : middle], text[middle + 1 :]
            if _are_alike(bounds):
                return text[:place], *bounds
    return None


def find_edges(text: str) -> tuple[str, list[Plain]] | None:
    """Split ``COLUMN:EDGE,EDGE,...`` where all edges can be read; None if they cannot.

    Examples
    --------
    >>> find_edges("at:06:00,22:00")
    ('at', [datetime.time(6, 0), datetime.time(22, 0)])

    """
    for place, letter in enumerate(text):
        written = text[place + 1 :].split(",")
        if letter == ":" and place and _are_alike(written):
            return text[:place], list(map(read_plain, written))
    return None


def _are_alike(written: Sequence[str]) -> bool:
    """Return whether all can be read, as values of one kind; moments may be written as dates."""
    try:
        values = list(map(read_plain, written))
    except ValueError:
        return False
    kinds = ((int, float), datetime.date, datetime.timedelta, datetime.time)
    return any(all(isinstance(value, kind) for value in values) for kind in kinds)


def read_value(text: str, dtype: pl.DataType | None) -> Any:
    """Read a value of a column, or raise ValueError: bytes as hexadecimal digits."""
    import polars as pl

    if dtype is None or isinstance(dtype, (pl.String, pl.Categorical, pl.Enum)):
        return text
    if dtype.is_integer():
        return int(text)
    if dtype == pl.Boolean:
        return ("false", "true").index(text.strip().lower()) == 1
    if isinstance(dtype, pl.Decimal):
        try:
            return Decimal(text.strip())
        except InvalidOperation:
            raise ValueError("no decimal") from None
    if dtype == pl.Binary:
        return bytes.fromhex(text)
    kinds: dict[type[pl.DataType], type] = {
        pl.Date: datetime.date,
        pl.Datetime: datetime.datetime,
        pl.Duration: datetime.timedelta,
        pl.Time: datetime.time,
    }
    if type(dtype) not in kinds:
        return text
    value = read_plain(text)
    if dtype == pl.Datetime and type(value) is datetime.date:
        value = datetime.datetime.combine(value, datetime.time())
    if type(value) is not kinds[type(dtype)]:
        raise ValueError("another kind of value")
    return value
