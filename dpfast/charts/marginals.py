"""A chart of counts that were measured with noise against those of the model that was fitted to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpfast.charts.look import DOT, LINE, ChartPath, Title, check_plot, layer, number_axis, rows_of, save_plot, some_of
from dpfast.charts.ticks import power_ticks
from dpfast.showing import number_of

if TYPE_CHECKING:
    import altair as alt

__all__ = ["draw_marginals"]

_SIDE = 400


def draw_marginals(
    measured: NDArray[np.float64],
    modelled: NDArray[np.float64],
    path: ChartPath = None,
    *,
    title: Title = None,
) -> alt.LayerChart:
    """Draw a dot for every cell that was measured: its noisy count, and the model's; beside the line of equal counts.

    Parameters
    ----------
    measured, modelled
        A count for each cell.
    path
        Where to write the chart as well; None for nowhere.
    title
        The chart's; the number of cells if not given.

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

    order = np.argsort(modelled)
    shown = order[some_of(order.size)]
    # Most cells are nearly empty, and a few hold most records.
    scale = alt.Scale(type="symlog", nice=False, padding=8)
    x, y = (
        kind(f"{name}:Q", scale=scale, axis=number_axis(said, values=_powers(held), format=",d"))
        for kind, name, said, held in (
            (alt.X, "measured", "noisy count", measured),
            (alt.Y, "modelled", "the model's count", modelled),
        )
    )
    base = alt.Chart(rows_of({"measured": measured[shown], "modelled": modelled[shown]}))
    dots = base.mark_circle(color=DOT, size=24 if shown.size <= 200 else 8, opacity=0.6)
    ends = [min(0.0, float(modelled.min(initial=0.0))), float(modelled.max(initial=1.0))]
    line = alt.Chart(rows_of({"measured": ends, "modelled": ends})).mark_line(color=LINE, strokeWidth=1.2)
    said = (
        f"{shown.size:,} of {number_of(measured.size, 'cell')}."
        if shown.size < measured.size
        else f"{number_of(measured.size, 'cell')}."
    )
    notes = [f"Differentially private: a model that was fitted to noisy counts. {said}"]
    marks = (line.encode(x=x, y=y), dots.encode(x=x, y=y, tooltip=["measured:Q", "modelled:Q"]))
    named = f"{number_of(measured.size, 'count')}" if title is None else title
    chart = layer(named, notes, *marks, height=_SIDE, width=_SIDE)
    save_plot(chart, path)
    return chart


def _powers(held: NDArray[np.float64]) -> list[float]:
    """Return where an axis of these counts has ticks."""
    held = held[np.isfinite(held)]
    return power_ticks(float(held.min(initial=0.0)), float(held.max(initial=1.0)))
