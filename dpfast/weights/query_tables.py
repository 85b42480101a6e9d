"""Many linear queries that are updated at once, each at its own eta: all cells of a marginal, many ranges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from dpfast.columns.declarations import TypedColumn, as_array
from dpfast.errors import ParameterError, Words
from dpfast.kernels.weights import marginals as kernels
from dpfast.kernels.weights import slabs as kernels_of_slabs
from dpfast.weights.declarations import INTEGERS, PLACES, SHAPE
from dpfast.weights.linear_queries import LARGEST_ETA, LinearQuery, Weights
from dpfast.weights.slab_queries import checked_attributes, checked_shape

__all__ = ["Marginal", "Ranges", "Walk"]

#: Runs of the last axis that are shorter than this go by a pattern of indices, of at least as many cells as that.
_SHORT_RUN, _LEAST_PATTERN, _LARGEST_PATTERN = 16, 512, 4096

Walk = tuple[NDArray[np.int64], NDArray[np.int64], int, int, NDArray[np.int32]]


@dataclass(frozen=True, repr=False)
class Marginal(LinearQuery):
    """All cells of the marginal over the attributes at the places ``attributes``; the other attributes are summed over.

    Etas and answers are arrays of the marginal's shape.

    Examples
    --------
    >>> Marginal((2, 3), attributes=(1,)).answer(np.arange(6.0))
    array([3., 5., 7.])

    """

    shape: Annotated[tuple[int, ...], SHAPE]
    attributes: Annotated[tuple[int, ...], PLACES]
    _walk: Walk = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        shape = checked_shape(self.shape)
        self._set(shape=shape, attributes=checked_attributes(self.attributes, len(shape)))
        self._set(_walk=self._walked())

    def _walked(self) -> Walk:
        """Return how the kernels walk: sizes and steps of the outer axes; length, form and pattern of a run."""
        sizes: list[int] = []
        steps: list[int] = []
        step = 1
        for axis in range(len(self.shape) - 1, -1, -1):
            kept, size = axis in self.attributes, self.shape[axis]
            if sizes and kept == (steps[-1] > 0):
                sizes[-1] *= size
            else:
                sizes.append(size)
                steps.append(step if kept else 0)
            step *= size if kept else 1
        form = kernels.CONSECUTIVE if steps[0] else kernels.ALIKE
        length, pattern = sizes.pop(0), np.zeros(0, np.int64)
        first = steps.pop(0)
        if length < _SHORT_RUN:
            form, pattern = kernels.LISTED, np.arange(length) * first
            while sizes and pattern.size < _LEAST_PATTERN:
                # Of a long axis the pattern takes a divisor, if there is one; the rest of it repeats the pattern.
                part = sizes[0]
                if part * pattern.size > _LARGEST_PATTERN:
                    divisors = (d for d in range(_LARGEST_PATTERN // pattern.size, 1, -1) if part % d == 0)
                    part = next(divisors, part)
                pattern = (np.arange(part)[:, None] * steps[0] + pattern).reshape(-1)
                sizes[0], steps[0] = sizes[0] // part, steps[0] * part
                if sizes[0] == 1:
                    del sizes[0], steps[0]
            length = pattern.size
        rest = np.array([sizes[::-1], steps[::-1]], np.int64)
        return rest[0], rest[1], length, form, pattern.astype(np.int32)

    def _scratch(self) -> NDArray[np.float64]:
        return np.empty(self._walk[-1].size)

    @property
    def table(self) -> tuple[int, ...]:
        """The sizes of the attributes that are kept."""
        return tuple(self.shape[place] for place in self.attributes)

    def check(self, shape: tuple[int, ...]) -> None:
        """Refuse a histogram of a shape that the query is not over."""
        if shape != self.shape:
            raise ParameterError("query", Words(f"a marginal of shape {self.shape}"), f"one of shape {shape}")

    def answer(self, weights: Weights, workers: int = 1) -> NDArray[np.float64]:
        """Return the sum of the weights, each times its coefficient."""
        sums = np.zeros(math.prod(self.table))
        kernels.sum_marginal(weights, *self._walk, self._scratch(), sums)
        return sums.reshape(self.table)

    def multiply(self, weights: Weights, total: float, eta: Any, workers: int = 1) -> float:
        """Multiply every weight by exp(eta * coefficient), in place; return the new sum."""
        factors = np.exp(eta).reshape(-1) / total
        return float(kernels.multiply_marginal(weights, *self._walk, self._scratch(), factors))

    def add(self, logarithms: Weights, eta: Any, workers: int = 1) -> None:
        """Add eta * coefficient to every cell, in place."""
        terms = np.ascontiguousarray(eta, np.float64).reshape(-1)
        kernels.add_marginal(logarithms, *self._walk, self._scratch(), terms)

    def coefficients(self, shape: tuple[int, ...]) -> NDArray[Any]:
        """Return the coefficients as an array of the shape."""
        self.check(shape)
        queries = math.prod(self.table)
        places = np.zeros(math.prod(shape))
        self.add(places, np.arange(queries).astype(np.float64))
        coefficients: NDArray[Any] = np.arange(queries)[:, None] == places
        return coefficients.astype(np.uint8).reshape(*self.table, *shape)


@dataclass(frozen=True, eq=False, repr=False)
class Ranges(LinearQuery):
    """The cells from starts[i] up to stops[i], exclusive, for every i: integer arrays of one length.

    Etas and answers are arrays of that length. Their ends cut the cells into segments, of which each has one factor,
    so that an update takes one pass over the cells, however many ranges there are.

    Examples
    --------
    >>> Ranges([0, 1], [2, 3]).answer(np.array([8.0, 4.0, 1.0]))
    array([12.,  5.])

    """

    starts: Annotated[TypedColumn | Sequence[int], INTEGERS]
    stops: Annotated[TypedColumn | Sequence[int], INTEGERS]
    _ends: NDArray[np.int64] = field(init=False, repr=False)
    _first: NDArray[np.int64] = field(init=False, repr=False)
    _last: NDArray[np.int64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        both = []
        for name in ("starts", "stops"):
            ends = as_array(getattr(self, name), name)
            if ends.ndim != 1 or ends.dtype.kind not in "iu" or not ends.size:
                raise ParameterError(
                    name, Words(f"of shape {ends.shape} and type {ends.dtype}"), "one column of integers"
                )
            both.append(ends.astype(np.int64))
        starts, stops = both
        if starts.size != stops.size:
            raise ParameterError("stops", Words(f"{stops.size} of them"), f"{starts.size}, as many as the starts")
        if starts.min() < 0:
            raise ParameterError("starts", Words("one below 0"), "integers of 0 or more", "count cells from 0")
        if not (starts <= stops).all():
            raise ParameterError("stops", Words("one below its start"), "at least the starts")
        ends = np.unique(np.concatenate([[0], starts, stops]))
        self._set(_ends=ends, _first=np.searchsorted(ends, starts), _last=np.searchsorted(ends, stops))

    @property
    def table(self) -> tuple[int, ...]:
        """How many ranges there are."""
        return (self._first.size,)

    def check(self, shape: tuple[int, ...]) -> None:
        """Refuse a histogram of a shape that the query is not over."""
        if self._ends[-1] > math.prod(shape):
            raise ParameterError(
                "query", Words(f"ranges up to {self._ends[-1]}"), f"ranges up to {math.prod(shape)} cells"
            )

    def _edges(self, cells: int) -> NDArray[np.int64]:
        return np.append(self._ends, cells)

    def _etas(self, eta: Any) -> NDArray[np.float64]:
        """Return the sum of the etas of the ranges that each segment is in."""
        steps = np.bincount(self._first, eta, self._ends.size) - np.bincount(self._last, eta, self._ends.size)
        etas: NDArray[np.float64] = np.cumsum(steps)
        return etas

    def answer(self, weights: Weights, workers: int = 1) -> NDArray[np.float64]:
        """Return the sum of the weights, each times its coefficient."""
        sums = np.empty(self._ends.size)
        kernels_of_slabs.sum_segments(weights, self._edges(weights.size), sums)
        before = np.append(0.0, np.cumsum(sums))
        answers: NDArray[np.float64] = before[self._last] - before[self._first]
        return answers

    def multiply(self, weights: Weights, total: float, eta: Any, workers: int = 1) -> float:
        """Multiply every weight by exp(eta * coefficient), in place; return the new sum."""
        etas = self._etas(eta)
        if not (np.abs(etas) <= LARGEST_ETA).all():
            raise ParameterError(
                "eta",
                Words("an array"),
                f"such that those of no cell add up to more than {LARGEST_ETA:g}",
                "use LogWeights",
            )
        return float(kernels_of_slabs.multiply_segments(weights, self._edges(weights.size), np.exp(etas) / total))

    def add(self, logarithms: Weights, eta: Any, workers: int = 1) -> None:
        """Add eta * coefficient to every cell, in place."""
        kernels_of_slabs.add_to_segments(logarithms, self._edges(logarithms.size), self._etas(eta))

    def coefficients(self, shape: tuple[int, ...]) -> NDArray[Any]:
        """Return the coefficients as an array of the shape."""
        self.check(shape)
        cells = np.arange(math.prod(shape))
        starts, stops = self._ends[self._first], self._ends[self._last]
        inside: NDArray[Any] = (starts[:, None] <= cells) & (cells < stops[:, None])
        return inside.astype(np.uint8).reshape(-1, *shape)
