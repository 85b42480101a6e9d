"""What stands where in a release's frame: keys, and the columns of every query. Charts and pages are drawn by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import polars as pl

from dpfast.errors import ParameterError
from dpfast.queries import ModeQuery, QuantileQuery, RankedQuery
from dpfast.releases.planned_queries import COUNT, SUFFIXES, PlannedQuery

__all__ = ["ANSWER", "Drawn", "Layout", "layout_of"]

#: The columns of a workload's answers.
ANSWER = "answer"


class Drawn(NamedTuple):
    """What a chart of one query shows, as `dpfast.charts.chosen.choose_groups` takes it."""

    frame: pl.DataFrame
    by: tuple[str, ...]
    name: str
    candidates: Sequence[Any] | None
    in_order: bool


@dataclass(frozen=True)
class Layout:
    """Where keys and values are.

    Attributes
    ----------
    by
        The key columns; of a workload those that the histogram has.
    queries
        The names that a user gave; none for a workload.
    values
        By what a user may call it, the column that is drawn.
    candidates
        What a mode may be, by its name.
    asks
        How many columns say what each query of a workload asks; 0 for groups.

    """

    by: tuple[str, ...]
    queries: tuple[str, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    candidates: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    asks: int = 0

    def column(self, query: str | None) -> str:
        """Return the column of a query's values; that of the first by default.

        Raises
        ------
        ParameterError
            There is no such query.

        """
        name = next(iter(self.values)) if query is None else query
        if name not in list(self.values):
            raise ParameterError("query", query, f"one of {list(self.values)}")
        return self.values[name]

    def drawn(self, frame: pl.DataFrame, query: str | None) -> Drawn:
        """Return what a chart of one query shows: of lists a row for every bin, or every value."""
        column, by = self.column(query), self.by
        name = query if query is not None else next(iter(self.values))
        lists = isinstance(frame.schema[column], pl.List)
        if lists:
            labels = (f"{name}_bin", f"{name}_edge") if column == name else (name,)
            beside = [label for label in labels if label in frame.columns]
            ends = [f"{name}_lower", f"{name}_upper"] if beside else []
            frame = frame.explode(column, *beside, *ends)
            by = (*by, *beside)
            if column != name:
                # A group in which no value is shown has none.
                frame = frame.filter(pl.col(column).is_not_null())
                frame = frame.rename({f"{name}{end}": f"{column}{end}" for end in SUFFIXES[1:]})
        return Drawn(frame, by, column, self.candidates.get(name), lists)


def layout_of(by: tuple[str, ...], queries: Sequence[PlannedQuery]) -> Layout:
    """Return the layout of a release by group."""
    names = tuple(planned.name for planned in queries)
    values, candidates = {name: name for name in names}, dict[str, Sequence[Any]]()
    for planned in queries:
        if isinstance(planned.query, ModeQuery):
            candidates[planned.name] = planned.query.candidates
        if isinstance(planned.query, RankedQuery):
            values[planned.name] = planned.name + COUNT
        if isinstance(planned.query, QuantileQuery):
            *columns, _ = planned.columns
            values |= {planned.name: columns[0]} | {column: column for column in columns}
    return Layout(by, names, values, candidates)
