"""Charts of estimates: errors of queries against a public truth, or the answers alone."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.charts.drawing import DOT, FAINT, INK, WIDTH, check_chart, save

__all__ = ["draw_errors", "draw_estimates"]

_LINE = "#c8553d"
#: More dots than these would hide each other.
_MOST_DOTS = 20_000


def _axes(title: str) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, 5.0), layout="constrained", facecolor="white")
    axes = figure.add_subplot()
    axes.set_title(title, loc="left", color=INK, fontsize=13, fontweight="bold", pad=12, parse_math=False)
    axes.tick_params(labelsize=9, colors=FAINT, length=0)
    axes.grid(color="#e3e7eb", linewidth=0.8, zorder=0)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(False)
    return figure, axes


def _thinned(size: int) -> NDArray[np.int64]:
    return np.unique(np.linspace(0, size - 1, min(size, _MOST_DOTS)).astype(np.int64))


def draw_errors(
    truth: NDArray[np.float64], answers: NDArray[np.float64], path: str | os.PathLike[str] | None, *, title: str
) -> Any:
    """Draw every query's error against its true answer, and their mean."""
    check_chart(path)
    figure, axes = _axes(title)
    errors = np.abs(answers - truth)
    shown = _thinned(truth.size)
    axes.plot(truth[shown], errors[shown], ".", color=DOT, markersize=4, alpha=0.6, zorder=3)
    mean = float(errors.mean())
    axes.axhline(mean, color=_LINE, linewidth=1.2, zorder=4)
    axes.annotate(
        f"mean {mean:,.4g}",
        (1.0, mean),
        xycoords=("axes fraction", "data"),
        xytext=(-4, 4),
        textcoords="offset points",
        ha="right",
        color=_LINE,
        fontsize=9,
    )
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel("true answer", color=INK, fontsize=10)
    axes.set_ylabel("absolute error", color=INK, fontsize=10)
    dots = f"{shown.size:,} of {truth.size:,}" if shown.size < truth.size else f"{truth.size:,}"
    figure.supxlabel(
        f"{dots} queries. The true answers are shown: for public data only.",
        x=0.016,
        ha="left",
        fontsize=8,
        color=FAINT,
    )
    save(figure, path)
    return figure


def draw_estimates(answers: NDArray[np.float64], path: str | os.PathLike[str] | None, *, title: str) -> Any:
    """Draw the answers in the order of the queries."""
    check_chart(path)
    figure, axes = _axes(title)
    shown = _thinned(answers.size)
    axes.plot(shown, answers[shown], ".", color=DOT, markersize=4, zorder=3)
    axes.set_xlabel("query", color=INK, fontsize=10)
    axes.set_ylabel("answer", color=INK, fontsize=10)
    figure.supxlabel("Differentially private: answers on the estimate.", x=0.016, ha="left", fontsize=8, color=FAINT)
    save(figure, path)
    return figure
