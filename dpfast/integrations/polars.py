"""The namespace ``dpf`` of Polars' frames and expressions: ``import dpfast.integrations.polars`` registers it.

Examples
--------
>>> import polars as pl
>>> import dpfast as dpf
>>> import dpfast.integrations.polars
>>> trips = pl.LazyFrame({"city": ["Rome", "Oslo"] * 500, "late": [5, 40] * 500})
>>> cities = pl.DataFrame({"city": ["Oslo", "Rome", "Bonn"]})
>>> ledger = dpf.Ledger(epsilon=1.0)
>>> release = trips.dpf.release(  # type: ignore[attr-defined]
...     by="city", keys=cities, privacy_unit="row", epsilon=0.5, ledger=ledger,
...     rides=pl.col("late").dpf.count(),  # type: ignore[attr-defined]
...     late=pl.col("late").dpf.sum(bounds=(0, 60)),  # type: ignore[attr-defined]
... )
>>> release.frame.columns[:3], ledger.remaining.epsilon
(['city', 'rides', 'rides_scale'], 0.5)

Type checkers do not know namespaces that are registered. A program that is checked calls the functions, which take the
same: ``dpf.release(trips, by="city", rides=dpf.count(), ...)``; or it names the class: ``Frames(trips).release(...)``.

"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any, Generic, TypeVar

import polars as pl

from dpfast.accounting.budget import Delta, Epsilon, Rho
from dpfast.accounting.privacy_unit import AskedBound, Neighbors, OwnNeighbors
from dpfast.aggregation.sources import AskedEngine, Schema
from dpfast.answering import answer
from dpfast.answering.calibration import ColumnName, OwnAmount, OwnColumnName, OwnDelta, OwnError, PerQuery
from dpfast.answering.choosing import WINNERS
from dpfast.answering.table import MISSING, TEXT, OwnMechanism
from dpfast.arguments import Numeric, Special, Threads
from dpfast.domain import Domain
from dpfast.domain.arguments import Records
from dpfast.domain.impossible import OwnImpossible
from dpfast.errors import ParameterError
from dpfast.integrations.expressions import Expressions
from dpfast.ledger import Ledger
from dpfast.ledger.account import OwnName
from dpfast.ledger.payment import LEDGER
from dpfast.mechanisms.parameters import Monotonic
from dpfast.progress import TellStages
from dpfast.queries import Query
from dpfast.releases.cut_report import AskedShare
from dpfast.releases.plan import Plan
from dpfast.releases.planning import plan, release
from dpfast.releases.population_intervals import AskedInterval
from dpfast.releases.release import Release
from dpfast.releases.request import (
    AskedMechanism,
    AskedRule,
    AskedStrategy,
    By,
    Keys,
    OwnColumn,
    Population,
)
from dpfast.releases.splitting import Splitting
from dpfast.releases.wishes import Limit, Wishes
from dpfast.rows.filters import OwnFilter
from dpfast.showing import Card, Shown, brief
from dpfast.synthesis.fitted.rounds import ROUNDS, SELECTION
from dpfast.synthesis.graphical.synthesizing import MEGABYTES, Asked
from dpfast.synthesis.planning import DOMAIN
from dpfast.synthesis.synthesis import Synthesis
from dpfast.synthesis.synthesizing import synthesize
from dpfast.workloads.workload import OwnQueries

__all__ = ["Expressions", "Frames"]

_NAME = "dpf"
_Frame = TypeVar("_Frame", bound=pl.DataFrame | pl.LazyFrame)


def _no_frames() -> Iterator[object]:
    yield from (5, True, "frame.parquet", [1], {"a": [1]}, object(), pl.Series([1]), pl.col("x"), pl.DataFrame)


class Frames(Shown, Generic[_Frame]):
    """What ``df.dpf`` and ``lf.dpf`` offer: dpfast's functions, with the frame as their first argument.

    Guarantee
        That of the functions, to which everything is handed on: `dpfast.release`, `dpfast.plan`, `dpfast.answer`,
        `dpfast.synthesize`. Nothing is read, and nothing charged, before one is called.

    Parameters
    ----------
    frame
        A Polars DataFrame or LazyFrame.

    Examples
    --------
    >>> import dpfast as dpf
    >>> ledger = dpf.Ledger(epsilon=1.0)
    >>> rows = Frames(pl.LazyFrame({"x": [1, 2, 3]}))
    >>> rows.release(n=dpf.count(), privacy_unit="row", epsilon=0.25, ledger=ledger).frame.columns
    ['n', 'n_scale', 'n_lower', 'n_upper']
    >>> ledger.remaining.epsilon
    0.75

    """

    def __init__(self, frame: Annotated[_Frame, Special(_no_frames)]) -> None:
        if not isinstance(frame, (pl.DataFrame, pl.LazyFrame)):
            raise ParameterError("frame", frame, "a Polars DataFrame or LazyFrame", "dpf.release takes other data")
        self._own = frame

    @property
    def _frame(self) -> _Frame:
        """The frame. It forgets this namespace, which it remembers: a circle would keep both in memory."""
        vars(self._own).pop(_NAME, None)
        return self._own

    def plan(
        self,
        /,
        by: By = None,
        *,
        epsilon: Epsilon = None,
        delta: Delta = 0.0,
        rho: Rho = None,
        error: Wishes = None,
        budget: Limit = None,
        split: Splitting = "even",
        interval: AskedInterval = "noise",
        keys: Keys = None,
        privacy_unit: OwnColumn = None,
        max_groups: AskedBound = None,
        max_rows_per_group: AskedBound = None,
        report_cut: AskedShare = None,
        neighbors: Neighbors = "add_remove",
        mechanism: AskedMechanism = "auto",
        key_selection: AskedRule = "auto",
        population: Population = None,
        dataset: OwnName = None,
        schema: Schema = None,
        engine: AskedEngine = "auto",
        workload: OwnQueries = None,
        strategy: AskedStrategy = "auto",
        where: OwnFilter = None,
        **queries: Query,
    ) -> Plan:
        """Plan a release of this frame: `dpfast.plan`, which has the parameters' documentation.

        Examples
        --------
        >>> import dpfast as dpf
        >>> rows = Frames(pl.DataFrame({"x": [1, 2, 3]}))
        >>> rows.plan(n=dpf.count(), privacy_unit="row", epsilon=0.25).to_frame()["scale"].item()
        4.0

        """
        return plan(self._frame, **_arguments(locals()))

    def release(
        self,
        /,
        by: By = None,
        *,
        ledger: Annotated[Ledger, LEDGER],
        epsilon: Epsilon = None,
        delta: Delta = 0.0,
        rho: Rho = None,
        error: Wishes = None,
        budget: Limit = None,
        split: Splitting = "even",
        interval: AskedInterval = "noise",
        keys: Keys = None,
        privacy_unit: OwnColumn = None,
        max_groups: AskedBound = None,
        max_rows_per_group: AskedBound = None,
        report_cut: AskedShare = None,
        neighbors: Neighbors = "add_remove",
        mechanism: AskedMechanism = "auto",
        key_selection: AskedRule = "auto",
        population: Population = None,
        dataset: OwnName = None,
        schema: Schema = None,
        engine: AskedEngine = "auto",
        workload: OwnQueries = None,
        strategy: AskedStrategy = "auto",
        where: OwnFilter = None,
        **queries: Query,
    ) -> Release:
        """Release statistics of this frame: `dpfast.release`; `dpfast.plan` has the parameters' documentation.

        Examples
        --------
        >>> import dpfast as dpf
        >>> rows, ledger = Frames(pl.DataFrame({"x": [1, 2, 3]})), dpf.Ledger(epsilon=1.0)
        >>> rows.release(n=dpf.count(), privacy_unit="row", epsilon=0.25, ledger=ledger).spent.epsilon
        0.25

        """
        return release(self._frame, **_arguments(locals()))

    def answer(
        self: Frames[pl.DataFrame],
        *,
        value: ColumnName,
        ledger: Annotated[Ledger, LEDGER],
        sensitivity: PerQuery = 1.0,
        epsilon: OwnAmount = None,
        rho: OwnAmount = None,
        error: OwnError = None,
        delta: OwnDelta = None,
        weight: OwnColumnName = None,
        mechanism: OwnMechanism = "auto",
        missing: Annotated[Numeric, MISSING] = 0,
        monotonic: Monotonic = False,
        candidates: OwnColumnName = None,
        k: Annotated[int | None, WINNERS] = None,
        name: Annotated[str, TEXT] = "answer",
        description: Annotated[str, TEXT] = "queries of a table",
        dataset: OwnName = None,
        privacy_unit: OwnName = None,
        neighbors: OwnNeighbors = None,
        threads: Threads = None,
    ) -> pl.DataFrame:
        """Answer the queries in this frame, one a row: `dpfast.answer`, which has the parameters' documentation.

        A LazyFrame is refused. How many queries there are is public and decides the charge, so they are collected
        before it; and where collecting fails on a value, the failure would have told of it for nothing.

        Examples
        --------
        >>> import dpfast as dpf
        >>> queries, ledger = pl.DataFrame({"count": [1200, 87]}), dpf.Ledger(epsilon=1.0)
        >>> Frames(queries).answer(value="count", epsilon=0.5, ledger=ledger).columns
        ['answer', 'answer_scale', 'answer_lower', 'answer_upper']

        """
        return answer(self._frame, **_arguments(locals()))

    def synthesize(
        self,
        domain: Annotated[Domain, DOMAIN],
        workload: OwnQueries | Asked = None,
        *,
        ledger: Annotated[Ledger, LEDGER],
        epsilon: Epsilon = None,
        delta: Delta = 0,
        rho: Rho = None,
        rows: Records = None,
        impossible: OwnImpossible = None,
        rounds: Annotated[int | None, replace(ROUNDS, optional=True)] = None,
        max_megabytes: Annotated[float, MEGABYTES] = 16.0,
        selection: Annotated[str, SELECTION] = "exponential",
        neighbors: Neighbors = "add_remove",
        dataset: OwnName = None,
        schema: Schema = None,
        progress: TellStages = None,
    ) -> Synthesis:
        """Make synthetic records of this frame: `dpfast.synthesize`, which has the parameters' documentation.

        Examples
        --------
        >>> import dpfast as dpf
        >>> people, ledger = pl.LazyFrame({"sex": ["f", "m"] * 500}), dpf.Ledger(epsilon=1.0)
        >>> domain = dpf.Domain({"sex": ["f", "m"]})
        >>> Frames(people).synthesize(domain, epsilon=0.5, rows=10, ledger=ledger).frame.shape
        (10, 1)

        """
        return synthesize(self._frame, **_arguments(locals()))

    def __repr__(self) -> str:
        """Name the frame's columns, if they are known: how many rows there are is private."""
        columns = f" of {brief(self._own.columns)}" if isinstance(self._own, pl.DataFrame) else ""
        return f"Frames({type(self._own).__name__}{columns})"

    def _card(self) -> Card:
        return Card([repr(self)])


def _arguments(given: dict[str, Any]) -> dict[str, Any]:
    """Return what a method was given as the function takes it: without ``self``, queries by their names."""
    queries = given.get("queries", {})
    return {**{name: value for name, value in given.items() if name not in ("self", "queries")}, **queries}


pl.api.register_dataframe_namespace(_NAME)(Frames)
pl.api.register_lazyframe_namespace(_NAME)(Frames)
