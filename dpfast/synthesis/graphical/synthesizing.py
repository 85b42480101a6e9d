"""From a request for a model to the estimate: all that can be wrong is found, then charged, counted, and measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeAlias

import polars as pl

from dpfast.accounting.budget import Budget, ShownAmounts
from dpfast.accounting.privacy_unit import Neighbors, moved_cells
from dpfast.arguments import Number, Special
from dpfast.domain.counting import OpenRecords
from dpfast.domain.domain import Domain
from dpfast.domain.impossible import Possible
from dpfast.domain.shapes import check_size
from dpfast.errors import ParameterError, Words
from dpfast.graphical.elimination import cells_of
from dpfast.graphical.junction_tree import JunctionTree
from dpfast.graphical.support import find_support
from dpfast.ledger import Ledger
from dpfast.ledger.payment import read_payment
from dpfast.randomness import SystemRandom
from dpfast.showing import number_of
from dpfast.synthesis.charging import charge_events, planned_charge
from dpfast.synthesis.fitted.rounds import ROUNDS, SELECTION
from dpfast.synthesis.graphical.candidates import Candidates
from dpfast.synthesis.graphical.constraints import read_constraints
from dpfast.synthesis.graphical.estimate import ModelEstimate
from dpfast.synthesis.graphical.plan import ModelPlan, plan_model
from dpfast.synthesis.graphical.rounds import Measured, ModelRounds
from dpfast.synthesis.graphical.ways import ways_of
from dpfast.synthesis.residuals.contrasts import LARGEST_MARGINAL
from dpfast.synthesis.residuals.queries import blocks_of
from dpfast.synthesis.ways import BYTES_OF_CELL, Way
from dpfast.workloads.marginals import Marginals
from dpfast.workloads.workload import Workload

__all__ = ["MEGABYTES", "Asked", "ModelRequest", "asked_sets", "check_shape", "read_sets"]

Attributes = tuple[int, ...]

MEGABYTES = Number(0.01, 16_000, mend="write for example {name}=16")
#: Pairs of more cells are not measured unless they are asked for.
_LARGEST_PAIR = 10_000


def _no_sets() -> Iterator[object]:
    yield from (["sex"], [("none such",)], [()], [("sex", "sex")], [5], [[["sex"]]])


#: Sets of columns, by their names.
Asked: TypeAlias = Annotated[Sequence[Sequence[str]], Special(_no_sets)]


def asked_sets(workload: object, domain: Domain, megabytes: float) -> Candidates:
    """Return the sets of attributes that a model shall know, checked; all pairs of few enough cells by default."""
    largest = min(_LARGEST_PAIR, int(megabytes * 1e6 / BYTES_OF_CELL))
    if workload is None:
        return Candidates.pairs(domain.shape, largest)
    sets = read_sets(workload, domain)
    for places in sets:
        _check_room([domain.names[place] for place in places], places, domain.shape, megabytes)
    return Candidates(domain.shape, sets)


def check_shape(workload: Workload, domain: Domain) -> None:
    """Refuse queries over other cells than the domain's."""
    if workload.shape != domain.shape:
        mend = "make it over domain.shape"
        raise ParameterError("workload", Words(f"of shape {workload.shape}"), "over the cells of the domain", mend)


def _sets_of(workload: Workload, domain: Domain) -> list[Attributes]:
    """Return the sets of attributes that the queries of a workload are about; the total is in each of them."""
    check_shape(workload, domain)
    # Many marginals are told apart fast.
    asked = workload.attributes if isinstance(workload, Marginals) else [one.attributes for one in blocks_of(workload)]
    sets = [places for places in asked if places]
    if not sets:
        raise ParameterError("workload", Words("of the total alone"), "of some columns", "ask for marginals of k=1")
    return sets


