"""Any linear queries: a matrix, dense or sparse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Protocol, TypeAlias, TypeGuard

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from dpfast.arguments import Special
from dpfast.errors import ParameterError, Words
from dpfast.kernels.histograms.products import (
    LANES,
    multiply_columns,
    multiply_rows,
    multiply_sparse_columns,
    multiply_sparse_rows,
)
from dpfast.workloads.histograms import Numbers, array_of, checked_histogram, no_arrays
from dpfast.workloads.shapes import (
    SHAPE,
    Coefficients,
    OwnShape,
    Shape,
    check_size,
    check_sums,
    checked_coefficients,
    read_only,
)
from dpfast.workloads.workload import Place, Workload

__all__ = ["LARGEST_COEFFICIENT", "Matrix", "Rows", "Sparse", "SparseMatrix", "is_sparse"]

#: Errors are sums of squares.
LARGEST_COEFFICIENT = 1e60


class Sparse(Protocol):
    """A sparse array or matrix of SciPy, which is not needed here."""

    def tocsr(self) -> Any:
        """Return it by rows; SciPy's own types are not known here."""


def _no_rows() -> Iterator[object]:
    yield from no_arrays()
    yield from (3, [1, 2], np.ones((0, 3)), [["a", "b"]], [[1j, 2]], [[1.0, np.nan]], [[1.0, 1e300]])
    yield from (np.ones((2, 2), np.uint64), np.ones((2, 2), np.longdouble), np.zeros((1, 1), "M8[s]"))


#: Queries by cells, or queries by the axes of a histogram.
Rows: TypeAlias = Annotated[ArrayLike | Sparse, Special(_no_rows)]


def is_sparse(rows: Rows) -> TypeGuard[Sparse]:
    """Whether a matrix is sparse."""
    return hasattr(rows, "tocsr") and not isinstance(rows, type)


class _Numbers(Workload):
    """What dense and sparse matrices share.

    Attributes
    ----------
    numbers
        The coefficients that are kept.

    """

    numbers: NDArray[Any]
    _range: tuple[float, float]

    def _take(self, numbers: NDArray[Any], width: int, shape: Shape) -> None:
        """Check a matrix of so many columns and keep its numbers."""
        if numbers.dtype.kind not in "biuf" or numbers.dtype.itemsize > 8 or numbers.dtype == np.uint64:
            raise ParameterError(
                "rows",
                Words(f"of type {numbers.dtype}"),
                "of Booleans, integers that int64 holds, or floats of 64 bits",
            )
        self.shape = SHAPE.read("shape", shape)
        if width != self.cells:
            raise ParameterError(
                "rows", Words(f"{width:,} cells wide"), f"{self.cells:,} cells wide, as its shape says"
            )
        if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
            raise ParameterError("rows", Words("NaN or infinite somewhere"), "finite")
        if (
            numbers.dtype.kind == "f"
            and numbers.size
            and max(float(numbers.max()), -float(numbers.min())) > LARGEST_COEFFICIENT
        ):
            raise ParameterError("rows", Words("larger somewhere"), "of numbers up to 1e60, whose squares add up")
        if numbers.dtype == np.bool_:
            numbers = numbers.view(np.uint8)
        if numbers.dtype == np.float16 or not numbers.dtype.isnative:
            numbers = numbers.astype(np.float64 if numbers.dtype.kind == "f" else np.int64)
        self.numbers = read_only(numbers)

    def _answering(self, histogram: Numbers) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the histogram in the type of the answers, and room for these."""
        cells = checked_histogram(histogram, self.shape)
        if self.numbers.dtype.kind == "f":
            cells = cells.astype(np.float64, copy=False)
        check_sums(cells, max(1, *(abs(int(bound)) for bound in self._range)))
        return read_only(cells), np.empty(len(self), cells.dtype)

    @property
    def range(self) -> tuple[float, float]:
        """The least and the largest number in the matrix."""
        return self._range

    @property
    def binary(self) -> bool:
        """Whether the matrix is of integers or Booleans, all 0 or 1."""
        return self.numbers.dtype.kind in "iu" and self._range[0] >= 0 and self._range[1] <= 1


class Matrix(_Numbers):
    """Queries that are the rows of a dense matrix, which is kept by reference where its rows lie side by side.

    Parameters
    ----------
    rows
        An array of numbers or Booleans: queries by cells, or queries by the axes of a histogram.
    shape
        The histogram's shape; None for the one that the array has.

    """

    def __init__(self, rows: Rows, shape: OwnShape = None) -> None:
        array = array_of(rows, "rows")
        if array.ndim < 2 or array.size == 0:
            raise ParameterError("rows", Words(f"of shape {array.shape}"), "of queries by cells, at least one by one")
        table = np.ascontiguousarray(array).reshape(len(array), -1)
        self._take(table, table.shape[1], array.shape[1:] if shape is None else shape)
        self._range = float(self.numbers.min()), float(self.numbers.max())

    def __len__(self) -> int:
        return len(self.numbers)

    def answer(self, histogram: Numbers) -> NDArray[Any]:
        """Return the matrix times the histogram."""
        cells, out = self._answering(histogram)
        if self.numbers.dtype == np.float64:
            np.matmul(self.numbers, cells, out=out)
        else:
            multiply_rows(self.numbers, cells, np.empty(LANES, out.dtype), out)
        return out

    def answer_along(self, table: NDArray[Any]) -> NDArray[Any]:
        """Return the matrix times the middle axis of a table."""
        return np.asarray(np.matmul(self.numbers, table))

    def transposed(self, coefficients: Coefficients) -> NDArray[np.float64]:
        """Return the coefficients times the matrix."""
        given = checked_coefficients(coefficients, len(self))
        if self.numbers.dtype == np.float64:
            return np.asarray(given @ self.numbers).reshape(self.shape)
        out = np.zeros(self.cells)
        multiply_columns(self.numbers, read_only(given), out)
        return out.reshape(self.shape)

    def transposed_along(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the transposed matrix times the middle axis of a table."""
        return np.asarray(np.matmul(self.numbers.T, table))

    def rows(self, start: Place, stop: Place) -> NDArray[Any]:
        """Return rows of the matrix: uint8 if `binary`."""
        start, stop = self._span(start, stop)
        rows: NDArray[Any] = self.numbers[start:stop]
        return rows.astype(np.uint8, copy=False) if self.binary else rows

    def energy(self, edges: NDArray[np.int64]) -> float:
        """Return the sum of squares, in one pass over the matrix: an answer would take as long for each block."""
        return self._energy_of_rows(edges)

    def frame(self) -> pl.DataFrame:
        """Return each query's ``row`` in the matrix."""
        return pl.DataFrame({"row": np.arange(len(self))})


