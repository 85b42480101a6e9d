"""How a synthesis may measure, known before a row is read: each way for a range of numbers of records."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["BYTES_OF_CELL", "NORMAL95", "Way"]

BYTES_OF_CELL = 8
"""What a cell of a model or of a table of weights takes."""
NORMAL95 = 1.96
"""What the magnitude of normal noise of deviation 1 exceeds with probability 0.05."""


@dataclass(frozen=True)
class Way:
    """One way to measure, decided by public arguments alone.

    Attributes
    ----------
    method
        "histogram", "rounds" or "all at once".
    rounds
        How many sets of columns, or queries, are measured at most after the single columns.
    shares
        What the number of records, single columns, selections and all else get of the budget that is split.
    deviations
        Of the noise of each count that is measured after the single columns: the least and the largest.
    error95
        What the noise of one of those of the largest exceeds with probability 0.05.
    megabytes
        What the model takes, if that is known beforehand.
    columns
        The deviation of the noise of each single column's counts; None where it is not known beforehand.
    least, most
        Which numbers of records choose it; None for any.

    """

    method: str
    rounds: int
    shares: tuple[float, float, float, float]
    deviations: tuple[float, float]
    error95: float
    megabytes: float | None
    columns: tuple[float | None, ...]
    least: int | None = None
    most: int | None = None
