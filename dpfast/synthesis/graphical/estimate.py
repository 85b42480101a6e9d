"""What is left of a synthesis over too many cells to hold: weights in a tree of small tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.accounting.budget import ShownAmounts
from dpfast.arguments import THREADS, Special, Threads
from dpfast.charts.look import ChartPath, Title
from dpfast.domain.arguments import LARGEST_RECORDS, MOST, PART, RECORDS, Most, Records
from dpfast.domain.declaring import read_places
from dpfast.domain.shapes import check_size
from dpfast.errors import ParameterError
from dpfast.graphical.drawing import draw_parts
from dpfast.graphical.tree_marginals import TreeMarginals
from dpfast.graphical.tree_weights import TreeWeights
from dpfast.ledger.receipt import Receipt, entry_of
from dpfast.pages.reported import Reported
from dpfast.randomness import Random, random_source
from dpfast.showing import Card, Shown, number_of
from dpfast.synthesis.graphical.answering import MOST_AXES, answer_by_marginals
from dpfast.synthesis.graphical.errors import PairErrors
from dpfast.synthesis.graphical.rounds import ModelRounds
from dpfast.workloads.workload import AskedOfAny

if TYPE_CHECKING:
    import altair as alt

    from dpfast.pages.page import Page

__all__ = ["Columns", "ModelEstimate"]

#: Attributes by their names.
Columns: TypeAlias = Annotated[
    Sequence[str], Special(lambda: (5, None, 0.5, "x", b"x", [], ["none such"], [5], [["x"]], object()))
]


class ModelEstimate(Reported, Shown):
    """An estimate of how many units each cell holds, for more cells than memory has.

    Guarantee
        Everything here is post-processing of what was measured: it is as private as `spent` says, however often it is
        read and whatever is computed from it.

    Attributes
    ----------
    shape
        How many values each attribute has.
    names
        The attributes.
    spent
        What it cost.
    complete
        Whether everything was measured that the budget was for.
    rounds
        A frame with what was measured, a row for each: the ``columns``, how many ``cells`` they have, the
        ``deviation`` of the noise, and ``error95``, which the noise of one cell exceeds with probability 0.05.

    Examples
    --------
    >>> import dpfast as dpf
    >>> rows = pl.DataFrame({f"x{i}": [0, 1, 2, 3] * 500 for i in range(40)})
    >>> domain = dpf.Domain({name: 4 for name in rows.columns})
    >>> ledger = dpf.Ledger(epsilon=2.0, delta=1e-9)
    >>> made = dpf.synthesize(rows, domain, epsilon=2.0, delta=1e-9, rounds=5, ledger=ledger)
    >>> domain.cells > 2**63, made.marginal(["x0", "x7"]).shape, made.frame.width
    (True, (4, 4), 40)

    """

    def __init__(
        self,
        weights: TreeWeights,
        names: Sequence[str],
        spent: ShownAmounts,
        made: ModelRounds,
        *,
        complete: bool,
        rounds: pl.DataFrame,
        paid: Receipt | None,
    ) -> None:
        self._weights, self._grouping = weights, made.grouping
        self._marginals = TreeMarginals(weights)
        self._sets, self._held, self._last = made.candidates.asked, made.held, made.last
        self._log = tuple(made.log)
        self.shape = made.sizes
        self.names = tuple(names)
        self.spent, self.complete, self.rounds, self._paid = spent, complete, rounds, paid

    @property
    def entry(self) -> int | None:
        """The number of the first charge in the ledger."""
        return entry_of(self._paid)

    @property
    def total(self) -> float:
        """How many units there are, as estimated."""
        return self._weights.total

    @property
    def cliques(self) -> tuple[tuple[str, ...], ...]:
        """The attributes of the tables that the model is made of."""
        return tuple(tuple(self.names[place] for place in clique) for clique in self._weights.tree.cliques)

    @property
    def cells(self) -> int:
        """How many cells the tables have together; rare values of an attribute may count as one there."""
        return self._weights.tree.cells

    def marginal(self, columns: Columns) -> NDArray[np.float64]:
        """Return the estimated counts over some attributes, an axis for each in the order given.

        Parameters
        ----------
        columns
            Names of attributes, each once.

        Raises
        ------
        ParameterError
            There is no such attribute, one is named twice, or their cells are too many.

        """
        places = read_places(columns, self.names)
        if len(places) > MOST_AXES:
            raise ParameterError("columns", columns, f"at most {MOST_AXES} columns", "ask for fewer of them at once")
        check_size(math.prod(self.shape[place] for place in places), "columns", "cells")
        order = sorted(places)
        return self._table(tuple(order)).transpose([order.index(place) for place in places]).copy()

    def answer(self, workload: AskedOfAny) -> NDArray[np.float64]:
        """Return the estimated answers of a workload over the domain, of any number of cells.

        Each is computed from the counts over the attributes that it is about: those of its marginal, the factors of its
        product that are not `dpfast.workloads.total`, or where its rectangle leaves a value out. Nothing is spent.

        Parameters
        ----------
        workload
            One of `dpfast.workloads` over the domain's shape.

        Raises
        ------
        ParameterError
            It is over other cells, or about more attributes together than a table can have cells.

        Examples
        --------
        >>> import dpfast as dpf
        >>> rows = pl.DataFrame({f"x{i}": [0, 1, 2, 3] * 500 for i in range(40)})
        >>> domain = dpf.Domain({name: 4 for name in rows.columns})
        >>> ledger = dpf.Ledger(epsilon=2.0, delta=1e-9)
        >>> made = dpf.synthesize(rows, domain, epsilon=2.0, delta=1e-9, rounds=5, ledger=ledger)
        >>> others = dpf.workloads.total(domain.shape[:39])
        >>> made.answer(dpf.workloads.kronecker(others, dpf.workloads.prefix(4))).shape
        (4,)

        """
        return answer_by_marginals(workload, self.shape, self._table)

    def _table(self, places: tuple[int, ...]) -> NDArray[np.float64]:
        """Return the counts over some attributes, ascending."""
        if not places:
            return np.array(self.total)
        return self._grouping.spread(places, self._marginals.marginal(places))

    def errors(self) -> pl.DataFrame:
        """Return how far the model may be from the data: a row for each set of columns that it was made for.

        Guarantee
            Post-processing: nothing is spent. An interval holds with probability at least 0.95, each by itself, over
            the noise and the selections. Of a set that was measured several times, or of part of several that were, it
            does so for measurements that are fixed beforehand: that selections have seen earlier noise is not counted.

        Returns
        -------
        polars.DataFrame
            With the ``columns``; whether they were ``measured`` together; and between which ``lower`` and ``upper`` end
            their error is, the total variation distance: half of all differences between the model's counts and the
            data's, as a part of the estimated number of records. Where noise is large beside the counts, intervals are
            wide: they say what is certain, not what is likely. An upper end of 1 says nothing.

        References
        ----------
        McKenna, Mullins, Sheldon, Miklau (2022), section 5, for sets that were not measured.

        Examples
        --------
        >>> import dpfast as dpf
        >>> rows = pl.DataFrame({"a": [0, 1] * 5_000, "b": [1, 0] * 5_000})
        >>> domain = dpf.Domain({"a": 2, "b": 2})
        >>> made = dpf.synthesize(rows, domain, epsilon=4.0, delta=1e-9, ledger=dpf.Ledger(epsilon=4.0, delta=1e-9))
        >>> assert isinstance(made.estimate, ModelEstimate)
        >>> errors = made.estimate.errors()
        >>> errors["columns"].to_list(), errors["measured"].to_list(), errors["upper"][0] < 0.05
        ([['a', 'b']], [True], True)

        """
        found = PairErrors(self._weights, self._grouping, self._held, self._last)
        twice = 2.0 * max(self.total, 1.0)
        rows = []
        for held in self._sets:
            lower, upper, measured = found.interval(held)
            ends = lower / twice, 1.0 if upper is None else upper / twice
            rows.append(([self.names[place] for place in held], measured, *(min(end, 1.0) for end in ends)))
        schema: dict[str, Any] = {"columns": pl.List(pl.String), "measured": pl.Boolean}
        return pl.DataFrame(rows, schema | {"lower": pl.Float64, "upper": pl.Float64}, orient="row")

    def plot(self, path: ChartPath = None, *, title: Title = None) -> alt.LayerChart:
        """Draw the counts that were measured, with their noise, against the model's.

        Parameters
        ----------
        path
            Where to write the chart: ``.png``, ``.svg`` or ``.pdf``. None for none.
        title
            The chart's, if it shall have another.

        Returns
        -------
        altair.LayerChart
            The chart; post-processing, as all that is here.

        Raises
        ------
        ParameterError
            Altair is not installed, or the path's suffix is no kind of chart.

        """
        from dpfast.charts import draw_marginals

        held = [own for own in self._held if own]
        measured = np.concatenate([self._held[own].values for own in held])
        modelled = np.concatenate([self._marginals.marginal(own) for own in held])
        return draw_marginals(measured, modelled, path, title=title or "Measured and synthetic counts")

    def draw_codes(self, n: Records = None, *, random: Random = None, threads: Threads = None) -> NDArray[np.uint32]:
        """Return the codes of ``n`` records, a row for each attribute; by default of about as many as there are.

        Parameters
        ----------
        n
            How many records.
        random
            None, or a `dpfast.testing.SeededRandom`.
        threads
            How many draw parts of many records at once; as many as pay if not given. The result does not depend on it.

        """
        number, start = self._number(n), 0
        codes = np.empty((len(self.shape), number), np.uint32)
        for part in self.draw_parts(number, random=random, threads=threads):
            codes[:, start : start + part.shape[1]] = part
            start += part.shape[1]
        return codes

    def draw_parts(
        self, n: Records = None, *, most: Most = PART, random: Random = None, threads: Threads = None
    ) -> Iterator[NDArray[np.uint32]]:
        """Give the same codes at most so many records at a time: all parts together are what `draw_codes` returns.

        Parameters
        ----------
        n, random, threads
            As for `draw_codes`. Each thread has a part that it draws in memory.
        most
            The most records of a part.

        """
        number, source = self._number(n), random_source(random)
        most = MOST.read("most", most)
        THREADS.read_optional("threads", threads)
        parts = draw_parts(self._weights, number, source, most, threads)
        return (self._grouping.draw(part, source) for part in parts)

    def _page(self) -> Page:
        from dpfast.synthesis.report import page_of_model  # not at the top: few ask for a page

        return page_of_model(self)

    def _number(self, n: object) -> int:
        """Return how many records are asked for."""
        return round(min(self.total, LARGEST_RECORDS)) if n is None else RECORDS.read("n", n)

    def __repr__(self) -> str:
        """Show the tables and what they cost."""
        ended = "" if self.complete else ", ended early"
        tables = f"{number_of(len(self.cliques), 'table')} of {number_of(self.cells, 'cell')} together"
        return f"ModelEstimate({tables}; spent {self.spent}{ended})"

    def _card(self) -> Card:
        rows = [[", ".join(names), f"{cells:,}"] for names, cells in zip(self.cliques, self._sizes(), strict=True)]
        return Card([repr(self)], headers=["table over", "cells"], rows=rows)

    def _sizes(self) -> list[int]:
        return [table.size for table in self._weights.tables]
