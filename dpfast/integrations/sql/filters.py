"""Which rows count, as SQL: the comparisons of `dpfast.aggregation.filtering`, on the form that values have here.

Every engine compares them alike: whole numbers are int64, floats are float64, strings are bytes, dates and timestamps
are whole numbers of days and microseconds. NaN, which engines hold for the largest number or for null, passes nothing.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, TypeAlias

import polars as pl

from dpfast.aggregation.filtering import Asked, ask
from dpfast.errors import ParameterError, Words
from dpfast.integrations.sql.dialects import Dialect, Kind
from dpfast.integrations.sql.parameters import Parameters
from dpfast.rows.filters import Every, Filter, Not, Test

__all__ = ["passes"]

_MOST_VALUES = 1000
_NEVER, _ALWAYS = "1 = 0", "1 = 1"
_LARGEST = sys.float_info.max

#: From a column's name to what stands for its values, what it holds, and its dtype.
Use: TypeAlias = "Callable[[str], tuple[str, Kind, pl.DataType]]"


def passes(where: Filter, schema: pl.Schema, use: Use, dialect: Dialect, parameters: Parameters) -> str:
    """Return a condition that is true of the rows that pass, and false or null of all others.

    Raises
    ------
    ColumnError
        If a column is of a dtype that the engine cannot be asked about.
    ParameterError
        If there are too many values.

    """
    if isinstance(where, Test):
        asked = ask(where, schema)
        value, kind, _ = use(asked.column)
        return f"({_Comparing(value, kind, dialect, parameters).sql(asked)})"
    parts = [passes(part, schema, use, dialect, parameters) for part in where.parts]
    if isinstance(where, Not):
        return f"(CASE WHEN {parts[0]} THEN 1 ELSE 0 END = 0)"
    return f"({(' AND ' if isinstance(where, Every) else ' OR ').join(parts)})"


class _Comparing:
    """Comparisons of one column.

    Parameters
    ----------
    value, kind
        What stands for its values, and what it holds.
    dialect, parameters
        The engine's words, and where values are bound.

    """

    def __init__(self, value: str, kind: Kind, dialect: Dialect, parameters: Parameters) -> None:
        self._value, self._kind, self._dialect, self._parameters = value, kind, dialect, parameters

    def sql(self, asked: Asked) -> str:
        """Return the condition."""
        if asked.asks == "nothing":
            return _NEVER
        if asked.asks == "null":
            return f"{self._value} IS NULL"
        if asked.asks == "nan":
            return self._is_nan() or _NEVER
        if asked.asks == "value":
            return self._but_nan(f"{self._value} IS NOT NULL")
        if asked.asks == "in":
            return self._among(asked.values)
        (wanted,) = asked.values
        compared = self._compared(asked.asks, wanted)
        return self._but_nan(compared) if asked.asks in (">", ">=", "!=") else compared

    def _is_nan(self) -> str:
        is_float = self._kind == "float" and self._dialect.is_nan
        return self._dialect.is_nan.format(self._value) if is_float else ""

    def _but_nan(self, condition: str) -> str:
        is_nan = self._is_nan()
        return f"{condition} AND NOT ({is_nan})" if is_nan and condition != _NEVER else condition

    def _among(self, values: tuple[Any, ...]) -> str:
        if len(values) > _MOST_VALUES:
            given, allowed = (
                Words(f"of {len(values):,} values"),
                f"of at most {_MOST_VALUES:,} where a database filters",
            )
            raise ParameterError("values", given, allowed, 'write engine="rows"')
        finite = [value for value in values if not _is_infinite(value) and not self._lacks(value)]
        found = [self._compared("==", value) for value in values if _is_infinite(value)]
        if finite:
            found.append(f"{self._value} IN ({', '.join(map(self._constant, finite))})")
        return " OR ".join(found) or _NEVER

    def _lacks(self, value: Any) -> bool:
        """Return whether a text has a character that is in none of the engine's."""
        return isinstance(value, str) and self._dialect.public == "postgresql" and "\0" in value

    def _beside_nul(self, asks: str, start: str) -> str:
        """Return a comparison with a text that has a NUL after its start: no text lies between the two."""
        if asks in ("==", "!="):
            return _NEVER if asks == "==" else f"{self._value} IS NOT NULL"
        return f"{self._value} {'<=' if asks in ('<', '<=') else '>'} {self._constant(start)}"

    def _compared(self, asks: str, wanted: Any) -> str:
        if _is_infinite(wanted):
            return self._beside_infinity(asks, wanted > 0)
        if self._lacks(wanted):
            return self._beside_nul(asks, wanted.partition("\0")[0])
        return f"{self._value} {'<>' if asks == '!=' else '=' if asks == '==' else asks} {self._constant(wanted)}"

    def _beside_infinity(self, asks: str, is_positive: bool) -> str:
        """Return a comparison with an infinity by the largest finite number, which every engine can be given."""
        beyond, within = (">", "<=") if is_positive else ("<", ">=")
        if asks == beyond:
            return _NEVER
        if asks == within:
            return self._but_nan(f"{self._value} IS NOT NULL")
        # A value that was bound and not used would be one too many.
        most = self._constant(_LARGEST if is_positive else -_LARGEST)
        condition = f"{self._value} {beyond if asks in ('==', beyond + '=') else within} {most}"
        # Where NaN is the largest number it would be beyond, or lie within nothing.
        return self._but_nan(condition)

    def _constant(self, wanted: Any) -> str:
        if isinstance(wanted, str):
            return self._dialect.values["string"].format(self._dialect.constant.format(wanted.encode().hex()))
        if isinstance(wanted, float):
            return self._parameters.bind(wanted, "double")
        number = int(wanted)
        # The smallest int64 is no literal of SQL.
        return f"(-{2**63 - 1} - 1)" if number == -(2**63) else str(number)


def _is_infinite(value: Any) -> bool:
    return isinstance(value, float) and math.isinf(value)
