"""A chart of a preview: exact figures of groups, and what noise and bounds would show of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from dpfast.charts.chosen import LONGEST_LABEL
from dpfast.charts.groups import GROUP_HEIGHT, different, group_names
from dpfast.charts.look import BAR, DOT, WHISKER, ChartPath, check_plot, layer, number_axis, rows_of, save_plot
from dpfast.charts.text import label_of, spoken
from dpfast.showing import number_of

if TYPE_CHECKING:
    import altair as alt

__all__ = ["draw_preview"]


def draw_preview(
    frame: pl.DataFrame, by: Sequence[str], name: str, top: int, notes: Sequence[str], path: ChartPath = None
) -> alt.LayerChart:
    """Draw the groups of most rows: bars for exact figures, dots and whiskers for what is shown.

    Parameters
    ----------
    frame
        A preview's frame, of one figure.
    by
        The key columns.
    name
        The figure.
    top
        How many groups to show at most.
    notes
        What is said of it.
    path
        Where to write the chart as well; None for nowhere.

    Returns
    -------
    altair.LayerChart
        The chart; a notebook shows it.

    """
    check_plot(path)
    import altair as alt

    shown = frame.sort("rows", descending=True, maintain_order=True).head(top)
    mean, deviation = (shown[column].fill_null(float("nan")).to_numpy() for column in ("mean", "deviation"))
    keys = shown.select(by).iter_rows() if by else [()] * shown.height
    columns = {
        "group": different([label_of(key, LONGEST_LABEL) for key in keys]),
        "exact": shown["exact"].cast(pl.Float64).fill_null(float("nan")).to_numpy(),
        "mean": mean,
        "lower": mean - 2 * deviation,
        "upper": mean + 2 * deviation,
    }
    rows = alt.Y("group:N", sort=None, scale=alt.Scale(padding=0.3), axis=group_names())
    base = alt.Chart(rows_of(columns)).encode(y=rows, tooltip=["group:N", "exact:Q", "mean:Q", "lower:Q", "upper:Q"])
    axis = number_axis(spoken(name))
    marks = [
        base.mark_bar(color=BAR).encode(x=alt.X("exact:Q", axis=axis)),
        base.mark_rule(color=WHISKER, strokeWidth=1.3).encode(x=alt.X("lower:Q", axis=axis), x2="upper"),
        base.mark_circle(color=DOT, size=60, opacity=1).encode(x=alt.X("mean:Q", axis=axis)),
    ]
    drawn = "Bars are exact figures; dots are what is shown on average, whiskers two standard deviations of it."
    more = (
        f"The {number_of(shown.height, 'group')} of most rows, of {frame.height:,}. "
        if shown.height < frame.height
        else ""
    )
    said = [*notes, f"{more}{drawn}"]
    chart = layer(f"PREVIEW: {spoken(name)}", said, *marks, height=GROUP_HEIGHT * max(shown.height, 3))
    save_plot(chart, path)
    return chart
