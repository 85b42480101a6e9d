"""`dpfast.integrations.spark.plan` and `release`: the one plan, ledger and release, with the work done by a cluster."""

from __future__ import annotations

import os
from inspect import signature
from typing import Annotated, Any, TypeAlias

import polars as pl

from dpfast.accounting.budget import Delta, Epsilon, Rho
from dpfast.accounting.privacy_unit import Neighbors, OwnBound
from dpfast.arguments import Special, Whole
from dpfast.errors import ParameterError
from dpfast.integrations.spark.blueprint import draw_up
from dpfast.integrations.spark.plans import SparkPlan, SparkRelease
from dpfast.integrations.spark.schemas import read_frame
from dpfast.integrations.spark.storage import Folder
from dpfast.ledger import Ledger
from dpfast.ledger.account import OwnName
from dpfast.ledger.payment import LEDGER
from dpfast.queries import Query
from dpfast.releases.planning import plan as plan_here
from dpfast.releases.planning import release as release_here
from dpfast.releases.population_intervals import AskedInterval
from dpfast.releases.request import AskedMechanism, AskedRule, By, Keys, OwnColumn, Population
from dpfast.releases.splitting import Splitting
from dpfast.releases.wishes import Limit, Wishes, limit_of
from dpfast.rows.filters import OwnFilter

__all__ = ["FILES", "OutputPath", "SparkData", "plan", "release"]

#: A pyspark.sql.DataFrame: a type that need not be there.
SparkData: TypeAlias = Annotated[
    object, Special(lambda: (5, True, 0.5, b"a", "frame", object(), [1], pl.DataFrame({"a": [1]})))
]
OutputPath: TypeAlias = Annotated[
    str | os.PathLike[str], Special(lambda: (5, True, 0.5, b"a", "", "a*", "a\0b", ["a"], object(), os.PathLike))
]
FILES = Whole(1, 100_000, mend="write for example {name}=8")


def plan(
    data: SparkData,
    by: By = None,
    *,
    path: OutputPath,
    files: Annotated[int, FILES] = 8,
    epsilon: Epsilon = None,
    delta: Delta = 0.0,
    rho: Rho = None,
    error: Wishes = None,
    budget: Limit = None,
    split: Splitting = "even",
    interval: AskedInterval = "noise",
    keys: Keys = None,
    privacy_unit: OwnColumn = None,
    max_groups: OwnBound = None,
    max_rows_per_group: OwnBound = None,
    neighbors: Neighbors = "add_remove",
    mechanism: AskedMechanism = "auto",
    key_selection: AskedRule = "auto",
    population: Population = None,
    dataset: OwnName = None,
    where: OwnFilter = None,
    **queries: Query,
) -> SparkPlan:
    """Plan a release of a Spark DataFrame by group; nothing is read, and no job is run.

    Guarantee
        That of `dpfast.plan`, which explains the parameters that are not listed here. It is about the rows of the
        frame as it is evaluated: its own expressions must give the same rows each time, and must not fail on any
        value. What each privacy unit keeps is bounded, and all groups are added up exactly, in Spark's own operators.

        The ledger is charged once, on the driver, before any job reads the data. The exact figures of groups are
        written once, each block of them encrypted under a key that is in memory alone, and deleted when the release
        is done or has failed. One job draws the noise, as a function of a fresh key and of the exact blocks: tasks
        that Spark runs twice, after a failure, a lost executor or by speculation, give the same bytes, and no two
        groups ever have the same noise (Soundness rule 26; the proof is in
        `dpfast.integrations.spark.block_keys`). Files and their order tell nothing of keys that were not selected. The
        frame that comes back reads these files, and draws nothing.

        Who operates the cluster sees more than what is released, and the guarantee is not about them: they can read
        the data. Spark's page, its event log and its progress bar show how many rows and groups its tasks handled,
        sizes of files tell about how many groups there were, and a job that fails may quote values in Spark's log. The
        keys of the noise travel to executors within the job, and Spark may write them to local disks beside the rows
        of shuffles: set ``spark.io.encryption.enabled`` and ``spark.network.crypto.enabled``. They are not in plans,
        logs or settings. Give event logs and storage the protection that the data have.

    Parameters
    ----------
    data
        A DataFrame of a session with a driver of its own, not of Spark Connect. dpfast must be installed for the
        executors' Python, in this version.
    path
        The folder that is written, on storage that all executors share; it must not exist. What is exact waits,
        encrypted, in a folder beside it whose name begins with ``_dpfast-sealed``.
    by, keys, privacy_unit, max_groups, max_rows_per_group, neighbors
        As of `dpfast.plan`. Public keys are a Polars frame.
    epsilon, delta, rho, error, budget, split, interval, mechanism, population, dataset, where
        As of `dpfast.plan`.
    files
        In how many Parquet files at most: groups are dealt out by a hash of their keys.
    key_selection
        As of `dpfast.plan`, of the rules that select each key by itself: ``"optimal"``, ``"threshold"`` and
        ``"count"``; ``"auto"`` takes the one of these that needs the fewest units.
    **queries
        Counts, sums, means, proportions, variances, histograms and distribution functions by name. Quantiles, modes
        and the most common values need all values of a group at once, and are refused.

    Returns
    -------
    SparkPlan
        With ``explain()``, ``to_frame()``, ``error()``, ``warnings`` and ``run(ledger)``.

    Raises
    ------
    ParameterError
        A parameter is not allowed.
    ColumnError
        A column is missing or of a type that does not serve.

    Examples
    --------
    >>> from pyspark.sql import SparkSession  # doctest: +SKIP
    >>> import dpfast as dpf  # doctest: +SKIP
    >>> from dpfast.integrations import spark  # doctest: +SKIP
    >>> trips = SparkSession.builder.getOrCreate().read.parquet("trips")  # doctest: +SKIP
    >>> ready = spark.plan(trips, "zone", path="noisy", n=dpf.count(), privacy_unit="row",
    ...                    epsilon=0.5, delta=1e-7)  # doctest: +SKIP
    >>> noisy = ready.run(dpf.Ledger(epsilon=1.0, delta=1e-6)).frame  # doctest: +SKIP

    """
    return _plan(locals())


