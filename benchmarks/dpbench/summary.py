"""Tables of the results: how far each algorithm is from the best one, and how often the choice is close to it."""

from __future__ import annotations

import polars as pl

from .algorithms import CHOICE
from .tables import in_markdown

__all__ = ["CLOSE", "close_share", "ratios", "report"]

CLOSE = 1.3
"""What counts as close: at most so many times the best algorithm's mean error."""

_CELL = ["shape", "domain", "scale"]


def ratios(results: pl.DataFrame) -> pl.DataFrame:
    """Add to every row its error over the least of any algorithm on the same shape, domain and scale."""
    return results.with_columns(
        ratio=pl.col("error") / pl.col("error").min().over(_CELL),
        axes=1 + pl.col("domain").str.count_matches("x", literal=True),
    )


def close_share(results: pl.DataFrame, algorithm: str = CHOICE) -> float:
    """Return the share of all shapes, domains and scales on which an algorithm is close to the best."""
    of_algorithm = ratios(results).filter(algorithm=algorithm)
    return float((of_algorithm["ratio"] <= CLOSE).mean())


def report(results: pl.DataFrame) -> str:
    """Return the summary in Markdown."""
    all_ratios = ratios(results)
    ordered = all_ratios.group_by("axes", "algorithm", maintain_order=True).agg(
        close=(pl.col("ratio") <= CLOSE).mean(),
        mean=pl.col("ratio").log().mean().exp(),
        largest=pl.col("ratio").max(),
    )
    by_scale = (
        all_ratios.group_by("axes", "algorithm", "scale", maintain_order=True)
        .agg(mean=pl.col("ratio").log().mean().exp())
        .pivot("scale", index=["axes", "algorithm"], values="mean")
    )
    cells = results.select(_CELL).unique().height
    parts = [
        "# DPBench's protocol over made-up histograms",
        "Written by `python -m benchmarks.dpbench.published --write`. Histograms have the scale and the share of empty "
        "cells of DPBench's (Hay, Machanavajjhala, Miklau, Chen, Zhang 2016) and nothing else of them; epsilon is 0.1, "
        "the workload all prefixes in one dimension and 2,000 random rectangles in two. An algorithm's error is the "
        "mean over samples and runs of |answers - truth| / (scale x queries), its ratio that over the least of all "
        "algorithms on the same shape, domain and scale. All errors are in results.csv.",
        f"**{CHOICE}**, which dpf.estimate_histogram takes for such workloads where records are few, is "
        f"within {CLOSE} times the best on **{close_share(results):.1%}** of {cells} combinations.",
        f"## Share of combinations within {CLOSE} times the best; geometric mean and largest of the ratios",
        in_markdown(ordered.rename({"close": f"within {CLOSE}"})),
        "## Geometric mean of the ratios, by scale",
        in_markdown(by_scale),
    ]
    return "\n\n".join(parts) + "\n"
