"""A chart across a page: many answers in their order, or a budget that is used up.

The field is stretched to the width of the page; letters stand beside it, and keep their size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpfast.charts.ticks import round_ticks
from dpfast.pages.bars import tick_text
from dpfast.pages.markup import Html, text

__all__ = ["Field", "dots", "falling"]

_WIDTH, _HEIGHT = 1000.0, 300.0
#: Where there are more values, neighbours are drawn as one line from the least to the largest.
_MOST = 400
_Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Field:
    """What stands beside a chart: below its ends, in words, and which numbers it encloses."""

    first: str
    last: str
    low: float
    high: float

    def html(self, drawn: str, said: str) -> Html:
        """Return the chart; ``said`` is what it shows, for those who do not see it."""
        ticks = round_ticks(self.low, self.high)
        places = [(tick, 1 - (tick - ticks[0]) / (ticks[-1] - ticks[0])) for tick in ticks]
        lines = "".join(
            f'<line class="{"zero" if tick == 0 else "grid"}" x1="0" x2="{_WIDTH:g}" y1="{_HEIGHT * at:.2f}" '
            f'y2="{_HEIGHT * at:.2f}" vector-effect="non-scaling-stroke"/>'
            for tick, at in places
        )
        # Letters are no part of the field, which is stretched.
        names = "".join(
            f'<text x="56" y="{at * 100:.3f}%" dy="4" text-anchor="end">{text(tick_text(tick, ""))}</text>'
            for tick, at in places
        )
        return Html(
            f'<div class="across"><svg class="rules" aria-hidden="true">{names}</svg>'
            f'<svg class="field" role="img" aria-label="{text(said)}" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" '
            f'preserveAspectRatio="none">{lines}{drawn}</svg>'
            f'<p class="ends"><span dir="auto">{text(self.first)}</span><span dir="auto">{text(self.last)}</span></p>'
            "</div>"
        )

    def up(self, values: _Numbers) -> _Numbers:
        """Return how far below the top values are."""
        ticks = round_ticks(self.low, self.high)
        placed: _Numbers = np.clip((ticks[-1] - values) / (ticks[-1] - ticks[0]), 0.0, 1.0) * _HEIGHT
        return placed


def dots(
    values: _Numbers, ends: tuple[_Numbers, _Numbers] | None, said: str, first: str = "first", last: str = "last"
) -> Html:
    """Return a dot for every value in their order, on a band of their intervals; of many, lines that enclose them.

    Parameters
    ----------
    values
        Numbers; those that are not finite are left out.
    ends
        Their intervals; None where nobody knows them.
    said
        What is shown.
    first, last
        What stands below the ends.

    """
    parts = np.array_split(np.arange(values.size), min(values.size, _MOST)) if values.size else []
    seen = np.concatenate([values, *(ends or ())])
    seen = seen[np.isfinite(seen)]
    low, high = (float(seen.min()), float(seen.max())) if seen.size else (0.0, 1.0)
    field = Field(first, last, min(low, 0.0), max(high, 0.0))
    across = (np.arange(len(parts)) + 0.5) * (_WIDTH / max(len(parts), 1))
    drawn = []
    if ends is not None and parts:
        lower = np.array([np.min(ends[0][part]) for part in parts])
        upper = np.array([np.max(ends[1][part]) for part in parts])
        half = _WIDTH / len(parts) / 2
        edges = np.repeat(across, 2) + np.tile([-half, half], len(parts))
        outline = [*zip(edges, np.repeat(field.up(upper), 2), strict=True)]
        outline += [*zip(edges, np.repeat(field.up(lower), 2), strict=True)][::-1]
        drawn.append(f'<polygon class="area" points="{" ".join(f"{x:.2f},{y:.2f}" for x, y in outline)}"/>')
    strokes = []
    for x, part in zip(across, parts, strict=True):
        held = values[part][np.isfinite(values[part])]
        if held.size:
            top, bottom = field.up(np.array([held.max(), held.min()]))
            strokes.append(f"M{x:.2f} {top:.2f}V{bottom + 0.01:.2f}")
    drawn.append(f'<path class="dots{" many" * (values.size > _MOST)}" d="{"".join(strokes)}"/>')
    return field.html("".join(drawn), said)


def falling(lines: Sequence[_Numbers], said: str, first: str, last: str) -> Html:
    """Return stairs of what is left, in percent, from before the first step to after the last one.

    Parameters
    ----------
    lines
        Of each amount what is left before everything and after every step, from 0 to 1.
    said
        What is shown.
    first, last
        What stands below the ends.

    """
    field = Field(first, last, 0.0, 100.0)
    drawn = []
    for number, left in enumerate(lines):
        # A million steps are no wider than the page.
        kept = np.unique(np.linspace(0, left.size - 1, min(left.size, 3 * _MOST)).astype(np.int64))
        step = _WIDTH / max(left.size - 1, 1)
        heights = field.up(100.0 * left[kept])
        path = f"M0 {heights[0]:.2f}" + "".join(
            f"H{place * step:.2f}V{height:.2f}" for place, height in zip(kept[1:], heights[1:], strict=True)
        )
        drawn.append(f'<path class="curve{" other" * (number > 0)}" d="{path}H{_WIDTH:g}"/>')
    return field.html("".join(drawn), said)
