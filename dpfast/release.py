"""Plan + data + ledger -> Release: charge, aggregate, select, draw once, remember."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, NoReturn

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.drawing import draw
from dpfast.errors import LedgerError, ParameterError
from dpfast.ledger import Budget, Ledger
from dpfast.planner import Blueprint, draw_up
from dpfast.queries import Bins, Query
from dpfast.randomness import Keystream, Purpose, RandomSource, SystemRandom

__all__ = ["Plan", "Release", "plan", "release"]


class Release:
    """Released figures: computed once, the same however often they are read.

    Guarantee
        What `frame` holds is differentially private as `explain` says, and everything made of it is too
        (post-processing). No exact figure is kept, and no byte of a key that was not selected.

    Attributes
    ----------
    frame
        One row per group, sorted by key if the keys were selected: the keys, and for every query ``q`` its
        value ``q`` (Int64 for counts and sums of integers; may be negative, since cutting off at zero would
        bias sums of groups), the noise's scale ``q_scale`` and a 95% interval ``q_lower`` to ``q_upper``.
    spent
        The (epsilon, delta) that this release was charged.
    entry
        The number of its entry in the ledger.

    """

    def __init__(self, frame: pl.DataFrame, blueprint: Blueprint, entry: int) -> None:
        self._frame = frame
        self.entry = entry
        charge = blueprint.charge
        self.spent = Budget(charge.epsilon_units / 10**18, charge.delta_units / 10**18)
        self._explained = blueprint.explain()
        self._by = [entry.column if isinstance(entry, Bins) else entry for entry in blueprint.aggregation.grouping.by]
        self._queries = [planned.name for planned in blueprint.queries]

    @property
    def frame(self) -> pl.DataFrame:
        """One row per group; a copy of what is remembered, sharing its memory."""
        return self._frame.clone()

    def lazy(self) -> pl.LazyFrame:
        """Return the frame as a LazyFrame; collecting it reads what was drawn once."""
        return self.frame.lazy()

    def explain(self) -> str:
        """Return what was done and why, as text."""
        return self._explained

    def plot(self, path: str | os.PathLike[str] | None = None, *, query: str | None = None, top: int = 30) -> Any:
        """Draw one query's groups with their intervals.

        Parameters
        ----------
        path
            Where to write the chart; the suffix decides its kind (``.png``, ``.svg``, ``.pdf``). None for
            none.
        query
            The query's name; by default the first.
        top
            How many of the largest groups to show.

        Returns
        -------
        matplotlib.figure.Figure
            The chart.

        Raises
        ------
        ParameterError
            The query is not one of this release, or matplotlib is not installed.

        """
        from dpfast.charts import draw_groups

        name = self._queries[0] if query is None else query
        if name not in self._queries:
            raise ParameterError("query", query, f"one of {self._queries}")
        return draw_groups(self.frame, self._by, name, top, path)

    def __repr__(self) -> str:
        """Show the frame and what it cost."""
        spent = f"epsilon {self.spent.epsilon:g}, delta {self.spent.delta:g}"
        return f"Release of {', '.join(self._queries)}; spent {spent}\n{self.frame}"


class Plan:
    """A release that can be run, once: made by `plan`, without looking at the data."""

    def __init__(self, blueprint: Blueprint) -> None:
        self._blueprint = blueprint
        self._lock = threading.RLock()
        self._running = False
        self._ledger: Ledger | None = None
        self._release: Release | None = None
        self._entry: int | None = None

    @property
    def epsilon(self) -> float:
        """What running this plan will be charged."""
        return self._blueprint.charge.epsilon_units / 10**18

    @property
    def delta(self) -> float:
        """What running this plan will be charged."""
        return self._blueprint.charge.delta_units / 10**18

    def explain(self) -> str:
        """Return queries, sensitivities with their reasons, mechanisms, kernels, scales, errors and charge.

        Nothing here depends on the data: it may be shown to anyone.
        """
        return self._blueprint.explain()

    def run(
        self,
        ledger: Ledger,
        *,
        random: RandomSource | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> Release:
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
            The ledger is for other data or another unit; or this plan was charged to another ledger, or failed
            after it was charged.
        ParameterError
            ``ledger`` is no ledger, ``random`` was given, or a file has changed since it was planned; nothing is
            charged.

        """
        if not isinstance(ledger, Ledger):
            raise ParameterError("ledger", ledger, "a dpfast.Ledger", "write ledger = dpf.Ledger(epsilon=1.0)")
        if random is not None:
            raise ParameterError(
                "random", random, "None: a ledger accepts only fresh system randomness", "leave it out"
            )
        with self._lock:
            if self._running:
                raise LedgerError("this plan is being run; a progress callback cannot run it again")
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
                    self._release = self._run(ledger, progress or _silent)
                finally:
                    self._running = False
            return self._release

    def _run(self, ledger: Ledger, progress: Callable[[str], None]) -> Release:
        blueprint = self._blueprint
        process = os.getpid()
        blueprint.aggregation.check_source()
        progress("charging the ledger")
        self._entry = ledger.charge(
            blueprint.charge,
            dataset=blueprint.dataset or ledger.identity.dataset or "data",
            privacy_unit=blueprint.privacy_unit,
            neighbors=blueprint.unit.neighbors,
        )
        progress("reading and aggregating")
        exact = blueprint.aggregation.run(_bounding_words)
        progress("drawing the noise")
        frame = draw(blueprint, exact)
        # After the draw: whatever forked before, in a callback or a source, only one process keeps its noise.
        if os.getpid() != process:
            raise LedgerError("the process was forked during a release: one charge would have been drawn twice")
        return Release(frame, blueprint, self._entry)

    def __reduce__(self) -> NoReturn:
        raise LedgerError("a plan cannot be pickled or copied: each copy would draw noise for the same charge")


