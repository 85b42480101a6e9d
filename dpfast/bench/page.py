"""Results as one page that needs no network: what stands beside ours, charts of ratios and costs, and all figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl

from dpfast.bench.cases import SUITES
from dpfast.bench.charts import costs, ratios
from dpfast.bench.showing import HEADERS, cells, noted
from dpfast.pages import Page, Section
from dpfast.pages.markup import Cell, Html, bullets, definitions, paragraph, scrolled, table
from dpfast.showing import number_of

__all__ = ["holds_page", "write_page"]

_KIND = "dpfast bench"
_MARK = f" · {_KIND}</title>"
_ABOUT = (
    "A ratio says how many times ours the figure of another is, time by the value, in the same round: above 1 ours is "
    "faster, or errs less. Beside it stands an interval that covers its median with 99%, of all rounds where there are "
    "seven or fewer. Rounds of all contestants took turns."
)
#: What each suite compares.
_TOLD = {
    "speed": "Seconds of the same work on the same data.",
    "accuracy": "Errors at the same budget, one run of each contestant a round.",
    "accounting": "Seconds of accounting, and the epsilon that is charged for the same plan.",
    "pipeline": "Seconds of releases of frames, files and databases, beside the same without privacy.",
    "privacy": "Audits of neighbouring inputs. A bound is no measure: what counts is whether a claim is refuted.",
    "scaling": "Time of a value from few values to many, by threads, and peaks of memory of the process.",
}
#: More ratios than these are read in the table.
_MOST = 60


def holds_page(path: Path) -> bool:
    """Return whether a file is one that ``dpfast bench --page`` may replace: a page of an earlier run, or empty."""
    try:
        with open(path, "rb") as file:
            held = file.read(2000)
    except OSError:
        return False
    return not held or _MARK.encode() in held


def write_page(frame: pl.DataFrame, path: Path) -> None:
    """Write results as a page of HTML with everything in it."""
    first = frame.row(0, named=True)
    facts = [("Machine", first["machine"]), ("dpfast", _version(first)), *json.loads(first["versions"]).items()]
    suites = [suite for suite in SUITES if suite in set(frame["suite"])]
    failed = frame.filter(pl.col("failure") != "")
    lead = [paragraph(f"{number_of(frame.height, 'row')} of {', '.join(suites)}, on {first['machine']}.", "lead")]
    for failure, told in (("raised", "raised an error"), ("refuted", "made a claim that was refuted")):
        rows = failed.filter(pl.col("failure") == failure)
        if rows.height:
            lead.append(paragraph(f"{rows.height:,} of them {told}: {_whose(rows)}.", "warning"))
    sections = [
        *(_section(suite, frame.filter(pl.col("suite") == suite)) for suite in suites),
        Section("How it was measured", [paragraph(_ABOUT)]),
        Section("Machine and versions", [definitions(facts, "facts")]),
    ]
    page = Page(_KIND, "dpfast beside other libraries", lead, first["time"], sections)
    path.write_text(page.html(), encoding="utf-8")


def _version(row: dict[str, Any]) -> str:
    return f"{row['dpfast']}, commit {row['commit']}" if row["commit"] else str(row["dpfast"])


def _whose(failed: pl.DataFrame) -> str:
    named = failed.select("name", "contestant").unique(maintain_order=True)
    return "; ".join(f"{name}, {who}" for name, who in named.iter_rows())


def _section(suite: str, frame: pl.DataFrame) -> Section:
    headers = [Cell(header, place > 1) for place, header in enumerate(HEADERS)]
    rows = [[Cell(cell, place > 1) for place, cell in enumerate(cells(row))] for row in frame.iter_rows(named=True)]
    caption = f"All figures of the suite {suite}"
    several = _of_several_sizes(frame)
    # What is said of costs at several sizes stands below their chart.
    notes = [noted(row) for row in frame.iter_rows(named=True) if row["note"] and row["name"] not in several]
    drawn = _charts(frame, several)
    parts = [paragraph(_TOLD[suite]), *drawn, scrolled(table(caption, headers, rows, keys=2), caption)]
    return Section(suite.capitalize(), [*parts, bullets(notes)] if notes else parts)


def _of_several_sizes(frame: pl.DataFrame) -> list[str]:
    """Return the cases whose costs are drawn; contestants that took fewer values than ours are no size of their own."""
    ours = frame.filter(pl.col("median") > 0, contestant="dpfast", unit="s")
    sizes = ours.group_by("name", maintain_order=True).agg(pl.col("size").n_unique())
    return sizes.filter(pl.col("size") > 1)["name"].to_list()


def _charts(frame: pl.DataFrame, several: list[str]) -> list[Html]:
    """Return charts: of cases with one size all ratios, of those with several what a value costs."""
    drawn = [costs(frame.filter(pl.col("median") > 0, name=name), name) for name in several]
    shown = frame.filter(pl.col("ratio") > 0, ~pl.col("name").is_in(several))
    if shown.height:
        left = f" The first {_MOST} of {shown.height:,}; the table has all." if shown.height > _MOST else ""
        caption = f"How many times ours, with its interval: right of 1, ours is faster or errs less.{left}"
        drawn.append(ratios(shown.head(_MOST), caption))
    return drawn
