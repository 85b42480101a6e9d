"""What synthesis leaves: an estimate of every cell, the answers that follow from it, and records drawn from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from dpfast.arguments import THREADS, Special, Threads
from dpfast.charts.look import ChartPath, Title
from dpfast.domain.arguments import LARGEST_RECORDS, MOST, PART, RECORDS, Most, Records
from dpfast.domain.records import label_cells
from dpfast.errors import ParameterError
from dpfast.pages.reported import Reported
from dpfast.randomness import Keystream, Purpose, Random, RandomSource, fresh_words, random_source
from dpfast.showing import Facts, Shown
from dpfast.workloads import Workload
from dpfast.workloads.histograms import no_arrays

if TYPE_CHECKING:
    import altair as alt

    from dpfast.accounting.budget import ShownAmounts
    from dpfast.ledger.receipt import Receipt
    from dpfast.pages.page import Page
    from dpfast.synthesis.fitted.nonnegative import NonnegativeTable

__all__ = ["Estimate"]

#: Totals beyond these are scaled before anything is divided by them.
_SMALLEST_TOTAL, _LARGEST_TOTAL = 2.0**-500, 2.0**500
#: Cells are rounded so many at a time.
_CHUNK = 2**17


def _no_labels() -> Iterator[object]:
    yield from (5, True, "values", [], [1], object(), {"none such": [1]}, np.ones(2))
    yield from (
        {"x0": wrong} for wrong in (5, None, 0.5, [], [1], {"a", "b"}, {"a": 1}, range(99), object(), np.array(2))
    )


#: A name for each attribute.
Columns: TypeAlias = Annotated[
    Sequence[str] | None, Special(lambda: (5, True, 0.5, b"a", object(), [], [1], ["a"] * 9, [None]), optional=True)
]
#: What stands for the cells along attributes, by the names of columns.
Labels: TypeAlias = Annotated[
    Mapping[str, Sequence[Any] | NDArray[Any] | pl.Series] | None,  # of any types: they are shown, nothing else
    Special(_no_labels, optional=True),
]


class Estimate(Reported, Shown):
    """An estimate of a histogram, made of private measurements alone.

    Guarantee
        Everything here is post-processing of what was measured: it is as private as `spent` says, however often it is
        read and whatever is computed from it.

    Attributes
    ----------
    histogram
        float64, of the workload's shape: how many units each cell is estimated to have.
    workload
        The queries that it was made for.
    spent
        What it cost: `Amounts` of (epsilon, delta), or of (rho, delta).
    complete
        Whether everything was measured that the budget was for. If not, the estimate is valid, but less accurate.
    rounds
        A frame with what was measured, a row for each time: ``round``; the ``group`` of queries, its first ``query``
        and how many ``queries`` it has; their noisy ``answers``; and ``error95``, which the noise of one of them
        exceeds with probability 0.05.
    entry
        The number of the first charge in the ledger, or None without one.

    Notes
    -----
    Cells may be negative where a method measures without bias, and answers then follow from them as they are. Records
    cannot: they come from `table`, which is fitted to the answers.

    Examples
    --------
    >>> import numpy as np
    >>> import dpfast as dpf
    >>> estimate = dpf.mwem(np.array([5_000, 0, 0, 3_000]), dpf.workloads.prefix(4), epsilon=1.0, rounds=3)
    >>> estimate.histogram.shape, estimate.answers.shape, estimate.spent.epsilon
    ((4,), (4,), 1.0)
    >>> estimate.to_frame(100, columns=["part"], values={"part": ["a", "b", "c", "d"]}).height
    100

    """

    def __init__(
        self,
        histogram: NDArray[np.float64],
        workload: Workload,
        spent: ShownAmounts,
        *,
        complete: bool = True,
        rounds: pl.DataFrame | None = None,
        entry: int | None = None,
        paid: Receipt | None = None,
        records: float | None = None,
        deviations: Callable[[], NDArray[np.float64]] | None = None,
    ) -> None:
        self.histogram = np.ascontiguousarray(histogram, dtype=np.float64).reshape(workload.shape)
        self.workload = workload
        self.spent = spent
        self.complete = complete
        self.rounds = pl.DataFrame() if rounds is None else rounds
        self.entry = entry if paid is None else paid.entry
        self._records, self._deviations, self._paid = records, deviations, paid

    @property
    def shape(self) -> tuple[int, ...]:
        """How many cells there are along each attribute."""
        return self.histogram.shape

    @cached_property
    def answers(self) -> NDArray[np.float64]:
        """The answers of all queries on the estimate, in their order."""
        return np.asarray(self.workload.answer(self.histogram), dtype=np.float64)

    @cached_property
    def table(self) -> NonnegativeTable:
        """The table without negative cells that records are drawn from.

        Where no cell of the estimate is negative, its ``histogram`` is the estimate's. Else it is fitted to the answers
        and the number of records, in units of their noise where that is known: see `NonnegativeTable`, which says also
        how it was fitted, and how far its answers are from the estimate's. (Negative cells are not just set to 0: where
        a million cells hold a few thousand records, most of the rest would be noise of empty cells.) Fitted once, when
        it is first asked for: post-processing.
        """
        from dpfast.synthesis.fitted.nonnegative import fit_table  # not at the top: numba takes long to import

        deviations = None if self._deviations is None or self.histogram.min() >= 0.0 else self._deviations()
        return fit_table(self.histogram, self.workload, self.answers, self._records, deviations)

    def counts(self, n: Records = None, *, random: Random = None) -> NDArray[np.int64]:
        """Return whole numbers of records in the cells: each is its share of ``n`` rounded down or up.

        Shares are those of `table`. Their rounding (`dpfast.kernels.histograms.dependent_rounding`) keeps the mean of
        every cell, and so of every query, exact. The sum up to any cell of the flattened table errs by less than 1, and
        the variance of any other sum of cells is at most that of independent roundings.

        Parameters
        ----------
        n
            How many records. By default the table's total, rounded, or 0 if the estimated total is 0 or less. If n is
            given for such an estimate, shares are those of its positive cells, or equal ones if there are none.
        random
            None, or a `dpfast.testing.SeededRandom`.

        """
        from dpfast.kernels.histograms.dependent_rounding import (
            round_in_order,  # not at the top: numba takes long to import
        )

        weights = self.table.histogram.reshape(-1)
        with np.errstate(over="ignore"):
            total = float(weights.sum())
        n = round(min(total, LARGEST_RECORDS)) if n is None else RECORDS.read("n", n)
        source = random_source(random)
        if not total > 0.0:
            weights = np.maximum(self.histogram.reshape(-1), 0.0)
            weights = weights if weights.any() else np.ones(weights.size)
        if not _SMALLEST_TOTAL < total < _LARGEST_TOTAL:
            # A power of 2 changes no share, and neither their sum nor the quotient by it overflows.
            weights = np.ldexp(weights, 500 - int(np.frexp(weights.max())[1]))
            total = float(weights.sum())
        words = Keystream(source.key()).words(Purpose.NOISE)
        counts, held = np.empty(weights.size, np.int64), np.zeros(2)
        for chunk, first in enumerate(range(0, weights.size, _CHUNK)):
            expected = weights[first : first + _CHUNK] * (n / total)
            drawn = np.empty(expected.size, np.uint64)
            words.fill(chunk, drawn)
            round_in_order(expected, drawn, first, counts, held)
        # The last cell that was held gets what is left: a record or none.
        counts[int(held[0])] += n - int(counts.sum())
        return counts.reshape(self.histogram.shape)

    def draw_cells(self, n: Records = None, *, random: Random = None) -> NDArray[np.int64]:
        """Return the cell of each of ``n`` records, a number of the flattened histogram, in random order.

        Each cell has its share of the records, rounded down or up: see `counts`, also for the parameters.
        """
        source = random_source(random)
        counts = self.counts(n, random=source).reshape(-1)
        filled = np.flatnonzero(counts)
        cells = np.repeat(filled, counts[filled])
        return cells[np.argsort(fresh_words(source, cells.size))]

    def draw_parts(
        self, n: Records = None, *, most: Most = PART, random: Random = None, threads: Threads = None
    ) -> Iterator[NDArray[np.uint32]]:
        """Give the codes of records along each axis, a row for each, at most so many records at a time.

        All parts together have the records in each cell that `counts` says, and each part its share of them; they are
        in random order within a part.

        Parameters
        ----------
        n, random
            As for `counts`.
        most
            The most records of a part.
        threads
            As for `ModelEstimate.draw_codes`, which draw more than one table: no result, and no time, depends on it.

        """
        THREADS.read_optional("threads", threads)
        source, most = random_source(random), MOST.read("most", most)
        counts = self.counts(n, random=source).reshape(-1)
        return self._parts(counts, most, source)

    def _parts(self, counts: NDArray[np.int64], most: int, source: RandomSource) -> Iterator[NDArray[np.uint32]]:
        from dpfast.kernels.graphical.drawing import draw_conditionally  # not at the top: numba takes long to import

        filled = np.flatnonzero(counts)
        left, records = counts[filled].astype(np.uint32).reshape(1, -1), int(counts.sum())
        del counts
        while True:
            part = min(records, most)
            words = fresh_words(source, part + 1)
            cells = np.empty(part, np.int64)
            draw_conditionally(left, np.array([0, part]), np.arange(part), words, cells)
            cells = filled[cells]
            yield np.array(np.unravel_index(cells, self.histogram.shape), np.uint32)
            records -= part
            if not records:
                return

    def to_frame(
        self,
        n: Records = None,
        *,
        columns: Columns = None,
        values: Labels = None,
        random: Random = None,
    ) -> pl.DataFrame:
        """Return synthetic records, one a row, in random order.

        Guarantee
            Post-processing: records cost nothing beyond what the estimate did, however many are drawn.

        Parameters
        ----------
        n
            How many; the estimate's total, rounded, if not given.
        columns
            A name for each attribute; by default ``x0``, ``x1`` and so on.
        values
            For columns by name what stands for cell 0, 1, ... along the attribute: any sequence or Series of as many
            values, public. Without it, the numbers of the cells.
        random
            None, or a `dpfast.testing.SeededRandom`.

        Returns
        -------
        polars.DataFrame
            Each cell has its share of the records, rounded down or up (`counts`). The share is that of `table`: the
            estimate's own where no cell of it is negative.

        Raises
        ------
        ParameterError
            n, columns or values do not fit the shape.

        """
        shape = self.histogram.shape
        names = [f"x{place}" for place in range(len(shape))]
        if columns is not None:
            names = list(columns) if isinstance(columns, Iterable) else []
        if len(names) != len(shape) or len(set(names)) < len(names) or not all(type(name) is str for name in names):
            raise ParameterError("columns", columns, f"{len(shape)} different names, one for each attribute")
        labels = _labels(names, shape, {} if values is None else values)
        return label_cells(self.draw_cells(n, random=random), labels)

    def plot(
        self,
        path: ChartPath = None,
        histogram: Annotated[ArrayLike | None, Special(lambda: (*no_arrays(), [1.5] * 20), optional=True)] = None,
        *,
        title: Title = None,
    ) -> alt.LayerChart:
        """Draw how far the answers are from those of a histogram, query by query; without one, the answers.

        The chart shows the true histogram's answers: give one that is public.

        Parameters
        ----------
        path
            Where to write the chart: ``.png``, ``.svg`` or ``.pdf``. None for none.
        histogram
            The true histogram, public; None to draw the answers alone.
        title
            The chart's, if it shall have another.

        Returns
        -------
        altair.LayerChart
            The chart.

        Raises
        ------
        ParameterError
            Altair is not installed, the path's suffix is no kind of chart, or the histogram has another shape.

        """
        from dpfast.charts import draw_answers, draw_errors

        if histogram is None:
            return draw_answers(self.answers, path=path, title=title)
        truth = np.asarray(self.workload.answer(histogram), dtype=np.float64)
        return draw_errors(truth, self.answers, path, title=title or "Error of every query")

    def _page(self) -> Page:
        from dpfast.synthesis.report import page_of_estimate  # not at the top: few ask for a page

        return page_of_estimate(self)

    def _facts(self) -> Facts:
        """Return the queries, what was measured for them, and what that cost."""
        measured = ("measurements", self.rounds.height)
        return [("workload", self.workload), measured, ("spent", self.spent), ("complete", self.complete)]

    def __repr__(self) -> str:
        """Show the queries and what they cost."""
        ended = "" if self.complete else ", ended early"
        return f"{type(self).__name__}({self.workload!r}; spent {self.spent}{ended})"


def _labels(
    names: list[str], shape: tuple[int, ...], values: Mapping[str, Sequence[Any] | NDArray[Any] | pl.Series]
) -> list[pl.Series]:
    """Return what stands for the cells along each axis: the values given for it, or the numbers of the cells."""
    if not isinstance(values, Mapping):
        raise ParameterError("values", values, "a dictionary by the names of columns", 'write {"x0": ["a", "b"]}')
    if unknown := [name for name in values if name not in names]:
        raise ParameterError("values", unknown[0], f"for columns of the estimate: {', '.join(names)}")
    labels = []
    for name, size in zip(names, shape, strict=True):
        given = values.get(name, range(size))
        listed = isinstance(given, (Sequence, pl.Series)) or (isinstance(given, np.ndarray) and given.ndim == 1)
        if not listed or len(given) != size:
            raise ParameterError(f"values[{name!r}]", given, f"{size} values, one for each cell of the attribute")
        series = given if isinstance(given, pl.Series) else pl.Series(name, list(given), strict=False)
        labels.append(series.alias(name))
    return labels
