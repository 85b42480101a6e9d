"""Rankings: exact probabilities of orders, certified order, equality with peeling.

Frequencies are held to exact binomial tails: each test fails by chance with probability at most 1e-12.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from noise.goodness import rejects
from noise.oracles import FixedKey

import dpfast as dpf
from dpfast.errors import DataError, DpfastError
from dpfast.kernels.selection.argmax import EXPONENTIAL, GUMBEL
from dpfast.mechanisms.selection import argmax as selection
from dpfast.mechanisms.selection import ranking
from dpfast.mechanisms.selection.argmax import select_rows, slopes
from dpfast.mechanisms.selection.candidates import borrow_candidates
from dpfast.mechanisms.selection.exact_argmax import exact_order
from dpfast.mechanisms.selection.ranking import rank_rows
from dpfast.randomness import Keystream
from dpfast.testing import SeededRandom

from .oracles import KINDS, MARITAL, REST, ChosenKeystream, noise_of

every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def peeling(scores, a, k):
    """Return the probability of every order of k candidates: exponential mechanisms in turn among those left."""
    weights = np.exp(a * (np.asarray(scores) - max(scores)))
    orders = {}
    for order in itertools.permutations(range(len(scores)), k):
        left, probability = weights.sum(), 1.0
        for i in order:
            probability *= weights[i] / left
            left -= weights[i]
        orders[order] = probability
    return orders


def counted(rows):
    orders, counts = np.unique(rows, axis=0, return_counts=True)
    return dict(zip(map(tuple, orders.tolist()), counts.tolist(), strict=True))


@pytest.mark.parametrize(("k", "monotonic"), [(1, False), (2, False), (3, True), (4, False)])
def test_orders_are_those_of_peeling(k, monotonic):
    """Every order as often as k mechanisms of epsilon / k in turn make it. False-failure rate 1e-12."""
    scores, epsilon, sensitivity, draws = [0.0, 1.0, 2.5, 2.5], 3.0, 1.5, 200_000
    exact = peeling(scores, epsilon / k / sensitivity / (1 if monotonic else 2), k)
    assert sum(exact.values()) == pytest.approx(1, abs=1e-12)
    rows = np.broadcast_to(np.array(scores), (draws, 4))
    counts = counted(dpf.noisy_top_k(rows, k, epsilon, sensitivity, monotonic))
    assert not rejects([(str(order), counts.get(order, 0), draws, p) for order, p in exact.items()])
    if k > 1:  # The mutant: noise for epsilon at each peel, as if the whole were k epsilon.
        wrong = peeling(scores, epsilon / sensitivity / (1 if monotonic else 2), k)
        assert rejects([(str(order), counts.get(order, 0), draws, p) for order, p in wrong.items()])


def test_marital_status_top_3():
    """Inventory NA-2's candidates: first, second and third place. False-failure rate 1e-12."""
    draws, k = 100_000, 3
    exact = peeling(MARITAL, 1 / (2 * k), k)
    rows = np.broadcast_to(MARITAL, (draws, 7))
    won = dpf.noisy_top_k(rows, k, 1.0)
    events = []
    for position, i in itertools.product(range(k), range(7)):
        p = sum(probability for order, probability in exact.items() if order[position] == i)
        events.append((f"{i} at {position}", int((won[:, position] == i).sum()), draws, p))
    assert not rejects(events)


def test_no_pair_of_neighbours_loses_more_than_epsilon(seed):
    """The total is epsilon for the whole order, on exact probabilities; and the bound of 8k in zCDP holds there."""
    generator = np.random.default_rng(seed)
    worst, share = 0.0, 0.0
    for _ in range(40):
        n = int(generator.integers(2, 6))
        k = int(generator.integers(1, n + 1))
        scores = generator.uniform(-4, 4, n)
        pair = [peeling(each, 1 / (2 * k), k) for each in (scores, scores + generator.choice([-1.0, 1.0], n))]
        losses = np.array([math.log(pair[0][order] / pair[1][order]) for order in pair[0]])
        worst = max(worst, np.abs(losses).max())
        mass = np.array(list(pair[0].values()))
        for alpha in (1.5, 2.0, 8.0, 64.0):
            divergence = math.log((mass * np.exp((alpha - 1) * losses)).sum()) / (alpha - 1)
            share = max(share, divergence / (alpha / (8 * k)))
    print(f"largest loss {worst:.4f} of 1; largest share of rho {share:.4f}")
    assert worst <= 1 + 1e-9
    assert share <= 1 + 1e-9


