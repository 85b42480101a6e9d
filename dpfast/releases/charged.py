"""What every planned release has: data to aggregate, a privacy unit, and charges for a ledger."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from dpfast.accounting.accountants import zcdp
from dpfast.accounting.budget import Amounts, ConcentratedAmounts
from dpfast.accounting.privacy_unit import PrivacyUnit
from dpfast.aggregation.exact import Aggregation
from dpfast.aggregation.keys import name_of
from dpfast.exact.amounts import to_float
from dpfast.ledger import Charge

__all__ = ["Charged"]


@dataclass(frozen=True, kw_only=True)
class Charged(ABC):
    """What will be aggregated, for whom, at what cost.

    Attributes
    ----------
    aggregation
        The checked, exact aggregation, not yet run.
    unit
        Whose presence is hidden.
    dataset
        The name under which the ledger knows the data, None for the ledger's own.
    concentrated
        Whether the budget was given as rho, for ledgers that add that up.
    warnings
        What the parameters give reason to warn of.

    """

    aggregation: Aggregation
    unit: PrivacyUnit
    dataset: str | None
    concentrated: bool
    warnings: tuple[str, ...] = ()

    @property
    @abstractmethod
    def charges(self) -> tuple[Charge, ...]:
        """What the ledger is charged, in one call."""

    @property
    def by(self) -> tuple[str, ...]:
        """The names of the key columns."""
        return tuple(map(name_of, self.aggregation.grouping.by))

    @property
    def epsilon_units(self) -> int:
        """The sum of the charges' epsilons."""
        return sum(charge.epsilon_units * charge.count for charge in self.charges)

    @property
    def delta_units(self) -> int:
        """The sum of the charges' deltas."""
        return sum(charge.delta_units * charge.count for charge in self.charges)

    @property
    def budget(self) -> Amounts | ConcentratedAmounts:
        """What the release costs, in the kind of budget that was given."""
        if not self.concentrated:
            return Amounts(to_float(self.epsilon_units), to_float(self.delta_units))
        rho, delta = zcdp.cost([charge.fact.times(charge.count) for charge in self.charges])
        return ConcentratedAmounts(to_float(rho), to_float(delta))

    @property
    def privacy_unit(self) -> str:
        """The privacy unit's name for the ledger."""
        return "row" if self.unit.column is None else f"column:{self.unit.column}"
