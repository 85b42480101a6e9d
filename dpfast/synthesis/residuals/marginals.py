"""Marginals of many columns with errors that are known beforehand: a plan, and what comes out of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.accounting.budget import Budget, Delta, Epsilon, Rho, ShownAmounts, read_budget
from dpfast.accounting.events import Gaussian
from dpfast.accounting.privacy_unit import Neighbors
from dpfast.aggregation.sources import Data, Schema, Source, open_source, path_of
from dpfast.arguments import Instance
from dpfast.domain.declaring import read_places
from dpfast.domain.domain import Domain
from dpfast.errors import ParameterError
from dpfast.graphical.local_consistency import Method
from dpfast.ledger import Ledger
from dpfast.ledger.account import OwnName
from dpfast.ledger.payment import LEDGER, read_payment
from dpfast.ledger.receipt import Receipt, entry_of
from dpfast.pages.page import Page
from dpfast.pages.reported import Reported
from dpfast.progress import TellStages, TerminalLine, forgetting, read_progress
from dpfast.randomness import SystemRandom
from dpfast.showing import Card, Shown, number_of
from dpfast.synthesis.charging import charge_events, read_relation
from dpfast.synthesis.graphical.estimate import Columns
from dpfast.synthesis.graphical.synthesizing import MEGABYTES
from dpfast.synthesis.relaxed.estimate import LEAST_DEVIATION, Measured, PseudoMarginals
from dpfast.synthesis.relaxed.fitting import METHOD, fit_measured, read_method
from dpfast.synthesis.residuals.asking import OwnSets, Weights, read_weights, read_workload
from dpfast.synthesis.residuals.measuring import marginal_of, measure_residuals
from dpfast.synthesis.residuals.planning import ResidualPlan, plan_residuals

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
    columns
        The columns of each marginal.
    neighbors
        Which data are neighbours.

    """

    domain: Domain
    columns: tuple[tuple[str, ...], ...]
    neighbors: Neighbors
    _budget: Budget
    _plan: ResidualPlan

    def deviation(self, columns: Columns) -> float:
        """Return the standard deviation of the noise of each count over some columns: exact, known without the data.

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

    def to_frame(self) -> pl.DataFrame:
        """Return a row for each marginal: its ``columns``, ``cells``, and the ``deviation`` of each cell's noise."""
        deviations = [math.sqrt(self._plan.variance(held)) for held in self._plan.asked]
        cells = [math.prod(self._plan.sizes[a] for a in held) for held in self._plan.asked]
        columns = [list(names) for names in self.columns]
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
            f"{self._about}, {number_of(int(frame['cells'].sum()), 'count')}",
            f"measured by {number_of(len(self._plan.noises), 'residual')}, {drawn}",
            f"cost: {self._budget.shown}; neighbours: {self.neighbors}",
            "deviation of each count, known beforehand:",
        ]
        shown = frame.head(_SHOWN).iter_rows()
        lines += [
            f"  {deviation:12,.4g}  {', '.join(columns)} ({number_of(cells, 'cell')})"
            for columns, cells, deviation in shown
        ]
        return "\n".join(lines if frame.height <= _SHOWN else [*lines, f"  ... {frame.height - _SHOWN:,} more"])

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

    def _places(self, columns: object) -> list[int]:
        """Return the places of columns that are together in a marginal."""
        places = read_places(columns, self.domain.names)
        if not any(set(places) <= set(held) for held in self._plan.asked):
            raise ParameterError("columns", columns, "columns that one of the planned marginals has together")
        return places

    def __repr__(self) -> str:
        """Show how many marginals there are, and what they cost."""
        return f"MarginalsPlan({self._about}; {self._budget.shown})"

    def _card(self) -> Card:
        frame = self.to_frame().head(_SHOWN)
        rows = [[", ".join(columns), f"{cells:,}", f"{off:.6g}"] for columns, cells, off in frame.iter_rows()]
        return Card([repr(self)], headers=["columns", "cells", "deviation"], rows=rows)


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
        deviation = pl.lit(self.plan.deviation(columns), dtype=pl.Float64)
        return frame.with_columns(pl.Series("count", counts), deviation=deviation)

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
    """Plan to measure many marginals at once, so that a weighted sum of all variances is least.

    Guarantee
        None is needed: nothing of the data is read. How far each count will be off is known before anything is paid
        for; what `MarginalsPlan.run` gives is as private as `release_marginals` says.

    Parameters
    ----------
    domain
        The public values of the columns; nothing of it is read from the data.
    workload
        The sets of columns whose counts are asked: a list of tuples of names, or `dpfast.workloads.marginals`, of
        which the total is in every set. By default all pairs of columns, or the only one.
    epsilon, delta, rho
        The whole budget: epsilon, perhaps with a delta, or rho. Noise is Gaussian, or Laplace noise where there is no
        delta beside epsilon, which takes far more of it.
    weights
        A positive number for each set: what a cell's variance counts. All the same by default.
    neighbors
        "add_remove"; or "replace", where the number of rows is public and exact, and the domain must leave none out.

    Raises
    ------
    ParameterError
        An argument is of another kind or range, or a marginal has too many cells.

    References
    ----------
    Xiao, He, Zhang, Kifer (2023), "An optimal and scalable matrix mechanism for noisy marginals under convex loss
    functions", section 4 and theorem 5.

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

    """
    _DOMAIN.read("domain", domain)
    relation = read_relation(neighbors, domain)
    budget = read_budget(epsilon, delta, rho)
    asked = read_workload(workload, domain)
    own = read_weights(weights, len(asked))
    plan = plan_residuals(domain.shape, asked, own, budget, relation)
    names = tuple(tuple(domain.names[place] for place in held) for held in asked)
    return MarginalsPlan(domain, names, relation, budget, plan)


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
    """Measure many marginals at once: unbiased counts that agree with each other, with errors known beforehand.

    Guarantee
        (epsilon, delta)-differentially private, or rho-zCDP, where neighbouring data differ in one row. The ledger is
        charged before any row is read, whatever the data, and a charge is never given back. No error after the charge
        depends on values.

        Proof. A row is in one cell of each marginal at most. What is measured of a set T of columns is C_T x_T, C_T the
        product of n I - J over its columns of n values: whole numbers, which a row moves by one column of C_T, whose
        squares add up to the product of n (n - 1). Independent Gaussian noises of scales s_T are, for all T together,
        one Gaussian noise whose squared sensitivity is the sum of these squares over s_T**2. Each s_T is rounded up
        from the one at which that sum is the budget's. Rounding to whole numbers comes after the noise, and all else is
        made of noisy numbers. Where there is no delta beside epsilon, it is Laplace noise, whose epsilons add up: a row
        moves the magnitudes of C_T x_T by the product of 2 (n - 1) together.

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
        With ``marginal(columns)`` for every set of columns that was asked, and its parts; ``fit()`` makes them
        nonnegative.

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
