"""Charts of a workload's answers in the order of its queries, and of their errors against a public truth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpfast.charts.look import (
    BAR,
    DOT,
    LINE,
    MOST_ROWS,
    ChartPath,
    Title,
    check_plot,
    finite,
    layer,
    number_axis,
    rows_of,
    save_plot,
    some_of,
    whole_axis,
)
from dpfast.showing import number_of

if TYPE_CHECKING:
    import altair as alt

__all__ = ["draw_answers", "draw_errors"]

_HEIGHT = 300
_MOST_LARGE = 200


def draw_answers(
    answers: NDArray[np.float64],
    interval: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
    path: ChartPath = None,
    *,
    title: Title = None,
) -> alt.LayerChart:
    """Draw a dot for every answer, on their 95% intervals if these are known.

    Parameters
    ----------
    answers
        One for each query; of more than 5,000 as many, evenly spread.
    interval
        The intervals' lower and upper ends; None where nobody knows them.
    path
        Where to write the chart as well; None for nowhere.
    title
        The chart's; the number of answers if not given.

    Returns
    -------
    altair.LayerChart
        The chart; a notebook shows it.

    Raises
    ------
    ParameterError
        Altair is not installed, or the path's suffix is no kind of chart.

    """
    check_plot(path, title)
    import altair as alt

    shown = some_of(answers.size)
    ends = (answers, answers) if interval is None else interval
    columns = {"query": shown, "answer": answers[shown], "lower": ends[0][shown], "upper": ends[1][shown]}
    base = alt.Chart(rows_of(columns))
    x = alt.X("query:Q", axis=whole_axis("query", answers.size - 1), scale=alt.Scale(nice=False, padding=8))
    axis = number_axis("answer")
    marks = []
    if interval is not None:
        band = base.mark_rule(color=BAR, strokeWidth=max(1.0, min(6.0, 500 / max(shown.size, 1))), opacity=0.8)
        marks.append(band.encode(x=x, y=alt.Y("lower:Q", axis=axis), y2="upper"))
    told = ["query:Q", "answer:Q", *(["lower:Q", "upper:Q"] if interval is not None else [])]
    # A line between queries would suggest values where there are none.
    dots = base.mark_circle(color=DOT, size=24 if shown.size <= _MOST_LARGE else 6, opacity=1)
    marks.append(dots.encode(x=x, y=alt.Y("answer:Q", axis=axis), tooltip=told))
    sums = "estimated histogram" if interval is None else "noisy histogram; the lines are 95% intervals"
    said = f"Differentially private: all answers are sums over one {sums}. {_said(shown.size, answers.size)}"
    chart = layer(f"{number_of(answers.size, 'answer')}" if title is None else title, [said], *marks, height=_HEIGHT)
    save_plot(chart, path)
    return chart


def draw_errors(
    truth: NDArray[np.float64],
    answers: NDArray[np.float64],
    path: ChartPath = None,
    *,
    title: Title = "Error of every query",
) -> alt.LayerChart:
    """Draw every query's absolute error against its true answer, and their mean; the truth is to be public.

    Parameters
    ----------
    truth, answers
        One for each query.
    path, title
        As for `draw_answers`.

    Returns
    -------
    altair.LayerChart
        The chart; a notebook shows it.

    Raises
    ------
    ParameterError
        Altair is not installed, or the path's suffix is no kind of chart.

    """
    check_plot(path, title)
    import altair as alt

    errors = np.abs(answers - truth)
    shown = some_of(truth.size)
    base = alt.Chart(rows_of({"truth": truth[shown], "error": errors[shown]}))
    y = alt.Y("error:Q", axis=number_axis("absolute error"))
    dots = base.mark_circle(color=DOT, size=24 if shown.size <= _MOST_LARGE else 6, opacity=0.6)
    dots = dots.encode(x=alt.X("truth:Q", axis=number_axis("true answer")), y=y, tooltip=["truth:Q", "error:Q"])
    mean = float(finite(errors).mean())
    line = alt.Chart(alt.Data(values=[{"error": mean, "said": f"mean {mean:,.4g}"}])).encode(y=y)
    name = line.mark_text(color=LINE, align="right", baseline="bottom", dx=-4, dy=-3).encode(
        x=alt.value("width"), text="said:N"
    )
    said = f"The true answers are shown: for public data only. {_said(shown.size, truth.size)}"
    chart = layer(title or "", [said], dots, line.mark_rule(color=LINE), name, height=_HEIGHT)
    save_plot(chart, path)
    return chart


def _said(shown: int, queries: int) -> str:
    assert shown <= MOST_ROWS
    return (
        f"{shown:,} of {number_of(queries, 'query', 'queries')}."
        if shown < queries
        else f"{number_of(queries, 'query', 'queries')}."
    )
