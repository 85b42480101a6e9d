"""A choice that is paid for: a strategy that no data is needed for, or a tree that fits the data."""

from __future__ import annotations

import numpy as np
import polars as pl

from dpfast.accounting.budget import Budget, Delta, Epsilon, Rho
from dpfast.accounting.privacy_unit import Neighbors
from dpfast.arguments import Threads
from dpfast.ledger.account import OwnName
from dpfast.ledger.payment import Payer
from dpfast.progress import TellStages, read_progress
from dpfast.randomness import Random
from dpfast.strategies.candidates import candidates
from dpfast.strategies.choosing import Considered, consider, read_unit
from dpfast.strategies.matrix_mechanism import draw_cells
from dpfast.synthesis.estimate import Estimate
from dpfast.synthesis.histograms.tree_noise import Noise
from dpfast.synthesis.histograms.trees import ROOT_PARTS, Tree
from dpfast.synthesis.preparing import Prepared, Task
from dpfast.workloads.histograms import Counts
from dpfast.workloads.workload import OwnQueries

__all__ = ["estimate_histogram"]

#: Queries that sum over so many cells (the mean of their squared coefficients) are served by a tree whatever the data.
_WIDE = 16.0
#: For others a strategy in closed form is better from so many records a cell on, in scales of its noise.
_CROWDED = 2.0
_MOST_AXES = 2


def estimate_histogram(
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
    """Estimate a histogram by what promises the least error for its queries and its number of records.

    Guarantee
        epsilon-differential privacy, (epsilon, delta) with a delta, or rho-zCDP, for the histogram, the choice and all
        that is computed from the estimate. Where the queries alone decide, all of the budget is spent on
        `adaptive_hierarchy`, or on the strategy that `dpfast.strategies.choose` takes. Where the number of records
        decides, a twentieth of the budget pays for it (nothing under "replace", where it is public), and the rest pays
        for the method that this noisy number chooses. By adaptive composition both together cost at most the budget.

    Parameters
    ----------
    histogram
        int64 counts of the cells, 0 or more, of any shape. No nulls.
    workload
        What will be asked, one of `dpfast.workloads`. None: every cell.
    epsilon, delta, rho, neighbors, ledger, dataset, privacy_unit, random, threads, progress
        As for `dpfast.adaptive_hierarchy`.

    Returns
    -------
    Estimate
        Its ``rounds`` say in ``method`` what was chosen. Cells may be negative if a strategy in closed form was chosen.
        Records come from `Estimate.table`, which has no negative cells.

    Raises
    ------
    ParameterError, DataError, BudgetExceededError, LedgerError
        As for `dpfast.adaptive_hierarchy`.

    Notes
    -----
    Queries that sum over many cells, ranges and rectangles say, take the adaptive hierarchy: within 1.3 times the best
    of all algorithms on 95% of the 660 combinations of benchmarks/dpbench. Queries for a few cells each take it only
    where the cells have on average fewer than two records in scales of the noise; above, they take the strategy whose
    error in closed form is least, and so do queries over three attributes and more.

    References
    ----------
    Hay, Machanavajjhala, Miklau, Chen, Zhang (2016), for what wins where; Kotsogiannis, Machanavajjhala, Hay, Miklau
    (2017), for choosing by the product of scale and epsilon.

    Examples
    --------
    >>> import numpy as np
    >>> import dpfast as dpf
    >>> from dpfast.testing import SeededRandom
    >>> counts = np.repeat([0, 9000, 20], [400, 32, 592])
    >>> def chosen(workload: dpf.workloads.Workload, epsilon: float) -> object:
    ...     return dpf.estimate_histogram(counts, workload, epsilon=epsilon, random=SeededRandom(1)).rounds["method"][0]
    >>> chosen(dpf.workloads.prefix(1024), 1.0)
    'adaptive hierarchy'
    >>> chosen(dpf.workloads.identity(1024), 1.0), chosen(dpf.workloads.identity(1024), 0.001)
    ('identity', 'adaptive hierarchy')

    """
    task = Task.read(histogram, workload, epsilon, delta, rho, neighbors, 3)
    noise, show = Noise(task, threads), read_progress(progress, "the name of a stage")
    small = len(task.workload.shape) <= _MOST_AXES
    wide = small and task.workload.energy(np.arange(task.cells + 1)) >= _WIDE * len(task.workload)
    counted = small and not wide and task.neighbors == "add_remove"
    strategy = None if wide else _strategy(task, ROOT_PARTS if counted else 0)
    prepared = task.prepare(histogram, "estimate of a histogram", ledger, dataset, privacy_unit, random, threads)
    if strategy is None or small:
        tree = Tree(task, prepared, noise)
        if strategy is None or tree.signal < _CROWDED * task.cells:
            tree.grow(show)
            estimate = tree.estimate()
            estimate.rounds = estimate.rounds.select(pl.lit("adaptive hierarchy").alias("method"), pl.all())
            return estimate
    show("measuring cells")
    return _measured(task, prepared, strategy, threads)


def _strategy(task: Task, spent: int) -> Considered:
    """Return the strategy of least predicted error for the budget but for some thousandths of it."""
    units = task.units(spent)
    budget = Budget(task.budget.kind, units)
    unit = read_unit(task.neighbors, 1, 1)
    considered = [consider(one, task.workload, budget, unit) for one in candidates(task.workload, budget)]
    return min(considered, key=lambda one: one.rmse)


def _measured(task: Task, prepared: Prepared, best: Considered, threads: int | None) -> Estimate:
    """Return the estimate by a strategy in closed form."""
    counts = prepared.counts.reshape(task.workload.shape)
    rounds = pl.DataFrame({"method": [best.strategy.name], "rmse": [best.rmse]})
    histogram = draw_cells(best.strategy, best.noise, counts, prepared.source, threads)
    return Estimate(
        histogram,
        task.workload,
        task.spent,
        rounds=rounds,
        entry=prepared.entry,
        records=prepared.records,
        deviations=lambda: best.noise.deviation * np.sqrt(best.strategy.variances(task.workload)),
    )
