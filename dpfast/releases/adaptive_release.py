"""A workload answered from an estimate that adapts to the data: planned, charged, drawn once."""

from __future__ import annotations

import os
from typing import Any

import polars as pl

from dpfast.aggregation.exact import Aggregates
from dpfast.releases import AdaptiveBlueprint, explain_adaptive
from dpfast.releases.running import RunOnce
from dpfast.synthesis.estimate import Estimate

__all__ = ["AdaptivePlan", "AdaptiveRelease"]


class AdaptiveRelease:
    """The answers to a workload, all from one estimate of the cells.

    Guarantee
        What `frame`, `histogram` and `estimate` hold is differentially private as `explain` says, and everything made
        of it is too (post-processing). No exact figure is kept.

    Attributes
    ----------
    frame
        One row per query: what it asks, and ``answer``. There is no interval: the error depends on the data.
    histogram
        One row per cell: its keys, and ``estimate``, the count that all answers are sums of.
    estimate
        The same as an `Estimate`: ``to_frame(n)`` makes synthetic records, ``rounds`` says what was measured.
    spent
        What this release was charged.
    entry
        The number of its charge in the ledger.

    """

    def __init__(self, keys: pl.DataFrame, estimate: Estimate, blueprint: AdaptiveBlueprint, entry: int) -> None:
        self.estimate = estimate
        self.frame = estimate.workload.frame().with_columns(pl.Series("answer", estimate.answers))
        self.histogram = keys.with_columns(pl.Series("estimate", estimate.histogram.reshape(-1)))
        self._explained = explain_adaptive(blueprint)
        self.spent = blueprint.budget
        self.entry = entry

    def lazy(self) -> pl.LazyFrame:
        """Return the frame as a LazyFrame; collecting it reads what was drawn once."""
        return self.frame.lazy()

    def explain(self) -> str:
        """Return what was done and why, as text."""
        return self._explained

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw the answers in the order of the queries, and write the chart to a path; see `Estimate.plot`."""
        return self.estimate.plot(path)

    def __repr__(self) -> str:
        """Show the frame and what it cost."""
        return f"AdaptiveRelease of {self.frame.height:,} answers; spent {self.spent}\n{self.frame}"


class AdaptivePlan(RunOnce[AdaptiveRelease]):
    """A workload's release from an estimate that adapts to the data, which can be run, once: made by `plan`."""

    def __init__(self, blueprint: AdaptiveBlueprint) -> None:
        super().__init__(blueprint)
        self._blueprint = blueprint

    def explain(self) -> str:
        """Return what will be drawn, and the charge; nothing here depends on the data."""
        return explain_adaptive(self._blueprint)

    def _finish(self, exact: Aggregates, entry: int) -> AdaptiveRelease:
        blueprint = self._blueprint
        estimate = blueprint.estimate(exact.measures[0])
        # An estimate knows what it was drawn with; what was paid is the charge for all steps.
        estimate.spent, estimate.entry = blueprint.budget, entry
        return AdaptiveRelease(exact.keys, estimate, blueprint, entry)
