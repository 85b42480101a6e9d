"""What DPBench asks of every algorithm: scale and epsilon can be exchanged, and errors vanish as epsilon grows."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from benchmarks.dpbench.algorithms import algorithms
from benchmarks.dpbench.protocol import scaled_error, workload_for
from benchmarks.dpbench.shapes import LINES, PLANES, coarsened, histogram, sampled
from dpfast.testing import SeededRandom

SCALE, FACTOR, EPSILON = 20_000, 8, 0.1
SHAPES = {"line": (LINES[5], (256,)), "plane": (PLANES[2], (32, 32))}


@cache
def prepared(kind: str):
    shape, domain = SHAPES[kind]
    counts = coarsened(sampled(histogram(shape), SCALE, np.random.default_rng(7)), domain[0])
    workload = workload_for(domain)
    return counts, workload, algorithms(workload, EPSILON)


CASES = [(kind, name) for kind in SHAPES for name in prepared(kind)[2]]


def errors(kind: str, name: str, factor: int, epsilon: float, runs: int, seed: int) -> np.ndarray:
    """Return scaled errors where every count is so many times as large."""
    counts, workload, compared = prepared(kind)
    more = counts * factor
    random = SeededRandom(seed)
    return np.array(
        [scaled_error(workload, more, compared[name](more, epsilon, random), SCALE * factor) for _ in range(runs)]
    )


@pytest.mark.statistical
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_eight_times_the_records_are_worth_eight_times_the_epsilon(kind, name, seed):
    """The error depends on the product of scale and epsilon.

    The mean logarithms of 33 errors each are compared, seven standard errors apart at most and .01 for rounding:
    by Student's law with 64 degrees of freedom each algorithm fails falsely less than once in 5 * 10**8 runs.
    """
    one = np.log(errors(kind, name, 1, EPSILON, 33, seed))
    other = np.log(errors(kind, name, FACTOR, EPSILON / FACTOR, 33, seed + 1))
    spread = np.sqrt((one.var(ddof=1) + other.var(ddof=1)) / 33)
    assert abs(one.mean() - other.mean()) < 7 * spread + 0.01
    # At most .13 in 6 runs of 24 errors each, with a deviation of .01.
    assert spread < 0.19, "enough to tell errors apart that differ by a factor of 4"


#: Their error tends to what their assumption costs, not to 0: so DPBench says of both.
INCONSISTENT = {"uniform", "MWEM"}


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_the_error_vanishes_as_epsilon_grows(kind, name, seed):
    """Without noise all others answer exactly, up to rounding of floats; these noises are 0 but once in 10**600."""
    found = errors(kind, name, 1, 1e6, 1, seed)[0]
    if name in INCONSISTENT:
        assert found > 1e-6
    else:
        assert found < 1e-9
