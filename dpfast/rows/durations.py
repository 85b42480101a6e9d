"""Durations as they are written: ``90m``, ``1h30m`` or ``-2.5d``."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal

__all__ = ["read_duration", "shown_duration"]

_SECONDS = {
    "d": Decimal(86_400),
    "h": Decimal(3600),
    "m": Decimal(60),
    "s": Decimal(1),
    "ms": Decimal("1e-3"),
    "us": Decimal("1e-6"),
}
_DURATION = re.compile(r"(-?)((?:\d+(?:\.\d+)?(?:d|h|ms|us|m|s))+)")
_PART = re.compile(r"(\d+(?:\.\d+)?)(d|h|ms|us|m|s)")


def read_duration(text: str) -> datetime.timedelta:
    """Read a duration, or raise ValueError.

    Examples
    --------
    >>> read_duration("1h30m"), read_duration("-0.5s")
    (datetime.timedelta(seconds=5400), datetime.timedelta(days=-1, seconds=86399, microseconds=500000))

    """
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError("no duration")
    sign, parts = found.groups()
    seconds = sum((Decimal(number) * _SECONDS[unit] for number, unit in _PART.findall(parts)), Decimal(0))
    try:
        whole = datetime.timedelta(microseconds=int(seconds * 10**6))
    except OverflowError:
        raise ValueError("too long a duration") from None
    return -whole if sign else whole


def shown_duration(duration: datetime.timedelta) -> str:
    """Return a duration as it can be read: in seconds, or in microseconds where it has parts of one.

    Examples
    --------
    >>> shown_duration(datetime.timedelta(hours=1)), shown_duration(datetime.timedelta(milliseconds=-1))
    ('3600s', '-1000us')

    """
    parts = duration // datetime.timedelta(microseconds=1)
    return f"{parts // 10**6}s" if parts % 10**6 == 0 else f"{parts}us"
