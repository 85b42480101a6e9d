"""A chart of groups: bars of counts and sums, dots of means, quantiles and modes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import polars as pl

from dpfast.arguments import Whole
from dpfast.charts.drawing import (
    BAR,
    DOT,
    FAINT,
    INK,
    WHISKER,
    ChartPath,
    check_chart,
    footnote,
    save,
    start_chart,
    written,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["OWN_TOP", "draw_groups", "dress", "group_height", "group_label"]

_LONGEST_LABEL = 42
_LONGEST_ROW_OF_NAMES = 90
_MOST = 500
TOP = Whole(1, _MOST)
OWN_TOP = replace(TOP, optional=True)
_ROW_HEIGHT, _MARGIN_HEIGHT = 0.27, 1.9


def draw_groups(
    frame: pl.DataFrame,
    by: Sequence[str],
    name: str,
    top: Annotated[int, TOP],
    path: ChartPath = None,
    *,
    candidates: Sequence[Any] | None = None,
) -> Figure:
    """Draw one released query's largest groups with their 95% intervals.

    Parameters
    ----------
    frame
        A release's frame: the key columns ``by``, and ``name`` with ``_scale``, ``_lower`` and ``_upper``; quantiles
        have none of these, and are drawn as dots alone.
    by
        The key columns; two are joined by an arrow, more by commas.
    name
        The query. Whole numbers are drawn as bars, others (means) as dots.
    top
        How many groups to show at most. Where every group has the same noise, those of the largest values;
        where the noise differs (means), those of the least noise, which are the largest groups. Of a mode, the first.
    path
        Where to write the chart as well; None for nowhere.
    candidates
        The values that a mode may have; those that it has in the groups shown are the places of its dots.

    Returns
    -------
    matplotlib.figure.Figure
        The chart; a notebook shows it.

    Raises
    ------
    ParameterError
        matplotlib is not installed, the path's suffix is no kind of chart, or ``top`` is out of range.

    """
    check_chart(path)
    top = TOP.read("top", top)
    groups, places_of = frame.height, None
    if candidates is not None:
        frame, places_of = _place_candidates(frame.head(top), name, candidates)
    scale, lower, upper = f"{name}_scale", f"{name}_lower", f"{name}_upper"
    known = scale in frame.columns
    frame, unit = _as_numbers(frame, [column for column in (name, scale, lower, upper) if column in frame.columns])
    if not known:
        value = pl.col(name)
        frame = frame.with_columns(pl.lit(0.0).alias(scale), value.alias(lower), value.alias(upper))
    scales = frame[scale].to_numpy()
    varies = scales.size > 0 and bool(scales.min() < scales.max())
    shown = frame.sort(scale, maintain_order=True) if varies else frame.sort(name, descending=True)
    shown = shown.head(top).sort(name, descending=candidates is None, maintain_order=candidates is not None)

    figure, axes = start_chart(_title(name, by), group_height(shown.height), grid="x")
    values = shown[name].to_numpy().astype(np.float64)
    # The interval of a clamped mean may leave its value outside by a rounding error; whiskers are never negative.
    reach = np.maximum(
        [values - shown[lower].to_numpy().astype(np.float64), shown[upper].to_numpy().astype(np.float64) - values], 0.0
    )
    places = np.arange(shown.height)
    whiskers: dict[str, Any] = {"xerr": reach, "capsize": 2.2, "zorder": 3}
    if known and frame.schema[name].is_integer():
        axes.barh(places, values, height=0.68, color=BAR, zorder=2)
        axes.errorbar(values, places, fmt="none", ecolor=WHISKER, elinewidth=1.1, **whiskers)
    else:
        axes.errorbar(values, places, fmt="o", color=DOT, markersize=5, elinewidth=1.2, **whiskers)
    dress(axes, [group_label(shown, by, row) for row in range(shown.height)])
    if unit == "days":
        _date(axes)
        if values.size and not reach.any() and values.min() == values.max():
            # Around one moment there would be years.
            axes.set_xlim(values[0] - 1, values[0] + 1)
    elif places_of is None:
        axes.axvline(0, color=FAINT, linewidth=0.8, zorder=1)
    else:
        _name_places(axes, places_of)
    said = f"{name.replace('_', ' ')} (hours)" if unit == "hours" else name.replace("_", " ")
    axes.set_xlabel(said, color=INK, fontsize=10, parse_math=False)
    if not shown.height:
        axes.set_axis_off()
        axes.text(0.5, 0.5, "No group was large enough to be shown.", ha="center", transform=axes.transAxes)
    drawn = "most common values" if candidates else "quantiles"
    chosen = "first" if candidates is not None else "with the least noise" if varies else "largest"
    which = _which(groups, shown.height, chosen)
    footnote(figure, _drawn_from(which, shown, scale if known else None, drawn))
    save(figure, path)
    return figure


def _as_numbers(frame: pl.DataFrame, columns: Sequence[str]) -> tuple[pl.DataFrame, str]:
    """Return the frame with numbers in these columns, the first of which has the values, and what times are told in.

    That is ``"days"`` since 1970 of dates and moments, ``"hours"`` of durations and times of day, else ``""``.
    """
    dtype = frame.schema[columns[0]]
    if isinstance(dtype, pl.Decimal):
        return frame.with_columns(pl.col(*columns).cast(pl.Float64)), ""
    if not dtype.is_temporal():
        return frame, ""
    unit = "days" if isinstance(dtype, (pl.Date, pl.Datetime)) else "hours"
    a_unit = 86_400e6 if unit == "days" else 3600e6
    numbers = {}
    for column in columns:
        held = frame[column]
        if isinstance(held.dtype, (pl.Date, pl.Datetime)):
            numbers[column] = held.dt.epoch("us") / a_unit
        elif held.dtype.is_temporal():
            numbers[column] = held.cast(pl.Duration("us")).dt.total_microseconds() / a_unit
    return frame.with_columns(**numbers), unit


def _date(axes: Axes) -> None:
    """Let the axis show dates."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator()
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))


