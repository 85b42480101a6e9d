"""Figures of benchmarks and scripts, which draw with matplotlib what stands in the documentation.

Charts that users draw are Altair's: dpfast/charts.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["BAR", "DOT", "FAINT", "INK", "LINE", "WHISKER", "footnote", "label_axes", "save", "start_chart", "written"]

_DATELESS: dict[str, dict[str, None]] = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
_WIDTH = 9.0
BAR, DOT, WHISKER, INK, FAINT = "#9dbfe0", "#1f5f99", "#2b3a48", "#1c2733", "#66727d"
LINE, _GRID = "#c8553d", "#e3e7eb"


def start_chart(title: str, height: float, *, grid: Literal["x", "y", "both"]) -> tuple[Figure, Axes]:
    """Return a figure with a title, a faint grid and no frame, and its axes."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout = ConstrainedLayoutEngine(w_pad=0.14, h_pad=0.14)
    figure = Figure(figsize=(_WIDTH, height), layout=layout, facecolor="white")
    axes = figure.add_subplot()
    axes.set_title(title, loc="left", color=INK, fontsize=13, fontweight="bold", pad=12, parse_math=False)
    axes.tick_params(labelsize=9, colors=FAINT, length=0)
    axes.grid(axis=grid, color=_GRID, linewidth=0.8, zorder=0)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(False)
    return figure, axes


def footnote(figure: Figure, text: str) -> None:
    """Say what was drawn below a chart."""
    figure.supxlabel(text, x=0.016, ha="left", fontsize=8, color=FAINT)


def written(value: float, _: object) -> str:
    """Return how a number stands beside an axis."""
    return f"{value:,.10g}".replace("-", "−")


def save(figure: Figure, path: str | os.PathLike[str] | None) -> None:
    """Write a chart, if there is a path: without a date, so that equal releases give equal files."""
    if path is not None:
        figure.savefig(path, dpi=160, metadata=_DATELESS[Path(path).suffix.lower()])


def label_axes(axes: Axes, x: str, y: str = "") -> None:
    """Say what both axes are, and write their numbers in full."""
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(written)
    axes.set_xlabel(x, color=INK, fontsize=10)
    axes.set_ylabel(y, color=INK, fontsize=10)
