"""Pseudo-marginals: what noisy marginals become when they are made nonnegative and consistent, and what it is worth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.accounting.budget import ShownAmounts
from dpfast.arguments import THREADS, Threads
from dpfast.domain.arguments import LARGEST_RECORDS, MOST, PART, RECORDS, Most, Records
from dpfast.domain.declaring import read_places
from dpfast.domain.domain import Domain
from dpfast.errors import ParameterError, Words
from dpfast.graphical.drawing import draw_parts
from dpfast.graphical.junction_tree import JunctionTree
from dpfast.graphical.local_consistency import LocalFit
from dpfast.graphical.tree_weights import TreeWeights
from dpfast.graphical.views import View
from dpfast.ledger.receipt import Receipt
from dpfast.pages.page import Page
from dpfast.pages.reported import Reported
from dpfast.randomness import Random, random_source
from dpfast.showing import Card, Shown, brief, number_of
from dpfast.synthesis.graphical.estimate import Columns
from dpfast.synthesis.relaxed.record_tree import choose_sets, fit_records
from dpfast.synthesis.ways import BYTES_OF_CELL

__all__ = ["LEAST_DEVIATION", "Measured", "PseudoMarginals"]

Attributes = tuple[int, ...]
Floats = NDArray[np.float64]

LEAST_DEVIATION = 1e-9
"""Noise of less deviation counts as of so much."""

_MANY_MEGABYTES = 1e9


@dataclass(frozen=True)
class Measured:
    """The noisy marginals that others are fitted to.

    Attributes
    ----------
    cliques
        The attributes of each, ascending.
    values
        The noisy counts, in one dimension each.
    deviations
        Of the noise of each one's counts.

    """

    cliques: tuple[Attributes, ...]
    values: list[Floats] = field(repr=False)
    deviations: tuple[float, ...]


class PseudoMarginals(Reported, Shown):
    """Counts over sets of columns that are nonnegative and agree with each other, but may belong to no table.

    Guarantee
        Post-processing of noisy marginals: nothing is spent, and all that is here is as private as they are, whatever
        is computed from it.

        Approximate. The counts are locally consistent: any two marginals agree on the columns that both have, but for
        ``residual``, and no count is below 0. Where ``approximate`` is true there may be no table of records that has
        all of them (Wainwright, Jordan 2008). Where it is false there is one, but for the residual.

    Attributes
    ----------
    domain
        The public values of the columns.
    columns
        The columns of each marginal.
    total
        What each marginal adds up to, but for the residual.
    residual
        The largest disagreement: by how much two marginals differ at most in a count that both have, or one in its sum
        from the total.
    method
        How they were fitted.
    steps
        How many steps the fit took.
    spent
        What the noisy marginals cost; None where that is not known here.

    Examples
    --------
    >>> import numpy as np
    >>> import dpfast as dpf
    >>> domain = dpf.Domain({"a": 2, "b": 2, "c": 2})
    >>> alike, other = np.array([[50.0, 1.0], [-2.0, 51.0]]), np.array([[1.0, 49.0], [50.0, 0.0]])
    >>> fitted = dpf.fit_marginals(domain, {("a", "b"): alike, ("b", "c"): alike, ("a", "c"): other}, 2.0)
    >>> fitted.approximate, bool(fitted.marginal(["a", "b"]).min() >= 0.0)
    (True, True)

    No record has a like b, b like c, and a unlike c: these marginals agree, and belong to no table.

    """

    def __init__(
        self,
        domain: Domain,
        measured: Measured,
        fit: LocalFit,
        total: float,
        method: str,
        max_megabytes: float,
        spent: ShownAmounts | None = None,
        paid: Receipt | None = None,
    ) -> None:
        self.domain, self.shape, self.total, self.method = domain, domain.shape, total, method
        self.residual, self.steps, self.spent = fit.disagreement, fit.steps, spent
        self._measured, self._tables, self._paid = measured, fit.tables, paid
        self._most_cells = max_megabytes * 1e6 / BYTES_OF_CELL
        self.columns = tuple(self._names(clique) for clique in measured.cliques)

    @cached_property
    def _tree(self) -> JunctionTree:
        """The tree that would hold all marginals: nothing of it is held."""
        return JunctionTree.holding(self.shape, self._measured.cliques)

    @cached_property
    def approximate(self) -> bool:
        """Whether there may be no table with these marginals: their cliques are not those of a junction tree."""
        held = [set(clique) for clique in self._measured.cliques]
        return not all(len(clique) == 1 or any(set(clique) <= own for own in held) for clique in self._tree.cliques)

    @property
    def tree_megabytes(self) -> float:
        """What the tables of a tree would take that hold all marginals exactly."""
        return self._tree.cells * BYTES_OF_CELL / 1e6

    @cached_property
    def drawn_from(self) -> tuple[tuple[str, ...], ...]:
        """The marginals that records are drawn from, those that say most first; records know of others by these alone.

        Raises
        ------
        ParameterError
            Not even single columns have room in the megabytes that were given.

        """
        if sum(self.shape) > self._most_cells:
            given = Words(f"{self._most_cells * BYTES_OF_CELL / 1e6:g}, beside {number_of(sum(self.shape), 'value')}")
            raise ParameterError("max_megabytes", given, "enough for the single columns that records have", "raise it")
        chosen = choose_sets(self.shape, self._measured.cliques, self._tables, self._most_cells)
        return tuple(self.columns[place] for place in chosen)

    @cached_property
    def _weights(self) -> TreeWeights:
        places = [self.columns.index(names) for names in self.drawn_from]
        return fit_records(self.shape, self._measured.cliques, self._tables, places, self.total)

    def marginal(self, columns: Columns) -> Floats:
        """Return the fitted counts over some columns, an axis for each in the order given.

        Parameters
        ----------
        columns
            Those of one of the marginals, or some of them.

        Raises
        ------
        ParameterError
            There are no such columns, or no marginal has all of them: of these nothing is known here.

        """
        places = read_places(columns, self.domain.names)
        homes = [place for place, clique in enumerate(self._measured.cliques) if set(places) <= set(clique)]
        if not homes:
            near = [names for names in self.columns if set(names) & set(self._names(places))]
            allowed = f"columns that one marginal has together, as {brief(near or list(self.columns), 60)}"
            raise ParameterError("columns", columns, allowed, "domain.records draws records of all columns")
        home = min(homes, key=lambda place: (self._tables[place].size, place))
        clique, order = self._measured.cliques[home], sorted(places)
        counts = View(self.shape, clique, order).sums(self._tables[home])
        table = counts.reshape([self.shape[place] for place in order])
        return table.transpose([order.index(place) for place in places]).copy()

    def to_frame(self, columns: Columns) -> pl.DataFrame:
        """Return a row for each cell over some columns: their values, and the fitted ``count``.

        Parameters
        ----------
        columns
            As for `marginal`. Bins are called by their left edges.

        """
        counts = self.marginal(columns).reshape(-1)
        frame = self.domain.frame(columns)
        if "count" in frame.columns:
            raise ParameterError("columns", columns, "without 'count', which a column here is called", "rename it")
        return frame.with_columns(pl.Series("count", counts))

    def explain(self) -> str:
        """Return what these counts are and what they are not, in a few lines."""
        return "\n".join(
            [
                f"{self._about}, fitted by {self.method.replace('_', ' ')} in {number_of(self.steps, 'step')}",
                f"guarantee: {self.guarantee}",
                f"residual: marginals differ by at most {self.residual:.4g} where they share columns, "
                f"of a total of {self.total:,.0f}",
                f"a tree that holds them all: {self._room}",
                "answers: counts over columns that one of the marginals has together, and no others",
                "records: from a tree of the marginals that say most and fit into "
                f"{self._most_cells * BYTES_OF_CELL / 1e6:g} megabytes; of others they know what follows from these",
            ]
        )

    @property
    def guarantee(self) -> str:
        """What is certain of the counts, in a sentence."""
        if self.approximate:
            return "approximate: locally consistent, its marginals may belong to no table"
        return "its marginals belong to a table, but for the residual: they are those of a tree"

    @property
    def _room(self) -> str:
        most = self.tree_megabytes
        return f"{most:,.4g} megabytes" if most < _MANY_MEGABYTES else f"more than {_MANY_MEGABYTES:,.0f} megabytes"

    def draw_codes(self, n: Records = None, *, random: Random = None, threads: Threads = None) -> NDArray[np.uint32]:
        """Return the codes of ``n`` records, a row for each attribute; by default of about as many as there are.

        Pseudo-marginals may belong to no table, and then no records have them. These are drawn from a tree of the
        marginals in ``drawn_from``, fitted to their counts and those of single columns: as many as fit into the
        megabytes that were given. Counts of other columns together follow from these by independence, as far as the
        tree says nothing else. Columns that are in no marginal are even.

        Parameters
        ----------
        n
            How many records.
        random
            None, or a `dpfast.testing.SeededRandom`.
        threads
            How many draw parts of many records at once; as many as pay if not given. The result does not depend on it.

        """
        return np.concatenate(list(self.draw_parts(n, random=random, threads=threads)), axis=1)

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
        n = RECORDS.read_optional("n", n)
        number = round(min(self.total, LARGEST_RECORDS)) if n is None else n
        source, most = random_source(random), MOST.read("most", most)
        THREADS.read_optional("threads", threads)
        return draw_parts(self._weights, number, source, most, threads)

    def _names(self, places: Sequence[int]) -> tuple[str, ...]:
        return tuple(self.domain.names[place] for place in places)

    def _page(self) -> Page:
        from dpfast.synthesis.relaxed.page import page_of_pseudo_marginals  # not at the top: few ask for a page

        return page_of_pseudo_marginals(self)

    @property
    def _about(self) -> str:
        marginals = f"{number_of(len(self.columns), 'marginal')} of {number_of(len(self.domain.names), 'column')}"
        return f"{marginals}, {number_of(sum(table.size for table in self._tables), 'cell')}"

    def __repr__(self) -> str:
        """Show how many marginals there are, and whether they may belong to no table."""
        return f"PseudoMarginals({self._about}; {self.guarantee}; residual {self.residual:.4g})"

    def _card(self) -> Card:
        cells = [table.size for table in self._tables]
        rows = [[", ".join(names), f"{size:,}"] for names, size in zip(self.columns, cells, strict=True)]
        return Card([repr(self)], headers=["marginal of", "cells"], rows=rows)
