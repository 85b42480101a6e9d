"""Trees of boxes that grow where the records are, and bring all their measurements together."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.synthesis.estimate import Estimate
from dpfast.synthesis.histograms.boxes import Boxes, PrefixSums
from dpfast.synthesis.histograms.levels import Level, draw_together, settle
from dpfast.synthesis.histograms.tree_noise import Noise
from dpfast.synthesis.preparing import PARTS, Prepared, Task

__all__ = ["ROOT_PARTS", "Seen", "Tree", "parts_of"]

ROOT_PARTS = 50
"""Thousandths of the budget that the root is measured with, unless the number of records is public."""

Floats = NDArray[np.float64]

# The rules of the tree, found by experiment (benchmarks/dpbench and tests/synthesis/test_spikes.py). Counts are given
# in scales of the noise that the whole budget would buy, or what is left of it.
#: From which count on a box is split: in scales of what is left, and of the whole.
_LEAST_TO_SPLIT = (7.0, 20.0)
_LEAST_TO_SPLIT_ALONE = (2.0, 10.0)
#: The largest share of what is left that a level takes which is two levels above the cells, or more. What stands out
#: may be a spike, whose cell should be measured best; other records are measured best by large boxes. A box that is not
#: split loses nothing by a small share: see `Seen.withheld`.
_LARGEST_SHARES = {1: (0.6, 0.25)}
_LARGEST_SHARES_IN_PLANES = (0.4, 0.3)
_LARGEST_SHARES_ALONE = (0.35, 0.25)
#: What stands out, two levels above the cells, and holds less than this in scales of the whole is split into its cells.
_MOST_FOR_CELLS = 50.0
_FAN_OUT = {1: 16}
_FAN_OUT_OF_PLANES = 64
_SPENT_TO_LOOK = {1: 40.0}
_SPENT_TO_LOOK_IN_PLANES = 8.0
#: Alike boxes of less than this, in scales of what is left, are measured together.
_LEAST_MEASURED_ALONE = 1.0


@dataclass(frozen=True)
class Seen:
    """What is known of a level's boxes before it is decided which of them are split.

    Attributes
    ----------
    guess
        Their counts.
    moved
        Which look like others of their family.
    alone
        Which do not, while three tenths of their family do: what holds a spike stands out like that.
    spent
        How many thousandths they were looked at with.
    withheld
        Where noise is gradual: their counts with the noise that all of their budget buys. Nobody has paid for them yet,
        so nothing may depend on them. A box that is not split pays, and only then is its count taken from here.

    """

    guess: Floats
    moved: NDArray[np.bool_]
    alone: NDArray[np.bool_]
    spent: NDArray[np.int64]
    withheld: Floats | None

    def joined(self, others: int) -> Seen:
        """Add boxes of which all is measured."""
        none = np.zeros(others, np.bool_)
        return Seen(
            np.append(self.guess, np.zeros(others)),
            np.append(self.moved, none),
            np.append(self.alone, none),
            np.append(self.spent, np.zeros(others, np.int64)),
            None if self.withheld is None else np.append(self.withheld, np.full(others, np.nan)),
        )


def parts_of(share: float, left: int) -> int:
    """Return how many whole thousandths a share of those that are left is: 1 at least."""
    return max(round(share * left), 1)


class Tree:
    """A tree of boxes over a histogram: its root, measured; then its growth; then an estimate of all cells.

    ``spent`` thousandths of the budget are spent on something else.

    Attributes
    ----------
    levels
        What was measured so far.

    """

    def __init__(self, task: Task, prepared: Prepared, noise: Noise, spent: int = 0) -> None:
        self._task = task
        self._prepared = prepared
        self._noise = noise
        self._sums = PrefixSums(prepared.counts.reshape(task.workload.shape))
        whole = Boxes.whole(task.workload.shape)
        if prepared.records is not None:
            value, variance, left = np.array([prepared.records]), np.zeros(1), np.array([PARTS - spent])
        else:
            parts = np.array([ROOT_PARTS])
            value, variance = self._measure(whole, parts)
            left = PARTS - spent - parts
        self.levels = [Level(whole, value, variance, left, np.array([0, 1]), np.zeros(1, np.int64))]

    @property
    def signal(self) -> float:
        """How many records there are, in scales of the noise that the budget left for the root would buy."""
        root = self.levels[0]
        return float(self._signal(root, root.value)[0])

    @property
    def records(self) -> tuple[float, float]:
        """The number of records by the root, and the variance of its noise."""
        return float(self.levels[0].value[0]), float(self.levels[0].variance[0])

    @property
    def left(self) -> int:
        """How many thousandths of the budget the root leaves."""
        return int(self.levels[0].left[0])

    def count_again(self, share: float) -> None:
        """Spend a share of what is left, in whole thousandths, on the number of records, without a look at any part."""
        root = self.levels[0]
        parts = np.array([parts_of(share, self.left)])
        value, variance = self._measure(root.boxes, parts)
        weight = root.variance / (root.variance + variance)
        root.value += weight * (value - root.value)
        root.variance = weight * variance
        root.left = root.left - parts

    def grow(self, show: Callable[[str], object]) -> None:
        """Measure level after level, until no budget is left anywhere.

        The root is split whatever its noisy count is: that has so little of the budget that a spike could drown in it.
        """
        none = np.zeros(1, np.bool_)
        seen = Seen(self.levels[0].value, none, none, np.zeros(1, np.int64), None)
        while True:
            show(f"measuring level {len(self.levels) + 1}")
            level = self.levels[-1]
            signal = self._signal(level, seen.guess)
            splits = (level.left > 0) & (level.boxes.sizes > 1)
            if len(self.levels) > 1:
                splits &= signal > self._least_to_split(level, seen.alone)
            rest = (level.left > 0) & ~splits
            united = _several(level, rest & seen.moved & (signal < _LEAST_MEASURED_ALONE))
            self._measure_again(level, np.flatnonzero(rest & ~united), seen)
            below, seen = self._split(level, np.flatnonzero(splits), signal, seen)
            if united.any():
                level, members, places = self._unite(level, united)
                self.levels[-1] = level
                below.parents = places[below.parents]
                below = below.joined(members)
                seen = seen.joined(len(members.boxes))
            level.split = below.parents
            if not level.split.size:
                return
            self.levels.append(below)

    def estimate(self) -> Estimate:
        """Bring all measurements together."""
        settle(self.levels, self._noise.tail)
        task, levels = self._task, self.levels
        shape = task.workload.shape
        total = np.zeros(shape)
        for level in levels:
            leaves = np.setdiff1d(np.arange(len(level.boxes)), level.split, assume_unique=True)
            total += level.boxes.take(leaves).spread(level.value[leaves], shape)
        rounds = pl.DataFrame(
            {
                "boxes": [len(level.boxes) for level in levels],
                "split": [level.split.size for level in levels],
                "cells": [int(level.boxes.sizes.max()) for level in levels],
            }
        )
        return Estimate(total, task.workload, task.spent, rounds=rounds, paid=self._prepared.paid)

    def _signal(self, level: Level, values: Floats) -> Floats:
        """Return values in scales of the noise that what is left for each box would buy; 0 where nothing is left."""
        signal = np.zeros(values.size)
        some = level.left > 0
        scales = np.sqrt(self._noise.variances(level.left[some]) / 2.0)
        signal[some] = np.maximum(values[some], 0.0) / scales
        return signal

    def _least_to_split(self, level: Level, alone: NDArray[np.bool_]) -> Floats:
        """Return from which signal on each box is split."""
        whole = self._noise.variances(np.array([PARTS]))
        left = self._noise.variances(np.maximum(level.left, 1))
        of_left, of_whole = np.where(alone, np.array([_LEAST_TO_SPLIT_ALONE]).T, np.array([_LEAST_TO_SPLIT]).T)
        least: Floats = np.maximum(of_left, of_whole * np.sqrt(whole / left))
        return least

    def _measure(
        self, boxes: Boxes, parts: NDArray[np.int64], starts: NDArray[np.int64] | None = None
    ) -> tuple[Floats, Floats]:
        """Return noisy counts, and the variances of their noise, each for its own thousandths of the budget.

        They are counts of the boxes, or of runs of them that begin at ``starts``: of disjoint sets of cells.
        """
        counts = self._sums.count(boxes)
        if starts is not None:
            counts = np.add.reduceat(counts, starts)
        return self._noise.add(counts, parts, self._prepared).astype(np.float64), self._noise.variances(parts)

    def _look(
        self, boxes: Boxes, parts: NDArray[np.int64], left: NDArray[np.int64]
    ) -> tuple[Floats, Floats, Floats | None]:
        """Return noisy counts and their variances for some thousandths, and what stays withheld: see `Seen`.

        ``left`` is what those thousandths are part of; for all of it the withheld counts are to be had as well.
        """
        if not self._noise.gradual:
            return *self._measure(boxes, parts), None
        finest = self._noise.add(self._sums.count(boxes), left, self._prepared)
        coarse = self._noise.coarsen(finest, left, parts, self._prepared)
        return coarse.astype(np.float64), self._noise.variances(parts), finest.astype(np.float64)

    def _measure_again(self, level: Level, which: NDArray[np.int64], seen: Seen) -> None:
        """Spend on some boxes all that is left for them: on what is withheld, or on a second measurement.

        The first count is the withheld one with more noise on top, and adds nothing to it. Second measurements are
        weighed with the first by their precision.
        """
        if not which.size:
            return
        if seen.withheld is not None:
            spent = seen.spent[which] + level.left[which]
            level.value[which], level.variance[which] = seen.withheld[which], self._noise.variances(spent)
        else:
            fresh, variance = self._measure(level.boxes.take(which), level.left[which])
            before = level.variance[which]
            weight = before / (before + variance)
            level.value[which] += weight * (fresh - level.value[which])
            level.variance[which] = weight * variance
        level.left[which] = 0

    def _unite(self, level: Level, members: NDArray[np.bool_]) -> tuple[Level, Level, NDArray[np.int64]]:
        """Spend all that is left for some boxes on the sum of those of each family: see `Level.with_unions`."""
        which = np.flatnonzero(members)
        _, starts = np.unique(level.families[which], return_index=True)
        value, variance = self._measure(level.boxes.take(which), level.left[which[starts]], starts)
        return level.with_unions(members, value, variance)

    def _split(self, level: Level, parents: NDArray[np.int64], signal: Floats, seen: Seen) -> tuple[Level, Seen]:
        """Return the parts of some of a level's boxes, measured, and what is known of them."""
        boxes, left = level.boxes.take(parents), level.left[parents]
        parts, depth = _fan_out(boxes)
        ratio = np.sqrt(self._noise.variances(left) / self._noise.variances(np.array([PARTS])))
        cells = seen.alone[parents] & (depth == 2) & (signal[parents] * ratio < _MOST_FOR_CELLS)
        parts, depth = np.where(cells[:, None], boxes.sides, parts), np.where(cells, 1.0, depth)
        children = parts.prod(axis=1)
        share = _share(parts, depth, signal[parents], seen.alone[parents])
        spent = np.where(depth == 1, left, np.maximum(np.floor(share * left).astype(np.int64), 1))
        below = boxes.split(parts)
        each = np.repeat(spent, children)
        value, variance, withheld = self._look(below, each, np.repeat(left, children))
        offsets = np.concatenate([[0], np.cumsum(children)])
        result = Level(below, value, variance, np.repeat(left - spent, children), offsets, parents)
        if not parents.size:
            none = np.empty(0, np.bool_)
            return result, Seen(np.empty(0), none, none, each, withheld)
        drawn = draw_together(result, level, parents, self._noise.tail)
        # Their sum was measured too: by how much theirs is off is shared out evenly among those that are not 0.
        off = (level.value[parents] - drawn.sums) * drawn.variances / (drawn.variances + level.variance[parents])
        some = drawn.value != 0.0
        sharing = np.maximum(np.add.reduceat(some, offsets[:-1], dtype=np.int64), 1)
        guess = drawn.value + some * np.repeat(off / sharing, children)
        many = 10 * np.add.reduceat(drawn.moved, offsets[:-1], dtype=np.int64) >= 3 * children
        return result, Seen(guess, drawn.moved, ~drawn.moved & np.repeat(many, children), each, withheld)


