"""A table without negative cells that answers as an estimate does: what records are drawn from."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpfast.progress import TerminalLine
from dpfast.showing import Shown
from dpfast.synthesis.fitted.projection import project_answers
from dpfast.weights.marginal_model import MarginalModel
from dpfast.weights.model import Model, RowModel
from dpfast.workloads.cells import Identity
from dpfast.workloads.kronecker import Kronecker
from dpfast.workloads.marginals import Marginals
from dpfast.workloads.ranges import Intervals
from dpfast.workloads.rectangles import Rectangles
from dpfast.workloads.workload import Workload

__all__ = ["NonnegativeTable", "fit_table"]

Floats = NDArray[np.float64]

#: How softly answers are held where a table's entropy pulls at them, in deviations of their noise. It moves an answer
#: by a tenth of its noise for each unit of the logarithm of what the answer multiplies its cells by.
_SOFTNESS = 0.1
#: A fit ends when that many sweeps move the answers by less than this part of their noise, or of a record.
_STILL, _SWEEPS_AT_ONCE, _SWEEPS = 0.02, 10, 300
#: Queries are held as rows where that takes no more numbers than this.
_LARGEST_ROWS = 2**24
_ITERATIONS = 200


@dataclass(frozen=True)
class NonnegativeTable(Shown):
    """A table without negative cells, and how it was fitted.

    Attributes
    ----------
    histogram
        float64, of the workload's shape, 0 or more in every cell.
    method
        "none needed", "marginals", "boxes", "rows", "projection"; or "no records", all cells 0, where the number of
        records is 0 or less.
    sweeps
        How often the fit went over all that it was fitted to.
    complete
        Whether the fit ended because answers moved no more, and not at its largest number of sweeps.
    distance
        The root mean square of how far the table's answers are from the estimate's. By the triangle inequality the
        table's answers err by at most so much more than the estimate's do, root mean square.

    """

    histogram: Floats = field(repr=False)
    method: str
    sweeps: int
    complete: bool
    distance: float


def fit_table(
    histogram: Floats,
    workload: Workload,
    answers: Floats,
    records: float | None = None,
    deviations: Floats | None = None,
) -> NonnegativeTable:
    """Return a table without negative cells, of the same number of records, whose answers are the estimate's or near.

    Notes
    -----
    For marginals it is the table of the greatest entropy that noise allows: the minimum of relative entropy plus
    squared distances from the answers in units of their variances, by multiplicative updates
    (`dpfast.weights.marginal_model`). For ranges, rectangles, prefixes and cells a tree of boxes is fitted from the
    whole down to the cells, each box's halves moved evenly to the nearest numbers of 0 or more that have its sum. For
    other queries it is the marginals' fit with rows in their place where they are few, and else the projection.

    Parameters
    ----------
    histogram, answers
        The estimate's cells, and what they answer.
    workload
        The queries.
    records
        The number of records, where it is known better than as the sum of all cells.
    deviations
        The deviation of the noise of each answer; None to estimate it from the negative ones.

    """
    total = float(histogram.sum()) if records is None else float(records)
    if histogram.min() >= 0.0:
        return NonnegativeTable(histogram, "none needed", 0, True, 0.0)
    if not total > 0.0:
        return _table(np.zeros(histogram.shape), "no records", 0, True, workload, answers)
    if isinstance(workload, Marginals) or not isinstance(workload, (Identity, Intervals, Rectangles, Kronecker)):
        return _fitted(total, workload, answers, deviations)
    return _table(_fit_boxes(histogram, total), "boxes", 1, True, workload, answers)


def _table(
    table: Floats, method: str, sweeps: int, complete: bool, workload: Workload, answers: Floats
) -> NonnegativeTable:
    apart = np.asarray(workload.answer(table), np.float64) - answers
    return NonnegativeTable(table, method, sweeps, complete, math.sqrt(float(np.square(apart).mean())))


def _fitted(total: float, workload: Workload, answers: Floats, deviations: Floats | None) -> NonnegativeTable:
    """Fit by multiplicative updates, or project where the queries are too many to be held as rows."""
    if deviations is None:
        negative = answers[answers < 0.0]
        deviations = np.full(answers.size, math.sqrt(float(np.square(negative).mean())) if negative.size else 0.0)
    start = np.full(workload.cells, total / workload.cells)
    low, high = workload.range
    model: Model
    if isinstance(workload, Marginals):
        offsets, method = workload.offsets, "marginals"
        model = MarginalModel(workload.shape, workload.attributes, start, (total, 0.0), _SOFTNESS)
    elif len(workload) * workload.cells <= _LARGEST_ROWS and low >= -1.0 and high <= 1.0:
        offsets, method = np.arange(len(workload) + 1), "rows"
        model = RowModel(workload, offsets, start, (total, 0.0), _SOFTNESS)
    else:
        tolerance = max(_SOFTNESS * math.sqrt(float(np.square(deviations).mean())), 1e-3 * total / len(workload))
        found = project_answers(answers, workload, total=total, tolerance=tolerance, iterations=_ITERATIONS)
        return _table(found.histogram, "projection", found.iterations, found.complete, workload, answers)
    for group in range(offsets.size - 1):
        own = slice(int(offsets[group]), int(offsets[group + 1]))
        # The model's softness is a variance; a deviation of one record stands for the unit of both.
        model.measure(group, answers[own], math.sqrt(math.sqrt(float(np.square(deviations[own]).mean()))))
    tolerance = _STILL * max(math.sqrt(float(np.square(deviations).mean())), 1.0)
    sweeps, complete = _swept(model, tolerance)
    return _table(model.histogram().reshape(workload.shape), method, sweeps, complete, workload, answers)


def _swept(model: Model, tolerance: float) -> tuple[int, bool]:
    """Fit until answers move no more; return how often, and whether they do not. A terminal hears if it takes long."""
    answers, moved, done = model.answers(), math.inf, 0
    with TerminalLine() as line:
        while done < _SWEEPS and moved > tolerance:
            model.replay(_SWEEPS_AT_ONCE)
            done += _SWEEPS_AT_ONCE
            before, answers = answers, model.answers()
            moved = math.sqrt(float(np.square(answers - before).mean()))
            line(f"fitting a table for records, sweep {done} of at most {_SWEEPS}")
    return done, moved <= tolerance


def _fit_boxes(histogram: Floats, total: float) -> Floats:
    """Fit boxes from the whole down to the cells, halving the longest side of all at each level."""
    shape = histogram.shape
    edges = [np.array([0, side]) for side in shape]
    levels: list[tuple[int, NDArray[np.int64], NDArray[np.int64]]] = []
    while any(own.size <= side for own, side in zip(edges, shape, strict=True)):
        axis = max(range(len(shape)), key=lambda a: int(np.diff(edges[a]).max()))
        sizes = np.diff(edges[axis])
        halved = sizes > 1
        edges[axis] = np.sort(np.concatenate([edges[axis], (edges[axis][:-1] + sizes // 2)[halved]]))
        levels.append((axis, np.where(halved, 2, 1), np.diff(edges[axis])))
    tables = [histogram]
    for axis, parts, _ in levels[:0:-1]:
        tables.append(np.add.reduceat(tables[-1], np.cumsum(parts) - parts, axis=axis))
    fitted = np.full((1,) * len(shape), total)
    for (axis, parts, sizes), table in zip(levels, tables[::-1], strict=True):
        fitted = _fit_halves(fitted, np.moveaxis(table, axis, 0), parts, sizes, axis)
    return fitted


def _fit_halves(above: Floats, table: Floats, parts: NDArray[np.int64], sizes: NDArray[np.int64], axis: int) -> Floats:
    """Move the halves of all boxes along an axis to the nearest numbers of 0 or more that have the box's sum.

    How far both are off is shared out by their sizes. The table has the axis first.
    """
    boxes = np.moveaxis(above, axis, 0)
    first = np.cumsum(parts) - parts
    two = parts == 2
    out = np.empty(table.shape)
    out[first[~two]] = boxes[~two]
    left, right, whole = first[two], first[two] + 1, boxes[two]
    share = (sizes[left] / (sizes[left] + sizes[right])).reshape(-1, *[1] * (table.ndim - 1))
    low = table[left]
    out[left] = np.clip(low + (whole - low - table[right]) * share, 0.0, whole)
    out[right] = whole - out[left]
    return np.moveaxis(out, 0, axis)
