"""Trees of boxes that grow where the records are, and bring all their measurements together."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.mechanisms.gaussian import gaussian
from dpfast.mechanisms.laplace import laplace
from dpfast.synthesis.boxes import Boxes, PrefixSums
from dpfast.synthesis.estimate import Estimate
from dpfast.synthesis.levels import Level, draw_together, settle
from dpfast.synthesis.preparing import PARTS, Prepared, Task

__all__ = ["ROOT_PARTS", "Noise", "Tree"]

ROOT_PARTS = 50
"""Thousandths of the budget that the root is measured with, unless the number of records is public."""

Floats = NDArray[np.float64]

# The rules of the tree, found by experiment (benchmarks/dpbench and tests/synthesis/test_spikes.py). Counts are told in
# scales of the noise that the whole budget would buy, or what is left of it.
_LEAST_TO_SPLIT = 5.0
_LEAST_TO_SPLIT_OF_WHOLE = 14.0
#: By how many levels there are to the cells: the largest share that one takes of what is left. A spike must stand out
#: of the noise of each level, and leave enough for its cell.
_LARGEST_SHARE_OF_TWO = 0.5
_LARGEST_SHARE_OF_MORE = 0.4
_FAN_OUT = {1: 16}
_FAN_OUT_OF_PLANES = 64
_SPENT_TO_LOOK = {1: 40.0}
_SPENT_TO_LOOK_IN_PLANES = 8.0
#: Alike boxes of less than this, in scales of what is left, are measured together.
_LEAST_ALONE = 1.0


class Noise:
    """Noise for whole thousandths of the budget, a different number for every count."""

    def __init__(self, task: Task, threads: int | None) -> None:
        self._task = task
        self._threads = threads
        self._scales = np.full(PARTS + 1, np.nan)
        self._draw = laplace if task.budget.kind == "epsilon" else gaussian
        self._unit = 2.0 if task.budget.kind == "epsilon" else 1.0
        self.scales(np.array([1]))  # a budget that is too small is refused before it is charged

    def scales(self, parts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the scale of the noise that so many thousandths buy."""
        for missing in np.unique(parts[np.isnan(self._scales[parts])]).tolist():
            self._scales[missing] = self._task.noise(missing).scale
        return self._scales[parts]

    def variances(self, parts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return its variance."""
        return self._unit * self.scales(parts) ** 2

    def add(self, counts: NDArray[np.int64], parts: NDArray[np.int64], prepared: Prepared) -> NDArray[np.float64]:
        """Return counts with noise, each for its own thousandths."""
        noisy = self._draw(counts, self.scales(parts), random=prepared.source, threads=self._threads)
        return np.asarray(noisy, np.float64)


class Tree:
    """A tree of boxes over a histogram: its root, measured; then its growth; then an estimate of all cells.

    Attributes
    ----------
    levels
        What was measured so far.

    """

    def __init__(self, task: Task, prepared: Prepared, noise: Noise) -> None:
        self._task = task
        self._prepared = prepared
        self._noise = noise
        self._sums = PrefixSums(prepared.counts.reshape(task.workload.shape))
        whole = Boxes.whole(task.workload.shape)
        if task.neighbors == "replace":
            value, variance, left = np.array([max(float(prepared.records), 0.0)]), np.zeros(1), np.array([PARTS])
        else:
            parts = np.array([ROOT_PARTS])
            value, variance = self._measure(whole, parts)
            left = PARTS - parts
        self.levels = [Level.of(whole, value, variance, left, np.array([0, 1]), np.zeros(1, np.int64))]

    @property
    def signal(self) -> float:
        """How many records there are, in scales of the noise that the budget left for the root would buy."""
        root = self.levels[0]
        return float(self._signal(root, root.value)[0])

    def grow(self) -> None:
        """Measure level after level, until no budget is left anywhere.

        The root is split whatever its noisy count is: that has so little of the budget that a spike could drown in it.
        """
        guess, moved = self.levels[0].value, np.zeros(1, np.bool_)
        while True:
            level = self.levels[-1]
            signal = self._signal(level, guess)
            splits = (level.left > 0) & (level.boxes.sizes > 1)
            if len(self.levels) > 1:
                splits &= signal > self._least_to_split(level)
            rest = (level.left > 0) & ~splits
            united = _several(level, rest & moved & (signal < _LEAST_ALONE))
            self._measure_again(level, np.flatnonzero(rest & ~united))
            below, guess, moved = self._split(level, np.flatnonzero(splits), signal)
            if united.any():
                level, members, places = self._unite(level, united)
                self.levels[-1] = level
                below.parents = places[below.parents]
                below = below.joined(members)
                guess = np.append(guess, np.zeros(len(members.boxes)))
                moved = np.append(moved, np.zeros(len(members.boxes), np.bool_))
            level.split = below.parents
            if not level.split.size:
                return
            self.levels.append(below)

    def estimate(self) -> Estimate:
        """Bring all measurements together."""
        settle(self.levels)
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
        return Estimate(total, task.workload, task.budget.spent, rounds=rounds, entry=self._prepared.entry)

    def _signal(self, level: Level, values: Floats) -> Floats:
        """Return values in scales of the noise that what is left for each box would buy; 0 where nothing is left."""
        signal = np.zeros(values.size)
        some = level.left > 0
        scales = np.sqrt(self._noise.variances(level.left[some]) / 2.0)
        signal[some] = np.maximum(values[some], 0.0) / scales
        return signal

    def _least_to_split(self, level: Level) -> Floats:
        """Return from which signal on each box is split."""
        whole = self._noise.variances(np.array([PARTS]))
        left = self._noise.variances(np.maximum(level.left, 1))
        return np.maximum(_LEAST_TO_SPLIT, _LEAST_TO_SPLIT_OF_WHOLE * np.sqrt(whole / left))

    def _measure(
        self, boxes: Boxes, parts: NDArray[np.int64], starts: NDArray[np.int64] | None = None
    ) -> tuple[Floats, Floats]:
        """Return noisy counts, and the variances of their noise, each for its own thousandths of the budget.

        They are counts of the boxes, or of runs of them that begin at ``starts``: of disjoint sets of cells.
        """
        counts = self._sums.count(boxes)
        if starts is not None:
            counts = np.add.reduceat(counts, starts)
        return self._noise.add(counts, parts, self._prepared), self._noise.variances(parts)

    def _measure_again(self, level: Level, which: NDArray[np.int64]) -> None:
        """Spend on some boxes all that is left for them, and weigh the two measurements by their precision."""
        if not which.size:
            return
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

    def _split(
        self, level: Level, parents: NDArray[np.int64], signal: Floats
    ) -> tuple[Level, Floats, NDArray[np.bool_]]:
        """Return the parts of some of a level's boxes, measured; what is known of them; and which look alike."""
        boxes, left = level.boxes.take(parents), level.left[parents]
        parts, depth = _fan_out(boxes)
        children = parts.prod(axis=1)
        look = _SPENT_TO_LOOK.get(parts.shape[1], _SPENT_TO_LOOK_IN_PLANES)
        # Where there is much to be seen at the cells, an even share for each level; else what tells enough of this one.
        wanted = look * children / np.maximum(signal[parents], 1e-9)
        largest = np.where(depth == 2, _LARGEST_SHARE_OF_TWO, _LARGEST_SHARE_OF_MORE)
        share = np.where(wanted < 1.0 / depth, 1.0 / depth, np.minimum(wanted, largest))
        spent = np.where(depth == 1, left, np.maximum(np.floor(share * left).astype(np.int64), 1))
        below = boxes.split(parts)
        value, variance = self._measure(below, np.repeat(spent, children))
        offsets = np.concatenate([[0], np.cumsum(children)])
        result = Level.of(below, value, variance, np.repeat(left - spent, children), offsets, parents)
        if not parents.size:
            return result, np.empty(0), np.empty(0, np.bool_)
        drawn = draw_together(result)
        # Their sum was measured too: by how much theirs is off is shared out evenly among those that are not 0.
        off = (level.value[parents] - drawn.sums) * drawn.variances / (drawn.variances + level.variance[parents])
        some = drawn.value != 0.0
        sharing = np.maximum(np.add.reduceat(some, offsets[:-1], dtype=np.int64), 1)
        return result, drawn.value + some * np.repeat(off / sharing, children), drawn.moved


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
