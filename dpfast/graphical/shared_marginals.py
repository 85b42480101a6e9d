"""What tables over some attributes each have in common: their means, and what each table lacks to agree with them.

Tables agree if any two of them have the same marginal over the attributes that both hold. It is enough that, for each
set T of a family that is closed under intersection and has all these attributes, the tables that hold T have one
marginal over T. To project tables onto those that agree, by a weighted sum of squares, goes through the family, small
sets first: of each T the mean of the tables' marginals is taken, and what a table lacks to it is spread evenly over the
cells that are summed (Qardaji, Yang, Li 2014). With a table's weight, over how many of its cells are summed for a cell
of T, as its weight in the mean, that is the exact projection: a table is the sum of orthogonal residuals, one for each
subset of its attributes (Xiao, He, Zhang, Kifer 2023); for each subset the projection takes the weighted mean of the
tables that hold it; and the tables that hold a subset are those that hold the smallest T around it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpfast.graphical.elimination import cells_of

__all__ = ["SharedMarginals", "shared_sets"]

Attributes = tuple[int, ...]
Floats = NDArray[np.float64]


def shared_sets(cliques: Sequence[Attributes], most: int) -> list[Attributes] | None:
    """Return the sets of attributes that cliques have in common, closed under intersection, smaller ones first.

    The empty set is always one of them, and a clique that lies within another. None if there are more than ``most``.

    Examples
    --------
    >>> shared_sets([(0, 1, 2), (1, 2, 3), (2, 4), (2,)], 100)
    [(), (2,), (1, 2)]
    >>> shared_sets([(0, 1, 2), (1, 2, 3), (2, 4), (2,)], 2)

    """
    found = {frozenset[int]()}
    left = {frozenset(one) & frozenset(other) for one, other in combinations(cliques, 2)}
    while left and len(found) <= most:
        new = left - found
        found |= new
        # What new sets have in common with any is new too, unless it is known.
        left = {one & other for one in new for other in found} - found if len(found) <= most else set()
    if len(found) > most:
        return None
    return sorted((tuple(sorted(held)) for held in found), key=lambda held: (len(held), held))


class SharedMarginals:
    """The shared marginals of some tables, a row for each table that holds the attributes.

    Parameters
    ----------
    sizes
        How many values each attribute has.
    cliques
        The attributes of each table, ascending.
    shared
        Of `shared_sets`.
    softness
        Of each table: one over its weight in the sum of squares.

    Attributes
    ----------
    holders
        The tables that hold each shared set.

    """

    def __init__(
        self,
        sizes: Sequence[int],
        cliques: Sequence[Attributes],
        shared: Sequence[Attributes],
        softness: Sequence[float],
    ) -> None:
        self.shared = tuple(shared)
        self.holders = [[c for c, clique in enumerate(cliques) if set(held) <= set(clique)] for held in shared]
        self._shapes = [[sizes[a] for a in held] for held in shared]
        cells = np.array([float(cells_of(sizes, clique)) for clique in cliques])
        #: For each cell of a shared marginal, how many cells of the table it is the sum of.
        self._summed = [cells[own] / math.prod(shape) for own, shape in zip(self.holders, self._shapes, strict=True)]
        weights = [
            1.0 / (np.asarray(softness)[own] * summed) for own, summed in zip(self.holders, self._summed, strict=True)
        ]
        self._weights = [own / own.sum() for own in weights]
        self._softness = [np.asarray(softness)[own] for own in self.holders]
        #: For each shared set those within it: their place, the rows of its holders there, and the axes they share.
        self._within: list[list[tuple[int, NDArray[np.int64], list[int]]]] = []
        for place, held in enumerate(shared):
            inner = []
            for earlier in range(place):
                if set(shared[earlier]) <= set(held):
                    rows = np.searchsorted(self.holders[earlier], self.holders[place])
                    inner.append((earlier, rows, [sizes[a] if a in shared[earlier] else 1 for a in held]))
            self._within.append(inner)

    def zeros(self) -> list[Floats]:
        """Return a number for each cell of each shared marginal of each table that holds it: 0."""
        return [np.zeros((len(own), math.prod(shape))) for own, shape in zip(self.holders, self._shapes, strict=True)]

    def lacking(self, sums: Sequence[Floats], total: float) -> list[Floats]:
        """Return what each cell of each table lacks, by shared sets, to agree with the others and add up to the total.

        The tables plus this are their projection, by the weighted sum of squares, onto tables that agree.

        Parameters
        ----------
        sums
            The shared marginals as they are, in the form of `zeros`.
        total
            What each table shall add up to.

        """
        found: list[Floats] = []
        for place, own in enumerate(sums):
            summed = self._summed[place][:, None]
            now = own.copy().reshape(len(own), *self._shapes[place])
            for earlier, rows, axes in self._within[place]:
                # What the table has got already, for each cell that is summed.
                got = found[earlier][rows] * summed
                now += got.reshape(len(own), *axes)
            flat = now.reshape(len(own), -1)
            mean = self._weights[place] @ flat if self.shared[place] else np.array([total])
            found.append((mean - flat) / summed)
        return found

    def steps(self, lacking: Sequence[Floats]) -> list[Floats]:
        """Return the step of the duals that what is lacking amounts to: each table's, over its softness."""
        return [own / softness[:, None] for own, softness in zip(lacking, self._softness, strict=True)]

    def product(self, one: Sequence[Floats], other: Sequence[Floats]) -> float:
        """Return the scalar product of two steps, over all cells of all tables but for softness, set by set."""
        return sum(
            float((a * b * (summed * softness)[:, None]).sum())
            for a, b, summed, softness in zip(one, other, self._summed, self._softness, strict=True)
        )

    def disagreement(self, sums: Sequence[Floats], total: float) -> float:
        """Return the largest difference between two tables' counts of what both hold, or of a sum from the total."""
        largest = float(np.abs(sums[0] - total).max())
        return max([largest, *(float((own.max(axis=0) - own.min(axis=0)).max()) for own in sums[1:])])
