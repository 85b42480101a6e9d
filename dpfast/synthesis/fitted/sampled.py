"""Some of the queries of a workload, as a workload."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.workloads import Workload
from dpfast.workloads.histograms import Numbers
from dpfast.workloads.shapes import Coefficients, checked_coefficients
from dpfast.workloads.workload import Place

__all__ = ["Sampled"]


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
