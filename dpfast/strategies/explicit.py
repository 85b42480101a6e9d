"""A strategy that is a matrix written out, for small domains."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast.arguments import Special
from dpfast.errors import ParameterError, Words
from dpfast.strategies.strategy import LARGEST_DENSE, LineStrategy
from dpfast.workloads.histograms import array_of, no_arrays
from dpfast.workloads.shapes import SHAPE, OwnShape

__all__ = ["Explicit", "matrix", "rounded"]

#: Real matrices are rounded to multiples of 2**-16 of their largest column.
_FINENESS = 16

#: A column's squares, of as many numbers of that size at most, add up to at most 2**62: norms in int64 never wrap.
_LARGEST_ROWS, _LARGEST_NUMBER = 2**22, 2**20


class Explicit(LineStrategy):
    """A matrix of whole numbers, kept as it is measured: norms and inner products are read off it, exactly."""

    def __init__(self, shape: tuple[int, ...], numbers: NDArray[np.int64], name: str) -> None:
        self.shape = shape
        self.name = name
        # The norms are those of what is measured, so nobody may write to the array.
        numbers.flags.writeable = False
        self.numbers = numbers
        magnitudes = np.abs(numbers)
        self.l1, self.row = int(magnitudes.sum(axis=0).max()), int(magnitudes.sum(axis=1).max())
        self.l2_squared = int((numbers**2).sum(axis=0).max())

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.numbers)

    def measure_rows(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """See `LineStrategy.measure_rows`."""
        return np.asarray(rows @ self.numbers.T)

    def reconstruct_rows(self, noisy: NDArray[np.float64]) -> NDArray[np.float64]:
        """See `LineStrategy.reconstruct_rows`."""
        return noisy @ self._inverse.T

    def covariance(self) -> NDArray[np.float64]:
        """See `Strategy.covariance`."""
        return self._inverse @ self._inverse.T

    @cached_property
    def inner(self) -> int:
        """The least inner product of two columns."""
        # Sums of products in any order are exact in float64 where they stay below 2**53, and much faster than in int64.
        exact = self.l2_squared < 2**53
        numbers = self.numbers.astype(np.float64) if exact else self.numbers
        products = numbers.T @ numbers
        np.fill_diagonal(products, self.l2_squared)
        return int(products.min())

    @cached_property
    def _inverse(self) -> NDArray[np.float64]:
        return np.asarray(np.linalg.pinv(self.numbers.astype(np.float64)), np.float64)


def rounded(shape: tuple[int, ...], real: NDArray[np.float64], name: str) -> Explicit:
    """Return the strategy of a real matrix, in fixed point: its largest column norm becomes 2**16, more or less."""
    largest = np.sqrt((real**2).sum(axis=0).max())
    # NaN would become -2**63, and norms wrap.
    if not (np.isfinite(real).all() and largest > 0):
        raise ParameterError(
            "workload", Words("one whose best strategy is no matrix of finite numbers"), "less extreme"
        )
    return Explicit(shape, np.rint(real * (2.0**_FINENESS / largest)).astype(np.int64), name)


def _no_matrices() -> Iterator[object]:
    yield from (*no_arrays(), 3, [1, 2], [[1.5]], [[1, 1], [1, 1]], [[2**20]], [[-(2**63)]], [[2**63]], [[10**30]])


def matrix(rows: Annotated[ArrayLike, Special(_no_matrices)], shape: OwnShape = None) -> Explicit:
    """Measure the rows of a matrix of whole numbers.

    Parameters
    ----------
    rows
        Integers below 2**20 in magnitude, queries by cells: of full column rank, so that every cell follows
        from what is measured, and of at most 2**22 rows and 2,048 columns.
    shape
        The histogram's shape; one attribute by default.

    Raises
    ------
    ParameterError
        It is no such matrix.

    Examples
    --------
    >>> matrix([[1, 1], [1, -1]]).l1
    2

    """
    array = array_of(rows, "rows")
    allowed = f"a matrix of whole numbers below 2**20, with up to 2**22 rows and {LARGEST_DENSE:,} columns"
    fits = array.ndim == 2 and 0 < array.shape[0] <= _LARGEST_ROWS and 0 < array.shape[1] <= LARGEST_DENSE
    if not fits or array.dtype.kind not in "biu":
        raise ParameterError("rows", Words(f"of shape {array.shape} and type {array.dtype}"), allowed)
    # Compared as they were given: the magnitude of -2**63, and a uint64 of 2**63 or more, are negative in int64.
    if not (int(array.min()) > -_LARGEST_NUMBER and int(array.max()) < _LARGEST_NUMBER):
        raise ParameterError("rows", Words("a matrix with larger numbers"), allowed)
    numbers = array.astype(np.int64)
    if np.linalg.matrix_rank(numbers.astype(np.float64)) < array.shape[1]:
        raise ParameterError(
            "rows", Words("a matrix that does not determine all cells"), "of full column rank", "add the identity"
        )
    own = (array.shape[1],) if shape is None else SHAPE.read("shape", shape)
    if math.prod(own) != array.shape[1]:
        raise ParameterError("shape", shape, f"of {array.shape[1]:,} cells, the matrix's columns")
    return Explicit(own, numbers, f"matrix of {len(array)} rows")
