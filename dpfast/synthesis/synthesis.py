"""Synthetic records, and what they are drawn from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.accounting.budget import ShownAmounts
from dpfast.arguments import Threads
from dpfast.domain.arguments import PART, Most, Records, RecordsPath
from dpfast.domain.declaring import read_places
from dpfast.domain.domain import Domain
from dpfast.pages.page import Page
from dpfast.pages.reported import Reported
from dpfast.progress import TellCount
from dpfast.randomness import Random
from dpfast.showing import Card, Shown, number_of
from dpfast.synthesis.estimate import Estimate
from dpfast.synthesis.fitted.request import over_domain
from dpfast.synthesis.graphical.estimate import Columns, ModelEstimate
from dpfast.workloads.workload import AskedOfAny

__all__ = ["Synthesis"]


@dataclass(eq=False, repr=False)
class Synthesis(Reported, Shown):
    """Synthetic records, and the estimate that they are drawn from.

    Guarantee
        Both are post-processing of what was measured: they are as private as `spent` says, however often they are read.

    Attributes
    ----------
    estimate
        Of every cell of the domain: its ``answers``, its ``rounds``, and whether it is ``complete``.
    domain
        The public values of the records' columns. More records cost nothing: ``domain.records(made, 1_000)``.
    rows
        How many records were asked for; None for about as many as the data have.

    """

    estimate: Estimate | ModelEstimate
    domain: Domain
    rows: int | None

    @cached_property
    def frame(self) -> pl.DataFrame:
        """The records, one a row: drawn when they are first asked for, and kept."""
        return self.domain.records(self)

    def write(self, path: RecordsPath, *, progress: TellCount = None, threads: Threads = None) -> int:
        """Write the records to a file: as many as `frame` has, drawn anew, a part for each thread in memory.

        Parameters
        ----------
        path, progress, threads
            As for `Domain.write_records`, which has more.

        """
        return self.domain.write_records(self, path, progress=progress, threads=threads)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values each column has in the domain."""
        return self.domain.shape

    def draw_parts(
        self, n: Records = None, *, most: Most = PART, random: Random = None, threads: Threads = None
    ) -> Iterator[NDArray[np.uint32]]:
        """Give the codes of records along each axis of the domain, at most so many records at a time.

        This is what `Domain.records` and `Domain.write_records` make records of.

        Parameters
        ----------
        n
            How many records; as many as `frame` has if not given.
        most
            The most records of a part.
        random
            None, or a `dpfast.testing.SeededRandom`.
        threads
            As for `ModelEstimate.draw_parts`.

        """
        number = self.rows if n is None else n
        return self.estimate.draw_parts(number, most=most, random=random, threads=threads)

    def marginal(self, columns: Columns) -> NDArray[np.float64]:
        """Return the estimated counts over some columns, an axis for each in the order given.

        Parameters
        ----------
        columns
            Names of the domain's columns, each once.

        Raises
        ------
        ParameterError
            There is no such column, or one is named twice.

        """
        if isinstance(self.estimate, ModelEstimate):
            return self.estimate.marginal(columns)
        places = read_places(columns, self.domain.names)
        others = tuple(place for place in range(len(self.domain.shape)) if place not in places)
        table: NDArray[np.float64] = self.estimate.histogram.sum(axis=others)
        return table.transpose(np.argsort(np.argsort(places))).copy()

    def answer(self, workload: AskedOfAny) -> NDArray[np.float64]:
        """Return the estimated answers of a workload over the domain.

        Parameters
        ----------
        workload
            One of `dpfast.workloads` over ``domain.shape``; of a model, of any number of cells, as for
            `ModelEstimate.answer`.

        Raises
        ------
        ParameterError
            It is over other cells, or about more columns together than a table can have cells.

        """
        if isinstance(self.estimate, ModelEstimate):
            return self.estimate.answer(workload)
        return np.asarray(over_domain(workload, self.domain).answer(self.estimate.histogram), np.float64)

    @property
    def spent(self) -> ShownAmounts:
        """What was charged."""
        return self.estimate.spent

    @property
    def entry(self) -> int | None:
        """The number of the first charge in the ledger."""
        return self.estimate.entry

    def _page(self) -> Page:
        from dpfast.synthesis.report import page_of_estimate, page_of_model  # not at the top: few ask for a page

        made = self.estimate
        if isinstance(made, ModelEstimate):
            return page_of_model(made, self.domain)
        return page_of_estimate(made, self.domain)

    def __repr__(self) -> str:
        """Show the records and what they cost."""
        return f"Synthesis over {self.domain}; spent {self.spent}\n{self.frame}"

    def _card(self) -> Card:
        frame = self.frame.head(10)
        rows = [[str(value) for value in row] for row in frame.iter_rows()]
        drawn = f"{number_of(self.frame.height, 'record')}, the first of them:"
        about = f"Synthesis over {self.domain}; spent {self.spent}; {drawn}"
        return Card([about], headers=frame.columns, rows=rows)
