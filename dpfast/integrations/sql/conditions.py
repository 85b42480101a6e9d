"""Whether a value fulfils a public condition, as SQL."""

from __future__ import annotations

import datetime
import math
import sys
from typing import Any

from dpfast.errors import ColumnError
from dpfast.integrations.sql.dialects import Dialect, Kind
from dpfast.integrations.sql.parameters import Parameters
from dpfast.queries import Measure

__all__ = ["condition", "constant"]

_NEVER = "1 = 0"
_EPOCH = datetime.date(1970, 1, 1)


def condition(measure: Measure, value: str, kind: Kind, dialect: Dialect, parameters: Parameters) -> str:
    """Return SQL that is true where a value that is there fulfils the condition of a measure.

    Parameters
    ----------
    measure
        Of the kind ``"matches"``.
    value, kind
        The measure's column in the form of ``Dialect.values``, and what it holds.
    dialect, parameters
        The engine's words, and where values are bound.

    """
    asked = measure.condition
    assert asked is not None
    if asked.among:
        constants = [constant(wanted, dialect) for wanted in asked.among]
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
    if kind not in ("integer", "unsigned", "boolean"):
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


def constant(wanted: Any, dialect: Dialect) -> str | None:
    """Return a public value as what the engine's values are compared with; None for what no column there can hold."""
    if isinstance(wanted, str):
        if dialect.public == "postgresql" and "\0" in wanted:
            return None
        return dialect.values["string"].format(dialect.constant.format(wanted.encode().hex()))
    if isinstance(wanted, datetime.date):
        return f"CAST({(wanted - _EPOCH).days} AS {dialect.bigint})"
    if int(wanted) == -(2**63):
        return f"(-{2**63 - 1} - 1)"
    return str(int(wanted))