def _share(
    parts: NDArray[np.int64], depth: NDArray[np.float64], signal: Floats, alone: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return which share of what is left for each box is spent on its parts.

    An even share for each level where there is much to be seen at the cells; else what is best for this one.
    """
    axes = parts.shape[1]
    look = _SPENT_TO_LOOK.get(axes, _SPENT_TO_LOOK_IN_PLANES)
    largest = np.array([_LARGEST_SHARES.get(axes, _LARGEST_SHARES_IN_PLANES), _LARGEST_SHARES_ALONE])
    wanted = look * parts.prod(axis=1) / np.maximum(signal, 1e-9)
    return np.where(wanted < 1.0 / depth, 1.0 / depth, largest[alone.astype(np.int64), (depth > 2).astype(np.int64)])


def _several(level: Level, which: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return those of some boxes that have others of their family among them."""
    family = level.families
    several: NDArray[np.bool_] = which & (np.bincount(family, which, minlength=level.unions.size) > 1)[family]
    return several


def _fan_out(boxes: Boxes) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return into how many parts each box is split along each axis, and how many levels it takes to the cells."""
    sides = boxes.sides
    together = math.log(_FAN_OUT.get(sides.shape[1], _FAN_OUT_OF_PLANES))
    depth = np.maximum(np.rint(np.log(boxes.sizes) / together), 1.0)
    parts = np.ceil(sides ** (1.0 / depth[:, None]) - 1e-9).astype(np.int64)
    return np.clip(parts, np.minimum(sides, 2), sides), depth
