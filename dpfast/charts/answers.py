"""Charts of a workload's answers in the order of its queries, and of their errors against a public truth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpfast.charts.drawing import (
    BAR,
    DOT,
    FAINT,
    LINE,
    ChartPath,
    Title,
    check_chart,
    dot_size,
    footnote,
    label_axes,
    save,
    start_chart,
    thinned,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_answers", "draw_errors"]

_HEIGHT = 4.6


def draw_answers(
    answers: NDArray[np.float64],
    interval: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
    path: ChartPath = None,
    *,
    title: Title = None,
) -> Figure:
    """Draw a dot for every answer, on a band of their 95% intervals if these are known.

    Parameters
    ----------
    answers
        One for each query.
    interval
        The intervals' lower and upper ends; None where nobody knows them.
    path
        Where to write the chart as well; None for nowhere.
    title
        The chart's; the number of answers if not given.

    Returns
    -------
    matplotlib.figure.Figure
        The chart; a notebook shows it.

    Raises
    ------
    ParameterError
        matplotlib is not installed, or the path's suffix is no kind of chart.

    """
    check_chart(path, title)
    figure, axes = start_chart(f"{answers.size:,} answers" if title is None else title, _HEIGHT, grid="y")
    shown = thinned(answers.size)
    if interval is not None:
        lower, upper = interval
        axes.fill_between(shown, lower[shown], upper[shown], color=BAR, linewidth=0, alpha=0.7, zorder=2)
    # A line between queries would suggest values where there are none.
    axes.plot(shown, answers[shown], "o", color=DOT, markersize=dot_size(shown.size), zorder=3)
    axes.axhline(0, color=FAINT, linewidth=0.8, zorder=1)
    label_axes(axes, "query")
    sums = "estimated histogram" if interval is None else "noisy histogram; the band is of 95% intervals"
    said = f"Differentially private: all answers are sums over one {sums}."
    footnote(figure, f"{said} {_said(shown.size, answers.size)}")
    save(figure, path)
    return figure


def draw_errors(
    truth: NDArray[np.float64],
    answers: NDArray[np.float64],
    path: ChartPath = None,
    *,
    title: Title = "Error of every query",
) -> Figure:
    """Draw every query's absolute error against its true answer, and their mean; the truth is to be public.

    Parameters
    ----------
    truth, answers
        One for each query.
    path, title
        As for `draw_answers`.

    Returns
    -------
    matplotlib.figure.Figure
        The chart; a notebook shows it.

    Raises
    ------
    ParameterError
        matplotlib is not installed, or the path's suffix is no kind of chart.

    """
    check_chart(path, title)
    figure, axes = start_chart(title or "", _HEIGHT, grid="both")
    errors = np.abs(answers - truth)
    shown = thinned(truth.size)
    axes.plot(
        truth[shown], errors[shown], "o", color=DOT, markersize=dot_size(shown.size), linewidth=0, alpha=0.6, zorder=3
    )
    mean = float(errors.mean())
    axes.axhline(mean, color=LINE, linewidth=1.2, zorder=4)
    axes.annotate(
        f"mean {mean:,.4g}",
        (1.0, mean),
        xycoords=("axes fraction", "data"),
        xytext=(-4, 4),
        textcoords="offset points",
        ha="right",
        color=LINE,
        fontsize=9,
    )
    axes.set_ylim(bottom=0.0)
    label_axes(axes, "true answer", "absolute error")
    footnote(figure, f"The true answers are shown: for public data only. {_said(shown.size, truth.size)}")
    save(figure, path)
    return figure


def _said(shown: int, queries: int) -> str:
    return f"{shown:,} of {queries:,} queries." if shown < queries else f"{queries:,} queries."
