"""Ranges of one attribute: prefixes, all ranges, and any others."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.columns.fresh import fresh_array
from dpfast.kernels.histograms.prefixes import (
    COLUMNS,
    add_all_range_differences,
    add_range_differences,
    answer_all_ranges,
    answer_ranges,
    sum_and_cover,
    sum_prefixes,
    sum_prefixes_along,
    sum_suffixes,
)
from dpfast.workloads.bounds import check_bounds, count_both
from dpfast.workloads.histograms import Numbers, checked_histogram
from dpfast.workloads.shapes import (
    CELLS,
    SHAPE,
    Bounds,
    Cells,
    Coefficients,
    check_size,
    check_sums,
    checked_coefficients,
    checked_indices,
    read_only,
)
from dpfast.workloads.workload import Place, Workload

__all__ = ["AllRanges", "Intervals", "Prefixes", "Ranges"]


class Intervals(Workload):
    """Queries that count the cells from a lower bound up to, not including, an upper bound, of one attribute."""

    def __init__(self, n: Cells) -> None:
        size = CELLS.read("n", n)
        self.shape = SHAPE.read("n", size)

    def bounds(self, start: int = 0, stop: int | None = None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the lower and the upper bounds of queries start to stop (exclusive)."""
        raise NotImplementedError

    def rows(self, start: Place, stop: Place) -> NDArray[np.uint8]:
        """Return rows with ones between the bounds."""
        start, stop = self._span(start, stop)
        lower, upper = self.bounds(start, stop)
        cells = np.arange(self.cells)
        return ((cells >= lower[:, None]) & (cells < upper[:, None])).view(np.uint8)

    @property
    def binary(self) -> bool:
        """True."""
        return True

    def frame(self) -> pl.DataFrame:
        """Return the bounds, ``lower`` and ``upper``."""
        lower, upper = self.bounds()
        return pl.DataFrame({"lower": lower, "upper": upper})

    def _prefixes(self, histogram: Numbers) -> NDArray[Any]:
        """Return the sums of the first 0, 1, ..., n cells."""
        prefixes = fresh_array(self.cells + 1, np.dtype(np.int64))
        prefixes[0] = 0
        return _sum_cells(checked_histogram(histogram, self.shape), prefixes, 1)

    def answer_along(self, table: NDArray[Any]) -> NDArray[Any]:
        """Return the answers along the middle axis of a table."""
        lower, upper = self.bounds()
        prefixes = np.zeros((len(table), self.cells + 1, table.shape[2]), table.dtype)
        prefixes[:, 1:] = table
        _sum_along(prefixes)
        answers = prefixes[:, upper]
        answers -= prefixes[:, lower]
        return answers


