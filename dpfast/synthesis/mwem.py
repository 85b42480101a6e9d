"""MWEM: select the query that the estimate answers worst, measure it, and fit the estimate to all measurements."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.accounting.amounts import share_units
from dpfast.errors import ParameterError
from dpfast.ledger import Ledger
from dpfast.mechanisms.additive import random_source, thread_count
from dpfast.mechanisms.exponential import exponential
from dpfast.mechanisms.permute_and_flip import permute_and_flip
from dpfast.randomness import RandomSource
from dpfast.synthesis.budget import Noise, Selection, Total, charge_all, check_ledger, noise_for, read_share, selection_for
from dpfast.synthesis.estimate import Estimate
from dpfast.synthesis.exact_queries import ExactQueries, Neighbors, check_neighbors, counted
from dpfast.synthesis.marginal_model import MarginalModel
from dpfast.synthesis.model import Model, RowModel
from dpfast.workloads import Workload

__all__ = ["mwem"]

_MOST_ROUNDS = 10**6
SOFTNESS = 0.1


def mwem(
    histogram: Any,
    workload: Workload,
    epsilon: Any = None,
    rounds: int = 30,
    *,
    rho: Any = None,
    selection: str = "exponential",
    neighbors: str = "add_remove",
    total: int | None = None,
    prior: Any = None,
    replays: int = 10,
    selection_share: Any = 0.5,
    total_share: Any = 0.05,
    repeat: bool = True,
    ledger: Ledger | None = None,
    dataset: str | None = None,
    privacy_unit: str | None = None,
    random: object = None,
    threads: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> Estimate:
    """Estimate a histogram by the answers to the queries that it is estimated worst by.

    """
    relation = check_neighbors(neighbors)
    queries = ExactQueries(workload, relation)
    budget = Total.read(epsilon, rho)
    plan = _Plan(queries, budget, rounds, selection, relation, total, selection_share, total_share, repeat)
    _check_replays(replays)
    thread_count(threads, 1)
    start = _prior(prior, workload)
    check_ledger(ledger, budget, random)
    source = random_source(random)
    counted(histogram, workload.shape)  # what is wrong with its type is found before the charge
    entry = charge_all(ledger, plan.charges, neighbors, dataset, privacy_unit)
    cells = queries.checked(histogram, clamp=ledger is not None)
    return plan.run(cells, start, replays, source, threads, progress, entry)


class _Plan:
    """All that is decided before the data are looked at: shares, noise, charges."""

    def __init__(
        self,
        queries: ExactQueries,
        budget: Total,
        rounds: Any,
        selection: str,
        neighbors: Neighbors,
        total: Any,
        selection_share: Any,
        total_share: Any,
        repeat: bool,
    ) -> None:
        groups = len(queries.offsets) - 1
        most = _MOST_ROUNDS if repeat else groups
        if isinstance(rounds, bool) or not isinstance(rounds, (int, np.integer)) or not 1 <= rounds <= _MOST_ROUNDS:
            raise ParameterError("rounds", rounds, f"a whole number from 1 to {_MOST_ROUNDS}", "write rounds=30")
        if selection not in ("exponential", "permute_and_flip"):
            raise ParameterError("selection", selection, '"exponential" or "permute_and_flip"')
        self.rounds = min(int(rounds), most)
        self.queries, self.budget, self.neighbors, self.repeat = queries, budget, neighbors, bool(repeat)
        self.select = exponential if selection == "exponential" else permute_and_flip
        self.total, self.total_noise = _checked_total(total), None
        units = budget.units
        kind, name = budget.kind, repr(queries.workload)
        self.charges = []
        if neighbors == "add_remove" and self.total is None:
            own = int(units * read_share(total_share, "total_share"))
            units -= own
            self.total_noise = noise_for(kind, max(own, 1), 1, 1, 1, f"mwem on {name}: total")
            self.charges.append(self.total_noise.charge)
        part = read_share(selection_share, "selection_share")
        each = share_units(units, self.rounds)
        # With one group only, there is nothing to select.
        self.selects = groups > 1
        select = int(each * part) if self.selects else 0
        measure = each - select
        if measure < 1 or (self.selects and select < 1):
            raise ParameterError(
                kind, float(Fraction(budget.units, 10**18)), f"large enough for {self.rounds} rounds", "lower rounds"
            )
        self.selection: Selection | None = None
        if self.selects:
            self.selection = selection_for(kind, select, selection, self.rounds, f"mwem on {name}: selections")
            self.charges.append(self.selection.charge)
        description = f"mwem on {name}: measurements"
        self.noise: Noise = noise_for(kind, measure, queries.l1, queries.l2_squared, self.rounds, description)
        self.charges.append(self.noise.charge)

    def run(
        self,
        cells: NDArray[np.int64],
        start: NDArray[np.float64],
        replays: int,
        source: RandomSource,
        threads: int | None,
        progress: Callable[[int], object] | None,
        entry: int,
    ) -> Estimate:
        """Draw everything that was charged."""
        queries = self.queries
        unit = 2.0**-queries.unit_bits
        size, stray = self._total(cells, source)
        start *= size / float(start.sum())
        model = self._model(start, (size, stray))
        answers = queries.answers(cells)
        log: list[tuple[int, list[float]]] = []
        open_groups = np.ones(len(queries.offsets) - 1, np.bool_)
        complete = True
        for number in range(self.rounds):
            group = self._select(model, answers, open_groups, source, threads)
            first, last = int(queries.offsets[group]), int(queries.offsets[group + 1])
            noisy = self.noise.add(answers[first:last], source) * unit
            open_groups[group] = self.repeat
            model.measure(group, noisy, self.noise.deviation * unit)
            model.replay(replays)
            log.append((group, noisy.tolist()))
            if progress is not None and progress(number + 1) is False and number + 1 < self.rounds:
                complete = False
                break
        return Estimate(
            model.histogram(),
            queries.workload,
            self.budget.spent,
            complete=complete,
            rounds=self._frame(log, unit),
            entry=entry or None,
        )

    def _total(self, cells: NDArray[np.int64], source: RandomSource) -> tuple[float, float]:
        if self.total is not None:
            return float(max(self.total, 1)), 0.0
        exact = cells.sum(keepdims=True)
        if self.total_noise is None:
            return float(max(int(exact[0]), 1)), 0.0
        noisy = self.total_noise.add(exact, source)
        return float(max(int(noisy[0]), 1)), self.total_noise.deviation

    def _model(self, start: NDArray[np.float64], total: tuple[float, float]) -> Model:
        marginals = getattr(self.queries.workload, "attributes", None)
        if self.queries.grouped and marginals is not None:
            return MarginalModel(self.queries.workload.shape, marginals, start, total, SOFTNESS)
        return RowModel(self.queries.workload, self.queries.offsets, start, total, SOFTNESS)

    def _select(
        self,
        model: Model,
        answers: NDArray[np.int64],
        open_groups: NDArray[np.bool_],
        source: RandomSource,
        threads: int | None,
    ) -> int:
        if self.selection is None:
            return 0
        queries = self.queries
        scores = queries.scores(answers, model.answers(), self.noise.expected)
        places = np.flatnonzero(open_groups)
        epsilon, sensitivity = self.selection.epsilon, queries.score_sensitivity
        winner = self.select(scores[places], epsilon, sensitivity, random=source, threads=threads)
        return int(places[winner])

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
                "answer": pl.Series([values for _, values in log], dtype=pl.List(pl.Float64)),
                "error95": np.full(len(log), self.noise.reach() * unit),
            }
        )


def _checked_total(total: Any) -> int | None:
    if total is None:
        return None
    if isinstance(total, bool) or not isinstance(total, (int, np.integer)) or not 0 <= total <= 2**60:
        raise ParameterError("total", total, "None, or the public number of units, a whole number from 0 to 2**60")
    return int(total)


def _check_replays(replays: Any) -> None:
    if isinstance(replays, bool) or not isinstance(replays, (int, np.integer)) or not 1 <= replays <= 10**6:
        raise ParameterError("replays", replays, "a whole number from 1 to 1000000", "write for example replays=10")


def _prior(prior: Any, workload: Workload) -> NDArray[np.float64]:
    """Return public weights to start with."""
    if prior is None:
        return np.ones(workload.cells)
    weights = np.array(prior, dtype=np.float64).reshape(-1)
    if weights.size != workload.cells or not np.isfinite(weights).all() or not weights.min() > 0.0:
        raise ParameterError(
            "prior", f"of shape {np.shape(prior)}", f"{workload.cells:,} positive finite public weights, one for each cell"
        )
    return weights
