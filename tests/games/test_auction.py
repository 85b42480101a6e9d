"""The auction of digital goods: how much revenue is lost to privacy, and what a false bid gains."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import dpfast as dpf


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_the_revenue_is_nearly_the_best_one(epsilon, seed):
    """Row 10-3: with prices a, 2a, ..., 1 the revenue is OPT - a n - (2 / epsilon) ln(1 / (a miss)) at least.

    The probabilities are exact (theorem 3.11), over six shapes of bids, which are cents.
    """
    generator = np.random.default_rng(seed)
    for shape in range(6):
        n = 2000
        values = generator.beta(0.5 + shape, 1.5, n)
        bids = np.rint(values * 1000).astype(np.int64)
        best = max(price * (bids >= price).sum() for price in range(1, 1001)) / 1000
        for steps in (10, 50):
            prices = np.arange(1, steps + 1) * (1000 // steps)
            revenues = dpf.price_revenues(bids, prices) / 1000
            assert revenues.max() >= best - n / steps
            law = dpf.selection_probabilities(revenues, epsilon, 1.0)
            for miss in (0.5, 0.01):
                least = best - n / steps - 2 / epsilon * math.log(steps / miss)
                assert law[revenues < least].sum() <= miss


def test_a_false_bid_gains_little():
    """Rows 10-2 and 10-3: all bids of 3 bidders on a grid of 4 prices; a lie gains tanh(epsilon / 4) at most."""
    prices, epsilon = np.arange(1, 5), 1.0
    gain = 0.0
    for bids in itertools.product(range(5), repeat=3):
        worth = np.maximum(bids[0] - prices, 0) / 4
        truth = dpf.selection_probabilities(dpf.price_revenues(list(bids), prices), epsilon, 4.0) @ worth
        for lie in range(5):
            told = dpf.price_revenues([lie, *bids[1:]], prices)
            gain = max(gain, dpf.selection_probabilities(told, epsilon, 4.0) @ worth - truth)
    assert 0.01 < gain <= math.tanh(epsilon / 4)
