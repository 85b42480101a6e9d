"""How far fitted marginals of a census's shape are from the data, beside noisy ones; written to fitted_marginals.md.

    python -m benchmarks.fitted_marginals

The table of benchmarks/census.py has 14 columns, whose 91 pairs have at most 10^4 cells each. All of them are measured
at once with Gaussian noise (`dpf.release_marginals`) and made consistent by `fit`. A tree that holds them all would be
the whole table of 6 * 10^17 cells. Errors are mean total variation distances, as in benchmarks/census_errors.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

import dpfast as dpf

from .cells import OURS, Cell, Errors
from .census import ROWS, SIZES, distance, make_records, pairs_and_triples

__all__ = ["cells", "main"]

_NAMES = tuple(f"a{place}" for place in range(len(SIZES)))
_PAIRS = pairs_and_triples()[0]
_DELTA, _RUNS = 1e-9, 3
_EPSILONS = (0.1, 1.0, 10.0)
_NOISY, _CLIPPED, _SQUARES = "noisy", "noisy, negative counts set to 0", "fitted by least squares"
_RECORDS, _MODEL, _SYNTHETIC = "records of the fit", "dpf.synthesize, its marginals", "dpf.synthesize, its records"
_CELLS = sum(SIZES[a] * SIZES[b] for a, b in _PAIRS)
ABOUT = f"""# Fitted marginals of a census's shape

Written by `python -m benchmarks.fitted_marginals`: a made-up table (benchmarks/census.py) of {ROWS:,} rows and 14
columns, delta 1e-9, the median of {_RUNS} runs. All {len(_PAIRS)} pairs, {_CELLS:,} cells, are measured at once with
Gaussian noise by `dpf.release_marginals`. Errors are mean total variation distances from the data over these pairs; of
noisy counts they may exceed 1. A fit by entropy is `fit()`, one by least squares `fit(method="least_squares")`. Both
are locally consistent; no tree has room for the pairs. `dpf.synthesize` has 16 MB. Records are as many as the data
have, and err by their own number, too: another draw of the data errs by .0474. Seconds are of a processor, at epsilon
1: of the fit, of drawing records from it, or of all of a synthesis.

"""
AFTER = """
A fit is far nearer to the data than the noisy counts are. It does not replace `dpf.synthesize` where noise is large:
that one measures few pairs well, which it chooses privately, and errs less at epsilon 1 and below. At epsilon 1 the fit
is hardly nearer than independent columns, were all of them known exactly (.0796, census_errors.md). At epsilon 10 all
pairs are worth measuring, and fitted pairs err less than its model's. Records of a fit err more than those of
`dpf.synthesize` at each epsilon: most pairs are not in the tree that they are drawn from. How softly entropy holds
noisy counts was chosen on three made-up tables, of which this is one.
"""

Found = tuple[float, float]


def cells() -> Iterator[Cell]:
    """Yield a cell for each epsilon."""
    for epsilon in _EPSILONS:
        told = f"Marginals of a census's shape, all pairs, epsilon {epsilon:g}"
        yield Cell(told, "total variation", partial(_of, epsilon), epsilon == 1.0)


def _of(epsilon: float, is_quick: bool) -> Errors:
    census = _Census(ROWS // 10 if is_quick else ROWS)
    return {OURS: lambda: census.fitted(epsilon)[0], _NOISY: lambda: census.noisy(epsilon)[0]}


class _Census:
    """The data, and what is measured of them."""

    def __init__(self, rows: int) -> None:
        self.records = make_records(rows)
        columns = {name: column.astype(np.int64) for name, column in zip(_NAMES, self.records, strict=True)}
        self._frame = pl.DataFrame(columns)
        self._domain = dpf.Domain(dict(zip(_NAMES, SIZES, strict=True)))
        self._exact = self._domain.open(self._frame).count_marginals(_PAIRS)

    def _measured(self, epsilon: float) -> dpf.synthesis.residuals.marginals.MarginalsRelease:
        ledger = dpf.Ledger(epsilon=epsilon, delta=_DELTA)
        return dpf.release_marginals(self._frame, self._domain, epsilon=epsilon, delta=_DELTA, ledger=ledger)

    def _error(self, marginal: Callable[[list[str]], NDArray[np.float64]], total: float | None) -> float:
        """Return the mean error; each marginal's sum is what counts are a part of, where there is no total."""
        errors = []
        for (one, other), exact in zip(_PAIRS, self._exact, strict=True):
            counts = marginal([_NAMES[one], _NAMES[other]]).reshape(-1)
            errors.append(np.abs(counts / (total or counts.sum()) - exact / exact.sum()).sum() / 2.0)
        return float(np.mean(errors))

    def _drawn(self, frame: pl.DataFrame) -> float:
        return distance(self.records, np.array([frame[name].to_numpy() for name in _NAMES]), _PAIRS)

    def noisy(self, epsilon: float) -> Found:
        made = self._measured(epsilon)
        return self._error(made.marginal, made.total), 0.0

    def clipped(self, epsilon: float) -> Found:
        made = self._measured(epsilon)
        return self._error(lambda held: np.maximum(made.marginal(held), 0.0), None), 0.0

    def squares(self, epsilon: float) -> Found:
        made = self._measured(epsilon)
        start = time.process_time()
        fit = made.fit(method="least_squares")
        return self._error(fit.marginal, fit.total), time.process_time() - start

    def fitted(self, epsilon: float) -> Found:
        made = self._measured(epsilon)
        start = time.process_time()
        fit = made.fit()
        seconds = time.process_time() - start
        return self._error(fit.marginal, fit.total), seconds

    def drawn(self, epsilon: float) -> Found:
        fit = self._measured(epsilon).fit()
        start = time.process_time()
        frame = self._domain.records(fit, self.records.shape[1])
        return self._drawn(frame), time.process_time() - start

    def synthesized(self, epsilon: float, *, records: bool) -> Found:
        start = time.process_time()
        ledger = dpf.Ledger(epsilon=epsilon, delta=_DELTA)
        made = dpf.synthesize(self._frame, self._domain, epsilon=epsilon, delta=_DELTA, ledger=ledger)
        found = self._drawn(made.frame) if records else self._error(made.marginal, None)
        return found, time.process_time() - start


def main() -> None:
    """Measure and write."""
    census = _Census(ROWS)
    ways: dict[str, Callable[[float], Found]] = {
        _NOISY: census.noisy,
        _CLIPPED: census.clipped,
        _SQUARES: census.squares,
        "fitted by entropy": census.fitted,
        _MODEL: partial(census.synthesized, records=False),
        _RECORDS: census.drawn,
        _SYNTHETIC: partial(census.synthesized, records=True),
    }
    lines = ["| what | epsilon .1 | epsilon 1 | epsilon 10 | seconds |", "|---|---|---|---|---|"]
    for what, way in ways.items():
        found = {epsilon: np.median([way(epsilon) for _ in range(_RUNS)], axis=0) for epsilon in _EPSILONS}
        errors = " | ".join(f"{found[epsilon][0]:.4f}" for epsilon in _EPSILONS)
        seconds = f"{found[1.0][1]:.1f}" if found[1.0][1] else ""
        lines.append(f"| {what} | {errors} | {seconds} |")
        print(lines[-1], flush=True)
    Path(__file__).with_suffix(".md").write_text(f"{ABOUT}{chr(10).join(lines)}\n{AFTER}")


if __name__ == "__main__":
    main()
