"""A workload over cells that public keys stand for: what was asked of it, checked, and what both strategies share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.accounting.budget import Budget
from dpfast.accounting.privacy_unit import PrivacyUnit
from dpfast.aggregation import Grouping, Prepared, prepare
from dpfast.aggregation.keys import name_of
from dpfast.errors import ParameterError, Words
from dpfast.ledger import Charge
from dpfast.queries import Measure
from dpfast.releases.blueprint import DrawnBlueprint
from dpfast.releases.caveats import caveats
from dpfast.releases.layout import Layout
from dpfast.releases.release import Release
from dpfast.releases.request import Request
from dpfast.rows.filters import in_short
from dpfast.showing import number_of
from dpfast.synthesis.estimate import Estimate
from dpfast.workloads import Workload

__all__ = ["CONSIDERED", "Cells", "HistogramBlueprint", "read_cells"]

#: The columns of a workload's plan as a frame.
CONSIDERED = {
    "strategy": pl.String,
    "measurements": pl.Int64,
    "mechanism": pl.String,
    "scale": pl.Float64,
    "rmse": pl.Float64,
}


@dataclass(frozen=True, kw_only=True)
class HistogramBlueprint(DrawnBlueprint):
    """What answering a workload will do and cost.

    Attributes
    ----------
    workload
        The queries over the cells, which are the public keys in their order.
    charge
        What all noise costs, with the event that is drawn.

    """

    #: What stands in a release's frame beside what each query asks.
    answered: ClassVar[tuple[str, ...]]

    workload: Workload
    charge: Charge

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What the ledger is charged."""
        return (self.charge,)

    @property
    def about(self) -> str:
        """What is released."""
        shape = " x ".join(f"{length:,}" for length in self.workload.shape)
        return f"{number_of(len(self.workload), 'query', 'queries')} over {shape} cells by {', '.join(self.by)}"

    def explain_noise(self, *, measures: bool) -> list[str]:
        """Return the line about the cells, on which those about the strategy follow."""
        return [f"  cells         {self.workload.cells:,} public keys ({self.aggregation.route} route)"]

    def schema(self) -> pl.Schema:
        """Return the columns of what each query asks, and of its answer."""
        return pl.Schema({**self.workload.frame().schema, **dict.fromkeys(self.answered, pl.Float64())})

    def release(
        self,
        keys: pl.DataFrame,
        cells: NDArray[np.float64],
        frame: Callable[[], pl.DataFrame],
        entry: int,
        estimate: Estimate | None = None,
    ) -> Release:
        """Return what was drawn: the estimate of every cell, and a frame of answers that are sums of them."""
        return Release(
            _about=f"{number_of(len(self.workload), 'answer')}",
            _make_frame=frame,
            _layout=Layout(tuple(self.by), asks=len(self.schema()) - len(self.answered)),
            _unit=self.unit,
            _warnings=self.warnings,
            _explained=self.explain(),
            spent=self.budget,
            entry=entry,
            _make_histogram=partial(_estimates, keys, cells),
            _estimate=estimate,
        )


def _estimates(keys: pl.DataFrame, cells: NDArray[np.float64]) -> pl.DataFrame:
    return keys.with_columns(pl.Series("estimate", cells.reshape(-1)))


_Kind = TypeVar("_Kind", bound=HistogramBlueprint)


@dataclass(frozen=True)
class Cells:
    """What was asked of a workload, but for how it is answered.

    ``by`` names the key columns; no unit is in more groups than there are cells.
    """

    workload: Workload
    by: str
    unit: PrivacyUnit
    budget: Budget
    aggregation: Prepared

    def blueprint(self, kind: type[_Kind], request: Request, charge: Charge, **own: Any) -> _Kind:
        """Return the blueprint of one kind, with fields of its own."""
        made = kind(
            aggregation=self.aggregation,
            unit=self.unit,
            dataset=request.known_as,
            concentrated=self.budget.kind == "rho",
            workload=self.workload,
            charge=charge,
            **own,
        )
        return replace(made, warnings=caveats(request, made.budget))


def read_cells(request: Request) -> Cells:
    """Return what was asked, or refuse it; nothing but the schema of the data is looked at."""
    entries, unit = request.read_by(), request.read_unit()
    workload, keys = request.workload, request.keys
    assert workload is not None
    one_each = "with one row for each cell of the workload, in their order"
    mend = f"give a frame {one_each}"
    if not entries:
        raise ParameterError(
            "by", request.by, "the columns that say in which cell a row is", mend.replace("give", "and as keys")
        )
    if keys is None:
        raise ParameterError("keys", keys, "a Polars DataFrame where a workload is given", mend)
    if keys.height != workload.cells:
        given, allowed = (
            Words(f"of {number_of(keys.height, 'row')}"),
            f"of {number_of(workload.cells, 'row')}, one for each cell of the workload",
        )
        raise ParameterError("keys", given, allowed, mend)
    names = [name_of(entry) for entry in entries]
    _check_order(keys, names, workload)
    unit = replace(unit, max_groups=min(unit.max_groups, workload.cells))
    budget = request.read_budget()
    where = request.read_where()
    grouping = Grouping(entries, keys, unit.column, *request.limits, where=where)
    aggregation = prepare(request.open(), grouping, [Measure("rows")])
    return Cells(workload, ", ".join(names) + in_short(where), unit, budget, aggregation)


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
