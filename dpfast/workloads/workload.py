"""What a workload is: linear queries over the cells of a histogram, without their matrix; and several as one."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.arguments import Instance, Whole
from dpfast.errors import ParameterError, Words
from dpfast.kernels.histograms.products import square_block_sums
from dpfast.showing import Facts, Shown
from dpfast.workloads.histograms import Numbers, checked_histogram
from dpfast.workloads.shapes import Coefficients, check_size, checked_coefficients, read_only

__all__ = [
    "ANY_WORKLOAD",
    "LARGEST_GRAM",
    "PLACE",
    "WORKLOAD",
    "Asked",
    "AskedOfAny",
    "OwnQueries",
    "Place",
    "Union",
    "Workload",
    "check_workloads",
]

#: The most cells for which a matrix of cells by cells is formed: 2**13 take half a gigabyte.
LARGEST_GRAM = 2**13

#: A query's number.
PLACE = Whole(0)
Place: TypeAlias = Annotated[int, PLACE]

#: Rows of a matrix are formed in blocks of about so many numbers.
_BLOCK_NUMBERS = 2**22


class Workload(Shown, ABC):
    """Linear queries w_1, ..., w_q over a histogram h: query i has the answer <w_i, h>.

    Cells are numbered as NumPy does: the last attribute runs fastest. No subclass holds the q-by-cells matrix W; each
    knows how to multiply by it and by its transpose.

    Attributes
    ----------
    shape
        How many cells the histogram has along each attribute.

    """

    shape: tuple[int, ...]

    @property
    def cells(self) -> int:
        """How many cells the histogram has."""
        return math.prod(self.shape)

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of queries."""

    @abstractmethod
    def answer(self, histogram: Numbers) -> NDArray[Any]:
        """Return all answers W h: int64, exact, for a histogram of integers and queries of integers, else float64.

        Takes an array of `shape` or of as many cells in one dimension.
        """

    @abstractmethod
    def transposed(self, coefficients: Coefficients) -> NDArray[np.float64]:
        """Return the sum of the queries, each times its coefficient: W' c, of `shape`."""

    @abstractmethod
    def rows(self, start: Place, stop: Place) -> NDArray[Any]:
        """Return queries start to stop (exclusive) as rows of a matrix with `cells` columns: uint8 if `binary`."""

    @property
    @abstractmethod
    def range(self) -> tuple[float, float]:
        """The least and the largest coefficient of any query in any cell."""

    @property
    def binary(self) -> bool:
        """Whether every coefficient is 0 or 1."""
        return False

    @property
    def groups(self) -> NDArray[np.int64] | None:
        """Offsets of groups of consecutive queries that are disjoint: a cell is in one query of a group at most.

        Group g has the queries offsets[g] to offsets[g + 1]; measuring all of a group costs what one query does.
        None where each query is a group of its own.
        """
        return None

    @abstractmethod
    def frame(self) -> pl.DataFrame:
        """Return what each query asks, a row each: bounds of a range, values of attributes."""

    def answer_along(self, table: NDArray[Any]) -> NDArray[Any]:
        """Return the answers along the middle axis of a table: (outer, cells, inner) to (outer, queries, inner).

        That is what products of workloads are made of.
        """
        rows = np.moveaxis(table, 1, 2).reshape(-1, self.cells)
        answers = np.stack([self.answer(row) for row in rows])
        return np.moveaxis(answers.reshape(len(table), -1, len(self)), 2, 1)

    def transposed_along(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return W' c along the middle axis of coefficients: (outer, queries, inner) to (outer, cells, inner)."""
        rows = np.moveaxis(table, 1, 2).reshape(-1, len(self))
        spread = np.stack([self.transposed(row).reshape(-1) for row in rows])
        return np.moveaxis(spread.reshape(len(table), -1, self.cells), 2, 1)

    def check_cells(self) -> None:
        """Refuse what needs a number for each cell where no array holds them."""
        check_size(self.cells, "workload", "cells")

    def _span(self, start: int, stop: int) -> tuple[int, int]:
        """Return from where to where queries are asked for, or refuse what is no part of them."""
        self.check_cells()
        start, stop = PLACE.read("start", start), PLACE.read("stop", stop)
        if not start <= stop <= len(self):
            raise ParameterError("stop", stop, f"from start, {start:,}, to {len(self):,}, the number of queries")
        return start, stop

    def query(self, index: Place) -> NDArray[Any]:
        """Return one query as an array of `shape`."""
        if PLACE.read("index", index) >= len(self):
            raise ParameterError("index", index, f"below {len(self):,}, the number of queries")
        return self.rows(index, index + 1).reshape(self.shape)

    def gram(self) -> NDArray[np.float64]:
        """Return W' W, cells by cells, for at most `LARGEST_GRAM` cells."""
        if self.cells > LARGEST_GRAM:
            needed = 8 * self.cells**2
            raise ParameterError(
                "workload",
                Words(f"one over {self.cells:,} cells"),
                f"one over at most {LARGEST_GRAM:,} cells where its Gram matrix is needed (this one takes {needed:,} "
                "bytes)",
                "use a strategy with a closed form, or coarser cells",
            )
        return self._gram()

    def _gram(self) -> NDArray[np.float64]:
        """Return W' W where it is small enough."""
        total = np.zeros((self.cells, self.cells))
        for block in self.blocks():
            dense = block.astype(np.float64)
            total += dense.T @ dense
        return total

    def energy(self, edges: NDArray[np.int64]) -> float:
        """Return the sum over all queries and blocks of cells of (the query's sum over the block) squared.

        Block j has the cells edges[j] to edges[j + 1], in the order of the flattened histogram; blocks cover all cells.
        That is what the error of strategies made of blocks takes.
        """
        self.check_cells()
        if self.binary and len(edges) == self.cells + 1:
            # Every one is a block of its own: there are as many as the queries count cells.
            return float(self.answer(np.ones(self.cells, np.int64)).sum(dtype=np.float64))
        if (len(edges) - 1) * (len(self) + self.cells) < len(self) * self.cells:
            return math.fsum(float(np.square(sums, dtype=np.float64).sum()) for sums in self._block_sums(edges))
        return self._energy_of_rows(edges)

    def _energy_of_rows(self, edges: NDArray[np.int64]) -> float:
        """Return `energy` from the rows of the matrix, a few megabytes at a time."""
        bytewise = self.binary
        zero = np.int64(0) if bytewise else np.float64(0)
        return math.fsum(
            square_block_sums(read_only(block if bytewise else block.astype(np.float64, copy=False)), edges, zero)
            for block in self.blocks()
        )

    def _block_sums(self, edges: NDArray[np.int64]) -> Iterator[NDArray[Any]]:
        """Give all queries' sums over one block after another."""
        inside = np.zeros(self.cells, np.int64)
        for start, stop in pairwise(edges.tolist()):
            inside[start:stop] = 1
            yield self.answer(inside)
            inside[start:stop] = 0

    def blocks(self) -> Iterator[NDArray[Any]]:
        """Give the rows of the matrix in blocks of a few megabytes."""
        self.check_cells()
        step = max(1, _BLOCK_NUMBERS // self.cells)
        for start in range(0, len(self), step):
            yield self.rows(start, min(start + step, len(self)))

    def __add__(self, other: Workload) -> Workload:
        """Ask the queries of both, over one histogram."""
        return Union(self, other)

    def _facts(self) -> Facts:
        return [("queries", len(self)), ("shape", self.shape)]

    def __repr__(self) -> str:
        """Show the kind, the number of queries and the shape."""
        asked = "1 query" if len(self) == 1 else f"{len(self)} queries"
        cells = "cell" if self.cells == 1 else "cells"
        return f"{type(self).__name__}({asked} over {' x '.join(map(str, self.shape))} {cells})"


@dataclass(frozen=True)
class _OverCells(Instance[Workload]):
    """A workload over a histogram, which an array holds."""

    def read(self, name: str, given: object) -> Workload:
        """Return it; refuse one over more cells than arrays hold."""
        workload = super().read(name, given)
        check_size(workload.cells, name, "cells")
        return workload


_OF_WORKLOADS: Any = {
    "kind": Workload,
    "what": "a workload of dpfast.workloads",
    "mend": "write for example dpf.workloads.prefix(100)",
}
WORKLOAD = _OverCells(**_OF_WORKLOADS)
#: The same over any number of cells: where nothing is made of them.
ANY_WORKLOAD: Instance[Workload] = Instance(**_OF_WORKLOADS)


def check_workloads(workloads: tuple[object, ...]) -> None:
    """Refuse what is not one workload or more."""
    if not workloads or not all(map(ANY_WORKLOAD.accepts, workloads)):
        raise ParameterError("workloads", workloads, "one workload or more", "write for example prefix(8), total(8)")


#: The queries that are asked.
Asked: TypeAlias = Annotated[Workload, WORKLOAD]
AskedOfAny: TypeAlias = Annotated[Workload, ANY_WORKLOAD]
#: None asks for every cell.
OwnQueries: TypeAlias = Annotated[Workload | None, replace(WORKLOAD, optional=True)]


class Union(Workload):
    """The queries of several workloads, one after the other: what ``a + b`` makes.

    Parameters
    ----------
    parts
        Workloads of one shape, at least one.

    """

    def __init__(self, *parts: Workload) -> None:
        check_workloads(parts)
        self.parts: tuple[Workload, ...] = ()
        for part in parts:
            self.parts += part.parts if isinstance(part, Union) else (part,)
        self.shape = self.parts[0].shape
        for part in self.parts:
            if part.shape != self.shape:
                raise ParameterError(
                    "workloads", Words(f"over {self.shape} and {part.shape}"), "over histograms of one shape"
                )
        self.offsets = np.concatenate([[0], np.cumsum([len(part) for part in self.parts])]).astype(np.int64)
        check_size(len(self), "workloads", "queries")

    def __len__(self) -> int:
        return int(self.offsets[-1])

    def answer(self, histogram: Numbers) -> NDArray[Any]:
        """Return the answers of all parts: float64 if those of one are."""
        cells = checked_histogram(histogram, self.shape)
        return np.concatenate([part.answer(cells) for part in self.parts])

    def transposed(self, coefficients: Coefficients) -> NDArray[np.float64]:
        """Return the sum over all parts."""
        self.check_cells()
        given = checked_coefficients(coefficients, len(self))
        out = np.zeros(self.shape)
        for part, start, stop in zip(self.parts, self.offsets, self.offsets[1:], strict=False):
            out += part.transposed(given[start:stop])
        return out

    def rows(self, start: Place, stop: Place) -> NDArray[Any]:
        """Return rows of the parts."""
        start, stop = self._span(start, stop)
        blocks = [
            part.rows(max(start - first, 0), min(stop, last) - first)
            for part, first, last in zip(self.parts, self.offsets.tolist(), self.offsets[1:].tolist(), strict=False)
            if start < last and first < stop
        ]
        return np.concatenate(blocks) if blocks else np.empty((0, self.cells), np.uint8)

    @property
    def range(self) -> tuple[float, float]:
        """The least and the largest coefficient of all parts."""
        ranges = [part.range for part in self.parts]
        return min(least for least, _ in ranges), max(largest for _, largest in ranges)

    @property
    def binary(self) -> bool:
        """Whether all parts are."""
        return all(part.binary for part in self.parts)

    @property
    def groups(self) -> NDArray[np.int64] | None:
        """The groups of the parts, one after the other."""
        groups = [part.groups for part in self.parts]
        if all(group is None for group in groups):
            return None
        starts = [
            first + (np.arange(len(part)) if group is None else group[:-1])
            for part, group, first in zip(self.parts, groups, self.offsets, strict=False)
        ]
        return np.concatenate([*starts, self.offsets[-1:]])

    def frame(self) -> pl.DataFrame:
        """Return the parts' frames below each other, after a column ``part`` with the part's number."""
        frames = [
            part.frame().select(pl.lit(number).cast(pl.Int64).alias("part"), pl.all())
            for number, part in enumerate(self.parts)
        ]
        together: pl.DataFrame = pl.concat(frames, how="diagonal")
        return together

    def _gram(self) -> NDArray[np.float64]:
        out = np.zeros((self.cells, self.cells))
        for part in self.parts:
            out += part.gram()
        return out

    def energy(self, edges: NDArray[np.int64]) -> float:
        """Return the sum of the parts' energies."""
        return sum(part.energy(edges) for part in self.parts)