class SparseMatrix(_Numbers):
    """Queries that are the rows of a sparse matrix.

    Parameters
    ----------
    rows
        A sparse array or matrix of SciPy, of any format: queries by cells.
    shape
        The histogram's shape; None for one dimension.

    """

    def __init__(self, rows: Sparse, shape: OwnShape = None) -> None:
        matrix = rows.tocsr()
        if len(matrix.shape) != 2 or 0 in matrix.shape:
            raise ParameterError("rows", Words(f"of shape {matrix.shape}"), "of queries by cells, at least one by one")
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        self._queries, width = (int(length) for length in matrix.shape)
        check_size(self._queries, "rows", "queries")
        self._offsets = read_only(matrix.indptr.astype(np.int64))
        self._places = read_only(matrix.indices.astype(np.int64))
        self._take(np.ascontiguousarray(matrix.data), width, width if shape is None else shape)
        held = self.numbers
        if held.size < self._queries * width:
            self._range = float(held.min(initial=0)), float(held.max(initial=0))
        else:
            self._range = float(held.min()), float(held.max())

    def __len__(self) -> int:
        return self._queries

    def answer(self, histogram: Numbers) -> NDArray[Any]:
        """Return the matrix times the histogram."""
        cells, out = self._answering(histogram)
        multiply_sparse_rows(self._offsets, self._places, self.numbers, cells, out)
        return out

    def transposed(self, coefficients: Coefficients) -> NDArray[np.float64]:
        """Return the coefficients times the matrix."""
        given = checked_coefficients(coefficients, len(self))
        out = np.zeros(self.cells)
        multiply_sparse_columns(self._offsets, self._places, self.numbers, read_only(given), out)
        return out.reshape(self.shape)

    def rows(self, start: Place, stop: Place) -> NDArray[Any]:
        """Return rows of the matrix, dense: uint8 if `binary`."""
        start, stop = self._span(start, stop)
        out = np.zeros((stop - start, self.cells), np.uint8 if self.binary else self.numbers.dtype)
        queries = np.repeat(np.arange(stop - start), np.diff(self._offsets[start : stop + 1]))
        own = slice(self._offsets[start], self._offsets[stop])
        out[queries, self._places[own]] = self.numbers[own]
        return out

    def frame(self) -> pl.DataFrame:
        """Return each query's ``row`` in the matrix and how many coefficients it has."""
        return pl.DataFrame({"row": np.arange(len(self)), "coefficients": np.diff(self._offsets)})