def _silent(stage: str) -> None:
    pass


def _bounding_words(count: int) -> NDArray[np.uint64]:
    """Return fresh words for choosing what a privacy unit keeps."""
    words = np.empty(count, np.uint64)
    Keystream(SystemRandom().key()).words(Purpose.BOUNDING).fill(0, words)
    return words


def plan(
    data: object,
    by: str | Bins | Sequence[str | Bins] | None = None,
    *,
    epsilon: object,
    delta: object = 0.0,
    keys: pl.DataFrame | None = None,
    privacy_unit: str | None = None,
    max_groups: int | None = None,
    max_rows_per_group: int | None = None,
    neighbors: str = "add_remove",
    mechanism: str = "auto",
    dataset: str | None = None,
    schema: Mapping[str, Any] | None = None,
    **queries: Query,
) -> Plan:
    """Plan a release of statistics by group, without looking at the data.

    Guarantee
        Running the plan is (epsilon, delta)-differentially private, where neighbouring data differ in one
        privacy unit, and charges at most that. What is checked and chosen here depends on the schema and the
        parameters alone.

    Parameters
    ----------
    data
        A Polars DataFrame or LazyFrame, a PyArrow table or record batch, a pandas DataFrame without object
        columns, or a path, glob or list of paths of Parquet, CSV or Arrow IPC files, which are scanned and must
        not change until the plan is run. Its rows are taken as they are given: what was joined or
        exploded before may put one person's data into another's rows. A LazyFrame's own expressions must not
        fail on any value (no strict casts): that a run fails is one bit about the data.
    by
        The grouping columns: strings, categoricals, integers, Booleans, dates; numbers by way of `dpf.bins`.
        Null is a key like any other. None for one group of all rows.
    epsilon, delta
        The budget of the whole release, split evenly; delta is needed to select keys and for Gaussian noise.
    keys
        A frame of public keys: each appears in the release, zeros included, and no other does. None to select
        keys privately, at a share of epsilon and delta.
    privacy_unit
        The column that says whose row it is, whose values are never shown; rows where it is null are dropped.
        None where each row is a unit.
    max_groups, max_rows_per_group
        What is kept of each unit, chosen at random: needed with ``privacy_unit``.
    neighbors
        ``"add_remove"`` or ``"replace"``.
    mechanism
        ``"laplace"``, ``"gaussian"``, or ``"auto"`` for the one of less noise.
    dataset
        The name under which the ledger knows the data; by default the path, or the ledger's own name.
    schema
        The dtypes of a CSV file's columns.
    **queries
        `dpf.count`, `dpf.sum` and `dpf.mean` by the name that they get in the release; the names of the other
        parameters are taken. A sum of integers is Int64 as long as the bounds stay below 2**24, and Float64
        beyond, like every other sum.

    Returns
    -------
    Plan
        With ``explain()`` and ``run(ledger)``.

    Raises
    ------
    ParameterError
        A parameter is not allowed.
    ColumnError
        A column is missing or of a type that does not serve.

    References
    ----------
    Dwork, Roth (2014), theorems 3.6 and 3.16 and appendix A; Desfontaines, Voss, Gipson, Mandayam (2022) for
    keys; Wilson et al. (2020) for bounding what a unit contributes.

    Examples
    --------
    >>> import dpfast as dpf
    >>> import polars as pl
    >>> trips = pl.DataFrame({"city": ["Rome", "Oslo"] * 500, "rider": range(1000)})
    >>> plan = dpf.plan(trips, by="city", rides=dpf.count(), keys=pl.DataFrame({"city": ["Oslo", "Rome", "Bonn"]}),
    ...                 epsilon=0.5)
    >>> release = plan.run(dpf.Ledger(epsilon=1.0))
    >>> release.frame["city"].to_list(), release.frame["rides_scale"].to_list()
    (['Oslo', 'Rome', 'Bonn'], [2.0, 2.0, 2.0])

    """
    return Plan(
        draw_up(
            data,
            queries,
            by=by,
            epsilon=epsilon,
            delta=delta,
            keys=keys,
            privacy_unit=privacy_unit,
            max_groups=max_groups,
            max_rows_per_group=max_rows_per_group,
            neighbors=neighbors,
            mechanism=mechanism,
            dataset=dataset,
            schema=schema,
        )
    )


def release(data: object, by: Any = None, *, ledger: Ledger, **parameters: Any) -> Release:
    """Plan a release and run it: `plan` and `Plan.run` in one call.

    Guarantee
        As of `plan` and `Plan.run`.

    Examples
    --------
    >>> import dpfast as dpf
    >>> import polars as pl
    >>> frame = pl.DataFrame({"late": [True, False] * 100})
    >>> keys = pl.DataFrame({"late": [True, False]})
    >>> ledger = dpf.Ledger(epsilon=1.0)
    >>> dpf.release(frame, by="late", keys=keys, n=dpf.count(), epsilon=0.5, ledger=ledger).frame.height
    2
    >>> ledger.remaining.epsilon
    0.5

    """
    return plan(data, by, **parameters).run(ledger)


class _CallableModule(ModuleType):
    """Lets ``dpfast.release`` be what it is called for, the function, and the module that holds it."""

    def __call__(self, *arguments: Any, **parameters: Any) -> Release:
        return release(*arguments, **parameters)


sys.modules[__name__].__class__ = _CallableModule
