"""What a user may ask, with its exact sensitivity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from dpfast.errors import ParameterError

__all__ = ["Bins", "Measure"]


@dataclass(frozen=True)
class Bins:
    """A key made of a numeric column and public edges: value x lies in the bin ``edges[i] <= x < edges[i + 1]``.

    A bin is called by its left edge, in a key column of the column's name: Int64 if all edges are integers,
    else Float64. Values below the first edge, from the last edge on, NaN and null belong to the null key. Values
    are compared as float64.

    Parameters
    ----------
    column
        A column of integers or floats.
    edges
        At least two finite numbers, increasing. They are public: choose them without looking at the data.

    Raises
    ------
    ParameterError
        If the edges are not numbers that float64 holds exactly, not finite or not increasing.

    Examples
    --------
    >>> Bins("hour", (0, 6, 12, 18, 24)).labels
    (0, 6, 12, 18)
    """

    column: str
    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        allowed = "at least two finite, increasing numbers"
        if not isinstance(self.column, str):
            raise ParameterError("column", self.column, "a column's name")
        if isinstance(self.edges, (str, bytes)):
            raise ParameterError("edges", self.edges, allowed)
        try:
            edges = tuple(self.edges)
            exact = all(not isinstance(edge, (str, bytes, bool)) and float(edge) == edge for edge in edges)
        except (TypeError, ValueError, OverflowError):
            exact = False
        if not exact or len(edges) < 2 or not all(math.isfinite(edge) for edge in edges):
            raise ParameterError("edges", self.edges, allowed)
        if not all(left < right for left, right in zip(edges, edges[1:], strict=False)):
            raise ParameterError("edges", self.edges, allowed)
        whole = all(float(edge).is_integer() and -(2**53) <= edge <= 2**53 for edge in edges)
        object.__setattr__(self, "edges", tuple((int if whole else float)(edge) for edge in edges))

    @property
    def labels(self) -> tuple[float, ...]:
        """The bins' names: each one's left edge."""
        return self.edges[:-1]


@dataclass(frozen=True)
class Measure:
    """One exact integer aggregate per group, from which answers are made.

    A row contributes

    - ``"rows"``: 1;
    - ``"values"``: 1 where ``column`` is neither null nor NaN, else 0;
    - ``"sum"``: ``clip(round_half_even(x / 2**step_exponent), lower, upper) - centre``, 0 where x is null or NaN.

    ``lower``, ``upper`` and ``centre`` count steps of ``2**step_exponent``; infinities are clipped like any
    other value. The largest magnitude of a contribution times 2**38 rows stays below 2**62.
    """

    kind: Literal["rows", "values", "sum"]
    column: str | None = None
    step_exponent: int = 0
    lower: int = 0
    upper: int = 1
    centre: int = 0
