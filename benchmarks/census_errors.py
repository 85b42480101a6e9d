"""How far synthetic records of a census's shape are from the data, by epsilon; written to census_errors.md.

    python -m benchmarks.census_errors

The table of benchmarks/census.py has 14 columns and 6 * 10^17 cells. Errors are mean total variation distances, half
the sum over cells of the difference of shares: over all pairs of columns of at most 10^4 cells, and over 40 triples.
"""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import numpy as np
import polars as pl

import dpfast as dpf
from dpfast.synthesis.graphical.estimate import ModelEstimate

from .census import ROWS, SIZES, distance, make_records, pairs_and_triples

__all__ = ["main"]

_NAMES = [f"a{place}" for place in range(len(SIZES))]
_DELTA = 1e-9
ABOUT = f"""# Synthetic records of a census's shape

Written by `python -m benchmarks.census_errors`: a made-up table (benchmarks/census.py) of {ROWS:,} rows and 14 columns,
6 * 10^17 cells, delta 1e-9, the median of 3 runs. Errors are mean total variation distances from the data, over all
pairs of columns of at most 10^4 cells, and over 40 triples. "As many rows of the same law" is what another draw of the
data errs by; "independent columns" knows every column exactly, and nothing else.

"""


def main() -> None:
    """Measure and write."""
    records = make_records()
    pairs, triples = pairs_and_triples()
    frame = pl.DataFrame({name: column.astype(np.int64) for name, column in zip(_NAMES, records, strict=True)})
    domain = dpf.Domain(dict(zip(_NAMES, SIZES, strict=True)))
    rows = [["what", "megabytes", "epsilon", "pairs", "triples", "processor seconds", "cells of the model"]]
    shuffled = np.array([np.random.default_rng(place).permutation(column) for place, column in enumerate(records)])
    for what, others in (("as many rows of the same law", make_records(seed=17)), ("independent columns", shuffled)):
        errors = [f"{distance(records, others, sets):.4f}" for sets in (pairs, triples)]
        rows.append([what, "", "", *errors, "", ""])
    for megabytes, epsilon in itertools.product((4.0, 16.0), (0.1, 1.0, 10.0)):
        found = []
        for _ in range(3):
            ledger = dpf.Ledger(epsilon=epsilon, delta=_DELTA)
            start = time.process_time()
            made = dpf.synthesize(frame, domain, epsilon=epsilon, delta=_DELTA, max_megabytes=megabytes, ledger=ledger)
            drawn = np.array([made.frame[name].to_numpy() for name in _NAMES])
            seconds = time.process_time() - start
            assert isinstance(made.estimate, ModelEstimate)
            cells = made.estimate.cells
            found.append((distance(records, drawn, pairs), distance(records, drawn, triples), seconds, cells))
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
