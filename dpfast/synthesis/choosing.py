"""A choice that is paid for: cells without most of their noise, a tree that fits the data, or a closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.accounting.budget import Budget, Delta, Epsilon, Rho
from dpfast.accounting.privacy_unit import Neighbors
from dpfast.arguments import Threads
from dpfast.ledger.account import OwnName
from dpfast.ledger.payment import Payer
from dpfast.progress import TellStages, read_progress
from dpfast.randomness import Random
from dpfast.strategies.candidates import candidates
from dpfast.strategies.choosing import Considered, consider, read_unit
from dpfast.strategies.identity import Identity
from dpfast.strategies.marginals import MarginalTables
from dpfast.strategies.matrix_mechanism import draw_cells, draw_columns
from dpfast.strategies.nested import Nested
from dpfast.strategies.product import Product
from dpfast.synthesis.estimate import Estimate
from dpfast.synthesis.histograms.denoising import LEAST_DEVIATION, denoised
from dpfast.synthesis.histograms.sums_of_boxes import with_sums_of_boxes
from dpfast.synthesis.histograms.tables import cells_of_tables
from dpfast.synthesis.histograms.tree_noise import Noise
from dpfast.synthesis.histograms.trees import ROOT_PARTS, Tree
from dpfast.synthesis.histograms.width import is_wide
from dpfast.synthesis.preparing import PARTS, Prepared, Task
from dpfast.workloads import Workload
from dpfast.workloads.histograms import Counts
from dpfast.workloads.workload import OwnQueries

__all__ = ["estimate_histogram"]

#: For wide queries a closed form is taken where it errs so much less than hierarchies and records are so many errors...
_MUCH_LESS, _MANY_RECORDS = 0.7, 200.0
#: ...or fewer for marginals, as the noise is taken out of them...
_RECORDS_FOR_MARGINALS = 70.0
#: ...or so many cells are full, along one axis and in the plane, where a full one counts as one and others in part.
_FULL_CELLS = {1: 0.7, 2: 0.17}
#: Cells are full from so many scales of the noise on; so many thousandths of the budget look for them.
_FULL, _DENSITY_PARTS = 10.0, 20
#: For others cells are measured one by one if that errs at most so much more than the best of closed forms...
_ABOUT, _ABOUT_FOR_WIDE = 1.3, 1.05
#: ...and there are so many records a cell, in scales of the noise: along one axis, and in the plane; and so many in all
#: (the number of records is noisy, and single cells tell next to nothing of fewer).
_CROWDED_CELLS, _LEAST_FOR_CELLS = {1: 0.04, 2: 0.01}, 80.0
#: Else a closed form is taken from so many on.
_CROWDED = 2.0
_MOST_AXES = 2
#: Fewer records, in scales of the noise that the rest of the budget buys, are counted and nothing else.
_FEW = 20.0


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
        that is computed from the estimate. Where the queries and the budget alone decide, all of it is spent on
        `adaptive_hierarchy`, or on measuring the queries of one strategy, chosen without the data. Where the number of
        records decides, a twentieth of the budget pays for it (nothing under "replace", where it is public), or a
        fiftieth for the density: the sum of all counts, each of which counts no more than ten scales of the noise,
        which a record changes by 1 at most. The rest pays for the method that this noisy number chooses. By adaptive
        composition both together cost at most the budget. What takes noise out of measured cells and tables sees
        nothing but these, the noisy number of records and the public noise.

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
    Queries for a few cells each: every cell is measured by itself, and what each is expected to hold given all of them
    is the estimate (``"cells without noise"``). They are taken to consist of boxes that are empty, even or uneven, but
    for some spikes; all divisions of a binary tree into boxes are averaged by their probabilities. That lets records
    stand where they are many or alone, and finds the level of the rest; it costs no privacy. Where there are on average
    fewer than 0.04 records a cell, in scales of the noise (0.01 in the plane), or fewer than 80 in all, the adaptive
    hierarchy is taken.

    Queries that sum over many cells, ranges and rectangles say, take the adaptive hierarchy, and a strategy in closed
    form where most cells are full: hold ten scales of the noise. (Where that measures cells one by one, sums over large
    boxes of cells without noise stay near those of noisy ones: `dpfast.synthesis.histograms.sums_of_boxes`.) Where no
    hierarchy comes near to a closed form this is taken if there are 200 times as many records as it errs. Marginals are
    measured as tables if there are 70 times as many (``"marginals without noise"``): what the entries of each are
    expected to hold given all of them is found as for cells, and their product, or their least squares where an
    attribute is in several tables, is the estimate. Noise that leaves nearly all whole numbers as they are (epsilon
    above about 4) leaves the choice to closed forms alone.

    Where the tree's first look finds fewer than 20 records, in scales of the noise that is left, the rest of the budget
    counts them once more, and they are spread evenly (``"number of records"``): nothing else could be seen of them.

    References
    ----------
    Hay, Machanavajjhala, Miklau, Chen, Zhang (2016), for what wins where; Kotsogiannis, Machanavajjhala, Hay, Miklau
    (2017), for choosing by the product of scale and epsilon. See `dpfast.kernels.histograms.pieces` for what takes the
    noise out of cells.

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
    >>> chosen(dpf.workloads.identity(1024), 1.0), chosen(dpf.workloads.identity(1024), 0.0002)
    ('cells without noise', 'adaptive hierarchy')

    """
    task = Task.read(histogram, workload, epsilon, delta, rho, neighbors, 3)
    noise, show = Noise(task, threads), read_progress(progress, "the name of a stage")
    choice = _Choice.of(task)
    prepared = task.prepare(histogram, "estimate of a histogram", ledger, dataset, privacy_unit, random, threads)
    records = None if prepared.records is None else (prepared.records, 0.0)
    if choice.asks is not None and not choice.is_closed(task, prepared, noise):
        tree = Tree(task, prepared, noise, _DENSITY_PARTS if choice.asks == "density" else 0)
        if choice.asks == "density" or not choice.is_crowded(tree):
            few = prepared.records is None and tree.signal < _FEW
            if few:
                tree.count_again()
            else:
                tree.grow(show)
            estimate, name = tree.estimate(), "number of records" if few else "adaptive hierarchy"
            estimate.rounds = estimate.rounds.select(pl.lit(name).alias("method"), pl.all())
            return estimate
        records = float(tree.levels[0].value[0]), float(tree.levels[0].variance[0])
    show("measuring cells")
    return _measured(task, prepared, choice, records, threads)


