"""How good selections are, by exact probabilities: theorem 3.11, corollary 3.12, example 3.6, erratum E9, prices."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from noise.goodness import rejects

import dpfast as dpf
from dpfast.errors import ParameterError
from dpfast.mechanisms.selection.noisy_max import report_noisy_max
from dpfast.mechanisms.selection.probabilities import selection_probabilities

from .oracles import noisy_max_of_two


def test_example_3_6():
    """Inventory 3.4-7, A = 0 and B = 10 at epsilon 1/2: the bound and all six exact probabilities of A. Row 3.3-11."""
    assert dpf.selection_miss(10, 2, 0.5) == pytest.approx(0.16417, abs=5e-6)
    assert dpf.selection_miss(10, 2, 0.5) == pytest.approx(2 * math.exp(-2.5), rel=1e-14)
    exact = {
        (name, monotonic): selection_probabilities([0, 10], 0.5, 1.0, monotonic, name)[0]
        for name, monotonic in itertools.product(("exponential", "permute_and_flip"), (False, True))
    }
    assert exact["exponential", False] == pytest.approx(0.0758582, abs=5e-8)
    assert exact["exponential", True] == pytest.approx(0.00669285, abs=5e-9)
    assert exact["permute_and_flip", False] == pytest.approx(0.0410425, abs=5e-8)
    assert exact["permute_and_flip", True] == pytest.approx(0.00336897, abs=5e-9)
    assert noisy_max_of_two(0.5 * 10) == pytest.approx(0.0117914, abs=5e-8)
    assert noisy_max_of_two(0.25 * 10) == pytest.approx(0.0923456, abs=5e-8)
    assert dpf.selection_miss(10, 2, 0.5, exact=True) == pytest.approx(exact["exponential", False], rel=1e-12)
    for (name, monotonic), probability in exact.items():
        assert probability <= dpf.selection_miss(10, 2, 0.5, 1.0, monotonic), name


def test_theorem_3_13_of_the_text_is_false():
    """Erratum E9: at c epsilon / 2 = 1 exponential noise selects A with .1839, the exponential mechanism .2689.

    Row 3.4-10.
    """
    mechanism, noise = (
        selection_probabilities([0, 2], 1.0, mechanism=name)[0] for name in ("exponential", "permute_and_flip")
    )
    assert mechanism == pytest.approx(0.2689414, abs=5e-8)
    assert noise == pytest.approx(0.1839397, abs=5e-8)
    # In draws: each is seen to be itself and not the other. False-failure rate 1e-12.
    draws = 200_000
    rows = np.broadcast_to(np.array([0.0, 2.0]), (draws, 2))
    for select, own, other in ((dpf.exponential, mechanism, noise), (dpf.permute_and_flip, noise, mechanism)):
        happened = int((select(rows, 1.0) == 0).sum())
        assert not rejects([("A", happened, draws, own)])
        assert rejects([("A", happened, draws, other)])
    assert int((report_noisy_max(rows, 1.0) == 0).sum()) > 0.2 * draws


def test_theorem_3_11_on_exact_probabilities(seed):
    """P(score <= best - error) <= miss for random scores, with ties at the top; and the exact bound is reached.

    Row 3.4-5.
    """
    generator = np.random.default_rng(seed)
    for _ in range(60):
        many, epsilon = int(generator.integers(2, 12)), float(generator.uniform(0.1, 5))
        best, monotonic = int(generator.integers(1, many + 1)), bool(generator.integers(2))
        sensitivity = float(generator.choice([1.0, 3.0, 0.2]))
        scores = np.concatenate([np.zeros(best), -generator.exponential(4, many - best)])
        given = (epsilon, sensitivity, monotonic)
        for error in (0.0, 0.3, 2.0, 9.0):
            simple = dpf.selection_miss(error, many, *given, best=best)
            exact = dpf.selection_miss(error, many, *given, best=best, exact=True)
            assert exact <= simple <= dpf.selection_miss(error, many, *given)
            for name in ("exponential", "permute_and_flip"):
                missed = selection_probabilities(scores, *given, name)[scores <= -error].sum()
                if error:
                    assert missed <= exact * (1 + 1e-12), name
            worst = np.concatenate([np.zeros(best), np.full(many - best, -error)])
            reached = selection_probabilities(worst, *given)[best:].sum()
            assert reached == pytest.approx(exact, rel=1e-11)
        for miss, exact in itertools.product((0.3, 0.05, 1e-9), (False, True)):
            error = dpf.selection_error(many, *given, miss=miss, best=best, exact=exact)
            back = dpf.selection_miss(error, many, *given, best=best, exact=exact)
            assert back <= miss * (1 + 1e-9)
            assert not error or back == pytest.approx(miss, rel=1e-9)


def test_corollary_3_12():
    """(2 sensitivity / epsilon) (ln of the number of candidates + t) but for e**-t. Row 3.4-6."""
    for many, epsilon, sensitivity, t in ((500, 1.0, 5.0, 3.0), (10**9, 0.1, 1.0, 1.0)):
        formula = 2 * sensitivity / epsilon * (math.log(many) + t)
        assert dpf.selection_error(many, epsilon, sensitivity, miss=math.exp(-t)) == pytest.approx(formula, rel=1e-12)
    assert dpf.selection_error(1, 1.0, miss=0.999999, exact=True) == 0.0
    assert dpf.selection_miss(0, 10, 1.0) == 1.0


def test_error_of_a_sparse_vector():
    """As often wrong as the formula says for values right at the distance. False-failure rate 1e-12."""
    values, count = 50, 3
    x = dpf.threshold_error(values, 2.0, count=count, miss=0.2)
    runs = 20_000
    for side, wrong in ((-1, lambda places: places[:, 0] >= 0), (1, lambda places: places[:, 0] != 0)):
        rows = np.full((runs, values), side * x)
        places = dpf.above_threshold(rows, 0, 2.0, count=count)
        happened = int(wrong(places).sum())
        # An event of probability at most 0.2: so many cannot come of it.
        assert happened / runs < 0.2 or not rejects([("wrong", happened, runs, 0.2)])
    assert dpf.threshold_error(1000, 1.0) < 8 * (math.log(1000) + math.log(40)) / 2.5
    assert dpf.threshold_error(1000, 1.0, monotonic=True) < dpf.threshold_error(1000, 1.0)
    assert dpf.threshold_error(1000, 1.0, numeric=0.5) == pytest.approx(dpf.threshold_error(1000, 0.5), rel=1e-9)


@pytest.mark.parametrize(
    ("call", "arguments", "name"),
    [
        (dpf.selection_error, {"candidates": 3, "best": 4}, "best"),
        (dpf.threshold_error, {"values": 10, "miss": 2}, "miss"),
        (dpf.threshold_error, {"values": 10, "miss": 5e-324}, "miss"),
        (dpf.threshold_error, {"values": 10, "miss": Decimal("1e-400")}, "miss"),
    ],
)
def test_bad_parameters(call, arguments, name):
    with pytest.raises(ParameterError) as error:
        call(**{"epsilon": 1.0, **arguments})
    assert str(error.value).startswith(f"{name} must be")


PUMPKINS = [
    (1.0, 0.00262477, 0.00237737, 1.3518045),
    (10.0, 0.01638776, 0.00608931, 2.5023598),
]


@pytest.mark.parametrize(("epsilon", "at_100", "at_301", "expected"), PUMPKINS)
def test_pumpkin_auction(epsilon, at_100, at_301, expected, seed):
    """Inventory 3.4-1: bids 1, 1, 1, 3.01 dollars on a grid of cents up to 5. False-failure rate 1e-12."""
    bids, prices = [100, 100, 100, 301], np.arange(1, 501)
    revenues = dpf.price_revenues(bids, prices)
    assert revenues[[99, 299, 300, 301]].tolist() == [400, 300, 301, 0]  # erratum E7
    assert revenues.argmax() == 99
    odds = selection_probabilities(revenues, epsilon, 500.0)
    assert odds[99] == pytest.approx(at_100, abs=5e-9)
    assert odds[300] == pytest.approx(at_301, abs=5e-9)
    assert odds @ revenues / 100 == pytest.approx(expected, abs=6e-8)
    won = np.array([dpf.select_price(bids, prices, epsilon) for _ in range(3_000)])
    groups = [("up to $1", int((won <= 100).sum()), won.size, float(odds[:100].sum()))]
    groups += [("above $3.01", int((won > 301).sum()), won.size, float(odds[301:].sum()))]
    assert not rejects(groups)


def test_the_auction_that_the_text_means():
    """Erratum E7: with 4.01 dollars 4.00, 4.00, 4.01 and 0."""
    assert dpf.price_revenues([100, 100, 100, 401], [100, 400, 401, 402]).tolist() == [400, 400, 401, 0]


def test_neighbouring_auctions(seed):
    """No revenue moves by more than the largest price; adding a bid lowers none; no odds move by more than epsilon.

    Row 3.4-2.
    """
    generator = np.random.default_rng(seed)
    prices = np.unique(generator.integers(1, 300, 40))
    for _ in range(20):
        bids = generator.integers(0, 330, 30)
        added, replaced = np.append(bids, generator.integers(0, 330)), bids.copy()
        replaced[3] = generator.integers(0, 330)
        before, more, other = (dpf.price_revenues(each, prices) for each in (bids, added, replaced))
        assert ((more >= before) & (more - before <= prices[-1])).all()
        assert (np.abs(other - before) <= prices[-1]).all()
        naive = [price * sum(int(bid) >= price for bid in bids) for price in prices.tolist()]
        assert before.tolist() == naive
        for neighbour, monotonic in ((more, True), (more, False), (other, False)):
            one, two = (selection_probabilities(each, 1.0, int(prices[-1]), monotonic) for each in (before, neighbour))
            assert np.abs(np.log(one / two)).max() <= 1 + 1e-9


def test_bids_of_every_kind():
    expected = [400, 300, 301, 0]
    prices = pl.Series([100, 300, 301, 302])
    for dtype in (np.int64, np.int32, np.uint32):
        assert dpf.price_revenues(np.array([100, 100, 100, 301], dtype), prices).tolist() == expected
    assert dpf.price_revenues(pl.Series([100, None, 100, 100, 301]), prices).tolist() == expected
    assert dpf.price_revenues(pa.array([100, 100, 301, 100]), prices).tolist() == expected
    assert dpf.price_revenues([], prices).tolist() == [0, 0, 0, 0]
    assert dpf.price_revenues([-5, 2**62], [1]).tolist() == [1]
    many = np.random.default_rng(1).integers(0, 600, 300_000)
    naive = [price * int((many >= price).sum()) for price in (1, 250, 500)]
    assert dpf.price_revenues(many, range(1, 501))[[0, 249, 499]].tolist() == naive
    # A grid too long for a table: every bid is searched for.
    assert dpf.price_revenues(many, [1, 250, 500, 2**40])[:3].tolist() == naive


def test_bad_auctions():
    for prices in (pl.Series([1, None]), [2**53 + 1]):
        with pytest.raises(ParameterError, match=r"^prices must be"):
            dpf.select_price([1, 2], prices, 1.0)