@every_kind
@pytest.mark.parametrize(("rows", "width"), [(600, 4), (60, 40), (4, 700)])
def test_fast_path_is_the_exact_path(kind, rows, width, seed, monkeypatch):
    """Sample by sample, on the same bits; rows lie in several chunks, scores tie; short rows and long ones."""
    monkeypatch.setattr(selection, "CHUNK", 512)
    generator = np.random.default_rng(seed)
    scores = np.round(generator.standard_normal(rows * width) * 2, 1)
    lengths = generator.integers(0, 2 * width, rows)
    offsets = np.minimum(np.concatenate([[0], np.cumsum(lengths)]), scores.size)
    offsets[-1] = scores.size
    for given in (scores.reshape(rows, width), pl.Series(pa.LargeListArray.from_arrays(offsets, scores))):
        candidates = borrow_candidates(given)
        a = 1.0 if isinstance(given, np.ndarray) else np.exp2(generator.uniform(-5, 5, rows))
        for k in (1, 2, 3, 60):
            fast, words = rank_rows(candidates, a, kind, k, Keystream(bytes(32)))
            exact, own = rank_rows(candidates, a, kind, k, Keystream(bytes(32)), refine_all=True)
            assert np.array_equal(fast, exact)
            assert np.array_equal(words, own)
            assert np.array_equal(fast[:, 0], select_rows(candidates, a, kind, FixedKey(bytes(32))))
            assert np.array_equal((fast >= 0).sum(1), np.minimum(k, np.diff(candidates.offsets)))


@every_kind
def test_ranking_all_against_mpmath(kind, seed, monkeypatch):
    """The second oracle, with many equal words: the order of the keys from 1,055 bits."""
    import mpmath

    generator = np.random.default_rng(seed)
    words = generator.integers(0, 2**32, 800)
    words[generator.random(800) < 0.3] = 77
    extensions = [int.from_bytes(generator.bytes(128), "big") for _ in words]
    scores = np.round(generator.standard_normal((100, 8)))
    keystream = ChosenKeystream(words, dict(enumerate(extensions)))
    won, _ = rank_rows(borrow_candidates(scores), 1.0, kind, 8, keystream)
    with mpmath.workprec(1200):
        for row in range(100):
            keys = [
                float(scores[row, i]) + noise_of(kind, ((int(word) & REST) << 1024) | extension, 1055, word > REST)
                for i, (word, extension) in enumerate(
                    zip(words[8 * row : 8 * row + 8], extensions[8 * row : 8 * row + 8], strict=True)
                )
            ]
            assert (won[row] - 8 * row).tolist() == sorted(range(8), key=keys.__getitem__, reverse=True)


def test_only_those_whose_order_is_open_are_refined(monkeypatch):
    """Soundness rule 8 for rankings: pairs and triples that tie in their words, apart from each other."""
    seen = []

    def spy(kind, gaps, signs, bits):
        seen.append(len(gaps))
        return exact_order(kind, gaps, signs, bits)

    monkeypatch.setattr(ranking, "exact_order", spy)
    words = np.array([500, 500, 90_000, 7_000_000, 7_000_000, 7_000_000, REST - 4, REST - 4])
    later = {0: 5, 1: 4, 3: 7, 4: 9, 5: 8, 6: 1, 7: 2}
    keystream = ChosenKeystream(words, {place: more << 1000 for place, more in later.items()})
    won, _ = rank_rows(borrow_candidates(np.zeros(8)), 1.0, GUMBEL, 5, keystream)
    assert won.tolist() == [[1, 0, 2, 3, 5]]
    assert sorted(seen) == [2, 3]


def test_the_order_of_the_last_ones_is_certified_too(monkeypatch):
    """The mutant that certifies the set and not its order, or the first alone, would take the order of places."""
    words = [100, 2000, 2000, REST - 9]
    for first, second in ((1, 2), (2, 1)):
        keystream = ChosenKeystream(words, {first: 1 << 1000, second: 2 << 1000})
        won, _ = rank_rows(borrow_candidates(np.zeros(4)), 1.0, EXPONENTIAL, 3, keystream)
        assert won.tolist() == [[0, first, second]]


@every_kind
def test_exact_order_of_wide_and_narrow_balls(kind):
    """A ball that reaches over several others keeps them open, however the middles stand; edges as well."""

    class Bits:
        known = 8

        def __init__(self, leading):
            self.whole = (leading << 4000) | ((leading + 1) * 0x9E3779B97F4A7C15 << 3900)

        def leading(self, count):
            return self.whole >> (4008 - count)

    leading = [1, 2, 3, 100, 101, 0, 255, 254]
    exact = exact_order(kind, [Fraction(0)] * 8, [False] * 8, [Bits(each) for each in leading])
    assert [leading[i] for i in exact] == sorted(leading)


def test_results_do_not_depend_on_threads(seed):
    scores = np.random.default_rng(seed).standard_normal(900_000)
    for given, k in ((scores, 100), (scores.reshape(-1, 100), 5), (pl.Series(scores.reshape(-1, 3)), 2)):
        won = [dpf.noisy_top_k(given, k, 1.0, random=SeededRandom(seed), threads=threads) for threads in (1, 2, 8)]
        won = [one.to_list() if isinstance(one, pl.Series) else one.tolist() for one in won]
        assert won[0] == won[1] == won[2]


