"""What measurements are fitted to: positive weights over all cells, moved by multiplicative updates.

Two ways to hold them, of one mathematics (`dpfast.kernels.weights.replay`): as they are, with the measured queries as
rows; and, for marginals, together with small tables from which every marginal follows
(`dpfast.weights.marginal_model`).
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpfast.kernels.weights.replay import replay_real_rows, replay_rows
from dpfast.workloads import Workload

__all__ = ["TOLERANCE", "FittedRows", "Measured", "Model", "RowModel"]

Floats = NDArray[np.float64]

#: A fit ends with a sweep in which no mass moved by more than this part of itself.
TOLERANCE = 1e-4


class Measured:
    """Noisy answers of queries: of repeated measurements the mean, which is all that the fit needs.

    A query whose noise has the deviation s, measured r times, is held as softly as ``softness`` times s**2 / r: by all
    measurements together the estimate is held as by least squares of the right weights.
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
        self.softness[queries] = self._unit * deviation**2 / repeats

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


class FittedRows:
    """Weights, and the queries that were measured of them as rows, the first of which is the total.

    Queries of zeros and ones are fitted on atoms, the sets of cells that all measured ones treat alike: fitting
    multiplies all cells of an atom alike, and after t ranges there are 2 t + 1 atoms at most. From the first query of
    other coefficients on, all cells are fitted.

    Parameters
    ----------
    weights
        The weights before anything is measured, above 0; overwritten.
    total
        The total, and the deviation of its noise: 0 if it is public.
    softness
        As for `Measured`.

    """

    def __init__(self, weights: Floats, total: tuple[float, float], softness: float) -> None:
        self.weights = weights
        self._atoms: NDArray[np.int64] | None = np.zeros(weights.size, np.int64)
        self._rows: NDArray[Any] = np.ones((1, 1), np.uint8)
        self._duals = np.zeros(1)
        self._measured = Measured(1, softness)
        self._measured.add(slice(0, 1), np.array([total[0]]), total[1])

    def append(self, rows: NDArray[Any], *, binary: bool) -> int:
        """Take in disjoint rows, and return the place of the first."""
        place = len(self._rows)
        if not binary and self._atoms is not None:
            self._rows = self._rows[:, self._atoms].astype(np.float64)
            self._atoms = None
        new = rows if self._atoms is None else self._split(self._atoms, rows)
        self._rows = np.concatenate([self._rows, new.astype(self._rows.dtype, copy=False)])
        self._duals = np.concatenate([self._duals, np.zeros(len(rows))])
        self._measured.grow(len(rows))
        return place

    def _split(self, atoms: NDArray[np.int64], rows: NDArray[Any]) -> NDArray[np.uint8]:
        """Split the atoms by disjoint queries, and return these as rows over the new atoms."""
        queries = len(rows)
        # A cell is in one of the queries at most; those in none count as in one more.
        member = np.full(atoms.size, queries)
        query, cell = np.nonzero(rows)
        member[cell] = query
        joint = atoms * (queries + 1) + member
        held = np.bincount(joint, minlength=self._rows.shape[1] * (queries + 1)) > 0
        atoms[:] = (np.cumsum(held) - 1)[joint]
        parents, members = np.divmod(np.flatnonzero(held), queries + 1)
        self._rows = self._rows[:, parents]
        own: NDArray[np.uint8] = (members == np.arange(queries)[:, None]).astype(np.uint8)
        return own

    def measure(self, place: int, values: Floats, deviation: float) -> None:
        """Take in noisy answers of the rows from a place on."""
        self._measured.add(slice(place, place + values.size), values, deviation)

    def replay(self, sweeps: int, start: int = 0) -> None:
        """Fit the rows from ``start`` on, up to so many times each; if the total is among them, it comes last."""
        measured = self._measured
        own = slice(start, None)
        fixed = measured.values[own], measured.softness[own], sweeps, TOLERANCE, self._duals[own]
        if self._atoms is None:
            replay_real_rows(self._rows[own], *fixed, self.weights)
            return
        before = np.bincount(self._atoms, self.weights, minlength=self._rows.shape[1])
        after = before.copy()
        replay_rows(self._rows[own], *fixed, after)
        np.divide(after, before, out=after, where=before > 0.0)
        self.weights *= after[self._atoms]


class RowModel:
    """Weights, and measured queries as rows: for any workload.

    Parameters
    ----------
    workload
        The queries.
    offsets
        Group g has the queries offsets[g] to offsets[g + 1].
    start, total, softness
        As for `FittedRows`.

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
        self._places = np.full(len(workload), -1, np.int64)
        self._fitted = FittedRows(start, total, softness)

    def answers(self) -> Floats:
        """Return the answers of all queries."""
        return np.asarray(self._workload.answer(self._fitted.weights), dtype=np.float64)

    def measure(self, group: int, values: Floats, deviation: float) -> None:
        """Take in noisy answers of a group of queries."""
        first, last = int(self._offsets[group]), int(self._offsets[group + 1])
        if self._places[first] < 0:
            rows = self._workload.rows(first, last)
            self._places[first] = self._fitted.append(rows, binary=self._workload.binary)
        self._fitted.measure(int(self._places[first]), values, deviation)

    def replay(self, sweeps: int) -> None:
        """Fit all that was measured so far, up to so many times each; the total comes last."""
        self._fitted.replay(sweeps)

    def histogram(self) -> Floats:
        """Return the weights of all cells."""
        return self._fitted.weights
