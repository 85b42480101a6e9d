"""The error bounds that certified quantiles rest on, against mpmath; and how rarely a node is left in doubt."""

from __future__ import annotations

import math

import mpmath
import numba
import numpy as np
import pytest

import dpfast as dpf
from dpfast.kernels import decay
from dpfast.mechanisms.quantiles import nodes as quantile_nodes


@numba.njit
def _decay(x):
    result = np.empty(x.size)
    for i in range(x.size):
        result[i] = decay.decay_f64(x[i])
    return result


def test_the_exponential_is_within_four_roundings(seed):
    """decay.py: below 4u of exp(-x), u = 2**-53, for x from 0 to 700; next to multiples of ln(2) / 2 too."""
    generator = np.random.default_rng(seed)
    halves = np.arange(1, 2019) * (math.log(2) / 2)
    x = np.concatenate(
        [
            [0.0, 5e-324, 1e-300, 2.0**-53, decay.LARGEST, np.nextafter(decay.LARGEST, 0)],
            halves[halves <= 700],
            np.nextafter(halves[halves <= 700], 0),
            np.nextafter(halves[halves < 699], 1000),
            generator.uniform(0, 1, 3000),
            generator.uniform(0, 700, 3000),
        ]
    )
    found = _decay(x)
    worst = 0.0
    with mpmath.workprec(200):
        for one, value in zip(x.tolist(), found.tolist(), strict=True):
            exact = mpmath.exp(-mpmath.mpf(one))
            worst = max(worst, float(abs(mpmath.mpf(value) - exact) / exact) * 2**53)
    print(f"worst error {worst:.2f} u")
    assert worst < 4


def test_taylor_coefficients_are_the_nearest_floats():
    assert tuple(float(mpmath.mpf(1) / mpmath.factorial(k)) for k in range(14)) == decay.TAYLOR


@pytest.mark.parametrize("epsilon", [0.01, 1.0])
def test_doubt_is_rare(monkeypatch, epsilon, seed):
    """Of 60,000 nodes with wide and narrow grids hardly one is left in doubt: the bound is about 2**-32 a node.

    Two are with a probability of 1e-10, and one with one of 1.4e-5.
    """
    seen = []
    exact = quantile_nodes.exact_draw
    monkeypatch.setattr(quantile_nodes, "exact_draw", lambda *given: seen.append(1) or exact(*given))
    generator = np.random.default_rng(seed)
    values, ids = generator.normal(0, 30, 300_000), generator.integers(0, 10_000, 300_000)
    for grid in (None, 1):
        dpf.quantiles(
            values,
            [0.25, 0.5, 0.9],
            bounds=(-100, 400),
            epsilon=epsilon,
            groups=ids,
            group_count=10_000,
            grid=grid,
        )
    assert len(seen) <= 1
