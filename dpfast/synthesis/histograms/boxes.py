"""Boxes of cells: split along every axis, counted exactly by prefix sums, spread out over their cells."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Boxes", "PrefixSums"]


@dataclass(frozen=True)
class Boxes:
    """Boxes from their lower corners up to, not including, their upper corners: int64, boxes by axes."""

    lower: NDArray[np.int64]
    upper: NDArray[np.int64]

    @classmethod
    def whole(cls, shape: tuple[int, ...]) -> Boxes:
        """Return the one box of all cells."""
        return cls(np.zeros((1, len(shape)), np.int64), np.array([shape], np.int64))

    def __len__(self) -> int:
        """Return the number of boxes."""
        return len(self.lower)

    @property
    def sides(self) -> NDArray[np.int64]:
        """How many cells each box has along each axis."""
        return self.upper - self.lower

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many cells each box has."""
        sizes: NDArray[np.int64] = self.sides.prod(axis=1)
        return sizes

    def take(self, which: NDArray[np.int64]) -> Boxes:
        """Return some of the boxes."""
        return Boxes(self.lower[which], self.upper[which])

    def joined(self, other: Boxes) -> Boxes:
        """Return these boxes and others."""
        return Boxes(np.concatenate([self.lower, other.lower]), np.concatenate([self.upper, other.upper]))

    def split(self, parts: NDArray[np.int64]) -> Boxes:
        """Return all boxes split along each axis into so many parts (boxes by axes), as even as whole cells allow.

        The parts of a box stand together, in the order of the boxes.
        """
        lower, upper = self.lower, self.upper
        for axis in range(parts.shape[1]):
            along = parts[:, axis]
            source = np.repeat(np.arange(len(along)), along)
            place = np.arange(source.size) - np.repeat(np.cumsum(along) - along, along)
            lower, upper, parts = lower[source], upper[source], parts[source]
            first, side = lower[:, axis].copy(), upper[:, axis] - lower[:, axis]
            lower[:, axis] = first + place * side // parts[:, axis]
            upper[:, axis] = first + (place + 1) * side // parts[:, axis]
        return Boxes(lower, upper)

    def spread(self, values: NDArray[np.float64], shape: tuple[int, ...]) -> NDArray[np.float64]:
        """Return a histogram in which each box's value is divided evenly among its cells; boxes are disjoint."""
        sizes = self.sizes
        # Most boxes of a fine tree are cells already.
        cells = self.lower if (sizes == 1).all() else self.split(self.sides).lower
        histogram = np.zeros(math.prod(shape))
        histogram[np.ravel_multi_index(tuple(cells.T), shape)] = np.repeat(values / sizes, sizes)
        return histogram.reshape(shape)


class PrefixSums:
    """Exact counts of boxes from prefix sums along all axes.

    Sums may wrap around on the way: where the count itself is below 2**63, the differences are right.
    """

    def __init__(self, counts: NDArray[np.int64]) -> None:
        sums = np.zeros([side + 1 for side in counts.shape], np.int64)
        sums[(slice(1, None),) * counts.ndim] = counts
        for axis in range(counts.ndim):
            np.cumsum(sums, axis=axis, out=sums)
        self._sums = sums

    def count(self, boxes: Boxes) -> NDArray[np.int64]:
        """Return how many records each box holds."""
        total = np.zeros(len(boxes), np.int64)
        for corner in itertools.product((0, 1), repeat=self._sums.ndim):
            place = tuple((boxes.upper if upper else boxes.lower)[:, axis] for axis, upper in enumerate(corner))
            sign = (-1) ** (self._sums.ndim - sum(corner))
            total += sign * self._sums[place]
        return total
