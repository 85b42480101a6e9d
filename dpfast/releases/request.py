"""What was asked of `dpfast.plan`, as it was written; what is read of it is checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal, TypeAlias

import polars as pl

from dpfast.accounting.budget import Budget, Delta, Epsilon, Rho, read_budget
from dpfast.accounting.privacy_unit import ALL_ROWS, AskedBound, Neighbors, PrivacyUnit
from dpfast.aggregation.keys import KeyEntry
from dpfast.aggregation.protocols import Engine
from dpfast.aggregation.sources import AskedEngine, Data, Schema, Source, open_data, path_of
from dpfast.arguments import Choice, Instance, Special, Whole, read_declared
from dpfast.errors import ParameterError
from dpfast.ledger.account import OwnName
from dpfast.queries import NAME, Bins, Query, adds_once
from dpfast.releases.asked_unit import ROW, check_row, read_unit
from dpfast.releases.cut_report import AskedShare
from dpfast.releases.key_share import RuleName
from dpfast.releases.population_intervals import AskedInterval
from dpfast.releases.splitting import Splitting
from dpfast.releases.wishes import Limit, Wishes, read_limit
from dpfast.rows.calendars import Calendar
from dpfast.rows.filters import Filter, OwnFilter, read_filter
from dpfast.strategies import Strategy
from dpfast.strategies.matrix_mechanism import STRATEGY
from dpfast.workloads.workload import OwnQueries

__all__ = [
    "LIMITS",
    "RULE",
    "AskedMechanism",
    "AskedRule",
    "AskedStrategy",
    "By",
    "Keys",
    "OwnColumn",
    "Population",
    "Request",
]

#: The parameters that say what is kept of a unit: "auto" where that is to be chosen.
LIMITS = ("max_groups", "max_rows_per_group")

By: TypeAlias = Annotated[
    KeyEntry | Sequence[KeyEntry] | None,
    Special(lambda: (1, 1.5, True, b"k", pl.col("k"), {"k"}, [1], [None], [["k"]], "none such"), optional=True),
]
Keys: TypeAlias = Annotated[
    pl.DataFrame | None, Instance(pl.DataFrame, "a Polars DataFrame with one column for each in by", optional=True)
]
#: A column's name, or None.
OwnColumn: TypeAlias = Annotated[str | None, replace(NAME, optional=True)]
AskedMechanism: TypeAlias = Annotated[Literal["auto", "laplace", "gaussian"], Choice(("auto", "laplace", "gaussian"))]
RULE = Choice(("auto", "optimal", "count", "threshold", "weighted", "iterated", "policy"))
AskedRule: TypeAlias = Annotated[Literal["auto"] | RuleName, RULE]
Population: TypeAlias = Annotated[int | None, Whole(1, 2**60, optional=True)]
AskedStrategy: TypeAlias = Annotated[Strategy | Literal["auto", "adaptive"], STRATEGY]


@dataclass(frozen=True, kw_only=True)
class Request:
    """The arguments of `dpfast.plan`, which has their documentation: those of a declared kind are read at once."""

    data: Data
    by: By
    epsilon: Epsilon
    delta: Delta
    rho: Rho
    error: Wishes
    budget: Limit
    split: Splitting
    interval: AskedInterval
    keys: Keys
    privacy_unit: OwnColumn
    max_groups: AskedBound
    max_rows_per_group: AskedBound
    neighbors: Neighbors
    mechanism: AskedMechanism
    key_selection: AskedRule
    population: Population
    dataset: OwnName
    schema: Schema
    engine: AskedEngine
    workload: OwnQueries
    strategy: AskedStrategy
    where: OwnFilter
    report_cut: AskedShare = None
    queries: Mapping[str, Query]
    #: What is left for the second stage of a release in two; None of what a user asks.
    rest: Budget | None = None

    def __post_init__(self) -> None:
        read_declared(self)
        if not self.read_by() and self.max_groups is None and self.privacy_unit not in (None, ROW):
            object.__setattr__(self, "max_groups", 1)  # there is one group, which has all that a unit adds
        adapts = type(self.strategy) is str and self.strategy in ("auto", "adaptive")
        if not adapts and not isinstance(self.strategy, Strategy):
            raise ParameterError("strategy", self.strategy, '"auto", "adaptive" or one of dpf.strategies')

    def read_by(self) -> tuple[KeyEntry, ...]:
        """Return the grouping columns."""
        kinds = (str, Bins, Calendar)
        entries = [] if self.by is None else [self.by] if isinstance(self.by, kinds) else self.by
        if not isinstance(entries, (list, tuple)) or not all(isinstance(entry, kinds) for entry in entries):
            allowed = "a column's name, dpf.bins(column, edges), dpf.calendar(column, part), a list of these, or None"
            raise ParameterError("by", self.by, allowed)
        return tuple(entries)

    def read_where(self) -> Filter | None:
        """Return which rows count; None for all."""
        return None if self.where is None else read_filter(self.where)

    def read_unit(self) -> PrivacyUnit:
        """Return whose presence is hidden."""
        limits = self.max_groups, self.max_rows_per_group
        return read_unit(
            self.privacy_unit, *limits, self.neighbors, counts_rows=not self.adds_once, told=self.rest is not None
        )

    @property
    def adds_once(self) -> bool:
        """Whether each query takes one number of a unit: nothing depends on how many rows it has in a group."""
        return bool(self.queries) and all(map(adds_once, self.queries.values()))

    @property
    def unit_column(self) -> str | None:
        """The column that names whose row it is, None where each row is one; limits may be open."""
        limited = self.max_groups is not None or self.max_rows_per_group is not None
        return self.privacy_unit if limited or self.privacy_unit != ROW else None

    @property
    def limits(self) -> tuple[int | None, int | None]:
        """What is kept of each unit, None where each row is one: numbers, as `read_unit` has checked."""
        groups, rows = (None if name in self.open_limits else getattr(self, name) for name in LIMITS)
        # It may be left out where it plays no role.
        return groups, ALL_ROWS if self.max_rows_per_group is None and groups is not None else rows

    @property
    def open_limits(self) -> tuple[str, ...]:
        """The names of the limits that are to be chosen privately."""
        return tuple(name for name in LIMITS if getattr(self, name) == "auto")

    @property
    def clips(self) -> bool:
        """Whether units are clipped to a norm that is chosen privately, in place of bounds."""
        return self.open_limits == LIMITS

    def read_budget(self, *, selects_keys: bool = False) -> Budget:
        """Return what is left for the second stage of a release in two, else `read_whole`."""
        return self.read_whole(selects_keys=selects_keys) if self.rest is None else self.rest

    def read_whole(self, *, selects_keys: bool = False) -> Budget:
        """Return the budget of the whole release; of wished errors 1 in place of what is not known yet."""
        if self.error is None:
            if self.budget is not None:
                raise ParameterError("budget", self.budget, "left out without error, whose cost it limits")
            return read_budget(self.epsilon, self.delta, self.rho, selects_keys=selects_keys)
        for name, given in (("epsilon", self.epsilon), ("rho", self.rho)):
            if given is not None:
                raise ParameterError(name, given, "left out where error is given, which decides it", "give one of both")
        if not isinstance(self.split, str) or self.split != "even":
            raise ParameterError("split", self.split, '"even" where error is given, which decides it', "leave it out")
        kind, _ = read_limit(self.budget)
        amounts = (1, None) if kind == "epsilon" else (None, 1)
        return read_budget(amounts[0], self.delta, amounts[1], selects_keys=selects_keys)

    @property
    def known_as(self) -> str | None:
        """The name under which the ledger knows the data; None for the ledger's own."""
        return self.dataset or path_of(self.data)

    def open(self) -> Source | Engine:
        """Return the data, of which nothing but the schema was read."""
        source = open_data(self.data, schema=self.schema, engine=self.engine)
        if self.privacy_unit == ROW:
            check_row(self.max_groups, source.schema().names())
        return source
