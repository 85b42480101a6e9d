"""What a model's measurements and selections cost, decided before the data are looked at.

The number of records alone, which is measured first, chooses among the ways that are planned here. Each of them costs
what is left of the budget at most.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from dpfast.accounting.accountants import gdp, zcdp
from dpfast.accounting.budget import Budget, Kind
from dpfast.accounting.events import Event, ExponentialMechanism, Repeated, ZeroConcentrated
from dpfast.accounting.privacy_unit import Neighbors, moved_cells
from dpfast.accounting.sensitivity import Sensitivity
from dpfast.exact.amounts import UNITS_PER_ONE, to_float
from dpfast.exact.balls import as_written, written_below
from dpfast.mechanisms.noise.integer_noise import IntegerNoise
from dpfast.synthesis.graphical.at_once import error_at_once, noise_at_once, plan_at_once
from dpfast.synthesis.graphical.candidates import Candidates
from dpfast.synthesis.residuals.planning import ResidualPlan
from dpfast.synthesis.shares import noise_for, positive_share, selection_for

__all__ = ["ModelPlan", "Split", "plan_model"]

Attributes = tuple[int, ...]

_MEND = "raise the budget, or lower rounds"
#: All parts were found by experiment on made-up tables. The number of records gets the hundredth part of the budget,
#: and a selection the tenth part of its round.
_PART_OF_RECORDS, _PART_OF_SELECTION = 100, 10
#: What single attributes may get of the rest, and how many quarters of rounds an attribute there are then; and up to
#: which mean error of theirs, were they given everything, each is chosen, before the last.
_WAYS = ((Fraction(1, 5), 12), (Fraction(3, 10), 8), (Fraction(1, 2), 6), (Fraction(4, 5), 3))
_UP_TO = (0.004, 0.02, 0.04)
#: All sets are measured at once where their mean error by that is so small.
_AT_ONCE = 0.15
#: Attributes get shares of it as powers of how many values n they have, so that the sum of all n deviations is least:
#: where 1 / deviation**2, or 1 / deviation of Laplace noise, add up to the budget.
_POWERS: dict[Kind, float] = {"rho": 2 / 3, "epsilon": 1 / 2}


@dataclass(frozen=True)
class Split:
    """How what is left after the number of records is split.

    Attributes
    ----------
    kind, part
        Of the budget; the part of single attributes.
    first
        The noise of each single attribute's counts, which are measured before the rounds.
    noise
        That of each round's measurement.
    selection
        The epsilon of each round's selection; None where there is nothing to select.
    rounds
        How many.
    amounts
        What single attributes, all selections and all measurements get, in units of the budget.

    """

    kind: Kind
    part: Fraction
    first: tuple[IntegerNoise, ...]
    noise: IntegerNoise
    selection: float | None
    rounds: int
    amounts: tuple[int, int, int]

    @property
    def events(self) -> tuple[Event, ...]:
        """What is done to the data, beside their number."""
        found: list[Event] = [Repeated(event, n) for event, n in Counter(one.event for one in self.first).items()]
        found.append(Repeated(self.noise.event, self.rounds))
        if self.selection is not None:
            found.append(Repeated(ExponentialMechanism(self.selection), self.rounds))
        return tuple(found)


@dataclass(frozen=True)
class ModelPlan:
    """The noise of the number of records, and the splits of the rest that this number chooses from.

    Guarantee
        Whichever split is chosen, its ``events`` and the number's together cost at most the budget: each share is
        rounded down, in whole units of 1e-18. Noise that is chosen by noisy numbers adds up as any other does, in
        epsilon and in rho (Rogers, Roth, Ullman, Vadhan 2016; Whitehouse, Ramdas, Rogers, Wu 2023). A budget of
        (epsilon, delta) is taken for the rho that it allows (Canonne, Kamath, Steinke 2020). ``charged`` is the most
        that any of them costs.

        Where a ledger is charged (epsilon, delta) itself, whatever is drawn, rho is mu**2 / 2 instead, of the mu-GDP
        that is (epsilon, delta)-private: more than the other. Gaussian noise costs the same in both. A selection costs
        more, pi epsilon**2 / 16 (`gdp.largest_bounded_range`). What follows the number of records has the same mu
        whichever way it chooses, so that all together have the root of the sum of the squares (Dong, Roth, Su 2022,
        theorem 3.2).

    Attributes
    ----------
    records
        The noise of the number of records; None where it is public.
    splits
        By their parts, ascending.
    at_once
        How all sets are measured at once instead, if they can be.
    sizes
        How many values each attribute has.
    amounts
        What the number of records gets of the budget that is split, and all else, in units.

    """

    records: IntegerNoise | None
    splits: tuple[Split, ...]
    at_once: ResidualPlan | None
    sizes: tuple[int, ...]
    amounts: tuple[int, int]

    @property
    def ways(self) -> list[Split | ResidualPlan]:
        """All that the number of records chooses from."""
        return [*self.splits, *([self.at_once] if self.at_once else [])]

    def events(self, way: Split | ResidualPlan) -> tuple[Event, ...]:
        """Return all that is done to the data."""
        return (*([self.records.event] if self.records else []), *way.events)

    @cached_property
    def charged(self) -> tuple[Event, ...]:
        """What ledgers are charged that add up rho or divergences: rho bounds them all."""
        if len(self.ways) == 1:
            return self.events(self.splits[0])
        most = max(zcdp.cost(self.events(way))[0] for way in self.ways)
        amount = to_float(most)
        while math.floor(as_written(amount) * UNITS_PER_ONE) < most:
            amount = math.nextafter(amount, math.inf)
        return (ZeroConcentrated(amount),)

    def choose(self, records: float) -> Split | ResidualPlan:
        """Return the way for a number of records, which is noisy or public."""
        if self.at_once and error_at_once(self._noise_at_once, records) <= _AT_ONCE:
            return self.at_once
        error = self.error(records)
        return next((split for split, most in zip(self.splits, _UP_TO, strict=False) if error <= most), self.splits[-1])

    @cached_property
    def _noise_at_once(self) -> list[float]:
        return noise_at_once(self.at_once) if self.at_once else []

    def error(self, records: float) -> float:
        """Return the mean total variation distance of single attributes, were they given everything."""
        split = self.splits[-1]
        less = math.pow(split.part, 0.5 if split.kind == "rho" else 1.0)
        each = [
            min(n * one.expected * less / (2 * records), 1.0) for n, one in zip(self.sizes, split.first, strict=True)
        ]
        return sum(each) / len(each)


def plan_model(
    budget: Budget,
    neighbors: Neighbors,
    sizes: Sequence[int],
    candidates: Candidates,
    *,
    rounds: int | None = None,
    most_cells: float = 0.0,
    together: Sequence[Attributes] = (),
    counts_records: bool = True,
    charged_whole: bool = False,
) -> ModelPlan:
    """Return the plan for attributes with so many values each.

    Parameters
    ----------
    budget
        Of everything.
    neighbors
        Which data are neighbours.
    sizes
        Of the attributes.
    candidates
        What may be measured.
    rounds
        How many sets are selected; None for as many as promise the least error.
    most_cells, together
        How many cells the model may have, and what attributes it holds together whatever is measured.
    counts_records
        Whether the number of records is measured; else it is public.
    charged_whole
        Whether an (epsilon, delta) is charged as it is, and not the events.

    """
    kind: Kind = budget.kind
    units = budget.units
    by_gdp = charged_whole and kind == "epsilon" and budget.delta_units > 0
    if kind == "epsilon" and budget.delta_units:
        largest = gdp.largest_rho_of_units if by_gdp else zcdp.largest_rho_of_units
        kind, units = "rho", largest(budget.units, budget.delta_units)
    # A charge holds its amount as a float, and is to be no more than the budget.
    units = math.floor(as_written(written_below(units)) * UNITS_PER_ONE) if units else units
    moved = moved_cells(neighbors)
    # Neighbours differ by one in one cell of a marginal, or in two of them.
    change = Sensitivity.of_answers(moved, 1, moved)
    records, share = None, 0
    if counts_records:
        share = positive_share(units // _PART_OF_RECORDS, budget, _MEND)
        records = noise_for(kind, share, change, 1, "records")[0]
        units -= share
    splits = []
    for part, quarters in _WAYS:
        own = -(-quarters * len(sizes) // 4) if rounds is None else rounds
        selects = len(candidates.sets) > 1
        splits.append(_split(budget, kind, units, part, change, sizes, own, selects=selects, by_gdp=by_gdp))
    at_once = None
    # Who asks for a number of rounds gets it. Records that are replaced are measured at once if their number is public.
    if kind == "rho" and rounds is None and (neighbors == "add_remove" or not counts_records):
        at_once = plan_at_once(tuple(sizes), candidates.asked, together, most_cells, units, neighbors)
    return ModelPlan(records, tuple(splits), at_once, tuple(sizes), (share, units))


def _split(
    budget: Budget,
    kind: Kind,
    units: int,
    part: Fraction,
    change: Sensitivity,
    sizes: Sequence[int],
    rounds: int,
    *,
    selects: bool,
    by_gdp: bool,
) -> Split:
    """Return the split that gives a part to single attributes."""
    weights = [size ** _POWERS[kind] for size in sizes]
    whole = sum(weights)
    shares = [positive_share(int(math.floor(units * part) * (own / whole)), budget, _MEND) for own in weights]
    # Attributes of one size have one share, whose noise is found once.
    noises = {share: noise_for(kind, share, change, 1, "single attributes")[0] for share in dict.fromkeys(shares)}
    left = positive_share((units - sum(shares)) // rounds, budget, _MEND)
    select = positive_share(left // _PART_OF_SELECTION, budget, _MEND) if selects else 0
    noise, _ = noise_for(kind, positive_share(left - select, budget, _MEND), change, rounds, "marginals")
    epsilon = None
    if select and by_gdp:
        epsilon = gdp.largest_bounded_range(select)
    elif select:
        epsilon = selection_for(kind, select, "exponential", rounds, "selections").epsilon
    amounts = sum(shares), rounds * select, rounds * (left - select)
    return Split(kind, part, tuple(noises[share] for share in shares), noise, epsilon, rounds, amounts)
