"""Counts of a model beside what was measured of them: bars with intervals where they are few, else a band with dots."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpfast.charts.chosen import ChosenGroups
from dpfast.charts.text import measured_text, value_text
from dpfast.pages.across import dots
from dpfast.pages.bars import bars
from dpfast.pages.markup import Html, figure, paragraph, text
from dpfast.showing import number_of

__all__ = ["MOST_BARS", "Compared", "answers_figure", "compared_figures", "known_bars"]

MOST_BARS = 30
#: So many are drawn; the others are in a table.
_CHARTS = 12
_Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Compared:
    """Counts that were measured, and the same counts of what was made of them.

    Attributes
    ----------
    title
        What is counted.
    labels
        What stands beside each count; None for counts that have no names.
    made, measured
        The counts.
    within
        What the noise of one measured count exceeds with probability 0.05; or as ``ends`` says.
    ends
        What the intervals are, where they are something else.

    """

    title: str
    labels: Sequence[str] | None
    made: _Numbers
    measured: _Numbers
    within: float
    ends: str | None = None

    def html(self) -> Html:
        """Return its figure."""
        lower, upper = self.measured - self.within, self.measured + self.within
        band = self.ends or (
            f"what was measured, give or take {value_text(self.within)}: its noise is within that in 95 of 100 cases"
        )
        if self.labels is not None and self.made.size <= MOST_BARS:
            shown = known_bars(self.title, self.labels, self.made, lower, upper)
            return figure(bars(shown), f"Bars are the counts here. Lines, and the smaller numbers, are {band}.")
        order = np.argsort(self.made, kind="stable")
        said = f"{number_of(self.made.size, 'count')}, from the least to the largest"
        drawn = dots(self.made[order], (lower[order], upper[order]), said, "least", "largest")
        return figure(drawn, f"{said}. The band is {band}.")


def answers_figure(answers: _Numbers, said: str) -> Html:
    """Return the figure of answers in their order, of which no interval is known."""
    low, high = (value_text(float(end)) for end in (answers.min(), answers.max()))
    said = f"{said}. They are from {low} to {high}"
    return figure(dots(answers, None, said, "first query", "last query"), f"{said}.")


def compared_figures(compared: Iterable[Compared]) -> list[Html]:
    """Return a figure for each of the first ones, and a line of how many there are beside them."""
    drawn, left = list[Html](), 0
    for number, one in enumerate(compared):
        if number < _CHARTS:
            drawn += [Html(f'<h3 dir="auto">{text(one.title)}</h3>'), one.html()]
        else:
            left += 1
    if left:
        drawn.append(paragraph(f"{left:,} more have no chart here; the table below says what was measured.", "note"))
    return drawn


def known_bars(name: str, labels: Sequence[str], values: _Numbers, lower: _Numbers, upper: _Numbers) -> ChosenGroups:
    """Return bars of values between ends that are known, in their order."""
    errors = (upper - lower) / 2
    told = [measured_text(float(value), error) for value, error in zip(values, errors.tolist(), strict=True)]
    ends = [
        (measured_text(float(low), error), measured_text(float(high), error))
        for low, high, error in zip(lower, upper, errors.tolist(), strict=True)
    ]
    return ChosenGroups(
        name=name,
        by=(),
        labels=list(labels),
        values=values,
        lower=lower,
        upper=upper,
        texts=told,
        ends=ends,
        known=True,
        bars=True,
        unit="",
        places=None,
        scales=None,
        groups=len(labels),
        chosen="largest",
    )
