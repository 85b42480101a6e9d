"""How far synthetic records of a census's shape are from the data, by epsilon; written to census_errors.md.

    python -m benchmarks.census_errors

The table of benchmarks/census.py has 14 columns and 6 * 10^17 cells. Errors are mean total variation distances, half
the sum over cells of the difference of shares: over all pairs of columns of at most 10^4 cells, and over 40 triples.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

import dpfast as dpf
from dpfast.synthesis.graphical.estimate import ModelEstimate

from .cells import OURS, Cell, Errors
from .census import ROWS, SIZES, distance, make_records, pairs_and_triples

__all__ = ["cells", "main"]

_NAMES = [f"a{place}" for place in range(len(SIZES))]
_DELTA = 1e-9
_MEGABYTES, _EPSILONS = (4.0, 16.0), (0.1, 1.0, 10.0)
_SAME_LAW, _INDEPENDENT = "as many rows of the same law", "independent columns"
ABOUT = f"""# Synthetic records of a census's shape

Written by `python -m benchmarks.census_errors`: a made-up table (benchmarks/census.py) of {ROWS:,} rows and 14 columns,
6 * 10^17 cells, delta 1e-9, the median of 3 runs. Errors are mean total variation distances from the data, over all
pairs of columns of at most 10^4 cells, and over 40 triples. "As many rows of the same law" is what another draw of the
data errs by; "independent columns" knows every column exactly, and nothing else.

"""


def cells() -> Iterator[Cell]:
    """Yield a cell for every line of ours in the table."""
    for megabytes, epsilon in itertools.product(_MEGABYTES, _EPSILONS):
        told = f"Records of a census's shape, {megabytes:g} MB, epsilon {epsilon:g}"
        yield Cell(told, "total variation", partial(_of, megabytes, epsilon), (megabytes, epsilon) == (4.0, 1.0))


def _of(megabytes: float, epsilon: float, is_quick: bool) -> Errors:
    rows = ROWS // 10 if is_quick else ROWS
    records, (pairs, _), seeds = make_records(rows), pairs_and_triples(), itertools.count(17)

    def ours() -> float:
        drawn, _ = _drawn(records, 1.0 if is_quick else megabytes, epsilon)
        return distance(records, drawn, pairs)

    def apart() -> float:
        return distance(records, _shuffled(records, next(seeds)), pairs)

    return {
        OURS: ours,
        _SAME_LAW: lambda: distance(records, make_records(rows, next(seeds)), pairs),
        _INDEPENDENT: apart,
    }


def _shuffled(records: NDArray[np.uint8], seed: int) -> NDArray[np.uint8]:
    return np.array([np.random.default_rng([seed, place]).permutation(column) for place, column in enumerate(records)])


def _drawn(records: NDArray[np.uint8], megabytes: float, epsilon: float) -> tuple[NDArray[np.int64], int]:
    """Return synthetic records, and how many cells the model has."""
    frame = pl.DataFrame({name: column.astype(np.int64) for name, column in zip(_NAMES, records, strict=True)})
    domain, ledger = dpf.Domain(dict(zip(_NAMES, SIZES, strict=True))), dpf.Ledger(epsilon=epsilon, delta=_DELTA)
    made = dpf.synthesize(frame, domain, epsilon=epsilon, delta=_DELTA, max_megabytes=megabytes, ledger=ledger)
    assert isinstance(made.estimate, ModelEstimate)
    return np.array([made.frame[name].to_numpy() for name in _NAMES]), made.estimate.cells


def main() -> None:
    """Measure and write."""
    records = make_records()
    pairs, triples = pairs_and_triples()
    rows = [["what", "megabytes", "epsilon", "pairs", "triples", "processor seconds", "cells of the model"]]
    for what, others in ((_SAME_LAW, make_records(seed=17)), (_INDEPENDENT, _shuffled(records, 17))):
        errors = [f"{distance(records, others, sets):.4f}" for sets in (pairs, triples)]
        rows.append([what, "", "", *errors, "", ""])
    for megabytes, epsilon in itertools.product(_MEGABYTES, _EPSILONS):
        found = []
        for _ in range(3):
            start = time.process_time()
            drawn, model = _drawn(records, megabytes, epsilon)
            seconds = time.process_time() - start
            found.append((distance(records, drawn, pairs), distance(records, drawn, triples), seconds, model))
        middle = np.median(np.array(found), axis=0)
        errors = [f"{error:.4f}" for error in middle[:2]]
        size = f"{int(middle[3]):,}"
        rows.append(["dpf.synthesize", f"{megabytes:g}", f"{epsilon:g}", *errors, f"{middle[2]:.1f}", size])
        print(rows[-1], flush=True)
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    table = "\n".join("| " + " | ".join(row) + " |" for row in lines)
    Path(__file__).with_suffix(".md").write_text(f"{ABOUT}{table}\n")


if __name__ == "__main__":
    main()
