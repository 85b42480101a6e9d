"""Measures of many numbers a group, for engines whose answers have a column for each: taken apart, and put together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dpfast.errors import ParameterError
from dpfast.errors import Words as Shown
from dpfast.queries import Measure

__all__ = ["expanded", "gathered", "refuse_many"]

#: Databases have limits of their own for the columns of a result.
_MOST_COLUMNS = 1000


def expanded(measures: Sequence[Measure]) -> list[Measure]:
    """Return measures of one number a group each: the bins of a histogram one by one.

    Examples
    --------
    >>> from dpfast.queries import bins_measure
    >>> [measure.edges for measure in expanded([Measure("rows"), bins_measure("x", (0.0, 1.0, 5.0))])]
    [(), (0.0, 1.0), (1.0, 5.0)]

    """
    return [single for measure in measures for single in _singles(measure)]


def gathered(measures: Sequence[Measure], columns: Sequence[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    """Return the figures of measures from those of `expanded` ones: a matrix with a row for each group, of bins."""
    rest: Iterator[NDArray[np.int64]] = iter(columns)
    return [
        np.stack([next(rest) for _ in _singles(measure)], axis=1) if measure.kind == "bins" else next(rest)
        for measure in measures
    ]


def refuse_many(measures: Sequence[Measure], engine: str) -> None:
    """Refuse more columns than an engine is asked for."""
    count = len(expanded(measures))
    if count > _MOST_COLUMNS and any(measure.kind == "bins" for measure in measures):
        allowed = f"at most {_MOST_COLUMNS} where {engine} aggregates"
        raise ParameterError("edges", Shown(f"{count} figures a group"), allowed, 'take fewer, or write engine="rows"')


def _singles(measure: Measure) -> tuple[Measure, ...]:
    return measure.single_bins() if measure.kind == "bins" else (measure,)
