"""The look that all charts share, and how they are written: PNG, SVG and PDF are made without a browser.

Nothing is registered with Altair, whose themes are global: each chart says what it looks like, and so it can be put
beside and above others.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Special
from dpfast.charts.saving import check_place, save_picture
from dpfast.charts.seen import with_seen_texts
from dpfast.charts.ticks import whole_ticks
from dpfast.errors import ParameterError, Words

if TYPE_CHECKING:
    import altair as alt


__all__ = [
    "BAR",
    "CHART_SUFFIXES",
    "COLOURS",
    "DOT",
    "FAINT",
    "INK",
    "LINE",
    "MOST_ROWS",
    "WHISKER",
    "ChartPath",
    "Title",
    "check_plot",
    "finite",
    "layer",
    "number_axis",
    "rows_of",
    "save_plot",
    "some_of",
    "whole_axis",
]

#: What a chart's file may end in.
CHART_SUFFIXES = (".png", ".svg", ".pdf")

#: Where a chart is written.
ChartPath: TypeAlias = Annotated[
    str | os.PathLike[str] | None,
    Special(lambda: (5, True, 0.5, b"a.png", "", "chart", "a.txt", ["a.png"], object()), optional=True),
]
Title: TypeAlias = Annotated[str | None, Special(lambda: (5, True, b"title", ["title"], object()), optional=True)]

#: Altair's limit on the rows of a chart.
MOST_ROWS = 5000
BAR, DOT, WHISKER, INK, FAINT, LINE, GRID = "#8fb8de", "#1f5f99", "#22303c", "#1c2733", "#5b6770", "#c8553d", "#e3e7eb"
#: Lines beside each other: distinguishable also for those who see no red or no green (Okabe, Ito 2008).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
_WIDTH, _SCALE = 560, 2.0


def check_plot(path: ChartPath = None, title: Title = None) -> None:
    """Refuse a chart that could not be drawn, before any work.

    Raises
    ------
    ParameterError
        Altair is not installed, or, for a file, what writes it; the path's suffix is no kind of chart, something is
        there that is no picture, or the title is none.

    """
    for module in ("altair", *(["vl_convert"] if path is not None else [])):
        if importlib.util.find_spec(module) is None:
            name = module.replace("vl_convert", "vl-convert-python")
            raise ParameterError(name, Words("missing"), "installed for charts", 'run pip install "dpfast[plot]"')
    if path is not None:
        if not (isinstance(path, (str, os.PathLike)) and Path(path).suffix.lower() in CHART_SUFFIXES):
            raise ParameterError("path", path, "a path that ends in " + ", ".join(CHART_SUFFIXES))
        check_place(Path(path), folder=False)  # the demonstration makes its folder later
    if title is not None and not isinstance(title, str):
        raise ParameterError("title", title, "a string, or None")


def rows_of(columns: Mapping[str, Sequence[Any] | NDArray[Any]]) -> alt.Data:
    """Return columns as the data of a chart; what is no finite number is null."""
    import altair as alt

    listed = {
        name: finite(held).tolist() if isinstance(held, np.ndarray) else list(held) for name, held in columns.items()
    }
    rows = [dict(zip(listed, row, strict=True)) for row in zip(*listed.values(), strict=True)]
    return alt.Data(values=[{name: None if one != one else one for name, one in row.items()} for row in rows])


def finite(numbers: NDArray[Any]) -> NDArray[np.float64]:
    """Return numbers in which infinite ones are as far as the farthest finite one."""
    held = numbers.astype(np.float64)
    seen = held[np.isfinite(held)]
    low, high = (seen.min(), seen.max()) if seen.size else (0.0, 0.0)
    return np.where(np.isinf(held), np.where(held > 0, high, low), held)


def some_of(size: int, most: int = MOST_ROWS) -> NDArray[np.int64]:
    """Return the places of all values, or of as many as a chart may have, evenly spread."""
    return np.unique(np.linspace(0, max(size - 1, 0), min(size, most)).astype(np.int64))


def number_axis(title: str, **more: Any) -> alt.Axis:
    """Return an axis of numbers: a faint grid, and no line of its own."""
    import altair as alt

    return alt.Axis(
        title=title,
        grid=True,
        gridColor=GRID,
        domain=False,
        ticks=False,
        labelColor=FAINT,
        labelPadding=6,
        labelFlush=False,
        titleColor=INK,
        titleFontWeight="normal",
        titlePadding=10,
        **{"labelOverlap": True, "tickCount": 8, **more},
    )


def whole_axis(title: str, last: int) -> alt.Axis:
    """Return an axis of whole numbers from 0 on: between two of them stands none."""
    ticks = whole_ticks(last)
    return number_axis(title, format=",d", **({} if ticks is None else {"values": ticks}))


def layer(title: str, notes: Sequence[str], *marks: alt.Chart, height: Any, width: Any = _WIDTH) -> alt.LayerChart:
    """Return marks above each other under a title, and notes below it; every chart is made here, all text mended."""
    import altair as alt

    said = alt.TitleParams(
        text=title or " ",
        subtitle=_broken(notes),
        anchor="start",
        frame="bounds",
        fontSize=15,
        color=INK,
        subtitleColor=FAINT,
        subtitleFontSize=11,
        subtitlePadding=6,
        offset=14,
        limit=1000,
    )
    frame = alt.ViewBackground(stroke=None)
    return with_seen_texts(alt.layer(*marks).properties(title=said, width=width, height=height, view=frame))


def _broken(notes: Sequence[str], longest: int = 96) -> list[str]:
    """Return lines of at most so many characters."""
    lines = []
    for note in notes:
        line = ""
        for word in note.split():
            if line and len(line) + 1 + len(word) > longest:
                lines.append(line)
                line = ""
            line = f"{line} {word}".strip()
        lines.append(line)
    return lines


def save_plot(chart: alt.LayerChart, path: ChartPath) -> None:
    """Write a chart, if there is a path; an earlier picture is replaced, and nothing else.

    Raises
    ------
    FileError
        The folder is missing, something is there that is no picture, or the file cannot be written.

    """
    if path is None:
        return
    kind = Path(path).suffix.lower()[1:]
    padded = chart.properties(padding=16, background="white")
    more = {"scale_factor": _SCALE} if kind == "png" else {}
    save_picture(lambda part: padded.save(part, format=kind, **more), Path(path))
