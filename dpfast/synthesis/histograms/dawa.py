"""DAWA: cells that hold about the same are brought together privately, and only the buckets are measured."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.accounting.budget import Budget, Delta, Epsilon, Rho
from dpfast.accounting.privacy_unit import Neighbors, PrivacyUnit
from dpfast.arguments import Threads
from dpfast.errors import ParameterError, Words
from dpfast.exact.amounts import to_float
from dpfast.exact.balls import as_written
from dpfast.kernels.histograms.interval_partitions import choose_partition, merge_halves
from dpfast.ledger.account import OwnName
from dpfast.ledger.payment import Payer
from dpfast.mechanisms.noise.calibration import laplace_scale
from dpfast.mechanisms.noise.half_widths import grid_of_integers
from dpfast.mechanisms.noise.integer_noise import IntegerNoise
from dpfast.mechanisms.noise.one_sided import lowered
from dpfast.progress import TellStages, read_progress
from dpfast.randomness import Random
from dpfast.strategies import hierarchy, identity
from dpfast.strategies.choosing import Considered, consider
from dpfast.strategies.identity import Identity
from dpfast.strategies.matrix_mechanism import draw_cells
from dpfast.synthesis.estimate import Estimate
from dpfast.synthesis.histograms.bucketed import bucketed
from dpfast.synthesis.histograms.edges import edges_of
from dpfast.synthesis.histograms.joining import joined
from dpfast.synthesis.histograms.width import is_wide
from dpfast.synthesis.preparing import PARTS, Prepared, Task
from dpfast.synthesis.shares import selection_for
from dpfast.workloads.histograms import Counts
from dpfast.workloads.workload import OwnQueries, Workload

__all__ = ["dawa", "interval_deviations", "partition", "partition_rule"]

#: Thousandths of the budget for the partition, and the prices of a bucket of 1, 2, 4, ... cells (the last one for all
#: that are larger), in scales of the noise on deviations: the best by experiment. At lower prices buckets are chosen
#: for their noise, above all those of a size of which there are many. Where cells are asked for, too many buckets do
#: less harm, as they are joined afterwards.
_FOR_CELLS = 300, (Fraction(3, 4), Fraction(13, 4))
_FOR_WIDE_QUERIES = (
    400,
    (Fraction(7, 4), Fraction(7, 2), Fraction(13, 4), Fraction(3), Fraction(3), Fraction(11, 4)),
)
#: Where records are many a hierarchy over too many buckets errs little more than one over the right ones: what the
#: partition spends is lost to it, and what a wide bucket hides would be most of the error.
_FOR_MANY_RECORDS = 100, (Fraction(3, 2),)
#: They are many from so many deviations on of the noise that the whole budget would buy...
_MANY_RECORDS = 700.0
#: ...by a number that costs so many thousandths, unless it is public.
_LOOK_PARTS = 10
_BRANCHINGS = (2, 3, 4, 6, 8, 12, 16, 24, 32)
#: The scale for partitions is widened by so much: see `partition_scale`.
_MARGIN = 1 + Fraction(1, 2**50)


def partition_rule(workload: Workload, *, many_records: bool = False) -> tuple[int, tuple[Fraction, ...]]:
    """Return the partition's thousandths of the budget, and the prices of buckets.

    The public queries decide, and where they are wide, whether there are many records.
    """
    if not is_wide(workload):
        return _FOR_CELLS
    return _FOR_MANY_RECORDS if many_records else _FOR_WIDE_QUERIES


def interval_deviations(counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the deviations of all intervals, level after level as kernels have them, and where each level begins."""
    cells = counts.size
    columns, firsts = [np.zeros(cells, np.int64)], [0]
    halves, half = counts, 1
    while 2 * half <= cells:
        stride = half
        intervals = (cells - 2 * half) // stride + 1
        merged = np.empty(intervals * 2 * half, np.int64)
        deviations = np.empty(intervals, np.int64)
        merge_halves(halves, 1 if half == 1 else 2, half, merged, deviations)
        firsts.append(firsts[-1] + columns[-1].size)
        columns.append(deviations)
        halves, half = merged, 2 * half
    return np.concatenate(columns), np.array(firsts)


