"""Results as one page that needs no network: tables, and a chart of ratios where matplotlib is installed."""

from __future__ import annotations

import importlib.util
import io
import json
from html import escape
from pathlib import Path
from typing import Any

import polars as pl

from dpfast.bench.cases import SUITES
from dpfast.bench.showing import HEADERS, cells, noted

__all__ = ["holds_page", "write_page"]

_TITLE = "<title>dpfast bench</title>"

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2733; --faint: #5b6772; --line: #dfe4e9; --page: #fff; --wrong: #a8321e; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6eaee; --faint: #9aa6b1; --line: #36404a; --page: #14191e; --wrong: #ff9a85; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); margin: 2rem auto;
  max-width: 70rem; padding: 0 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td:nth-child(n+3), th:nth-child(n+3) { text-align: right; }
p.about, caption { color: var(--faint); text-align: left; }
.wrong { color: var(--wrong); }
figure { margin: 1rem 0; background: #fff; }
svg { max-width: 100%; height: auto; }
"""
_ABOUT = (
    "A ratio says how many times ours the figure of another is, time by the value, in the same round: above 1 ours is "
    "faster, or errs less. Beside it stands an interval that covers its median with 99%, of all rounds where there are "
    "seven or fewer. Rounds of all contestants took turns."
)


def holds_page(path: Path) -> bool:
    """Return whether a file is one that ``dpfast bench --page`` may replace: a page of an earlier run, or empty."""
    try:
        with open(path, "rb") as file:
            held = file.read(1000)
    except OSError:
        return False
    return not held or _TITLE.encode() in held


def write_page(frame: pl.DataFrame, path: Path) -> None:
    """Write results as a page of HTML with everything in it."""
    first = frame.row(0, named=True)
    versions = ", ".join(f"{name} {version}" for name, version in json.loads(first["versions"]).items())
    commit = f", commit {first['commit']}" if first["commit"] else ""
    told = f"dpfast {first['dpfast']}{commit}, {first['time']:%Y-%m-%d %H:%M} UTC. {first['machine']}. {versions}."
    parts = [
        _section(suite, frame.filter(pl.col("suite") == suite)) for suite in SUITES if suite in set(frame["suite"])
    ]
    path.write_text(
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"{_TITLE}\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n<h1>dpfast bench</h1>\n"
        f'<p class="about">{escape(told)}</p>\n<p class="about">{_ABOUT}</p>\n{"".join(parts)}</main>\n'
        "</body>\n</html>\n",
        encoding="utf-8",
    )


def _section(suite: str, frame: pl.DataFrame) -> str:
    rows = [_row(row) for row in frame.iter_rows(named=True)]
    head = "".join(f'<th scope="col">{header}</th>' for header in HEADERS)
    table = (
        f'<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{"".join(rows)}</tbody>\n</table></div>'
    )
    notes = "".join(f"<p>{escape(noted(row))}</p>\n" for row in frame.iter_rows(named=True) if row["note"])
    return f"<section>\n<h2>{suite}</h2>\n{_chart(suite, frame)}{table}\n{notes}</section>\n"


def _row(row: dict[str, Any]) -> str:
    kind = ' class="wrong"' if row["failure"] else ""
    return f"<tr{kind}>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells(row)) + "</tr>\n"


def _chart(suite: str, frame: pl.DataFrame) -> str:
    """Return the ratios of a suite as a chart; of scaling, the cost of a row by their number."""
    if importlib.util.find_spec("matplotlib") is None:
        return ""
    if suite == "scaling":
        return _costs(frame)
    shown = frame.filter(pl.col("ratio").is_not_null()).head(60).reverse()
    if shown.is_empty():
        return ""
    from dpfast.charts.drawing import DOT, WHISKER, label_axes, start_chart

    figure, axes = start_chart("How many times ours", 0.9 + 0.27 * shown.height, grid="x")
    labels = [f"{name[:50]} · {who}" for name, who in shown.select("name", "contestant").iter_rows()]
    places = range(shown.height)
    axes.hlines(places, shown["ratio_low"], shown["ratio_high"], color=WHISKER, linewidth=1.2)
    axes.plot(shown["ratio"], places, "o", color=DOT, markersize=4)
    axes.axvline(1.0, color=WHISKER, linewidth=0.8, linestyle="--")
    axes.set_xscale("log")
    label_axes(axes, "ratio to ours: right of 1, ours is better")
    axes.set_yticks(list(places), labels, parse_math=False)
    return _svg(figure, f"Ratios of the suite {suite}; the table below has the same figures")


def _costs(frame: pl.DataFrame) -> str:
    from dpfast.charts.drawing import label_axes, start_chart

    figure, axes = start_chart("Cost of a value", 4.6, grid="both")
    for (name, who), some in frame.filter(pl.col("median") > 0).group_by(["name", "contestant"], maintain_order=True):
        some = some.sort("size")
        axes.loglog(some["size"], 1e9 * some["median"] / some["size"], "o-", markersize=4, label=f"{name}, {who}")
    label_axes(axes, "values", "ns a value")
    axes.legend(frameon=False, fontsize=8)
    return _svg(figure, "Cost of a value by how many there are; the table below has the same figures")


def _svg(figure: Any, told: str) -> str:
    written = io.StringIO()
    figure.savefig(written, format="svg", metadata={"Date": None})
    svg = written.getvalue()
    svg = svg[svg.index("<svg") :].replace("<svg", f'<svg role="img" aria-label="{escape(told)}"', 1)
    return f"<figure>{svg}</figure>\n"
