"""What a model's measurements and selections cost, decided before the data are looked at."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpfast.accounting.accountants import zcdp
from dpfast.accounting.budget import Budget, Kind
from dpfast.accounting.events import Event, ExponentialMechanism, Repeated
from dpfast.accounting.privacy_unit import Neighbors
from dpfast.accounting.sensitivity import Sensitivity
from dpfast.exact.amounts import UNITS_PER_ONE
from dpfast.mechanisms.noise.integer_noise import IntegerNoise
from dpfast.synthesis.shares import noise_for, positive_share, selection_for

__all__ = ["ModelPlan", "plan_model"]

#: The parts of the budget that single attributes get at first, and of each round that its selection gets.
_SHARE_OF_FIRST, _SHARE_OF_SELECTION = Fraction(3, 20), Fraction(1, 10)


@dataclass(frozen=True)
class ModelPlan:
    """Noise and selections of a number of rounds.

    Guarantee
        All ``events`` together cost at most the budget: each share is rounded down, in whole units of 1e-18. A budget
        of (epsilon, delta) is taken for the rho that it allows (Canonne, Kamath, Steinke 2020).

    Attributes
    ----------
    first
        The noise of each single attribute's counts, which are measured before the rounds.
    noise
        That of each round's measurement.
    selection
        The epsilon of each round's selection; None where there is nothing to select.
    rounds
        How many.
    events
        All that is done to the data.

    """

    first: IntegerNoise
    noise: IntegerNoise
    selection: float | None
    rounds: int
    events: tuple[Event, ...]


def plan_model(budget: Budget, neighbors: Neighbors, attributes: int, rounds: int, *, selects: bool) -> ModelPlan:
    """Return the plan for so many attributes and rounds."""
    kind: Kind = budget.kind
    units = budget.units
    if kind == "epsilon" and budget.delta_units:
        kind = "rho"
        units = zcdp.largest_rho(*(Fraction(part, UNITS_PER_ONE) for part in (budget.units, budget.delta_units)))
    moved = 1 if neighbors == "add_remove" else 2
    # Neighbours differ by one in one cell of a marginal, or in two of them.
    change = Sensitivity.of_answers(moved, 1, moved)
    mend = "lower rounds"
    each = positive_share(int(units * _SHARE_OF_FIRST) // attributes, budget, mend)
    first, _ = noise_for(kind, each, change, attributes, "single attributes")
    left = positive_share((units - each * attributes) // rounds, budget, mend)
    select = positive_share(int(left * _SHARE_OF_SELECTION), budget, mend) if selects else 0
    noise, _ = noise_for(kind, positive_share(left - select, budget, mend), change, rounds, "marginals")
    events: list[Event] = [Repeated(first.event, attributes), Repeated(noise.event, rounds)]
    epsilon = None
    if select:
        epsilon = selection_for(kind, select, "exponential", rounds, "selections").epsilon
        events.append(Repeated(ExponentialMechanism(epsilon), rounds))
    return ModelPlan(first, noise, epsilon, rounds, tuple(events))