def release(
    data: SparkData,
    by: By = None,
    *,
    path: OutputPath,
    ledger: Annotated[Ledger, LEDGER],
    files: Annotated[int, FILES] = 8,
    epsilon: Epsilon = None,
    delta: Delta = 0.0,
    rho: Rho = None,
    error: Wishes = None,
    budget: Limit = None,
    split: Splitting = "even",
    interval: AskedInterval = "noise",
    keys: Keys = None,
    privacy_unit: OwnColumn = None,
    max_groups: OwnBound = None,
    max_rows_per_group: OwnBound = None,
    neighbors: Neighbors = "add_remove",
    mechanism: AskedMechanism = "auto",
    key_selection: AskedRule = "auto",
    population: Population = None,
    dataset: OwnName = None,
    where: OwnFilter = None,
    **queries: Query,
) -> SparkRelease:
    """Plan a release of a Spark DataFrame and run it: `plan` and `SparkPlan.run` in one call.

    Guarantee
        That of `plan`, which explains the parameters.

    Examples
    --------
    >>> from pyspark.sql import SparkSession  # doctest: +SKIP
    >>> import dpfast as dpf  # doctest: +SKIP
    >>> from dpfast.integrations import spark  # doctest: +SKIP
    >>> trips = SparkSession.builder.getOrCreate().read.parquet("trips")  # doctest: +SKIP
    >>> ledger = dpf.Ledger(epsilon=1.0, delta=1e-6)  # doctest: +SKIP
    >>> done = spark.release(trips, "zone", path="noisy", ledger=ledger, n=dpf.count(), epsilon=0.5, delta=1e-7,
    ...                      privacy_unit="rider", max_groups=3, max_rows_per_group=10)  # doctest: +SKIP
    >>> done.frame.orderBy("n").show()  # doctest: +SKIP

    """
    asked = {name: given for name, given in locals().items() if name != "ledger"}
    if error is not None:
        asked["budget"] = limit_of(budget, LEDGER.read("ledger", ledger).accountant)
    return _plan(asked).run(ledger)


def _plan(asked: dict[str, Any]) -> SparkPlan:
    _refuse_other(asked["queries"])
    frame = read_frame(asked.pop("data"))
    folder = Folder.of(frame.sparkSession, _read_path(asked.pop("path")))
    files = FILES.read("files", asked.pop("files"))
    return SparkPlan(draw_up(frame, folder, files, asked))


def _refuse_other(queries: dict[str, Any]) -> None:
    """Refuse arguments of `dpfast.release` that Spark has no use for, by their names."""
    known = {*signature(plan_here).parameters, *signature(release_here).parameters}
    for name, given in queries.items():
        if name in known and not isinstance(given, Query):
            raise ParameterError(name, given, "left out: a release of Spark does not take it")


def _read_path(path: object) -> str:
    text = os.fspath(path) if isinstance(path, (str, os.PathLike)) and not isinstance(path, type) else None
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        allowed = "the path of a folder that does not exist yet"
        raise ParameterError("path", path, allowed, 'write for example path="noisy/2024-02-29"')
    return text
