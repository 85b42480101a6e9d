"""Errors of means with bounds that are chosen privately, beside bounds given by hand: `python -m benchmarks.bounds_errors`.

The mean delay of the flights of the demo, by carrier and destination and by carrier alone, the aircraft hidden or each
row a unit; and means of made-up rows. By hand: for the flights (-60, 600); for made-up rows the 0.1% and 99.9%
quantiles of the very values, which nobody may look at. Errors are root mean squares over groups, weighted by their
values, against the exact means without any clipping. Medians of some runs, epsilon 1 and for the flights delta 1e-7.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

import numpy as np
import polars as pl

import dpfast as dpf
from dpfast.cli.demo.flights import read_flights

RUNS = 12
AIRCRAFT = {"privacy_unit": "tailnum", "max_groups": 10, "max_rows_per_group": 20}
ROWS = {"privacy_unit": "row"}
UNITS: Mapping[str, Mapping[str, Any]] = {"aircraft, 10 groups of 20 rows": AIRCRAFT, "row": ROWS}
SHAPES: Mapping[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "lognormal": lambda draw, n: draw.lognormal(3, 1, n),
    "normal around 1e6, deviation 10": lambda draw, n: draw.normal(1e6, 10, n),
    "constant 42": lambda draw, n: np.full(n, 42.0),
    "normal, and 1 of 1,000 is 1e9": lambda draw, n: np.where(draw.random(n) < 1e-3, 1e9, draw.normal(20, 5, n)),
    "two heaps": lambda draw, n: np.where(draw.random(n) < 0.5, draw.normal(-50, 1, n), draw.normal(900, 5, n)),
    "all negative, exponential": lambda draw, n: -draw.exponential(5, n) - 3,
}


def error(data: pl.DataFrame, by: list[str], column: str, bounds: Any, **asked: Any) -> float:
    """Return the error of one release."""
    exact = data.group_by(by).agg(exact=pl.col(column).mean().fill_null(0.0), values=pl.col(column).count())
    ledger = dpf.Ledger(epsilon=1.0, delta=1e-7)
    frame = dpf.release(
        data, by, keys=exact.select(by), ledger=ledger, epsilon=1.0, m=dpf.mean(column, bounds=bounds), **asked
    ).frame
    found = frame.join(exact, on=by, maintain_order="left")
    squares = (found["m"] - found["exact"]).to_numpy() ** 2
    return float(np.sqrt(np.average(squares, weights=found["values"].to_numpy())))


def row(name: str, runs: int, data: pl.DataFrame, by: list[str], column: str, bounds: Any, **asked: Any) -> None:
    """Print a row of the table."""
    given, chosen = (median(error(data, by, column, one, **asked) for _ in range(runs)) for one in (bounds, "auto"))
    print(f"| {name} | {given:.4g} | {chosen:.4g} |", flush=True)


def main() -> None:
    """Print the tables."""
    runs = int(sys.argv[1]) if sys.argv[1:] else RUNS
    print(
        f"epsilon 1; medians of {runs} runs.\n\n| values | error, bounds by hand | error, bounds chosen |\n|---|---|---|"
    )
    flights = read_flights()
    for by in (["carrier", "dest"], ["carrier"]):
        for unit, asked in UNITS.items():
            delta = 1e-7 if asked is AIRCRAFT else 0.0
            row(f"delays by {' and '.join(by)}; unit: {unit}", runs, flights, by, "dep_delay", (-60, 600), delta=delta,
                **asked)  # fmt: skip
    draw = np.random.default_rng(1)
    for n in (500, 5_000, 100_000):
        for name, shape in SHAPES.items():
            values = shape(draw, n)
            low, high = np.quantile(values, [0.001, 0.999])
            bounds = (float(low), float(max(high, low + 1e-3)))
            row(f"{name}; {n:,} rows", runs, pl.DataFrame({"all": 0, "x": values}), ["all"], "x", bounds, **ROWS)


if __name__ == "__main__":
    main()
