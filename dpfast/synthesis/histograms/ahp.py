"""AHP: cells whose noisy counts are about the same are measured together, wherever they lie."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.accounting.budget import Delta, Epsilon, Rho
from dpfast.accounting.privacy_unit import Neighbors
from dpfast.arguments import Threads
from dpfast.kernels.histograms.clusters import cluster_sorted
from dpfast.ledger.account import OwnName
from dpfast.ledger.payment import Payer
from dpfast.mechanisms.noise.integer_noise import IntegerNoise
from dpfast.progress import TellStages, read_progress
from dpfast.randomness import Random
from dpfast.synthesis.estimate import Estimate
from dpfast.synthesis.histograms.edges import edges_of
from dpfast.synthesis.preparing import PARTS, Prepared, Task
from dpfast.workloads.histograms import Counts
from dpfast.workloads.workload import OwnQueries

__all__ = ["ahp", "clustered", "noises_of_clusters"]

#: Thousandths of the budget for the look at all cells: the best by experiment, for any queries.
_LOOK_PARTS = 750
_THRESHOLD = 0.35
#: Clusters of so many times that and more are no noise that stood out.
_CLEAR = 8.0
#: No noise at all has no precision.
_TINY = 1e-300


def ahp(
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
    """Estimate a histogram by clusters of cells with about the same count, in any order: AHP.

    Guarantee
        epsilon-differential privacy, (epsilon, delta) with a delta, or rho-zCDP, for the histogram and all that is
        computed from the estimate. Three quarters of the budget are spent on noisy counts of all cells, and one quarter
        on the clusters' counts; the clusters are made from the noisy counts alone, which costs nothing. Neighbours
        differ in one cell and so in one cluster, by one; under "replace" in two of both. Counts are exact integers with
        discrete Laplace or rounded Gaussian noise, exactly sampled.

    Parameters
    ----------
    histogram
        int64 counts of the cells, 0 or more, of any shape. No nulls.
    workload
        What will be asked, one of `dpfast.workloads`; the clusters do not depend on it. None: every cell.
    epsilon, delta, rho, neighbors, ledger, dataset, privacy_unit, random, threads, progress
        As for `dpfast.dawa`.

    Returns
    -------
    Estimate
        Its ``rounds`` have a row for each cluster: its cells, and the estimate of its count; every cell has an equal
        part of its cluster's, and none is negative.

    Raises
    ------
    ParameterError, DataError, BudgetExceededError, LedgerError
        As for `dpfast.adaptive_hierarchy`.

    Notes
    -----
    Noisy counts below 0.35 ln(d) scales of their noise, for d cells, count as 0 and are one cluster. Those above it are
    cut in descending order, into the clusters of least cost: the squared distances of noisy counts from the cluster's
    mean, and what its measurement adds to the squared error of its cells, which is its variance divided by their
    number. The best of all cuts takes O(d log d) steps; the original decides cell by cell. A cluster's count is its
    own measurement. Where its noisy cells hold on average at least eight times what still counts as 0, it is the mean
    of this and of their sum, weighted by precision.

    A spike, a cell that holds far more than the others, has a cluster of its own from about 30 scales of the noise that
    the whole budget would buy (30 / epsilon records), and then about the noise of four fifths of the
    budget (tests/synthesis/test_spikes.py: measured, not proved).

    References
    ----------
    Zhang, Chen, Xu, Meng, Xie (2014). Galil, Giancarlo (1989) for the best cut.

    Examples
    --------
    >>> import numpy as np
    >>> import dpfast as dpf
    >>> from dpfast.testing import SeededRandom
    >>> counts = np.repeat([0, 9000], [900, 100])
    >>> estimate = dpf.ahp(counts, epsilon=0.1, random=SeededRandom(1))
    >>> estimate.rounds.height < 40, bool(abs(estimate.histogram[-1] - 9000) < 20)
    (True, True)

    """
    show = read_progress(progress, "the name of a stage")
    task = Task.read(histogram, workload, epsilon, delta, rho, neighbors, 2, ledger=ledger, only_noise=True)
    noises = noises_of_clusters(task)
    prepared = task.prepare(histogram, "AHP", ledger, dataset, privacy_unit, random, threads)
    result, rounds = clustered(prepared, noises, threads, show)
    return Estimate(result, task.workload, task.spent, rounds=rounds, paid=prepared.paid)


def noises_of_clusters(task: Task, spent: int = 0) -> tuple[IntegerNoise, IntegerNoise]:
    """Return the noise of single cells and that of clusters, which cost all but ``spent`` thousandths together."""
    left = PARTS - spent
    look = left * _LOOK_PARTS // PARTS
    return task.noise(look), task.noise(left - look)


def clustered(
    prepared: Prepared,
    noises: tuple[IntegerNoise, IntegerNoise],
    threads: int | None,
    show: Callable[[str], object],
) -> tuple[NDArray[np.float64], pl.DataFrame]:
    """Return every cell's part of its cluster, flat, and the clusters; what `ahp` does once it is paid for."""
    look, last = noises
    counts, source = prepared.counts, prepared.source
    show("making clusters")
    noisy = look.add(counts, source, threads).astype(np.float64)
    least = _THRESHOLD * math.log(max(counts.size, 2)) * look.deviation / math.sqrt(2.0)
    noisy[noisy < least] = 0.0
    order = np.argsort(-noisy, kind="stable")
    starts = _cluster_starts(noisy[order], last.deviation**2)
    show("measuring clusters")
    sums = last.add(np.add.reduceat(counts[order], starts), source, threads)
    cells = np.diff(np.append(starts, counts.size))
    # What was seen of a cluster's cells counts as well, by its precision, where it did not make them stand out.
    before = np.add.reduceat(noisy[order], starts)
    variance = cells * look.deviation**2 + last.deviation**2
    weight = last.deviation**2 / np.maximum(variance, _TINY)
    weight[before < _CLEAR * cells * least] = 0.0
    estimate = np.maximum(sums + weight * (before - sums), 0.0)
    result = np.empty(counts.size)
    result[order] = np.repeat(estimate / cells, cells)
    return result, pl.DataFrame({"cells": cells, "estimate": estimate})


def _cluster_starts(values: NDArray[np.float64], variance: float) -> NDArray[np.int64]:
    """Return where each cluster of descending numbers begins: those of least cost, and one of all that are 0."""
    above = int(np.count_nonzero(values))
    best, sums, squares = np.empty((3, above + 1))
    back, candidates, since = np.empty((3, above + 1), np.int64)
    clusters = cluster_sorted(values[:above], variance, best, sums, squares, back, candidates, since)
    edges = edges_of(back, clusters, above)
    # Where some are 0, the last edge is the beginning of theirs.
    return edges if above < values.size else edges[:-1]
