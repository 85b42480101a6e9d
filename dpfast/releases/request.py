"""What was asked of `dpfast.plan`, as it was written; what is read of it is checked."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import polars as pl

from dpfast.accounting.budget import Budget, read_budget
from dpfast.accounting.privacy_unit import BOUND, Neighbors, PrivacyUnit, read_neighbors
from dpfast.aggregation.sources import Source, open_source
from dpfast.errors import ParameterError
from dpfast.exact.amounts import Amount
from dpfast.queries import Bins, Query
from dpfast.releases.key_share import RuleName
from dpfast.releases.splitting import Splitting
from dpfast.strategies import Strategy
from dpfast.workloads import Workload

__all__ = ["AskedMechanism", "AskedRule", "AskedStrategy", "By", "Request", "Schema"]

By: TypeAlias = str | Bins | Sequence[str | Bins] | None
AskedMechanism: TypeAlias = Literal["auto", "laplace", "gaussian"]
AskedRule: TypeAlias = Literal["auto"] | RuleName
AskedStrategy: TypeAlias = Strategy | Literal["auto", "adaptive"]
Schema: TypeAlias = Mapping[str, pl.DataType | type[pl.DataType]]


@dataclass(frozen=True, kw_only=True)
class Request:
    """The arguments of `dpfast.plan`, which has their documentation.

    The types are what should be given. What is given is anything: it is what `read_` returns that was checked.
    """

    data: object
    by: By
    epsilon: Amount | None
    delta: Amount | None
    rho: Amount | None
    split: Splitting
    keys: pl.DataFrame | None
    privacy_unit: str | None
    max_groups: int | None
    max_rows_per_group: int | None
    neighbors: Neighbors
    mechanism: AskedMechanism
    key_selection: AskedRule
    population: int | None
    dataset: str | None
    schema: Schema | None
    workload: Workload | None
    strategy: AskedStrategy
    queries: Mapping[str, Query]

    def read_by(self) -> tuple[str | Bins, ...]:
        """Return the grouping columns."""
        by = self.by
        if not (by is None or isinstance(by, (str, Bins, list, tuple))):
            raise ParameterError("by", by, "a column's name, dpf.bins(column, edges), a list of these, or None")
        return () if by is None else (by,) if isinstance(by, (str, Bins)) else tuple(by)

    def read_unit(self) -> PrivacyUnit:
        """Return whose presence is hidden."""
        column, relation = self.privacy_unit, read_neighbors(self.neighbors)
        bounds = {"max_groups": self.max_groups, "max_rows_per_group": self.max_rows_per_group}
        if column is None:
            for name, bound in bounds.items():
                if bound is not None:
                    raise ParameterError(name, bound, "left out where each row is a unit", "give privacy_unit= as well")
            return PrivacyUnit(None, 1, 1, relation)
        if not isinstance(column, str):
            raise ParameterError("privacy_unit", column, "a column's name, or None for rows")
        for name, bound in bounds.items():
            if bound is None:
                allowed = "a whole number from 1 to 2**40 where privacy_unit is given"
                raise ParameterError(name, bound, allowed, f"write for example {name}=10")
        groups, rows = (BOUND.read(name, bound) for name, bound in bounds.items())
        return PrivacyUnit(column, groups, rows, relation)

    def read_budget(self, *, selects_keys: bool = False) -> Budget:
        """Return the budget of the whole release."""
        return read_budget(self.epsilon, self.delta, self.rho, selects_keys=selects_keys)

    def read_population(self) -> int | None:
        """Return how many units there are, as far as that is told."""
        given = self.population
        if given is None:
            return None
        if isinstance(given, bool) or not isinstance(given, (int, np.integer)) or not 1 <= given <= 2**60:
            raise ParameterError("population", given, "a whole number of at least 1, or None")
        return int(given)

    def read_dataset(self) -> str | None:
        """Return the name under which the ledger knows the data; None for the ledger's own."""
        if self.dataset is not None and (not isinstance(self.dataset, str) or not self.dataset):
            raise ParameterError("dataset", self.dataset, "a name, or None")
        return self.dataset or _path_of(self.data)

    def open(self) -> Source:
        """Return the data, of which nothing but the schema was read."""
        return open_source(self.data, schema=self.schema)


def _path_of(data: object) -> str | None:
    """Return a path as the data's name; what is in memory has none."""
    if isinstance(data, (str, os.PathLike)):
        return os.fspath(data) if isinstance(os.fspath(data), str) else None
    if isinstance(data, (list, tuple)) and data and all(isinstance(path, (str, os.PathLike)) for path in data):
        return ", ".join(str(os.fspath(path)) for path in data)
    return None
