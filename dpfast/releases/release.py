"""What a plan's run leaves: figures that were drawn once and can be read as often as anyone likes."""

from __future__ import annotations

import os
from typing import Any

import polars as pl

from dpfast.errors import ParameterError
from dpfast.queries import ModeQuery
from dpfast.releases import Blueprint, explain

__all__ = ["Release"]


class Release:
    """Released figures: computed once, the same however often they are read.

    Guarantee
        What `frame` holds is differentially private as `explain` says, and everything made of it is too
        (post-processing). No exact figure is kept, and no byte of a key that was not selected.

    Attributes
    ----------
    frame
        One row per group, sorted by key if the keys were selected: the keys, and for every query ``q`` its
        value ``q`` (Int64 for counts and sums of integers; may be negative, since cutting off at zero would
        bias sums of groups), the noise's scale ``q_scale`` and a 95% interval ``q_lower`` to ``q_upper``. Quantiles
        have a column ``q``, or ``q_p25``, ``q_p50`` and so on, and ``q_ranks``: all of a group's are drawn within so
        many ranks of the exact ones with probability 0.95 (and a 65,536th of the values equal to one of them). A mode
        has the column ``q``, one of its candidates, and ``q_rows``: with probability 0.95 it has at most so many rows
        fewer than the most common candidate.
    spent
        What this release was charged, all its charges together: `Amounts` of (epsilon, delta), or of (rho,
        delta) where the plan was made with rho.
    entry
        The number of its first charge in the ledger; there is one for every measure, and one for selecting keys.

    """

    def __init__(self, frame: pl.DataFrame, blueprint: Blueprint, entry: int) -> None:
        self._frame = frame
        self.entry = entry
        self.spent = blueprint.budget
        self._explained = explain(blueprint)
        self._by = list(blueprint.by)
        self._queries = [planned.name for planned in blueprint.queries]
        self._values = {name: name for name in self._queries}
        self._candidates: dict[str, tuple[Any, ...]] = {}
        for planned in blueprint.queries:
            if isinstance(planned.query, ModeQuery):
                self._candidates[planned.name] = planned.query.candidates
            if planned.query.kind == "quantile":
                *values, _ = planned.columns
                self._values |= {planned.name: values[0]} | {value: value for value in values}

    @property
    def frame(self) -> pl.DataFrame:
        """One row per group; a copy of what is remembered, sharing its memory."""
        return self._frame.clone()

    def lazy(self) -> pl.LazyFrame:
        """Return the frame as a LazyFrame; collecting it reads what was drawn once."""
        return self.frame.lazy()

    def explain(self) -> str:
        """Return what was done and why, as text."""
        return self._explained

    def plot(self, path: str | os.PathLike[str] | None = None, *, query: str | None = None, top: int = 30) -> Any:
        """Draw one query's groups with their intervals; a mode's with the candidate of each.

        Parameters
        ----------
        path
            Where to write the chart; the suffix decides its kind (``.png``, ``.svg``, ``.pdf``). None for
            none.
        query
            The query's name, or a quantile's column; by default the first.
        top
            How many of the largest groups to show; of a mode, the first.

        Returns
        -------
        matplotlib.figure.Figure
            The chart.

        Raises
        ------
        ParameterError
            The query is not one of this release, or matplotlib is not installed.

        """
        from dpfast.charts import draw_groups

        name = self._queries[0] if query is None else query
        if name not in self._values:
            raise ParameterError("query", query, f"one of {list(self._values)}")
        return draw_groups(self.frame, self._by, self._values[name], top, path, candidates=self._candidates.get(name))

    def __repr__(self) -> str:
        """Show the frame and what it cost."""
        return f"Release of {', '.join(self._queries)}; spent {self.spent}\n{self.frame}"
