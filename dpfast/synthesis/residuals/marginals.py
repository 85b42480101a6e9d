"""Marginals of many columns with errors that are known beforehand: a plan, and what comes out of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.accounting.budget import Budget, Delta, Epsilon, Rho, read_budget
from dpfast.accounting.events import Gaussian
from dpfast.accounting.privacy_unit import Neighbors
from dpfast.aggregation.sources import Data, Schema, Source, open_source, path_of
from dpfast.arguments import Instance
from dpfast.domain.declaring import read_places
from dpfast.domain.domain import Domain
from dpfast.errors import ParameterError, Words
from dpfast.ledger import Ledger
from dpfast.ledger.account import OwnName
from dpfast.ledger.payment import LEDGER, read_payment
from dpfast.progress import TellStages, TerminalLine, forgetting, read_progress
from dpfast.randomness import SystemRandom
from dpfast.showing import Card, Shown, brief, number_of
from dpfast.synthesis.charging import charge_events, read_relation
from dpfast.synthesis.graphical.estimate import Columns
from dpfast.synthesis.graphical.synthesizing import check_shape
from dpfast.synthesis.residuals.asking import OwnQueriesOfAny, OwnSets, Weights, read_weights, read_workload
from dpfast.synthesis.residuals.contrasts import LARGEST_MARGINAL
from dpfast.synthesis.residuals.measuring import measure_residuals
from dpfast.synthesis.residuals.planning import ResidualPlan, plan_queries
from dpfast.synthesis.residuals.queries import Block, blocks_of, blocks_of_marginals
from dpfast.synthesis.residuals.release import MarginalsRelease
from dpfast.workloads.marginals import Marginals
from dpfast.workloads.workload import ANY_WORKLOAD, Workload

__all__ = ["MarginalsPlan", "MarginalsRelease", "plan_marginals", "release_marginals"]

Attributes = tuple[int, ...]
Floats = NDArray[np.float64]

_DOMAIN = Instance(Domain, "a dpfast.Domain", mend='write dpf.Domain({{"sex": ["f", "m"]}})')
_SHOWN = 20


@dataclass(frozen=True, eq=False, repr=False)
class MarginalsPlan(Shown):
    """How marginals will be measured: no row has been read, and nothing is charged.

    Attributes
    ----------
    domain
        The public values of the columns.
    workload
        The queries that are asked.
    columns
        The columns that are counted together: of each marginal, or of queries about the same columns.
    neighbors
        Which data are neighbours.
    left_out
        Pairs of columns that have too many cells to be counted, where no sets of columns are named.

    """

    domain: Domain
    workload: Workload
    columns: tuple[tuple[str, ...], ...]
    neighbors: Neighbors
    _budget: Budget
    _plan: ResidualPlan
    _blocks: list[Block]
    left_out: tuple[tuple[str, ...], ...] = ()

    def deviation(self, columns: Columns) -> float:
        """Return the standard deviation of the noise of each count over some columns: exact, known without the data.

        Where ranges of a column are asked, its single values are not all known as well: then the root of the mean of
        the variances of all cells.

        Parameters
        ----------
        columns
            Those of a marginal that is planned, or some of them.

        Raises
        ------
        ParameterError
            There are no such columns, or no planned marginal has all of them.

        """
        return math.sqrt(self._plan.variance(tuple(sorted(self._places(columns)))))

    def deviations(self, workload: OwnQueriesOfAny = None) -> NDArray[np.float64]:
        """Return the standard deviation of the noise of each query's answer: in closed form, known without the data.

        Parameters
        ----------
        workload
            One of `dpfast.workloads` over the domain's shape, about columns that are counted together; by default the
            one that is planned.

        Raises
        ------
        ParameterError
            It is over other cells, or about columns that no planned query has together.

        """
        asked, blocks = self._asked(workload)
        out = np.empty(len(asked))
        for block in blocks:
            out[block.places] = np.sqrt(self._plan.variances(block))
        return out

    def to_frame(self) -> pl.DataFrame:
        """Return a row for each set of columns: the ``columns``, their ``cells``, and the ``deviation`` of the noise.

        It is that of each count of a marginal; of other queries the root of the mean of their variances.
        """
        blocks = [block for block in self._blocks if block.attributes]
        deviations = [math.sqrt(self._plan.mean_variance(block)) for block in blocks]
        cells = [math.prod(self._plan.sizes[a] for a in block.attributes) for block in blocks]
        columns = [[self.domain.names[a] for a in block.attributes] for block in blocks]
        schema: dict[str, Any] = {"columns": pl.List(pl.String), "cells": pl.Int64, "deviation": pl.Float64}
        return pl.DataFrame({"columns": columns, "cells": cells, "deviation": deviations}, schema=schema)

    def explain(self) -> str:
        """Return what will be measured, by which noise, and how far each count will be off: nothing of the data.

        Marginals that err most come first, twenty of them; `to_frame` has them all.
        """
        frame = self.to_frame().sort("deviation", descending=True)
        first = self._plan.events[:1]
        drawn = "Laplace noise on each"
        if first and isinstance(first[0], Gaussian):
            drawn = f"together one Gaussian noise of scale {first[0].scale:.6g} at sensitivity 1"
        lines = [
            f"{self._about}, {self._asked_of_all}",
            f"measured by {number_of(len(self._plan.noises), 'residual')}, {drawn}",
            f"cost: {self._budget.shown}; neighbours: {self.neighbors}",
            f"deviation of each {'count' if self._counts else 'answer'}, known beforehand:",
        ]
        shown = frame.head(_SHOWN).iter_rows()
        lines += [
            f"  {deviation:12,.4g}  {', '.join(columns)} ({number_of(cells, 'cell')})"
            for columns, cells, deviation in shown
        ]
        more = [f"  ... {frame.height - _SHOWN:,} more"] * (frame.height > _SHOWN)
        return "\n".join([*lines, *more, *self.left_out_lines()])

    def left_out_lines(self) -> list[str]:
        """Return a line that says which pairs of columns are left out; none if none is."""
        named = brief([" and ".join(pair) for pair in self.left_out])
        pairs = number_of(len(self.left_out), "pair")
        return [f"left out: {pairs} of more than {LARGEST_MARGINAL:,} cells: {named}"] if self.left_out else []

    def run(
        self,
        data: Data,
        *,
        ledger: Annotated[Ledger, LEDGER],
        dataset: OwnName = None,
        schema: Schema = None,
        progress: TellStages = None,
    ) -> MarginalsRelease:
        """Charge the ledger, count and measure; as `release_marginals`, which has the parameters' documentation."""
        LEDGER.read("ledger", ledger)
        with TerminalLine() as line, forgetting():
            show = line if progress is None else read_progress(progress, "the name of a stage")
            return self._run(data, ledger, dataset, schema, show)

    def _run(
        self, data: Data, ledger: Ledger, dataset: str | None, schema: Schema, show: Callable[[str], object]
    ) -> MarginalsRelease:
        source = data if isinstance(data, Source) else open_source(data, schema=schema)
        opened = self.domain.open(source)
        source.check()
        named = path_of(data) if dataset is None else dataset
        payment = read_payment(ledger, self._budget, None, neighbors=self.neighbors, dataset=named, privacy_unit="row")
        show("charging the ledger")
        description = f"{self._about}, by residuals"
        paid = charge_events(payment, self._budget, self._plan.events, description)
        show("reading the data")
        sets = list(dict.fromkeys(self._plan.asked))
        exact = dict(zip(sets, opened.count_marginals(sets), strict=True))
        show("measuring")
        residuals = measure_residuals(self._plan, exact, SystemRandom())
        return MarginalsRelease(self, residuals, self._budget.shown, paid)

    @property
    def cliques(self) -> tuple[Attributes, ...]:
        """The places of each marginal's columns in the domain, ascending, each set once."""
        return tuple(dict.fromkeys(self._plan.asked))

    @property
    def _about(self) -> str:
        return f"{number_of(len(self.columns), 'marginal')} of {number_of(len(self.domain.names), 'column')}"

    @property
    def _counts(self) -> bool:
        """Whether nothing but marginals is asked."""
        return isinstance(self.workload, Marginals)

    @property
    def _asked_of_all(self) -> str:
        return number_of(len(self.workload), *(("count",) if self._counts else ("query", "queries")))

    def _asked(self, workload: object) -> tuple[Workload, list[Block]]:
        """Return queries, and the same by the columns that they are about, of which each is in a planned set."""
        if workload is None:
            return self.workload, self._blocks
        asked = ANY_WORKLOAD.read("workload", workload)
        check_shape(asked, self.domain)
        blocks = blocks_of(asked)
        for block in blocks:
            self._check_together(block.attributes, "workload")
        return asked, blocks

    def _deviations_of_cells(self, columns: object) -> NDArray[np.float64]:
        """Return the deviation of each count over some columns, an axis for each in the order given."""
        places = self._places(columns)
        order = sorted(places)
        [block] = blocks_of_marginals(self.domain.shape, [tuple(order)])
        table = np.sqrt(self._plan.variances(block)).reshape([self.domain.shape[place] for place in order])
        return table.transpose([order.index(place) for place in places])

    def _places(self, columns: object) -> list[int]:
        """Return the places of columns that are together in a marginal."""
        places = read_places(columns, self.domain.names)
        self._check_together(places, "columns")
        return places

    def _check_together(self, places: Sequence[int], name: str) -> None:
        """Refuse columns that are not together in a marginal."""
        if not any(set(places) <= set(held) for held in self._plan.asked):
            given = Words(", ".join(self.domain.names[place] for place in places))
            allowed = "about columns that one of the planned marginals has together"
            raise ParameterError(name, given, allowed if name == "workload" else allowed.removeprefix("about "))

    def __repr__(self) -> str:
        """Show how many marginals there are, and what they cost."""
        return f"MarginalsPlan({self._about}; {self._budget.shown})"

    def _card(self) -> Card:
        frame = self.to_frame().head(_SHOWN)
        rows = [[", ".join(columns), f"{cells:,}", f"{off:.6g}"] for columns, cells, off in frame.iter_rows()]
        return Card([repr(self)], headers=["columns", "cells", "deviation"], rows=rows)


