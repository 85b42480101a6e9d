"""What all charts have in common: colours, width, and how they are written."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Special
from dpfast.errors import ParameterError, Words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "BAR",
    "CHART_SUFFIXES",
    "DOT",
    "FAINT",
    "INK",
    "LINE",
    "WHISKER",
    "check_chart",
    "dot_size",
    "footnote",
    "label_axes",
    "save",
    "start_chart",
    "thinned",
    "written",
]

#: What a chart's file may end in.
CHART_SUFFIXES = (".png", ".svg", ".pdf")

#: Where a chart is written.
ChartPath: TypeAlias = Annotated[
    str | os.PathLike[str] | None,
    Special(lambda: (5, True, 0.5, b"a.png", "", "chart", "a.txt", ["a.png"], object()), optional=True),
]
Title: TypeAlias = Annotated[str | None, Special(lambda: (5, True, b"title", ["title"], object()), optional=True)]

_DATELESS: dict[str, dict[str, None]] = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
_WIDTH = 9.0
_MOST_LARGE_DOTS = 200
#: More dots than these would hide each other.
_MOST_DOTS = 20_000
BAR, DOT, WHISKER, INK, FAINT = "#9dbfe0", "#1f5f99", "#2b3a48", "#1c2733", "#66727d"
LINE, _GRID = "#c8553d", "#e3e7eb"


def check_chart(path: ChartPath, title: Title = None) -> None:
    """Refuse a chart that could not be drawn, before anything is charged for it.

    Raises
    ------
    ParameterError
        matplotlib is not installed, the path's suffix is no kind of chart, or the title is none.

    """
    if importlib.util.find_spec("matplotlib") is None:
        raise ParameterError("matplotlib", Words("missing"), "installed for charts", 'run pip install "dpfast[plot]"')
    if path is not None and not (isinstance(path, (str, os.PathLike)) and _suffix(path) in CHART_SUFFIXES):
        raise ParameterError("path", path, "a path that ends in " + ", ".join(CHART_SUFFIXES))
    if title is not None and not isinstance(title, str):
        raise ParameterError("title", title, "a string, or None")


def _suffix(path: str | os.PathLike[str]) -> str:
    return Path(path).suffix.lower()


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


def thinned(size: int) -> NDArray[np.int64]:
    """Return the places of dots that are shown: all, or as many as can be seen."""
    return np.unique(np.linspace(0, size - 1, min(size, _MOST_DOTS)).astype(np.int64))


def dot_size(dots: int) -> float:
    """Return how large dots are, if there are so many."""
    return 3.5 if dots <= _MOST_LARGE_DOTS else 1.2


def footnote(figure: Figure, text: str) -> None:
    """Say what was drawn below a chart."""
    figure.supxlabel(text, x=0.016, ha="left", fontsize=8, color=FAINT)


def written(value: float, _: object) -> str:
    """Return how a number stands beside an axis."""
    return f"{value:,.10g}".replace("-", "−")


def save(figure: Figure, path: str | os.PathLike[str] | None) -> None:
    """Write a chart, if there is a path: without a date, so that equal releases give equal files."""
    if path is not None:
        figure.savefig(path, dpi=160, metadata=_DATELESS[_suffix(path)])


def label_axes(axes: Axes, x: str, y: str = "") -> None:
    """Say what both axes are, and write their numbers in full."""
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(written)
    axes.set_xlabel(x, color=INK, fontsize=10)
    axes.set_ylabel(y, color=INK, fontsize=10)
