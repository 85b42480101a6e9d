"""A release by Spark, planned and done: near `dpfast.releases.plan.Plan` and `dpfast.releases.release.Release`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, NoReturn

import polars as pl

from dpfast.accounting.budget import ShownAmounts
from dpfast.arguments import Numeric
from dpfast.errors import DpfastError, LedgerError
from dpfast.integrations.spark.blueprint import ClusterBlueprint
from dpfast.integrations.spark.cluster import Cluster
from dpfast.ledger import Ledger
from dpfast.ledger.payment import LEDGER
from dpfast.releases.explanation import ALPHA
from dpfast.releases.plan import MEASURES, Plan
from dpfast.releases.release import Release
from dpfast.showing import Card, Shown

if TYPE_CHECKING:
    from pyspark.sql import DataFrame as SparkFrame

__all__ = ["SparkPlan", "SparkRelease"]


class SparkPlan(Shown):
    """A release by Spark that can be run, once: made by `plan`, without looking at the data."""

    def __init__(self, blueprint: ClusterBlueprint) -> None:
        self._plan = Plan(blueprint)
        self._cluster = blueprint.cluster

    @property
    def epsilon(self) -> float:
        """As of `dpfast.releases.plan.Plan`."""
        return self._plan.epsilon

    @property
    def delta(self) -> float:
        """The sum of the deltas of all charges."""
        return self._plan.delta

    @property
    def rho(self) -> float | None:
        """What running this plan costs a ledger that adds up rho; None for a plan made with epsilon."""
        return self._plan.rho

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the parameters, and the settings of the Spark session, give reason to warn of."""
        return self._plan.warnings

    def explain(self, *, measures: Annotated[bool, MEASURES] = True) -> str:
        """Return what will be drawn and what it costs, as `Plan.explain`; it may be shown to anyone."""
        return self._plan.explain(measures=measures)

    def to_frame(self) -> pl.DataFrame:
        """Return the noise that was planned as a Polars frame: `Plan.to_frame`."""
        return self._plan.to_frame()

    def error(self, alpha: Annotated[Numeric, ALPHA] = 0.05) -> pl.DataFrame:
        """Return bounds of the noise, before anything is charged: `Plan.error`."""
        return self._plan.error(alpha)

    def run(self, ledger: Annotated[Ledger, LEDGER]) -> SparkRelease:
        """Charge the ledger on the driver, and let the cluster aggregate, draw once, and write.

        Guarantee
            That of `Plan.run`: the charge is durable before any row is read, a second call returns the same release,
            and a run that fails after the charge leaves a dead plan.

        Raises
        ------
        ParameterError
            ``path`` exists by now, or cannot be written. Nothing is charged.
        BudgetExceededError, LedgerError
            As for `Plan.run`.
        DpfastError
            An executor lacks this version of dpfast; nothing is charged. Or a job failed: the charge stays spent.

        """
        return SparkRelease(self._plan.run(ledger), self._cluster)

    def __repr__(self) -> str:
        """Show what `Plan` shows."""
        return f"Spark: {self._plan!r}"

    def _card(self) -> Card:
        card = self._plan._card()
        return replace(card, lines=["Spark", *card.lines])

    def __reduce__(self) -> NoReturn:
        raise LedgerError("a plan cannot be pickled or copied: each copy would draw noise for the same charge")


class SparkRelease(Shown):
    """Released figures in files that Spark wrote once: the same however often they are read."""

    def __init__(self, release: Release, cluster: Cluster) -> None:
        self._release = release
        self._cluster = cluster

    @property
    def frame(self) -> SparkFrame:
        """A Spark DataFrame that reads the files: columns as of `Release.frame`, rows by a hash of their keys."""
        frame: SparkFrame = self._cluster.read()
        return frame

    @property
    def path(self) -> str:
        """The folder of the files."""
        return self._cluster.folder.path

    @property
    def spent(self) -> ShownAmounts:
        """What this release was charged, all its charges together."""
        return self._release.spent

    @property
    def entry(self) -> int:
        """The number of its first charge in the ledger."""
        return self._release.entry

    def explain(self) -> str:
        """Return what was done and why, as text."""
        return self._release.explain()

    def collect(self) -> Release:
        """Return the release with all its figures on this machine, for Polars and for charts."""
        return self._release

    def __repr__(self) -> str:
        return f"SparkRelease in {self.path}; spent {self.spent}"

    def _card(self) -> Card:
        return replace(self._release._card(), lines=[repr(self)])

    def __reduce__(self) -> NoReturn:
        raise DpfastError("a release by Spark cannot be pickled: what it released is in the files of its path")
