"""Single cells, and the total of all."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.workloads.histograms import Numbers, checked_histogram
from dpfast.workloads.shapes import (
    ANY_SHAPE,
    SHAPE,
    AnyShape,
    Coefficients,
    Shape,
    check_sums,
    checked_coefficients,
)
from dpfast.workloads.workload import Place, Workload

__all__ = ["Identity", "Total", "places_of"]


def places_of(coordinates: NDArray[np.int64]) -> pl.Series:
    """Return coordinates (cells by axes) as a column: integers in one dimension, lists of integers in more."""
    return pl.Series(coordinates[:, 0]) if coordinates.shape[1] == 1 else pl.Series(coordinates).arr.to_list()


class Identity(Workload):
    """Each cell's own count.

    Parameters
    ----------
    shape
        How many cells along each attribute.

    """

    binary = True

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
    def groups(self) -> NDArray[np.int64]:
        """All queries are disjoint."""
        return np.array([0, len(self)], np.int64)

    def frame(self) -> pl.DataFrame:
        """Return each query's ``cell``: its number, or its place along each attribute."""
        cells = np.unravel_index(np.arange(self.cells), self.shape)
        return pl.DataFrame({"cell": places_of(np.stack(cells, axis=1))})

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

    binary = True
    range = 1.0, 1.0

    def __init__(self, shape: AnyShape) -> None:
        self.shape = ANY_SHAPE.read("shape", shape)

    def __len__(self) -> int:
        return 1

    def answer(self, histogram: Numbers) -> NDArray[Any]:
        """Return the sum of all counts."""
        cells = checked_histogram(histogram, self.shape)
        check_sums(cells)
        return np.asarray(cells.sum(keepdims=True))

    def transposed(self, coefficients: Coefficients) -> NDArray[np.float64]:
        """Return the coefficient everywhere."""
        self.check_cells()
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

    def frame(self) -> pl.DataFrame:
        """Return the bounds ``lower`` and ``upper`` of all cells, along each attribute."""
        upper = np.array([self.shape])
        return pl.DataFrame({"lower": places_of(np.zeros_like(upper)), "upper": places_of(upper)})

    def _gram(self) -> NDArray[np.float64]:
        return np.ones((self.cells, self.cells))

    def energy(self, edges: NDArray[np.int64]) -> float:
        """Return the sum of the blocks' sizes squared."""
        return float(np.square(np.diff(edges).astype(np.float64)).sum())
