"""Errors with limits that are chosen privately, beside the best ones in hindsight: `python -m benchmarks.limit_errors`.

Numbers of rows and of units by group, epsilon 1, delta 1e-7, of the flights of the demo (the aircraft hidden) and of
made-up tables. Root mean squares over all groups, of which those that are not shown count as 0. Medians of some runs;
in hindsight, the least of all pairs of some limits, for which nothing is paid.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import product
from statistics import median
from typing import Any

import numpy as np
import polars as pl

import dpfast as dpf
from dpfast.cli.demo.flights import read_flights

RUNS = 6
EPSILON, DELTA = 1.0, 1e-7
GROUPS, ROWS = (1, 2, 5, 10, 20, 40), (1, 4, 10, 20, 40)
AUTO = "auto"


def tables() -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the tables, with the columns unit and group."""
    by = pl.struct("carrier", "dest").rank("dense").cast(pl.Int64)
    yield "flights", read_flights().drop_nulls("tailnum").select(unit="tailnum", group=by)
    generator = np.random.default_rng(5)
    numbers = {
        "10,000 units of one row": np.ones(10_000, np.int64),
        "5,000 units of eight rows": np.full(5_000, 8),
        "20,000 units, heavy tail": np.minimum(generator.pareto(1.2, 20_000) + 1, 5_000).astype(np.int64),
        "60 units": (generator.pareto(1.5, 60) + 1).astype(np.int64),
    }
    for name, rows in numbers.items():
        groups = 5 if rows.size < 100 else 50
        chances = 1 / np.arange(1, groups + 1)
        found = generator.choice(groups, rows.sum(), p=chances / chances.sum())
        yield name, pl.DataFrame({"unit": np.repeat(np.arange(rows.size), rows), "group": found})


def error_of(data: pl.DataFrame, exact: pl.DataFrame, query: Any, keys: pl.DataFrame | None, **limits: Any) -> float:
    """Return the median of the errors of some releases."""
    errors = []
    for _ in range(RUNS):
        release = dpf.release(
            data, "group", keys=keys, ledger=dpf.Ledger(epsilon=EPSILON, delta=DELTA), epsilon=EPSILON, delta=DELTA,
            mechanism="laplace" if keys is not None else "auto", privacy_unit="unit", n=query, **limits,
        )  # fmt: skip
        both = exact.join(release.frame.select("group", "n"), on="group", how="left").fill_null(0)
        errors.append(float(np.sqrt(np.mean((both["n"] - both["exact"]).to_numpy().astype(float) ** 2))))
    return median(errors)


def main() -> None:
    """Print the table."""
    print(f"epsilon {EPSILON:g}, delta {DELTA:g}; {RUNS} runs.\n")
    print("| table | query | keys | best limits in hindsight | their error | error with auto | ratio |")
    print("|---" * 7 + "|")
    for name, data in tables():
        exact = {"rows": pl.len(), "units": pl.col("unit").n_unique()}
        for query, selects in product(exact, (False, True)):
            figures = data.group_by("group").agg(exact=exact[query].cast(pl.Int64)).sort("group")
            keys = None if selects else figures.select("group")
            asked = data, figures, dpf.count() if query == "rows" else dpf.units(), keys
            rows = ROWS if query == "rows" else (1,)
            best, limits = min(
                (error_of(*asked, max_groups=most, max_rows_per_group=each), (most, each))
                for most, each in product(GROUPS, rows)
            )
            auto = error_of(*asked, max_groups=AUTO, max_rows_per_group=AUTO)
            said = f"{limits[0]} groups of {limits[1]} rows"
            kind = "selected" if selects else "public"
            print(f"| {name} | {query} | {kind} | {said} | {best:.3g} | {auto:.3g} | {auto / best:.2f} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:]:
        RUNS = int(sys.argv[1])
    main()
