"""How keys found in the data are selected: the rule, what it costs, and how many units a key needs to be shown."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dpfast.exact.amounts import to_float
from dpfast.ledger import Charge
from dpfast.mechanisms.keys.optimal import SelectionTable
from dpfast.mechanisms.noise.integer_noise import IntegerNoise

__all__ = [
    "KeyRule",
    "KeyShare",
    "NoisyUnits",
    "OneByOne",
    "Policy",
    "ReleasedCount",
    "RuleName",
    "UnitsNeeded",
    "Weights",
]

RuleName: TypeAlias = Literal["optimal", "count", "threshold", "weighted", "iterated", "policy"]


@dataclass(frozen=True)
class OneByOne:
    """Every key apart, by the optimal rule for one key."""

    table: SelectionTable
    name: RuleName = "optimal"


@dataclass(frozen=True)
class ReleasedCount:
    """A count that is released is the test: its noisy number is shown where it reaches the threshold.

    Attributes
    ----------
    query
        The count's name.
    place
        Its place among the parts of the blueprint.
    threshold
        In rows.

    """

    query: str
    place: int
    threshold: int
    name: RuleName = "count"


@dataclass(frozen=True)
class NoisyUnits:
    """The number of units gets noise of its own, and is compared with a threshold."""

    noise: IntegerNoise
    threshold: int
    name: RuleName = "threshold"


@dataclass(frozen=True)
class Weights:
    """Sums of weights that each unit shares among its keys get noise, round by round.

    Attributes
    ----------
    rounds
        The noise and the threshold of every round, in steps of weight.

    """

    rounds: tuple[tuple[IntegerNoise, int], ...]
    name: RuleName = "weighted"


@dataclass(frozen=True)
class Policy:
    """Sums that units add to in turn, as far as they are below a cutoff, get noise and are compared with a threshold.

    Attributes
    ----------
    noise, threshold, cutoff
        In steps of weight.

    """

    noise: IntegerNoise
    threshold: int
    cutoff: int
    name: RuleName = "policy"


KeyRule: TypeAlias = OneByOne | ReleasedCount | NoisyUnits | Weights | Policy


@dataclass(frozen=True)
class UnitsNeeded:
    """How many units a key needs to be shown with a probability of at least 1/2: from the parameters alone.

    Attributes
    ----------
    most
        Where each of these units fills its bounds least to the rule's liking: it holds ``max_groups`` keys, and one
        row in each; the others of a policy's keys are held by nobody else.
    fewest
        Where each holds this key alone, with all the rows that it may have.

    """

    most: int
    fewest: int

    @property
    def typical(self) -> float:
        """What rules are compared by: the geometric mean, whose worst regret is least while nothing else is known."""
        return math.sqrt(self.most) * math.sqrt(self.fewest)


@dataclass(frozen=True)
class KeyShare:
    """How keys are selected privately, and what selecting all of them costs.

    Attributes
    ----------
    rule
        What decides.
    keys_per_unit
        The most keys that a unit may hold.
    charges
        What it costs beside the released figures.
    needed
        How many units a key needs.

    """

    rule: KeyRule
    keys_per_unit: int
    charges: tuple[Charge, ...]
    needed: UnitsNeeded

    @property
    def epsilon_units(self) -> int:
        """Its share of epsilon."""
        return sum(charge.epsilon_units for charge in self.charges)

    @property
    def delta_units(self) -> int:
        """Its share of delta."""
        return sum(charge.delta_units for charge in self.charges)

    def explain(self) -> str:
        """Return in words how keys are selected, and how many units one needs."""
        rule, needed, kappa = self.rule, self.needed, self.keys_per_unit
        keys = f"{kappa} keys" if kappa > 1 else "one key"
        if isinstance(rule, OneByOne):
            how = f"each key by the optimal rule, over {keys} a unit"
        elif isinstance(rule, ReleasedCount):
            how = f"a group is shown where the released count {rule.query!r} is at least {rule.threshold}"
        elif isinstance(rule, NoisyUnits):
            how = (
                f"a group is shown where its number of units, with {rule.noise.mechanism} noise of scale "
                f"{rule.noise.scale:g}, is at least {rule.threshold}"
            )
        elif isinstance(rule, Policy):
            how = (
                "by weights that each unit in turn spends on those of its keys that still lack them, with "
                f"{rule.noise.mechanism} noise"
            )
        else:
            how = f"by weights that each unit shares among its keys, with {rule.rounds[0][0].mechanism} noise" + (
                f", in {len(rule.rounds)} rounds" * (len(rule.rounds) > 1)
            )
        if needed.most == needed.fewest:
            need = f"{needed.most} units"
        elif isinstance(rule, ReleasedCount):
            need = f"{needed.most} units of one row there, {needed.fewest} of all rows that they may have"
        else:
            need = f"{needed.most} units that hold {keys} each, {needed.fewest} that hold no other"
        cost = f"epsilon {to_float(self.epsilon_units):.6g}, delta {to_float(self.delta_units):.6g}"
        if isinstance(rule, ReleasedCount):
            cost = f"delta {to_float(self.delta_units):.6g} beside the count's own charge"
        return f"selected privately, {cost}: {how}; to be shown with probability 1/2 or more a key needs {need}"
