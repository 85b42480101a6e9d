"""A look at a histogram before it is measured: how many cells are full, and how many records there are."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpfast.synthesis.histograms.tree_noise import Noise
from dpfast.synthesis.preparing import PARTS, Prepared, Task

__all__ = ["FULL", "Look", "Seen", "records_within"]

FULL = 10.0
"""Cells are full from so many scales on, of the noise that the whole budget would buy."""


@dataclass(frozen=True)
class Seen:
    """What a look has found.

    Attributes
    ----------
    full_cells
        How many cells are full, by a noisy number. A cell that is not full counts in part.
    records
        The number of records, and the variance of its noise: 0 where the number is public.
    scale
        The scale of the noise that the whole budget would buy.

    """

    full_cells: float
    records: tuple[float, float]
    scale: float


@dataclass(frozen=True)
class Look:
    """A look that counts full cells and, where that number is not public, records.

    Attributes
    ----------
    parts_for_full_cells, parts_for_records
        What each count may spend, in thousandths of the budget.

    """

    parts_for_full_cells: int
    parts_for_records: int

    def spent(self, task: Task) -> int:
        """Return the thousandths that both cost."""
        return self.parts_for_full_cells + (self.parts_for_records if task.neighbors == "add_remove" else 0)

    def at(self, task: Task, prepared: Prepared, noise: Noise) -> Seen:
        """Return what noisy counts tell."""
        scale = math.sqrt(float(noise.variances(np.array([PARTS]))[0]) / 2.0)
        full = max(round(FULL * scale), 1)
        within = noise.add(records_within(prepared.counts, full), np.array([self.parts_for_full_cells]), prepared)
        if prepared.records is not None:
            records = prepared.records, 0.0
        else:
            parts = np.array([self.parts_for_records])
            count = noise.add(prepared.counts.sum(keepdims=True), parts, prepared)
            records = float(count[0]), float(noise.variances(parts)[0])
        return Seen(float(within[0]) / full, records, scale)


def records_within(counts: NDArray[np.int64], full: int) -> NDArray[np.int64]:
    """Return the sum of all counts, each cut to ``full``: an array of one number.

    A record more or fewer changes it by 1 at most, and so does one that moves to another cell: one cell's part falls by
    0 or 1, and the other's grows by 0 or 1. So it costs no more than a measurement of disjoint cells does.
    """
    return np.array([np.minimum(counts, full).sum(dtype=np.int64)])
