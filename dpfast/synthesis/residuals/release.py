"""Marginals, and queries about them, as they were measured."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.accounting.budget import ShownAmounts
from dpfast.errors import ParameterError
from dpfast.graphical.local_consistency import Method
from dpfast.ledger.receipt import Receipt, entry_of
from dpfast.pages.page import Page
from dpfast.pages.reported import Reported
from dpfast.showing import Card, Shown
from dpfast.synthesis.graphical.estimate import Columns
from dpfast.synthesis.graphical.synthesizing import MEGABYTES
from dpfast.synthesis.relaxed.estimate import LEAST_DEVIATION, Measured, PseudoMarginals
from dpfast.synthesis.relaxed.fitting import METHOD, fit_measured, read_method
from dpfast.synthesis.residuals.asking import OwnQueriesOfAny
from dpfast.synthesis.residuals.measuring import marginal_of
from dpfast.synthesis.residuals.queries import PLACE

if TYPE_CHECKING:
    from dpfast.synthesis.residuals.marginals import MarginalsPlan

__all__ = ["MarginalsRelease"]

Attributes = tuple[int, ...]
Floats = NDArray[np.float64]


class MarginalsRelease(Reported, Shown):
    """Noisy marginals, which agree with each other.

    Guarantee
        Everything here is post-processing of what was measured: it is as private as ``spent`` says.

    Attributes
    ----------
    plan
        What was planned: deviations of all counts.
    spent
        What it cost.

    """

    def __init__(
        self, plan: MarginalsPlan, residuals: dict[Attributes, Floats], spent: ShownAmounts, paid: Receipt | None
    ) -> None:
        self.plan, self.spent, self._paid = plan, spent, paid
        self._residuals = residuals

    @property
    def entry(self) -> int | None:
        """The number of the charge in the ledger."""
        return entry_of(self._paid)

    @property
    def total(self) -> float:
        """How many rows there are, as measured: what every marginal adds up to."""
        return float(self._residuals[()])

    def marginal(self, columns: Columns) -> Floats:
        """Return the counts over some columns, an axis for each in the order given: unbiased, and so below 0 at times.

        Parameters
        ----------
        columns
            Those of a marginal that was planned, or some of them.

        Raises
        ------
        ParameterError
            There are no such columns, or no marginal has all of them.

        """
        places = self.plan._places(columns)
        order = sorted(places)
        table = marginal_of(self.plan._plan, self._residuals, order)
        return table.transpose([order.index(place) for place in places]).copy()

    def to_frame(self, columns: Columns) -> pl.DataFrame:
        """Return a row for each cell over some columns: their values, the ``count``, and its ``deviation``.

        Parameters
        ----------
        columns
            As for `marginal`. Bins are called by their left edges.

        """
        counts = self.marginal(columns).reshape(-1)
        frame = self.plan.domain.frame(columns)
        names = [name for name in ("count", "deviation") if name in frame.columns]
        if names:
            raise ParameterError(
                "columns", columns, f"without {names[0]!r}, which a column here is called", "rename it"
            )
        deviations = self.plan._deviations_of_cells(columns).reshape(-1)
        return frame.with_columns(pl.Series("count", counts), pl.Series("deviation", deviations))

    @cached_property
    def answers(self) -> Floats:
        """The answers to the queries that were planned, in their order; `MarginalsPlan.deviations` are theirs."""
        return self.answer()

    def answer(self, workload: OwnQueriesOfAny = None) -> Floats:
        """Return the answers to any queries about columns that were measured together: unbiased. Nothing is spent.

        Parameters
        ----------
        workload
            One of `dpfast.workloads` over the domain's shape; by default the one that was planned.

        Raises
        ------
        ParameterError
            It is over other cells, or about columns that no planned query has together.

        """
        asked, blocks = self.plan._asked(workload)
        out = np.empty(len(asked))
        for block in blocks:
            table = marginal_of(self.plan._plan, self._residuals, block.attributes)
            out[block.places] = block.answer(table)
        return out

    def answers_frame(self, workload: OwnQueriesOfAny = None) -> pl.DataFrame:
        """Return a row for each query: what it asks, its ``answer``, and the ``deviation`` of the answer's noise.

        What it asks of a column is called after that: ``age_lower`` and ``age_upper`` of ranges, ``sex_cell`` of single
        values, all by their numbers in the domain; null where it asks nothing of it.

        Parameters
        ----------
        workload
            As for `answer`.

        """
        _, blocks = self.plan._asked(workload)
        names = self.plan.domain.names
        rows = pl.concat([block.frame(names) for block in blocks], how="diagonal").sort(PLACE).drop(PLACE)
        found = {"answer": self.answer(workload), "deviation": self.plan.deviations(workload)}
        return rows.with_columns(pl.Series(name, column) for name, column in found.items())

    def fit(
        self, *, method: Annotated[Method, METHOD] = "entropy", max_megabytes: Annotated[float, MEGABYTES] = 16.0
    ) -> PseudoMarginals:
        """Return nonnegative counts that agree, however large a tree of all of them would be: approximate.

        Guarantee
            Post-processing: nothing is charged. As for `dpfast.fit_marginals`, of which this is a call with the
            deviations that are known here.

        Parameters
        ----------
        method, max_megabytes
            As for `dpfast.fit_marginals`.

        """
        read, megabytes = read_method(method), MEGABYTES.read("max_megabytes", max_megabytes)
        plan = self.plan._plan
        cliques = self.plan.cliques
        values = [marginal_of(plan, self._residuals, held).reshape(-1) for held in cliques]
        deviations = tuple(max(math.sqrt(plan.variance(held)), LEAST_DEVIATION) for held in cliques)
        measured = Measured(cliques, values, deviations)
        return fit_measured(self.plan.domain, measured, self.total, read, megabytes, self.spent, self._paid)

    def __repr__(self) -> str:
        """Show how many marginals there are, and what they cost."""
        return f"MarginalsRelease({self.plan._about}; spent {self.spent})"

    def _page(self) -> Page:
        from dpfast.synthesis.report import page_of_marginals  # not at the top: few ask for a page

        return page_of_marginals(self)

    def _card(self) -> Card:
        return Card([repr(self)])
