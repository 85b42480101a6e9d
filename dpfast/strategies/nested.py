"""Strategies over nested blocks of cells, whose errors have a closed form."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from itertools import pairwise
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from dpfast.strategies.axes import bounds_of
from dpfast.strategies.strategy import LineStrategy, by_blocks
from dpfast.workloads.workload import Union, Workload

__all__ = ["Nested", "details_of", "differences", "energy_of", "squares_of_ranges"]


#: What each workload's energy in blocks of a size is, worked out once.
_ENERGIES: WeakKeyDictionary[Workload, dict[int, float]] = WeakKeyDictionary()


def energy_of(workload: Workload, size: int) -> float:
    """Return the sum over queries and blocks of so many cells of the query's sum over the block, squared."""
    known = _ENERGIES.setdefault(workload, {})
    if size not in known:
        known[size] = workload.energy(np.append(np.arange(0, workload.cells, size), workload.cells))
    return known[size]


def details_of(workload: Workload, sizes: tuple[int, ...]) -> list[float]:
    """Return a workload's energy in the details of each level of blocks, from the cells up; see `Nested`."""
    return differences([energy_of(workload, size) / size for size in sizes])


def differences(energies: list[float]) -> list[float]:
    """Return what each level's energy has beyond the next one's: that in its details."""
    return [max(below - above, 0.0) for below, above in pairwise([*energies, 0.0])]


class Nested(LineStrategy):
    """A strategy that treats all blocks of a level alike.

    Then A'A is a sum of c_l B_l, where B_l is 1 for two cells of one block of level l, of s_l cells, and its
    eigenspaces are the details V_l: constant on the blocks of level l, adding up to 0 within those of level l + 1. With
    the eigenvalues lambda_l, a query w has the variance

        sum of (norm of w in V_l)**2 / lambda_l,    (norm of w in V_l)**2 = e_l / s_l - e_(l+1) / s_(l+1),

    e_l being the sum of (w's sum over a block)**2 over all blocks of level l, and without the second term for the top.
    Where the last block is not full, the tree is the full one over more cells, which are known to be empty: to know
    that can only lower a variance, and what is returned here is a bound from above.

    Attributes
    ----------
    sizes
        How many cells the blocks of each level have, from 1 for the cells upward, each a multiple of the one before;
        the last block of a level has what is left.

    """

    sizes: tuple[int, ...]

    @property
    @abstractmethod
    def eigenvalues(self) -> list[float]:
        """Of A'A, in the details of each level."""

    def error(self, workload: Workload) -> float:
        """See `Strategy.error`: exact where the blocks of the top level are full, else a bound from above."""
        details = details_of(workload, self.sizes)
        return float(sum(detail / value for detail, value in zip(details, self.eigenvalues, strict=True)))

    def variances(self, workload: Workload) -> NDArray[np.float64]:
        """See `Strategy.variances`: for ranges in a few passes over the queries, a bound from above as `error` is."""
        bounds = bounds_of(workload)
        if bounds is not None:
            return self._variances(len(workload), lambda size: squares_of_ranges(*bounds, size))
        if isinstance(workload, Union):
            return super().variances(workload)
        return by_blocks(
            workload,
            lambda rows: self._variances(
                len(rows),
                lambda size: np.square(np.add.reduceat(rows, np.arange(0, self.cells, size), axis=1)).sum(axis=1),
            ),
        )

    def _variances(self, queries: int, squares: Callable[[int], NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return variances from e_l: for a size, every query's sums over the blocks of so many cells, squared."""
        variances = np.zeros(queries)
        values = [*self.eigenvalues, np.inf]
        for size, above, below in zip(self.sizes, values[:-1], [np.inf, *values], strict=False):
            # e_l / s_l counts for level l, and against the level below.
            variances += squares(size) / size * (1 / above - 1 / below)
        return np.maximum(variances, 0.0)


def squares_of_ranges(lower: NDArray[np.int64], upper: NDArray[np.int64], size: int) -> NDArray[np.float64]:
    """Return for each range the sum, over all blocks of so many cells, of its cells in the block squared."""
    first, last = lower // size, (upper - 1) // size
    whole = np.maximum(last - first - 1, 0) * float(size) ** 2
    ends = ((first + 1) * size - lower).astype(np.float64) ** 2 + (upper - last * size).astype(np.float64) ** 2
    return np.where(first >= last, (upper - lower).astype(np.float64) ** 2, whole + ends)
