"""What the queries of a workload say of each set of attributes: products of queries, and rectangles, taken apart.

A query that is a product of one query w_i of each attribute i is, with w_i = m_i 1 + r_i, m_i the mean of its
coefficients and r_i adding up to 0, a sum over all sets T of attributes: of r_i for i in T and m_i 1 for all others.
Each term is answered from the residual of T alone, and residuals have independent noise. So its variance is

    sum over T of v_T * product over T of r_i (R_i'R_i)^+ r_i' * product over all others of m_i**2,

v_T being the variance of the noise on each number of the residual, and R_i the contrasts of attribute i.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.errors import ParameterError
from dpfast.strategies.axes import bounds_of, terms_of
from dpfast.strategies.contrasts import Contrasts, means_of
from dpfast.workloads.bounds import count_both
from dpfast.workloads.cells import Identity, Total
from dpfast.workloads.kronecker import Kronecker
from dpfast.workloads.marginals import Marginals
from dpfast.workloads.ranges import Ranges
from dpfast.workloads.rectangles import Rectangles
from dpfast.workloads.workload import Union, Workload

__all__ = ["PLACE", "Along", "Block", "Products", "Rectangular", "blocks_of", "blocks_of_marginals"]

Attributes = tuple[int, ...]
Floats = NDArray[np.float64]

PLACE = ""
"""What a frame calls the places of answers: as no column is called."""


class Along:
    """What each query of an axis makes of noise, along its attribute: worked out once for each axis.

    Parameters
    ----------
    contrasts
        Of each attribute.

    """

    def __init__(self, contrasts: Sequence[Contrasts]) -> None:
        self.contrasts = contrasts
        self._parts: dict[tuple[int, int], tuple[Floats, Floats]] = {}
        self._sums: dict[tuple[int, int], tuple[float, float]] = {}
        # Numbers of objects are used again unless these live.
        self._kept: list[Workload] = []

    def parts(self, attribute: int, axis: Workload) -> tuple[Floats, Floats]:
        """Return r (R'R)^+ r' and m**2 of each query."""
        key = attribute, id(axis)
        if key not in self._parts:
            self._kept.append(axis)
            self._parts[key] = self.contrasts[attribute].variances(axis), np.square(means_of(axis))
        return self._parts[key]

    def sums(self, attribute: int, axis: Workload) -> tuple[float, float]:
        """Return the sums of both."""
        key = attribute, id(axis)
        if key not in self._sums:
            rests, means = self.parts(attribute, axis)
            self._sums[key] = float(rests.sum()), float(means.sum())
        return self._sums[key]


@dataclass(frozen=True, eq=False)
class Block(ABC):
    """Queries about the same attributes.

    Attributes
    ----------
    attributes
        What any of the queries is about, ascending: along all others they are totals.
    axes
        A workload over each of them.
    part
        Of the whole workload, which is stacked of parts: the number of the one that these are of.
    places
        Where their answers stand among all.

    """

    attributes: Attributes
    axes: tuple[Workload, ...]
    part: int
    places: slice | NDArray[np.int64]

    @abstractmethod
    def __len__(self) -> int:
        """Return how many queries there are."""

    @abstractmethod
    def energies(self, spaces: Sequence[Attributes], along: Along) -> list[float]:
        """Return, for each of some sets, the sum over all queries of what noise on its residual is multiplied by."""

    @abstractmethod
    def variances(self, noise: Mapping[Attributes, float], along: Along) -> Floats:
        """Return each query's variance, from that of the noise on each residual within the attributes."""

    @abstractmethod
    def answer(self, table: Floats) -> Floats:
        """Return the answers, from the counts over all attributes, an axis for each."""

    @abstractmethod
    def gram(self, place: int, noise: Mapping[Attributes, float], along: Along) -> Floats:
        """Return the Gram matrix of the queries along one axis, as it matters to the noise on residuals with it.

        A query counts in it what r (R'R)^+ r' of this axis is multiplied by in its variance.
        """

    def frame(self, names: Sequence[str]) -> pl.DataFrame:
        """Return what each query asks of each column, and its place among all answers as `PLACE`."""
        places = self.places if isinstance(self.places, np.ndarray) else np.arange(self.places.start, self.places.stop)
        asked = [
            own.select(pl.all().name.prefix(f"{names[a]}_"))
            for a, own in zip(self.attributes, self._frames(), strict=True)
        ]
        return pl.concat([pl.DataFrame({PLACE: places}), *asked], how="horizontal")

    @abstractmethod
    def _frames(self) -> list[pl.DataFrame]:
        """Return what each query asks of each attribute."""

    def _others(self, space: Attributes) -> list[int]:
        """Return, for each attribute, 0 if it is in a set, else 1."""
        return [0 if a in space else 1 for a in self.attributes]


class Products(Block):
    """All products of a query of each axis, those of the last axis running fastest."""

    def __len__(self) -> int:
        return math.prod(map(len, self.axes))

    def energies(self, spaces: Sequence[Attributes], along: Along) -> list[float]:
        """See `Block.energies`: a sum of products is a product of sums."""
        sums = [(a, *along.sums(a, axis)) for a, axis in zip(self.attributes, self.axes, strict=True)]
        return [math.prod(rests if a in space else means for a, rests, means in sums) for space in spaces]

    def variances(self, noise: Mapping[Attributes, float], along: Along) -> Floats:
        """See `Block.variances`."""
        parts = [along.parts(a, axis) for a, axis in zip(self.attributes, self.axes, strict=True)]
        out = np.zeros(len(self))
        for space, variance in noise.items():
            own = [part[other] for part, other in zip(parts, self._others(space), strict=True)]
            out += reduce(np.multiply.outer, own, np.array(variance)).reshape(-1)
        return out

    def _frames(self) -> list[pl.DataFrame]:
        frames, queries = list[pl.DataFrame](), np.arange(len(self))
        for axis in reversed(self.axes):
            queries, own = np.divmod(queries, len(axis))
            frames.append(axis.frame()[own])
        return frames[::-1]

    def answer(self, table: Floats) -> Floats:
        """See `Block.answer`."""
        whole = Kronecker(*self.axes).answer(table) if self.axes else table
        return np.asarray(whole, np.float64).reshape(-1)

    def gram(self, place: int, noise: Mapping[Attributes, float], along: Along) -> Floats:
        """See `Block.gram`."""
        sums = [along.sums(a, axis) for a, axis in zip(self.attributes, self.axes, strict=True)]
        importance = math.fsum(
            variance * math.prod(sums[at][other] for at, other in enumerate(self._others(space)) if at != place)
            for space, variance in noise.items()
            if self.attributes[place] in space
        )
        return np.multiply(self.axes[place].gram(), importance)


@dataclass(frozen=True, eq=False)
class Rectangular(Block):
    """Queries that have a range of their own along each axis."""

    axes: tuple[Ranges, ...]

    def __len__(self) -> int:
        return len(self.axes[0])

    def energies(self, spaces: Sequence[Attributes], along: Along) -> list[float]:
        """See `Block.energies`."""
        return [float(self.variances({space: 1.0}, along).sum()) for space in spaces]

    def variances(self, noise: Mapping[Attributes, float], along: Along) -> Floats:
        """See `Block.variances`."""
        parts = [along.parts(a, axis) for a, axis in zip(self.attributes, self.axes, strict=True)]
        out = np.zeros(len(self))
        for space, variance in noise.items():
            own = [part[other] for part, other in zip(parts, self._others(space), strict=True)]
            out += variance * np.prod(own, axis=0)
        return out

    def _frames(self) -> list[pl.DataFrame]:
        return [axis.frame() for axis in self.axes]

    def answer(self, table: Floats) -> Floats:
        """See `Block.answer`."""
        bounds = [axis.bounds() for axis in self.axes]
        lower, upper = (np.stack(ends, axis=1) for ends in zip(*bounds, strict=True))
        return np.asarray(Rectangles(table.shape, lower, upper).answer(table), np.float64)

    def gram(self, place: int, noise: Mapping[Attributes, float], along: Along) -> Floats:
        """See `Block.gram`."""
        parts = [along.parts(a, axis) for a, axis in zip(self.attributes, self.axes, strict=True)]
        importance = np.zeros(len(self))
        for space, variance in noise.items():
            if self.attributes[place] in space:
                own = [part[other] for part, other in zip(parts, self._others(space), strict=True)]
                importance += variance * np.prod([one for at, one in enumerate(own) if at != place], axis=0)
        axis = self.axes[place]
        return count_both(axis.lower[:, None], axis.upper[:, None], axis.shape, importance)


def blocks_of(workload: Workload) -> list[Block]:
    """Take a workload apart into blocks of queries about the same attributes.

    Raises
    ------
    ParameterError
        It is neither made of products of workloads over one attribute each, nor of rectangles.

    Examples
    --------
    >>> import dpfast as dpf
    >>> ages = dpf.workloads.kronecker(dpf.workloads.prefix(100), dpf.workloads.total((7, 9)))
    >>> asked = ages + dpf.workloads.marginals((100, 7, 9), attributes=[(1, 2)])
    >>> [(block.attributes, len(block)) for block in blocks_of(asked)]
    [((0,), 100), ((1, 2), 63)]

    """
    parts = workload.parts if isinstance(workload, Union) else (workload,)
    blocks: list[Block] = []
    number = start = 0
    for part in parts:
        made = list(_blocks_of_part(part, number, start))
        blocks += made
        start += len(part)
        number = made[-1].part + 1
    return blocks


def blocks_of_marginals(sizes: Sequence[int], asked: Sequence[Attributes]) -> list[Block]:
    """Return a block for each marginal."""
    cells = [Identity(size) for size in sizes]
    blocks: list[Block] = []
    start = 0
    for number, held in enumerate(asked):
        stop = start + math.prod(sizes[a] for a in held)
        blocks.append(Products(held, tuple(cells[a] for a in held), number, slice(start, stop)))
        start = stop
    return blocks


def _blocks_of_part(part: Workload, number: int, start: int) -> Iterator[Block]:
    if isinstance(part, Marginals):
        for block in blocks_of_marginals(part.shape, part.attributes):
            own = block.places
            assert isinstance(own, slice)
            places = slice(start + own.start, start + own.stop)
            yield Products(block.attributes, block.axes, number + block.part, places)
        return
    if isinstance(part, Rectangles):
        yield from _blocks_of_rectangles(part, number, start)
        return
    terms = terms_of(part)
    if terms is None:
        allowed = "of marginals, rectangles, or products of workloads over one attribute each, or stacked of these"
        mend = "write for example dpf.workloads.about(domain, {...})"
        raise ParameterError("workload", part, allowed, mend)
    for term in terms:
        kept = [place for place, axis in enumerate(term) if not _is_total(axis)]
        stop = start + math.prod(map(len, term))
        yield Products(tuple(kept), tuple(term[place] for place in kept), number, slice(start, stop))
        start = stop


def _blocks_of_rectangles(part: Rectangles, number: int, start: int) -> Iterator[Block]:
    """Give the rectangles that cut the same attributes, a block for each such set."""
    cut = (part.lower > 0) | (part.upper < np.array(part.shape))
    cuts, which = np.unique(cut, axis=0, return_inverse=True)
    for place, own in enumerate(cuts):
        queries = np.flatnonzero(which.reshape(-1) == place)
        held = np.flatnonzero(own).tolist()
        if not held:
            yield from (Products((), (), number, slice(at, at + 1)) for at in (start + queries).tolist())
            continue
        axes = [Ranges(part.shape[a], part.lower[queries, a], part.upper[queries, a]) for a in held]
        yield Rectangular(tuple(held), tuple(axes), number, start + queries)


def _is_total(axis: Workload) -> bool:
    """Return whether an axis is the one query that counts everything."""
    if isinstance(axis, Total):
        return True
    bounds = bounds_of(axis) if len(axis) == 1 else None
    return bounds is not None and int(bounds[0][0]) == 0 and int(bounds[1][0]) == axis.cells
