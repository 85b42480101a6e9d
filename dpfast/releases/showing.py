"""What plans and releases show of themselves at a prompt and in a notebook: the first of many, never all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import polars as pl

from dpfast.showing import Card

if TYPE_CHECKING:
    from dpfast.releases.blueprint import Blueprint

__all__ = ["card_of_plan", "card_of_release", "card_of_table", "shown_plan", "shown_release", "shown_table"]

_ROWS, _COLUMNS, _WIDTH = 10, 8, 32
#: The columns of a plan's frame that are shown, where it has them: by group, and of a workload.
_PLANNED = ("query", "measure", "mechanism", "scale", "error95", "strategy", "rmse")


def shown_plan(blueprint: Blueprint, state: str) -> list[str]:
    """Return the lines that a plan shows: unit, queries, errors and charge."""
    headers, rows, more = _planned(blueprint)
    return [*_about(blueprint, state), *_columns(headers, rows), *more]


def card_of_plan(blueprint: Blueprint, state: str) -> Card:
    """Return the same for a notebook."""
    headers, rows, more = _planned(blueprint)
    return Card(_about(blueprint, state), headers=headers, rows=rows, more=more)


def shown_release(heading: str, frame: pl.DataFrame) -> list[str]:
    """Return the lines that a release shows: its first rows, each value with its interval."""
    headers, rows, more = _released(frame)
    return [heading, *_columns(headers, rows), *more]


def card_of_release(heading: str, frame: pl.DataFrame) -> Card:
    """Return the same for a notebook."""
    headers, rows, more = _released(frame)
    return Card([heading], headers=headers, rows=rows, more=more)


def _about(blueprint: Blueprint, state: str) -> list[str]:
    """Return the first lines of an explanation, and the charge."""
    unit, about, *_ = blueprint.explain(measures=False).splitlines()
    lines = [f"Plan: {about}", unit, f"charge: {blueprint.budget}; {state}", *blueprint.warnings]
    return [shorten(line, 240) for line in lines]


def _planned(blueprint: Blueprint) -> tuple[list[str], list[list[str]], list[str]]:
    frame = blueprint.to_frame()
    return _table(frame.select(name for name in _PLANNED if name in frame.columns), "measures")


def _released(frame: pl.DataFrame) -> tuple[list[str], list[list[str]], list[str]]:
    """Return a release's columns, in which a value and its interval are one; scales are left to the frame."""
    beside = {f"{name}{end}" for name in frame.columns for end in ("_lower", "_upper", "_scale")}
    bounded = [name for name in frame.columns if f"{name}_lower" in frame.columns and f"{name}_upper" in frame.columns]
    shown = frame.head(_ROWS)
    columns = [
        pl.Series(name, map(_with_interval, *(shown[f"{name}{end}"] for end in ("", "_lower", "_upper"))), pl.String)
        if name in bounded
        else shown[name]
        for name in frame.columns
        if not (name in beside and any(name.startswith(f"{one}_") for one in bounded))
    ]
    return _table(pl.DataFrame(columns), "rows", frame.height)


def _table(frame: pl.DataFrame, what: str, height: int | None = None) -> tuple[list[str], list[list[str]], list[str]]:
    """Return headers, the first rows as text, and a line of what is left out."""
    height = frame.height if height is None else height
    shown = frame.head(_ROWS).select(frame.columns[:_COLUMNS])
    more = []
    if height > _ROWS:
        more.append(f"and {height - _ROWS:,} more {what}")
    if frame.width > _COLUMNS:
        more.append(f"and {frame.width - _COLUMNS:,} more columns: see the frame")
    return [_cell(name) for name in shown.columns], [[*map(_cell, row)] for row in shown.iter_rows()], more


def shown_table(frame: pl.DataFrame, what: str) -> list[str]:
    """Return the lines of a frame's first rows and columns, and of what is left out."""
    headers, rows, more = _table(frame, what)
    return [*_columns(headers, rows), *more]


def card_of_table(lines: Sequence[str], frame: pl.DataFrame, what: str) -> Card:
    """Return the same for a notebook, below other lines."""
    headers, rows, more = _table(frame, what)
    return Card(lines, headers=headers, rows=rows, more=more)


def _with_interval(value: Any, lower: Any, upper: Any) -> str:
    return f"{_number(value)} [{_number(lower)}, {_number(upper)}]"


def _number(value: Any) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    # A list of a histogram, or of candidates, as Polars shows it.
    return f"{value:,.6g}" if isinstance(value, float) else str(value.to_list() if hasattr(value, "to_list") else value)


def _cell(value: Any) -> str:
    text = f"{value:,.6g}" if isinstance(value, float) else "" if value is None else " ".join(str(value).split())
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."


def _columns(headers: list[str], rows: list[list[str]]) -> Iterator[str]:
    """Yield the lines of a table, its columns below each other."""
    widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
    for row in (headers, *rows):
        yield "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
