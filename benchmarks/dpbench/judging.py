"""What the errors say: means with intervals, who is as good as the best, and what a choice lost against it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl

from .mechanisms import BASELINE, CHOICE
from .questions import one_record

__all__ = ["CELL", "CLOSE", "compared", "hindsight", "means", "regret", "regret_by", "winners"]

CELL = ["kind", "dataset", "axes", "shape", "scale", "epsilon", "workload"]
"""The columns that tell combinations apart."""
CLOSE = 1.3
"""What counts as close: at most so many times the best mechanism's mean error."""


def means(rows: pl.DataFrame, error: str = "l2") -> pl.DataFrame:
    """Return for each combination and mechanism the mean error, and its 95% interval by Student's law.

    ``half`` is half of the interval's width, null for a single trial. Mechanisms that refused a trial are left out.
    ``error`` is the mean, or what one wrong record in one cell makes if that is more (`one_record`): the noise of
    counts is of whole numbers, and where it is nearly always 0, ratios of errors are ratios of luck.
    """
    from scipy import stats

    found = (
        rows.with_columns(failed=pl.col(error).is_null().any().over([*CELL, "mechanism"]))
        .filter(~pl.col("failed"))
        .group_by([*CELL, "mechanism"])
        .agg(mean=pl.col(error).mean(), variance=pl.col(error).var(), trials=pl.len())
        .sort([*CELL, "mechanism"])
    )
    asked = found.select("workload", "shape", "scale").unique()
    least = [
        one_record(workload, tuple(map(int, shape.split(" x "))), scale)[error == "l1"]
        for workload, shape, scale in asked.iter_rows()
    ]
    found = found.join(asked.with_columns(least=pl.Series(least)), on=asked.columns, maintain_order="left")
    found = found.with_columns(error=pl.max_horizontal("mean", "least")).drop("least")
    reach = pl.Series(stats.t.ppf(0.975, np.maximum(found["trials"].to_numpy() - 1, 1)))
    return found.with_columns(half=reach * (pl.col("variance") / pl.col("trials")).sqrt())


def compared(averages: pl.DataFrame, level: float = 0.05) -> pl.DataFrame:
    """Add to the means of `means` how each compares with the best of its combination.

    ``ratio`` is its error over the least. ``competitive``: Welch's test does not tell the mechanism from the best one,
    at ``level`` divided by the number of others (Bonferroni), as DPBench does. The best one always is.
    """
    from scipy import stats

    best = averages.sort("error", "mean", maintain_order=True).group_by(CELL, maintain_order=True).first()
    best = best.select(
        *CELL, best="mean", least="error", best_variance="variance", best_trials="trials", best_mechanism="mechanism"
    )
    joined = averages.join(best, on=CELL, maintain_order="left").with_columns(others=pl.len().over(CELL) - 1)
    one, other = (
        joined[variance].fill_null(0.0).to_numpy() / joined[trials].to_numpy()
        for variance, trials in (("variance", "trials"), ("best_variance", "best_trials"))
    )
    difference = (joined["mean"] - joined["best"]).to_numpy()
    freedom = [np.maximum(joined[trials].to_numpy() - 1, 1) for trials in ("trials", "best_trials")]
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.where(difference > 0, difference / np.sqrt(one + other), 0.0)
        degrees = (one + other) ** 2 / (one**2 / freedom[0] + other**2 / freedom[1])
        chance = 2 * stats.t.sf(statistic, np.where(np.isfinite(degrees), degrees, 1.0))
    alike = chance >= level / np.maximum(joined["others"].to_numpy(), 1)
    is_best = (joined["mechanism"] == joined["best_mechanism"]).to_numpy()
    alike |= (joined["error"] == joined["least"]).to_numpy()
    return joined.with_columns(ratio=pl.col("error") / pl.col("least"), competitive=pl.Series(is_best | alike))


def winners(table: pl.DataFrame) -> pl.DataFrame:
    """Return for each workload and mechanism on how many combinations it is best, competitive, and close.

    ``mean`` is the geometric mean of its ratios, ``worst`` the largest.
    """
    return (
        table.group_by("axes", "workload", "mechanism")
        .agg(
            combinations=pl.len(),
            best=(pl.col("mechanism") == pl.col("best_mechanism")).mean(),
            competitive=pl.col("competitive").mean(),
            close=(pl.col("ratio") <= CLOSE).mean(),
            mean=pl.col("ratio").log().mean().exp(),
            worst=pl.col("ratio").max(),
        )
        .sort("axes", "workload", "mean")
    )


def regret(averages: pl.DataFrame, choice: str = CHOICE, among: Iterable[str] | None = None) -> pl.DataFrame:
    """Return the choice's row of each combination, with its ``ratio`` to the best of all contestants.

    The best is the least mean over the same samples: of several that are as good, the luckiest. So the ratio is a
    little above 1 for a perfect choice too. The baseline is no contestant, unless ``among`` names it.
    """
    contestants = averages.filter(pl.col("mechanism") != BASELINE)
    if among is not None:
        contestants = averages.filter(pl.col("mechanism").is_in([*among, choice]))
    return compared(contestants).filter(mechanism=choice)


def hindsight(rows: pl.DataFrame, error: str = "l2") -> pl.DataFrame:
    """Return what a choice would have lost that knows which mechanism is the best in every other trial.

    For each half of the trials a row of each combination: the mechanism that is the best in the other half, and its
    ``ratio`` in this one. So large is what luck makes of the ratios of a very good choice, with half as many trials.
    """
    contestants = rows.filter(pl.col("mechanism") != BASELINE)
    halves = [compared(means(contestants.filter(pl.col("trial") % 2 == half), error)) for half in (0, 1)]
    known = [half.filter(mechanism=pl.col("best_mechanism")).select(*CELL, "mechanism") for half in halves]
    return pl.concat([halves[half].join(known[1 - half], on=[*CELL, "mechanism"]) for half in (0, 1)])


def regret_by(chosen: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """Return for each group the share of combinations within `CLOSE` times the best, the mean and the worst ratio.

    ``surely worst`` is the worst ratio among those combinations where the choice is not competitive: with few trials
    the largest of many ratios is luck, even where the choice is the very mechanism that is the best. Null if none is.
    """
    return (
        chosen.group_by(columns)
        .agg(
            combinations=pl.len(),
            close=(pl.col("ratio") <= CLOSE).mean(),
            twice=(pl.col("ratio") <= 2.0).mean(),
            competitive=pl.col("competitive").mean(),
            mean=pl.col("ratio").log().mean().exp(),
            worst=pl.col("ratio").max(),
            surely=pl.col("ratio").filter(~pl.col("competitive")).max(),
        )
        .rename({"surely": "surely worst"})
        .sort(columns)
    )
