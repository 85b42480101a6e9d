"""What will be done for a request and what it costs: data to aggregate, a privacy unit, noise, and charges."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from dpfast.accounting.accountants import zcdp
from dpfast.accounting.budget import Amounts, ConcentratedAmounts, ShownAmounts
from dpfast.accounting.privacy_unit import PrivacyUnit
from dpfast.aggregation import Aggregates, Prepared
from dpfast.aggregation.grouping import Words
from dpfast.aggregation.keys import name_of
from dpfast.exact.amounts import to_float
from dpfast.ledger import Charge
from dpfast.releases.release import Release
from dpfast.showing import number_of, printed

__all__ = ["Blueprint", "DrawnBlueprint"]


@dataclass(frozen=True, kw_only=True)
class Blueprint(ABC):
    """What will be aggregated, for whom, at what cost: from schema and parameters alone.

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

    aggregation: Prepared
    unit: PrivacyUnit
    dataset: str | None
    concentrated: bool
    warnings: tuple[str, ...] = ()

    @property
    @abstractmethod
    def charges(self) -> tuple[Charge, ...]:
        """What the ledger is charged, in one call."""

    @property
    @abstractmethod
    def about(self) -> str:
        """What is released, in a few words."""

    @abstractmethod
    def explain_noise(self, *, measures: bool) -> list[str]:
        """Return the lines of an explanation that say what will be drawn, and why."""

    @abstractmethod
    def to_frame(self) -> pl.DataFrame:
        """Return what `Plan.to_frame` shows."""

    @abstractmethod
    def error(self, alpha: float) -> pl.DataFrame:
        """Return what `Plan.error` shows."""

    @abstractmethod
    def schema(self) -> pl.Schema:
        """Return the schema of a release's frame, which depends on that of the data and on parameters alone."""

    def check_source(self) -> None:
        """Refuse data that changed since they were opened, and what cannot be met; called before the charge."""
        self.aggregation.check_source()

    @abstractmethod
    def carry_out(self, entry: int, words: Words, stage: Callable[[str], None]) -> Release:
        """Read the data, draw, and return what can be read: all that is left to do after the charge.

        Parameters
        ----------
        entry
            The number of the first charge in the ledger.
        words
            Fresh words, by which it is chosen what a unit keeps.
        stage
            Called with the name of each stage as it begins.

        """

    @property
    def by(self) -> tuple[str, ...]:
        """The names of the key columns."""
        return tuple(map(name_of, self.aggregation.grouping.by))

    @cached_property
    def epsilon_units(self) -> int:
        """The sum of the charges' epsilons."""
        return sum(charge.epsilon_units * charge.count for charge in self.charges)

    @cached_property
    def delta_units(self) -> int:
        """The sum of the charges' deltas."""
        return sum(charge.delta_units * charge.count for charge in self.charges)

    @cached_property
    def budget(self) -> ShownAmounts:
        """What the release costs, in the kind of budget that was given."""
        if not self.concentrated:
            return Amounts(to_float(self.epsilon_units), to_float(self.delta_units))
        rho, delta = zcdp.cost([charge.fact.times(charge.count) for charge in self.charges])
        return ConcentratedAmounts(to_float(rho), to_float(delta))

    @property
    def privacy_unit(self) -> str:
        """The privacy unit's name for the ledger."""
        return "row" if self.unit.column is None else f"column:{self.unit.column}"

    def explain_unit(self) -> str:
        """Return whose presence is hidden, in words."""
        unit = self.unit
        if unit.column is None:
            return f"one row: whoever has several is protected for each alone; neighbours: {unit.neighbors}"
        rows = "all rows" if unit.keeps_all_rows else f"{number_of(unit.max_rows_per_group, 'row')}"
        return (
            f"all rows with one value of {unit.column}: at most {number_of(unit.max_groups, 'group')} and "
            f"{rows} in each are kept, chosen at random; neighbours: {unit.neighbors}"
        )

    def explain(self, *, measures: bool = True) -> str:
        """Return what will be done and why, as text; ``measures=False`` leaves out the lines of single measures."""
        where = self.aggregation.grouping.where
        # Names come from others: none of them begins a line of its own.
        lines = [
            f"One privacy unit is {self.explain_unit()}",
            f"Release of {self.about}",
            *([] if where is None else [f"  rows          where {where.described()}"]),
            *self.explain_noise(measures=measures),
            f"  charge        {_explain_charge(self.budget)}, before any data is read",
            "  assumes       the rows of the frame as given are the unit's own: joins, windows or explodes before "
            "this plan can give one person the rows of another; at most 2**38 rows",
            *(f"  warning       {warning}" for warning in self.warnings),
        ]
        return "\n".join(map(printed, lines))


@dataclass(frozen=True, kw_only=True)
class DrawnBlueprint(Blueprint):
    """What is drawn at once, of aggregates that are known before the charge."""

    @abstractmethod
    def draw(self, exact: Aggregates, entry: int) -> Release:
        """Draw the noise for exact aggregates, and return what can be read.

        Guarantee
            Every call draws fresh noise, and so costs all charges: call it once.

        Parameters
        ----------
        exact
            What the aggregation returned.
        entry
            The number of the first charge in the ledger.

        """

    def carry_out(self, entry: int, words: Words, stage: Callable[[str], None]) -> Release:
        """Aggregate and draw."""
        stage("reading and aggregating")
        exact = self.aggregation.run(words)
        stage("drawing the noise")
        return self.draw(exact, entry)


def _explain_charge(budget: ShownAmounts) -> str:
    # Twelve digits, as amounts show themselves: shares that were rounded down are no 0.09999999999999999.
    delta = float(f"{budget.delta:.12g}")
    if isinstance(budget, Amounts):
        return f"epsilon {float(f'{budget.epsilon:.12g}')}, delta {delta}"
    rho = float(f"{budget.rho:.12g}")
    return f"rho {rho}, delta {delta} (for a ledger that adds up rho or Rényi divergences)"
