"""Queries by group: which noise they get, how keys are selected, and how all of it is drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import polars as pl

from dpfast.aggregation import Aggregation
from dpfast.aggregation.grouping import Aggregates
from dpfast.ledger import Charge
from dpfast.releases.blueprint import Blueprint, DrawnBlueprint
from dpfast.releases.cut_report import Cut, CutReport
from dpfast.releases.drawing import draw, frame_of_no_groups
from dpfast.releases.explanation import error_frame, explain_queries, measure_frame
from dpfast.releases.key_share import KeyShare
from dpfast.releases.layout import layout_of
from dpfast.releases.planned_queries import (
    Combined,
    DrawnPart,
    NoisyMeasure,
    PlannedQuery,
    charges_of,
    drawn_parts,
)
from dpfast.releases.release import Release
from dpfast.threads import thread_count

__all__ = ["GroupBlueprint", "released_by_group"]

_NO_PUBLIC_KEYS = "there are no public keys; give some, or leave keys out to select them privately"


@dataclass(frozen=True, kw_only=True)
class GroupBlueprint(DrawnBlueprint):
    """What a release by group will do and cost.

    Attributes
    ----------
    queries
        The queries with their noise.
    key_share
        How keys are selected; None where they are public.
    split
        In words, how the budget was split.
    wished
        Which errors were wished, and which are reached; empty where a budget was given.
    cut
        How it is told what bounding cut; None where it is not.

    """

    queries: tuple[PlannedQuery, ...]
    key_share: KeyShare | None
    split: str
    wished: str = ""
    cut: CutReport | None = None

    @cached_property
    def parts(self) -> tuple[DrawnPart, ...]:
        """All that is drawn, each once, in order."""
        return tuple(drawn_parts(planned.parts for planned in self.queries))

    @cached_property
    def charges(self) -> tuple[Charge, ...]:
        """What the ledger is charged, in one call: the selection of keys, then all measures, then what is cut."""
        selection = () if self.key_share is None else self.key_share.charges
        return *selection, *charges_of(self.parts), *(() if self.cut is None else (self.cut.charge,))

    @property
    def about(self) -> str:
        """What is released."""
        several = "query" if len(self.queries) == 1 else "queries"
        return f"{len(self.queries)} {several} by {', '.join(self.by) or 'nothing (one group)'}"

    @property
    def groups(self) -> int | None:
        """How many groups are released, where that is known beforehand: the keys are public."""
        if self.key_share is not None:
            return None
        return self.aggregation.groups

    @property
    def threads(self) -> int | None:
        """How many threads of this machine share a measure's noise, where the number of groups is known."""
        return None if self.groups is None else thread_count(None, self.groups)

    def explain_noise(self, *, measures: bool) -> list[str]:
        """Return the lines about keys, the split of the budget and all queries."""
        split = [f"  split         {self.split}"] if len(self.parts) > 1 or self.key_share is not None else []
        wished = [f"  wished        95% within {self.wished}"] * bool(self.wished)
        queries = explain_queries(self.queries, measures=measures)
        sampled = ", ".join(planned.name for planned in self.queries if planned.sampled is not None)
        population = [f"  population    intervals of {sampled}, for units drawn independently"] * bool(sampled)
        cut = [] if self.cut is None else [self.cut.explain()]
        return [f"  keys          {self.explain_keys()}", *wished, *split, *population, *queries, *cut]

    def explain_keys(self) -> str:
        """Return in words which keys are shown."""
        if self.key_share is not None:
            return self.key_share.explain()
        drawn = "one thread" if self.threads == 1 else f"{self.threads} threads of this machine"
        return (
            f"{self.groups} public keys, each shown, zeros included ({self.aggregation.route} route); "
            f"noise drawn by {drawn}"
        )

    def _why_empty(self) -> str:
        """Return why a release of this plan may show no group, and what would help."""
        if self.key_share is None:
            return _NO_PUBLIC_KEYS
        needed = self.key_share.needed
        units = f"{needed.fewest}" if needed.fewest == needed.most else f"from {needed.fewest} to {needed.most}"
        return (
            f"a key needs {units} units to be shown with probability 1/2; coarser keys, fewer groups a unit, more "
            "epsilon or delta, or public keys would help"
        )

    def to_frame(self) -> pl.DataFrame:
        """Return a frame with a row for every noisy measure, and one for what bounding cut."""
        frame = measure_frame(self.queries)
        if self.cut is None:
            return frame
        return frame.vstack(pl.DataFrame([self.cut.row(len(charges_of(self.parts)))], schema=frame.schema))

    def error(self, alpha: float) -> pl.DataFrame:
        """Return bounds of the noise of every measure."""
        return error_frame(self.queries, self.groups, alpha)

    def schema(self) -> pl.Schema:
        """Return the columns of keys and queries."""
        no_keys, selected = self.aggregation.no_keys(), self.key_share is not None
        columns = frame_of_no_groups(self.queries, no_keys, selected=selected).schema
        return columns if self.cut is None else self.cut.add_columns(columns)

    def draw(self, exact: Aggregates, entry: int) -> Release:
        """Select keys, draw all noise, and return what is shown."""
        frame = draw(self.queries, self.key_share, exact)
        if self.cut is None:
            return self.released(frame.clone, entry)
        assert exact.losses is not None
        cut = self.cut.draw(exact.losses)
        deviations = {
            planned.name: part.deviation * part.step
            for planned in self.queries
            for part in planned.parts[:1]
            if isinstance(part, (NoisyMeasure, Combined))
        }
        return self.released(self.cut.correct(frame, cut, deviations).clone, entry, cut)

    def released(self, make_frame: Callable[[], pl.DataFrame], entry: int, cut: Cut | None = None) -> Release:
        """Return what can be read of figures that are drawn already: ``make_frame`` gives them, without drawing."""
        notes = [] if cut is None else cut.lines()
        release = released_by_group(self, self.queries, make_frame, entry, notes, self._why_empty())
        return release if cut is None else replace(release, _cut=cut)


def released_by_group(
    blueprint: Blueprint,
    queries: Sequence[PlannedQuery],
    make_frame: Callable[[], pl.DataFrame],
    entry: int,
    notes: Sequence[str] = (),
    why_empty: str = _NO_PUBLIC_KEYS,
) -> Release:
    """Return what can be read of figures by group, and ``notes`` below the blueprint's explanation."""
    told = blueprint
    if isinstance(blueprint.aggregation, Aggregation):
        # It is explained when that is asked for, and no row is kept until then.
        told = replace(blueprint, aggregation=blueprint.aggregation.without_rows())

    def explained() -> str:
        return "\n".join([told.explain(), *notes])

    return Release(
        _about=", ".join(planned.name for planned in queries),
        _make_frame=make_frame,
        _layout=layout_of(blueprint.by, queries),
        _unit=blueprint.unit,
        _warnings=blueprint.warnings,
        _explained=explained if isinstance(told.aggregation, Aggregation) else explained(),
        _why_empty=why_empty,
        spent=blueprint.budget,
        entry=entry,
    )
