"""Linear queries that are 1 on a slab of cells and 0 elsewhere: ranges, boxes, cells of marginals."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Special, Whole, is_numeric
from dpfast.errors import ParameterError, Words
from dpfast.kernels.weights import slabs as kernels
from dpfast.weights.declarations import PLACES, SHAPE
from dpfast.weights.linear_queries import LinearQuery, Weights, sum_of

__all__ = ["BoxQuery", "MarginalCell", "RangeQuery", "SlabQuery", "checked_attributes", "checked_shape"]

#: Shorter runs are not walked if there are longer ones.
_SHORT_RUN = 16

#: A sum below this share of the old one is taken afresh.
_LEAST_SHARE = 1.0 / 16.0

_MOST_CELLS = 2**48
_END = Whole(0, _MOST_CELLS, mend="count cells from 0; stop is the first one after the range")
_ENDS = Special(lambda: [True, 0.5, "0", b"0", len, {0: 1}, (), (-1, -1), (99, 99), ("0", "0"), (None, 0), (1,) * 7])

#: Where a slab begins, and the sizes and strides of its axes.
Slab = tuple[int, NDArray[np.int64], NDArray[np.int64]]


def checked_shape(shape: Any) -> tuple[int, ...]:
    """Return a shape as a tuple of positive integers."""
    sizes = whole_numbers(shape)
    if not sizes or min(sizes) < 1 or math.prod(sizes) > _MOST_CELLS:
        allowed = "a number of cells for each attribute, each at least 1, and 2**48 at most in all"
        raise ParameterError("shape", shape, allowed, "write for example (4, 3)")
    return sizes


def checked_attributes(attributes: Any, axes: int) -> tuple[int, ...]:
    """Return the attributes of a marginal: ascending places in the shape."""
    places = whole_numbers(attributes)
    if places is None or any(not 0 <= place < axes for place in places) or any(a >= b for a, b in pairwise(places)):
        raise ParameterError("attributes", attributes, f"ascending places in the shape, from 0 to {axes - 1}")
    return places


def whole_numbers(given: Any) -> tuple[int, ...] | None:
    """Return whole numbers, or one alone, as a tuple; None for anything else."""
    listed = tuple(given) if np.iterable(given) and not isinstance(given, (str, bytes, dict)) else (given,)
    if not all(isinstance(number, (int, np.integer)) and is_numeric(number) for number in listed):
        return None
    return tuple(int(number) for number in listed)


def _axes(starts: Sequence[int], stops: Sequence[int], shape: tuple[int, ...]) -> Slab:
    """Return the slab of a box in a shape, neighbouring axes joined where the inner one is full; the last is long."""
    offset, stride = 0, 1
    sizes: list[int] = []
    strides: list[int] = []
    for start, stop, size in zip(reversed(starts), reversed(stops), reversed(shape), strict=True):
        offset += start * stride
        if sizes and strides[-1] * sizes[-1] == stride:
            sizes[-1] *= stop - start
        elif stop - start != 1:
            sizes.append(stop - start)
            strides.append(stride)
        stride *= size
    if len(sizes) > 1 and sizes[0] < _SHORT_RUN:
        longest = sizes.index(max(sizes))
        sizes.insert(0, sizes.pop(longest))
        strides.insert(0, strides.pop(longest))
    return offset, np.array(sizes[::-1] or [1], np.int64), np.array(strides[::-1] or [1], np.int64)


class SlabQuery(LinearQuery):
    """A query over a slab."""

    is_sparse = True

    @property
    @abstractmethod
    def slab(self) -> Slab:
        """The slab's offset, sizes and strides; a size of 0 where it is empty."""

    def answer(self, weights: Weights, workers: int = 1) -> float:
        """Return the sum of the weights, each times its coefficient."""
        return float(kernels.sum_slab(weights, *self.slab))

    def multiply(self, weights: Weights, total: float, eta: Any, workers: int = 1) -> float:
        """Multiply every weight by exp(eta * coefficient), in place; return the new sum."""
        factor = math.exp(eta)
        inside = float(kernels.multiply_slab(weights, *self.slab, factor))
        left = total - inside + inside * factor
        # What is left of a difference has lost the bits that the two have in common.
        return left if left >= _LEAST_SHARE * total else sum_of(weights, workers)

    def add(self, logarithms: Weights, eta: Any, workers: int = 1) -> None:
        """Add eta * coefficient to every cell, in place."""
        kernels.add_to_slab(logarithms, *self.slab, float(eta))

    def coefficients(self, shape: tuple[int, ...]) -> NDArray[Any]:
        """Return the coefficients as an array of the shape."""
        self.check(shape)
        cells = np.zeros(math.prod(shape))
        kernels.add_to_slab(cells, *self.slab, 1.0)
        return cells.astype(np.uint8).reshape(shape)


