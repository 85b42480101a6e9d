"""What projections gain: root mean square errors per query, as a table.

    python -m benchmarks.projection_errors > benchmarks/projection_errors.md

Epsilon is 1 and delta 1e-6 for each column; neighbours are add/remove and nobody knows the number of records. Each
figure is a median of five runs, within about a tenth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count

import numpy as np

import dpfast as dpf
from dpfast.accounting.accountants.zcdp import largest_rho
from dpfast.synthesis.fitted.projection_mechanism import ProjectedAnswers
from dpfast.testing import SeededRandom
from dpfast.workloads import Workload

from .cells import OURS, Cell, Errors, table_lines

_EPSILON, _DELTA = 1.0, 1e-6
_RUNS = 5
_CHOSEN = "projected"
_RECORDS = (1_000, 100_000, 1_000_000)

WORKLOADS: dict[str, Workload] = {
    "prefixes of 1,024": dpf.workloads.prefix(1024),
    "2,000 ranges of 1,024": dpf.workloads.random_ranges(1024, 2000, seed=1),
    "pairs of 4 attributes of 10": dpf.workloads.marginals((10,) * 4, k=2),
    "triples of 10 attributes of 2": dpf.workloads.marginals((2,) * 10, k=3),
}


def made_up(shape: tuple[int, ...], records: int) -> np.ndarray:
    """Return counts: skewed along one attribute, related across several."""
    generator = np.random.default_rng(20_261_128)
    if len(shape) == 1:
        values = [np.minimum((generator.beta(0.5, 3.0, records) * shape[0]).astype(np.int64), shape[0] - 1)]
    else:
        common = generator.integers(0, 3, records)
        values = [
            np.minimum(size - 1, (generator.geometric(0.5, records) - 1 + common * (axis % 2)) * size // 10)
            for axis, size in enumerate(shape)
        ]
    return np.bincount(np.ravel_multi_index(values, shape), minlength=math.prod(shape)).reshape(shape)


def released(histogram: np.ndarray, workload: Workload) -> dict[str, Callable[[SeededRandom], np.ndarray]]:
    """Return what is compared, by name."""
    budget = {"epsilon": _EPSILON, "delta": _DELTA}
    rho = largest_rho(_EPSILON, _DELTA) / 10**18

    def project(random: SeededRandom) -> ProjectedAnswers:
        return dpf.projection_mechanism(histogram, workload, random=random, **budget)

    return {
        "noise alone": lambda random: project(random).noisy,
        "projected": lambda random: project(random).answers,
        "matrix mechanism": lambda random: dpf.matrix_mechanism(histogram, workload, random=random, **budget).answers,
        "MWEM": lambda random: dpf.mwem(histogram, workload, rho=rho, rounds=20, repeat=True, random=random).answers,
        "boosting": lambda random: dpf.boost_queries(histogram, workload, random=random, **budget).answers,
    }


def cells() -> Iterator[Cell]:
    """Yield a cell for every line of the table."""
    for name in WORKLOADS:
        for records in _RECORDS:
            is_quick = name == "pairs of 4 attributes of 10" and records == 1_000
            told = f"Projected answers: {name}, {records:,} records"
            yield Cell(told, "error", partial(_of, name, records), is_quick, (name, f"{records:,}"))


def _of(name: str, records: int, is_quick: bool) -> Errors:
    workload, seeds = WORKLOADS[name], count()
    histogram = made_up(workload.shape, records)
    truth, answers = workload.answer(histogram), released(histogram, workload)

    def error(answer: Callable[[SeededRandom], np.ndarray]) -> float:
        return float(np.sqrt(np.square(answer(SeededRandom(next(seeds))) - truth).mean()))

    ours_first = [_CHOSEN, *(told for told in answers if told != _CHOSEN)]
    return {_contestant(told): partial(error, answers[told]) for told in ours_first}


def _contestant(told: str) -> str:
    return OURS if told == _CHOSEN else f"{OURS}: {told}"


def main() -> None:
    """Print the table."""
    compared = released(np.zeros(1024, np.int64), WORKLOADS["prefixes of 1,024"])
    titles = {told: _contestant(told) for told in compared}
    for line in table_lines(["queries", "records"], cells(), titles, _RUNS, digits=3):
        print(line, flush=True)


if __name__ == "__main__":
    main()
