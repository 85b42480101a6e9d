"""Trees of boxes that grow where the records are, and bring all their measurements together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.kernels.families import fit_families, shrink_families
from dpfast.mechanisms.gaussian import gaussian
from dpfast.mechanisms.laplace import laplace
from dpfast.synthesis.boxes import Boxes, PrefixSums
from dpfast.synthesis.estimate import Estimate
from dpfast.synthesis.preparing import PARTS, Prepared, Task

__all__ = ["ROOT_PARTS", "Level", "Noise", "Tree"]

ROOT_PARTS = 50
"""Thousandths of the budget that the root is measured with, unless the number of records is public."""

# The rules of the tree, found by experiment (benchmarks/dpbench): counts are told in scales of the noise that the
# budget left would buy.
_LEAST_TO_SPLIT = 8.0
_LARGEST_SHARE = 0.85
_FAN_OUT = {1: 16}
_FAN_OUT_OF_PLANES = 64
_SPENT_TO_LOOK = {1: 40.0}
_SPENT_TO_LOOK_IN_PLANES = 8.0


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
    split
        Which boxes were split, in order.

    """

    boxes: Boxes
    value: NDArray[np.float64]
    variance: NDArray[np.float64]
    left: NDArray[np.int64]
    offsets: NDArray[np.int64]
    parents: NDArray[np.int64]
    split: NDArray[np.int64]


_NONE = np.empty(0, np.int64)


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
            root = self._sums.count(whole)
            parts = np.array([ROOT_PARTS])
            value, variance, left = noise.add(root, parts, prepared), noise.variances(parts), PARTS - parts
        self.levels = [Level(whole, value, variance, left, np.array([0, 1]), _NONE, _NONE)]

    @property
    def signal(self) -> float:
        """How many records there are, in scales of the noise that the budget left for the root would buy."""
        root = self.levels[0]
        return float(_signal(root, root.value, self._noise)[0])

    def grow(self) -> None:
        """Measure level after level, until no budget is left anywhere."""
        sums, noise, prepared = self._sums, self._noise, self._prepared
        guess = self.levels[0].value
        while True:
            level = self.levels[-1]
            signal = _signal(level, guess, noise)
            splits = (signal > _LEAST_TO_SPLIT) & (level.boxes.sizes > 1)
            _measure_again(level, np.flatnonzero((level.left > 0) & ~splits), sums, noise, prepared)
            level.split = np.flatnonzero(splits)
            if not level.split.size:
                return
            below, guess = _split(level, signal[level.split], sums, noise, prepared)
            self.levels.append(below)

    def estimate(self) -> Estimate:
        """Bring all measurements together."""
        _settle(self.levels)
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


def _signal(level: Level, values: NDArray[np.float64], noise: Noise) -> NDArray[np.float64]:
    """Return values in scales of the noise that what is left for each box would buy; 0 where nothing is left."""
    signal = np.zeros(values.size)
    some = level.left > 0
    signal[some] = np.maximum(values[some], 0.0) * math.sqrt(2.0) / np.sqrt(noise.variances(level.left[some]))
    return signal


def _measure_again(level: Level, which: NDArray[np.int64], sums: PrefixSums, noise: Noise, prepared: Prepared) -> None:
    """Spend on some boxes all that is left for them, and weigh the two measurements by their precision."""
    if not which.size:
        return
    parts = level.left[which]
    fresh, variance = noise.add(sums.count(level.boxes.take(which)), parts, prepared), noise.variances(parts)
    before = level.variance[which]
    weight = before / (before + variance)
    level.value[which] += weight * (fresh - level.value[which])
    level.variance[which] = weight * variance
    level.left[which] = 0


def _split(
    level: Level, signal: NDArray[np.float64], sums: PrefixSums, noise: Noise, prepared: Prepared
) -> tuple[Level, NDArray[np.float64]]:
    """Return the parts of a level's split boxes, measured, and what is known of them so far."""
    parents = level.split
    boxes, left = level.boxes.take(parents), level.left[parents]
    parts, depth = _fan_out(boxes)
    children = parts.prod(axis=1)
    look = _SPENT_TO_LOOK.get(parts.shape[1], _SPENT_TO_LOOK_IN_PLANES)
    share = np.clip(look * children / signal, 1.0 / depth, _LARGEST_SHARE)
    spent = np.where(depth == 1, left, np.maximum(np.floor(share * left).astype(np.int64), 1))
    offsets = np.concatenate([[0], np.cumsum(children)])
    below = boxes.split(parts)
    each = np.repeat(spent, children)
    value, variance = noise.add(sums.count(below), each, prepared), noise.variances(each)
    result = Level(below, value, variance, np.repeat(left - spent, children), offsets, parents, _NONE)
    # Their sum was measured too: by how much theirs is off is shared out evenly.
    summed, wide = np.add.reduceat(value, offsets[:-1]), np.add.reduceat(variance, offsets[:-1])
    above = level.variance[parents]
    off = (level.value[parents] - summed) * wide / (wide + above)
    guess = np.empty(value.size)
    shrink_families(value + np.repeat(off / children, children), variance, offsets, guess)
    return result, guess


def _fan_out(boxes: Boxes) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return into how many parts each box is split along each axis, and how many levels it takes to the cells."""
    sides = boxes.sides
    together = math.log(_FAN_OUT.get(sides.shape[1], _FAN_OUT_OF_PLANES))
    depth = np.maximum(np.rint(np.log(boxes.sizes) / together), 1.0)
    parts = np.ceil(sides ** (1.0 / depth[:, None]) - 1e-9).astype(np.int64)
    return np.clip(parts, np.minimum(sides, 2), sides), depth


def _settle(levels: list[Level]) -> None:
    """Bring all measurements together: least squares upward, then families that fit their box's value downward."""
    for above, below in zip(levels[-2::-1], levels[:0:-1], strict=True):
        first, parents = below.offsets[:-1], below.parents
        value, variance = np.add.reduceat(below.value, first), np.add.reduceat(below.variance, first)
        own = above.variance[parents]
        above.value[parents] += own / (own + variance) * (value - above.value[parents])
        above.variance[parents] = own * variance / (own + variance)
    np.maximum(levels[0].value, 0.0, out=levels[0].value)
    for above, below in pairwise(levels):
        shrunk = np.empty(below.value.size)
        shrink_families(below.value, below.variance, below.offsets, shrunk)
        fit_families(shrunk, below.variance, above.value[below.parents], below.offsets, below.value)
