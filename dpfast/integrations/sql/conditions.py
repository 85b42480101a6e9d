"""Whether a value fulfils a public condition, as SQL."""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from typing import Any

import polars as pl

from dpfast.columns.values import values_of
from dpfast.errors import ColumnError
from dpfast.integrations.sql.dialects import Dialect, Kind
from dpfast.integrations.sql.parameters import Parameters
from dpfast.queries import Measure

__all__ = ["condition", "constant"]

_NEVER = "1 = 0"


def condition(
    measure: Measure, value: str, kind: Kind, dtype: pl.DataType, dialect: Dialect, parameters: Parameters
) -> str:
    """Return SQL that is true where a value that is there fulfils the condition of a measure.

    Parameters
    ----------
    measure
        Of the kind ``"matches"``.
    value, kind, dtype
        The measure's column in the form of ``Dialect.values``, what it holds, and its dtype.
    dialect, parameters
        The engine's words, and where values are bound.

    """
    asked = measure.condition
    assert asked is not None
    if asked.among:
        constants = [constant(wanted, dialect, dtype) for wanted in asked.among]
        found = [text for text in constants if text is not None]
        return f"{value} IN ({', '.join(found)})" if found else _NEVER
    if kind == "float":
        least, most = asked.floats()
        # Only an infinity is beyond all floats.
        largest_float = sys.float_info.max
        if least == math.inf:
            return f"{value} > {parameters.bind(largest_float, 'double')}"
        if most == -math.inf:
            return f"{value} < {parameters.bind(-largest_float, 'double')}"
        limits = [f"{value} >= {parameters.bind(least, 'double')}"] if least > -math.inf else []
        limits += [f"{value} <= {parameters.bind(most, 'double')}"] if most < math.inf else []
        return " AND ".join(limits) or "1 = 1"
    if isinstance(dtype, pl.Decimal):
        asked = asked.times(10**dtype.scale)
    elif kind not in ("integer", "unsigned", "boolean"):
        raise ColumnError(f"{dialect.name} cannot compare the column {measure.column!r} with numbers; cast it first")
    lowest, largest = (0, 2**64 - 1) if kind == "unsigned" else (-(2**63), 2**63 - 1)
    first, last = asked.integers(lowest, largest)
    if first > last:
        return _NEVER
    limits = [_above(value, first)] if first > lowest else []
    limits += [f"{value} <= {last}"] if last < largest else []
    return " AND ".join(limits) or "1 = 1"


def _above(value: str, first: int) -> str:
    """Return a comparison in which no literal is the smallest int64, which is none in SQL."""
    return f"{value} > {first - 1}" if first > -(2**63) + 1 else f"{value} >= {first}"


def constant(wanted: Any, dialect: Dialect, dtype: pl.DataType) -> str | None:
    """Return a public value as what the engine's values are compared with; None for what no column there can hold."""
    if isinstance(wanted, str):
        if dialect.public == "postgresql" and "\0" in wanted:
            return None
        return dialect.values["string"].format(dialect.constant.format(wanted.encode().hex()))
    if isinstance(dtype, (pl.Decimal, pl.Date, pl.Datetime)):
        (ticks,) = values_of(dtype).edges((wanted,), "") or (Fraction(1, 2),)
        return f"CAST({ticks} AS {dialect.bigint})" if ticks.denominator == 1 and abs(ticks) < 2**63 else None
    if int(wanted) == -(2**63):
        return f"(-{2**63 - 1} - 1)"
    return str(int(wanted))
