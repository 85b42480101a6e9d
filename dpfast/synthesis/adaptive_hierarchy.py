"""The adaptive hierarchy: boxes of cells are split where many records are, and measured once more where few are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.kernels.families import fit_families, shrink_families
from dpfast.ledger import Ledger
from dpfast.mechanisms.gaussian import gaussian
from dpfast.mechanisms.laplace import laplace
from dpfast.synthesis.boxes import Boxes, PrefixSums
from dpfast.synthesis.estimate import Estimate
from dpfast.synthesis.preparing import PARTS, Prepared, Task
from dpfast.workloads.workload import Workload

__all__ = ["adaptive_hierarchy"]

# The rules of the tree, found by experiment (benchmarks/dpbench): counts are told in scales of the noise that the
# budget left would buy.
_ROOT_PARTS = 50
_LEAST_TO_SPLIT = 8.0
_LARGEST_SHARE = 0.85
_FAN_OUT = {1: 16}
_FAN_OUT_OF_PLANES = 64
_SPENT_TO_LOOK = {1: 40.0}
_SPENT_TO_LOOK_IN_PLANES = 8.0


def adaptive_hierarchy(
    histogram: Any,
    workload: Workload | None = None,
    epsilon: Any = None,
    *,
    rho: Any = None,
    neighbors: str = "add_remove",
    ledger: Ledger | None = None,
    random: object = None,
    threads: int | None = None,
) -> Estimate:
    """Estimate a histogram by a tree of boxes that grows where the records are.

    Guarantee
        epsilon-differential privacy, or rho-zCDP, for the histogram and all that is computed from the estimate. A cell
        lies in one box of each level of the tree. Which boxes are measured, and with how much of the budget, depends
        on noisy counts alone, and what the boxes around a cell are measured with adds up to the budget at most: so a
        record that comes or goes changes the probability of the whole tree by a factor of exp(epsilon) at most
        (sequential composition along the path, parallel beside it). For rho, and amounts chosen as the measurements
        come in, that is the theorem of Feldman and Zrnic. Under "replace" two paths change: all noise is twice as
        wide (for rho sqrt(2) times), and the number of records is public and used as it is. Counts are exact integers
        with discrete Laplace or rounded Gaussian noise, exactly sampled.

    Parameters
    ----------
    histogram
        int64 counts of the cells, 0 or more, of one dimension or several. No nulls.
    workload
        What will be asked, one of `dpfast.workloads`; the tree does not depend on it. None: every cell.
    epsilon
        The budget: a number from 1e-18 to 1e6, read as the decimal it was written as.
    rho
        The budget in zero-concentrated differential privacy instead.
    neighbors
        ``"add_remove"``: one cell has one record more or fewer; ``"replace"``: one record moves to another cell.
    ledger
        A `dpfast.Ledger` that is charged the whole budget first, or None.
    random
        None for a fresh key from the operating system, or a `dpfast.testing.SeededRandom` in tests.
    threads
        How many threads draw noise; None uses all cores where that pays.

    Returns
    -------
    Estimate
        No cell is negative. Its ``rounds`` have a row for each level of the tree: how many boxes were measured there,
        how many of them were split, and the cells of the largest.

    Raises
    ------
    ParameterError
        An argument is not as above.
    DataError
        A count is negative or too large, and there is no ledger.
    BudgetExceededError, LedgerError
        The ledger refuses.

    Notes
    -----
    A box with a large count, in scales of the noise that its budget would buy, is split (into 16 parts along one axis,
    8 x 8 in two) and the parts measured with a share of the budget: an even one if the parts promise to be split on,
    most of it if not. A box with a small one is measured once more with all that is left; its cells are taken to be
    alike. So few records are told from noise at a resolution that they allow, and many as by a hierarchy H_b. Least
    squares bring all measurements together; then, from the root down, the parts of a box are moved to their mean, but
    for those that stand out, where an estimate of the error is less for it, and all to the nearest nonnegative numbers
    that have the box's sum.

    References
    ----------
    Cormode, Procopiuc, Srivastava, Shen, Yu (2012) and Qardaji, Yang, Li (2013) for trees and grids in the plane that
    fit the data; Hay et al. (2010) for consistency; Mallows (1973) and Foster, George (1994) for the estimate of the
    error; Feldman, Zrnic (2021).

    Examples
    --------
    >>> import numpy as np
    >>> import dpfast as dpf
    >>> from dpfast.testing import SeededRandom
    >>> counts = np.repeat([0, 9000, 20], [400, 32, 592])
    >>> estimate = dpf.adaptive_hierarchy(counts, dpf.workloads.prefix(1024), epsilon=1.0, random=SeededRandom(1))
    >>> np.round(estimate.answers[[399, 431, 1023]], -2).tolist()
    [0.0, 288000.0, 299800.0]

    """
    task = Task.read(histogram, workload, epsilon, rho, neighbors)
    noise = _Noise(task, threads)
    prepared = task.prepare(histogram, 2**62 // task.cells, "adaptive hierarchy", ledger, random)
    levels = _grow(task, prepared, noise)
    _settle(levels)
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
    return Estimate(total, task.workload, task.budget.spent, rounds=rounds, entry=prepared.entry)


class _Noise:
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
class _Level:
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


def _grow(task: Task, prepared: Prepared, noise: _Noise) -> list[_Level]:
    """Measure level after level."""
    shape = task.workload.shape
    sums = PrefixSums(prepared.counts.reshape(shape))
    whole = Boxes.whole(shape)
    root = sums.count(whole)
    if task.neighbors == "replace":
        value, variance, left = root.astype(np.float64), np.zeros(1), np.array([PARTS])
    else:
        parts = np.array([_ROOT_PARTS])
        value, variance, left = noise.add(root, parts, prepared), noise.variances(parts), PARTS - parts
    levels = [_Level(whole, value, variance, left, np.array([0, 1]), _NONE, _NONE)]
    guess = value
    while True:
        level = levels[-1]
        open_ = level.left > 0
        signal = np.maximum(guess, 0.0)
        signal[open_] *= math.sqrt(2.0) / np.sqrt(noise.variances(level.left[open_]))
        splits = open_ & (signal > _LEAST_TO_SPLIT) & (level.boxes.sizes > 1)
        _measure_again(level, np.flatnonzero(open_ & ~splits), sums, noise, prepared)
        level.split = np.flatnonzero(splits)
        if not level.split.size:
            return levels
        below, guess = _split(level, signal[level.split], sums, noise, prepared)
        levels.append(below)


def _measure_again(
    level: _Level, which: NDArray[np.int64], sums: PrefixSums, noise: _Noise, prepared: Prepared
) -> None:
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
    level: _Level, signal: NDArray[np.float64], sums: PrefixSums, noise: _Noise, prepared: Prepared
) -> tuple[_Level, NDArray[np.float64]]:
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
    result = _Level(below, value, variance, np.repeat(left - spent, children), offsets, parents, _NONE)
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


def _settle(levels: list[_Level]) -> None:
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
