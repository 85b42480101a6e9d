"""Products of workloads: a query of each, on an attribute or several of its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.workloads.histograms import Numbers, checked_histogram
from dpfast.workloads.shapes import ANY_SHAPE, Coefficients, check_size, check_sums, checked_coefficients
from dpfast.workloads.workload import Place, Workload, check_workloads

__all__ = ["Kronecker"]


class Kronecker(Workload):
    """All products of one query of each factor: the Kronecker product of their matrices.

    Queries are ordered by the first factor's, then by the second's, and so on; the shape is that of all factors, one
    after the other.

    Parameters
    ----------
    factors
        Workloads, at least one.

    """

    def __init__(self, *factors: Workload) -> None:
        check_workloads(factors)
        self.factors = factors
        self.shape = ANY_SHAPE.read("shape", sum((factor.shape for factor in factors), ()))
        check_size(len(self), "workloads", "queries")

    def __len__(self) -> int:
        return math.prod(len(factor) for factor in self.factors)

    def answer(self, histogram: Numbers) -> NDArray[Any]:
        """Return all answers, by one factor after the other."""
        cells = checked_histogram(histogram, self.shape)
        largest = math.prod(max(1, math.ceil(max(map(abs, factor.range)))) for factor in self.factors)
        check_sums(cells, largest)
        lengths = [factor.cells for factor in self.factors]
        table = _along(cells, lengths, [factor.answer_along for factor in self.factors], self._order()).reshape(-1)
        # Factors of identities alone hand the histogram on.
        return table.copy() if np.shares_memory(table, cells) else table

    def transposed(self, coefficients: Coefficients) -> NDArray[np.float64]:
        """Return the sum of the queries, each times its coefficient, by one factor after the other."""
        self.check_cells()
        given = checked_coefficients(coefficients, len(self))
        lengths, changes = [len(factor) for factor in self.factors], [one.transposed_along for one in self.factors]
        table = _along(given, lengths, changes, self._order()[::-1]).reshape(self.shape)
        return table.copy() if np.shares_memory(table, given) or not table.flags.writeable else table

    def _order(self) -> list[int]:
        """Return the factors' places, those first that leave the fewest numbers."""
        return sorted(range(len(self.factors)), key=lambda place: len(self.factors[place]) / self.factors[place].cells)

    def rows(self, start: Place, stop: Place) -> NDArray[Any]:
        """Return products of the factors' rows."""
        start, stop = self._span(start, stop)
        places = self._places(np.arange(start, stop))
        out = np.ones((stop - start, 1), np.uint8 if self.binary else np.float64)
        if start == stop:
            return np.empty((0, self.cells), out.dtype)
        for factor, place in zip(self.factors, places, strict=True):
            different, which = np.unique(place, return_inverse=True)
            own = np.concatenate([factor.rows(int(row), int(row) + 1) for row in different])[which]
            out = (out[:, :, None] * own[:, None, :]).reshape(stop - start, -1)
        return out

    @property
    def range(self) -> tuple[float, float]:
        """The least and the largest product of coefficients."""
        least, largest = 1.0, 1.0
        for factor in self.factors:
            products = [one * other for one in (least, largest) for other in factor.range]
            least, largest = min(products), max(products)
        return least, largest

    @property
    def binary(self) -> bool:
        """Whether the factors are."""
        return all(factor.binary for factor in self.factors)

    @property
    def groups(self) -> NDArray[np.int64] | None:
        """The groups of the last factor, for each query of those before; wider ones where all behind are disjoint."""
        offsets = np.array([0, 1], np.int64)
        queries = 1
        for factor in reversed(self.factors):
            own = factor.groups
            if len(offsets) == 2 and own is not None:
                offsets = own * queries
            else:
                offsets = np.append((np.arange(len(factor))[:, None] * queries + offsets[:-1]).reshape(-1), 0)
                offsets[-1] = len(factor) * queries
            queries *= len(factor)
        return None if len(offsets) == len(self) + 1 else offsets

    def frame(self) -> pl.DataFrame:
        """Return the columns of each factor's frame, named with its number behind: ``lower_0``."""
        places = self._places(np.arange(len(self)))
        frames = [
            factor.frame()[place].select(pl.all().name.suffix(f"_{number}"))
            for number, (factor, place) in enumerate(zip(self.factors, places, strict=True))
        ]
        return pl.concat(frames, how="horizontal")

    def _places(self, queries: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Return which query of each factor makes each of some queries; of more factors than NumPy has axes, too."""
        places = []
        for factor in reversed(self.factors):
            queries, place = np.divmod(queries, len(factor))
            places.append(place)
        return places[::-1]

    def _gram(self) -> NDArray[np.float64]:
        out: NDArray[np.float64] = np.ones((1, 1))
        for factor in self.factors:
            out = np.kron(out, factor.gram()).astype(np.float64, copy=False)
        return out

    def energy(self, edges: NDArray[np.int64]) -> float:
        """Return a product of energies where blocks are made of whole slabs of the first factor, or cut all alike."""
        first, rest = self.factors[0], Kronecker(*self.factors[1:]) if len(self.factors) > 1 else None
        if rest is None:
            return first.energy(edges)
        slab = rest.cells
        if not (edges % slab).any():
            return first.energy(edges // slab) * rest.energy(np.array([0, slab]))
        # A slab has one edge less than its own list, whose last is the first of the next slab.
        cuts = edges[: int(np.searchsorted(edges, slab)) + 1]
        if cuts[-1] == slab and (len(cuts) - 1) * first.cells == len(edges) - 1:
            alike = (np.arange(first.cells)[:, None] * slab + cuts[:-1]).reshape(-1)
            if (alike == edges[:-1]).all():
                return first.energy(np.arange(first.cells + 1)) * rest.energy(cuts)
        return super().energy(edges)


def _along(
    table: NDArray[Any], lengths: list[int], changes: Sequence[Callable[[NDArray[Any]], NDArray[Any]]], order: list[int]
) -> NDArray[Any]:
    """Return a table of these lengths, with its axes changed one after the other, as contiguous numbers."""
    for place in order:
        outer, inner = math.prod(lengths[:place]), math.prod(lengths[place + 1 :])
        table = changes[place](table.reshape(outer, lengths[place], inner))
        lengths[place] = table.shape[1]
    return np.ascontiguousarray(table)