def partition(
    costs: NDArray[np.int64], firsts: NDArray[np.int64], cells: int, prices: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the edges, from 0 to the number of cells, of the partition of least cost; each level has its price."""
    best, back = np.empty(cells + 1, np.int64), np.empty(cells + 1, np.int64)
    count = choose_partition(costs, firsts, prices, best, back)
    return edges_of(back, count, cells)


def partition_scale(epsilon: float, moved: int) -> float:
    """Return the scale of the geometric noise that makes the partition epsilon-private; single cells have half of it.

    Notes
    -----
    Let one count grow or fall by 1. The deviation of each interval is the least sum of abs(x_j - m) over whole m, so it
    changes by at most 1 if the cell is in it, and not at all otherwise. Every partition has one bucket with the cell.
    Fix the noise and let B be the partition chosen, b its bucket with the cell. If the noise of b alone is lowered by
    2, B costs less by at least 2 - 1 with the neighbour's counts, any other partition without b less by at most 1, and
    those with b less by the same as B: B is chosen from the neighbour's counts too, ties included, as the order of
    partitions is fixed. If b is the cell alone, its deviation is 0 for both, and 1 is enough. Lowering geometric noise
    by t makes it exp(t / scale) times less probable (`lowered`): 2 at this scale, or 1 at half of it, cost the same, so
    the partition is (2 / scale)-private, whatever the number of intervals. Noise of one side is enough, as no noise is
    ever raised. Single cells must have noise as well: else there were none to lower. Where ``moved`` is 2, a count
    falls and another grows: the same twice. The noise must be of whole numbers (scales below 2**25): on a coarser grid
    one record could move a cost by a whole step of it.

    No sum of costs overflows unless one of at most 4 d noises, for d cells, is beyond 2**60 / d. With 32 (d + 4) scale
    <= 2**59 / d, and counts of at most 2**59 / d**2 that together make 2**59 / d, that is far rarer than any one
    partition. Let t = log(8 d) scale. With a probability of at least 1/2 every interval of several cells is lowered by
    less than t, and every single cell by less than t / 2: so w cells, however cut, by less than w t / 2 in all. Let all
    other intervals be lowered so, and each bucket of B, of w cells, by its deviation, its price and w t / 2 at least:
    then B is chosen. The log-probabilities of its buckets add up to at least -2**59 / d / scale - (5 + log(8 d)) d, and
    the overflow has at most 4 d exp(-2**60 / d / scale), less by a factor of exp(-100). The margin of 2**-50 is for
    that factor.

    """
    return laplace_scale(2 * moved * _MARGIN, as_written(epsilon))


def dawa(
    histogram: Counts,
    workload: OwnQueries = None,
    *,
    epsilon: Epsilon = None,
    delta: Delta = 0,
    rho: Rho = None,
    neighbors: Neighbors = "add_remove",
    ledger: Payer = None,
    dataset: OwnName = None,
    privacy_unit: OwnName = None,
    random: Random = None,
    threads: Threads = None,
    progress: TellStages = None,
) -> Estimate:
    """Estimate a histogram of one attribute by buckets of cells that hold about the same: DAWA.

    Guarantee
        epsilon-differential privacy, (epsilon, delta) with a delta, or rho-zCDP, for the histogram and all that is
        computed from the estimate. A part of 0.3 pays for the partition into buckets. Where queries sum over many cells
        it is 0.4, or 0.1 if there are many records, for whose number a part of 0.01 pays (nothing under "replace",
        where it is public); by adaptive composition all parts together cost the budget. The partition is the one of
        least cost, where an interval's cost is the sum of its counts' distances from their
        median, an integer that one record changes by at most 1, less geometric noise of scale 2 / epsilon' (4 /
        epsilon' under "replace", where two counts change; half of it for single cells), plus a public price for each
        bucket. As in report-noisy-min the costs stay secret, and to hide a record it is enough to lower the noise of
        the one bucket that holds it, by 2, however many intervals hold it: the proof is in
        `dpfast.synthesis.histograms.dawa.partition_scale`. The rest pays for the buckets' counts, which are summed
        exactly and measured with noise, as any histogram's; what is joined after that is joined by these alone. Without
        a ledger no budget is kept.

    Parameters
    ----------
    histogram
        int64 counts of the cells, 0 or more, of one dimension, in an order in which neighbours are alike. No nulls.
    workload
        What will be asked: one of `dpfast.workloads`, over one attribute. It decides how the buckets are measured, by
        closed forms. None: every cell.
    epsilon
        The budget: a number from 1e-18 to 1e6, read as the decimal it was written as.
    delta
        As for `dpfast.adaptive_hierarchy`.
    rho
        The budget in zero-concentrated differential privacy instead.
    neighbors
        ``"add_remove"``: one cell has one record more or fewer; ``"replace"``: one record moves to another cell.
    ledger
        A `dpfast.Ledger` that is charged the whole budget first, or None.
    dataset, privacy_unit
        What the ledger's guarantee is about; by default its own, or "data" and "row".
    random
        None for a fresh key from the operating system, or a `dpfast.testing.SeededRandom` in tests.
    threads
        How many threads draw noise; None uses all cores where that pays.
    progress
        Called with the name of each stage as it begins.

    Returns
    -------
    Estimate
        Its ``rounds`` have a row for each bucket: its first cell, its cells, and the estimate of its count; every cell
        has an equal part of its bucket's. Where queries sum over few cells and buckets are measured one by one, buckets
        are joined that differ by no more than noise, and none has less than 0; else an estimate may be negative.

    Raises
    ------
    ParameterError
        An argument is not as above, the histogram has several attributes, or the budget is too small for so many cells.
    DataError
        A count is negative or too large, and there is no ledger.
    BudgetExceededError, LedgerError
        The ledger refuses.

    Notes
    -----
    Intervals have a power of two of cells and overlap by half; all costs and the partition take O(d log d) steps for d
    cells. The buckets are measured by the hierarchy H_b, or one by one, whichever predicts the least error. Records
    are many from 700 deviations on of the noise that the whole budget would buy (1,000 / epsilon records): a hierarchy
    over too many buckets then errs less than one over too few.
    The original measures the deviation from the mean, of which a record changes up to 2 (1 - 1 / length), gives single
    cells no noise, and takes noisy costs below 0 for 0, with which no such proof holds: in the code that is published
    with it a record changes the probability of single cells alone by more than exp(epsilon') (docs/evidence.md).

    A spike, a cell that holds far more than its neighbours, drowns where the partition does not see it, as that has
    a part of the budget: one of 300 scales of the noise that the whole budget would buy (300 / epsilon records) has a
    bucket of its own, one of 30 mostly not (tests/synthesis/test_spikes.py). `dpf.ahp` and `dpf.adaptive_hierarchy`
    find it.

    References
    ----------
    Li, Hay, Miklau (2014), sections 3 and 4. Dwork, Roth (2014), claim 3.9, for the minimum of noisy costs.
    Ding, Kifer, Steinke, Wang, Xiao, Zhang (2021) for noise of one side.

    Examples
    --------
    >>> import numpy as np
    >>> import dpfast as dpf
    >>> from dpfast.testing import SeededRandom
    >>> counts = np.repeat([0, 9000, 20], [400, 32, 592])
    >>> estimate = dpf.dawa(counts, dpf.workloads.prefix(1024), epsilon=1.0, random=SeededRandom(4))
    >>> estimate.rounds.height < 300, round(float(estimate.answers[-1]), -4)
    (True, 300000.0)

    """
    show = read_progress(progress, "the name of a stage")
    task = Task.read(histogram, workload, epsilon, delta, rho, neighbors, 2)
    shares = _Shares.of(task)
    prepared = task.prepare(histogram, "DAWA", ledger, dataset, privacy_unit, random, threads)
    counts, source = prepared.counts, prepared.source
    parts, prices, scale = shares.chosen(task, prepared, threads)
    # What is above 2**59 / cells**2 counts as that: neighbours stay neighbours, and no sum of costs overflows.
    show("choosing buckets")
    costs, firsts = interval_deviations(np.minimum(counts, 2**59 // counts.size**2))
    single = lowered(costs[: counts.size], scale / 2.0, random=source, threads=threads)
    longer = lowered(costs[counts.size :], scale, random=source, threads=threads)
    by_level = [round(prices[min(level, len(prices) - 1)] * Fraction(scale)) for level in range(firsts.size)]
    edges = partition(np.concatenate([single, longer]), firsts, counts.size, np.array(by_level))
    show("measuring buckets")
    best = _strategy(task, edges, parts + shares.look_parts)
    buckets = draw_cells(best.strategy, best.noise, np.add.reduceat(counts, edges[:-1]), source, threads)
    if not shares.is_wide and isinstance(best.strategy, Identity):
        edges, height = joined(buckets, edges, best.noise.deviation)
    else:
        height = buckets / np.diff(edges)
    width = np.diff(edges)
    rounds = pl.DataFrame({"start": edges[:-1], "cells": width, "estimate": height * width})
    cells, spent = np.repeat(height, width), task.spent
    return Estimate(cells, task.workload, spent, rounds=rounds, paid=prepared.paid, records=prepared.records)


@dataclass(frozen=True)
class _Shares:
    """What the budget may be split into, before the data are looked at.

    Attributes
    ----------
    is_wide
        Whether the number of records decides, as queries sum over many cells.
    look
        The noise on that number; None where it is public, or does not decide.
    scales
        Of the noise on deviations, where records are few, and where they are many.

    """

    is_wide: bool
    look: IntegerNoise | None
    scales: tuple[float, float]

    @classmethod
    def of(cls, task: Task) -> _Shares:
        """Return the shares, or refuse a histogram or a budget for which one of them would be too small."""
        if len(task.workload.shape) != 1:
            given = Words(f"over {len(task.workload.shape)} attributes")
            raise ParameterError("workload", given, "over one attribute", "use dpf.ahp")
        few, many = (_scale(task, partition_rule(task.workload, many_records=many)[0]) for many in (False, True))
        wide = is_wide(task.workload)
        look = task.noise(_LOOK_PARTS) if wide and task.neighbors == "add_remove" else None
        return cls(wide, look, (few, many))

    @property
    def look_parts(self) -> int:
        """The thousandths that the number of records costs."""
        return 0 if self.look is None else _LOOK_PARTS

    def chosen(self, task: Task, prepared: Prepared, threads: int | None) -> tuple[int, tuple[Fraction, ...], float]:
        """Return the partition's thousandths, its prices and its scale; the number of records is measured for it."""
        many = False
        if self.is_wide:
            records = prepared.records
            if self.look is not None:
                records = float(self.look.add(prepared.counts.sum(keepdims=True), prepared.source, threads)[0])
            many = records is not None and records >= _MANY_RECORDS * task.noise(PARTS).deviation
        return *partition_rule(task.workload, many_records=many), self.scales[many]


def _scale(task: Task, parts: int) -> float:
    """Return the scale of the noise on deviations, or refuse a budget that there is none for."""
    # Permute-and-flip is accounted for as any pure mechanism is.
    share = selection_for(task.budget.kind, parts * task.part_units, "permute_and_flip", 1, "partition")
    scale = partition_scale(share.epsilon, task.moved)
    cells = task.cells
    # Wider noise is rounded to multiples of more than 1, where the proof of `partition_scale` fails.
    if grid_of_integers(scale) > 1 or not Fraction(scale) * 32 * (cells + 4) <= Fraction(2**59, cells):
        given, allowed = to_float(task.budget.units), f"larger, to find buckets among {cells:,} cells"
        raise ParameterError(task.budget.kind, given, allowed, "raise it, use coarser cells, or use dpf.ahp")
    return scale


def _strategy(task: Task, edges: NDArray[np.int64], spent: int) -> Considered:
    """Return what measures the buckets, and the noise: from the public partition alone."""
    buckets = edges.size - 1
    budget = Budget(task.budget.kind, task.units(spent))
    unit = PrivacyUnit(None, 1, 1, task.neighbors)
    among = [identity(buckets), *(hierarchy(buckets, b) for b in _BRANCHINGS if b < buckets)]
    asked = bucketed(task.workload, edges)
    return min((consider(one, asked, budget, unit) for one in among), key=lambda one: one.rmse)
