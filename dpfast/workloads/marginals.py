"""Marginals: the counts of every combination of values of a few attributes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import combinations
from typing import Annotated, Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.arguments import Special, Whole
from dpfast.errors import ParameterError, Words
from dpfast.kernels.histograms.marginals import spread_marginals, sum_marginals
from dpfast.workloads.histograms import Numbers, checked_histogram
from dpfast.workloads.marginal_tree import MarginalTree
from dpfast.workloads.shapes import (
    ANY_SHAPE,
    AnyShape,
    Coefficients,
    check_size,
    check_sums,
    checked_coefficients,
    read_only,
)
from dpfast.workloads.workload import Place, Workload

__all__ = ["Marginals", "Sets", "Together"]

_SIZE = Whole(0)
_NO_SETS = ([(-1,)], [(99,)], [(0, 0)], [(0,), None])
#: How many attributes each marginal has, where it is all of so many.
Together: TypeAlias = Annotated[int, replace(_SIZE, optional=True)]
#: Sets of attributes, counted from 0.
Sets: TypeAlias = Annotated[
    Iterable[Iterable[int]],
    Special(
        lambda: (True, 3, 0.5, "ab", b"ab", object(), {0: 1}, [], [0], ["a"], [(0.5,)], [(True,)], *_NO_SETS),
        optional=True,
    ),
]


class Marginals(Workload):
    """Marginal tables: a query for every combination of values of some attributes, summed over all others.

    Parameters
    ----------
    shape
        How many values each attribute has; of any number of cells together, as long as the queries are not too many.
    k
        All marginals of so many attributes, in lexicographic order.
    attributes
        Or these marginals: tuples of attributes, counted from 0. A marginal's attributes are put in ascending order;
        () is the total.

    Attributes
    ----------
    attributes
        The attributes of each marginal.
    offsets
        Marginal m has the queries offsets[m] to offsets[m + 1], in the order of a histogram over its attributes.

    """

    binary = True

    def __init__(self, shape: AnyShape, k: Together | None = None, attributes: Sets | None = None) -> None:
        self.shape = ANY_SHAPE.read("shape", shape)
        self.attributes = _checked_marginals(len(self.shape), k, attributes)
        sizes = [math.prod(self.shape[a] for a in marginal) for marginal in self.attributes]
        check_size(sum(sizes), "attributes" if k is None else "k", "queries")
        self.offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    def __len__(self) -> int:
        return int(self.offsets[-1])

    def marginal_shape(self, index: int) -> tuple[int, ...]:
        """Return how many values each attribute of a marginal has."""
        return tuple(self.shape[attribute] for attribute in self.attributes[index])

    def answer(self, histogram: Numbers) -> NDArray[Any]:
        """Return all marginals, one after another, in a few passes over the histogram."""
        cells = checked_histogram(histogram, self.shape)
        check_sums(cells)
        answers = self.answer_along(cells.reshape(1, -1, 1)).reshape(-1)
        # A copy lets the other tables go.
        return answers if len(self) == self._tree.size else answers.copy()

    def split(self, answers: NDArray[Any]) -> list[NDArray[Any]]:
        """Return the answers of each marginal as a table of `marginal_shape`: views."""
        return [
            answers[start:stop].reshape(self.marginal_shape(index)) for index, start, stop in self._parts(0, len(self))
        ]

    def transposed(self, coefficients: Coefficients) -> NDArray[np.float64]:
        """Return the sum of all marginals' coefficients in every cell."""
        self.check_cells()
        given = checked_coefficients(coefficients, len(self))
        return self.transposed_along(given.reshape(1, -1, 1)).reshape(self.shape)

    def answer_along(self, table: NDArray[Any]) -> NDArray[Any]:
        """Return all marginals along the middle axis of a table, of which the inner axis is one more attribute."""
        outer, _, inner = table.shape
        tables = np.empty((outer, self._tree.size * inner), table.dtype)
        for each, own in zip(table, tables, strict=True):
            sum_marginals(read_only(np.ascontiguousarray(each).reshape(-1)), self._tree.steps * _along(inner), own)
        return tables.reshape(outer, -1, inner)[:, : len(self)]

    def transposed_along(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of all marginals' coefficients in every cell along the middle axis of a table."""
        outer, _, inner = table.shape
        out = np.zeros((outer, self.cells * inner))
        for each, own in zip(table, out, strict=True):
            tables = np.zeros((self._tree.size, inner))
            tables[: len(self)] = each
            spread_marginals(self._tree.steps * _along(inner), tables.reshape(-1), own)
        return out.reshape(outer, self.cells, inner)

    def rows(self, start: Place, stop: Place) -> NDArray[np.uint8]:
        """Return rows with ones where a cell has the query's values."""
        start, stop = self._span(start, stop)
        out = np.zeros((stop - start, *self.shape), np.uint8)
        row = 0
        for index, first, last in self._parts(start, stop):
            for values in self._values(index, first, last):
                place: list[Any] = [slice(None)] * len(self.shape)
                for attribute, value in zip(self.attributes[index], values, strict=True):
                    place[attribute] = value
                out[(row, *place)] = 1
                row += 1
        return out.reshape(stop - start, self.cells)

    @property
    def range(self) -> tuple[float, float]:
        """From 0, or 1 where every query counts all cells, to 1."""
        return float(len(self) == len(self.attributes)), 1.0

    @property
    def groups(self) -> NDArray[np.int64]:
        """The queries of one marginal are disjoint."""
        return self.offsets

    def frame(self) -> pl.DataFrame:
        """Return the ``attributes`` of each query's marginal and their ``values``, as lists."""
        attributes, values = [], []
        for index, start, stop in self._parts(0, len(self)):
            values += self._values(index, start, stop).tolist()
            attributes += [list(self.attributes[index])] * (stop - start)
        kind = pl.List(pl.Int64)
        return pl.DataFrame({"attributes": attributes, "values": values}, schema={"attributes": kind, "values": kind})

    def _gram(self) -> NDArray[np.float64]:
        units = np.eye(self.cells)
        return np.stack([self.transposed(self.answer(unit)).reshape(-1) for unit in units])

    @cached_property
    def _tree(self) -> MarginalTree:
        return MarginalTree(self.shape, self.attributes)

    def _values(self, index: int, start: int, stop: int) -> NDArray[np.int64]:
        """Return the values of queries of one marginal: queries by attributes."""
        own = np.arange(start, stop) - self.offsets[index]
        shape = self.marginal_shape(index)
        return np.stack(np.unravel_index(own, shape), axis=1) if shape else np.empty((own.size, 0), np.int64)

    def _parts(self, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """Give each marginal with queries from start to stop, and which of its queries these are."""
        index = int(np.searchsorted(self.offsets, start, side="right")) - 1
        while start < stop:
            end = min(int(self.offsets[index + 1]), stop)
            yield index, start, end
            start, index = end, index + 1


def _along(inner: int) -> NDArray[np.int64]:
    """Return what the steps of a tree are multiplied by where every cell is so many numbers; -1 stays negative."""
    return np.array([inner, inner, 1, 1, inner], np.int64)


def _checked_marginals(axes: int, k: object, attributes: Iterable[Iterable[int]] | None) -> tuple[tuple[int, ...], ...]:
    """Return the attributes of each marginal in ascending order."""
    if (k is None) == (attributes is None):
        given = Words("neither" if k is None else "both")
        raise ParameterError("k or attributes", given, "one of the two", "write for example k=2")
    if attributes is None:
        size = _SIZE.read("k", k)
        if size > axes:
            raise ParameterError("k", size, f"at most the {axes} attributes of the shape")
        check_size(math.comb(axes, size), "k", "marginals")
        return tuple(combinations(range(axes), size))
    try:
        marginals = [tuple(_SIZE.read("attributes", a) for a in marginal) for marginal in attributes]
    except TypeError:
        raise ParameterError(
            "attributes", attributes, "a list of tuples of attributes", "write for example [(0, 3), (1,)]"
        ) from None
    if not marginals:
        raise ParameterError("attributes", attributes, "at least one marginal", "write for example [(0, 3), (1,)]")
    for marginal in marginals:
        if len(set(marginal)) < len(marginal) or any(attribute >= axes for attribute in marginal):
            raise ParameterError("attributes", marginal, f"different integers below {axes} in each marginal")
    return tuple(tuple(sorted(marginal)) for marginal in marginals)
