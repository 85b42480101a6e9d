"""The rounds of MWEM: what they cost, decided before the data are looked at, and how they run."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.accounting.budget import Budget
from dpfast.accounting.privacy_unit import Neighbors, moved_cells
from dpfast.accounting.sensitivity import Sensitivity
from dpfast.arguments import Choice, Flag, Whole
from dpfast.errors import BudgetExceededError, ParameterError
from dpfast.ledger import Charge
from dpfast.ledger.payment import Payment
from dpfast.ledger.receipt import entry_of
from dpfast.mechanisms.noise.integer_noise import IntegerNoise
from dpfast.mechanisms.selection.exponential import exponential
from dpfast.mechanisms.selection.permute_and_flip import permute_and_flip
from dpfast.randomness import RandomSource
from dpfast.synthesis.cell_weights import REPLAYS, TOTAL
from dpfast.synthesis.estimate import Estimate
from dpfast.synthesis.fitted.exact_workload import ExactWorkload
from dpfast.synthesis.shares import Selection, Share, SharedBudget, noise_for, positive_share, read_share, selection_for
from dpfast.weights.marginal_model import MarginalModel
from dpfast.weights.model import Model, RowModel
from dpfast.workloads.cells import Identity
from dpfast.workloads.cells import Total as TotalCount
from dpfast.workloads.marginals import Marginals

__all__ = ["PAY", "REPEAT", "ROUNDS", "SELECTION", "PaymentByRounds", "Rounds"]

PAY = Choice(("at_once", "by_round"))
REPEAT = Flag()
SELECTION = Choice(("exponential", "permute_and_flip"))

#: How softly a measurement holds the estimate, in deviations of its noise; found by experiment (see `mwem`).
SOFTNESS = 0.4
_SHARE_OF_ONE, _SHARE_OF_GROUPS = Fraction(3, 10), Fraction(3, 20)
_MOST = 10**6
ROUNDS = Whole(1, _MOST, mend="write for example {name}=30")
#: Rows of measured queries, where they are held, may take so many bytes.
_MOST_BYTES = 2**32


class PaymentByRounds:
    """How a ledger pays: for everything before anything is drawn, or for each round before it.

    What comes before the first round is charged at once; and all rounds too, unless they are paid one by one.
    """

    def __init__(self, payment: Payment, pay: object, plan: Rounds) -> None:
        self.by_round = PAY.read("pay", pay) == "by_round"
        if self.by_round and payment.ledger is None:
            raise ParameterError("pay", pay, '"at_once" without a ledger', "give ledger")
        self._payment, self._round = payment, plan.charges_of(1)
        self.has_ledger = payment.ledger is not None
        if self.by_round and plan.shared.adds_up_epsilons(payment):
            allowed = '"at_once" for an epsilon with a delta, in a ledger that adds up epsilons'
            raise ParameterError("pay", pay, allowed, "leave delta out, or keep a ledger of rho")
        charges = plan.total_charges + ([] if self.by_round else plan.charges_of(plan.rounds))
        paid = plan.shared.charge(payment, charges, plan.description) if charges else None
        self.entry = entry_of(paid)
        #: What the ledger said, where it was charged once.
        self.paid = None if self.by_round else paid

    def next_round(self) -> bool:
        """Return whether another round is paid for."""
        if self.by_round:
            try:
                entry = self._payment.charge(self._round)
            except BudgetExceededError:
                return False
            self.entry = self.entry or entry
        return True


class Rounds:
    """Shares of the budget, noise and selections for a number of rounds.

    Guarantee
        total + rounds * (selection + measurement) is at most the budget, in whole units of 1e-18: each share is
        rounded down.

    """

    def __init__(
        self,
        queries: ExactWorkload,
        given: Budget,
        rounds: int,
        *,
        selection: str,
        neighbors: Neighbors,
        total: int | None,
        replays: int,
        selection_share: Share | None,
        total_share: Share,
        repeat: bool,
        charged_whole: bool = False,
    ) -> None:
        groups = len(queries.offsets) - 1
        repeat = REPEAT.read("repeat", repeat)
        self.rounds = min(ROUNDS.read("rounds", rounds), _MOST if repeat else groups)
        self.replays = REPLAYS.read("replays", replays)
        SELECTION.read("selection", selection)
        _check_rows(queries, self.rounds)
        self.queries, self.repeat = queries, repeat
        by_gdp = charged_whole and selection == "exponential"
        self.shared = SharedBudget.of(given, self.rounds, moved_cells(neighbors), by_gdp=by_gdp)
        by_gdp = by_gdp and self.shared.is_converted
        budget = self.shared.split
        self._score_sensitivity = queries.score_sensitivity(neighbors)
        self._draw = exponential if selection == "exponential" else permute_and_flip
        self.total = TOTAL.read_optional("total", total)
        self.total_noise: IntegerNoise | None = None
        self.total_charges: list[Charge] = []
        self.description = name = f"mwem on {queries.workload!r}"
        kind, left = budget.kind, budget.units
        self.total_units = 0
        if neighbors == "add_remove" and total is None:
            part = read_share(total_share, "total_share")
            self.total_units = positive_share(int(left * part), budget, "lower rounds")
            left -= self.total_units
            self.total_noise, charge = noise_for(kind, self.total_units, Sensitivity(1, 1), 1, f"{name}: total")
            self.total_charges.append(charge)
        default = _SHARE_OF_GROUPS if queries.grouped else _SHARE_OF_ONE
        part = default if selection_share is None else read_share(selection_share, "selection_share")
        each = positive_share(left // self.rounds, budget, "lower rounds")
        # Where every group is measured, there is nothing to select.
        selects = repeat or self.rounds < groups
        select = positive_share(int(each * part), budget, "lower rounds") if selects and groups > 1 else 0
        measure = positive_share(each - select, budget, "lower rounds")
        self.round_units = select + measure
        self.selection: Selection | None = None
        if select:
            self.selection = selection_for(kind, select, selection, self.rounds, f"{name}: selections", by_gdp=by_gdp)
        self.noise, self._noise_charge = noise_for(
            kind, measure, queries.group_sensitivity(neighbors), self.rounds, f"{name}: measurements"
        )
        #: What the total, all selections and all measurements get of the budget that is split.
        self.shares = self.total_units, self.rounds * select, self.rounds * measure
        # Noise far below 1 is 0 almost surely, but a measurement needs a weight.
        self._deviation = max(self.noise.deviation, self.noise.scale)

    def charges_of(self, rounds: int) -> list[Charge]:
        """Return the charges for so many rounds."""
        parts = [*([] if self.selection is None else [self.selection.charge]), self._noise_charge]
        return [Charge(part.epsilon_units, part.delta_units, part.description, part.event, rounds) for part in parts]

    def run(
        self,
        cells: NDArray[np.int64],
        records: int | None,
        start: NDArray[np.float64],
        source: RandomSource,
        payment: PaymentByRounds,
        threads: int | None,
        progress: Callable[[int], object],
    ) -> Estimate:
        """Draw what is paid for; ``records`` is how many there are where that is public."""
        queries = self.queries
        unit = queries.step
        size, deviation = self._total(cells, records, source)
        start *= size / float(start.sum())
        model = self._model(start, (size, deviation), SOFTNESS / (self._deviation * unit))
        answers = queries.answers(cells)
        left = np.ones(len(queries.offsets) - 1, np.bool_)
        log: list[tuple[int, list[float]]] = []
        complete = True
        for number in range(1, self.rounds + 1):
            if not payment.next_round():
                complete = False
                break
            group = self._select(model, answers, np.flatnonzero(left), source, threads)
            left[group] = self.repeat
            noisy = self.noise.add(answers[queries.offsets[group] : queries.offsets[group + 1]], source)
            values = np.asarray(noisy * unit, dtype=np.float64)
            log.append((group, values.tolist()))
            model.measure(group, values, self._deviation * unit)
            model.replay(self.replays)
            if progress(number) is False and number < self.rounds:
                complete = False
                break
        # What was paid at once stays spent, whether or not it was drawn.
        paid = len(log) if payment.by_round else self.rounds
        spent = Budget(self.shared.split.kind, self.total_units + paid * self.round_units)
        if self.shared.is_converted and not payment.by_round:
            spent = self.shared.given
        frame = self._frame(log, unit)
        return Estimate(
            model.histogram(),
            queries.workload,
            spent.shown,
            complete=complete,
            rounds=frame,
            entry=payment.entry,
            paid=payment.paid,
        )

    def _total(self, cells: NDArray[np.int64], records: int | None, source: RandomSource) -> tuple[float, float]:
        """Return the number of units and the deviation of its noise; weights cannot be 0 everywhere."""
        if self.total_noise is None:
            assert records is not None
            return float(max(records, 1)), 0.0
        noisy = self.total_noise.add(cells.sum(keepdims=True), source)
        return float(max(int(noisy[0]), 1)), self.total_noise.deviation

    def _model(self, start: NDArray[np.float64], total: tuple[float, float], softness: float) -> Model:
        workload = self.queries.workload
        if isinstance(workload, Marginals):
            return MarginalModel(workload.shape, workload.attributes, start, total, softness)
        if isinstance(workload, (Identity, TotalCount)):
            kept = [tuple(range(len(workload.shape))) if isinstance(workload, Identity) else ()]
            return MarginalModel(workload.shape, kept, start, total, softness)
        return RowModel(workload, self.queries.offsets, start, total, softness)

    def _select(
        self,
        model: Model,
        answers: NDArray[np.int64],
        places: NDArray[np.int64],
        source: RandomSource,
        threads: int | None,
    ) -> int:
        if self.selection is None:
            return int(places[0])
        queries = self.queries
        scores = queries.scores(answers, model.answers(), self.noise.expected)
        epsilon, sensitivity = self.selection.epsilon, self._score_sensitivity
        return int(places[self._draw(scores[places], epsilon, sensitivity, random=source, threads=threads)])

    def _frame(self, log: list[tuple[int, list[float]]], unit: float) -> pl.DataFrame:
        """Return what was measured in every round."""
        groups = np.array([group for group, _ in log], np.int64)
        offsets = self.queries.offsets
        return pl.DataFrame(
            {
                "round": np.arange(1, len(log) + 1),
                "group": groups,
                "query": offsets[groups],
                "queries": offsets[groups + 1] - offsets[groups],
                "answers": pl.Series([values for _, values in log], dtype=pl.List(pl.Float64)),
                "error95": np.full(len(log), self.noise.half_width(0.05) * unit),
            }
        )


def _check_rows(queries: ExactWorkload, rounds: int) -> None:
    """Refuse queries whose rows would not fit into memory; of marginals and cells none are held."""
    workload = queries.workload
    if isinstance(workload, (Marginals, Identity, TotalCount)):
        return
    largest = int(np.diff(queries.offsets).max())
    needed = largest * workload.cells * (1 if workload.binary else 8 * rounds)
    if needed > _MOST_BYTES:
        allowed = f"one whose measured queries take at most {_MOST_BYTES:,} bytes as rows (this takes {needed:,})"
        raise ParameterError("workload", repr(workload), allowed, "make cells coarser, or rounds fewer")
