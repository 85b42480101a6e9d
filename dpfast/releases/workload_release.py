"""A workload of linear queries over private data: planned, charged, measured once, answered as often as one likes."""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any

import polars as pl

from dpfast.aggregation.exact import Aggregates
from dpfast.randomness import SystemRandom
from dpfast.releases import WorkloadBlueprint, consider_frame, explain_workload, workload_error_frame
from dpfast.releases.running import RunOnce
from dpfast.strategies.matrix_mechanism import MatrixRelease, draw_cells

__all__ = ["WorkloadPlan", "WorkloadRelease"]


class WorkloadRelease:
    """The answers to a workload, all from measurements that were drawn once.

    Guarantee
        What `frame` and `histogram` hold is differentially private as `explain` says, and everything made of it is too
        (post-processing). No exact figure is kept.

    Attributes
    ----------
    keys
        The public keys, one row for each cell.
    spent
        What this release was charged.
    entry
        The number of its charge in the ledger.

    """

    def __init__(self, keys: pl.DataFrame, released: MatrixRelease, blueprint: WorkloadBlueprint, entry: int) -> None:
        self._keys = keys
        self._released = released
        self._explained = explain_workload(blueprint)
        self.spent = blueprint.budget
        self.entry = entry

    @cached_property
    def frame(self) -> pl.DataFrame:
        """One row per query: what it asks, ``answer``, ``scale`` (standard deviation), ``lower`` and ``upper`` (95%).

        Answers are sums over one histogram, so they agree with each other: the sum of two neighbouring ranges is the
        answer to their union. They are not cut off at zero, since that would bias them.
        """
        return self._released.frame()

    @cached_property
    def histogram(self) -> pl.DataFrame:
        """One row per cell: its keys, and ``estimate``, the least-squares count that all answers are sums of."""
        return self._keys.with_columns(pl.Series("estimate", self._released.histogram.reshape(-1)))

    def lazy(self) -> pl.LazyFrame:
        """Return the frame as a LazyFrame; collecting it reads what was drawn once."""
        return self.frame.lazy()

    def explain(self) -> str:
        """Return what was done and why, as text."""
        return self._explained

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw the answers in the order of the queries with their 95% intervals.

        Parameters
        ----------
        path
            Where to write the chart; the suffix decides its kind (``.png``, ``.svg``, ``.pdf``). None for none.

        Returns
        -------
        matplotlib.figure.Figure
            The chart.

        Raises
        ------
        ParameterError
            matplotlib is not installed, or the path's suffix is no kind of chart.

        """
        from dpfast.charts import draw_answers

        answers, lower, upper = (self.frame[name].to_numpy() for name in ("answer", "answer_lower", "answer_upper"))
        return draw_answers(answers, (lower, upper), path)

    def __repr__(self) -> str:
        """Show the frame and what it cost."""
        return f"WorkloadRelease of {self.frame.height:,} answers; spent {self.spent}\n{self.frame}"


class WorkloadPlan(RunOnce[WorkloadRelease]):
    """A workload's release that can be run, once: made by `plan`, without looking at the data."""

    def __init__(self, blueprint: WorkloadBlueprint) -> None:
        super().__init__(blueprint)
        self._blueprint = blueprint

    def explain(self) -> str:
        """Return the strategy, sensitivity with its reason, noise, predicted error, what was considered, and charge.

        Nothing here depends on the data: it may be shown to anyone.
        """
        return explain_workload(self._blueprint)

    def to_frame(self) -> pl.DataFrame:
        """Return a frame with a row for every strategy considered, that of the least predicted error first.

        Columns: ``strategy``; ``measurements``, how many numbers it measures; ``mechanism`` and ``scale`` of their
        noise; ``rmse``, the root of the mean squared error over all queries.
        """
        return consider_frame(self._blueprint)

    def error(self, alpha: float = 0.05) -> pl.DataFrame:
        """Return how far noise will stray from the exact answers.

        Guarantee
            Each bound holds with probability 1 - alpha over the noise; what bounding contributions changes is no noise
            and not in it.

        Parameters
        ----------
        alpha
            The probability of straying further.

        Returns
        -------
        polars.DataFrame
            What each query asks; ``scale``, the standard deviation of its answer; ``one``, the bound for this query
            alone, and ``all``, those that all queries keep together.

        Raises
        ------
        ParameterError
            ``alpha`` is no number from 1e-12 to below 1.

        """
        return workload_error_frame(self._blueprint, alpha)

    def _finish(self, exact: Aggregates, entry: int) -> WorkloadRelease:
        blueprint = self._blueprint
        best = blueprint.best
        cells = draw_cells(best.strategy, best.noise, exact.measures[0], SystemRandom(), None)
        released = MatrixRelease(blueprint.workload, best.strategy, best.noise, cells, blueprint.choice)
        return WorkloadRelease(exact.keys, released, blueprint, entry)
