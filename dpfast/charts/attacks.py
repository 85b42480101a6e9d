"""A chart of what an attack finds as the noise grows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpfast.charts.look import DOT, FAINT, LINE, ChartPath, Title, check_plot, layer, number_axis, rows_of, save_plot
from dpfast.showing import number_of

if TYPE_CHECKING:
    import altair as alt

__all__ = ["draw_recovery"]

_HEIGHT = 300


def draw_recovery(
    noise: Sequence[float],
    recovered: Sequence[float],
    guessing: float,
    records: int,
    path: ChartPath = None,
    *,
    title: Title = None,
) -> alt.LayerChart:
    """Draw the share of records that an attack found against the scale of the noise.

    Parameters
    ----------
    noise
        Scales, rising.
    recovered
        The share of records found with each.
    guessing
        The share that is right without any answer.
    records
        How many there are; their square root is marked.
    path
        Where to write the chart as well; None for nowhere.
    title
        The chart's.

    Returns
    -------
    altair.LayerChart
        The chart; a notebook shows it.

    """
    check_plot(path, title)
    import altair as alt

    axis = number_axis("scale of the Laplace noise of each answer")
    x = alt.X("noise:Q", scale=alt.Scale(type="log"), axis=axis)
    y = alt.Y("share:Q", scale=alt.Scale(domain=[0, 1]), axis=number_axis("records recovered", format=".0%"))
    found = alt.Chart(rows_of({"noise": list(noise), "share": list(recovered)})).encode(x=x, y=y)
    guess = alt.Chart(alt.Data(values=[{"share": guessing, "said": "guessing the frequent value"}])).encode(y=y)
    root = alt.Chart(alt.Data(values=[{"noise": records**0.5, "said": "√records"}])).encode(x=x)
    below, share = {"align": "left", "baseline": "bottom", "dx": 4, "dy": -3}, alt.Tooltip("share:Q", format=".1%")
    marks = [
        guess.mark_rule(color=FAINT, strokeDash=[5, 4]),
        guess.mark_text(color=FAINT, **below).encode(x=alt.value(0), text="said:N"),
        root.mark_rule(color=LINE),
        root.mark_text(color=LINE, align="left", baseline="top", dx=5).encode(y=alt.value(0), text="said:N"),
        found.mark_line(color=DOT),
        found.mark_circle(color=DOT, size=50, opacity=1).encode(tooltip=["noise:Q", share]),
    ]
    notes = [f"{number_of(records, 'record')}. Not private: the truth was used to count what is right."]
    chart = layer("What the answers give away" if title is None else title, notes, *marks, height=_HEIGHT)
    save_plot(chart, path)
    return chart