def read_sets(workload: object, domain: Domain) -> list[Attributes]:
    """Return sets of attributes that are named, or that the queries of a workload are about, each ascending."""
    if isinstance(workload, Workload):
        return _sets_of(workload, domain)
    allowed = "None, a workload of dpfast.workloads, or a list of tuples of the domain's columns, each once"
    mend = 'for more cells than a histogram can have, write for example [("age", "sex"), ("age", "city")]'
    if not isinstance(workload, (list, tuple)) or not workload:
        raise ParameterError("workload", workload, allowed, mend)
    sets = []
    for held in workload:
        names = list(held) if isinstance(held, (list, tuple)) else []
        known = [name for name in names if isinstance(name, str) and name in domain.names]
        if not names or len(known) < len(names) or len(set(known)) < len(known):
            raise ParameterError("workload", held, allowed, mend)
        sets.append(tuple(sorted(domain.names.index(name) for name in known)))
    return sets


def _check_room(held: object, places: Attributes, sizes: tuple[int, ...], megabytes: float) -> None:
    """Refuse a set of columns whose counts no model has room for: it would be paid for, and never be measured."""
    cells = cells_of(sizes, places) + sum(size for place, size in enumerate(sizes) if place not in places)
    if cells * BYTES_OF_CELL > megabytes * 1e6:
        allowed = f"of sets that fit beside all columns into max_megabytes={megabytes:g}"
        mend = "raise max_megabytes, or name fewer columns together"
        if cells_of(sizes, places) <= LARGEST_MARGINAL:
            mend += "; dpf.release_marginals counts it, and dpf.fit_marginals makes such counts agree, without a model"
        raise ParameterError("workload", held, allowed, mend)


def _read_possible(
    domain: Domain, candidates: Candidates, impossible: object, megabytes: float
) -> tuple[Possible, ...]:
    """Return which cells records can be in, or refuse what no model has room for, and what leaves no record at all."""
    most, enlarge = megabytes * 1e6 / BYTES_OF_CELL, "raise max_megabytes"
    possible = read_constraints(domain, impossible, most, enlarge)
    if not possible:
        return ()
    tree = JunctionTree.holding(domain.shape, [one.attributes for one in possible])
    if tree.cells > most:
        given = Words(f"of {tree.cells:,} cells in a model of all columns")
        raise ParameterError("impossible", given, f"of at most {int(most):,} cells", f"{enlarge}, or say less")
    if all(tree.cells_with([one.attributes for one in possible], candidates.asked) > most):
        given = Words("of so many columns that no set of the workload has room beside them")
        raise ParameterError("impossible", given, f"of fewer columns in {int(most):,} cells", enlarge)
    if not find_support(tree, possible)[0].any():
        raise ParameterError("impossible", Words("true of every record"), "false of some record", "leave one out")
    return possible


