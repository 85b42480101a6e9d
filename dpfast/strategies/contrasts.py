"""Contrasts of one attribute: whole-number queries that say how its values differ, and nothing of how many there are.

Of a product of them over several attributes that is what these say together and no fewer of them do: a residual.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.strategies.axes import bounds_of
from dpfast.strategies.identity import squares_of
from dpfast.strategies.strategy import by_blocks
from dpfast.workloads.workload import Union, Workload

__all__ = ["Contrasts", "EvenContrasts", "MatrixContrasts", "means_of"]

Floats = NDArray[np.float64]


def means_of(workload: Workload) -> Floats:
    """Return the mean coefficient of each query of one attribute."""
    return np.asarray(workload.answer(np.ones(workload.cells, np.int64)), np.float64) / workload.cells


class Contrasts(ABC):
    """Whole-number queries R of one attribute of n values, each of whose coefficients add up to 0.

    A query w is its mean times the total, and a rest r whose coefficients add up to 0. The rest is answered by least
    squares from R x with independent noise of variance 1: with the variance r (R'R)^+ r'.

    Attributes
    ----------
    size
        How many values the attribute has, n.
    rows
        How many queries there are.
    largest
        The largest magnitude of a coefficient.
    magnitudes, squares
        The largest sum of magnitudes, and of squares, in any column of R: how far one record moves R x.
    inner
        The least inner product of two columns; 0 of a single column.

    """

    size: int
    rows: int
    largest: int
    magnitudes: int
    squares: int
    inner: int

    @abstractmethod
    def measure(self, table: NDArray[np.int64], axis: int) -> NDArray[np.int64]:
        """Return R times a table along an axis, exactly, as long as the numbers fit into int64."""

    @abstractmethod
    def estimate(self, table: Floats, axis: int) -> Floats:
        """Return, along an axis, the values of mean 0 that least squares makes of measurements."""

    @abstractmethod
    def variances(self, workload: Workload) -> Floats:
        """Return r (R'R)^+ r' for each query of a workload over this attribute."""

    def error(self, workload: Workload) -> float:
        """Return the sum of `variances`."""
        return float(self.variances(workload).sum())

    @property
    @abstractmethod
    def of_values(self) -> Floats:
        """The variance of each value's own count, as `variances` has it."""


class EvenContrasts(Contrasts):
    """n I - J, J being all ones: each value's count, n times, less the total.

    All values are treated alike. For workloads that do so, too, no others have a smaller error.

    Parameters
    ----------
    size
        How many values the attribute has.

    Examples
    --------
    >>> import dpfast as dpf
    >>> EvenContrasts(3).measure(np.array([5, 1, 0]), 0)
    array([ 9, -3, -6])
    >>> EvenContrasts(3).variances(dpf.workloads.prefix(3)).round(4)
    array([0.0741, 0.0741, 0.    ])

    """

    def __init__(self, size: int) -> None:
        self.size = self.rows = size
        self.largest = max(size - 1, 1)
        self.magnitudes, self.squares = 2 * (size - 1), size * (size - 1)
        self.inner = -size if size > 1 else 0

    def measure(self, table: NDArray[np.int64], axis: int) -> NDArray[np.int64]:
        """See `Contrasts.measure`."""
        measured: NDArray[np.int64] = self.size * table - table.sum(axis=axis, keepdims=True)
        return measured

    def estimate(self, table: Floats, axis: int) -> Floats:
        """See `Contrasts.estimate`."""
        estimated: Floats = (table - table.mean(axis=axis, keepdims=True)) / self.size
        return estimated

    def variances(self, workload: Workload) -> Floats:
        """See `Contrasts.variances`: the squares of the rest over n squared."""
        rests = squares_of(workload) - self.size * np.square(means_of(workload))
        return np.asarray(np.maximum(rests, 0.0) / self.size**2, np.float64)

    @property
    def of_values(self) -> Floats:
        """See `Contrasts.of_values`."""
        return np.full(self.size, (self.size - 1) / self.size**3)


class MatrixContrasts(Contrasts):
    """Contrasts of a matrix of one's own, which tells all values apart.

    Parameters
    ----------
    matrix
        Queries by values, int64; the coefficients of a query add up to 0.

    Raises
    ------
    numpy.linalg.LinAlgError
        Other values have the same measurements: the matrix has not the rank n - 1, or as good as not.

    Examples
    --------
    >>> import dpfast as dpf
    >>> steps = MatrixContrasts(np.array([[1, -1, 0], [0, 1, -1], [1, 0, -1]]))
    >>> steps.magnitudes, steps.squares, steps.inner
    (2, 2, -1)
    >>> steps.variances(dpf.workloads.prefix(3)).round(4)
    array([0.2222, 0.2222, 0.    ])

    """

    def __init__(self, matrix: NDArray[np.int64]) -> None:
        assert not matrix.sum(axis=1).any()
        self.matrix = matrix
        self.rows, self.size = matrix.shape
        self.largest = int(np.abs(matrix).max())
        gram = matrix.T @ matrix
        self.magnitudes, self.squares = int(np.abs(matrix).sum(axis=0).max()), int(gram.diagonal().max())
        self.inner = int(gram.min())
        values, vectors = np.linalg.eigh(gram.astype(np.float64))
        # The least eigenvalue is that of the total, 0.
        if not values[1] > 1e-9 * values[-1]:
            raise np.linalg.LinAlgError("contrasts do not tell all values apart")
        kept = vectors[:, 1:]
        self.covariance: Floats = np.asarray((kept / values[1:]) @ kept.T, np.float64)
        self._inverse: Floats = np.asarray(self.covariance @ matrix.T, np.float64)

    def measure(self, table: NDArray[np.int64], axis: int) -> NDArray[np.int64]:
        """See `Contrasts.measure`."""
        return _times(self.matrix, table, axis)

    def estimate(self, table: Floats, axis: int) -> Floats:
        """See `Contrasts.estimate`."""
        return _times(self._inverse, table, axis)

    def variances(self, workload: Workload) -> Floats:
        """See `Contrasts.variances`: of ranges from prefix sums of the covariance, of others row by row."""
        if isinstance(workload, Union):
            return np.concatenate([self.variances(part) for part in workload.parts])
        bounds = bounds_of(workload)
        if bounds is None:
            return by_blocks(workload, self._of_rows)
        lower, upper = bounds
        sums = self._sums
        squares = sums[upper, upper] - 2 * sums[lower, upper] + sums[lower, lower]
        return np.asarray(np.maximum(squares, 0.0), np.float64)

    @cached_property
    def _sums(self) -> Floats:
        """The covariance's sums over the first cells of both axes."""
        sums = np.zeros((self.size + 1, self.size + 1))
        sums[1:, 1:] = self.covariance.cumsum(axis=0).cumsum(axis=1)
        return sums

    def _of_rows(self, rows: Floats) -> Floats:
        """Return the variances of queries that are rows of a matrix."""
        return np.asarray(np.maximum(np.einsum("qi,qi->q", rows @ self.covariance, rows), 0.0), np.float64)

    @property
    def of_values(self) -> Floats:
        """See `Contrasts.of_values`."""
        return np.diag(self.covariance).copy()


def _times(matrix: NDArray[Any], table: NDArray[Any], axis: int) -> NDArray[Any]:
    """Return a matrix times a table along an axis."""
    changed: NDArray[Any] = np.moveaxis(np.tensordot(matrix, table, axes=(1, axis)), 0, axis)
    return changed
