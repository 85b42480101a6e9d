"""Charts of a page of results, on scales of powers of ten: ratios to ours, and the cost of a value by how many."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import polars as pl

from dpfast.bench.showing import human, ratio
from dpfast.pages.bars import place_between
from dpfast.pages.markup import Html, figure, join, text

__all__ = ["costs", "ratios"]

_WIDTH, _HEIGHT = 1000.0, 300.0
#: How lines of one chart are told apart, in words and in attributes of SVG.
_STROKES = (
    ("solid", 'class="curve"'),
    ("dashed", 'class="curve other"'),
    ("dotted", 'class="curve" stroke-dasharray="1 7" stroke-linecap="round"'),
    ("dashes and dots", 'class="curve" stroke-dasharray="9 4 2 4"'),
)


def ratios(frame: pl.DataFrame, caption: str) -> Html:
    """Return a row for each ratio: a dot, a line for its interval, and a rule at 1, where both are alike.

    Parameters
    ----------
    frame
        Rows of results that have a ratio.
    caption
        What is shown.

    """
    known = [value for name in ("ratio_low", "ratio_high") for value in frame[name] if value > 0]
    low, high = _decades(min([*known, 1.0]), max([*known, 1.0]))
    ticks = _ticks(low, high)
    rules = "".join(
        f'<line class="{"zero" if tick == 1 else "grid"}" x1="{at}" x2="{at}" y1="0" y2="100%"/>'
        for tick in ticks
        for at in [_across(tick, low, high)]
    )
    rows = [_row(row, rules, low, high) for row in frame.iter_rows(named=True)]
    names = "".join(
        f'<text x="{_across(tick, low, high)}" y="14" text-anchor="middle">{tick:,.10g}</text>'
        for tick in _thinned(ticks)
    )
    rows.append(f'<li class="axis" aria-hidden="true"><svg width="100%" height="20" aria-hidden="true">{names}</svg>')
    return figure(Html(f'<ol class="bars">{"</li>".join(rows)}</li></ol>'), caption)


def _row(row: dict[str, object], rules: str, low: float, high: float) -> str:
    ends = [_across(float(row[name]), low, high) for name in ("ratio", "ratio_low", "ratio_high")]  # type: ignore[arg-type]
    said, _, between = ratio(row).partition(" ")
    size = f", {row['size']:,}" if row["size"] != 1 else ""  # a run of one thing
    return (
        f'<li><span class="label">{text(str(row["name"]))}<br>{text(str(row["contestant"]))}{size}</span> '
        f'<span class="said">{text(said)}</span> <span class="ends">{text(between.strip("()"))}</span>'
        f'<svg width="100%" height="28" aria-hidden="true">{rules}'
        f'<line class="whisker" x1="{ends[1]}" x2="{ends[2]}" y1="50%" y2="50%"/>'
        f'<circle class="dot" cx="{ends[0]}" cy="50%" r="4"/></svg>'
    )


def costs(frame: pl.DataFrame, name: str) -> Html:
    """Return lines of what a value costs, by how many there are: one for each contestant, of one case.

    Parameters
    ----------
    frame
        Rows of results with medians above 0, of several sizes.
    name
        What is done.

    """
    each = frame.with_columns(cost=pl.col("median") / pl.col("size")).sort("size")
    left, right = _decades(*_ends(each["size"].cast(pl.Float64)))
    low, high = _decades(*_ends(each["cost"]))
    rules, names = [], []
    for tick in _powers(low, high):
        at = 1 - _part(tick, low, high)
        rules.append(_rule(0, _WIDTH, at * _HEIGHT, at * _HEIGHT))
        names.append(f'<text x="54" y="{100 * at:.3f}%" dy="4" text-anchor="end">{text(human(tick))}</text>')
    rules += [_rule(x, x, 0, _HEIGHT) for tick in _powers(left, right) for x in [_WIDTH * _part(tick, left, right)]]
    lines, told = [], []
    for (who, some), (word, stroke) in zip(
        each.group_by("contestant", maintain_order=True), itertools.cycle(_STROKES), strict=False
    ):
        places = [
            f"{_WIDTH * _part(size, left, right):.2f} {_HEIGHT * (1 - _part(cost, low, high)):.2f}"
            for size, cost in some.select("size", "cost").iter_rows()
        ]
        lines.append(f'<path {stroke} d="M{"L".join(places)}" vector-effect="non-scaling-stroke"/>')
        told.append(f"{who[0]} {word}")
    said = f"{name}: time of a value by how many there are"
    drawn = Html(
        f'<div class="across"><svg class="rules" aria-hidden="true">{"".join(names)}</svg>'
        f'<svg class="field" role="img" aria-label="{text(said)}" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" '
        f'preserveAspectRatio="none">{"".join(rules + lines)}</svg>'
        f'<p class="ends"><span>{left:,.10g} values</span><span>{right:,.10g} values</span></p></div>'
    )
    caption = " ".join([f"Time of a value by how many there are: {', '.join(told)}.", *_bends(each)])
    return join([Html(f"<h3>{text(name)}</h3>"), figure(drawn, caption)])


def _bends(frame: pl.DataFrame) -> list[str]:
    """Return what is said of where costs bend, a sentence of each contestant that has one."""
    noted = frame.filter(pl.col("note") != "").select("contestant", "note")
    return [f"{who}: {note}." for who, note in noted.iter_rows()]


def _rule(x1: float, x2: float, y1: float, y2: float) -> str:
    ends = f'x1="{x1:.2f}" x2="{x2:.2f}" y1="{y1:.2f}" y2="{y2:.2f}"'
    return f'<line class="grid" {ends} vector-effect="non-scaling-stroke"/>'


def _ends(values: pl.Series) -> tuple[float, float]:
    return float(values.min()), float(values.max())  # type: ignore[arg-type]


def _decades(low: float, high: float) -> tuple[float, float]:
    """Return powers of ten that enclose both numbers, and are not the same."""
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    return 10.0**first, 10.0 ** max(last, first + 1)


def _powers(low: float, high: float) -> list[float]:
    return [10.0**power for power in range(round(math.log10(low)), round(math.log10(high)) + 1)]


def _ticks(low: float, high: float) -> list[float]:
    """Return the powers of ten; between few of them, their double and their fivefold as well."""
    powers = _powers(low, high)
    if len(powers) > 3:
        return powers
    return [tick for power in powers for tick in (power, 2 * power, 5 * power) if tick <= high * 1.001]


def _thinned(ticks: Sequence[float], most: int = 7) -> Sequence[float]:
    """Return so many of them that their names stand beside each other on a telephone."""
    return ticks[:: -(-len(ticks) // most)]


def _part(value: float, low: float, high: float) -> float:
    return (math.log(max(value, low)) - math.log(low)) / (math.log(high) - math.log(low))


def _across(value: float, low: float, high: float) -> str:
    return place_between(_part(value, low, high), 0.0, 1.0)
