"""What all charts have in common: colours, width, and how they are written."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING

from dpfast.errors import ParameterError, Words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["BAR", "CHART_SUFFIXES", "DOT", "FAINT", "INK", "WHISKER", "WIDTH", "check_chart", "save"]

#: What a chart's file may end in.
CHART_SUFFIXES = (".png", ".svg", ".pdf")

_DATELESS: dict[str, dict[str, None]] = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
WIDTH = 9.0
BAR, DOT, WHISKER, INK, FAINT = "#9dbfe0", "#1f5f99", "#2b3a48", "#1c2733", "#66727d"


def check_chart(path: str | os.PathLike[str] | None) -> None:
    """Refuse a chart that could not be drawn, before anything is charged for it.

    Raises
    ------
    ParameterError
        matplotlib is not installed, or the path's suffix is no kind of chart.

    """
    if importlib.util.find_spec("matplotlib") is None:
        raise ParameterError("matplotlib", Words("missing"), "installed for charts", 'run pip install "dpfast[plot]"')
    if path is not None and Path(path).suffix.lower() not in CHART_SUFFIXES:
        raise ParameterError("path", os.fspath(path), "a path that ends in " + ", ".join(CHART_SUFFIXES))


def save(figure: Figure, path: str | os.PathLike[str] | None) -> None:
    """Write a chart, if there is a path: without a date, so that equal releases give equal files."""
    if path is not None:
        figure.savefig(path, dpi=160, metadata=_DATELESS[Path(path).suffix.lower()])
