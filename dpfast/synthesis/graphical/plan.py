"""What a model's measurements and selections cost, decided before the data are looked at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dpfast.accounting.accountants import zcdp
from dpfast.accounting.budget import Budget, Kind
from dpfast.accounting.events import Event, ExponentialMechanism, Repeated
from dpfast.accounting.privacy_unit import Neighbors, moved_cells
from dpfast.accounting.sensitivity import Sensitivity
from dpfast.mechanisms.noise.integer_noise import IntegerNoise
from dpfast.synthesis.shares import noise_for, positive_share, selection_for

__all__ = ["ROUNDS_PER_COLUMN", "ModelPlan", "plan_model"]

ROUNDS_PER_COLUMN = 3
"""Found by experiment on made-up tables, as are the parts of the budget."""

#: Single attributes get half of the budget at first, and a selection the tenth part of its round.
_PART_OF_FIRST, _PART_OF_SELECTION = 2, 10
#: Attributes get shares of it as powers of how many values n they have, so that the sum of all n deviations is least:
#: where 1 / deviation**2, or 1 / deviation of Laplace noise, add up to the budget.
_POWERS: dict[Kind, float] = {"rho": 2 / 3, "epsilon": 1 / 2}


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

    first: tuple[IntegerNoise, ...]
    noise: IntegerNoise
    selection: float | None
    rounds: int
    events: tuple[Event, ...]


def plan_model(budget: Budget, neighbors: Neighbors, sizes: Sequence[int], rounds: int, *, selects: bool) -> ModelPlan:
    """Return the plan for attributes with so many values each, and so many rounds."""
    kind: Kind = budget.kind
    units = budget.units
    if kind == "epsilon" and budget.delta_units:
        kind, units = "rho", zcdp.largest_rho_of_units(budget.units, budget.delta_units)
    moved = moved_cells(neighbors)
    # Neighbours differ by one in one cell of a marginal, or in two of them.
    change = Sensitivity.of_answers(moved, 1, moved)
    mend = "lower rounds"
    weights = [size ** _POWERS[kind] for size in sizes]
    whole = sum(weights)
    shares = [positive_share(int(units // _PART_OF_FIRST * (own / whole)), budget, mend) for own in weights]
    # Attributes of one size have one share, whose noise is found once.
    noises = {share: noise_for(kind, share, change, 1, "single attributes")[0] for share in dict.fromkeys(shares)}
    first = tuple(noises[share] for share in shares)
    left = positive_share((units - sum(shares)) // rounds, budget, mend)
    select = positive_share(left // _PART_OF_SELECTION, budget, mend) if selects else 0
    noise, _ = noise_for(kind, positive_share(left - select, budget, mend), change, rounds, "marginals")
    events: list[Event] = [Repeated(noises[share].event, count) for share, count in Counter(shares).items()]
    events.append(Repeated(noise.event, rounds))
    epsilon = None
    if select:
        epsilon = selection_for(kind, select, "exponential", rounds, "selections").epsilon
        events.append(Repeated(ExponentialMechanism(epsilon), rounds))
    return ModelPlan(first, noise, epsilon, rounds, tuple(events))