@dataclass(frozen=True)
class RangeQuery(SlabQuery):
    """The cells from ``start`` up to ``stop``, exclusive, of the histogram in one dimension.

    Examples
    --------
    >>> RangeQuery(1, 3).answer(np.array([8.0, 4.0, 1.0]))
    5.0

    """

    start: Annotated[int, _END]
    stop: Annotated[int, _END]

    def __post_init__(self) -> None:
        for name in ("start", "stop"):
            _END.read(name, getattr(self, name))

    def check(self, shape: tuple[int, ...]) -> None:
        """Refuse a histogram of a shape that the query is not over."""
        if not 0 <= self.start <= self.stop <= math.prod(shape):
            raise ParameterError(
                "query",
                (self.start, self.stop),
                f"a range with 0 <= start <= stop <= {math.prod(shape)}",
                "count cells from 0; stop is the first one after the range",
            )

    @cached_property
    def slab(self) -> Slab:
        """The slab's offset, sizes and strides."""
        return int(self.start), np.array([self.stop - self.start], np.int64), np.ones(1, np.int64)


class _InShape(SlabQuery):
    shape: tuple[int, ...]

    def check(self, shape: tuple[int, ...]) -> None:
        if shape != self.shape:
            raise ParameterError("query", Words(f"one over shape {self.shape}"), f"one over shape {shape}")


@dataclass(frozen=True, repr=False)
class BoxQuery(_InShape):
    """The cells from ``lower`` up to ``upper``, exclusive, along every attribute.

    Examples
    --------
    >>> BoxQuery((2, 3), lower=(0, 1), upper=(2, 2)).coefficients((2, 3)).tolist()
    [[0, 1, 0], [0, 1, 0]]

    """

    shape: Annotated[tuple[int, ...], SHAPE]
    lower: Annotated[tuple[int, ...], _ENDS]
    upper: Annotated[tuple[int, ...], _ENDS]

    def __post_init__(self) -> None:
        self._set(shape=checked_shape(self.shape))
        for name in ("lower", "upper"):
            given = getattr(self, name)
            ends = whole_numbers(given)
            self._set(**{name: ends})
            if ends is None or len(ends) != len(self.shape):
                raise ParameterError(name, given, f"{len(self.shape)} integers, one for each attribute")
        if any(not 0 <= start <= size for start, size in zip(self.lower, self.shape, strict=True)):
            raise ParameterError("lower", self.lower, f"from 0 to {self.shape}", "count cells from 0")
        sides = zip(self.lower, self.upper, self.shape, strict=True)
        if any(not 0 <= start <= stop <= size for start, stop, size in sides):
            raise ParameterError("upper", self.upper, f"from {self.lower} to {self.shape}")

    @cached_property
    def slab(self) -> Slab:
        """The slab's offset, sizes and strides."""
        if any(start == stop for start, stop in zip(self.lower, self.upper, strict=True)):
            return 0, np.zeros(1, np.int64), np.ones(1, np.int64)
        return _axes(self.lower, self.upper, self.shape)


@dataclass(frozen=True, repr=False)
class MarginalCell(_InShape):
    """The cells in which the attributes at the places ``attributes`` have the values ``values``.

    Examples
    --------
    >>> MarginalCell((2, 3), attributes=(1,), values=(2,)).coefficients((2, 3)).tolist()
    [[0, 0, 1], [0, 0, 1]]

    """

    shape: Annotated[tuple[int, ...], SHAPE]
    attributes: Annotated[tuple[int, ...], PLACES]
    values: Annotated[tuple[int, ...], _ENDS]

    def __post_init__(self) -> None:
        shape = checked_shape(self.shape)
        attributes = checked_attributes(self.attributes, len(shape))
        values = whole_numbers(self.values)
        sizes = [shape[place] for place in attributes]
        within = values is not None and all(0 <= value < size for value, size in zip(values, sizes, strict=False))
        if values is None or len(values) != len(sizes) or not within:
            raise ParameterError("values", self.values, f"a value for each attribute, below {tuple(sizes)}")
        self._set(shape=shape, attributes=attributes, values=values)

    @cached_property
    def slab(self) -> Slab:
        """The slab's offset, sizes and strides."""
        lower, upper = [0] * len(self.shape), list(self.shape)
        for place, value in zip(self.attributes, self.values, strict=True):
            lower[place], upper[place] = value, value + 1
        return _axes(lower, upper, self.shape)
