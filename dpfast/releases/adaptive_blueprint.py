"""A workload and a budget -> an estimate of the cells that adapts to the data, and what it costs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.accounting.events import Pure, ZeroConcentrated
from dpfast.errors import ParameterError
from dpfast.exact.amounts import UNITS_PER_ONE, to_decimal, to_float
from dpfast.exact.balls import as_written, written_below
from dpfast.ledger import Charge
from dpfast.releases.charged import Charged
from dpfast.releases.explanation import explain_terms, explain_unit
from dpfast.releases.workload_reading import AskedWorkload
from dpfast.synthesis.choosing import estimate_histogram
from dpfast.synthesis.estimate import Estimate
from dpfast.workloads.workload import Workload

__all__ = ["AdaptiveBlueprint", "draw_up_adaptive", "explain_adaptive"]

#: An estimate splits its budget into thousandths, and these into levels.
_LEAST_UNITS = 10**6


@dataclass(frozen=True, kw_only=True)
class AdaptiveBlueprint(Charged):
    """What answering a workload from an estimate that adapts to the data will do and cost.

    Guarantee
        The estimate costs ``step_units`` for histograms of which one cell differs by one. Data that differ in one
        privacy unit are ``steps`` such changes apart: G groups of R rows make G R; a replaced unit takes as many away
        and adds as many, since rows outside all cells leave even the number of records unknown. So the release costs
        steps times the epsilon, or the square of steps times the rho (group privacy: Dwork, Roth 2014, theorem 2.2;
        Bun, Steinke 2016, proposition 27), which is charged.

    Attributes
    ----------
    workload
        The queries over the cells, which are the public keys in their order.
    steps
        See above.
    step_units
        Epsilon or rho of the estimate, in units of 1e-18.
    charge
        What all steps together cost.

    """

    workload: Workload
    steps: int
    step_units: int
    charge: Charge

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What the ledger is charged."""
        return (self.charge,)

    @property
    def step_budget(self) -> Decimal:
        """What the estimate is drawn with."""
        return to_decimal(self.step_units)

    def estimate(self, counts: NDArray[np.int64]) -> Estimate:
        """Draw an estimate of the cells; every call costs the charge.

        Counts are moved into the range that estimates take, which moves no two histograms apart.
        """
        cells = np.clip(counts, 0, 2**62 // self.workload.cells)
        budget: dict[str, Any] = {"rho" if self.concentrated else "epsilon": self.step_budget}
        return estimate_histogram(cells.reshape(self.workload.shape), self.workload, **budget)


def draw_up_adaptive(asked: AskedWorkload, mechanism: object) -> AdaptiveBlueprint:
    """Return the blueprint of a workload's release from an estimate that adapts to the data."""
    unit, budget = asked.unit, asked.budget
    if not isinstance(mechanism, str) or mechanism != "auto":
        raise ParameterError("mechanism", mechanism, '"auto" with an adaptive strategy, which draws more than noise')
    steps = unit.max_groups * unit.max_rows_per_group * (1 if unit.neighbors == "add_remove" else 2)
    # The event holds its amount as a float: what is charged is at most the budget, read as that float denotes it.
    amount = written_below(budget.units)
    whole = math.floor(as_written(amount) * UNITS_PER_ONE)
    step_units = whole // (steps if budget.kind == "epsilon" else steps**2)
    if step_units < _LEAST_UNITS:
        allowed = f"larger: a privacy unit moves up to {steps:,} rows, and each must be hidden"
        raise ParameterError(budget.kind, amount, allowed, "raise it, or lower max_groups or max_rows_per_group")
    description = f"{len(asked.workload):,} queries over {asked.by}, from an adaptive estimate"
    event = Pure(amount) if budget.kind == "epsilon" else ZeroConcentrated(amount)
    amounts = (budget.units, 0) if budget.kind == "epsilon" else (0, 0)
    charge = Charge(*amounts, description, event)
    blueprint = AdaptiveBlueprint(**asked.basics, steps=steps, step_units=step_units, charge=charge)
    return replace(blueprint, warnings=asked.warnings(blueprint))


def explain_adaptive(blueprint: AdaptiveBlueprint) -> str:
    """Return what will be drawn and why, as text."""
    workload = blueprint.workload
    shape = " x ".join(f"{length:,}" for length in workload.shape)
    kind = "rho" if blueprint.concentrated else "epsilon"
    return "\n".join(
        [
            f"Release of {len(workload):,} queries over {shape} cells by {', '.join(blueprint.by)}",
            "  privacy unit  " + explain_unit(blueprint.unit),
            f"  cells         {workload.cells:,} public keys ({blueprint.aggregation.route} route)",
            "  strategy      adaptive: a tree of boxes that splits where the records are, or what is measured whatever "
            "the data, as the queries and a noisy number of records decide",
            f"  noise         {kind} {to_float(blueprint.step_units):.6g} for each of {blueprint.steps:,} rows that "
            "neighbouring data differ by at most",
            "  error         not known beforehand, as it depends on the data; answers come without intervals",
            *explain_terms(blueprint),
        ]
    )
