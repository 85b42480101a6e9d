"""Charts of lines: a budget that is used up, and errors against a budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpfast.charts.groups import different
from dpfast.charts.look import COLOURS, ChartPath, layer, number_axis, rows_of, save_plot, whole_axis
from dpfast.charts.seen import told_as
from dpfast.charts.text import shortened
from dpfast.showing import number_of, percent_below

if TYPE_CHECKING:
    import altair as alt

__all__ = ["draw_left", "draw_planned_errors"]

_HEIGHT = 280


def draw_left(
    charges: NDArray[np.int64],
    descriptions: Sequence[str],
    left: Mapping[str, NDArray[np.float64]],
    dataset: str | None,
    path: ChartPath = None,
) -> alt.LayerChart:
    """Draw stairs of what is left of a budget after every charge.

    Parameters
    ----------
    charges
        How many charges there were before each step.
    descriptions
        What was charged at it.
    left
        Of each amount by name which part is left, from 0 to 1.
    dataset
        What the budget is of; None where no charge has said so yet.
    path
        Where to write the chart as well; None for nowhere.

    Returns
    -------
    altair.LayerChart
        The chart; a notebook shows it.

    """
    import altair as alt

    names = list(left)
    columns: dict[str, Any] = {
        "charges": np.tile(charges, len(names)),
        "left": np.concatenate([np.empty(0), *left.values()]),
        "amount": np.repeat(names, len(charges)).tolist(),
        "what": [*descriptions] * len(names),
    }
    x = alt.X("charges:Q", axis=whole_axis("charges", int(charges[-1])), scale=alt.Scale(nice=False))
    axis = number_axis("left of the budget", format=".0%")
    base = alt.Chart(rows_of(columns)).encode(
        x=x,
        y=alt.Y("left:Q", axis=axis, scale=alt.Scale(domain=[0, 1])),
        color=_colours(names),
        tooltip=["charges:Q", "amount:N", alt.Tooltip("left:Q", format=".2%"), "what:N"],
    )
    marks = [base.mark_line(interpolate="step-after", strokeWidth=2.2)]
    marks.append(base.mark_circle(size=40 if charges.size <= 60 else 8, opacity=1))
    ends = ", ".join(f"{percent_below(part[-1])} of {name}" for name, part in left.items()) or "no amount has an end"
    notes = [f"{number_of(int(charges[-1]), 'charge')}; left: {ends}."]
    title = "Budget" if dataset is None else shortened(f"Budget of {dataset}", 80)
    chart = layer(title, notes, *marks, height=_HEIGHT)
    save_plot(chart, path)
    return chart


def draw_planned_errors(
    budgets: Sequence[float],
    errors: Mapping[str, Sequence[float]],
    kind: str,
    what: str,
    note: str,
    path: ChartPath = None,
) -> alt.LayerChart:
    """Draw a line for every query: its error at each budget, both on logarithmic axes.

    Parameters
    ----------
    budgets
        Of epsilon or of rho.
    errors
        By query, one for each budget.
    kind
        "epsilon" or "rho".
    what
        What errors are.
    note
        What is said below the title.
    path
        Where to write the chart as well; None for nowhere.

    Returns
    -------
    altair.LayerChart
        The chart; a notebook shows it.

    """
    import altair as alt

    names = different(list(errors))
    columns: dict[str, Any] = {
        "budget": [*budgets] * len(names),
        "error": np.concatenate([np.asarray(line, np.float64) for line in errors.values()]),
        "query": np.repeat(names, len(budgets)).tolist(),
    }
    named = {"format": ",~g", "labelOverlap": True, "tickCount": 6}
    base = alt.Chart(rows_of(columns)).encode(
        x=alt.X("budget:Q", scale=alt.Scale(type="log", nice=False, padding=10), axis=number_axis(kind, **named)),
        y=alt.Y("error:Q", scale=alt.Scale(type="log"), axis=number_axis(what, **named)),
        color=_colours(names, "query"),
        tooltip=[
            "query:N",
            alt.Tooltip("budget:Q", title=kind),
            alt.Tooltip("error:Q", title=told_as(what), format=",.4~g"),
        ],
    )
    marks = [base.mark_line(strokeWidth=2.2), base.mark_circle(size=36, opacity=1)]
    chart = layer("Error against budget", [note], *marks, height=_HEIGHT)
    save_plot(chart, path)
    return chart


def _colours(names: Sequence[str], field: str = "amount") -> alt.Color:
    """Return a colour for each name, and a legend where there are several."""
    import altair as alt

    legend = alt.Legend(title=None, orient="bottom", labelLimit=260, columns=2) if len(names) > 1 else None
    colours = [COLOURS[place % len(COLOURS)] for place in range(len(names))]
    return alt.Color(f"{field}:N", scale=alt.Scale(domain=list(names), range=colours), legend=legend)
