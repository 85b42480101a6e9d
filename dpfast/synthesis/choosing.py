"""A choice that is paid for: cells without most of their noise, a tree that fits the data, or a closed form."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.accounting.budget import Budget, Delta, Epsilon, Rho
from dpfast.accounting.privacy_unit import Neighbors
from dpfast.arguments import Threads
from dpfast.ledger.account import OwnName
from dpfast.ledger.payment import Payer
from dpfast.mechanisms.noise.integer_noise import IntegerNoise
from dpfast.progress import TellStages, read_progress
from dpfast.randomness import Random
from dpfast.strategies.candidates import candidates
from dpfast.strategies.choosing import Considered, consider_all, read_unit
from dpfast.strategies.identity import Identity
from dpfast.strategies.marginals import MarginalTables
from dpfast.strategies.matrix_mechanism import draw_cells, draw_columns
from dpfast.strategies.nested import Nested
from dpfast.strategies.product import Product
from dpfast.synthesis.estimate import Estimate
from dpfast.synthesis.histograms.ahp import clustered, noises_of_clusters
from dpfast.synthesis.histograms.clear_cells import clear_cells
from dpfast.synthesis.histograms.denoising import denoised
from dpfast.synthesis.histograms.looking import FULL, Look, Seen
from dpfast.synthesis.histograms.sums_of_boxes import with_sums_of_boxes
from dpfast.synthesis.histograms.tables import cells_of_tables
from dpfast.synthesis.histograms.tree_noise import Noise
from dpfast.synthesis.histograms.trees import ROOT_PARTS, Tree
from dpfast.synthesis.histograms.whole_numbers import is_rare
from dpfast.synthesis.histograms.width import is_wide
from dpfast.synthesis.preparing import PARTS, Prepared, Task
from dpfast.workloads import Workload
from dpfast.workloads.histograms import Counts
from dpfast.workloads.workload import OwnQueries

__all__ = ["estimate_histogram"]

#: Wide queries take a closed form that errs so much less than hierarchies, where records are so many times its error
#: (marginals in the plane unless there are next to none, as the noise is taken out of them)...
_MUCH_LESS, _MANY_RECORDS = 0.7, 200.0
#: ...or so many over three axes or more, and there where tables share attributes...
_RECORDS_FOR_TABLES, _RECORDS_FOR_SHARED = 10.0, 20.0
#: ...or so many cells are full: along one axis a share of them, in the plane a multiple of a power of their number.
_FULL_CELLS = {1: (0.7, 1.0), 2: (1.2, 0.75)}
#: They take clear cells where the noise of the full ones adds up to at most this part of a closed form's error...
_LITTLE = 0.5
#: ...and there are so many records for each full cell, in scales of the noise. Where fewer cells are full than that
#: allows, fewer records do, in proportion, down to a tenth. Marginals in the plane, whose closed forms err less, need
#: five times it; over more axes, where those err more, half of it will do.
_RECORDS_A_FULL_CELL, _LEAST_PART, _TIMES_IN_THE_PLANE, _TIMES_FOR_TABLES = 1500.0, 0.1, 5.0, 0.5
#: Over three axes or more, clusters of cells are taken where at most this part of so many cells is full, and there are
#: so many times as many records for each of them as where none is.
_HEAVY_CELLS, _HEAVY = 0.08, 1.5
#: The look cannot tell fewer full cells from none.
_FEWEST_TOLD = 5.0
#: Thousandths of the budget that look for full cells, and for the number of records; over three axes or more tables
#: are taken from so few records on that a noisier number would not tell.
_LOOK, _LOOK_FOR_TABLES = Look(15, 15), Look(10, 40)
#: Cells are measured one by one if that errs at most so much more than the best closed form (second: wide queries).
_ABOUT, _ABOUT_FOR_WIDE = 1.3, 1.05
#: Marginals over three axes or more take tables if these err at most so much more.
_ABOUT_FOR_TABLES = 1.1
#: Queries that are not wide need so many records a cell for that, in scales of the noise: along one axis, and in the
#: plane; and so many in all (the number of records is noisy, and single cells tell next to nothing of fewer).
_CROWDED_CELLS, _LEAST_FOR_CELLS = {1: 0.04, 2: 0.01}, 80.0
#: Over more axes neighbouring cells tell less of each other: so many a cell, in deviations of the noise.
_CROWDED_TABLES = 0.2
#: Any other closed form they take from so many records a cell on.
_CROWDED = 2.0
_MOST_AXES = 2
#: Noise of a smaller deviation leaves nearly all whole numbers as they are, and the choice to closed forms alone (the
#: second: for wide queries, whose answers sum over many cells).
_LITTLE_NOISE, _LITTLE_NOISE_FOR_WIDE = 0.5, 0.1
#: Fewer records than the first, in scales of the noise that the rest of the budget buys, are counted and nothing else.
#: Where there seem to be fewer than the second, the third is the share of the rest that counts them again before that.
_FEW, _CLEARLY_MORE, _DOUBT = 17.0, 60.0, 0.2
#: By so many deviations of a look there are more than few.
_SURELY = 3.0


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
        `adaptive_hierarchy`, or on measuring the queries of one strategy, chosen without the data. For queries of a few
        cells the number of records decides, for which a twentieth of the budget pays (nothing under "replace", where it
        is public). For others a look decides, which takes 0.015 of the budget for that number and 0.015 for full cells
        (0.04 and 0.01 over three axes or more): these are told by the sum of all counts, each cut to ten scales of the
        noise, which a record changes by 1 at most. The rest pays for the method that these noisy numbers choose. By
        adaptive composition all together cost at most the budget. What takes noise out of measured cells and tables
        sees nothing but these, the noisy number of records and the public noise.

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

    Queries that sum over many cells, ranges and rectangles say, take the adaptive hierarchy, but a strategy in closed
    form where many cells are full. A full cell holds ten scales of the noise or more. Many of d cells are 0.7 d along
    one axis, and 1.2 d**0.75 in the plane. (Where that measures cells one by one, sums over large boxes of cells
    without noise stay near those of noisy ones, unless noise changes few cells:
    `dpfast.synthesis.histograms.sums_of_boxes`.) Where no hierarchy comes
    near to a closed form this is taken if there are 200 times as many records as it errs. Marginals in the plane are
    then measured as tables (``"marginals without noise"``), however few records there are, unless they are next to
    none (see below): what the entries of each are expected to hold given all of them is found as for cells, and their
    product, or their least squares where an attribute is in several tables, is the estimate.

    Laplace noise that leaves nearly all whole numbers as they are leaves the choice to closed forms alone: epsilon
    above about 2.3, or 5.3 where queries sum over many cells (twice that under "replace"). What cells are expected to
    hold under noise of a deviation below a half is told by how often each number is seen
    (`dpfast.synthesis.histograms.whole_numbers`).

    Over three axes or more marginals are measured as tables if these err at most 1.1 times as much as the best closed
    form. If single cells err less, and marginals sum over sixteen of them or more, noisy cells are the estimate. Fewer
    than 10 times as many records as tables err (20 times if tables share attributes) leave them to the adaptive
    hierarchy, and so do fewer than 0.2 a cell, in deviations of the noise, where all cells are measured. Where few
    cells are full and hold much more than the rest, but not nearly all, three quarters of what the look leaves measure
    cells, and one quarter clusters of them (`ahp`: ``"clusters of cells"``).

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
    (``"number of records"``): nothing else could be seen of them.

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
    choice = _Choice.of(task)
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


@dataclass(frozen=True)
class _Choice:
    """What is known before the data are looked at.

    Attributes
    ----------
    closed
        The strategy in closed form that is taken unless a tree or clear cells are.
    keeps_noise
        Whether what it measures is left as it is.
    least
        From how many records on it is taken; 0 for any number.
    look
        Counts full cells and records. Where it is None, the root of a tree counts records, unless ``least`` is 0.
    full_cells
        From how many full cells on the strategy is taken, whatever the number of records.
    if_few
        Where tables are taken in any case, but few records are to be counted before: by the thousandths that are left
        then, the strategy that is taken unless there are next to none.
    cells
        The strategy that measures every cell by itself, if clear cells may be taken.
    few_cells
        Up to how many full cells that is...
    records_a_full_cell
        ...if there are so many records for each of so many full cells, in scales of the noise.

    """

    closed: Considered
    keeps_noise: bool = False
    least: float = 0.0
    look: Look | None = None
    full_cells: float = math.inf
    if_few: dict[int, Considered] = field(default_factory=dict)
    cells: Considered | None = None
    few_cells: float = 0.0
    records_a_full_cell: float = math.inf

    @classmethod
    def of(cls, task: Task) -> _Choice:
        """Consider all strategies for what the budget leaves."""
        axes, workload = len(task.workload.shape), task.workload
        if _is_little(task.noise(PARTS), wide=is_wide(workload)):
            return cls(*_taken(_considered(task, 0), workload))
        if not is_wide(workload):
            root = ROOT_PARTS if task.neighbors == "add_remove" else 0
            taken, keeps_noise = _taken(_considered(task, root), workload)
            if axes > _MOST_AXES:
                times = _CROWDED_TABLES * task.cells if _measures_cells(taken) else _times_for_tables(taken)
                return cls(taken, keeps_noise, times * taken.rmse)
            scales = _CROWDED * task.cells
            if isinstance(taken.strategy, Identity):
                scales = max(_CROWDED_CELLS[axes] * task.cells, _LEAST_FOR_CELLS)
            return cls(taken, keeps_noise, scales * taken.noise.deviation / math.sqrt(2.0))
        look = _LOOK_FOR_TABLES if axes > _MOST_AXES else _LOOK
        among = _considered(task, look.spent(task))
        taken, keeps_noise = _taken(among, workload)
        least, full_cells, a_full_cell = math.inf, math.inf, _RECORDS_A_FULL_CELL
        if_few: dict[int, Considered] = {}
        if axes > _MOST_AXES:
            least = _times_for_tables(taken) * taken.rmse
            a_full_cell *= _TIMES_FOR_TABLES
        elif taken.rmse > _MUCH_LESS * _least_nested(among):
            taken = _cells_or_best(among, _ABOUT_FOR_WIDE)
            factor, power = _FULL_CELLS[axes]
            full_cells = factor * task.cells**power
        elif isinstance(taken.strategy, MarginalTables):
            a_full_cell *= _TIMES_IN_THE_PLANE
            least, if_few = cls._for_few_records(task, look) if task.neighbors == "add_remove" else (-math.inf, {})
        else:
            least = _MANY_RECORDS * taken.rmse
        cells = next((one for one in among if isinstance(one.strategy, Identity)), None)
        few = 0.0 if cells is None else task.cells * (_LITTLE * taken.rmse / cells.rmse) ** 2
        return cls(taken, keeps_noise, least, look, full_cells, if_few, cells, few, a_full_cell)

    @staticmethod
    def _for_few_records(task: Task, look: Look) -> tuple[float, dict[int, Considered]]:
        """Return up to which number of records a look leaves it open whether they are few, and what is taken then.

        By the thousandths that the root of a tree leaves, measured once or twice.
        """
        least = _CLEARLY_MORE * task.noise(PARTS).deviation / math.sqrt(2.0)
        least += _SURELY * task.noise(look.parts_for_records).deviation
        once = PARTS - look.spent(task) - ROOT_PARTS
        lefts = once, once - max(round(_DOUBT * once), 1)
        return least, {left: _taken(_considered(task, PARTS - left), task.workload)[0] for left in lefts}

    def is_sparse(self, seen: Seen) -> bool:
        """Whether a look says that clear cells are taken."""
        full = max(seen.full_cells, _FEWEST_TOLD)
        if full > self.few_cells:
            return False
        for_each = self.records_a_full_cell * max(full / self.few_cells, _LEAST_PART) * seen.scale
        return seen.records[0] >= for_each * full

    def is_heavy(self, seen: Seen) -> bool:
        """Whether a look says that few cells of a table hold much more than the rest, which is not nothing.

        Where no cell is full there are at most `FULL` scales of the noise for each one that counts as full.
        """
        few = _HEAVY_CELLS * self.few_cells
        if len(self.closed.strategy.shape) <= _MOST_AXES or few < _FEWEST_TOLD or seen.full_cells > few:
            return False
        return seen.records[0] >= _HEAVY * FULL * seen.scale * max(seen.full_cells, _FEWEST_TOLD)

    def is_closed(self, seen: Seen) -> bool:
        """Whether a look says that the strategy is taken."""
        return seen.records[0] >= self.least or seen.full_cells >= self.full_cells


def _is_little(noise: IntegerNoise, *, wide: bool) -> bool:
    """Whether Laplace noise leaves nearly all whole numbers as they are."""
    return noise.mechanism == "laplace" and noise.deviation < (_LITTLE_NOISE_FOR_WIDE if wide else _LITTLE_NOISE)


def _are_few(tree: Tree, prepared: Prepared) -> bool:
    """Whether there are next to no records, by the root of a tree, which is measured once more if there seem to be few.

    Where their number is public, it tells what boxes hold, however few they are.
    """
    if prepared.records is not None:
        return False
    if tree.signal < _CLEARLY_MORE:
        tree.count_again(_DOUBT)
    return tree.signal < _FEW


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


def _considered(task: Task, spent: int) -> list[Considered]:
    """Return the strategies with their predicted errors, for the budget but for some thousandths of it."""
    units = task.units(spent)
    budget = Budget(task.budget.kind, units)
    unit = read_unit(task.neighbors, 1, 1)
    return consider_all(candidates(task.workload, budget), task.workload, budget, unit)


def _cells_or_best(among: list[Considered], about: float = _ABOUT) -> Considered:
    """Return every cell or marginals by themselves, if that errs ``about`` as the best strategy at most, else that.

    Their noise can be taken out.
    """
    best = min(among, key=lambda one: one.rmse)
    near = [one for one in among if one.rmse <= about * best.rmse]
    return next((one for kind in (Identity, MarginalTables) for one in near if isinstance(one.strategy, kind)), best)


def _taken(among: list[Considered], workload: Workload) -> tuple[Considered, bool]:
    """Return what is taken of all strategies, and whether its noise is left in it."""
    if len(workload.shape) > _MOST_AXES:
        return _tables_or_cells(among, workload)
    return _cells_or_best(among), False


def _measures_cells(taken: Considered) -> bool:
    """Whether every cell is measured by itself, or a table that is all cells."""
    if isinstance(taken.strategy, MarginalTables):
        return max(map(len, taken.strategy.attributes)) == len(taken.strategy.shape)
    return isinstance(taken.strategy, Identity)


def _least_nested(among: list[Considered]) -> float:
    """Return the least error of cells and hierarchies; 0 if there are none."""
    nested = (one.rmse for one in among if isinstance(one.strategy, (Identity, Nested, Product)))
    return min(nested, default=0.0)


def _times_for_tables(taken: Considered) -> float:
    """Return how many times as many records as they err let tables over three axes or more be taken."""
    share = isinstance(taken.strategy, MarginalTables) and taken.strategy.share_attributes
    return _RECORDS_FOR_SHARED if share else _RECORDS_FOR_TABLES


def _tables_or_cells(among: list[Considered], workload: Workload) -> tuple[Considered, bool]:
    """Return what is taken over three axes or more, and whether its noise is left in it.

    Marginals by themselves, whose noise can be taken out, if they err about as little as the best strategy. Otherwise
    marginals of many cells are summed from noisy ones: what takes noise out of cells errs by little in each, but to the
    same side in regions that are no marginal's, and its sums over many cells would err two to four times as much.
    """
    best = min(among, key=lambda one: one.rmse)
    tables = next((one for one in among if isinstance(one.strategy, MarginalTables)), None)
    if tables is None:
        return _cells_or_best(among), False
    if tables.rmse <= _ABOUT_FOR_TABLES * best.rmse:
        return tables, False
    return _cells_or_best(among), is_wide(workload)


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
    elif isinstance(strategy, MarginalTables):
        name = "marginals without noise"
        # A table of all cells knows its heavy ones better than a noisy number of records, which would scale them.
        known = None if _measures_cells(taken) else records
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
