"""What a user may ask, with its exact sensitivity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Measure"]


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
