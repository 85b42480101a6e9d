"""A chart of a workload's answers, in the order of its queries."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from dpfast.charts.drawing import BAR, DOT, FAINT, INK, WIDTH, check_chart, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_answers"]

_HEIGHT = 4.6
_MOST_DOTS = 200


def draw_answers(frame: pl.DataFrame, path: str | os.PathLike[str] | None = None) -> Figure:
    """Draw answers with their 95% intervals: a dot with a band around it for every query.

    Parameters
    ----------
    frame
        One row per query, with ``answer``, ``answer_lower`` and ``answer_upper``.
    path
        Where to write the chart as well; None for nowhere.

    Returns
    -------
    matplotlib.figure.Figure
        The chart; a notebook shows it.

    Raises
    ------
    ParameterError
        matplotlib is not installed, or the path's suffix is no kind of chart.

    """
    check_chart(path)
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.ticker import FuncFormatter

    figure = Figure(figsize=(WIDTH, _HEIGHT), layout=ConstrainedLayoutEngine(w_pad=0.14, h_pad=0.14), facecolor="white")
    axes = figure.add_subplot()
    queries = np.arange(frame.height)
    lower, answers, upper = (frame[name].to_numpy() for name in ("answer_lower", "answer", "answer_upper"))
    axes.fill_between(queries, lower, upper, color=BAR, linewidth=0, alpha=0.7, zorder=2)
    # A line between queries would suggest values where there are none.
    axes.plot(queries, answers, "o", color=DOT, markersize=3.5 if frame.height <= _MOST_DOTS else 1.2, zorder=3)
    axes.axhline(0, color=FAINT, linewidth=0.8, zorder=1)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}".replace("-", "−")))
    axes.tick_params(labelsize=9, colors=FAINT, length=0)
    axes.grid(axis="y", color="#e3e7eb", linewidth=0.8, zorder=0)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.set_xlabel("query", color=INK, fontsize=10)
    axes.set_title(f"{frame.height:,} answers", loc="left", color=INK, fontsize=13, fontweight="bold", pad=12)
    footnote = "Differentially private: all answers are sums over one noisy histogram; the band is of 95% intervals."
    figure.supxlabel(footnote, x=0.016, ha="left", fontsize=8, color=FAINT)
    save(figure, path)
    return figure