class Prefixes(Intervals):
    """The sums of the first 1, 2, ..., n cells.

    Parameters
    ----------
    n
        The number of cells.

    """

    def __len__(self) -> int:
        return self.cells

    def bounds(self, start: int = 0, stop: int | None = None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the lower and the upper bounds of queries start to stop (exclusive)."""
        upper = np.arange(start + 1, (len(self) if stop is None else stop) + 1)
        return np.zeros_like(upper), upper

    def answer(self, histogram: Numbers) -> NDArray[Any]:
        """Return the running sums."""
        return _sum_cells(checked_histogram(histogram, self.shape), fresh_array(self.cells, np.dtype(np.int64)), 0)

    def transposed(self, coefficients: Coefficients) -> NDArray[np.float64]:
        """Return the running sums from the end."""
        given = checked_coefficients(coefficients, len(self))
        out = fresh_array(given.size, given.dtype)
        sum_suffixes(read_only(given), out)
        return out

    def answer_along(self, table: NDArray[Any]) -> NDArray[Any]:
        """Return the running sums along the middle axis of a table."""
        return _sum_along(np.array(table, order="C"))

    def transposed_along(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the running sums from the end along the middle axis of a table."""
        return np.flip(_sum_along(np.array(np.flip(table, 1), order="C")), 1)

    @property
    def range(self) -> tuple[float, float]:
        """From 0, or 1 where there is but one cell, to 1."""
        return (0.0 if self.cells > 1 else 1.0), 1.0

    def _gram(self) -> NDArray[np.float64]:
        # Cells i and j are both in the prefixes that end after the later one.
        left = np.arange(self.cells, 0, -1, dtype=np.float64)
        return np.minimum(left[:, None], left)

    def energy(self, edges: NDArray[np.int64]) -> float:
        """Return the sum of squares: a block of s cells is whole in all later prefixes, and in its own by parts."""
        size = np.diff(edges).astype(np.float64)
        whole = (self.cells + 1) - edges[1:]
        parts = (size - 1) * size * (2 * size - 1) / 6
        return float((whole * size**2 + parts).sum())


class AllRanges(Intervals):
    """All n(n+1)/2 ranges [l, u): by l, then by u.

    Parameters
    ----------
    n
        The number of cells.

    """

    def __init__(self, n: Cells) -> None:
        super().__init__(n)
        check_size(len(self), "n", "queries")

    def __len__(self) -> int:
        return self.cells * (self.cells + 1) // 2

    def bounds(self, start: int = 0, stop: int | None = None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the lower and the upper bounds of queries start to stop (exclusive)."""
        n = self.cells
        queries = np.arange(start, len(self) if stop is None else stop)
        # Ranges from l on begin at l(2n - l + 1)/2.
        lows = np.arange(n, dtype=np.int64)
        first = lows * (2 * n - lows + 1) // 2
        lower = np.searchsorted(first, queries, side="right") - 1
        return lower, lower + 1 + queries - first[lower]

    def answer(self, histogram: Numbers) -> NDArray[Any]:
        """Return the sums over all ranges."""
        prefixes = self._prefixes(histogram)
        out = fresh_array(len(self), prefixes.dtype)
        answer_all_ranges(prefixes, out)
        return out

    def transposed(self, coefficients: Coefficients) -> NDArray[np.float64]:
        """Return the sum of the ranges, each times its coefficient."""
        given = checked_coefficients(coefficients, len(self))
        differences = fresh_array(self.cells + 1, given.dtype)
        differences[:] = 0
        add_all_range_differences(read_only(given), differences)
        sum_prefixes(read_only(differences), differences)
        return differences[:-1]

    @property
    def range(self) -> tuple[float, float]:
        """From 0, or 1 where there is but one cell, to 1."""
        return (0.0 if self.cells > 1 else 1.0), 1.0

    def _gram(self) -> NDArray[np.float64]:
        # Cells i <= j are both in the ranges with l <= i and u > j.
        first = np.arange(1, self.cells + 1, dtype=np.float64)
        left = first[::-1]
        return np.minimum(first[:, None], first) * np.minimum(left[:, None], left)

    def energy(self, edges: NDArray[np.int64]) -> float:
        """Return the sum of squares over ranges that hold a block, end in it, begin in it or lie within it."""
        size = np.diff(edges).astype(np.float64)
        before, after = edges[:-1] + 1.0, (self.cells + 1.0) - edges[1:]
        parts = (size - 1) * size * (2 * size - 1) / 6
        # Ranges of t of the m inner cells: (m + 1 - t) of them, t squared each; they add up to m(m+1)^2(m+2)/12.
        inner = size - 2
        within = inner * (inner + 1) ** 2 * (inner + 2) / 12
        return float((before * after * size**2 + (before + after) * parts + within).sum())


class Ranges(Intervals):
    """Ranges [lower, upper) of one attribute.

    Parameters
    ----------
    n
        The number of cells.
    lower, upper
        Integers with 0 <= lower <= upper <= n, one for each query; a range with lower = upper is empty.

    """

    def __init__(self, n: Cells, lower: Bounds, upper: Bounds) -> None:
        super().__init__(n)
        self.lower = checked_indices(lower, "lower", (None,))
        self.upper = checked_indices(upper, "upper", (self.lower.size,))
        check_bounds(self.lower[:, None], self.upper[:, None], self.shape)

    def __len__(self) -> int:
        return self.lower.size

    def bounds(self, start: int = 0, stop: int | None = None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the lower and the upper bounds of queries start to stop (exclusive)."""
        return self.lower[start:stop], self.upper[start:stop]

    def answer(self, histogram: Numbers) -> NDArray[Any]:
        """Return the sums over the ranges."""
        prefixes = self._prefixes(histogram)
        out = np.empty(len(self), prefixes.dtype)
        answer_ranges(prefixes, self.lower, self.upper, out)
        return out

    def transposed(self, coefficients: Coefficients) -> NDArray[np.float64]:
        """Return the sum of the ranges, each times its coefficient."""
        given = checked_coefficients(coefficients, len(self))
        differences = fresh_array(self.cells + 1, given.dtype)
        differences[:] = 0
        add_range_differences(self.lower, self.upper, read_only(given), differences)
        sum_prefixes(read_only(differences), differences)
        return differences[:-1]

    @property
    def range(self) -> tuple[float, float]:
        """The least and the largest coefficient."""
        length = self.upper - self.lower
        return float((length == self.cells).all()), float((length > 0).any())

    def _gram(self) -> NDArray[np.float64]:
        return count_both(self.lower[:, None], self.upper[:, None], self.shape)

    def energy(self, edges: NDArray[np.int64]) -> float:
        """Return the sum of squares: of the two blocks where a range ends, and of all between by prefix sums."""
        lower, upper = (bound[self.upper > self.lower] for bound in (self.lower, self.upper))
        first = np.searchsorted(edges, lower, side="right") - 1
        last = np.searchsorted(edges, upper, side="left") - 1
        # Squares of sizes sum up to at most the square of the number of cells, which int64 holds.
        squares = np.concatenate([[0], np.cumsum(np.square(np.diff(edges)))])
        between = squares[last] - squares[np.minimum(first + 1, last)]
        ends = np.square(edges[first + 1] - lower) + np.square(upper - edges[last])
        alone = np.square(upper - lower)
        return float(np.where(first == last, alone, between + ends).sum(dtype=np.float64))


def _sum_cells(cells: NDArray[Any], out: NDArray[Any], first: int) -> NDArray[Any]:
    """Write the prefix sums of a histogram from out[first] on, and return ``out`` in the histogram's type."""
    if cells.dtype == np.int64:
        check_sums(cells, covered=sum_and_cover(read_only(cells), out[first:]))
        return out
    floats = out.view(np.float64)
    sum_prefixes(read_only(cells), floats[first:])
    return floats


def _sum_along(table: NDArray[Any]) -> NDArray[Any]:
    """Replace a table of three axes by its prefix sums along the middle one, and return it."""
    rests = None if table.dtype == np.int64 else np.empty(COLUMNS)
    sum_prefixes_along(table.reshape(-1), table.shape[1], table.shape[2], rests)
    return table
