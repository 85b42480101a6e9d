"""Residuals of marginals as a strategy: what depends on some attributes and on no fewer, each set by itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product as combinations_of
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Threads
from dpfast.strategies.marginal_spaces import Attributes, MarginalSpaces, outside
from dpfast.workloads.shapes import check_size

__all__ = ["MarginalResiduals", "centred"]

#: Attributes up to which all ways in which two cells may agree are tried.
_FEW = 10


class MarginalResiduals(MarginalSpaces):
    """Centred marginals, each times a whole-number weight.

    With n_i values of attribute i and Q_T the marginal over the attributes T, C_T Q_T is measured, C_T a product over i
    in T of n_i I - J: differences to the mean along each attribute of T, in whole numbers. Q_T'C_T'C_T Q_T is the
    product of n_i**2 over T and of n_i over all others in V_T, and 0 in all other spaces: each space has a measurement
    of its own. So any A'A that treats the values of an attribute alike can be had, and under Gaussian noise the best of
    them is the best of all for marginals.

    Attributes
    ----------
    weights
        A whole number for each of `spaces`.

    """

    name = "residuals of marginals"

    def __init__(self, shape: tuple[int, ...], spaces: Sequence[Attributes], weights: Sequence[int]) -> None:
        super().__init__(shape, spaces, weights)
        self.spaces = list(spaces)
        own = [math.prod(shape[axis] ** 2 for axis in space) * outside(shape, space) for space in self.spaces]
        self.eigenvalues = np.array([float(weight**2 * value) for weight, value in zip(weights, own, strict=True)])
        # A column of n I - J has the sum of magnitudes 2 (n - 1), and the sum of squares n (n - 1); products multiply.
        magnitudes = [math.prod(2 * (shape[axis] - 1) for axis in space) for space in self.spaces]
        sums = [weight * one for weight, one in zip(weights, magnitudes, strict=True)]
        self.l1, self.l2_squared = sum(sums), self._product([True] * len(shape))
        # An entry of a table counts so many cells.
        self.row = max(total * outside(shape, space) for total, space in zip(sums, self.spaces, strict=True))

    @property
    def inner(self) -> int:
        """The least inner product of cells that agree in some attributes: n (n - 1) for each, -n for each other."""
        if len(self.shape) > _FEW:
            return -self.l2_squared
        ways = combinations_of(*([True, False] if size > 1 else [True] for size in self.shape))
        return min((self._product(way) for way in ways if not all(way)), default=0)

    def measured_of(self, table: NDArray[Any]) -> NDArray[Any]:
        """Return the differences to the means along all attributes."""
        return centred(table, range(table.ndim))

    def reconstruct(self, noisy: Sequence[NDArray[Any]], *, threads: Threads = None) -> NDArray[np.float64]:
        """See `Strategy.reconstruct`: the sum of each table's A'y divided by its eigenvalue."""
        check_size(self.cells, "histogram", "cells")
        found = np.zeros(self.shape)
        for column, space, weight, value in zip(noisy, self.spaces, self.weights, self.eigenvalues, strict=True):
            table = np.asarray(column, np.float64).reshape(self._kept_shape(space))
            found += centred(table, space) * (weight / value)
        return found

    def _product(self, agree: Sequence[bool]) -> int:
        """Return the inner product of two cells' columns that agree in these attributes."""
        factors = [size * (size - 1) if same else -size for size, same in zip(self.shape, agree, strict=True)]
        products = (math.prod(factors[axis] for axis in space) for space in self.spaces)
        return sum(weight**2 * one for weight, one in zip(self.weights, products, strict=True))


def centred(table: NDArray[Any], axes: Sequence[int]) -> NDArray[Any]:
    """Return a table times n I - J along each of these axes, n being its length."""
    for axis in axes:
        table = table.shape[axis] * table - table.sum(axis=axis, keepdims=True)
    return table
