"""Public values that columns are compared with, and how they and names are written."""

from __future__ import annotations

import datetime
import keyword
import unicodedata
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, TypeAlias

import numpy as np

from dpfast.arguments import Real, Special, Text, is_real
from dpfast.errors import ParameterError
from dpfast.rows.durations import shown_duration

__all__ = ["NAME", "Compared", "OptionalCompared", "Value", "read_value", "shown_name", "shown_value"]

#: A table may have a column without a name.
NAME = Text("a column's name", blank=True)
Value: TypeAlias = Real | str | bytes | bool | datetime.date | datetime.time | datetime.timedelta


def _no_values() -> Iterable[object]:
    return (float("nan"), Decimal("nan"), object(), [1], "\ud800", 1j, np.datetime64("2020"), {}, int)


Compared: TypeAlias = Annotated[Value, Special(lambda: (None, *_no_values()))]
OptionalCompared: TypeAlias = Annotated[Value | None, Special(_no_values, optional=True)]

_PLAIN = (str, bytes, bool, datetime.date, datetime.datetime, datetime.time, datetime.timedelta)


def read_value(name: str, given: Any) -> Value:
    """Return a public value that a column is compared with, as Python's own.

    Raises
    ------
    ParameterError
        It is no value, or one that nothing is equal to.

    """
    allowed = "a number, text, True, False, bytes, a date, datetime, time or timedelta"
    mend = ""
    if given is None:
        mend = f"write dpf.column({name[:60]!r}).is_null()"
    elif hasattr(given, "is_in"):
        mend = "compare two columns beforehand, and give the column of what comes out"
    elif isinstance(given, np.bool_):
        return bool(given)
    elif is_real(given):
        if given.is_finite() if isinstance(given, Decimal) else given == given:
            return _plain_number(given)
        mend = f"write dpf.column({name[:60]!r}).is_nan()"
    elif isinstance(given, str):
        return Text("text that can be encoded", blank=True).read("value", given)
    elif type(given) in _PLAIN and getattr(given, "utcoffset", None) is None:
        value: Value = given
        return value
    elif type(given) is datetime.datetime or (type(given) is datetime.time and given.tzinfo is None):
        moment: Value = given
        return moment
    raise ParameterError(f"the value for {name[:60]!r}", given, allowed, mend)


def _plain_number(given: Any) -> Value:
    if isinstance(given, (int, np.integer)):
        return int(given)
    return float(given) + 0.0 if isinstance(given, (float, np.floating)) else given


def shown_name(name: str) -> str:
    """Return a column's name as it is written in a filter."""
    # Python folds letters that look alike.
    plain = name.isidentifier() and name == unicodedata.normalize("NFKC", name)
    plain = plain and not keyword.iskeyword(name) and name not in ("column", "is_nan")
    return name if plain else f"column({name!r})"


def shown_value(value: Value) -> str:
    """Return a value as it is written in a filter."""
    if isinstance(value, (Decimal, Fraction)):
        return str(value)
    if isinstance(value, (datetime.date, datetime.time)):
        return repr(value.isoformat())
    return repr(shown_duration(value) if isinstance(value, datetime.timedelta) else value)
