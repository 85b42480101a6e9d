"""A frame as a table of a page: a value and its interval beside each other, and of very many rows the first."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from dpfast.charts.text import value_text
from dpfast.pages.markup import Cell, Html, paragraph, scrolled, table
from dpfast.showing import number_of

__all__ = ["frame_table"]

_ROWS, _CELLS = 2000, 40_000
_LONGEST = 160


def frame_table(
    frame: pl.DataFrame, keys: int, caption: str, whole: str, *, numbers: Collection[str] = ()
) -> list[Html]:
    """Return a frame's table, and below it a line of what is left out, if anything is.

    Parameters
    ----------
    frame
        Released figures. A column ``q`` with ``q_lower`` and ``q_upper`` has its interval in one cell beside it; a
        ``q_scale`` that is the same in all rows is left out.
    keys
        How many columns stand before the values: they say what a row is about.
    caption
        What the table shows.
    whole
        Where all rows are, for the line of what is left out.
    numbers
        Columns of text that are numbers.

    """
    columns = frame.columns
    bounded = {name for name in columns if {f"{name}_lower", f"{name}_upper"} <= set(columns)}
    left_out = {f"{name}{end}" for name in bounded for end in ("_lower", "_upper")}
    left_out |= {name for name in columns if _is_constant_scale(frame, name)}
    kept = [name for place, name in enumerate(columns) if place < keys or name not in left_out]
    headers, parts = list[Cell](), list[list[Cell]]()
    rows = max(1, min(_ROWS, _CELLS // max(len(columns), 1)))
    shown = frame.head(rows)
    for name in kept:
        is_number = frame.schema[name].is_numeric() or name in numbers
        headers.append(Cell(value_text(name, _LONGEST), is_number))
        parts.append([Cell(value_text(value, _LONGEST), is_number) for value in shown[name]])
        if name in bounded and name not in columns[:keys]:
            headers.append(Cell("95% interval", is_number))
            ends = zip(shown[f"{name}_lower"], shown[f"{name}_upper"], strict=True)
            parts.append([Cell(_between(low, high), is_number) for low, high in ends])
    listed = zip(*parts, strict=True) if parts else ()
    made = [scrolled(table(caption, headers, listed, keys=keys), f"Table: {caption}")]
    if frame.height > rows:
        left = frame.height - rows
        said = f"These are the first {rows:,} of {number_of(frame.height, 'row')}; {left:,} more are in {whole}."
        made.append(paragraph(said, "note"))
    return made


def _between(low: object, high: object) -> str:
    return f"{value_text(low, _LONGEST)} to {value_text(high, _LONGEST)}"


def _is_constant_scale(frame: pl.DataFrame, name: str) -> bool:
    is_scale = name.endswith("_scale") and name.removesuffix("_scale") in frame.columns
    return is_scale and frame.height > 0 and frame[name].n_unique() == 1
