"""A workload over a histogram of public cells, and a budget -> which strategy is measured, with which noise."""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl

from dpfast.accounting.sensitivity import Sensitivity
from dpfast.aggregation.grouping import Aggregates
from dpfast.errors import ParameterError
from dpfast.randomness import SystemRandom
from dpfast.releases.histogram_blueprint import CONSIDERED, HistogramBlueprint, read_cells
from dpfast.releases.release import Release
from dpfast.releases.request import Request
from dpfast.releases.wished_workload import least_budget
from dpfast.releases.wishes import read_limit
from dpfast.showing import number_of
from dpfast.strategies import Choice, Considered, Strategy
from dpfast.strategies.choosing import choose_for
from dpfast.strategies.matrix_mechanism import MatrixRelease, charge_of, draw_cells

__all__ = ["WorkloadBlueprint", "draw_up_workload"]

#: So many of the strategies that were considered are named in an explanation.
_NAMED = 5
#: Counts of cells up to this are measured as they are by all strategies that are chosen.
_USUAL = 2**30


@dataclass(frozen=True, kw_only=True)
class WorkloadBlueprint(HistogramBlueprint):
    """What answering a workload by a strategy will do and cost.

    Attributes
    ----------
    choice
        The strategies that were considered, with their predicted errors, the best first.
    sensitivity
        How far a privacy unit can move the measurements of the best.

    """

    answered = ("answer", "scale", "answer_lower", "answer_upper")

    choice: Choice
    sensitivity: Sensitivity

    @property
    def best(self) -> Considered:
        """The strategy that is measured, and its noise."""
        return self.choice.best

    def explain_noise(self, *, measures: bool) -> list[str]:
        """Return the lines about cells, strategy, noise, error, and what else was considered."""
        best = self.best
        norm, steps, reason = self.sensitivity.of_noise(best.noise.mechanism)
        lines = [
            *super().explain_noise(measures=measures),
            f"  strategy      {best.strategy.name}: {number_of(len(best.strategy), 'measurement')}, least squares",
            f"  noise         {norm} sensitivity {steps:g} = {reason}; {best.noise.mechanism} noise of scale "
            f"{best.noise.scale:g}",
            f"  error         root mean square {best.rmse:.6g} over all queries, known beforehand",
        ]
        if best.strategy.largest_count < _USUAL:
            lines.append(f"  counts        cells above {best.strategy.largest_count:,} are measured as that")
        others = self.choice.considered[1:]
        if others:
            named = ", ".join(f"{one.strategy.name} {one.rmse:.5g}" for one in others[:_NAMED])
            more = f" and {len(others) - _NAMED} more" * (len(others) > _NAMED)
            lines.append(f"  considered    {named}{more}")
        return lines

    def to_frame(self) -> pl.DataFrame:
        """Return a frame with a row for every strategy that was considered, the one taken first."""
        rows = [
            (one.strategy.name, len(one.strategy), one.noise.mechanism, one.noise.scale, one.rmse)
            for one in self.choice.considered
        ]
        return pl.DataFrame(rows, schema=CONSIDERED, orient="row")

    def error(self, alpha: float) -> pl.DataFrame:
        """Return bounds of the noise of every answer: for it alone, and for all answers together (a union bound)."""
        queries = len(self.workload)
        together = alpha / queries
        if together < 1e-300:
            raise ParameterError("alpha", alpha, f"at least 1e-300 for each of {queries:,} queries")
        noise = self.best.noise
        deviations = pl.Series("scale", noise.deviation * self.best.strategy.variances(self.workload) ** 0.5)
        return self.workload.frame().with_columns(
            deviations,
            (deviations * noise.reach(alpha)).alias("one"),
            (deviations * noise.reach(together)).alias("all"),
        )

    def draw(self, exact: Aggregates, entry: int) -> Release:
        """Measure the strategy once, and return the answers that follow from it."""
        best = self.best
        cells = draw_cells(best.strategy, best.noise, exact.measures[0], SystemRandom(), None)
        drawn = MatrixRelease(self.workload, best.strategy, best.noise, cells, self.choice)
        return self.release(exact.keys, cells, drawn.frame, entry)


def draw_up_workload(request: Request) -> WorkloadBlueprint:
    """Return the blueprint of a workload's release by the strategy of least predicted error, or a given one.

    Strategy and noise are chosen together, by the error that they will make: from the workload, the budget and the
    privacy unit, which are public.
    """
    cells, mechanism, strategy = read_cells(request), request.mechanism, request.strategy
    budget = cells.budget
    if mechanism == "gaussian":
        allowed = '"auto" or "laplace" where a workload is given'
        raise ParameterError("mechanism", mechanism, allowed, "noise is chosen with the strategy, by the error of both")
    if mechanism == "laplace" and budget.kind == "rho":
        raise ParameterError("mechanism", mechanism, '"auto" beside rho, which goes furthest with Gaussian noise')
    among = [strategy] if isinstance(strategy, Strategy) else None
    # Without a delta there is no Gaussian noise.
    spendable = budget if mechanism == "auto" else replace(budget, delta_units=0)
    if request.error is not None:
        limit = read_limit(request.budget)[1]
        spendable = least_budget(request.error, cells.workload, spendable, cells.unit, among, limit)
        budget = replace(budget, units=spendable.units)
        cells = replace(cells, budget=budget)
    choice = choose_for(cells.workload, spendable, cells.unit, among)
    measured, noise = choice.best.strategy, choice.best.noise
    description = f"{number_of(len(cells.workload), 'query', 'queries')} over {cells.by}, from {measured.name}"
    return cells.blueprint(
        WorkloadBlueprint,
        request,
        charge_of(budget, noise, description),
        choice=choice,
        sensitivity=measured.sensitivity(cells.unit),
    )
