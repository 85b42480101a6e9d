"""The levels of a tree of boxes, and how the measurements of all of them are brought together."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpfast.kernels.histograms.siblings import fit_siblings, shrink_siblings
from dpfast.synthesis.histograms.boxes import Boxes

__all__ = ["Drawn", "Level", "draw_together", "drawn_to_none", "settle"]

Floats = NDArray[np.float64]

#: What was moved to 0 takes so small a part in what a family is moved by to meet its box's value.
_HELD = 1e-9
_TINY = 1e-150
#: A number of records below 1.5 deviations of its noise becomes 0.
_DOUBT = 2.25


@dataclass
class Level:
    """Boxes of one level; families of them are the parts of ``parents`` in the level above.

    Attributes
    ----------
    value, variance
        Each box's estimate, and the variance of its noise.
    left
        How many thousandths of the budget may still be spent on each box and its parts.
    offsets, parents
        Family f has the boxes offsets[f] to offsets[f + 1] and is of box parents[f].
    unions
        Whether a family's last box is a union: several of its boxes that were measured together once more. It has no
        cells of its own here, and its boxes are a family of the level below.
    split
        Which boxes have families below, in the order of those.

    """

    boxes: Boxes
    value: Floats
    variance: Floats
    left: NDArray[np.int64]
    offsets: NDArray[np.int64]
    parents: NDArray[np.int64]
    unions: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))
    split: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    def __post_init__(self) -> None:
        """Have no unions where none are given."""
        if not self.unions.size:
            self.unions = np.zeros(self.offsets.size - 1, np.bool_)

    @property
    def families(self) -> NDArray[np.int64]:
        """The family of each box."""
        return np.repeat(np.arange(self.offsets.size - 1), np.diff(self.offsets))

    def with_unions(
        self, members: NDArray[np.bool_], value: Floats, variance: Floats
    ) -> tuple[Level, Level, NDArray[np.int64]]:
        """Move some boxes to a level below, and put in their place a union for each family that has any.

        Return this level with the unions, the level of their boxes, and the new places of the boxes that stay (of
        others -1). ``value`` and ``variance`` are of the unions, in the order of the families.
        """
        family, kept, moved = self.families, np.flatnonzero(~members), np.flatnonzero(members)
        own, first = np.unique(family[moved], return_index=True)
        order = np.argsort(np.concatenate([2 * family[kept], 2 * own + 1]), kind="stable")
        place = np.empty(order.size, np.int64)
        place[order] = np.arange(order.size)
        empty = np.zeros((own.size, self.boxes.lower.shape[1]), np.int64)
        sizes = np.bincount(family[kept], minlength=self.unions.size)
        sizes[own] += 1
        unions = np.zeros(self.unions.size, np.bool_)
        unions[own] = True
        above = Level(
            self.boxes.take(kept).joined(Boxes(empty, empty)).take(order),
            np.concatenate([self.value[kept], value])[order],
            np.concatenate([self.variance[kept], variance])[order],
            np.concatenate([self.left[kept], np.zeros(own.size, np.int64)])[order],
            np.concatenate([[0], np.cumsum(sizes)]),
            self.parents,
            unions,
        )
        below = Level(
            self.boxes.take(moved),
            self.value[moved],
            self.variance[moved],
            np.zeros(moved.size, np.int64),
            np.append(first, moved.size),
            place[kept.size :],
        )
        places = np.full(members.size, -1)
        places[kept] = place[: kept.size]
        return above, below, places

    def joined(self, other: Level) -> Level:
        """Return the families of both levels, these first."""
        return Level(
            self.boxes.joined(other.boxes),
            np.concatenate([self.value, other.value]),
            np.concatenate([self.variance, other.variance]),
            np.concatenate([self.left, other.left]),
            np.concatenate([self.offsets, self.offsets[-1] + other.offsets[1:]]),
            np.concatenate([self.parents, other.parents]),
            np.concatenate([self.unions, other.unions]),
        )


@dataclass(frozen=True)
class Drawn:
    """The boxes of a level drawn together, family by family: see `dpfast.kernels.histograms.siblings.shrink_siblings`.

    Attributes
    ----------
    value, moved
        What became of each box, and whether it was moved.
    sums, variances
        Of each family.

    """

    value: Floats
    moved: NDArray[np.bool_]
    sums: Floats
    variances: Floats


def draw_together(level: Level, above: Level, parents: NDArray[np.int64], tail: float) -> Drawn:
    """Draw the boxes of each family together as far as their differences look like noise.

    ``parents`` says which of the boxes above each family is of: their values count too. ``tail`` is the kernel's.
    """
    value, moved = np.empty(level.value.size), np.empty(level.value.size, np.bool_)
    sums, variances = np.empty((2, level.unions.size))
    boxes = above.value[parents], above.variance[parents]
    shrink_siblings(
        level.value, level.variance, level.offsets, level.unions, *boxes, tail, value, moved, sums, variances
    )
    return Drawn(value, moved, sums, variances)


def drawn_to_none(records: float, variance: float) -> float:
    """Draw the number of records to 0 as far as it may be nothing but noise: a few records would drown in it.

    By the variance of its noise, times `_DOUBT`, over itself: the nonnegative garrote (Breiman 1995; Gao 1998).
    """
    return max(records - _DOUBT * variance / max(records, _TINY), 0.0)


def settle(levels: list[Level], tail: float) -> None:
    """Bring all measurements together: least squares upward, then families that fit their box's value downward."""
    for above, below in zip(levels[-2::-1], levels[:0:-1], strict=True):
        parents = below.parents
        drawn = draw_together(below, above, parents, tail)
        own = above.variance[parents]
        weight = own / np.maximum(own + drawn.variances, _TINY)
        above.value[parents] += weight * (drawn.sums - above.value[parents])
        above.variance[parents] = weight * drawn.variances
    root = levels[0]
    root.value[0] = drawn_to_none(float(root.value[0]), float(root.variance[0]))
    for above, below in pairwise(levels):
        drawn = draw_together(below, above, below.parents, tail)
        held = np.where(drawn.value == 0.0, below.variance * _HELD, below.variance)
        fit_siblings(drawn.value, held, above.value[below.parents], below.offsets, below.value)
