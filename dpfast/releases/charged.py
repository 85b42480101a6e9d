"""What is measured at a charge."""

from __future__ import annotations

from dpfast.ledger import Charge
from dpfast.queries import Measure

__all__ = ["Charged"]


class Charged:
    """A measure with a charge of its own."""

    measure: Measure
    charge: Charge

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What it costs, in the order in which it is drawn."""
        return (self.charge,)

    @property
    def step(self) -> float:
        """What one step, or the distance between two points, is worth in the column's unit, or in seconds."""
        return float(self.measure.step)

    @property
    def epsilon_units(self) -> int:
        """Its share of epsilon."""
        return sum(charge.epsilon_units * charge.count for charge in self.charges)

    @property
    def delta_units(self) -> int:
        """Its share of delta."""
        return sum(charge.delta_units * charge.count for charge in self.charges)
