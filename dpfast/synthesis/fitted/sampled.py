"""Workloads made of another one: some of its queries, or the number of records beside them."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.workloads import Workload
from dpfast.workloads.histograms import Numbers
from dpfast.workloads.shapes import Coefficients, checked_coefficients
from dpfast.workloads.workload import Place

__all__ = ["Sampled", "WithTotal"]


class Sampled(Workload):
    """Queries of a workload by their numbers, in any order and as often as they stand there."""

    def __init__(self, workload: Workload, queries: NDArray[np.int64]) -> None:
        self.shape = workload.shape
        self.queries = queries
        self._workload = workload

    def __len__(self) -> int:
        """Return the number of queries."""
        return self.queries.size

    def answer(self, histogram: Numbers) -> NDArray[Any]:
        """Answer all queries and keep these."""
        return self._workload.answer(histogram)[self.queries]

    def transposed(self, coefficients: Coefficients) -> NDArray[np.float64]:
        """Add up coefficients of one query, and leave the other queries out."""
        every = np.zeros(len(self._workload))
        np.add.at(every, self.queries, checked_coefficients(coefficients, len(self)))
        return self._workload.transposed(every)

    def rows(self, start: Place, stop: Place) -> NDArray[Any]:
        """Return rows one by one."""
        rows = [self._workload.rows(query, query + 1) for query in self.queries[start:stop].tolist()]
        return np.concatenate(rows) if rows else self._workload.rows(0, 0)

    @property
    def range(self) -> tuple[float, float]:
        """The range of all the workload's queries."""
        return self._workload.range

    @property
    def binary(self) -> bool:
        """Whether all the workload's queries are."""
        return self._workload.binary

    def frame(self) -> pl.DataFrame:
        """Return what each query asks."""
        return self._workload.frame()[self.queries]


class WithTotal(Workload):
    """A workload, and as its last query the number of records times a weight."""

    def __init__(self, workload: Workload, weight: float) -> None:
        self.shape = workload.shape
        self._workload = workload
        self._weight = 1 if weight == 1 else weight

    def __len__(self) -> int:
        """Return the number of queries."""
        return len(self._workload) + 1

    def answer(self, histogram: Numbers) -> NDArray[Any]:
        """Answer all queries and add up the cells."""
        return np.append(self._workload.answer(histogram), np.sum(histogram) * self._weight)

    def transposed(self, coefficients: Coefficients) -> NDArray[np.float64]:
        """Return the sum of the queries, each times its coefficient."""
        given = checked_coefficients(coefficients, len(self))
        cells: NDArray[np.float64] = self._workload.transposed(given[:-1]) + given[-1] * self._weight
        return cells

    def rows(self, start: Place, stop: Place) -> NDArray[Any]:
        """Return rows, the last one all alike."""
        rows = self._workload.rows(start, min(stop, len(self) - 1))
        last = np.full((int(stop >= len(self)), self.cells), self._weight)
        return np.concatenate([rows, last.astype(np.result_type(rows, last) if self._weight != 1 else rows.dtype)])

    @property
    def range(self) -> tuple[float, float]:
        """The range of the workload's queries and the weight."""
        low, high = self._workload.range
        return min(low, float(self._weight)), max(high, float(self._weight))

    @property
    def binary(self) -> bool:
        """Whether the workload is and the weight is 1."""
        return self._workload.binary and self._weight == 1

    def frame(self) -> pl.DataFrame:
        """Return what each query asks; of the total nothing."""
        frame = self._workload.frame()
        return pl.concat([frame, frame.clear(1)])