def test_kinds_of_results():
    rows = np.array([[0, 10**6, 10**7], [10**7, 0, 10**6]])
    assert dpf.noisy_top_k(rows, 2, 1.0).tolist() == [[2, 1], [0, 2]]
    assert dpf.noisy_top_k(rows, 2, 1.0, candidates=np.array([5, 6, 7])).tolist() == [[7, 6], [5, 7]]
    assert dpf.noisy_top_k(rows[0], 2, 1.0, candidates=["a", "b", "c"]) == ["c", "b"]
    assert dpf.noisy_top_k(rows, 2, 1.0, candidates=["a", "b", "c"]) == [["c", "b"], ["a", "c"]]
    assert dpf.noisy_top_k(pl.Series("s", rows[0]), 2, 1.0).to_list() == [2, 1]
    lists = pl.Series("s", [[0, 10**6], None, [], [10**7, None, 5 * 10**6, 0]])
    won = dpf.noisy_top_k(lists, 2, 1.0)
    assert won.to_list() == [[1, 0], [], [], [0, 2]]
    assert (won.name, won.dtype) == ("s", pl.List(pl.Int64))
    assert dpf.noisy_top_k(lists.to_arrow(), 2, 1.0).to_pylist() == [[1, 0], [], [], [0, 2]]
    names = pl.Series("n", [["a", "b"], None, [], ["c", "d", "e", "f"]])
    assert dpf.noisy_top_k(lists, 2, 1.0, candidates=names).to_list() == [["b", "a"], [], [], ["c", "e"]]
    assert dpf.noisy_top_k(rows, 2, 1.0, candidates=pl.Series(["x", "y", "z"])).to_list() == [["z", "y"], ["x", "z"]]
    flat = pl.Series(rows.ravel())
    assert dpf.noisy_top_k(flat, 2, 1.0, offsets=[0, 3, 6]).to_list() == [[2, 1], [3, 5]]
    assert dpf.noisy_top_k(flat.to_numpy(), 2, 1.0, groups=[1, 1, 1, 0, 0, 0]).tolist() == [[3, 5], [2, 1]]
    assert dpf.noisy_top_k(flat, 4, 1.0, offsets=[0, 3, 6]).to_list()[0][:2] == [2, 1]
    assert sorted(dpf.noisy_top_k(np.zeros(5), 5, 1.0).tolist()) == [0, 1, 2, 3, 4]


def test_k_far_above_the_longest_list():
    lists = pl.Series([[0, 10**9], None, [5]])
    assert dpf.noisy_top_k(lists, 10**9, 1e3).to_list() == [[1, 0], [], [0]]
    assert dpf.noisy_top_k(lists[1:2], 10**9, 1.0).to_list() == [[]]


def test_fewer_candidates_than_k():
    for scores, where in (
        ([1, 2], "but had 2"),
        (pl.Series([1, None, 2]), "but had 2"),
        (np.zeros((4, 2)), "in every row, but row 0 had 2"),
    ):
        with pytest.raises(DataError, match=where):
            dpf.noisy_top_k(scores, 3, 1.0)
    with pytest.raises(DataError, match="in every row, but row 1 had 2"):
        dpf.noisy_top_k(np.zeros(5), 3, 1.0, offsets=[0, 3, 5])
    with pytest.raises(DataError, match="in every row, but row 0 had 1"):
        dpf.noisy_top_k(pl.Series([[1], [1, 2]]), 2, 1.0, candidates=["a", "b"])


@pytest.mark.parametrize("argument", ["epsilon", "sensitivity"])
def test_bad_parameters(argument):
    for bad in (math.nan, math.inf, 0, -1, True, "0.1", None, 5e-324):
        with pytest.raises(DpfastError, match=f"^{argument} must be"):
            dpf.noisy_top_k([1, 2, 3], 2, **{"epsilon": 1.0, argument: bad})


def test_slopes_are_shared(seed):
    """a = epsilon / (2 k sensitivity), rounded down for every k, however epsilon is given."""
    generator = np.random.default_rng(seed)
    for k in (1, 2, 3, 7, 1000, 10**9 + 7):
        for _ in range(50):
            epsilon, width = (float(x) for x in generator.uniform(0.01, 10, 2))
            exact = Fraction(repr(epsilon)) / (2 * k * Fraction(width))
            one, many = slopes(epsilon, width, False, 1, k), slopes([epsilon], width, False, 1, k)
            assert exact * (1 - Fraction(4, 2**50)) < Fraction(float(many[0])) <= exact
            assert exact * (1 - Fraction(1, 2**50)) < Fraction(one) <= exact
