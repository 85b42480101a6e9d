"""What every release of a whole histogram does first: its arguments are read, its budget split, its ledger charged."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.accounting.budget import Budget, ShownAmounts, read_budget
from dpfast.accounting.events import Pure, ZeroConcentrated
from dpfast.accounting.privacy_unit import Neighbors, moved_cells, read_neighbors
from dpfast.accounting.sensitivity import Sensitivity
from dpfast.errors import ParameterError
from dpfast.exact.amounts import UNITS_PER_ONE, share_units, to_float
from dpfast.exact.balls import as_written, written_below
from dpfast.ledger import Charge
from dpfast.ledger.payment import read_payment
from dpfast.ledger.receipt import Receipt
from dpfast.mechanisms.noise.integer_noise import IntegerNoise
from dpfast.randomness import RandomSource, random_source
from dpfast.synthesis.cell_weights import histogram_shape
from dpfast.synthesis.charging import ledger_charges_whole
from dpfast.synthesis.shares import SharedBudget, noise_for
from dpfast.threads import thread_count
from dpfast.workloads.cells import Identity
from dpfast.workloads.histograms import clamped, counted, records
from dpfast.workloads.workload import WORKLOAD, Workload

__all__ = ["PARTS", "Prepared", "Task"]

PARTS = 1000
"""A budget is split into whole thousandths."""


@dataclass(frozen=True)
class Task:
    """A release of a histogram, planned before the counts are looked at.

    Attributes
    ----------
    workload
        What will be asked of the estimate.
    shared
        What was given, and what is split of it.
    neighbors
        What the guarantee is for.
    amount
        The budget as a float that, read as a decimal, is not above it.
    part_units
        A thousandth of that, rounded down.

    """

    workload: Workload
    shared: SharedBudget
    neighbors: Neighbors
    amount: float
    part_units: int

    @classmethod
    def read(
        cls,
        histogram: Any,
        workload: Workload | None,
        epsilon: object,
        delta: object,
        rho: object,
        neighbors: object,
        measurements: int,
        *,
        ledger: object = None,
        only_noise: bool = False,
    ) -> Task:
        """Read what all such releases are given; of the histogram only its shape and type.

        ``measurements`` is how many a record usually takes part in: with a delta it decides what the noise is.
        ``only_noise`` says that nothing is done to the counts but to add noise to them. Gaussian noise is then the
        least that (epsilon, delta) allows, unless ``ledger`` is charged with the measurements in their place.
        """
        relation = read_neighbors(neighbors)
        if workload is None:
            workload = Identity(histogram_shape(histogram))
        WORKLOAD.read("workload", workload)
        counted(histogram, workload.shape)  # what is wrong with its type is found before the charge
        by_gdp = only_noise and ledger_charges_whole(ledger)
        given = read_budget(epsilon, delta, rho)
        shared = SharedBudget.of(given, measurements, moved_cells(relation), by_gdp=by_gdp)
        budget = shared.split
        if budget.units < PARTS:
            raise ParameterError(budget.kind, to_float(budget.units), "at least 1e-15, to be split into thousandths")
        # An event holds its amount as a float: what is spent is at most that, read as the decimal that it denotes.
        amount = written_below(budget.units)
        whole = math.floor(as_written(amount) * UNITS_PER_ONE)
        return cls(workload, shared, relation, amount, share_units(whole, PARTS))

    @property
    def budget(self) -> Budget:
        """What is split: epsilon or rho."""
        return self.shared.split

    @property
    def spent(self) -> ShownAmounts:
        """What is spent when all of it is."""
        return self.shared.charged.shown

    @property
    def cells(self) -> int:
        """How many cells the histogram has."""
        return self.workload.cells

    @property
    def moved(self) -> int:
        """How many cells change between neighbours, by one each."""
        return moved_cells(self.neighbors)

    def units(self, spent: int) -> int:
        """Return what is left of the budget, in units of 1e-18, when so many thousandths are spent."""
        return (PARTS - spent) * self.part_units

    def noise(self, parts: int) -> IntegerNoise:
        """Return noise on counts of disjoint sets of cells that costs so many thousandths of the budget.

        Neighbours differ by one in one such count, or in two of them (`moved`), or in none.
        """
        moved = Sensitivity.of_answers(self.moved, 1, self.moved)
        return noise_for(self.budget.kind, parts * self.part_units, moved, 1, "disjoint cells")[0]

    def prepare(
        self,
        histogram: Any,
        description: str,
        ledger: object,
        dataset: object,
        privacy_unit: object,
        random: object,
        threads: object,
    ) -> Prepared:
        """Charge the whole budget, then take the counts, whose sum stays below 2**62.

        Counts out of range are moved to its ends, or refused where there is no ledger: see `clamped`.
        """
        payment = read_payment(
            ledger, self.shared.given, random, neighbors=self.neighbors, dataset=dataset, privacy_unit=privacy_unit
        )
        thread_count(threads, 1)
        source = random_source(random)
        units = self.budget.units
        if self.budget.kind == "epsilon":
            charge = Charge(units, 0, description, Pure(self.amount))
        else:
            charge = Charge(0, 0, description, ZeroConcentrated(self.amount))
        paid = self.shared.charge(payment, [charge], description)
        cells = counted(histogram, self.workload.shape)
        counts = clamped(cells, 2**62 // self.cells, clamp=payment.ledger is not None)
        public = None if self.neighbors == "add_remove" else max(float(records(histogram)), 0.0)
        return Prepared(counts, public, source, paid)


@dataclass(frozen=True)
class Prepared:
    """A histogram that was paid for.

    Attributes
    ----------
    counts
        In one dimension, all of them in range.
    records
        How many there are, where that is public, as it is where records are replaced; else None.
    source
        Where keys come from.
    paid
        What the ledger said of the charge, None without one.

    """

    counts: NDArray[np.int64] = field(repr=False)
    records: float | None
    source: RandomSource
    paid: Receipt | None