def plan_marginals(
    domain: Annotated[Domain, _DOMAIN],
    workload: OwnSets = None,
    *,
    epsilon: Epsilon = None,
    delta: Delta = 0,
    rho: Rho = None,
    weights: Weights = None,
    neighbors: Neighbors = "add_remove",
) -> MarginalsPlan:
    """Plan to measure marginals, and ranges of columns, all at once, so that a weighted sum of all variances is least.

    Guarantee
        None is needed: nothing of the data is read. How far each count will be off is known before anything is paid
        for; what `MarginalsPlan.run` gives is as private as `release_marginals` says.

    Parameters
    ----------
    domain
        The public values of the columns; nothing of it is read from the data.
    workload
        The sets of columns whose counts are asked: a list of tuples of names, or `dpfast.workloads.marginals`, of
        which the total is in every set. Or any queries over the domain's shape that are products of queries of one
        column each (`dpfast.workloads.about`: prefixes, ranges, single values, a matrix), rectangles, or several of all
        these stacked. By default all pairs of columns that have at most 2**22 cells together, and each column that is
        in none of them.
    epsilon, delta, rho
        The whole budget: epsilon, perhaps with a delta, or rho. Noise is Gaussian, or Laplace noise where there is no
        delta beside epsilon, which takes far more of it.
    weights
        A positive number for each set, or each part of a stacked workload, of which a workload of marginals has one for
        each: what a query's variance counts. All the same by default.
    neighbors
        "add_remove"; or "replace", where the number of rows is public and exact, and the domain must leave none out.

    Raises
    ------
    ParameterError
        An argument is of another kind or range, or a marginal has too many cells.

    References
    ----------
    Xiao, He, Zhang, Kifer (2023), "An optimal and scalable matrix mechanism for noisy marginals under convex loss
    functions", section 4 and theorem 5; (2024), "ResidualPlanner+: a scalable matrix mechanism for marginals and
    beyond", for queries of each column that are not its cells. Its matrices are the best for a column's queries, whose
    totals are then taken out; here they are the best for what is left of these queries without their totals.

    Examples
    --------
    >>> import dpfast as dpf
    >>> domain = dpf.Domain({"sex": ["f", "m"], "age": dpf.bins("age", [0, 18, 65, 120]), "works": [False, True]})
    >>> plan = dpf.plan_marginals(domain, [("sex", "age"), ("age", "works")], rho=0.5)
    >>> print(plan.explain())
    2 marginals of 3 columns, 12 counts
    measured by 6 residuals, together one Gaussian noise of scale 1 at sensitivity 1
    cost: rho 0.5, delta 0; neighbours: add_remove
    deviation of each count, known beforehand:
              1.21  sex, age (6 cells)
              1.21  age, works (6 cells)

    Ranges of two columns of fourteen, which have 10**28 cells together:

    >>> wide = dpf.Domain({f"c{i}": 100 for i in range(14)})
    >>> ask = dpf.workloads
    >>> both = ask.about(wide, {"c0": ask.prefix(100), "c9": ask.prefix(100)})
    >>> plan = dpf.plan_marginals(wide, both, rho=0.5)
    >>> cells = dpf.plan_marginals(wide, [("c0", "c9")], rho=0.5)
    >>> [round(float(one.deviations(both).mean()), 1) for one in (plan, cells)]
    [5.4, 45.1]

    """
    _DOMAIN.read("domain", domain)
    relation = read_relation(neighbors, domain)
    budget = read_budget(epsilon, delta, rho)
    asked, blocks, beyond = read_workload(workload, domain)
    of = "marginal" if isinstance(asked, Marginals) else "part of the workload"
    own = read_weights(weights, blocks[-1].part + 1, of)
    with TerminalLine() as line:

        def show(attribute: int) -> None:
            line(f"finding what to measure of {domain.names[attribute]}")

        plan = plan_queries(domain.shape, blocks, own, budget, relation, show)
    names = tuple(tuple(domain.names[place] for place in held) for held in plan.asked)
    left_out = tuple(tuple(domain.names[place] for place in pair) for pair in beyond)
    return MarginalsPlan(domain, asked, names, relation, budget, plan, blocks, left_out)


