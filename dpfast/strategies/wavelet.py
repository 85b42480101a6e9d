"""The Haar wavelet: the sum of all cells, and the differences between the halves of nested blocks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpfast.errors import ParameterError
from dpfast.strategies.nested import Nested
from dpfast.workloads.shapes import CELLS, Cells

__all__ = ["Wavelet", "wavelet"]


class Wavelet(Nested):
    """Sums and differences, in whole numbers: the columns of A have ones of either sign, one for each level."""

    name = "Haar wavelet"

    def __init__(self, cells: int) -> None:
        self.shape = (cells,)
        self.sizes = tuple(2**level for level in range(cells.bit_length()))
        # A cell is in the sum of all, and in one difference for each level, with the coefficient 1 or -1.
        self.l1 = self.l2_squared = len(self.sizes)
        self.row = cells

    def __len__(self) -> int:
        """Return the number of cells: A is square."""
        return self.cells

    @property
    def inner(self) -> int:
        """Two cells share the blocks that hold both, with one sign but in the smallest: 1 + 0 or more - 1."""
        return 0 if self.cells > 1 else 1

    @property
    def eigenvalues(self) -> list[float]:
        """The rows are orthogonal: those that compare halves of 2**l cells have the squared norm 2**(l + 1)."""
        return [2.0 * size for size in self.sizes[:-1]] + [float(self.cells)]

    def measure_rows(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """See `LineStrategy.measure_rows`: the sum first, then the differences from the largest halves down."""
        measured = np.empty_like(rows)
        sums = rows
        while sums.shape[1] > 1:
            halves = sums.shape[1] // 2
            np.subtract(sums[:, ::2], sums[:, 1::2], out=measured[:, halves : 2 * halves])
            sums = sums[:, ::2] + sums[:, 1::2]
        measured[:, :1] = sums
        return measured

    def reconstruct_rows(self, noisy: NDArray[np.float64]) -> NDArray[np.float64]:
        """See `LineStrategy.reconstruct_rows`: A is square, so that this is its inverse."""
        sums = noisy[:, :1]
        while sums.shape[1] < self.cells:
            differences = noisy[:, sums.shape[1] : 2 * sums.shape[1]]
            halves = np.empty((sums.shape[0], 2 * sums.shape[1]))
            halves[:, ::2] = (sums + differences) / 2
            halves[:, 1::2] = (sums - differences) / 2
            sums = halves
        return sums

    def _moved(self, groups: int, neighbors: str) -> tuple[int, int]:
        l1, l2_squared = super()._moved(groups, neighbors)
        if groups == 1 and neighbors == "replace":
            # The sum stays as it is, unless the row leaves all cells.
            l1 = max(2 * (self.l1 - 1), self.l1)
        return l1, l2_squared


def wavelet(cells: Cells) -> Wavelet:
    """Measure the Haar wavelet's coefficients, each weighted by its block's size: Privelet.

    Weighted hierarchies (`hierarchy` with ``weights``) have the same eigenspaces and, under Gaussian noise and with the
    best weights, never a larger error.

    Parameters
    ----------
    cells
        A power of two.

    Raises
    ------
    ParameterError
        It is none.

    References
    ----------
    Xiao, Wang, Gehrke (2010).

    Examples
    --------
    >>> wavelet(4).measure([5, 2, 1, 1])
    [array([9, 5, 3, 0])]

    """
    size = CELLS.read("cells", cells)
    if size & (size - 1):
        below, above = 2 ** (size.bit_length() - 1), 2 ** size.bit_length()
        raise ParameterError("cells", cells, "a power of two", f"use {below} or {above} cells, or hierarchy(cells, 2)")
    return Wavelet(size)
