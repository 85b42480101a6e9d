"""Marginals as a strategy: tables over a few attributes each, weighted, made consistent by least squares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast import workloads
from dpfast.arguments import Threads
from dpfast.errors import ParameterError
from dpfast.strategies.marginal_spaces import Attributes, MarginalSpaces, outside, parts_of
from dpfast.strategies.strategy import Weights, read_weights
from dpfast.workloads.marginals import Marginals, Sets
from dpfast.workloads.shapes import AnyShape, check_size

__all__ = ["MarginalTables", "effect_of", "marginals"]


class MarginalTables(MarginalSpaces):
    """Marginals, each times a whole-number weight.

    With Q_S the marginal over the attributes S, Q_S'Q_S is a product over i of I for i in S and of J, all ones, for the
    others. In V_T it is the product of n_i over i not in S if T is a part of S, and 0 otherwise; the eigenvalue of A'A
    there is the sum of w_S**2 times that.

    Attributes
    ----------
    attributes
        The sets S.
    weights
        A whole number for each.

    """

    name = "weighted marginals"

    def __init__(self, shape: tuple[int, ...], attributes: Sequence[Attributes], weights: Sequence[int]) -> None:
        super().__init__(shape, attributes, weights)
        self.attributes = tuple(attributes)
        # A cell is in one entry of each table.
        self.l1, self.l2_squared = sum(self.weights), sum(weight**2 for weight in self.weights)
        self.row = max(weight * size for size, weight in self.levels)
        self.spaces = parts_of(self.attributes)
        self.eigenvalues = effect_of(shape, self.spaces, self.attributes) @ np.array(self.weights, np.float64) ** 2

    @property
    def inner(self) -> int:
        """What all cells share: the total, if it is measured."""
        return sum(weight**2 for weight, kept in zip(self.weights, self.attributes, strict=True) if not kept)

    @property
    def share_attributes(self) -> bool:
        """Whether an attribute is in two tables."""
        kept = [axis for attributes in self.attributes for axis in attributes]
        return len(set(kept)) < len(kept)

    @property
    def levels(self) -> list[tuple[int, int]]:
        """See `Strategy.levels`: an entry of a table is a block."""
        pairs = zip(self.attributes, self.weights, strict=True)
        return [(outside(self.shape, kept), weight) for kept, weight in pairs]

    def reconstruct(self, noisy: Sequence[NDArray[Any]], *, threads: Threads = None) -> NDArray[np.float64]:
        """See `Strategy.reconstruct`.

        Notes
        -----
        The solution is the sum over T of P_T A'y / lambda_T, P_T the projection onto V_T. Of the tables y_S only those
        over supersets of T count: summed over the attributes beyond T, and with its means taken out along each
        attribute of T, a table is what it adds to P_T A'y, but for the factor 1 / (product of n_i over i not in T),
        which a spread table is divided by, times w_S and the product of n_i over i not in S.

        """
        check_size(self.cells, "histogram", "cells")
        found = np.zeros(self.shape)
        tables = [
            np.asarray(column, np.float64).reshape(self._kept_shape(kept))
            for column, kept in zip(noisy, self.attributes, strict=True)
        ]
        for space, eigenvalue in zip(self.spaces, self.eigenvalues, strict=True):
            part = np.zeros(self._kept_shape(space))
            for table, weight, kept in zip(tables, self.weights, self.attributes, strict=True):
                if set(space) <= set(kept):
                    beyond = tuple(axis for axis in kept if axis not in space)
                    part += (weight * outside(self.shape, kept)) * table.sum(axis=beyond, keepdims=True)
            for axis in space:
                part -= part.mean(axis=axis, keepdims=True)
            found += part / (eigenvalue * outside(self.shape, space))
        return found


def effect_of(shape: tuple[int, ...], spaces: Sequence[Attributes], sets: Sequence[Attributes]) -> NDArray[np.float64]:
    """Return the eigenvalue of each marginal's Q'Q (columns) in each space (rows)."""
    return np.array([[outside(shape, one) if set(space) <= set(one) else 0 for one in sets] for space in spaces], float)


def marginals(shape: AnyShape, attributes: Sets, *, weights: Weights = None) -> MarginalTables:
    """Measure marginals: tables of counts over some attributes each, summed over all others.

    Parameters
    ----------
    shape
        How many values each attribute has.
    attributes
        Sets of attributes, counted from 0: [(0, 1), (2,)], say. () is the total.
    weights
        How much each counts: whole numbers from 1 to 2**20, whose tables are measured times that. Equal by default.

    Raises
    ------
    ParameterError
        An argument is not as above.

    References
    ----------
    Barak, Chaudhuri, Dwork, Kale, McSherry, Talwar (2007); Xiao, He, Zhang, Kifer (2023) for the eigenspaces.

    Examples
    --------
    >>> tables = marginals((2, 3, 4), [(0, 1), (1, 2)])
    >>> len(tables), tables.l1
    (18, 2)

    """
    asked: Marginals = workloads.marginals(shape, attributes=attributes)
    if len(set(asked.attributes)) < len(asked.attributes):
        raise ParameterError("attributes", attributes, "different sets of attributes", "use weights")
    tables = len(asked.attributes)
    read = (1,) * tables if weights is None else read_weights(weights, tables, "set of attributes")
    return MarginalTables(asked.shape, asked.attributes, read)
