"""A chart of groups on a page: a list that reads as text, and beside each entry a bar with its interval.

Positions are parts of the width: the chart fits every screen, and letters keep their size.
"""

from __future__ import annotations

import datetime
import math

import numpy as np

from dpfast.charts.chosen import ChosenGroups
from dpfast.charts.ticks import round_ticks
from dpfast.pages.markup import Html, text

__all__ = ["bars", "place_between", "tick_text"]

_TICKS = 5
#: A bar's height in pixels.
_THICK = 12


def bars(chosen: ChosenGroups) -> Html:
    """Return the list of groups that were chosen."""
    ticks = _ticks(chosen)
    low, high = ticks[0], ticks[-1]
    grid = "".join(
        f'<line class="{"zero" if tick == 0 and chosen.unit != "days" else "grid"}" x1="{at}" x2="{at}" y1="0" '
        'y2="100%"/>'
        for tick in ticks
        for at in [place_between(tick, low, high)]
    )
    rows = "".join(_row(chosen, place, grid, low, high) for place in range(len(chosen.labels)))
    names = "".join(
        f'<text x="{place_between(tick, low, high)}" y="14" text-anchor="{_anchor(place, len(ticks))}"'
        f"{_narrow(place, len(ticks), chosen.unit)}>"
        f"{text(tick_text(tick, chosen.unit))}</text>"
        for place, tick in enumerate(ticks)
    )
    axis = f'<li class="axis" aria-hidden="true"><svg width="100%" height="20" aria-hidden="true">{names}</svg></li>'
    return Html(f'<ol class="bars">{rows}{axis}</ol>')


def _row(chosen: ChosenGroups, place: int, grid: str, low: float, high: float) -> str:
    value, first, last = chosen.values[place], chosen.lower[place], chosen.upper[place]
    drawn = []
    if math.isfinite(value):
        at = place_between(value, low, high)
        if chosen.bars:
            start, stop = sorted((_part(0.0, low, high), _part(value, low, high)))
            drawn.append(
                f'<rect class="fill" x="{start:.3f}%" y="50%" width="{stop - start:.3f}%" height="{_THICK}" rx="2" '
                f'transform="translate(0 {-_THICK / 2:g})"/>'
            )
        if chosen.known:
            ends = place_between(first, low, high), place_between(last, low, high)
            drawn.append(f'<line class="whisker" x1="{ends[0]}" x2="{ends[1]}" y1="50%" y2="50%"/>')
            drawn += [
                f'<rect class="cap" x="{end}" y="50%" width="1.5" height="8" transform="translate(-.75 -4)"/>'
                for end, bound in zip(ends, (first, last), strict=True)
                if math.isfinite(bound)
            ]
        if not chosen.bars:
            drawn.append(f'<circle class="dot" cx="{at}" cy="50%" r="4"/>')
    ends_said = "" if chosen.ends is None else " to ".join(chosen.ends[place])
    return (
        f'<li><span class="label" dir="auto">{text(chosen.labels[place])}</span> '
        f'<span class="said">{text(chosen.texts[place])}</span> <span class="ends">{text(ends_said)}</span>'
        f'<svg width="100%" height="28" aria-hidden="true">{grid}{"".join(drawn)}</svg></li>'
    )


def _ticks(chosen: ChosenGroups) -> list[float]:
    """Return round numbers that enclose all values and intervals."""
    seen = np.concatenate([chosen.values, chosen.lower, chosen.upper])
    seen = seen[np.isfinite(seen)]
    low, high = (float(seen.min()), float(seen.max())) if seen.size else (0.0, 1.0)
    if chosen.with_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    return round_ticks(low, high, _TICKS)


def _part(value: float, low: float, high: float) -> float:
    """Return where a value is, in percent; infinite ones are at the end."""
    return float(np.clip((value - low) / (high - low), 0.0, 1.0)) * 100


def place_between(value: float, low: float, high: float) -> str:
    """Return the same as an attribute of SVG."""
    return f"{_part(value, low, high):.3f}%"


def _anchor(place: int, ticks: int) -> str:
    return "start" if place == 0 else "end" if place == ticks - 1 else "middle"


def _narrow(place: int, ticks: int, unit: str) -> str:
    """Return the class of what a narrow screen has no place for: every second date, or all but the ends."""
    kept = place in (0, ticks - 1) or (ticks % 2 == 1 and 2 * place == ticks - 1)
    return "" if kept or unit != "days" else ' class="minor"'


def tick_text(tick: float, unit: str) -> str:
    """Return what stands at a tick: dates, where the numbers are days since 1970."""
    if unit == "days":
        try:
            moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(days=tick)
        except OverflowError:
            return ""
        return f"{moment:%Y-%m-%d}" if tick == int(tick) else f"{moment:%Y-%m-%d %H:%M}"
    return f"{tick:,.10g}".replace("-", "−")