def release_marginals(
    data: Data,
    domain: Annotated[Domain, _DOMAIN],
    workload: OwnSets = None,
    *,
    ledger: Annotated[Ledger, LEDGER],
    epsilon: Epsilon = None,
    delta: Delta = 0,
    rho: Rho = None,
    weights: Weights = None,
    neighbors: Neighbors = "add_remove",
    dataset: OwnName = None,
    schema: Schema = None,
    progress: TellStages = None,
) -> MarginalsRelease:
    """Measure marginals, and ranges of columns, at once: unbiased answers that agree, with errors known beforehand.

    Guarantee
        (epsilon, delta)-differentially private, or rho-zCDP, where neighbouring data differ in one row. The ledger is
        charged before any row is read, whatever the data, and a charge is never given back. No error after the charge
        depends on values.

        Proof. A row is in one cell of each marginal at most. What is measured of a set T of columns is R_T x_T, R_T a
        product of one matrix of whole numbers for each of its columns, which the queries and the budget decide: n I - J
        for n values, or one that was found for ranges. A row moves it by one column of R_T, whose squares add up to the
        product of what those of each matrix do at most: n (n - 1) for n I - J. Independent Gaussian noises of scales
        s_T are, for all T together, one Gaussian noise whose squared sensitivity is at most the sum of these squares
        over s_T**2. Each s_T is rounded up from the one at which that sum is the budget's. Rounding to whole numbers
        comes after the noise, and all else is made of noisy numbers. Where there is no delta beside epsilon, it is
        Laplace noise, whose epsilons add up: a row moves the magnitudes of R_T x_T by the product of the columns'
        magnitudes together, 2 (n - 1) for n I - J. No number leaves int64: R_T has no coefficient beyond 2**24, and
        there are at most 2**38 rows.

    Parameters
    ----------
    data
        As for `dpfast.plan`: a frame, an Arrow table, or paths of files. Each row is a privacy unit.
    domain, workload, epsilon, delta, rho, weights, neighbors
        As for `plan_marginals`.
    ledger
        The budget.
    dataset
        The name under which the ledger knows the data; by default the path, or the ledger's own name.
    schema
        The dtypes of a CSV file's columns, or of columns that folders name.
    progress
        Called with the name of each stage as it begins.

    Returns
    -------
    MarginalsRelease
        With ``answers``, and ``marginal(columns)`` for every set of columns that was asked, and its parts; ``fit()``
        makes them nonnegative.

    Raises
    ------
    ParameterError, ColumnError
        An argument is of another kind or range, or a column is missing or of a type that does not serve; nothing is
        charged.
    BudgetExceededError, LedgerError
        The charge does not fit, or the ledger is about something else; nothing is charged.
    DpfastError
        The data cannot be read to their end, after the charge; the message shows nothing of them.

    References
    ----------
    Xiao, He, Zhang, Kifer (2023); see `plan_marginals`. The paper draws noise within each residual's space; here it is
    drawn for whole numbers around it, which has the same covariance there, and the same cost.

    Examples
    --------
    >>> import dpfast as dpf
    >>> people = pl.DataFrame({"sex": ["f", "m"] * 500, "age": [20, 40, 60, 80] * 250})
    >>> domain = dpf.Domain({"sex": ["f", "m"], "age": dpf.bins("age", [0, 30, 60, 120])})
    >>> made = dpf.release_marginals(people, domain, epsilon=2.0, delta=1e-9, ledger=dpf.Ledger(epsilon=2, delta=1e-9))
    >>> made.marginal(["sex", "age"]).shape, round(made.plan.deviation(["sex", "age"]), 2)
    ((2, 3), 2.85)

    """
    plan = plan_marginals(domain, workload, epsilon=epsilon, delta=delta, rho=rho, weights=weights, neighbors=neighbors)
    return plan.run(data, ledger=ledger, dataset=dataset, schema=schema, progress=progress)
