"""How far synthetic records of a census's shape are from the data, by epsilon; written to census_errors.md.

    python -m benchmarks.census_errors

The table of benchmarks/census.py has 14 columns and 6 * 10^17 cells. Errors are mean total variation distances, half
the sum over cells of the difference of shares: over all pairs of columns of at most 10^4 cells, and over
some triples.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

import dpfast as dpf
from dpfast.accounting.accountants import zcdp
from dpfast.exact.amounts import to_float
from dpfast.synthesis.graphical.estimate import ModelEstimate

from .cells import OURS, Cell, Errors
from .census import ROWS, SIZES, distance, make_independent, make_records, pairs_and_triples

__all__ = ["cells", "main"]

_NAMES = [f"a{place}" for place in range(len(SIZES))]
_DELTA = 1e-9
_MEGABYTES, _EPSILONS = (4.0, 16.0), (0.1, 1.0, 10.0)
_TRIPLES = len(pairs_and_triples()[1])
_LARGE_PAIRS = ((0, 12), (0, 2), (2, 11))
_SAME_LAW, _INDEPENDENT = "as many rows of the same law", "independent columns"
ABOUT = f"""# Synthetic records of a census's shape

Written by `python -m benchmarks.census_errors`: a made-up table (benchmarks/census.py) of {ROWS:,} rows and 14 columns,
6 * 10^17 cells, delta 1e-9, the median of 3 runs. Errors are mean total variation distances from the data, over all
pairs of columns of at most 10^4 cells, and over {_TRIPLES} triples. "As many rows of the same law" is what another draw
of the data errs by; "independent columns" knows every column exactly, and nothing else. Where
triples are the workload, it is those of them that have room beside all columns.

"""
WHY = """
## When a larger model pays

Pairs of many cells, each beside what it would cost to know them: the error that noise alone makes of one of them if the
whole budget is spent on it, with nothing left for anything else. At epsilon 1 the two larger ones would err more than
independent columns do, and the first one nearly as much; larger sets have more cells still. None is measured, so that
no room is used, however much there is: the model is the same from 4 MB on. At epsilon 10 these pairs are worth their
price, and 80 MB are better than 4 MB, in pairs and in triples (census_peers.md).

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
        return distance(records, make_independent(records, next(seeds)), pairs)

    return {
        OURS: ours,
        _SAME_LAW: lambda: distance(records, make_records(rows, next(seeds)), pairs),
        _INDEPENDENT: apart,
    }


def _drawn(
    records: NDArray[np.uint8], megabytes: float, epsilon: float, workload: list[tuple[str, ...]] | None = None
) -> tuple[NDArray[np.int64], int]:
    """Return synthetic records, and how many cells the model has."""
    frame = pl.DataFrame({name: column.astype(np.int64) for name, column in zip(_NAMES, records, strict=True)})
    domain, ledger = dpf.Domain(dict(zip(_NAMES, SIZES, strict=True))), dpf.Ledger(epsilon=epsilon, delta=_DELTA)
    made = dpf.synthesize(
        frame, domain, workload, epsilon=epsilon, delta=_DELTA, max_megabytes=megabytes, ledger=ledger
    )
    assert isinstance(made.estimate, ModelEstimate)
    return np.array([made.frame[name].to_numpy() for name in _NAMES]), made.estimate.cells


def _triples_with_room(megabytes: float) -> list[tuple[str, ...]]:
    """Return the triples that fit into a model beside all columns, by their names."""
    most = megabytes * 1e6 / 8 - sum(SIZES)
    held = [triple for triple in pairs_and_triples()[1] if math.prod(SIZES[place] for place in triple) <= most]
    return [tuple(_NAMES[place] for place in triple) for triple in held]


def _prices(records: NDArray[np.uint8]) -> list[list[str]]:
    """Return a line for each large pair: what independent columns err by, and what noise of the whole budget makes."""
    rows = [["pair", "cells", _INDEPENDENT, _SAME_LAW, *(f"noise, epsilon {epsilon:g}" for epsilon in _EPSILONS)]]
    apart, alike = make_independent(records, 17), make_records(seed=17)
    for pair in _LARGE_PAIRS:
        cells = SIZES[pair[0]] * SIZES[pair[1]]
        errors = [distance(records, other, [pair]) for other in (apart, alike)]
        for epsilon in _EPSILONS:
            deviation = 1.0 / math.sqrt(2.0 * to_float(zcdp.largest_rho(epsilon, _DELTA)))
            errors.append(min(cells * deviation * math.sqrt(2.0 / math.pi) / (2.0 * ROWS), 1.0))
        rows.append([f"{pair[0]} and {pair[1]}", f"{cells:,}", *(f"{error:.3f}" for error in errors)])
    return rows


def _table(rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in [rows[0], ["---"] * len(rows[0]), *rows[1:]])


def main() -> None:
    """Measure and write."""
    records = make_records()
    pairs, triples = pairs_and_triples()
    rows = [["workload", "megabytes", "epsilon", "pairs", "triples", "processor seconds", "cells of the model"]]
    for what, others in ((_SAME_LAW, make_records(seed=17)), (_INDEPENDENT, make_independent(records, 17))):
        errors = [f"{distance(records, others, sets):.4f}" for sets in (pairs, triples)]
        rows.append([what, "", "", *errors, "", ""])
    asked: list[tuple[str, float, list[tuple[str, ...]] | None]] = [("pairs", size, None) for size in _MEGABYTES]
    asked.append(("triples", _MEGABYTES[0], _triples_with_room(_MEGABYTES[0])))
    for (workload, megabytes, sets), epsilon in itertools.product(asked, _EPSILONS):
        found = []
        for _ in range(3):
            start = time.process_time()
            drawn, model = _drawn(records, megabytes, epsilon, sets)
            seconds = time.process_time() - start
            found.append((distance(records, drawn, pairs), distance(records, drawn, triples), seconds, model))
        middle = np.median(np.array(found), axis=0)
        errors = [f"{error:.4f}" for error in middle[:2]]
        rows.append([workload, f"{megabytes:g}", f"{epsilon:g}", *errors, f"{middle[2]:.1f}", f"{int(middle[3]):,}"])
        print(rows[-1], flush=True)
    Path(__file__).with_suffix(".md").write_text(f"{ABOUT}{_table(rows)}\n{WHY}{_table(_prices(records))}\n")


if __name__ == "__main__":
    main()