@dataclass(frozen=True)
class ModelRequest:
    """What was asked for, checked and planned before a row is read."""

    domain: Domain
    candidates: Candidates
    most_cells: float
    budget: Budget
    neighbors: Neighbors
    plan: ModelPlan
    possible: tuple[Possible, ...] = ()

    @classmethod
    def read(
        cls,
        domain: Domain,
        candidates: Candidates,
        megabytes: float,
        budget: Budget,
        rounds: object,
        selection: object,
        relation: Neighbors,
        impossible: object = None,
        *,
        charged_whole: bool = True,
    ) -> ModelRequest:
        """Read what a model is asked for; ``charged_whole`` says how its ledger is charged (`charges_whole`)."""
        if SELECTION.read("selection", selection) != "exponential":
            raise ParameterError("selection", selection, '"exponential" for a model', "leave it out")
        number = None if rounds is None else ROUNDS.read("rounds", rounds)
        most_cells = megabytes * 1e6 / BYTES_OF_CELL
        least = sum(domain.shape)
        if least > most_cells:
            needed = Words(f"{megabytes:g}, beside columns of {least:,} values together")
            allowed = f"at least {math.ceil(least * BYTES_OF_CELL / 1e4) / 100:g}"
            raise ParameterError("max_megabytes", needed, allowed, "raise it, or declare fewer values")
        possible = _read_possible(domain, candidates, impossible, megabytes)
        # All of them are counted, whichever are measured.
        check_size(least + sum(candidates.cells), "workload", "cells")
        plan = plan_model(
            budget,
            relation,
            domain.shape,
            candidates,
            rounds=number,
            most_cells=most_cells,
            together=[one.attributes for one in possible],
            # Where rows are replaced and none is left out, their number is public.
            counts_records=relation == "add_remove" or bool(possible),
            charged_whole=charged_whole,
        )
        return cls(domain, candidates, most_cells, budget, relation, plan, possible)

    @property
    def depends_on_ledger(self) -> bool:
        """Whether what is planned depends on how the ledger is charged."""
        return self.budget.kind == "epsilon" and self.budget.delta_units > 0

    def charge(self, accountant: str) -> ShownAmounts:
        """Return what a ledger is charged at most."""
        return planned_charge(accountant, self.budget, self.plan.charged)

    def lines(self) -> list[str]:
        """Return what is known of the model, beside the ways."""
        together = [one.attributes for one in self.possible]
        tree, cells = JunctionTree.holding(self.domain.shape, together), self.candidates.cells
        room = int((tree.cells_with(together, self.candidates.sets) <= self.most_cells).sum())
        fewest, most = f"{min(cells):,}", number_of(max(cells), "cell")
        asked = f"{number_of(len(cells), 'set')} of columns, of {fewest if min(cells) < max(cells) else most}"
        more = "" if min(cells) == max(cells) else f" to {most}"
        fits = f"{'all' if room == len(cells) else f'{room:,} of them'} have room at first"
        if not room:
            fits = "none has room: single columns are measured again"
        held, allowed = tree.cells * BYTES_OF_CELL / 1e6, self.most_cells * BYTES_OF_CELL / 1e6
        return [
            f"what may be measured: {asked}{more}; {fits}",
            f"model: a tree of {held:.3g} MB before any set is measured, of {allowed:g} MB at most;",
            "  while any set fits, the tree grows by an equal part of that a round",
        ]

    @property
    def records_deviation(self) -> float | None:
        """The deviation of the measured number of records; None where it is public."""
        return None if self.plan.records is None else self.plan.records.deviation

    def ways(self) -> list[Way]:
        """Return what the number of records chooses from, from the fewest records on."""
        return ways_of(self.plan, [one.attributes for one in self.possible])

    def run(
        self, opened: OpenRecords, ledger: Ledger | None, dataset: object, show: Callable[[str], object]
    ) -> ModelEstimate:
        """Charge, count, measure and fit."""
        source = SystemRandom()
        payment = read_payment(ledger, self.budget, None, neighbors=self.neighbors, dataset=dataset, privacy_unit="row")
        show("charging the ledger")
        description = f"model of {len(self.domain.shape)} columns"
        paid = charge_events(payment, self.budget, self.plan.charged, description)
        show("reading the data")
        sets = list(dict.fromkeys([*((place,) for place in range(len(self.domain.shape))), *self.candidates.sets]))
        exact = dict(zip(sets, opened.count_marginals(sets, possible=self.possible), strict=True))
        records = int(exact[0,].sum()) if self.plan.records is None else None
        moved = moved_cells(self.neighbors)
        rounds = ModelRounds(
            self.domain.shape,
            self.candidates,
            self.plan,
            self.most_cells,
            moved * self.candidates.sensitivity,
            self.possible,
        )
        weights = rounds.run(exact, records, source, lambda done: show(rounds.told(done)))
        frame = self._frame(rounds.log)
        spent = self.budget.shown
        return ModelEstimate(
            weights, self.domain.names, spent, rounds, complete=rounds.complete, rounds=frame, paid=paid
        )

    def _frame(self, log: Sequence[Measured]) -> pl.DataFrame:
        names = self.domain.names
        return pl.DataFrame(
            {
                "columns": [[names[place] for place in one.attributes] for one in log],
                "cells": [one.cells for one in log],
                "deviation": [one.deviation for one in log],
                "error95": [one.error95 for one in log],
            },
            schema={"columns": pl.List(pl.String), "cells": pl.Int64, "deviation": pl.Float64, "error95": pl.Float64},
        )
