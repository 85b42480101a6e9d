"""A workload over a histogram of public cells, and a budget -> which strategy is measured, with which noise."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpfast.errors import ParameterError
from dpfast.ledger import Charge
from dpfast.queries import Sensitivity
from dpfast.releases.charged import Charged
from dpfast.releases.workload_reading import AskedWorkload
from dpfast.strategies import Choice, Considered, Strategy
from dpfast.strategies.choosing import choose_for
from dpfast.strategies.matrix_mechanism import charge_of
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


def draw_up_workload(asked: AskedWorkload, strategy: object, mechanism: object) -> WorkloadBlueprint:
    """Return the blueprint of a workload's release by the strategy of least predicted error, or a given one.

    Strategy and noise are chosen together, by the error that they will make: from the workload, the budget and the
    privacy unit, which are public.
    """
    workload, unit, budget = asked.workload, asked.unit, asked.budget
    if not isinstance(mechanism, str) or mechanism not in ("auto", "laplace"):
        allowed = '"auto" or "laplace" where a workload is given'
        raise ParameterError("mechanism", mechanism, allowed, "noise is chosen with the strategy, by the error of both")
    if mechanism == "laplace" and budget.kind == "rho":
        raise ParameterError("mechanism", mechanism, '"auto" beside rho, which goes furthest with Gaussian noise')
    among = None if isinstance(strategy, str) and strategy == "auto" else [strategy]
    if among is not None and not isinstance(strategy, Strategy):
        raise ParameterError("strategy", strategy, '"auto", "adaptive" or one of dpf.strategies')
    # Without a delta there is no Gaussian noise.
    spendable = budget if mechanism == "auto" else replace(budget, delta_units=0)
    choice = choose_for(workload, spendable, unit, among)  # type: ignore[arg-type]
    measured, noise = choice.best.strategy, choice.best.noise
    sensitivity = measured.sensitivity(unit)
    description = f"{len(workload):,} queries over {asked.by}, from {measured.name}"
    charge = charge_of(budget, noise, description)
    blueprint = WorkloadBlueprint(**asked.basics, choice=choice, sensitivity=sensitivity, charge=charge)
    return replace(blueprint, warnings=asked.warnings(blueprint))
