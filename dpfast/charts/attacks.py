"""A chart of what an attack finds as the noise grows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpfast.charts.drawing import DOT, FAINT, LINE, ChartPath, Title, check_chart, footnote, save, start_chart, written

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_recovery"]

_HEIGHT = 4.6


def draw_recovery(
    noise: Sequence[float],
    recovered: Sequence[float],
    guessing: float,
    records: int,
    path: ChartPath = None,
    *,
    title: Title = None,
) -> Figure:
    """Draw the share of records that an attack found against the scale of the noise.

    Parameters
    ----------
    noise
        Scales, rising.
    recovered
        The share of records found with each.
    guessing
        The share that is right without any answer.
    records
        How many there are; their square root is marked.
    path
        Where to write the chart as well; None for nowhere.
    title
        The chart's.

    Returns
    -------
    matplotlib.figure.Figure
        The chart; a notebook shows it.

    """
    check_chart(path, title)
    figure, axes = start_chart("What the answers give away" if title is None else title, _HEIGHT, grid="y")
    axes.plot(noise, recovered, "o-", color=DOT, markersize=6, linewidth=1.6, zorder=3, label="recovered by the attack")
    axes.axhline(guessing, color=FAINT, linewidth=1.2, linestyle="--", zorder=2, label="guessing the frequent value")
    axes.axvline(records**0.5, color=LINE, linewidth=1.2, zorder=2, label="square root of the number of records")
    axes.set_xscale("log")
    axes.set_ylim(0.0, 1.04)
    axes.xaxis.set_major_formatter(written)
    axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.set_xlabel("scale of the Laplace noise of each answer", color=FAINT, fontsize=9)
    axes.set_ylabel("records recovered", color=FAINT, fontsize=9)
    axes.legend(frameon=False, fontsize=9, loc="best")
    footnote(figure, f"{records:,} records. Not private: the truth was used to count what is right.")
    save(figure, path)
    return figure
