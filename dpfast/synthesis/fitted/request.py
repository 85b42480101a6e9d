"""From a request for an estimate of every cell to that estimate: planned by public arguments, then run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpfast.accounting.budget import Budget, ShownAmounts
from dpfast.accounting.events import Repeated
from dpfast.accounting.privacy_unit import Neighbors
from dpfast.domain.counting import OpenRecords
from dpfast.domain.domain import Domain
from dpfast.errors import ParameterError, Words
from dpfast.ledger import Ledger
from dpfast.ledger.payment import read_payment
from dpfast.randomness import SystemRandom
from dpfast.showing import number_of
from dpfast.synthesis.cell_weights import check_cells, public_weights
from dpfast.synthesis.charging import planned_charge
from dpfast.synthesis.estimate import Estimate
from dpfast.synthesis.fitted.mwem import plan_rounds, run_rounds
from dpfast.synthesis.fitted.rounds import ROUNDS, SELECTION, PaymentByRounds, Rounds
from dpfast.synthesis.ways import BYTES_OF_CELL, Way
from dpfast.workloads import marginals
from dpfast.workloads.marginals import Marginals
from dpfast.workloads.workload import WORKLOAD, Workload

__all__ = ["READING", "HistogramRequest", "groups_of", "over_domain"]

#: The stage of which the first row is read, after the charge.
READING = "reading the data"
#: Rounds, unless told otherwise.
_ROUNDS = 30


@dataclass(frozen=True)
class HistogramRequest:
    """What `mwem` measures of the counts of a domain.

    Attributes
    ----------
    domain, neighbors
        As they were given.
    rounds
        What is planned and paid for.

    """

    domain: Domain
    neighbors: Neighbors
    rounds: Rounds

    #: What is planned is the same for each ledger.
    depends_on_ledger = False

    @classmethod
    def read(
        cls,
        domain: Domain,
        workload: object,
        budget: Budget,
        rounds: object,
        selection: object,
        neighbors: Neighbors,
    ) -> HistogramRequest:
        """Read what is asked of a histogram, or refuse it."""
        queries = _read_workload(workload, domain)
        number = _ROUNDS if rounds is None else ROUNDS.read("rounds", rounds)
        mechanism = SELECTION.read("selection", selection)
        return cls(domain, neighbors, plan_rounds(queries, budget, neighbors, number, mechanism))

    def run(self, opened: OpenRecords, ledger: Ledger, dataset: object, show: Callable[[str], object]) -> Estimate:
        """Charge, count, measure and fit."""
        plan, given = self.rounds, self.rounds.shared.given

        def count() -> NDArray[np.int64]:
            show(READING)
            return opened.count()

        show("charging the ledger")
        payer = read_payment(ledger, given, None, neighbors=self.neighbors, dataset=dataset, privacy_unit="row")
        start = public_weights(None, self.domain.cells)
        payment = PaymentByRounds(payer, "at_once", plan)
        return run_rounds(
            plan,
            count,
            start,
            SystemRandom(),
            payment,
            self.neighbors,
            None,
            lambda done: show(f"{done} of {plan.rounds} rounds"),
        )

    def charge(self, accountant: str) -> ShownAmounts:
        """Return what a ledger is charged."""
        plan = self.rounds
        shared = plan.shared
        budget = shared.given if shared.is_converted and accountant == "basic" else shared.charged
        charges = [*plan.total_charges, *plan.charges_of(plan.rounds)]
        if accountant == "odometer":
            return budget.shown  # pure events, whose epsilons it adds up
        return planned_charge(accountant, budget, [Repeated(one.fact, one.count) for one in charges])

    def lines(self) -> list[str]:
        """Return what is known of the estimate, beside the ways."""
        queries, plan = self.rounds.queries.workload, self.rounds
        kind = "marginal" if isinstance(queries, Marginals) else "query"
        asked = number_of(groups_of(queries), kind, "queries" if kind == "query" else "")
        how = "each is measured" if plan.selection is None else f"{plan.rounds:,} of them are selected and measured"
        held = f"weights of {number_of(self.domain.cells, 'cell')}: {self.domain.cells * BYTES_OF_CELL / 1e6:.3g} MB"
        return [f"what may be measured: {asked}; {how}", held]

    @property
    def records_deviation(self) -> float | None:
        """The deviation of the measured number of records; None where it is public."""
        return None if self.rounds.total_noise is None else self.rounds.total_noise.deviation

    def ways(self) -> list[Way]:
        """Return the one way to measure."""
        plan = self.rounds
        whole = plan.shared.split.units
        total, selections, counts = (part / whole for part in plan.shares)
        off = plan.noise.deviation * plan.queries.step
        error95 = plan.noise.half_width(0.05) * plan.queries.step
        held = self.domain.cells * BYTES_OF_CELL / 1e6
        shares = total, 0.0, selections, counts
        return [Way("histogram", plan.rounds, shares, (off, off), error95, held, self._columns(off))]

    def _columns(self, off: float) -> tuple[float | None, ...]:
        """Return the deviation of each single column's counts, summed from those that are certainly measured."""
        queries, shape = self.rounds.queries.workload, self.domain.shape
        found: list[float | None] = [None] * len(shape)
        if self.rounds.selection is None and isinstance(queries, Marginals):
            for held in queries.attributes:
                for place in held:
                    own = off * math.sqrt(math.prod(shape[a] for a in held if a != place))
                    found[place] = own if (known := found[place]) is None else min(own, known)
        return tuple(found)


def groups_of(workload: Workload) -> int:
    """Return how many queries there are, or groups of them that are measured at once."""
    groups = workload.groups
    return len(workload) if groups is None else len(groups) - 1


def over_domain(workload: object, domain: Domain) -> Workload:
    """Return a workload, or refuse one over other cells."""
    asked = WORKLOAD.read("workload", workload)
    if asked.shape != domain.shape:
        mend = f"make it over {domain.shape}, the domain's shape"
        raise ParameterError("workload", Words(f"of shape {asked.shape}"), "over the cells of the domain", mend)
    return asked


def _read_workload(workload: object, domain: Domain) -> Workload:
    """Return what was asked, over the cells of the domain."""
    check_cells(domain.cells, "domain")
    if workload is None:
        return marginals(domain.shape, min(2, len(domain.shape)))
    return over_domain(workload, domain)
