"""Values of a statement, which are bound and never written into it."""

from __future__ import annotations

from typing import Any, Literal

from dpfast.integrations.sql.dialects import Dialect

__all__ = ["Parameters"]


class Parameters:
    """The bound values of one statement, in the order of their numbers.

    Parameters
    ----------
    dialect
        The engine's words.
    written
        Whether values are written into the statement after all, where nothing can be bound to it (DuckDB): strings as
        hexadecimal digits, which no value can leave.

    Examples
    --------
    >>> from dpfast.integrations.sql.dialects import POSTGRESQL
    >>> parameters = Parameters(POSTGRESQL)
    >>> parameters.bind(0.5, "double"), parameters.values
    ('CAST($1 AS double precision)', [0.5])
    """

    def __init__(self, dialect: Dialect, *, written: bool = False) -> None:
        self.dialect, self.written = dialect, written
        self.values: list[Any] = []

    def bind(self, value: Any, type_name: Literal["double", "text"] | None = None) -> str:
        """Return what stands for the value in the statement, of the type of that name."""
        if self.written:
            return _literal(value)
        self.values.append(value)
        marker = self.dialect.marker.format(len(self.values))
        return marker if type_name is None else f"CAST({marker} AS {getattr(self.dialect, type_name)})"


def _literal(value: Any) -> str:
    """Return a value as an expression of DuckDB."""
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, str):
        return f"decode(unhex('{value.encode().hex()}'))"
    return f"CAST('{value!r}' AS {'DOUBLE' if isinstance(value, float) else 'HUGEINT'})"
