"""Single cells, and the total of all."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.workloads.histograms import Numbers, checked_histogram
from dpfast.workloads.shapes import SHAPE, Coefficients, Shape, check_sums, checked_coefficients
from dpfast.workloads.workload import Place, Workload

__all__ = ["Identity", "Total", "coordinates"]


def coordinates(shape: tuple[int, ...], cells: NDArray[np.int64]) -> pl.Series:
    """Return where cells lie: an integer each in one dimension, a list of integers in more."""
    if len(shape) == 1:
        return pl.Series(cells)
    return pl.Series(np.stack(np.unravel_index(cells, shape), axis=1)).arr.to_list()


class Identity(Workload):
    """Each cell's own count.

    Parameters
    ----------
    shape
        How many cells along each attribute.

    """

    def __init__(self, shape: Shape) -> None:
        self.shape = SHAPE.read("shape", shape)

    def __len__(self) -> int:
        return self.cells

    def answer(self, histogram: Numbers) -> NDArray[Any]:
        """Return a copy of the counts."""
        return checked_histogram(histogram, self.shape).copy()

    def transposed(self, coefficients: Coefficients) -> NDArray[np.float64]:
        """Return a copy of the coefficients, of `shape`."""
        return checked_coefficients(coefficients, len(self)).reshape(self.shape).copy()

    def answer_along(self, table: NDArray[Any]) -> NDArray[Any]:
        """Return the table, which is not copied."""
        return table

    def transposed_along(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the table, which is not copied."""
        return table

    def rows(self, start: Place, stop: Place) -> NDArray[np.uint8]:
        """Return rows with a single one."""
        start, stop = self._span(start, stop)
        return np.eye(stop - start, self.cells, start, dtype=np.uint8)

    @property
    def range(self) -> tuple[float, float]:
        """From 0, or 1 where there is but one cell, to 1."""
        return (0.0 if self.cells > 1 else 1.0), 1.0

    @property
    def binary(self) -> bool:
        """True."""
        return True

    @property
    def groups(self) -> NDArray[np.int64]:
        """All queries are disjoint."""
        return np.array([0, len(self)], np.int64)

    def frame(self) -> pl.DataFrame:
        """Return each query's ``cell``: its number, or its place along each attribute."""
        return pl.DataFrame({"cell": coordinates(self.shape, np.arange(self.cells))})

    def _gram(self) -> NDArray[np.float64]:
        return np.eye(self.cells)

    def energy(self, edges: NDArray[np.int64]) -> float:
        """Return the number of cells: each query has one in its block."""
        return float(self.cells)


class Total(Workload):
    """The one query that counts everything.

    Parameters
    ----------
    shape
        How many cells along each attribute.

    """

    def __init__(self, shape: Shape) -> None:
        self.shape = SHAPE.read("shape", shape)

    def __len__(self) -> int:
        return 1

    def answer(self, histogram: Numbers) -> NDArray[Any]:
        """Return the sum of all counts."""
        cells = checked_histogram(histogram, self.shape)
        check_sums(cells)
        return np.asarray(cells.sum(keepdims=True))

    def transposed(self, coefficients: Coefficients) -> NDArray[np.float64]:
        """Return the coefficient everywhere."""
        return np.full(self.shape, checked_coefficients(coefficients, 1)[0])

    def answer_along(self, table: NDArray[Any]) -> NDArray[Any]:
        """Return the sums along the middle axis."""
        return np.asarray(table.sum(axis=1, keepdims=True))

    def transposed_along(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return each coefficient in every cell along the middle axis: a view."""
        return np.broadcast_to(table, (len(table), self.cells, table.shape[2]))

    def rows(self, start: Place, stop: Place) -> NDArray[np.uint8]:
        """Return rows of ones."""
        start, stop = self._span(start, stop)
        return np.ones((stop - start, self.cells), np.uint8)

    @property
    def range(self) -> tuple[float, float]:
        """Every coefficient is 1."""
        return 1.0, 1.0

    @property
    def binary(self) -> bool:
        """True."""
        return True

    def frame(self) -> pl.DataFrame:
        """Return the bounds ``lower`` and ``upper`` of all cells, along each attribute."""
        bounds = {"lower": [0] * len(self.shape), "upper": list(self.shape)}
        return pl.DataFrame({name: values if len(values) == 1 else [values] for name, values in bounds.items()})

    def _gram(self) -> NDArray[np.float64]:
        return np.ones((self.cells, self.cells))

    def energy(self, edges: NDArray[np.int64]) -> float:
        """Return the sum of the blocks' sizes squared."""
        return float(np.square(np.diff(edges).astype(np.float64)).sum())
