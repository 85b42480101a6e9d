"""Charts of results: errors by scale, and what the choice lost on each dataset."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from ..drawing import DOT, FAINT, INK, LINE, footnote, label_axes, save, start_chart
from .judging import CLOSE, means, regret
from .mechanisms import BASELINE, CHOICE

__all__ = ["draw_errors", "draw_regret"]

_COLOURS = ("#c8553d", "#1f5f99", "#6a994e", "#9b5de5", "#e09f3e", "#2a9d8f", "#7f4f24", "#bc4b8b", "#577590")
_MOST_ROWS = 60


def draw_errors(rows: pl.DataFrame, workload: str, path: Path | None, error: str = "l2") -> None:
    """Draw each mechanism's error on a workload by scale times epsilon, in units of the noise: geometric means.

    The error times scale times epsilon is drawn: it does not change with the number of records where noise is all of
    it, and grows where a mechanism leaves something out.
    """
    found = means(rows.filter(workload=workload), error).filter(pl.col("mechanism") != BASELINE, pl.col("error") > 0)
    found = found.with_columns(signal=pl.col("scale") * pl.col("epsilon"))
    found = found.with_columns(power=pl.col("signal").log10().round(), noise=pl.col("error") * pl.col("signal"))
    lines = found.group_by("mechanism", "power").agg(pl.col("noise").log().mean().exp()).sort("mechanism", "power")
    figure, axes = start_chart(f"Error by scale: {workload}", 4.8, grid="both")
    for place, ((name,), line) in enumerate(lines.group_by(["mechanism"], maintain_order=True)):
        ours = name == CHOICE
        colour = INK if ours else _COLOURS[place % len(_COLOURS)]
        drawn = 10.0 ** line["power"].to_numpy(), line["noise"].to_numpy()
        axes.loglog(*drawn, "o-", color=colour, label=name, markersize=4, linewidth=2.4 if ours else 1.3)
    axes.minorticks_off()
    label_axes(axes, "scale × epsilon", "scaled error × scale × epsilon")
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    footnote(figure, f"Geometric means over {found['dataset'].n_unique()} datasets; a mechanism's over what it is for.")
    save(figure, path)


def draw_regret(rows: pl.DataFrame, path: Path | None, error: str = "l2") -> None:
    """Draw for each dataset the ratios of the choice's error to the best's: a dot for each combination."""
    chosen = regret(means(rows, error))
    order = chosen.group_by("dataset").agg(pl.col("ratio").max()).sort("ratio", "dataset").tail(_MOST_ROWS)
    names = order["dataset"].to_list()
    title = f"Error of {CHOICE} over that of the best mechanism"
    figure, axes = start_chart(title, 1.6 + 0.2 * len(names), grid="both")
    generator = np.random.default_rng(0)
    for place, name in enumerate(names):
        ratios = chosen.filter(dataset=name)["ratio"].to_numpy()
        heights = place + generator.uniform(-0.25, 0.25, ratios.size)
        axes.plot(ratios, heights, "o", color=DOT, markersize=2.5, alpha=0.6, markeredgewidth=0)
    axes.set_xscale("log")
    most = float(chosen["ratio"].max())  # type: ignore[arg-type]
    axes.set_xticks([tick for tick in (1, CLOSE, 2, 3, 5, 10, 20, 50, 100) if tick <= max(2.0, 1.1 * most)])
    axes.minorticks_off()
    label_axes(axes, "times the best")
    axes.axvline(CLOSE, color=LINE, linewidth=1.2)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(-0.8, len(names) - 0.2)
    axes.tick_params(axis="y", labelcolor=FAINT)
    footnote(figure, f"The line: {CLOSE} times. The worst datasets at the top.")
    save(figure, path)
