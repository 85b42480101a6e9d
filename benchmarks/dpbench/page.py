"""The summary of results as a page in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from .certainty import FAR, certainty, shares_by
from .judging import CELL, CLOSE, compared, hindsight, means, regret, regret_by, winners
from .mechanisms import CHOICE
from .tables import in_markdown

__all__ = ["markdown", "page"]

_MOST_WORST = 15
_NAMES = {"close": f"within {CLOSE}", "twice": "within 2", "mean": "geometric mean"}


def markdown(frame: pl.DataFrame) -> str:
    """Return a frame as a table, its columns by the names that people read."""
    return in_markdown(frame.rename({old: new for old, new in _NAMES.items() if old in frame.columns}))


def _percent(*columns: str) -> list[pl.Expr]:
    # Rounded down: what does not hold everywhere is never shown as 100%.
    return [pl.format("{}%", (100 * pl.col(name)).floor().cast(pl.Int64)).alias(name) for name in columns]


def _about(rows: pl.DataFrame, error: str, command: str) -> str:
    counted = rows.group_by("kind").agg(pl.n_unique("dataset")).sort("kind")
    kinds = ", ".join(f"{count} {kind}" for kind, count in counted.iter_rows())
    cells = rows.select("dataset", "shape", "scale", "epsilon", "workload").n_unique()
    ranges = [f"{name} {rows[name].min():,g} to {rows[name].max():,g}" for name in ("scale", "epsilon")]
    trials = _trials(rows)
    wrong = "|answers - truth|" if error == "l2" else "the sum of |answer - truth|"
    return (
        f"Written by `{command}`. Mechanisms of dpfast by the protocol of DPBench (Hay, Machanavajjhala, Miklau, "
        f"Chen, Zhang 2016): {cells:,} combinations of dataset ({kinds}), shape, {', '.join(ranges)} and workload, "
        f"{trials}, every trial on a new sample of as many records as the scale says. An error is "
        f"{wrong} / (scale x queries), the mean over trials; one that is smaller than what a single wrong record makes "
        f"counts as that. A ratio is an error over the least of all mechanisms on the same combination (`uniform`, the "
        f"baseline, apart). The least of several means has luck in it: a perfect choice has ratios a little above 1. A "
        f"mechanism is competitive where Welch's test at 5%, divided by the number of others, does not tell it from "
        f"the best one. The digest of dpfast's code: {', '.join(rows['code'].unique().sort())}."
    )


def _trials(rows: pl.DataFrame) -> str:
    """Return how many trials combinations have."""
    each = rows.group_by(CELL).agg(pl.col("trial").max() + 1)["trial"]
    least, most = each.min(), each.max()
    return f"{least} trials of each" if least == most else f"{least} to {most} trials, most where little is decided"


def page(rows: pl.DataFrame, *, command: str, error: str = "l2", charts: Sequence[str] = (), looks: int = 1) -> str:
    """Return the page.

    Parameters
    ----------
    command
        What wrote the results.
    error
        "l2" or "l1".
    charts
        Paths of charts, as the page shall show them.
    looks
        How often it was decided which combinations need more trials, the end of the run included.

    """
    averages = means(rows, error)
    parts = ["# Accuracy of histograms", _about(rows, error, command)]
    if averages.is_empty():
        return "\n\n".join([*parts, "No mechanism gave an estimate.", *_refused(rows)]) + "\n"
    if CHOICE in averages["mechanism"].to_list() and averages["mechanism"].n_unique() > 1:
        parts += _of_certainty(certainty(rows, error, looks=looks), looks)
        parts += _of_the_choice(regret(averages), hindsight(rows, error))
        other, told = ("l1", "sums of absolute errors") if error == "l2" else ("l2", "Euclidean distances")
        found = regret_by(regret(means(rows, other)), "kind", "axes", "workload")
        parts += [
            f"### By workload, of {told}",
            markdown(found.with_columns(*_percent("close", "twice", "competitive"))),
        ]
    every = winners(compared(averages)).with_columns(*_percent("best", "competitive", "close"))
    about = "On what share of combinations each is the best, competitive, and close to the best."
    parts += ["## All mechanisms", about]
    for (axes, workload), table in every.group_by(["axes", "workload"], maintain_order=True):
        parts += [f"### {workload}, {axes}-D", markdown(table.drop("axes", "workload"))]
    parts += _confidence(averages)
    parts += [f"![{path.rsplit('/')[-1].removesuffix('.svg').replace('_', ' ')}]({path})" for path in charts]
    return "\n\n".join([*parts, *_refused(rows)]) + "\n"


def _of_certainty(found: pl.DataFrame, looks: int) -> list[str]:
    """Return how sure it is what the choice loses."""
    found = found.drop_nulls("ratio").filter(pl.col("ratio").is_finite())
    if found.is_empty():
        return []
    shown = _percent("close", "within_far", "low", "high")
    tables = [
        shares_by(found.with_columns(all=pl.lit("all")), "all").rename({"all": "kind"}),
        shares_by(found, "kind"),
        shares_by(found, "kind", "axes", "workload"),
    ]
    names = {
        "close": f"within {CLOSE}",
        "low": "at least",
        "high": "at most",
        "surely_close": f"surely within {CLOSE}",
        "surely_beyond": f"surely beyond {CLOSE}",
        "within_far": f"within {FAR:g}",
        "surely_far": f"surely beyond {FAR:g}",
        "largest_lower": "largest lower end",
        "mean": "geometric mean",
    }
    order = ["combinations", *names]
    about = (
        "Here the best mechanism is found in one half of the trials and its error taken from the other half, and the "
        "reverse, so that the least of many means brings no luck; the choice is compared with all others, and a ratio "
        "below 1 says that it is better than they are (in the geometric mean it counts as 1). A combination is surely "
        f"beyond {CLOSE} (or {FAR:g}) where the whole 95% interval of its ratio is, and surely within where the whole "
        "interval is: errors of the same sample are paired, and the intervals (Fieller's) hold for the largest ratio "
        "to any of the others (`benchmarks/dpbench/certainty.py`). The rest is undecided with so many trials"
        + (f", of which undecided ones got more, {looks} looks in all, each with its part of the level" * (looks > 1))
        + ". "
        f"`at least` and `at most` are a 95% interval of the share within {CLOSE}, if these combinations were drawn "
        "from many."
    )
    parts = [f"## How sure it is what `{CHOICE}` loses", about]
    for table in tables:
        keys = [name for name in ("kind", "axes", "workload") if name in table.columns]
        parts.append(in_markdown(table.with_columns(*shown).select(*keys, *order).rename(names)))
    return parts


def _of_the_choice(chosen: pl.DataFrame, known: pl.DataFrame) -> list[str]:
    """Return how far `estimate_histogram` is from the best of all."""
    shown = _percent("close", "twice", "competitive")
    kinds = ["kind", "axes", "workload"]
    if known.height:
        best = regret_by(known, *kinds).select(*kinds, pl.col("close").alias("by hindsight"))
    else:
        best = pl.DataFrame(schema={**chosen.select(kinds).schema, "by hindsight": pl.Float64})
    by_workload = regret_by(chosen, *kinds).join(best, on=kinds, how="left", maintain_order="left")
    tables = {
        "by workload": by_workload.with_columns(*_percent("by hindsight")),
        "by scale times epsilon": regret_by(chosen.with_columns(signal=_signal()), "axes", "signal"),
        "by shape of the histogram": regret_by(chosen, "axes", "shape"),
    }
    worst = chosen.sort("ratio", descending=True).head(_MOST_WORST)
    columns = ["dataset", "shape", "scale", "epsilon", "workload", "best_mechanism", "ratio", "competitive"]
    about = (
        "`surely worst` is the worst ratio where the choice is not competitive. Where it is, chance may explain the "
        "ratio: heavy tails of single trials make large ones even of two runs of the same mechanism. `by hindsight` is "
        f"the share within {CLOSE} of a choice that takes the mechanism which is the best in every other trial, judged "
        "by the rest: what luck leaves of a very good choice, with half as many trials."
    )
    parts = [f"## What `{CHOICE}` loses by choosing", about]
    for title, table in tables.items():
        parts += [f"### {title[0].upper()}{title[1:]}", markdown(table.with_columns(*shown))]
    return [*parts, f"### The {worst.height} worst", markdown(worst.select(columns))]


def _signal() -> pl.Expr:
    """Return the order of magnitude of scale times epsilon."""
    power = (pl.col("scale") * pl.col("epsilon")).log10().round().cast(pl.Int64)
    return pl.format("10^{}", power)


def _confidence(averages: pl.DataFrame) -> list[str]:
    """Return how wide the means' intervals are."""
    known = averages.drop_nulls("half").filter(pl.col("mean") > 0)
    if known.is_empty():
        return []
    half = (known["half"] / known["mean"]).quantile(0.5)
    return [f"Half of all means have a 95% interval (Student's law) of at most ±{half:.0%} of the mean."]


def _refused(rows: pl.DataFrame) -> list[str]:
    """Return what mechanisms refused or failed at."""
    refused = rows.drop_nulls("refused").group_by("mechanism", "refused").agg(trials=pl.len()).sort("mechanism")
    return ["## Refused, or failed", markdown(refused)] if refused.height else []