@dataclass(frozen=True)
class _Choice:
    """What is known before the data are looked at.

    Attributes
    ----------
    closed
        The strategy that is taken unless the tree is.
    asks
        What decides about that: the number of "records", of which a tree knows; the "density", which is asked for; or
        None where nothing does.
    least
        From which number of records on, or from which density, the strategy is taken.

    """

    closed: Considered
    asks: Literal["records", "density"] | None
    least: float = 0.0

    @classmethod
    def of(cls, task: Task) -> _Choice:
        """Consider all strategies for what the budget leaves."""
        axes, workload = len(task.workload.shape), task.workload
        if axes > _MOST_AXES or task.noise(PARTS).deviation < LEAST_DEVIATION:
            return cls(_cells_or_best(_considered(task, 0)), None)
        counted = _considered(task, ROOT_PARTS if task.neighbors == "add_remove" else 0)
        taken = _cells_or_best(counted)
        if not is_wide(workload):
            scales = _CROWDED * task.cells
            if isinstance(taken.strategy, Identity):
                scales = max(_CROWDED_CELLS[axes] * task.cells, _LEAST_FOR_CELLS)
            return cls(taken, "records", scales * taken.noise.deviation / math.sqrt(2.0))
        nested = [one.rmse for one in counted if isinstance(one.strategy, (Identity, Nested, Product))]
        if taken.rmse <= _MUCH_LESS * min(nested, default=0.0):
            many = _RECORDS_FOR_MARGINALS if isinstance(taken.strategy, MarginalTables) else _MANY_RECORDS
            return cls(taken, "records", many * taken.rmse)
        closed = _cells_or_best(_considered(task, _DENSITY_PARTS), _ABOUT_FOR_WIDE)
        return cls(closed, "density", _FULL_CELLS[axes])

    def is_closed(self, task: Task, prepared: Prepared, noise: Noise) -> bool:
        """Whether the density, if it is asked for, says that the strategy is taken."""
        if self.asks != "density":
            return False
        full = max(round(_FULL * math.sqrt(float(noise.variances(np.array([PARTS]))[0]) / 2.0)), 1)
        noisy = noise.add(records_within(prepared.counts, full), np.array([_DENSITY_PARTS]), prepared)
        return float(noisy[0]) >= self.least * full * task.cells

    def is_crowded(self, tree: Tree) -> bool:
        """Whether the number of records says that the strategy is taken."""
        return float(tree.levels[0].value[0]) >= self.least


