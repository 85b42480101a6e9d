"""What measurements are fitted to: positive weights over all cells, moved by multiplicative updates.

Two ways to hold them, of one mathematics (`dpfast.kernels.replay`): as they are, with the measured queries as rows;
and, for marginals, together with small tables from which every marginal follows (`dpfast.synthesis.marginal_model`).
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpfast.kernels.replay import replay_real_rows, replay_rows
from dpfast.workloads import Workload

__all__ = ["TOLERANCE", "Measured", "Model", "RowModel"]

Floats = NDArray[np.float64]

#: A fit ends with a sweep in which no mass moved by more than this part of itself.
TOLERANCE = 1e-4


class Measured:
    """Noisy answers of queries: of repeated measurements the mean, which is all that the fit needs.

    Softness is what a unit of dual costs: a query whose noise has the deviation s, measured r times, has softness
    times s / sqrt(r).
    """

    def __init__(self, queries: int, softness: float) -> None:
        self.values = np.zeros(queries)
        self.softness = np.ones(queries)
        self.repeats = np.zeros(queries, np.int64)
        self._unit = softness

    def add(self, queries: slice, values: Floats, deviation: float) -> None:
        """Take in fresh measurements of queries."""
        self.repeats[queries] += 1
        repeats = self.repeats[queries]
        self.values[queries] += (values - self.values[queries]) / repeats
        self.softness[queries] = self._unit * deviation / np.sqrt(repeats)

    def grow(self, queries: int) -> None:
        """Make room for more queries."""
        self.values = np.concatenate([self.values, np.zeros(queries)])
        self.softness = np.concatenate([self.softness, np.ones(queries)])
        self.repeats = np.concatenate([self.repeats, np.zeros(queries, np.int64)])


class Model(Protocol):
    """Weights over the cells of a histogram that take measurements in."""

    def answers(self) -> Floats:
        """Return the answers of all queries."""

    def measure(self, group: int, values: Floats, deviation: float) -> None:
        """Take in noisy answers of a group of queries."""

    def replay(self, sweeps: int) -> None:
        """Fit all that was measured so far, up to so many times each."""

    def histogram(self) -> Floats:
        """Return the weights of all cells, in one dimension."""


class _Fitted:
    """Measured queries as rows over weights, one of them the total, and their duals."""

    def __init__(self, cells: int, total: tuple[float, float], softness: float, kind: type[np.generic]) -> None:
        self.rows = np.ones((1, cells), kind)
        self.measured = Measured(1, softness)
        self.measured.add(slice(0, 1), np.array([total[0]]), total[1])
        self.duals = np.zeros(1)

    def append(self, rows: NDArray[Any]) -> int:
        """Take in rows, which are measured next, and return the place of the first."""
        place = len(self.rows)
        self.rows = np.concatenate([self.rows, rows.astype(self.rows.dtype, copy=False)])
        self.duals = np.concatenate([self.duals, np.zeros(len(rows))])
        self.measured.grow(len(rows))
        return place


class RowModel:
    """Weights, and measured queries as rows: for any workload.

    Queries of zeros and ones are fitted on atoms, the sets of cells that the measured ones do not tell apart: fitting
    multiplies all cells of an atom alike, and after t ranges there are 2 t + 1 atoms at most.

    Parameters
    ----------
    workload
        The queries.
    offsets
        Group g has the queries offsets[g] to offsets[g + 1].
    start
        The weights before anything is measured, above 0; overwritten.
    total
        The total, and the deviation of its noise: 0 if it is public.
    softness
        As for `Measured`.

    """

    def __init__(
        self,
        workload: Workload,
        offsets: NDArray[np.int64],
        start: Floats,
        total: tuple[float, float],
        softness: float,
    ) -> None:
        self._workload, self._offsets = workload, offsets
        self._weights = start
        self._places = np.full(len(workload), -1, np.int64)
        self._atoms: NDArray[np.int64] | None = np.zeros(start.size, np.int64) if workload.binary else None
        kind = np.float64 if self._atoms is None else np.uint8
        self._fitted = _Fitted(start.size if self._atoms is None else 1, total, softness, kind)

    def answers(self) -> Floats:
        """Return the answers of all queries."""
        return np.asarray(self._workload.answer(self._weights), dtype=np.float64)

    def measure(self, group: int, values: Floats, deviation: float) -> None:
        """Take in noisy answers of a group of queries."""
        first, last = int(self._offsets[group]), int(self._offsets[group + 1])
        if self._places[first] < 0:
            rows = self._workload.rows(first, last)
            self._places[first] = self._fitted.append(rows if self._atoms is None else self._split(self._atoms, rows))
        place = int(self._places[first])
        self._fitted.measured.add(slice(place, place + last - first), values, deviation)

    def _split(self, atoms: NDArray[np.int64], rows: NDArray[Any]) -> NDArray[np.uint8]:
        """Split the atoms by disjoint queries, and return these as rows over the new atoms."""
        queries = len(rows)
        # A cell is in one of the queries at most; those in none count as in one more.
        member = np.full(atoms.size, queries)
        query, cell = np.nonzero(rows)
        member[cell] = query
        joint = atoms * (queries + 1) + member
        held = np.bincount(joint, minlength=self._fitted.rows.shape[1] * (queries + 1)) > 0
        atoms[:] = (np.cumsum(held) - 1)[joint]
        parents, members = np.divmod(np.flatnonzero(held), queries + 1)
        self._fitted.rows = self._fitted.rows[:, parents]
        own: NDArray[np.uint8] = (members == np.arange(queries)[:, None]).astype(np.uint8)
        return own

    def replay(self, sweeps: int) -> None:
        """Fit all that was measured so far, up to so many times each."""
        fitted = self._fitted
        measured = fitted.measured
        parameters = measured.values, measured.softness, sweeps, TOLERANCE, fitted.duals
        if self._atoms is None:
            replay_real_rows(fitted.rows, *parameters, self._weights)
            return
        before = np.bincount(self._atoms, self._weights, minlength=fitted.rows.shape[1])
        after = before.copy()
        replay_rows(fitted.rows, *parameters, after)
        np.divide(after, before, out=after, where=before > 0.0)
        self._weights *= after[self._atoms]

    def histogram(self) -> Floats:
        """Return the weights of all cells."""
        return self._weights
