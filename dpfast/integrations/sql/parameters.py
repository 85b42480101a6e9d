"""Values of a statement, which are bound and never written into it."""

from __future__ import annotations

from typing import Any, Literal

from dpfast.integrations.sql.dialects import Dialect

__all__ = ["Parameters"]


class Parameters:
    """The bound values of one statement, in the order of their numbers.

    Examples
    --------
    >>> from dpfast.integrations.sql.dialects import POSTGRESQL
    >>> parameters = Parameters(POSTGRESQL)
    >>> parameters.bind(0.5, "double"), parameters.values
    ('CAST($1 AS double precision)', [0.5])
    """

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.values: list[Any] = []

    def bind(self, value: Any, type_name: Literal["double", "text"] | None = None) -> str:
        """Return what stands for the value in the statement, of the type of that name."""
        self.values.append(value)
        marker = self.dialect.marker.format(len(self.values))
        return marker if type_name is None else f"CAST({marker} AS {getattr(self.dialect, type_name)})"
