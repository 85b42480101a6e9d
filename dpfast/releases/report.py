"""The page about a release: what it holds, what it promises, how far off it is, and what it cost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import polars as pl

from dpfast.charts.chosen import choose_groups
from dpfast.charts.text import joined, label_of, spoken, value_text
from dpfast.ledger.result_page import page_of_result
from dpfast.pages.across import dots
from dpfast.pages.bars import bars
from dpfast.pages.facts import plan_section
from dpfast.pages.frames import frame_table
from dpfast.pages.markup import Html, figure, paragraph, text
from dpfast.pages.page import Page, Section
from dpfast.releases.layout import ANSWER, Layout
from dpfast.showing import number_of

if TYPE_CHECKING:
    from dpfast.releases.release import Release

__all__ = ["page_of_release"]

_CHARTS, _TOP, _LONGEST = 8, 30, 80
_MOST_BARS = 40
_WHOLE = "the release's frame"
_TOO_LOW = (
    "The bounds on what one privacy unit adds have cut more than a tenth: counts and sums are too low on average, and "
    "intervals do not say so. Columns of the table that end in corrected make up for it."
)


def page_of_release(release: Release) -> Page:
    """Return the page: of what the release holds, and of nothing else."""
    frame, layout = release.frame, release._layout
    of_cells = bool(layout.asks)
    paid = release._paid
    figures = _answers(release, layout, frame) if of_cells else _groups(release, layout, frame)
    keys = layout.asks or len(layout.by)
    caption = "What each query asks, and its answer" if of_cells else "All groups that are shown"
    return page_of_result(
        "Differentially private release",
        _title(release, layout),
        [("Answers" if of_cells else "Groups shown", f"{frame.height:,}")],
        release.spent,
        paid,
        [
            Section("Figures", figures),
            Section("All answers" if of_cells else "All values", _table(frame, keys, caption)),
        ],
        _limits(release, layout, frame),
        plan_section(release.explain(), release._warnings),
        beside=_beside(release),
    )


def _title(release: Release, layout: Layout) -> str:
    if layout.asks:
        return f"{release._about} by {joined(layout.by, ' and ')}"
    by = joined(list(map(spoken, layout.by)), " and ")
    names = joined(list(map(spoken, layout.queries)), " and ")
    return f"{names} by {by}" if by else names


def _beside(release: Release) -> list[str]:
    """Return what is to be known of whom the promise is for."""
    unit = release._unit
    if unit is None:
        return []
    if unit.column is None:
        return ["It is a promise for single rows. Whoever has several rows in the data is protected for each alone."]
    return [f"Rows of one person with different values of “{unit.column}” would be protected apart from each other."]


def _groups(release: Release, layout: Layout, frame: pl.DataFrame) -> list[Html]:
    """Return a chart of every query, or of the first ones."""
    if not frame.height:
        return [paragraph(f"{release.why_empty}.".capitalize())]
    columns = dict[str, str]()
    for query, column in layout.values.items():
        # A quantile's columns have names of their own.
        columns.setdefault(column, query)
    drawn = list[Html]()
    if release.cut is not None and release.cut.many:
        drawn.append(paragraph(_TOO_LOW, "warning"))
    for query in list(columns.values())[:_CHARTS]:
        if query in layout.candidates:
            continue
        shown, by, name, _, in_order = layout.drawn(frame, query)
        chosen = choose_groups(shown, by, name, _TOP, in_order=in_order, longest=_LONGEST)
        drawn.append(Html(f'<h3 dir="auto">{text(chosen.title)}</h3>'))
        said = [chosen.which("the table below has all that are listed"), chosen.noise]
        if chosen.known:
            said.append("The smaller numbers are the ends of these intervals.")
        ranks = next((name for name in layout.queries if query.startswith(name) and f"{name}_ranks" in frame), None)
        if ranks is not None and not chosen.known:
            most = value_text(float(frame[f"{ranks}_ranks"].max()))  # type: ignore[arg-type]
            said.append(f"They are those of values at most {most} ranks from the exact ones, in 95 of 100 releases.")
        if chosen.unit == "hours":
            said.append("Numbers along the axis are hours.")
        if not chosen.with_zero and chosen.unit != "days":
            said.append("The axis does not begin at 0.")
        drawn.append(figure(bars(chosen), " ".join(said)))
    left = len(columns) - _CHARTS
    if left > 0:
        drawn.append(paragraph(f"{left} more columns have no chart here; the table has all of them.", "note"))
    if layout.candidates:
        named = joined([f"“{name}”" for name in layout.candidates], " and ")
        drawn.append(paragraph(f"The most common values, {named}, are in the table.", "note"))
    return drawn


def _answers(release: Release, layout: Layout, frame: pl.DataFrame) -> list[Html]:
    """Return a chart of all answers, and one of the histogram that they are sums of."""
    known = f"{ANSWER}_lower" in frame.columns
    within = "the lines are 95% intervals of the noise" if known else "how far off they are depends on the data"
    histogram = release.histogram
    drawn = list[Html]()
    if frame.height <= _MOST_BARS:
        labels = pl.Series("asks", [_asked(row, layout, histogram) for row in frame.head(_MOST_BARS).to_dicts()])
        chosen = choose_groups(
            frame.with_columns(labels), ["asks"], ANSWER, _MOST_BARS, in_order=True, as_bars=True, longest=_LONGEST
        )
        drawn.append(
            figure(bars(chosen), f"{number_of(frame.height, 'answer')} in the order of the queries; {within}.")
        )
    else:
        values = frame[ANSWER].to_numpy()
        ends = (frame[f"{ANSWER}_lower"].to_numpy(), frame[f"{ANSWER}_upper"].to_numpy()) if known else None
        low, high = float(values.min()), float(values.max())
        said = f"{frame.height:,} answers in the order of the queries, from {value_text(low)} to {value_text(high)}"
        lines = "the band is of 95% intervals of the noise" if known else within
        drawn.append(figure(dots(values, ends, said, "first query", "last query"), f"{said}; {lines}."))
    if frame.columns[0] == "cell":
        return drawn
    drawn.append(Html("<h3>The histogram that all answers are sums of</h3>"))
    said = f"Estimated counts of {number_of(histogram.height, 'cell')}. Single cells are less certain than sums of many"
    if histogram.height <= _MOST_BARS:
        chosen = choose_groups(
            histogram, layout.by, "estimate", _MOST_BARS, in_order=True, as_bars=True, longest=_LONGEST
        )
        drawn.append(figure(bars(chosen), f"{said}."))
    else:
        by = histogram.select(layout.by)
        first, last = (label_of(by.row(place), _LONGEST) for place in (0, -1))
        drawn.append(figure(dots(histogram["estimate"].to_numpy(), None, said, first, last), f"{said}."))
    return drawn


def _asked(row: dict[str, object], layout: Layout, histogram: pl.DataFrame) -> str:
    """Return what a query asks: by the keys of its cells, where it is of one cell or of a range of them."""
    keys = histogram.select(layout.by)
    cell, low, high = row.get("cell"), row.get("lower"), row.get("upper")
    if isinstance(cell, int):
        return label_of(keys.row(cell), _LONGEST)
    if isinstance(low, int) and isinstance(high, int) and 0 <= low < high <= keys.height:
        ends = [label_of(keys.row(place), _LONGEST // 2) for place in (low, high - 1)]
        return ends[0] if high - low == 1 else f"{ends[0]} to {ends[1]}"
    return label_of(list(row.values())[: layout.asks], _LONGEST)


def _table(frame: pl.DataFrame, keys: int, caption: str) -> list[Html]:
    return frame_table(frame, keys, caption, _WHOLE) if frame.height else [paragraph("There is no row to show.")]


def _limits(release: Release, layout: Layout, frame: pl.DataFrame) -> Iterable[str]:
    """Yield what figures and intervals do not say."""
    unit = release._unit
    if not layout.asks or f"{ANSWER}_lower" in frame.columns:
        yield (
            "Intervals are for the noise alone: each holds what these rows would give without noise in 95 of 100 "
            "releases. One in twenty does not, so of many intervals some are wrong."
        )
    if any(name.endswith("_population_lower") for name in frame.columns):
        yield (
            "The columns that end in population_lower and population_upper are 95% intervals for the population that "
            "the rows were drawn from: for noise and sample together."
        )
    if unit is not None and unit.column is not None:
        rows = (
            "all of its rows" if unit.keeps_all_rows else f"{number_of(unit.max_rows_per_group, 'row')} in each of them"
        )
        yield (
            f"Of each “{unit.column}” at most {number_of(unit.max_groups, 'group')} were kept, and {rows}, chosen at "
            "random. What lies beyond is left out, so counts and sums are too low where some have more. "
            "Intervals do not cover that."
        )
    if release.cut is not None:
        cut = release.cut
        yield (
            f"Told privately: about {cut.units_cut:,} of {cut.units:,} lost rows to these bounds, give or take "
            f"{cut.units_within:,}."
        )
    if not layout.asks:
        yield "Where the plan below names bounds of values, those outside were moved to the nearer bound."
    for name, value in release.chosen.items():
        yield f"Chosen privately for {name}: {value}."
    if not layout.asks:
        yield (
            "Counts and sums may be below zero, since noise goes both ways. Cutting them off at zero would make sums "
            "of groups too large."
        )
    else:
        yield "All answers are sums of one noisy histogram, so they agree with each other. They may be below zero."
    yield "The same release, read again or worked with further, costs nothing more. Another release costs its own."
