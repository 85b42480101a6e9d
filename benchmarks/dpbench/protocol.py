"""The protocol: shapes x scales x domains, samples of each, runs on each; the scaled average error per query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

import dpfast as dpf
from dpfast.testing import SeededRandom
from dpfast.workloads import Workload

from .algorithms import algorithms
from .shapes import LINES, PLANES, Shape, coarsened, histogram, sampled

__all__ = ["FULL", "QUICK", "Protocol", "measured", "scaled_error", "workload_for"]

_RECTANGLES = 2000
_RECTANGLES_SEED = 2000


@dataclass(frozen=True)
class Protocol:
    """What is run.

    Attributes
    ----------
    lines, planes
        The shapes, in one dimension and in two.
    scales
        How many records are drawn from each shape.
    sides
        Cells along each attribute, for one and for two dimensions.
    samples, runs
        How many histograms are drawn for each, and how often each algorithm runs on each.

    """

    lines: Sequence[Shape] = tuple(LINES)
    planes: Sequence[Shape] = tuple(PLANES)
    scales: Sequence[int] = tuple(10**power for power in range(3, 9))
    sides: tuple[Sequence[int], Sequence[int]] = ((256, 512, 1024, 2048, 4096), (32, 64, 128, 256))
    samples: int = 5
    runs: int = 5
    epsilon: float = 0.1


FULL = Protocol()
QUICK = Protocol(LINES[::9], PLANES[:1], (10**3, 10**6), ((256,), (32,)), 1, 1)


def workload_for(shape: tuple[int, ...]) -> Workload:
    """Return all prefixes in one dimension, 2,000 random rectangles in two."""
    if len(shape) == 1:
        return dpf.workloads.prefix(shape[0])
    return dpf.workloads.random_rectangles(shape, _RECTANGLES, _RECTANGLES_SEED)


def scaled_error(workload: Workload, counts: NDArray[np.int64], estimate: NDArray[np.float64], scale: int) -> float:
    """Return the Euclidean distance of all answers, divided by the scale and the number of queries."""
    wrong = workload.answer(np.asarray(estimate, np.float64) - counts)
    return float(np.linalg.norm(wrong)) / (scale * len(workload))


def _cells(protocol: Protocol) -> Iterator[tuple[Shape, int, int]]:
    for sides, shapes in zip(protocol.sides, (protocol.lines, protocol.planes), strict=True):
        for side in sides:
            for shape in shapes:
                for scale in protocol.scales:
                    yield shape, side, scale


def measured(protocol: Protocol, seed: int = 2016, only: str | None = None) -> pl.DataFrame:
    """Return the mean error and its standard error for every shape, domain, scale and algorithm, or only one of these.

    The histograms are the same for the same seed, whatever is run on them.
    """
    rows = []
    generator, random = np.random.default_rng(seed), SeededRandom(seed)
    workload = compared = None
    for shape, side, scale in _cells(protocol):
        domain = (side,) * len(shape.shape)
        if workload is None or workload.shape != domain:
            workload = workload_for(domain)
            compared = algorithms(workload, protocol.epsilon)
            if only is not None:  # some are for one dimension alone
                compared = {name: algorithm for name, algorithm in compared.items() if name == only}
        errors: dict[str, list[float]] = {name: [] for name in compared}
        for _ in range(protocol.samples):
            counts = coarsened(sampled(histogram(shape), scale, generator), side)
            for _ in range(protocol.runs):
                for name, algorithm in compared.items():
                    estimate = algorithm(counts, protocol.epsilon, random)
                    errors[name].append(scaled_error(workload, counts, estimate, scale))
        for name, values in errors.items():
            spread = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
            domain_name = " x ".join(map(str, domain))
            rows.append((shape.name, domain_name, scale, name, float(np.mean(values)), float(spread)))
    schema = ["shape", "domain", "scale", "algorithm", "error", "standard_error"]
    return pl.DataFrame(rows, schema=schema, orient="row")
