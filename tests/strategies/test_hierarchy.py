"""The hierarchy's published errors, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

import dpfast as dpf
from dpfast.errors import ParameterError

from .dense import all_ranges, prefixes, rmse

made, workloads = dpf.strategies, dpf.workloads


@pytest.mark.parametrize(
    ("n", "workload", "expected"),
    [
        (128, prefixes, (8.0312, 2.8099, 2.8230, 3.0520, 3.3994, 2.7945, 2.4488)),
        (128, all_ranges, (6.5828, 3.4253, 3.3215, 3.4696, 3.7983, 3.1013, 2.9467)),
        (1024, prefixes, (22.6385, 3.6862, 3.8065, 4.0883, 4.5889, 3.6674, 3.1098)),
        (1024, all_ranges, (18.4932, 4.6542, 4.7925, 4.9770, 5.4639, 4.3185, 3.8958)),
    ],
)
def test_published_errors_under_gaussian_noise(n, workload, expected):
    asked = workload(n)
    strategies = [made.identity(n), *(made.hierarchy(n, b, root=True) for b in (2, 4, 8, 16))]
    strategies += [made.wavelet(n), made.square_root(n)]
    assert [round(rmse(strategy, asked, 2), 4) for strategy in strategies] == list(expected)


@pytest.mark.parametrize(
    ("workload", "identity", "wavelet", "square_root", "rooted", "rootless"),
    [
        (prefixes, 32.016, 17.202, 87.77, (17.290, 13.186, 12.928, 12.979), (16.748, 12.583, 13.116, 13.353)),
        (all_ranges, 26.153, 20.26, 109.96, (21.83, 16.60, 15.74, 15.45), (20.26, 14.50, 13.82, 13.27)),
    ],
)
def test_published_errors_under_laplace_noise(workload, identity, wavelet, square_root, rooted, rootless):
    asked = workload(1024)
    places = 3 if workload is prefixes else 2
    assert round(rmse(made.identity(1024), asked, 1), 3) == identity
    assert round(rmse(made.wavelet(1024), asked, 1), places) == wavelet
    closed = workloads.prefix(1024) if workload is prefixes else workloads.all_range(1024)
    assert rmse(made.square_root(1024), closed, 1) == pytest.approx(square_root, abs=0.0051)
    for root, expected in ((True, rooted), (False, rootless)):
        found = [round(rmse(made.hierarchy(1024, b, root=root), asked, 1), places) for b in (2, 4, 8, 16)]
        assert found == list(expected)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("identity", (8.0312, 11.3358, 16.0156, 22.6385, 32.0078)),
        ("H2", (2.8099, 3.1022, 3.3944, 3.6862, 3.9776)),
        ("wavelet", (2.7945, 3.0851, 3.3762, 3.6674, 3.9585)),
    ],
)
def test_published_errors_of_prefixes_by_size(kind, expected):
    for n, error in zip((128, 256, 512, 1024, 2048), expected, strict=True):
        strategy = made.hierarchy(n, 2, root=True) if kind == "H2" else getattr(made, kind)(n)
        assert round(rmse(strategy, prefixes(n), 2), 4) == error


def test_identity_on_prefixes_in_dpbench():
    assert rmse(made.identity(4096), prefixes(4096), 1) / 0.1 == pytest.approx(640.1, abs=0.05)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"branching": (2, 1)}, "branching"),
        ({"branching": (16, 16, 2)}, "branching"),
        ({"weights": (1, 1)}, "weights must be 4 whole numbers"),
        ({"weights": (1, 1, 1, 2**20 + 1)}, "weights"),
    ],
)
def test_what_is_no_hierarchy_is_refused(arguments, message):
    with pytest.raises(ParameterError, match=message):
        made.hierarchy(**{"cells": 100, "branching": (2, 4, 4), **arguments})


def test_large_trees_agree_with_their_rows():
    strategy = made.hierarchy(1_000_003, 16)
    histogram = np.random.default_rng(5).integers(0, 1000, strategy.cells)
    measured = strategy.measure(histogram)
    np.testing.assert_allclose(strategy.reconstruct(measured), histogram, atol=1e-9)
    assert (np.concatenate(measured) == strategy.measure_rows(histogram[None])[0]).all()
