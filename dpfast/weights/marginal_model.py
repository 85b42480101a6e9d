"""Weights whose marginals are measured: small tables between the cells and the marginals save almost all the work.

Attributes are put into a few blocks, consecutive and of about as many cells each. A marginal of k attributes lies
within a union of at most k blocks, and so follows from the table of that union, as does the effect of fitting it: to
multiply all cells by a function of the attributes in a union multiplies its table by that function. So a sweep goes
from union to union: sum the cells to its table, fit all its marginals there, one after the other, and multiply the
cells by what the table was multiplied by. That is the very sequence of updates on the cells, in an order that goes
union by union; two attributes of 15 over 2**18 cells take three passes over the cells in the place of 105.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpfast.kernels.weights.replay import fit_mass, project, replay_marginals, spread, sum_marginals
from dpfast.weights.model import TOLERANCE, Floats, Measured

__all__ = ["MarginalModel", "cover"]

#: More blocks make smaller tables and more passes.
_MOST_BLOCKS = 5


class _View:
    """How the cells over some attributes, as rows by columns, fall into those over fewer of them."""

    def __init__(self, shape: Sequence[int], split: int, kept: Sequence[int]) -> None:
        self.left = _codes(shape[:split], [axis for axis in kept if axis < split])
        self.right = _codes(shape[split:], [axis - split for axis in kept if axis >= split])
        self.wide = math.prod(shape[axis] for axis in kept if axis >= split)
        self.size = math.prod(shape[axis] for axis in kept)


def _codes(shape: Sequence[int], kept: Sequence[int]) -> NDArray[np.int32]:
    """Return for every cell of a table its cell in the marginal over some axes."""
    codes = np.zeros(shape, np.int32)
    for axis in kept:
        place = np.arange(shape[axis], dtype=np.int32)
        codes = codes * np.int32(shape[axis]) + place.reshape(
            [-1 if other == axis else 1 for other in range(len(shape))]
        )
    return np.ascontiguousarray(np.broadcast_to(codes, shape)).reshape(-1)


def _halved(shape: Sequence[int]) -> int:
    """Return where to cut attributes, so that rows and columns are about as many; columns the fewer."""
    sizes = [math.prod(shape[:cut]) for cut in range(len(shape) + 1)]
    whole = sizes[-1]
    return min(range(len(shape) + 1), key=lambda cut: (max(sizes[cut], whole // max(sizes[cut], 1)), -cut))


def cover(shape: Sequence[int], marginals: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """Return sets of attributes, each marginal within one of them, that make a sweep cheap.

    Tried are all numbers of blocks up to five; the cost of a sweep is a pass over the cells for each set that is
    needed, and one over its table for each marginal.
    """
    largest = max(map(len, marginals))
    cells = math.prod(shape)
    best: tuple[float, list[tuple[int, ...]]] = (float(cells * len(marginals)), [tuple(range(len(shape)))])
    for count in range(largest + 1, _MOST_BLOCKS + 1):
        block_of = _blocks(shape, count)
        needed: dict[tuple[int, ...], int] = {}
        for blocks in sorted(
            (tuple(sorted({block_of[a] for a in marginal})) for marginal in marginals), key=len, reverse=True
        ):
            home = next((held for held in needed if set(blocks) <= set(held)), None)
            if home is None:
                # As many blocks as the others have: sets with fewer are within them anyway.
                home = next(
                    filled
                    for filled in combinations(range(max(block_of) + 1), min(largest, max(block_of) + 1))
                    if set(blocks) <= set(filled)
                )
            needed[home] = needed.get(home, 0) + 1
        sets = [tuple(a for a in range(len(shape)) if block_of[a] in held) for held in needed]
        work = sum(
            cells + times * math.prod(shape[a] for a in attributes)
            for attributes, times in zip(sets, needed.values(), strict=True)
        )
        best = min(best, (float(work), sets))
    return best[1]


def _blocks(shape: Sequence[int], count: int) -> list[int]:
    """Return each attribute's block: consecutive, with about as many cells in each."""
    logs = np.log(np.maximum(shape, 1.5))
    middles = (np.cumsum(logs) - logs / 2) / logs.sum()
    return [min(int(middle * count), count - 1) for middle in middles]


def _last_block(shape: Sequence[int], sets: Sequence[tuple[int, ...]]) -> int:
    """Return where the attributes begin that every set holds all of, or none of: their cells are the columns."""
    for cut in range(len(shape)):
        last = set(range(cut, len(shape)))
        if all(last <= set(held) or not last & set(held) for held in sets) and len(sets) > 1:
            return cut
    return _halved(shape)


class _Table:
    """A set of attributes, and the marginals that are fitted on its table."""

    def __init__(self, shape: Sequence[int], split: int, attributes: tuple[int, ...], groups: list[int]) -> None:
        self.view = _View(shape, split, attributes)
        self.groups = np.array(groups, np.int64)
        own = [shape[a] for a in attributes]
        self.cut = _halved(own)
        self.shape = math.prod(own[: self.cut]), math.prod(own[self.cut :])
        self.cells = np.zeros(self.shape)
        self.sums = np.zeros(self.view.size)
        self.attributes = attributes
        self.own_shape = own
        #: Whether the cells are those that the weights make: no other table has multiplied these since.
        self.is_current = False


