"""What is known of the choice before a histogram is looked at: which strategies, and from how many records on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from dpfast.accounting.budget import Budget
from dpfast.mechanisms.noise.integer_noise import IntegerNoise
from dpfast.strategies.candidates import candidates
from dpfast.strategies.choosing import Considered, consider_all, read_unit
from dpfast.strategies.identity import Identity
from dpfast.strategies.marginals import MarginalTables
from dpfast.strategies.nested import Nested
from dpfast.strategies.product import Product
from dpfast.synthesis.histograms.looking import FULL, Look, Seen
from dpfast.synthesis.histograms.trees import ROOT_PARTS, parts_of
from dpfast.synthesis.histograms.width import is_wide
from dpfast.synthesis.preparing import PARTS, Task
from dpfast.workloads import Workload

__all__ = ["CLEARLY_MORE", "DOUBT", "FEW", "MOST_AXES", "Choice", "measures_cells"]

#: Wide queries take a closed form that errs so much less than hierarchies, where records are so many times its error
#: (marginals in the plane unless there are next to none, as the noise is taken out of them)...
_MUCH_LESS, _MANY_RECORDS = 0.7, 200.0
#: ...or so many over three axes or more, and there where tables share attributes...
_RECORDS_FOR_TABLES, _RECORDS_FOR_SHARED = 10.0, 20.0
#: ...or so many cells are full: along one axis a share of them, in the plane a multiple of a power of their number, or
#: the square of its error in scales of the noise, which is less where sides differ.
_FULL_CELLS = {1: (0.7, 1.0), 2: (1.2, 0.75)}
#: They take clear cells where the noise of the full ones adds up to at most this part of a closed form's error...
_LITTLE = 0.5
#: ...and there are so many records for each full cell, in scales of the noise. Where fewer cells are full than that
#: allows, fewer records do, in proportion, down to a tenth. Marginals in the plane, whose closed forms err less, need
#: five times it; over more axes, where those err more, half of it will do.
_RECORDS_A_FULL_CELL, _LEAST_PART, _TIMES_IN_THE_PLANE, _TIMES_FOR_TABLES = 1500.0, 0.1, 5.0, 0.5
#: Over three axes or more, clusters of cells are taken where at most this part of so many cells is full. There and
#: among very many cells few of them hold much more than the rest if there are so many times as many records for each
#: full one as where none is.
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
#: plane; and so many in all (the number of records is noisy, and single cells tell next to nothing of fewer). Marginals
#: in the plane need more than next to none.
_CROWDED_CELLS, _LEAST_FOR_CELLS = {1: 0.04, 2: 0.01}, 80.0
#: Over more axes so many a cell, in deviations of the noise.
_CROWDED_TABLES = 0.06
#: Where the former would be more than so many scales, a look tells whether fewer records stand in few cells; of full
#: cells it may have seen so many too few. Of so many cells clusters are measured then: less is learned of the noise of
#: each.
_LARGE, _UNSEEN, _MANY_CELLS = 1000.0, 10.0, 1 << 17
#: Up to so many cells take a closed form in any case, and up to so many where queries are not wide and every cell is
#: measured by itself; that is taken if it errs at most so much more than the best.
_FEW_CELLS, _FEW_ALONE, _ABOUT_FOR_FEW = 32, 64, 1.15
#: Any other closed form they take from so many records a cell on.
_CROWDED = 2.0
MOST_AXES = 2
#: Noise of a smaller deviation leaves nearly all whole numbers as they are, and the choice to closed forms alone (the
#: second: for wide queries, whose answers sum over many cells).
_LITTLE_NOISE, _LITTLE_NOISE_FOR_WIDE = 0.5, 0.1
#: Fewer records than the first, in scales of the noise that the rest of the budget buys, are counted and nothing else.
#: Where there seem to be fewer than the second, the third is the share of the rest that counts them again before that.
FEW, CLEARLY_MORE, DOUBT = 17.0, 60.0, 0.2
#: By so many deviations of a look there are more than few.
_SURELY = 3.0


@dataclass(frozen=True)
class Choice:
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
    scattered
        Whether fewer records are measured too, cell by cell or in clusters, if they stand in few cells.

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
    scattered: bool = False

    @classmethod
    def of(cls, task: Task) -> Choice:
        """Consider all strategies for what the budget leaves."""
        axes, workload = len(task.workload.shape), task.workload
        if _is_little(task.noise(PARTS), wide=is_wide(workload)):
            return cls(*_taken(_considered(task, 0), workload))
        known = cls._for_few_cells(task) or cls._for_single_cells(task)
        if known is not None:
            return known
        look = _LOOK_FOR_TABLES if axes > MOST_AXES else _LOOK
        among = _considered(task, look.spent(task))
        taken, keeps_noise = _taken(among, workload)
        least, full_cells, a_full_cell = math.inf, math.inf, _RECORDS_A_FULL_CELL
        if_few: dict[int, Considered] = {}
        if axes > MOST_AXES:
            least = _times_for_tables(taken) * taken.rmse
            a_full_cell *= _TIMES_FOR_TABLES
        elif taken.rmse > _MUCH_LESS * _least_nested(among):
            taken = _cells_or_best(among, _ABOUT_FOR_WIDE)
            factor, power = _FULL_CELLS[axes]
            full_cells = factor * task.cells**power
            if axes == MOST_AXES:
                full_cells = min(full_cells, (taken.rmse / _scale(task, PARTS)) ** 2)
        elif isinstance(taken.strategy, MarginalTables):
            a_full_cell *= _TIMES_IN_THE_PLANE
            least, if_few = cls._for_few_records(task, look) if task.neighbors == "add_remove" else (-math.inf, {})
        else:
            least = _MANY_RECORDS * taken.rmse
        cells = next((one for one in among if isinstance(one.strategy, Identity)), None)
        few = 0.0 if cells is None else task.cells * (_LITTLE * taken.rmse / cells.rmse) ** 2
        return cls(taken, keeps_noise, least, look, full_cells, if_few, cells, few, a_full_cell)

    @classmethod
    def _for_few_cells(cls, task: Task) -> Choice | None:
        """Return the choice among closed forms where cells are few, whatever the number of records."""
        if task.cells > _FEW_ALONE:
            return None
        taken = _cells_or_best(_considered(task, 0), _ABOUT_FOR_FEW)
        alone = isinstance(taken.strategy, Identity) and not is_wide(task.workload)
        return cls(taken) if alone or task.cells <= _FEW_CELLS else None

    @classmethod
    def _for_single_cells(cls, task: Task) -> Choice | None:
        """Return the choice for queries of a few cells each, which the number of records decides."""
        if is_wide(task.workload):
            return None
        root = ROOT_PARTS if task.neighbors == "add_remove" else 0
        taken, keeps_noise = _taken(_considered(task, root), task.workload)
        if len(task.workload.shape) > MOST_AXES:
            least = _CROWDED_TABLES * task.cells * taken.rmse
            return cls(taken, keeps_noise, least) if measures_cells(taken) else None
        scales = _least_scales(taken, task.cells)
        least = scales * _scale(task, PARTS - root)
        if isinstance(taken.strategy, Identity) and scales > _LARGE:
            taken, keeps_noise = _taken(_considered(task, _LOOK.spent(task)), task.workload)
            return cls(taken, keeps_noise, least, _LOOK, scattered=True)
        return cls(taken, keeps_noise, least)

    @staticmethod
    def _for_few_records(task: Task, look: Look) -> tuple[float, dict[int, Considered]]:
        """Return up to which number of records a look leaves it open whether they are few, and what is taken then.

        By the thousandths that the root of a tree leaves, measured once or twice.
        """
        least = CLEARLY_MORE * _scale(task, PARTS)
        least += _SURELY * task.noise(look.parts_for_records).deviation
        once = PARTS - look.spent(task) - ROOT_PARTS
        lefts = once, once - parts_of(DOUBT, once)
        return least, {left: _taken(_considered(task, PARTS - left), task.workload)[0] for left in lefts}

    def is_sparse(self, seen: Seen) -> bool:
        """Whether a look says that clear cells are taken."""
        full = max(seen.full_cells, _FEWEST_TOLD)
        if full > self.few_cells:
            return False
        for_each = self.records_a_full_cell * max(full / self.few_cells, _LEAST_PART) * seen.scale
        return seen.records[0] >= for_each * full

    def is_heavy(self, seen: Seen) -> bool:
        """Whether a look says that clusters of cells are taken: few cells hold much more than the rest.

        Where no cell is full there are at most `FULL` scales of the noise for each one that counts as full.
        """
        if self.scattered:
            return self.closed.strategy.cells >= _MANY_CELLS and self._are_scattered(seen)
        few = _HEAVY_CELLS * self.few_cells
        if len(self.closed.strategy.shape) <= MOST_AXES or few < _FEWEST_TOLD or seen.full_cells > few:
            return False
        return seen.records[0] >= _HEAVY * FULL * seen.scale * max(seen.full_cells, _FEWEST_TOLD)

    def is_closed(self, seen: Seen) -> bool:
        """Whether a look says that the strategy is taken."""
        if self.scattered and self._are_scattered(seen):
            return True
        return seen.records[0] >= self.least or seen.full_cells >= self.full_cells

    @staticmethod
    def _are_scattered(seen: Seen) -> bool:
        """Whether a look says that some records, not next to none, stand in few cells."""
        least = max(_HEAVY * FULL * (seen.full_cells + _UNSEEN), _LEAST_FOR_CELLS)
        return seen.records[0] >= least * seen.scale


def _is_little(noise: IntegerNoise, *, wide: bool) -> bool:
    """Whether Laplace noise leaves nearly all whole numbers as they are."""
    return noise.mechanism == "laplace" and noise.deviation < (_LITTLE_NOISE_FOR_WIDE if wide else _LITTLE_NOISE)


def _scale(task: Task, parts: int) -> float:
    """Return the scale of the noise of single cells that so many thousandths of the budget buy."""
    return task.noise(parts).deviation / math.sqrt(2.0)


def _least_scales(taken: Considered, cells: int) -> float:
    """Return from how many records on, in scales of the noise, queries that are not wide take a strategy."""
    if isinstance(taken.strategy, Identity):
        return max(_CROWDED_CELLS[len(taken.strategy.shape)] * cells, _LEAST_FOR_CELLS)
    return FEW if isinstance(taken.strategy, MarginalTables) else _CROWDED * cells


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
    if len(workload.shape) > MOST_AXES:
        return _tables_or_cells(among, workload)
    return _cells_or_best(among), False


def measures_cells(taken: Considered) -> bool:
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
