"""Pairs of rows that are open, found eight at a time."""

from __future__ import annotations

import numpy as np
import pytest

from dpfast.kernels.noise.open_pairs import list_open_pairs

DISTANCES = np.float32([0.0, 0.25, -0.25, 0.25, np.nan, 0.1, 0.1, -0.3])
LIMITS = np.float32([0.1, 0.25, 0.3, 0.2, 0.4, np.nan, -np.inf, 0.2])
IS_OPEN = [False, True, False, True, True, True, True, True]


def listed(distances, other_distances, limits, other_limits, some=0):
    """Return the places that are listed behind ``some``, which must be the second rows' as well."""
    places, others = np.full((2, some + distances.size), -1, np.int64)
    count = list_open_pairs(distances, other_distances, limits, other_limits, 1000, 5000, places, others, some)
    assert (places[:some] == -1).all()
    assert (others[some:count] - places[some:count] == 4000).all()
    return (places[some:count] - 1000).tolist()


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 16, 512])
@pytest.mark.parametrize("some", [0, 3])
def test_either_row_opens_a_pair(size, some):
    """NaN opens a row, as a distance that is its limit does, wherever its pair stands among eight, or behind them."""
    distances, limits = np.resize(DISTANCES, size), np.resize(LIMITS, size)
    expected = np.flatnonzero(np.resize(IS_OPEN, size)).tolist()
    zeros, wide = np.zeros(size, np.float32), np.full(size, 0.5, np.float32)
    assert listed(zeros, distances, wide, limits, some) == expected
    assert listed(distances, zeros, limits, wide, some) == expected
    assert listed(distances, zeros, limits, None, some) == expected


def test_pairs_at_random():
    """One in 20 rows is open: the same pairs as NumPy says, with one limit for both rows and with two."""
    generator = np.random.default_rng(31)
    distances, others = generator.uniform(-0.5, 0.5, (2, 5_003)).astype(np.float32)
    limits, other_limits = generator.uniform(0.45, 0.5, (2, 5_003)).astype(np.float32)
    for second in (None, other_limits):
        decided = (abs(distances) < limits) & (abs(others) < (limits if second is None else second))
        found = listed(distances, others, limits, second)
        assert found == np.flatnonzero(~decided).tolist()
        assert len(found) > 100
