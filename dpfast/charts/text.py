"""How released values, and what else stands in a chart or a page, are written for people."""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Sequence
from typing import Any

import polars as pl

__all__ = ["joined", "label_of", "measured_text", "shortened", "spoken", "value_text"]

_MOST_ENTRIES = 100
#: Between these, no exponent is written.
_PLAIN = 1e-4, 1e15
_EXACT = 1e5


def value_text(value: Any, longest: int = 400) -> str:
    r"""Return a released value as it stands in a table.

    Examples
    --------
    >>> [value_text(value) for value in (-1234567, 12.34567, 2345678.9, float("nan"), None, [1, 2], "a\n b")]
    ['−1,234,567', '12.346', '2,345,679', 'NaN', '(null)', '[1, 2]', 'a b']

    """
    return shortened(_text(value), longest)


def _text(value: Any) -> str:
    if value is None:
        return "(null)"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return _minus(f"{value:,}")
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, decimal.Decimal):
        return _minus(f"{value:,f}")
    if isinstance(value, bytes):
        return value.hex() or "(empty)"
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ", timespec="seconds" if value.microsecond == 0 else "milliseconds")
    if isinstance(value, datetime.timedelta):
        return _minus(str(value) if value >= datetime.timedelta(0) else f"-{-value}")
    if isinstance(value, pl.Series):
        value = value.to_list()
    if isinstance(value, (list, tuple)):
        more = f", … {len(value) - _MOST_ENTRIES:,} more" * (len(value) > _MOST_ENTRIES)
        return f"[{', '.join(map(_text, value[:_MOST_ENTRIES]))}{more}]"
    return " ".join(str(value).split()) or "(empty)"


def _float(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if not value:
        return "0"
    size = abs(value)
    if not _PLAIN[0] <= size < _PLAIN[1]:
        return _minus(f"{value:.4g}")
    return _minus(f"{value:,.0f}" if size >= _EXACT else f"{value:,.5g}")


def measured_text(value: Any, error: float) -> str:
    """Return a value that is known up to an error, without digits that mean nothing.

    Parameters
    ----------
    value
        A number, a date or moment, a duration or a time of day.
    error
        Half its interval: in its own unit, days for dates, hours for durations; NaN where nobody knows it.

    Examples
    --------
    >>> measured_text(20.71812, 14.1), measured_text(0.51234, 0.0123), measured_text(1234.5678, 300.0)
    ('20.7', '0.5123', '1,235')
    >>> measured_text(datetime.datetime(2013, 5, 1, 10, 20, 30, 99), 5.0)
    '2013-05-01'
    >>> measured_text(datetime.timedelta(hours=3, microseconds=1), 0.2)
    '3:00:00'

    """
    if not (error > 0 and math.isfinite(error)):
        return value_text(value, 60)
    if isinstance(value, datetime.datetime):
        return f"{value:%Y-%m-%d}" if error >= 1 else f"{value:%Y-%m-%d %H:%M}" if error >= 0.02 else value_text(value)
    if isinstance(value, datetime.timedelta) and error >= 0.01:
        return value_text(datetime.timedelta(seconds=round(value.total_seconds())))
    if isinstance(value, datetime.time) and error >= 0.01:
        return f"{value:%H:%M:%S}"
    if not isinstance(value, (float, decimal.Decimal)) or not math.isfinite(value):
        return value_text(value, 60)
    digits = min(max(0, 2 - math.floor(math.log10(error))), 12)
    rounded = f"{value:,.{digits}f}"
    return _minus(rounded) if len(rounded) <= 24 else value_text(value, 60)


def _minus(text: str) -> str:
    return text.replace("-", "−", 1) if text.startswith("-") else text


def shortened(text: str, longest: int) -> str:
    """Return the beginning of a text, and an ellipsis where it is longer."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def label_of(keys: Sequence[Any], longest: int) -> str:
    """Return what stands beside a group: two keys are joined by an arrow, more by commas.

    Examples
    --------
    >>> label_of(["JFK", "BOS"], 20), label_of([None], 20), label_of([], 20)
    ('JFK → BOS', '(null)', 'all rows')

    """
    words = ["(null)" if key is None else " ".join(str(key).split()) or "(empty)" for key in keys]
    return shortened((" → " if len(words) == 2 else ", ").join(words) or "all rows", longest)


def joined(parts: Sequence[str], last: str) -> str:
    """Return words with commas, and another word before the last."""
    return last.join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)


def spoken(name: str) -> str:
    """Return a column's name in words."""
    return name.replace("_", " ")
