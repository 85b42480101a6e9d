"""Rectangles of any number of attributes."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.columns.fresh import fresh_array
from dpfast.kernels.histograms.prefixes import (
    COLUMNS,
    add_rectangle_differences,
    answer_rectangles,
    sum_planes,
    sum_prefixes_along,
)
from dpfast.workloads.bounds import check_bounds, count_both
from dpfast.workloads.cells import places_of
from dpfast.workloads.histograms import Numbers, checked_histogram
from dpfast.workloads.shapes import (
    ANY_SHAPE,
    LARGEST_ARRAY,
    AnyShape,
    Bounds,
    Coefficients,
    check_size,
    check_sums,
    checked_coefficients,
    checked_indices,
    read_only,
)
from dpfast.workloads.workload import Place, Workload

__all__ = ["Rectangles"]


class Rectangles(Workload):
    """Queries that count the cells from a lower bound up to, not including, an upper bound, along every axis.

    An answer is an alternating sum of 2**d prefix sums, d being the axes of more than one cell: as a query is of
    floats, its error is a few units in the last place of the sum of all magnitudes.

    Parameters
    ----------
    shape
        How many cells along each attribute.
    lower, upper
        Integers with 0 <= lower <= upper <= shape, queries by attributes.

    """

    binary = True

    def __init__(self, shape: AnyShape, lower: Bounds, upper: Bounds) -> None:
        self.shape = ANY_SHAPE.read("shape", shape)
        axes = len(self.shape)
        self.lower = checked_indices(lower, "lower", (None, axes))
        self.upper = checked_indices(upper, "upper", (len(self.lower), axes))
        check_bounds(self.lower, self.upper, self.shape)
        # Along an axis of one cell a rectangle is whole or empty: it is no axis of the table of prefix sums.
        self._long = [axis for axis, size in enumerate(self.shape) if size > 1]
        self._padded = tuple(self.shape[axis] + 1 for axis in self._long)
        if self.cells <= LARGEST_ARRAY:
            check_size(math.prod(self._padded), "shape", "prefix sums")
        # Empty rectangles have all their corners in one place.
        self._filled: NDArray[np.bool_] = np.all(self.upper > self.lower, axis=1)

    def __len__(self) -> int:
        return len(self.lower)

    @cached_property
    def _corners(self) -> list[NDArray[np.int64]]:
        """Both corners of each rectangle, and the strides of the table of prefix sums."""
        strides = np.array([math.prod(self._padded[axis + 1 :]) for axis in range(len(self._padded))], np.int64)
        bounds = [bound[:, self._long] * self._filled[:, None] for bound in (self.lower, self.upper)]
        return [read_only(np.ascontiguousarray(array)) for array in (*bounds, strides)]

    def answer(self, histogram: Numbers) -> NDArray[Any]:
        """Return the sums over the rectangles."""
        cells = checked_histogram(histogram, self.shape)
        check_sums(cells)
        low, high, strides = self._corners
        out = np.empty(len(self), cells.dtype)
        answer_rectangles(read_only(self._prefixes(cells)), low, high, strides, out)
        return out if self._long else out * self._filled

    def transposed(self, coefficients: Coefficients) -> NDArray[np.float64]:
        """Return the sum of the rectangles, each times its coefficient."""
        self.check_cells()
        given = checked_coefficients(coefficients, len(self)) * self._filled
        low, high, strides = self._corners
        table = fresh_array(math.prod(self._padded), given.dtype)
        table[:] = 0
        add_rectangle_differences(low, high, read_only(given), strides, table)
        self._summed(table, len(self._padded))
        kept = table.reshape(self._padded)[(slice(0, -1),) * len(self._padded) + (...,)]
        return np.ascontiguousarray(kept).reshape(self.shape)

    def rows(self, start: Place, stop: Place) -> NDArray[np.uint8]:
        """Return rows with ones within the rectangles."""
        start, stop = self._span(start, stop)
        out = np.ones((stop - start, *self.shape), np.uint8)
        for axis, size in enumerate(self.shape):
            cells = np.arange(size)
            lower, upper = self.lower[start:stop, axis, None], self.upper[start:stop, axis, None]
            within = (cells >= lower) & (cells < upper)
            out &= within.reshape(-1, *(size if other == axis else 1 for other in range(len(self.shape))))
        return out.reshape(stop - start, self.cells)

    @property
    def range(self) -> tuple[float, float]:
        """The least and the largest coefficient."""
        whole = ((self.lower == 0) & (self.upper == np.array(self.shape))).all()
        return float(whole), float(self._filled.any())

    def frame(self) -> pl.DataFrame:
        """Return the bounds, ``lower`` and ``upper``, as lists with an integer for each attribute."""
        return pl.DataFrame({"lower": places_of(self.lower), "upper": places_of(self.upper)})

    def _gram(self) -> NDArray[np.float64]:
        return count_both(self.lower, self.upper, self.shape)

    def _prefixes(self, cells: NDArray[Any]) -> NDArray[Any]:
        """Return the table of prefix sums, with zeros before the first along every axis, in one dimension."""
        table = fresh_array(math.prod(self._padded), cells.dtype).reshape(self._padded)
        for axis in range(max(len(self._padded) - 2, 1) if self._padded else 0):
            table[(slice(None),) * axis + (0,)] = 0
        if len(self._padded) < 2:
            table[(slice(1, None),) * len(self._padded) + (...,)] = cells.reshape([size - 1 for size in self._padded])
            return self._summed(table, len(self._padded))
        rows, columns = (size - 1 for size in self._padded[-2:])
        # The first cell of the planes that are not before the first along any axis.
        places = np.arange(table.size, step=math.prod(self._padded[-2:])).reshape(self._padded[:-2])
        places = places[(slice(1, None),) * (len(self._padded) - 2) + (...,)].reshape(-1)
        rests = None if cells.dtype == np.int64 else np.empty(columns, cells.dtype)
        sum_planes(read_only(cells), rows, columns, read_only(places), rests, table.reshape(-1))
        return self._summed(table, len(self._padded) - 2)

    def _summed(self, table: NDArray[Any], axes: int) -> NDArray[Any]:
        """Return the table in one dimension, replaced by its prefix sums along the first axes."""
        flat = table.reshape(-1)
        rests = None if flat.dtype == np.int64 else np.empty(COLUMNS)
        for axis, size in enumerate(self._padded[:axes]):
            sum_prefixes_along(flat, size, math.prod(self._padded[axis + 1 :]), rests)
        return flat
