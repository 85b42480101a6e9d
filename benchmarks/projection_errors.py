"""What projections gain: root mean square errors per query, as a table.

    python -m benchmarks.projection_errors > benchmarks/projection_errors.md

Epsilon is 1 and delta 1e-6 for each column; neighbours are add/remove and nobody knows the number of records. Each
figure is a mean over five runs, within about a tenth.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

import dpfast as dpf
from dpfast.accounting.accountants.zcdp import largest_rho
from dpfast.synthesis.fitted.projection_mechanism import ProjectedAnswers
from dpfast.testing import SeededRandom
from dpfast.workloads import Workload

_EPSILON, _DELTA = 1.0, 1e-6
_RUNS = 5
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


def main() -> None:
    """Print the table."""
    columns = list(released(np.zeros((1024,), np.int64), WORKLOADS["prefixes of 1,024"]))
    print("| queries | records |", " | ".join(columns), "|")
    print("|---|---|", "|".join("---" for _ in columns), "|", sep="")
    for name, workload in WORKLOADS.items():
        for records in _RECORDS:
            histogram = made_up(workload.shape, records)
            truth = workload.answer(histogram)
            errors = []
            for answer in released(histogram, workload).values():
                runs = [np.square(answer(SeededRandom(run)) - truth).mean() for run in range(_RUNS)]
                errors.append(float(np.sqrt(np.mean(runs))))
            print(f"| {name} | {records:,} |", " | ".join(f"{error:.3g}" for error in errors), "|")


if __name__ == "__main__":
    main()
