"""How a table over some attributes is summed to a table over fewer of them, multiplied by one, and added to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpfast.kernels.weights import marginals as kernels
from dpfast.weights.query_tables import Marginal, Walk

__all__ = ["View"]

Floats = NDArray[np.float64]


class View:
    """The marginal of a clique's table over attributes that it holds.

    Parameters
    ----------
    sizes
        How many values each attribute has.
    clique, attributes
        The table's, and those that are kept; both ascending.

    """

    def __init__(self, sizes: Sequence[int], clique: Sequence[int], attributes: Sequence[int]) -> None:
        self.size = math.prod(sizes[a] for a in attributes)
        self._walk = _walk(tuple(sizes[a] for a in clique), tuple(clique.index(a) for a in attributes))
        # Zeros: a model is pickled with it, and what the process had there before is private.
        self._scratch = np.zeros(self._walk[-1].size)

    def sums(self, table: Floats) -> Floats:
        """Return the marginal, in one dimension."""
        sums = np.zeros(self.size)
        kernels.sum_marginal(table, *self._walk, self._scratch, sums)
        return sums

    def multiply(self, table: Floats, factors: Floats) -> None:
        """Multiply every cell by its factor in the marginal, in place."""
        kernels.multiply_marginal(table, *self._walk, self._scratch, factors)

    def add(self, table: Floats, terms: Floats) -> None:
        """Add to every cell its term in the marginal, in place."""
        kernels.add_marginal(table, *self._walk, self._scratch, terms)


@lru_cache(maxsize=1 << 14)
def _walk(shape: tuple[int, ...], places: tuple[int, ...]) -> Walk:
    """Return how a table is walked; from round to round most tables stay as they are."""
    return Marginal(shape, places)._walk
