"""Any linear queries: a matrix, dense or sparse."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.errors import ParameterError
from dpfast.workloads.shapes import check_sums, checked_coefficients, checked_shape
from dpfast.workloads.workload import Workload, checked_histogram

__all__ = ["Matrix"]


class Matrix(Workload):
    """Queries that are the rows of a dense matrix, which is kept by reference.

    Parameters
    ----------
    rows
        An array of queries by cells of numbers or Booleans; or queries by the axes of `shape`.
    shape
        The histogram's shape; None for the one that the array has.

    """

    def __init__(self, rows: Any, shape: Any = None) -> None:
        array = np.asarray(rows)
        if array.ndim < 2 or array.dtype.kind not in "biuf" or array.size == 0:
            raise ParameterError(
                "matrix", f"of shape {array.shape} and type {array.dtype}", "numbers or Booleans, queries by cells"
            )
        self.shape = checked_shape(array.shape[1:] if shape is None else shape)
        if array[0].size != self.cells:
            raise ParameterError("matrix", f"{array[0].size:,} cells wide", f"{self.cells:,} cells wide, as shape says")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ParameterError("matrix", "NaN or infinite somewhere", "finite")
        if array.dtype == np.bool_:
            array = array.view(np.uint8)
        self._matrix = array.reshape(len(array), -1)
        self._range = float(array.min()), float(array.max())
        self._exact = array.dtype.kind in "iu"
        self._binary = bool(self._exact and set(np.unique(self._range)) <= {0.0, 1.0})

    def __len__(self) -> int:
        return len(self._matrix)

    def answer(self, histogram: Any) -> NDArray[Any]:
        """Return the matrix times the histogram."""
        cells = checked_histogram(histogram, self.shape)
        if self._exact and cells.dtype.kind == "i":
            check_sums(cells, max(1, *(abs(int(bound)) for bound in self._range)))
            return np.concatenate([block.astype(np.int64) @ cells for block in self.blocks()])
        return np.concatenate([block.astype(np.float64) @ cells.astype(np.float64) for block in self.blocks()])

    def transposed(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the coefficients times the matrix."""
        given = checked_coefficients(coefficients, len(self))
        out = np.zeros(self.cells)
        place = 0
        for block in self.blocks():
            out += given[place : place + len(block)] @ block.astype(np.float64)
            place += len(block)
        return out.reshape(self.shape)

    def rows(self, start: int, stop: int) -> NDArray[Any]:
        """Return rows of the matrix."""
        return self._matrix[start:stop]

    @property
    def range(self) -> tuple[float, float]:
        """The least and the largest number in the matrix."""
        return self._range

    @property
    def binary(self) -> bool:
        """Whether the matrix is of integers or Booleans, all 0 or 1."""
        return self._binary

    def frame(self) -> pl.DataFrame:
        """Return each query's ``row`` in the matrix."""
        return pl.DataFrame({"row": np.arange(len(self))})
