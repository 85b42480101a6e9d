"""A chart of counts that were measured with noise against those of the model that was fitted to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpfast.charts.drawing import (
    DOT,
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

__all__ = ["draw_marginals"]

_HEIGHT = 6.0


def draw_marginals(
    measured: NDArray[np.float64],
    modelled: NDArray[np.float64],
    path: ChartPath = None,
    *,
    title: Title = None,
) -> Figure:
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
    matplotlib.figure.Figure
        The chart; a notebook shows it.

    Raises
    ------
    ParameterError
        matplotlib is not installed, or the path's suffix is no kind of chart.

    """
    check_chart(path, title)
    figure, axes = start_chart(f"{measured.size:,} counts" if title is None else title, _HEIGHT, grid="both")
    order = np.argsort(modelled)
    shown = order[thinned(order.size)]
    axes.plot(measured[shown], modelled[shown], "o", color=DOT, markersize=dot_size(shown.size), alpha=0.6, zorder=3)
    ends = [min(0.0, float(modelled.min())), float(modelled.max())]
    axes.plot(ends, ends, color=LINE, linewidth=1.2, zorder=2)
    # Most cells are nearly empty, and a few hold most records.
    axes.set_xscale("symlog")
    axes.set_yscale("symlog")
    label_axes(axes, "noisy count", "the model's count")
    said = f"{shown.size:,} of {measured.size:,} cells." if shown.size < measured.size else f"{measured.size:,} cells."
    footnote(figure, f"Differentially private: a model that was fitted to noisy counts. {said}")
    save(figure, path)
    return figure
