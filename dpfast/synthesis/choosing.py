"""A choice that is paid for: cells without most of their noise, a tree that fits the data, or a closed form."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.accounting.budget import Delta, Epsilon, Rho
from dpfast.accounting.privacy_unit import Neighbors
from dpfast.arguments import Threads
from dpfast.ledger.account import OwnName
from dpfast.ledger.payment import Payer
from dpfast.progress import TellStages, read_progress
from dpfast.randomness import Random
from dpfast.strategies.choosing import Considered
from dpfast.strategies.identity import Identity
from dpfast.strategies.marginals import MarginalTables
from dpfast.strategies.matrix_mechanism import draw_cells, draw_columns
from dpfast.synthesis.choices import CLEARLY_MORE, DOUBT, FEW, MOST_AXES, Choice, measures_cells
from dpfast.synthesis.estimate import Estimate
from dpfast.synthesis.histograms.ahp import clustered, noises_of_clusters
from dpfast.synthesis.histograms.clear_cells import clear_cells
from dpfast.synthesis.histograms.denoising import denoised
from dpfast.synthesis.histograms.looking import Look
from dpfast.synthesis.histograms.sums_of_boxes import with_sums_of_boxes
from dpfast.synthesis.histograms.tables import cells_of_tables
from dpfast.synthesis.histograms.tree_noise import Noise
from dpfast.synthesis.histograms.trees import Tree
from dpfast.synthesis.histograms.whole_numbers import is_rare
from dpfast.synthesis.histograms.width import is_wide
from dpfast.synthesis.preparing import Prepared, Task
from dpfast.workloads import Workload
from dpfast.workloads.histograms import Counts
from dpfast.workloads.workload import OwnQueries

__all__ = ["estimate_histogram"]


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
        that is computed from the estimate. Where the queries, the number of cells and the budget alone decide, all of
        it is spent on measuring the queries of one strategy, chosen without the data. For queries of a few cells the
        number of records decides, for which a twentieth of the budget pays (nothing under "replace", where it is
        public). For others, for very many cells and for tables over three axes or more a look decides. It takes 0.015
        of the budget for that number and 0.015 for full cells; over three axes or more, 0.04 and 0.01. Full cells are
        told by the sum of all counts, each cut to ten scales of the noise, which a record changes by 1 at most. The
        rest pays for the method that these noisy numbers choose. By adaptive composition all together cost at most the
        budget. What takes noise out of measured cells and tables sees nothing but these, the noisy number of records
        and the public noise.

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
        Its ``rounds`` say in ``method`` what was chosen, and of what was measured by a strategy in ``rmse`` what error
        was predicted, before its noise was taken out. Cells may be negative if a strategy in closed form was chosen, or
        ``"cells with half of their noise"``. Records come from `Estimate.table`, which has no negative cells.

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
    hierarchy is taken. Where that would leave more than 1,000 scales to it, a look tells whether these stand in few
    cells; then cells are measured all the same, or of 2**17 cells and more clusters of them (`ahp`). Up to 64 cells are
    measured in any case, and up to 32 are by the best strategy for whatever is asked.

    Queries that sum over many cells, ranges and rectangles say, take the adaptive hierarchy, but a strategy in closed
    form where many cells are full. A full cell holds ten scales of the noise or more. Many of d cells are 0.7 d along
    one axis. In the plane they are 1.2 d**0.75, or the square of the closed form's error in scales if that is less.
    (Where that measures cells one by one, sums over large boxes of cells without noise stay near those of noisy ones,
    unless noise changes few cells: `dpfast.synthesis.histograms.sums_of_boxes`.) Where no hierarchy comes near to a
    closed form this is taken if there are 200 times as many records as it errs. Marginals in the plane are then
    measured as tables (``"marginals without noise"``), however few records there are, unless they are next to none (see
    below): what the entries of each are expected to hold given all of them is found as for cells, and their product, or
    their least squares where an attribute is in several tables, is the estimate. Of few records tables that share
    attributes are fitted by cells of 0 or more (`dpfast.synthesis.histograms.shared_tables`).

    Laplace noise that leaves nearly all whole numbers as they are leaves the choice to closed forms alone: epsilon
    above about 2.3, or 5.3 where queries sum over many cells (twice that under "replace"). What cells are expected to
    hold under noise of a deviation below a half is told by how often each number is seen
    (`dpfast.synthesis.histograms.whole_numbers`).

    Over three axes or more marginals are measured as tables if these err at most 1.1 times as much as the best closed
    form. If single cells err less, and marginals sum over sixteen of them or more, noisy cells are the estimate. Fewer
    than 10 times as many records as tables err (20 times if tables share attributes) leave them to the adaptive
    hierarchy, and so do fewer than 0.06 a cell, in deviations of the noise, where all cells are measured. Where few
    cells are full and hold much more than the rest, but not nearly all, three quarters of what the look leaves measure
    cells, and one quarter clusters of them (`ahp`: ``"clusters of cells"``). Rectangles over three axes or more take
    the mean of noisy cells and of cells without noise: half of the noise is left, and half of what the latter's sums
    are off to the same side.

    Where few cells are full and hold nearly all records, such queries take cells that are measured one by one
    (``"clear cells"``); those that are not clearly full are 0, or all alike if surely some records are in them. Few are
    so many that their noise adds up to at most half of what the closed form errs. They hold nearly all records if there
    are 1500 scales of the noise for each full cell: a cell of fewer than ten scales counts as full in part, so that
    records elsewhere would make the full cells more. Where fewer cells than that are full, fewer records are enough, in
    proportion, down to 150 scales a cell. Marginals in the plane need five times as many, and queries over three axes
    or more half as many.

    A twentieth of the budget counts records at the tree's root, also for marginals in the plane where the look leaves
    it open whether they are few. Fewer than 60, in scales of the noise that is left, are counted once more with a fifth
    of it. If they are fewer than 17 then, the rest of the budget counts them again, and they are spread evenly
    (``"number of records"``): of so few among many cells next to nothing else could be seen.

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
    task = Task.read(histogram, workload, epsilon, delta, rho, neighbors, 3, ledger=ledger, only_noise=True)
    noise, show = Noise(task, threads), read_progress(progress, "the name of a stage")
    choice = Choice.of(task)
    prepared = task.prepare(histogram, "estimate of a histogram", ledger, dataset, privacy_unit, random, threads)
    records = None if prepared.records is None else (prepared.records, 0.0)
    taken, is_clear = choice.closed, False
    if choice.look is not None:
        seen = choice.look.at(task, prepared, noise)
        records = seen.records
        if choice.cells is not None and choice.is_sparse(seen):
            taken, is_clear = choice.cells, True
        elif choice.is_heavy(seen):
            return _clustered(task, prepared, choice.look, threads, show)
        elif not choice.is_closed(seen):
            tree = Tree(task, prepared, noise, choice.look.spent(task))
            few = _are_few(tree, prepared)
            if few or not choice.if_few:
                return _grown(tree, show, few=few)
            taken, records = choice.if_few[tree.left], tree.records
    elif choice.least:
        tree = Tree(task, prepared, noise)
        records = tree.records
        if records[0] < choice.least:
            return _grown(tree, show, few=_are_few(tree, prepared))
    show("measuring cells")
    keeps_noise = choice.keeps_noise and not is_clear
    return _measured(task, prepared, taken, records, threads, is_clear=is_clear, keeps_noise=keeps_noise)


def _are_few(tree: Tree, prepared: Prepared) -> bool:
    """Whether there are next to no records, by the root of a tree, which is measured once more if there seem to be few.

    Where their number is public, it tells what boxes hold, however few they are.
    """
    if prepared.records is not None:
        return False
    if tree.signal < CLEARLY_MORE:
        tree.count_again(DOUBT)
    return tree.signal < FEW


def _grown(tree: Tree, show: Callable[[str], object], *, few: bool) -> Estimate:
    """Return the estimate by a tree whose root is measured, or by the number of records alone if they are few."""
    if few:
        tree.count_again(1.0)
    else:
        tree.grow(show)
    estimate, name = tree.estimate(), "number of records" if few else "adaptive hierarchy"
    estimate.rounds = estimate.rounds.select(pl.lit(name).alias("method"), pl.all())
    return estimate


def _clustered(
    task: Task, prepared: Prepared, look: Look, threads: int | None, show: Callable[[str], object]
) -> Estimate:
    """Return the estimate by clusters of cells with about the same count, for what the look has left."""
    cells, rounds = clustered(prepared, noises_of_clusters(task, look.spent(task)), threads, show)
    rounds = rounds.select(pl.lit("clusters of cells").alias("method"), pl.all())
    return Estimate(cells, task.workload, task.spent, rounds=rounds, paid=prepared.paid, records=prepared.records)


def _deviations(taken: Considered, workload: Workload) -> NDArray[np.float64]:
    """Return how far each answer is off."""
    return taken.noise.deviation * np.sqrt(taken.strategy.variances(workload))


def _measured(
    task: Task,
    prepared: Prepared,
    taken: Considered,
    records: tuple[float, float] | None,
    threads: int | None,
    *,
    is_clear: bool,
    keeps_noise: bool,
) -> Estimate:
    """Return the estimate by a strategy in closed form, without most of the noise of cells and of marginals.

    ``records`` is what is known of their number, and the variance of that; None for nothing. With ``is_clear`` cells
    that are not clear are 0; with ``keeps_noise`` nothing is taken out.
    """
    shape, strategy, noise = task.workload.shape, taken.strategy, taken.noise
    name, deviations = strategy.name, None
    drawn = strategy, noise, prepared.counts.reshape(shape), prepared.source, threads
    if isinstance(strategy, Identity) and not keeps_noise:
        noisy = draw_cells(*drawn).reshape(shape)
        name, cells = "clear cells" if is_clear else "cells without noise", denoised(noisy, noise, threads)
        if is_clear:
            cells = clear_cells(cells, noisy, noise.deviation, records)
        elif is_wide(task.workload) and not is_rare(noise):
            cells = with_sums_of_boxes(cells, noisy, noise.deviation)
            if len(shape) > MOST_AXES:
                name, cells = "cells with half of their noise", (cells + noisy) / 2.0
    elif isinstance(strategy, MarginalTables):
        name = "marginals without noise"
        # A table of all cells knows its heavy ones better than a noisy number of records, which would scale them.
        known = None if measures_cells(taken) else records
        cells = cells_of_tables(strategy, draw_columns(*drawn), noise, known, threads)
    else:
        cells = draw_cells(*drawn)
        deviations = partial(_deviations, taken, task.workload)  # no lambda, which could not be pickled
    return Estimate(
        cells,
        task.workload,
        task.spent,
        rounds=pl.DataFrame({"method": [name], "rmse": [taken.rmse]}),
        paid=prepared.paid,
        records=prepared.records,
        deviations=deviations,
    )
