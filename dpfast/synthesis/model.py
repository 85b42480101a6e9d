"""What measurements are fitted to: positive weights over all cells, moved by multiplicative updates.

Two ways to hold them, of one mathematics (`dpfast.kernels.replay`): as they are, with the measured queries as rows; and,
for marginals, together with small tables from which every marginal follows (`dpfast.synthesis.marginal_model`).
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpfast.kernels.replay import replay_real_rows, replay_rows
from dpfast.workloads import Workload

__all__ = ["Measured", "Model", "RowModel"]

Floats = NDArray[np.float64]


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


class Model(Protocol):
    """Weights over the cells of a histogram that take measurements in."""

    def answers(self) -> Floats:
        """Return the answers of all queries."""

    def measure(self, group: int, values: Floats, deviation: float) -> None:
        """Take in noisy answers of a group of queries."""

    def replay(self, sweeps: int) -> None:
        """Fit all that was measured so far, each so many times."""

    def histogram(self) -> Floats:
        """Return the weights of all cells, in one dimension."""


class RowModel:
    """Weights, and measured queries as rows: for any workload.

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
        self._binary = workload.binary
        kind = np.uint8 if self._binary else np.float64
        self._rows = np.ones((8, start.size), kind)
        self._spans = np.zeros((8, 2), np.int64)
        self._spans[0] = 0, start.size
        self._places = np.full(len(workload), -1, np.int64)
        self._measured = Measured(8, softness)
        self._duals = np.zeros(8)
        self._used = 1
        self._measured.add(slice(0, 1), np.array([total[0]]), total[1])

    def answers(self) -> Floats:
        """Return the answers of all queries."""
        return np.asarray(self._workload.answer(self._weights), dtype=np.float64)

    def measure(self, group: int, values: Floats, deviation: float) -> None:
        """Take in noisy answers of a group of queries."""
        first, last = int(self._offsets[group]), int(self._offsets[group + 1])
        if self._places[first] < 0:
            self._append(first, last)
        place = int(self._places[first])
        self._measured.add(slice(place, place + last - first), values, deviation)

    def _append(self, first: int, last: int) -> None:
        start, stop = self._used, self._used + last - first
        if stop > len(self._rows):
            size = max(2 * len(self._rows), stop)
            self._rows = _grown(self._rows, size)
            self._spans = _grown(self._spans, size)
            self._duals = _grown(self._duals, size)
            for name in ("values", "softness", "repeats"):
                setattr(self._measured, name, _grown(getattr(self._measured, name), size))
        self._rows[start:stop] = self._workload.rows(first, last)
        for place in range(start, stop):
            held = np.flatnonzero(self._rows[place])
            self._spans[place] = (held[0], held[-1] + 1) if held.size else (0, 0)
        self._places[first:last] = np.arange(start, stop)
        self._used = stop

    def replay(self, sweeps: int) -> None:
        """Fit all that was measured so far, each so many times; the total comes last."""
        order = np.roll(np.arange(self._used), -1)
        run = replay_rows if self._binary else replay_real_rows
        measured = self._measured
        run(order, self._rows, self._spans, measured.values, measured.softness, sweeps, self._duals, self._weights)

    def histogram(self) -> Floats:
        """Return the weights of all cells."""
        return self._weights


def _grown(array: NDArray[Any], size: int) -> NDArray[Any]:
    out = np.zeros((size, *array.shape[1:]), array.dtype)
    out[: len(array)] = array
    return out
