"""A plan runs once: the ledger is charged, the data are read, the noise is drawn, and the result is kept."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, NoReturn

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.accounting.budget import ConcentratedAmounts
from dpfast.aggregation.lost_threads import refuse_lost_threads
from dpfast.arguments import Flag, Numeric
from dpfast.charts import check_plot, draw_planned_errors
from dpfast.charts.look import ChartPath
from dpfast.errors import LedgerError
from dpfast.ledger import Identity, Ledger
from dpfast.ledger.filters import refuse_rho
from dpfast.ledger.payment import LEDGER, pay, refuse_repeatable
from dpfast.progress import TellStages, forgetting, read_progress, refuse_fork
from dpfast.randomness import Purpose, Random, SystemRandom, fresh_words, process_mark
from dpfast.releases.blueprint import Blueprint
from dpfast.releases.explanation import ALPHA
from dpfast.releases.lazy import FiguresToCome, scan_figures
from dpfast.releases.planned_errors import Budgets, asked_budgets, errors_at
from dpfast.releases.release import Release
from dpfast.releases.request import Request
from dpfast.releases.showing import card_of_plan, shown_plan
from dpfast.showing import Card, Shown

if TYPE_CHECKING:
    import altair as alt

__all__ = ["Plan", "bounding_words"]

MEASURES = Flag()


class Plan(Shown):
    """A release that can be run, once: made by `plan`, without looking at the data."""

    def __init__(
        self,
        blueprint: Blueprint,
        request: Request | None = None,
        draw_up: Callable[[Request], Blueprint] | None = None,
    ) -> None:
        self._blueprint = blueprint
        self._request = request
        self._draw_up = draw_up
        self._lock = threading.RLock()
        self._running = False
        self._ledger: Ledger | None = None
        self._release: Release | None = None
        self._entry: int | None = None
        _plans.add(self)

    @property
    def epsilon(self) -> float:
        """The sum of the epsilons of all charges (of a plan with rho, for information: its ledger adds up rho)."""
        return self._blueprint.epsilon_units / 10**18

    @property
    def delta(self) -> float:
        """The sum of the deltas of all charges."""
        return self._blueprint.delta_units / 10**18

    @property
    def rho(self) -> float | None:
        """What running this plan costs a ledger that adds up rho; None for a plan made with epsilon."""
        budget = self._blueprint.budget
        return budget.rho if isinstance(budget, ConcentratedAmounts) else None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the parameters give reason to warn of; no warning is no proof that nothing is wrong."""
        return self._blueprint.warnings

    def explain(self, *, measures: Annotated[bool, MEASURES] = True) -> str:
        """Return what will be drawn, sensitivities with their reasons, mechanisms, scales, errors and charge.

        Nothing here depends on the data: it may be shown to anyone. ``measures=False`` leaves out the lines about
        single measures, which `to_frame` has as rows.
        """
        return self._blueprint.explain(measures=MEASURES.read("measures", measures))

    def to_frame(self) -> pl.DataFrame:
        """Return the noise that was planned as a frame.

        By group, one row for every noisy measure. Columns: ``query``, the first that needs it, and ``measure``;
        ``norm``, ``sensitivity`` and the ``reason`` for it; ``mechanism``, ``kernel``, ``scale``, and ``error95``,
        which the noise exceeds with probability 0.05; ``epsilon`` and ``delta``, its charge; ``event``, the fact that
        the ledger keeps; ``charge``, a number: rows with the same are charged once, together. Sensitivity, scale and
        error are in the unit of the column, which is a second for dates and times, or rows, and of quantiles in ranks;
        the event counts steps, of which that unit, or the last place of a decimal, has a power of two. A mode's error
        is how many rows fewer its answer may have than the most
        common candidate.

        Of a workload, one row for every strategy considered, that of the least predicted error first. Columns:
        ``strategy``; ``measurements``, how many numbers it measures; ``mechanism`` and ``scale`` of their noise;
        ``rmse``, the root of the mean squared error over all queries. Of an adaptive strategy all these are null, as
        they depend on the data.
        """
        return self._blueprint.to_frame()

    def error(self, alpha: Annotated[Numeric, ALPHA] = 0.05) -> pl.DataFrame:
        """Return bounds of the noise, before anything is charged.

        Guarantee
            Each bound holds with probability at least 1 - alpha. The bounds are of the noise alone: what is lost by
            clipping values, and by keeping only some rows of a unit, is not in them.

        Parameters
        ----------
        alpha
            The probability that a bound is exceeded.

        Returns
        -------
        polars.DataFrame
            By group, rows and units as in `to_frame`. ``one``, the bound for a single group's value; ``groups``, how
            many there are, and ``all``, the bound that all their values keep together: both null where keys are
            selected. Of a workload, what each query asks; ``scale``, the standard deviation of its answer; ``one``,
            the bound for this query alone, and ``all``, those that all queries keep together.

        Raises
        ------
        ParameterError
            ``alpha`` is no number from 1e-12 to below 1, or too small for so many groups or queries; or the strategy
            is adaptive, whose error is not known beforehand.

        Examples
        --------
        >>> import dpfast as dpf
        >>> trips = pl.DataFrame({"city": ["Rome", "Oslo"]})
        >>> keys = pl.DataFrame({"city": ["Rome", "Oslo", "Bonn"]})
        >>> dpf.plan(trips, by="city", rides=dpf.count(), keys=keys, privacy_unit="row", epsilon=0.5).error().row(0)
        ('rides', 'rows', 6.0, 3, 8.0)

        """
        return self._blueprint.error(ALPHA.read("alpha", alpha))

    def plot_error(
        self,
        path: ChartPath = None,
        *,
        epsilon: Budgets = None,
        rho: Budgets = None,
        alpha: Annotated[Numeric, ALPHA] = 0.05,
    ) -> alt.LayerChart:
        """Draw how far off answers would be at other budgets: a line for every query, before anything is charged.

        Guarantee
            Nothing is charged, and no row of the data is read.

        Parameters
        ----------
        path
            Where to write the chart; the suffix decides its kind (``.png``, ``.svg``, ``.pdf``). None for none.
        epsilon, rho
            The budgets, at most 100, of the kind that the plan has; by default from a tenth to ten times its own.
        alpha
            The probability that an error is exceeded, as for `error`. Of a workload, errors are root mean squares.

        Returns
        -------
        altair.LayerChart
            The chart, both its axes logarithmic.

        Raises
        ------
        ParameterError
            Altair is not installed, budgets are of another kind or range, or errors are not known beforehand.

        """
        check_plot(path)
        alpha = ALPHA.read("alpha", alpha)
        kind, budgets = asked_budgets(self._blueprint, epsilon, rho)
        assert self._request is not None
        assert self._draw_up is not None
        errors = errors_at(self._blueprint, self._request, self._draw_up, kind, budgets, alpha)
        of_workload = self._request.workload is not None
        what = "root mean square error" if of_workload else f"error exceeded with probability {alpha:g}"
        note = "Of the noise alone, in each query's own unit: bounds and clipping are not in it."
        return draw_planned_errors(budgets, errors, kind, what, note, path)

    def run(self, ledger: Annotated[Ledger, LEDGER], *, random: Random = None, progress: TellStages = None) -> Release:
        """Charge the ledger, read the data, draw the noise once, and keep the result.

        Guarantee
            The charge is durable before any row is read, whatever the data (an empty frame is charged too).
            A second call returns the same release and charges nothing. If the run fails after the charge,
            the plan is dead and its charge stays spent; no error after the charge depends on values.

        Parameters
        ----------
        ledger
            The budget; its dataset, privacy unit and neighbour relation must be this plan's.
        random
            Must be None: a ledger accepts no repeatable randomness.
        progress
            Called with the name of each stage as it begins; a stage's name says nothing of the data.

        Raises
        ------
        BudgetExceededError
            The charge does not fit; nothing is spent or read.
        LedgerError
            The ledger is for other data or another unit; or
            this plan was charged to another ledger, or failed after it was charged.
        ParameterError
            ``ledger`` is no ledger, or adds up epsilons where the plan was made with rho; ``random`` was given,
            ``progress`` is no function, or a file has changed since it was planned. Nothing is charged.

        """
        LEDGER.read("ledger", ledger)
        refuse_repeatable(random)
        show = read_progress(progress, "the name of a stage")
        with self._lock:
            if self._running:
                raise LedgerError(
                    "this plan is being run, or was when this process was forked; a progress callback cannot run it "
                    "again, nor can a fork"
                )
            if self._ledger is not None and self._ledger is not ledger and self._entry is not None:
                raise LedgerError(
                    f"this plan was charged to another ledger (entry {self._entry} there); make a new plan to "
                    "charge this one"
                )
            if self._release is None:
                if self._entry is not None:
                    raise LedgerError(
                        f"this plan failed after it was charged (entry {self._entry}), and its charge stays spent; "
                        "make a new plan, which will be charged anew"
                    )
                self._running = True
                self._ledger = ledger
                try:
                    with forgetting():
                        self._release = self._run(ledger, show)
                finally:
                    self._running = False
            return self._release

    def lazy(self, ledger: Annotated[Ledger, LEDGER]) -> pl.LazyFrame:
        """Return the release's frame as a LazyFrame, which runs the plan when it is first collected.

        Guarantee
            That of `run`, which it calls: the first collect charges the ledger, reads the data and draws, and all
            others, whatever the engine does, read what was drawn. ``explain`` and ``collect_schema`` charge nothing
            and read no row. What `run` raises, a collect raises.

        Parameters
        ----------
        ledger
            As for `run`.

        Returns
        -------
        polars.LazyFrame
            The frame of the release, of which `run` with the same ledger returns the rest. It cannot be pickled or
            serialized, as a copy would draw noise for the same charge; `Release.lazy` can.

        Raises
        ------
        ParameterError
            ``ledger`` is no ledger, or adds up epsilons where the plan was made with rho.

        Examples
        --------
        >>> import dpfast as dpf
        >>> trips = pl.LazyFrame({"city": ["Rome", "Oslo"] * 50})
        >>> cities = pl.DataFrame({"city": ["Rome", "Oslo"]})
        >>> ledger = dpf.Ledger(epsilon=1.0)
        >>> rides = dpf.plan(trips, by="city", n=dpf.count(), keys=cities, privacy_unit="row", epsilon=0.5).lazy(ledger)
        >>> rides.collect_schema().names(), ledger.remaining.epsilon
        (['city', 'n', 'n_scale', 'n_lower', 'n_upper'], 1.0)
        >>> twice = pl.concat([rides, rides]).collect()
        >>> twice["n"].n_unique() <= 2, ledger.remaining.epsilon
        (True, 0.5)

        """
        LEDGER.read("ledger", ledger)
        if self._blueprint.concentrated:
            refuse_rho(ledger.accountant, self.rho)
        return scan_figures(FiguresToCome(lambda: self.run(ledger).frame, self._blueprint.schema))

    def _run(self, ledger: Ledger, progress: Callable[[str], object]) -> Release:
        blueprint = self._blueprint
        process = process_mark()
        if blueprint.concentrated:
            refuse_rho(ledger.accountant, self.rho)
        refuse_lost_threads()
        blueprint.check_source()
        progress("charging the ledger")
        refuse_fork(process)  # else it would pay for what it may not keep
        about = Identity(blueprint.dataset, blueprint.privacy_unit, blueprint.unit.neighbors)
        paid = pay(ledger, about, blueprint.charges)
        self._entry = paid.entry

        def stage(name: str) -> None:
            progress(name)
            refuse_fork(process)  # the engine's threads are not in a fork

        release = replace(blueprint.carry_out(paid.entry, bounding_words, stage), _paid=paid)
        # After the draw: whatever forked before, in a callback or a source, only one process keeps its noise.
        refuse_fork(process)
        return release

    @property
    def _state(self) -> str:
        if self._entry is None:
            return "not run"
        return f"{'failed' if self._release is None else 'run'}, charged as entry {self._entry}"

    def __repr__(self) -> str:
        """Show whose data a unit is, what is asked, what it costs, and how far off answers are."""
        return "\n".join(shown_plan(self._blueprint, self._state))

    def _card(self) -> Card:
        return card_of_plan(self._blueprint, self._state)

    def __reduce__(self) -> NoReturn:
        raise LedgerError("a plan cannot be pickled or copied: each copy would draw noise for the same charge")


#: Plans whose locks a fork opens.
_plans: weakref.WeakSet[Plan] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    """Open the locks: a thread that is lost in the fork may have held one, and is never there to open it."""
    for plan in _plans:
        plan._lock = threading.RLock()


os.register_at_fork(after_in_child=_after_fork_in_child)


def bounding_words(count: int) -> NDArray[np.uint64]:
    """Return fresh words for choosing what a privacy unit keeps."""
    return fresh_words(SystemRandom(), count, Purpose.BOUNDING)
