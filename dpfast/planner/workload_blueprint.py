"""A workload over a histogram of public cells, and a budget -> which strategy is measured, with which noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from dpfast.accounting.amounts import to_decimal
from dpfast.accounting.events import Gaussian
from dpfast.aggregation.exact import Grouping, prepare
from dpfast.aggregation.sources import open_source
from dpfast.errors import ParameterError, Words
from dpfast.ledger import Charge
from dpfast.mechanisms.noise import declared_amounts
from dpfast.planner.blueprint import name_of
from dpfast.planner.caveats import caveats, read_population
from dpfast.planner.charged import Charged
from dpfast.planner.parameters import GivenBudget, read_budget, read_by, read_dataset, read_unit
from dpfast.queries import Bins, Measure, Sensitivity
from dpfast.strategies import Choice, Considered, Strategy, choose
from dpfast.workloads.workload import Workload

__all__ = ["WorkloadBlueprint", "draw_up_workload"]


@dataclass(frozen=True, kw_only=True)
class WorkloadBlueprint(Charged):
    """What answering a workload will do and cost, from schema and parameters alone.

    Attributes
    ----------
    workload
        The queries over the cells, which are the public keys in their order.
    choice
        The strategies that were considered, with their predicted errors, the best first.
    sensitivity
        How far a privacy unit can move the measurements of the best.
    charge
        What they cost, with the event that is drawn.

    """

    workload: Workload
    choice: Choice
    sensitivity: Sensitivity
    charge: Charge

    @property
    def best(self) -> Considered:
        """The strategy that is measured, and its noise."""
        return self.choice.best

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What the ledger is charged: all measurements have one noise, and are one event."""
        return (self.charge,)

    @property
    def by(self) -> str:
        """The names of the key columns."""
        return ", ".join(name_of(entry) for entry in self.aggregation.grouping.by)


def draw_up_workload(
    data: object,
    workload: Workload,
    *,
    strategy: object,
    by: str | Bins | Sequence[str | Bins] | None,
    epsilon: object,
    delta: object,
    rho: object,
    keys: object,
    privacy_unit: str | None,
    max_groups: int | None,
    max_rows_per_group: int | None,
    neighbors: str,
    mechanism: object,
    population: object,
    dataset: str | None,
    schema: Mapping[str, Any] | None,
) -> WorkloadBlueprint:
    """Return the blueprint of a workload's release; see `dpfast.plan` for the parameters.

    The strategy and its noise are chosen together, by the error that they will make: from the workload, the budget and
    the privacy unit, which are public.
    """
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
    if not isinstance(mechanism, str) or mechanism not in ("auto", "laplace"):
        allowed = '"auto" or "laplace" where a workload is given'
        raise ParameterError("mechanism", mechanism, allowed, "noise is chosen with the strategy, by the error of both")
    if mechanism == "laplace" and rho is not None:
        raise ParameterError("mechanism", mechanism, '"auto" beside rho, which goes furthest with Gaussian noise')
    unit = replace(unit, max_groups=min(unit.max_groups, workload.cells))
    budget = read_budget(epsilon, delta, rho)
    people, name = read_population(population), read_dataset(dataset, data)
    among = None if isinstance(strategy, str) and strategy == "auto" else [strategy]
    if among is not None and not isinstance(strategy, Strategy):
        raise ParameterError("strategy", strategy, '"auto" or one of dpf.strategies')

    source = open_source(data, schema=schema)
    grouping = Grouping(entries, keys, unit.column, max_groups, max_rows_per_group)
    aggregation = prepare(source, grouping, [Measure("rows")])
    choice = choose(
        workload,
        **_budget(budget, gaussian=mechanism == "auto"),
        neighbors=unit.neighbors,
        max_groups=unit.max_groups,
        max_rows_per_group=unit.max_rows_per_group,
        among=among,  # type: ignore[arg-type]
    )
    measured, noise = choice.best.strategy, choice.best.noise
    sensitivity = measured.sensitivity(unit)
    description = f"{len(workload):,} queries over {', '.join(map(name_of, entries))}, from {measured.name}"
    if budget.kind == "epsilon":
        amounts = budget.units, budget.delta_units if noise.mechanism == "gaussian" else 0
    else:
        assert isinstance(noise.event, Gaussian)
        amounts = declared_amounts(noise.event)
    # What is charged is the very event that is drawn, which costs no more than the budget (`noise_of`).
    charge = Charge(*amounts, description, noise.event)
    blueprint = WorkloadBlueprint(
        aggregation=aggregation,
        unit=unit,
        dataset=name,
        concentrated=budget.kind == "rho",
        workload=workload,
        choice=choice,
        sensitivity=sensitivity,
        charge=charge,
    )
    return replace(blueprint, warnings=caveats(blueprint.budget, people, [], data, keys))


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


def _budget(budget: GivenBudget, *, gaussian: bool) -> dict[str, Any]:
    """Return a budget as `choose` takes it: exact decimals."""
    amount = to_decimal(budget.units)
    if budget.kind == "rho":
        return {"rho": amount}
    return {"epsilon": amount, "delta": to_decimal(budget.delta_units) if gaussian and budget.delta_units else None}
