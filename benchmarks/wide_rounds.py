"""How many rounds records of hundreds of columns need: half as many as by default, and twice as many, beside them.

    python -m benchmarks.wide_rounds [COLUMNS EPSILON ...]

The table is that of `benchmarks.wide_tables`, and so is the size of the model. Errors are of the model itself, which no
drawing of records adds to. A row is printed as soon as it is known: the last ones take many minutes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import numpy as np
import polars as pl

import dpfast as dpf

from .wide_tables import domain_of, make_table

__all__ = ["main", "measured", "rounds_by_default"]

_DELTA, _MEGABYTES, _PAIRS = 1e-9, 1.0, 1000
_CASES = ((200, 0.1), (200, 1.0), (200, 10.0), (400, 0.1), (400, 1.0), (400, 10.0))
_TIMES = (0.5, 1.0, 2.0)


def rounds_by_default(columns: int, epsilon: float, records: int) -> int:
    """Return how many rounds there are if nobody asks for a number, by about so many records."""
    plan = dpf.plan_synthesis(domain_of(columns), epsilon=epsilon, delta=_DELTA, max_megabytes=_MEGABYTES)
    least, most = pl.col("from_records").fill_null(0), pl.col("to_records").fill_null(2**62)
    ways = plan.to_frame().filter((least <= records) & (most > records))
    return int(ways["rounds"][0])


def pair_error(made: dpf.Synthesis, data: pl.DataFrame, pairs: int) -> float:
    """Return the mean total variation distance of the model from the data, over pairs drawn at random."""
    generator, found = np.random.default_rng(0), []
    for _ in range(pairs):
        held = [data.columns[place] for place in generator.choice(data.width, 2, replace=False)]
        model = made.marginal(held)
        codes = [data[name].cast(pl.Int64).to_numpy() for name in held]
        true = np.bincount(np.ravel_multi_index(codes, model.shape), minlength=model.size) / data.height
        found.append(np.abs(true - model.reshape(-1) / model.sum()).sum() / 2.0)
    return float(np.mean(found))


def measured(columns: int, epsilon: float) -> Iterator[tuple[int, float, float]]:
    """Give the number of rounds, the error, and the seconds of a processor, for each number of rounds."""
    data, domain = make_table(columns), domain_of(columns)
    own = rounds_by_default(columns, epsilon, data.height)
    budget = {"epsilon": epsilon, "delta": _DELTA}
    for times in _TIMES:
        rounds, start = round(own * times), time.process_time()
        asked = {"rounds": rounds, "max_megabytes": _MEGABYTES}
        made = dpf.synthesize(data, domain, ledger=dpf.Ledger(**budget), **asked, **budget)
        seconds = time.process_time() - start
        yield rounds, pair_error(made, data, _PAIRS), seconds


def main() -> None:
    """Print a row for each number of rounds."""
    given = [float(one) for one in sys.argv[1:]]
    cases = [(int(columns), epsilon) for columns, epsilon in zip(given[::2], given[1::2], strict=True)] or _CASES
    for columns, epsilon in cases:
        for rounds, error, seconds in measured(columns, epsilon):
            print(f"| {columns} | {epsilon:g} | {rounds} | {error:.4f} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