class MarginalModel:
    """Weights over cells, and measured marginals of them.

    Parameters
    ----------
    shape
        The histogram's.
    marginals
        The attributes of each group of queries, ascending.
    start, total, softness
        As for `dpfast.weights.model.RowModel`.

    """

    def __init__(
        self,
        shape: tuple[int, ...],
        marginals: Sequence[Sequence[int]],
        start: Floats,
        total: tuple[float, float],
        softness: float,
    ) -> None:
        homes = cover(shape, marginals)
        split = _last_block(shape, homes)
        columns = math.prod(shape[split:])
        self._weights = start.reshape(-1, columns)
        owners = [next(i for i, held in enumerate(homes) if set(marginal) <= set(held)) for marginal in marginals]
        self._tables = [
            _Table(shape, split, attributes, [g for g, owner in enumerate(owners) if owner == i])
            for i, attributes in enumerate(homes)
        ]
        views = []
        for marginal, owner in zip(marginals, owners, strict=True):
            table = self._tables[owner]
            kept = [table.attributes.index(a) for a in marginal]
            views.append(_View(table.own_shape, table.cut, kept))
        self.offsets = np.concatenate([[0], np.cumsum([view.size for view in views])]).astype(np.int64)
        wides = np.array([view.wide for view in views], np.int64)
        lefts, rights = _stacked([view.left for view in views]), _stacked([view.right for view in views])
        self._codes = lefts, rights, wides, self.offsets
        entries = int(self.offsets[-1])
        self._measured = Measured(entries, softness)
        self._duals = np.zeros(entries)
        self._factors = np.zeros(max(view.size for view in views))
        heights = [view.size // view.wide for view in views if view.wide > 1] or [1]
        self._scratch = np.zeros((max(heights), max(table.shape[1] for table in self._tables)))
        tall = [table.view.size // table.view.wide for table in self._tables if table.view.wide > 1] or [1]
        self._wide_scratch = np.zeros((max(tall), columns))
        self._is_measured = np.zeros(len(marginals), np.bool_)
        self._total = Measured(1, softness)
        self._total.add(slice(0, 1), np.array([total[0]]), total[1])
        self._total_dual = 0.0

    def answers(self) -> Floats:
        """Return the entries of all marginals."""
        sums = np.empty(int(self.offsets[-1]))
        for table in self._tables:
            self._sum(table)
            sum_marginals(table.groups, table.cells, *self._codes, self._scratch, sums)
        return sums

    def _sum(self, table: _Table) -> None:
        """Set a table, and its sums, to what the weights make them."""
        view = table.view
        if table.is_current:
            table.sums[:] = table.cells.reshape(-1)
            return
        project(self._weights, view.left, view.right, view.wide, self._wide_scratch, table.sums)
        table.cells[:] = table.sums.reshape(table.shape)
        table.is_current = True

    def measure(self, group: int, values: Floats, deviation: float) -> None:
        """Take in a noisy marginal."""
        self._is_measured[group] = True
        self._measured.add(slice(int(self.offsets[group]), int(self.offsets[group + 1])), values, deviation)

    def replay(self, sweeps: int) -> None:
        """Fit all that was measured so far, up to so many times each; the total comes last."""
        orders = [table.groups[self._is_measured[table.groups]] for table in self._tables]
        # Without a measurement the first table alone, for the total.
        work = [pair for pair in zip(self._tables, orders, strict=True) if pair[1].size] or [
            (self._tables[0], orders[0])
        ]
        measured = self._measured.values, self._measured.softness, self._scratch, self._factors, self._duals
        for _ in range(sweeps):
            moved = 0.0
            for place, (table, order) in enumerate(work):
                self._sum(table)
                furthest = replay_marginals(order, *self._codes, *measured, table.cells)
                moved = max(moved, furthest)
                # Cells whose sum is 0 are 0.
                np.divide(table.cells.reshape(-1), table.sums, out=table.sums, where=table.sums > 0.0)
                if place == len(work) - 1:
                    factor = self._fit_total(float(table.cells.sum()))
                    table.sums *= factor
                    table.cells *= factor
                self._spread(table)
            if moved <= TOLERANCE:
                break

    def _spread(self, table: _Table) -> None:
        """Multiply the weights by a table's factors, which its cells were multiplied by already."""
        for other in self._tables:
            other.is_current = other is table
        view = table.view
        spread(table.sums, view.left, view.right, view.wide, self._wide_scratch, self._weights)

    def _fit_total(self, mass: float) -> float:
        """Return what fitting the total multiplies all cells by."""
        value, softness = float(self._total.values[0]), float(self._total.softness[0])
        factor, self._total_dual = fit_mass(mass, self._total_dual, value, softness)
        return float(factor)

    def histogram(self) -> Floats:
        """Return the weights of all cells, in one dimension."""
        return self._weights.reshape(-1)


def _stacked(codes: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    """Return codes as rows of one array, the shorter filled up with 0."""
    out = np.zeros((len(codes), max(code.size for code in codes)), np.int32)
    for row, code in zip(out, codes, strict=True):
        row[: code.size] = code
    return out