def records_within(counts: NDArray[np.int64], full: int) -> NDArray[np.int64]:
    """Return the sum of all counts, of which none counts as more than that of a full cell: one number.

    A record more or fewer changes it by 1 at most, and so does one that moves to another cell: one cell's part falls by
    0 or 1, and the other's grows by 0 or 1. So it costs no more than a measurement of disjoint cells does.
    """
    return np.array([np.minimum(counts, full).sum(dtype=np.int64)])


def _considered(task: Task, spent: int) -> list[Considered]:
    """Return all strategies with their predicted errors, for the budget but for some thousandths of it."""
    units = task.units(spent)
    budget = Budget(task.budget.kind, units)
    unit = read_unit(task.neighbors, 1, 1)
    return [consider(one, task.workload, budget, unit) for one in candidates(task.workload, budget)]


def _cells_or_best(among: list[Considered], about: float = _ABOUT) -> Considered:
    """Return every cell or marginals by themselves, if that errs ``about`` as the best strategy at most, else that.

    Their noise can be taken out.
    """
    best = min(among, key=lambda one: one.rmse)
    near = [one for one in among if one.rmse <= about * best.rmse]
    return next((one for kind in (Identity, MarginalTables) for one in near if isinstance(one.strategy, kind)), best)


def _deviations(taken: Considered, workload: Workload) -> NDArray[np.float64]:
    """Return how far each answer is off."""
    return taken.noise.deviation * np.sqrt(taken.strategy.variances(workload))


def _measured(
    task: Task, prepared: Prepared, choice: _Choice, records: tuple[float, float] | None, threads: int | None
) -> Estimate:
    """Return the estimate by a strategy in closed form, without most of the noise of cells and of marginals.

    ``records`` is what is known of their number, and the variance of that; None for nothing.
    """
    best, shape = choice.closed, task.workload.shape
    name, deviations = best.strategy.name, None
    drawn = best.strategy, best.noise, prepared.counts.reshape(shape), prepared.source, threads
    if isinstance(best.strategy, Identity):
        noisy = draw_cells(*drawn).reshape(shape)
        name, cells = "cells without noise", denoised(noisy, best.noise, threads)
        if is_wide(task.workload):
            cells = with_sums_of_boxes(cells, noisy, best.noise.deviation)
    elif isinstance(best.strategy, MarginalTables):
        name = "marginals without noise"
        cells = cells_of_tables(best.strategy, draw_columns(*drawn), best.noise, records, threads)
    else:
        cells = draw_cells(*drawn)
        deviations = partial(_deviations, best, task.workload)  # no lambda, which could not be pickled
    return Estimate(
        cells,
        task.workload,
        task.spent,
        rounds=pl.DataFrame({"method": [name], "rmse": [best.rmse]}),
        paid=prepared.paid,
        records=prepared.records,
        deviations=deviations,
    )
