"""What is asked, by name, and how wrong an estimate answers it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

import dpfast as dpf
from dpfast.workloads import Workload

__all__ = ["WORKLOADS", "one_record", "scaled_errors", "workload_named", "workloads_for"]

_RANDOM, _SEED = 2000, 2000
#: Beyond these, mechanisms that work out their noise query by query have too many.
_MOST_ALL_RANGES = 2**15

#: Made-up tables have so many axes.
_TABLES = (3, 4, 6)

WORKLOADS = {
    "identity": (1, 2, *_TABLES),
    "prefix": (1,),
    "all ranges": (1,),
    "random ranges": (1,),
    "rectangles": (2,),
    "marginals": (2, *_TABLES),
    "pairs": _TABLES,
}
"""Names, and for how many axes each is: 2,000 random ranges or rectangles; marginals of one attribute, or of two."""


def workloads_for(shape: tuple[int, ...], names: Iterable[str]) -> list[str]:
    """Return those of the names that are for such a histogram."""
    fitting = [name for name in names if len(shape) in WORKLOADS[name]]
    return [name for name in fitting if name != "all ranges" or shape[0] <= _MOST_ALL_RANGES]


@lru_cache(32)
def workload_named(name: str, shape: tuple[int, ...]) -> Workload:
    """Return the queries of a name over a shape; the same object each time, so that what is made for it is kept."""
    if name == "identity":
        return dpf.workloads.identity(shape)
    if name == "prefix":
        return dpf.workloads.prefix(shape[0])
    if name == "all ranges":
        return dpf.workloads.all_range(shape[0])
    if name == "random ranges":
        return dpf.workloads.random_ranges(shape[0], _RANDOM, _SEED)
    if name == "rectangles":
        return dpf.workloads.random_rectangles(shape, _RANDOM, _SEED)
    return dpf.workloads.marginals(shape, k=2 if name == "pairs" else 1)


def scaled_errors(
    name: str, counts: NDArray[np.int64], estimate: NDArray[np.float64], scale: int
) -> tuple[float, float]:
    """Return the errors of all answers, divided by the scale and the number of queries: L2 as DPBench does, and L1."""
    wrong = np.asarray(estimate, np.float64) - counts
    workload = workload_named(name, counts.shape)
    squares, sizes = _all_ranges(wrong) if name == "all ranges" else _answered(workload, wrong)
    return float(np.sqrt(squares)) / (scale * len(workload)), sizes / (scale * len(workload))


def one_record(name: str, shape: tuple[int, ...], scale: int) -> tuple[float, float]:
    """Return the scaled errors, L2 and L1, of an estimate that is wrong by one record in one cell: on average.

    All queries have coefficients 0 and 1: a cell is in as many of them, on average, as they have cells, over all cells.
    """
    workload, cells = workload_named(name, shape), int(np.prod(shape))
    if name == "all ranges":
        together = cells * (cells + 1) * (cells + 2) // 6
    else:
        together = int(workload.answer(np.ones(shape, np.int64)).sum())
    return np.sqrt(together / cells) / (scale * len(workload)), together / cells / (scale * len(workload))


def _answered(workload: Workload, wrong: NDArray[np.float64]) -> tuple[float, float]:
    answers = workload.answer(wrong)
    return float(answers @ answers), float(np.abs(answers).sum())


def _all_ranges(wrong: NDArray[np.float64]) -> tuple[float, float]:
    """Return the sums of squares and of sizes of all differences of two prefix sums, without making them all.

    Of n + 1 prefix sums in ascending order, the k-th (from 0) is the larger one in k differences and the smaller one in
    n - k.
    """
    prefixes = np.sort(np.concatenate([[0.0], np.cumsum(wrong)]))
    prefixes -= prefixes.mean()
    rank = np.arange(prefixes.size)
    return prefixes.size * float(prefixes @ prefixes), float((2 * rank - (prefixes.size - 1)) @ prefixes)
