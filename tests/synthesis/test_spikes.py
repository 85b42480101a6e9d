"""Spikes come out: cells that hold far more than their neighbours, at any place, alone or beside others.

Heights are told in scales of the noise that the whole budget would buy: 1 / epsilon records, or 1 / sqrt(2 rho).
Laplace noise of the whole budget itself strays by more than 3 scales, a tenth of 30, with probability exp(-3) = 0.05,
and what finds the cell among others costs part of the budget: the middle of the draws is within a tenth, not all are.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import dpfast as dpf
from dpfast.testing import SeededRandom

EPSILON = 0.1
SHAPES = [(256,), (4096,), (64, 64), (256, 256)]
KINDS = ["alone", "beside nine", "above a floor", "beside a block"]
Method = Callable[..., np.ndarray]


def histogram(kind: str, shape: tuple[int, ...], height: float, generator: np.random.Generator):
    """Return counts with a spike in them, and its cell."""
    cells, records = int(np.prod(shape)), round(height / EPSILON)
    places = generator.permutation(cells)
    counts = np.zeros(cells, np.int64)
    if kind == "beside nine":
        counts[places[1:10]] = records
    elif kind == "above a floor":
        counts[:] = generator.poisson(1.0, cells)
    elif kind == "beside a block":
        counts[: cells // 3] = generator.poisson(30.0, cells // 3)
    counts[places[0]] += records
    return counts.reshape(shape), places[0]


def ratios(method: Method, kind: str, shape: tuple[int, ...], height: float, runs: int, seed: int) -> np.ndarray:
    """Return what spikes at random places come out as, divided by what they are."""
    generator, random = np.random.default_rng(seed), SeededRandom(seed)
    found = []
    for _ in range(runs):
        counts, place = histogram(kind, shape, height, generator)
        estimate = method(counts, epsilon=EPSILON, random=random).histogram
        found.append(estimate.reshape(-1)[place] / counts.reshape(-1)[place])
    return np.array(found)


def concentrated(counts: np.ndarray, epsilon: float, random: SeededRandom) -> dpf.Estimate:
    """Measure with a rho that buys noise of the standard deviation 1 / epsilon."""
    return dpf.adaptive_hierarchy(counts, rho=epsilon**2 / 2, random=random)


METHODS: dict[str, Method] = {
    "adaptive hierarchy": dpf.adaptive_hierarchy,
    "choice": dpf.estimate_histogram,
    "adaptive hierarchy, rho": concentrated,
}


@pytest.mark.statistical
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("method", METHODS)
def test_spikes_come_out_whatever_is_beside_them(method, shape, seed):
    """Fifteen places for each kind and height, sixty for each height; each bound fails falsely below once in 10**8.

    Of 400 for each method, shape and height: of 300 scales none strays by more than a tenth, where 6 of 60 may; of 100
    scales 3.5 in 100 at most, where 25 of 60 may; of 30 scales 81 in 100 at least are within a fifth, 27 of 60 must be
    (at 78 in 100 6e-9).
    """
    for height, strays, least in ((300, 0.1, 54), (100, 0.1, 35), (30, 0.2, 27)):
        found = np.concatenate([ratios(METHODS[method], kind, shape, height, 15, seed + height) for kind in KINDS])
        assert (np.abs(found - 1.0) <= strays).sum() >= least, (height, np.sort(found).round(2))


@pytest.mark.statistical
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_middle_of_spikes_of_thirty_scales_is_within_a_tenth(shape, seed):
    """Of 160: the middle one is within a tenth, and so are at least 61; at least 117 are found.

    Seen in 400 to 600 draws for each shape: 64 to 79 in 100 within a tenth, 15 to 29 below and 5 to 9 above; 93 to 100
    found, which is that they come out as more than half. Each bound fails falsely at most once in 5 * 10**7 runs.
    """
    found = np.concatenate([ratios(METHODS["adaptive hierarchy"], kind, shape, 30, 40, seed) for kind in KINDS])
    assert abs(np.median(found) - 1.0) <= 0.1, np.sort(found).round(2)
    assert (np.abs(found - 1.0) <= 0.1).sum() >= 61, np.sort(found).round(2)
    assert (found > 0.5).sum() >= 117, np.sort(found).round(2)


@pytest.mark.statistical
def test_concentrated_noise_tells_spikes_of_thirty_deviations(seed):
    """rho: at least 39 of 60 are within a tenth (seen: 92 in 100 at least; fewer: once in 10**9 runs)."""
    found = np.concatenate([ratios(concentrated, kind, (4096,), 30, 15, seed) for kind in KINDS])
    assert (np.abs(found - 1.0) <= 0.1).sum() >= 39, np.sort(found).round(2)


@pytest.mark.statistical
def test_clusters_of_any_cells_find_spikes(seed):
    """AHP: of 60 spikes of 30 scales at least 36 come out within a fifth (seen: 9 in 10; fewer: once in 10**9 runs)."""
    found = np.concatenate([ratios(dpf.ahp, kind, (1024,), 30, 30, seed) for kind in KINDS[::2]])
    assert (np.abs(found - 1.0) <= 0.2).sum() >= 36, np.sort(found).round(2)


@pytest.mark.statistical
def test_buckets_find_high_spikes_and_drown_low_ones(seed):
    """DAWA: all but 6 of 40 spikes of 300 scales (missed: 1 in 400), fewer than 31 of 40 of 30 scales (found: 1 in 5).

    Fails falsely less than once in 10**11 runs.
    """
    high, low = (ratios(dpf.dawa, "above a floor", (1024,), height, 40, seed) for height in (300, 30))
    assert (np.abs(high - 1.0) <= 0.1).sum() >= 34, np.sort(high).round(2)
    assert (np.abs(low - 1.0) <= 0.1).sum() < 31, "better than its docstring says"
