"""A chart of a preview: exact figures of groups, and what noise and bounds would show of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from dpfast.charts.drawing import BAR, DOT, INK, ChartPath, check_chart, footnote, save, start_chart
from dpfast.charts.groups import dress, group_height, group_label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_preview"]


def draw_preview(
    frame: pl.DataFrame, by: Sequence[str], name: str, top: int, said: str, path: ChartPath = None
) -> Figure:
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
    said
        What stands below the chart.
    path
        Where to write the chart as well; None for nowhere.

    Returns
    -------
    matplotlib.figure.Figure
        The chart; a notebook shows it.

    """
    check_chart(path)
    shown = frame.sort("rows", descending=True, maintain_order=True).head(top)
    figure, axes = start_chart(f"PREVIEW: {name.replace('_', ' ')}", group_height(shown.height), grid="x")
    places = np.arange(shown.height)
    axes.barh(places, shown["exact"].to_numpy(), height=0.68, color=BAR, zorder=2)
    mean, deviation = (shown[column].fill_null(float("nan")).to_numpy() for column in ("mean", "deviation"))
    axes.errorbar(
        mean, places, xerr=2 * deviation, fmt="o", color=DOT, markersize=5, elinewidth=1.2, capsize=2.2, zorder=3
    )
    dress(axes, [group_label(shown, by, row) for row in range(shown.height)])
    axes.set_xlabel(name.replace("_", " "), color=INK, fontsize=10, parse_math=False)
    more = f"The {shown.height:,} groups of most rows, of {frame.height:,}. " if shown.height < frame.height else ""
    drawn = "Bars are exact figures; dots are what is shown on average, whiskers two standard deviations of it."
    footnote(figure, f"{said}\n{more}{drawn}")
    save(figure, path)
    return figure
