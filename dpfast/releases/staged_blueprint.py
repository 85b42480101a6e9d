"""A release in two stages: units are surveyed, what the plan left open is chosen by that, and the plan is carried out.

Guarantee
    The surveys are private at their share of the budget (`dpfast.releases.survey_noise`). What is chosen is
    post-processing of them, and whatever it is, the plan that is drafted with it is private at the rest of the budget,
    for which it is drafted. So both together are private at the whole (Dwork, Roth 2014, theorem B.1: the second
    mechanism may be chosen by the answer of the first; Bun, Steinke 2016, lemma 2.3 for rho). The charge names the rest
    as a whole, since the events of the second stage are not known beforehand, and both are charged in one call, before
    any row is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import polars as pl

from dpfast.aggregation import Aggregation
from dpfast.aggregation.grouping import Words
from dpfast.aggregation.rereading import readable_again
from dpfast.aggregation.sources import Source
from dpfast.exact.amounts import to_float
from dpfast.ledger import Charge
from dpfast.releases.blueprint import Blueprint
from dpfast.releases.group_blueprint import GroupBlueprint
from dpfast.releases.planned_queries import describe
from dpfast.releases.private_choices import Draft, PrivateChoice
from dpfast.releases.release import Release
from dpfast.releases.request import Request
from dpfast.releases.survey_noise import SurveyNoise, Surveyor

__all__ = ["StagedBlueprint"]

#: What is not known before the surveys.
_OPEN_COLUMNS = ("sensitivity", "reason", "kernel", "scale", "error95")


@dataclass(frozen=True, kw_only=True)
class StagedBlueprint(Blueprint):
    """What a release in two stages will do and cost.

    Attributes
    ----------
    request
        What was asked, of data that are open, and with the rest of the budget: choices are still open.
    source
        The data.
    choices
        What is chosen, in order.
    noise, share
        What surveys may cost, and which part of the whole budget that is.
    rest
        What the second stage costs.
    draft
        Drafts the second stage, with public numbers in place of what is open.
    plan
        That draft of the request: what is known beforehand, or once all is chosen the plan itself.
    notes, is_chosen
        What was chosen, line by line, and whether it was.

    """

    request: Request
    source: Source
    choices: Sequence[PrivateChoice]
    noise: SurveyNoise
    share: Fraction
    rest: Sequence[Charge]
    draft: Draft
    plan: GroupBlueprint
    notes: Sequence[str] = field(default=())
    is_chosen: bool = False

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What the ledger is charged, in one call: the surveys, then all that follows."""
        return self.noise.charge, *self.rest

    @property
    def about(self) -> str:
        """What is released."""
        return self.plan.about

    def check_source(self) -> None:
        """Refuse data that changed, and what cannot be met by any of the aggregations."""
        for aggregation in self._surveys:
            aggregation.check_source()
        self.plan.check_source()

    def carry_out(self, entry: int, words: Words, stage: Callable[[str], None]) -> Release:
        """Survey, choose, draft, and carry out what is drafted."""
        request, notes, values = self.request, list[str](), dict[str, Any]()
        assert isinstance(self.plan.aggregation, Aggregation)
        with readable_again(self.source, self._names(), self.plan.aggregation.sorts) as source:
            for choice, part in zip(self.choices, self._parts(), strict=True):
                stage(f"surveying units for {choice.about}")
                exact = choice.prepare(source, request).run(words)
                chosen = choice.choose(exact, request, Surveyor(self.noise, part), self.draft)
                request = chosen.request
                notes.extend(chosen.lines)
                values.update(chosen.values)
            second = self.draft(replace(request, data=source))
            release = second.carry_out(entry, words, stage)
        schema = self.schema()
        frame = release.frame.cast(dict(schema))  # type: ignore[arg-type]
        chosen_plan = replace(self, plan=second, notes=tuple(notes), is_chosen=True)
        cut = [] if release.cut is None else release.cut.lines()
        explained = "\n".join([chosen_plan.explain(), *cut])
        return replace(
            release, entry=entry, spent=self.budget, _make_frame=frame.clone, _explained=explained, _chosen=values
        )

    def _parts(self) -> list[Fraction]:
        """Return each choice's part of what surveys may cost."""
        questions = [choice.questions for choice in self.choices]
        return [Fraction(number, sum(questions)) for number in questions]

    def _names(self) -> set[str]:
        """Return the columns that are read in either stage."""
        where = self.request.read_where()
        names = set(() if where is None else where.columns).union(*(one.names for one in self._surveys))
        assert isinstance(self.plan.aggregation, Aggregation)
        return names | self.plan.aggregation.names

    @cached_property
    def _surveys(self) -> list[Aggregation]:
        """Return the aggregations of the first stage, as if nothing was chosen in it yet."""
        request = self.request
        for choice in self.choices:
            request = choice.stand_in(request)
        return [choice.prepare(self.source, request) for choice in self.choices]

    @property
    def _unit_said(self) -> str | None:
        """What is kept of a unit, where that is still to be chosen."""
        said = None if self.is_chosen else [choice.unit_said for choice in self.choices if choice.unit_said]
        return said[0] if said else None

    def _is_open(self, name: str) -> bool:
        return not self.is_chosen and any(choice.leaves_open(name) for choice in self.choices)

    def explain_unit(self) -> str:
        """Return whose presence is hidden, in words."""
        if self._unit_said is None:
            return self.plan.explain_unit()
        return f"all rows with one value of {self.unit.column}: {self._unit_said}; neighbours: {self.unit.neighbors}"

    def explain_noise(self, *, measures: bool) -> list[str]:
        """Return the lines about what is chosen first, and what follows."""
        about = ", ".join(choice.about for choice in self.choices)
        lines = [
            f"  chosen first  {about}: privately, with {float(self.share):.3g} of the budget, by histograms in which "
            f"each unit is counted once, with {self.noise.mechanism} noise",
            *self.notes,
        ]
        known = [planned for planned in self.plan.queries if not self._is_open(planned.name)]
        planned = replace(self.plan, queries=tuple(known)).explain_noise(measures=measures)
        if self._unit_said is not None and self.plan.key_share is not None:
            planned[0] = "  keys          selected privately; how many units one needs follows what is chosen"
        lines += planned
        for name, query in self.request.queries.items():
            if self._is_open(name):
                lines.append(f"  {name:<13} {describe(query)}; the noise's scale follows what is chosen")
        return lines

    def to_frame(self) -> pl.DataFrame:
        """Return a frame with a row for every measure, without the scales that are not known yet."""
        frame, paid, first = self.plan.to_frame(), self.rest[0], self.noise.charge
        names = _OPEN_COLUMNS if self._unit_said is None else (*_OPEN_COLUMNS, "norm", "mechanism")
        second = frame.with_columns(
            *(pl.when(self._is_known()).then(pl.col(name)).alias(name) for name in names),
            epsilon=pl.lit(to_float(paid.epsilon_units)),
            delta=pl.lit(to_float(paid.delta_units)),
            event=pl.lit(repr(paid.fact)),
            charge=pl.lit(1, frame.schema["charge"]),
        )
        surveys = {
            "query": ", ".join(choice.about for choice in self.choices),
            "measure": "units, each counted once in a histogram",
            "mechanism": self.noise.mechanism.lower(),
            "epsilon": to_float(first.epsilon_units),
            "delta": to_float(first.delta_units),
            "event": repr(first.fact),
            "charge": 0,
        }
        return pl.DataFrame([surveys], schema=frame.schema).vstack(second)

    def _is_known(self) -> pl.Expr:
        """Return where a frame with a column ``query`` tells of what is known already."""
        return pl.col("query").is_in([name for name in self.request.queries if self._is_open(name)]).not_()

    def error(self, alpha: float) -> pl.DataFrame:
        """Return bounds of the noise of every measure, null where it is not known yet."""
        return self.plan.error(alpha).with_columns(
            pl.when(self._is_known()).then(pl.col(name)).alias(name) for name in ("one", "all")
        )

    def schema(self) -> pl.Schema:
        """Return the columns of keys and queries."""
        return self.plan.schema()


def survey_share(questions: int) -> Fraction:
    """Return which part of the budget surveys get: 15%, and 5% more for each further question, up to 30%.

    Examples
    --------
    >>> [str(survey_share(questions)) for questions in (1, 2, 3, 9)]
    ['3/20', '1/5', '1/4', '3/10']

    """
    return min(Fraction(3, 20) + Fraction(questions - 1, 20), Fraction(3, 10))