def _place_candidates(frame: pl.DataFrame, name: str, candidates: Sequence[Any]) -> tuple[pl.DataFrame, list[str]]:
    """Return the frame with places along the axis for candidates, and what stands at these: those that there are."""
    found = frame[name].to_list()
    seen = [candidate for candidate in candidates if candidate in found]
    places = pl.Series(name, [seen.index(value) for value in found], dtype=pl.Int64)
    return frame.with_columns(places), [_shortened("(null)" if value is None else str(value)) for value in seen]


def _name_places(axes: Axes, names: list[str]) -> None:
    """Put names below the axis, slanted where they would touch each other."""
    slant = 30 if sum(map(len, names)) > _LONGEST_ROW_OF_NAMES else 0
    axes.set_xticks(
        range(len(names)), names, fontsize=9, color=FAINT, rotation=slant, ha="right" if slant else "center"
    )
    for label in axes.get_xticklabels():
        label.set_parse_math(False)
    axes.set_xlim(-0.5, max(len(names), 2) - 0.5)


def group_height(groups: int) -> float:
    """Return how high a chart of so many groups is."""
    return _MARGIN_HEIGHT + _ROW_HEIGHT * max(groups, 3)


def dress(axes: Axes, labels: list[str]) -> None:
    """Set what does not depend on the values: labels and ticks."""
    from matplotlib.ticker import MaxNLocator

    axes.set_yticks(range(len(labels)), labels, fontsize=9, color=INK)
    for label in axes.get_yticklabels():
        label.set_parse_math(False)
    axes.set_ylim(max(len(labels), 3) - 0.4, -0.6)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(written)


def _title(name: str, by: Sequence[str]) -> str:
    return f"{name.replace('_', ' ')} by {_joined(by, ' and ')}" if by else name.replace("_", " ")


def _joined(parts: Sequence[str], last: str) -> str:
    return last.join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)


def group_label(shown: pl.DataFrame, by: Sequence[str], row: int) -> str:
    """Return what stands beside a group."""
    keys: list[Any] = [shown[column][row] for column in by]
    words = ["(null)" if key is None else " ".join(str(key).split()) or "(empty)" for key in keys]
    return _shortened((" → " if len(words) == 2 else ", ").join(words) or "all rows")


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_LABEL else text[: _LONGEST_LABEL - 1] + "…"


def _which(groups: int, shown: int, chosen: str) -> str:
    """Say which groups are shown, and how to see the others; ``chosen`` says which come first."""
    if shown == groups:
        return f"{groups:,} groups."
    others = f"release.plot(top={groups}) shows all" if groups <= _MOST else f"top= may be up to {_MOST}"
    return f"The {shown:,} {chosen} of {groups:,} released groups; {others}."


def _drawn_from(which: str, shown: pl.DataFrame, scale: str | None, drawn: str) -> str:
    if not shown.height:
        return "Differentially private: keys of few units are not shown."
    if scale is None:
        return f"Differentially private: {drawn} drawn by the exponential mechanism.\n{which}"
    scales = shown[scale]
    low, high = float(scales.min()), float(scales.max())  # type: ignore[arg-type]
    size = f"{low:,.3g}" if low == high else f"{low:,.3g} to {high:,.3g}"
    return f"Differentially private: noise of scale {size}; whiskers are 95% intervals of the noise.\n{which}"
