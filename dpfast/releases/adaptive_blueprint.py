"""A workload and a budget -> an estimate of the cells that adapts to the data, and what it costs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from functools import partial

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.accounting.events import Pure, ZeroConcentrated
from dpfast.accounting.privacy_unit import moved_cells
from dpfast.aggregation.grouping import Aggregates
from dpfast.errors import ParameterError, Words
from dpfast.exact.amounts import UNITS_PER_ONE, to_decimal, to_float
from dpfast.exact.balls import as_written, written_below
from dpfast.ledger import Charge
from dpfast.releases.histogram_blueprint import CONSIDERED, HistogramBlueprint, read_cells
from dpfast.releases.release import Release
from dpfast.releases.request import Request
from dpfast.showing import number_of
from dpfast.synthesis.choosing import estimate_histogram
from dpfast.synthesis.estimate import Estimate

__all__ = ["AdaptiveBlueprint", "draw_up_adaptive"]

#: An estimate splits its budget into thousandths, and these into levels.
_LEAST_UNITS = 10**6


@dataclass(frozen=True, kw_only=True)
class AdaptiveBlueprint(HistogramBlueprint):
    """What answering a workload from an estimate that adapts to the data will do and cost.

    Guarantee
        The estimate costs ``step_units`` for histograms of which one cell differs by one. Data that differ in one
        privacy unit are ``steps`` such changes apart: G groups of R rows make G R; a replaced unit takes as many away
        and adds as many, since rows outside all cells leave even the number of records unknown. So the release costs
        steps times the epsilon, or the square of steps times the rho (group privacy: Dwork, Roth 2014, theorem 2.2;
        Bun, Steinke 2016, proposition 27), which is charged.

    Attributes
    ----------
    steps
        See above.
    step_units
        Epsilon or rho of the estimate, in units of 1e-18; ``charge`` is what all steps together cost.

    """

    answered = ("answer",)

    steps: int
    step_units: int

    @property
    def step_budget(self) -> Decimal:
        """What the estimate is drawn with."""
        return to_decimal(self.step_units)

    def estimate(self, counts: NDArray[np.int64]) -> Estimate:
        """Draw an estimate of the cells; every call costs the charge.

        Counts are moved into the range that estimates take, which moves no two histograms apart.
        """
        cells = np.clip(counts, 0, 2**62 // self.workload.cells).reshape(self.workload.shape)
        if self.concentrated:
            return estimate_histogram(cells, self.workload, rho=self.step_budget)
        return estimate_histogram(cells, self.workload, epsilon=self.step_budget)

    def explain_noise(self, *, measures: bool) -> list[str]:
        """Return the lines about cells, strategy, noise and error."""
        return [
            *super().explain_noise(measures=measures),
            "  strategy      adaptive: a tree of boxes that splits where the records are, or what is measured whatever "
            "the data, as the queries and noisy numbers of records and of full cells decide",
            f"  noise         {'rho' if self.concentrated else 'epsilon'} {to_float(self.step_units):.6g} for each of "
            f"{number_of(self.steps, 'row')} that neighbouring data differ by at most",
            "  error         not known beforehand, as it depends on the data; answers come without intervals",
        ]

    def to_frame(self) -> pl.DataFrame:
        """Return the one row of the strategy, of which nothing else is known beforehand."""
        return pl.DataFrame({name: ["adaptive" if name == "strategy" else None] for name in CONSIDERED}, CONSIDERED)

    def error(self, alpha: float) -> pl.DataFrame:
        """Refuse: the error depends on the data."""
        allowed = '"auto" or one of dpf.strategies where errors are asked before the data are seen'
        raise ParameterError("strategy", Words('"adaptive"'), allowed, 'plan with strategy="auto"')

    def draw(self, exact: Aggregates, entry: int) -> Release:
        """Draw the estimate once, and return the answers that follow from it."""
        estimate = self.estimate(exact.measures[0])
        # An estimate knows what it was drawn with; what was paid is the charge for all steps.
        estimate.spent, estimate.entry = self.budget, entry
        return self.release(exact.keys, estimate.histogram, partial(_answers, estimate), entry, estimate)


def _answers(estimate: Estimate) -> pl.DataFrame:
    return estimate.workload.frame().with_columns(pl.Series("answer", estimate.answers))


def draw_up_adaptive(request: Request) -> AdaptiveBlueprint:
    """Return the blueprint of a workload's release from an estimate that adapts to the data."""
    cells, mechanism = read_cells(request), request.mechanism
    unit, budget = cells.unit, cells.budget
    if mechanism != "auto":
        raise ParameterError("mechanism", mechanism, '"auto" with an adaptive strategy, which draws more than noise')
    steps = unit.max_groups * unit.max_rows_per_group * moved_cells(unit.neighbors)
    # The event holds its amount as a float: what is charged is at most the budget, read as that float denotes it.
    amount = written_below(budget.units)
    whole = math.floor(as_written(amount) * UNITS_PER_ONE)
    step_units = whole // (steps if budget.kind == "epsilon" else steps**2)
    if step_units < _LEAST_UNITS:
        allowed = f"larger: a privacy unit moves up to {number_of(steps, 'row')}, and each must be hidden"
        raise ParameterError(budget.kind, amount, allowed, "raise it, or lower max_groups or max_rows_per_group")
    description = f"{number_of(len(cells.workload), 'query', 'queries')} over {cells.by}, from an adaptive estimate"
    event = Pure(amount) if budget.kind == "epsilon" else ZeroConcentrated(amount)
    amounts = (budget.units, 0) if budget.kind == "epsilon" else (0, 0)
    charge = Charge(*amounts, description, event)
    return cells.blueprint(AdaptiveBlueprint, request, charge, steps=steps, step_units=step_units)
