"""A workload over cells that public keys stand for: what was asked, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from dpfast.accounting.budget import Budget, read_budget
from dpfast.accounting.privacy_unit import PrivacyUnit
from dpfast.aggregation.exact import Aggregation, Grouping, prepare
from dpfast.aggregation.keys import name_of
from dpfast.aggregation.sources import open_source
from dpfast.errors import ParameterError, Words
from dpfast.queries import Bins, Measure
from dpfast.releases.caveats import caveats, read_population
from dpfast.releases.charged import Charged
from dpfast.releases.parameters import read_by, read_dataset, read_unit
from dpfast.workloads.workload import Workload

__all__ = ["AskedWorkload", "read_workload"]


@dataclass(frozen=True)
class AskedWorkload:
    """What was asked of a plan, but for how it is answered; see `dpfast.plan` for the parameters."""

    workload: Workload
    by: str
    unit: PrivacyUnit
    budget: Budget
    aggregation: Aggregation
    dataset: str | None
    population: int | None
    data: object
    keys: pl.DataFrame

    @property
    def basics(self) -> dict[str, Any]:
        """What every blueprint of a workload has."""
        return {
            "aggregation": self.aggregation,
            "unit": self.unit,
            "dataset": self.dataset,
            "concentrated": self.budget.kind == "rho",
            "workload": self.workload,
        }

    def warnings(self, blueprint: Charged) -> tuple[str, ...]:
        """Return what the parameters give reason to warn of."""
        return caveats(blueprint.budget, self.population, [], self.data, self.keys, None)


def read_workload(
    data: object,
    workload: object,
    *,
    by: str | Bins | Sequence[str | Bins] | None,
    epsilon: object,
    delta: object,
    rho: object,
    keys: object,
    privacy_unit: str | None,
    max_groups: int | None,
    max_rows_per_group: int | None,
    neighbors: str,
    population: object,
    dataset: str | None,
    schema: Mapping[str, Any] | None,
) -> AskedWorkload:
    """Return what was asked, or refuse it; nothing but the schema of the data is looked at."""
    entries = read_by(by)
    unit = read_unit(privacy_unit, max_groups, max_rows_per_group, neighbors)
    if not isinstance(workload, Workload):
        raise ParameterError(
            "workload", workload, "one of dpf.workloads", "write for example dpf.workloads.prefix(100)"
        )
    one_each = "with one row for each cell of the workload, in their order"
    mend = f"give a frame {one_each}"
    if not entries:
        raise ParameterError(
            "by", by, "the columns that say in which cell a row is", mend.replace("give", "and as keys")
        )
    if not isinstance(keys, pl.DataFrame):
        raise ParameterError("keys", keys, "a Polars DataFrame where a workload is given", mend)
    if keys.height != workload.cells:
        given, allowed = (
            Words(f"of {keys.height:,} rows"),
            f"of {workload.cells:,} rows, one for each cell of the workload",
        )
        raise ParameterError("keys", given, allowed, mend)
    _check_order(keys, [name_of(entry) for entry in entries], workload)
    unit = replace(unit, max_groups=min(unit.max_groups, workload.cells))
    budget = read_budget(epsilon, delta, rho)
    people, name = read_population(population), read_dataset(dataset, data)
    source = open_source(data, schema=schema)
    grouping = Grouping(entries, keys, unit.column, max_groups, max_rows_per_group)
    aggregation = prepare(source, grouping, [Measure("rows")])
    named = ", ".join(map(name_of, entries))
    return AskedWorkload(workload, named, unit, budget, aggregation, name, people, data, keys)


def _check_order(keys: pl.DataFrame, by: list[str], workload: Workload) -> None:
    """Refuse keys of several columns, one for each attribute, that are not numbered as the workload's cells are."""
    if len(by) != len(workload.shape) or not set(by) <= set(keys.columns):
        return
    cells, stride = np.arange(workload.cells), workload.cells
    for name, size in zip(by, workload.shape, strict=True):
        stride //= size
        # The key of a cell must be that of the first cell with the same place along this axis.
        first = cells // stride % size * stride
        if not keys[name].eq_missing(keys[name].gather(first)).all():
            allowed = (
                f"in the order of the workload's cells, {' x '.join(map(str, workload.shape))}, the last key fastest"
            )
            mend = "sort them by the columns in by, which stand for the workload's attributes in their order"
            raise ParameterError("keys", Words(f"in another order along {name!r}"), allowed, mend)
