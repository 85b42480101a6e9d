"""The identity: every cell is measured by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Threads
from dpfast.strategies.strategy import LineStrategy, Strategy, by_blocks, integer_histogram
from dpfast.workloads.histograms import Counts
from dpfast.workloads.shapes import SHAPE, Shape
from dpfast.workloads.workload import Workload

__all__ = ["Identity", "identity", "squares_of"]


class Identity(LineStrategy):
    """Every cell, once: L1 = L2 = 1, and the histogram with noise is the reconstruction."""

    name = "identity"
    l1 = l2_squared = row = 1
    inner = 0

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape

    def __len__(self) -> int:
        """Return the number of cells."""
        return self.cells

    @property
    def levels(self) -> list[tuple[int, int]]:
        """See `Strategy.levels`."""
        return [(1, 1)]

    def measure(self, histogram: Counts, *, threads: Threads = None) -> list[NDArray[np.int64]]:
        """See `Strategy.measure`; the column is the histogram's own memory where that is possible."""
        return [integer_histogram(histogram, self, clipped=False)]

    def reconstruct(self, noisy: Sequence[NDArray[Any]], *, threads: Threads = None) -> NDArray[np.float64]:
        """See `Strategy.reconstruct`."""
        return noisy[0].astype(np.float64).reshape(self.shape)

    def measure_rows(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """See `LineStrategy.measure_rows`."""
        return rows

    def reconstruct_rows(self, noisy: NDArray[np.float64]) -> NDArray[np.float64]:
        """See `LineStrategy.reconstruct_rows`."""
        return noisy

    def error(self, workload: Workload) -> float:
        """Return the sum of all squared coefficients; see `Strategy.error`."""
        return workload.energy(np.arange(self.cells + 1))

    def variances(self, workload: Workload) -> NDArray[np.float64]:
        """Return the sum of every query's squared coefficients; see `Strategy.variances`."""
        return squares_of(workload)


def squares_of(workload: Workload) -> NDArray[np.float64]:
    """Return the sum of every query's squared coefficients."""
    if workload.binary:
        return np.asarray(workload.answer(np.ones(workload.cells, np.int64)), np.float64)
    return by_blocks(workload, lambda rows: np.square(rows).sum(axis=1))


def identity(shape: Shape) -> Strategy:
    """Measure every cell by itself.

    Parameters
    ----------
    shape
        The number of cells, or of cells along each attribute.

    Raises
    ------
    ParameterError
        A number of cells is no whole number of at least 1.

    Examples
    --------
    >>> from dpfast.accounting.privacy_unit import PrivacyUnit
    >>> identity((24, 7)).sensitivity(PrivacyUnit(None, 1, 1, "replace")).l1
    2

    """
    return Identity(SHAPE.read("shape", shape))
