"""Rankings of many winners, gaps decided by the kernel, and selections of large scores: all exact, sample by sample."""

from __future__ import annotations

import itertools

import mpmath
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from noise.oracles import FixedKey

import dpfast as dpf
from dpfast.kernels.selection.argmax import EXPONENTIAL
from dpfast.kernels.selection.differences import ordered
from dpfast.kernels.selection.gaps import OPEN
from dpfast.kernels.selection.sorting import sort_descending, threshold_of_largest
from dpfast.mechanisms.selection import argmax as selection
from dpfast.mechanisms.selection import ranking
from dpfast.mechanisms.selection.argmax import select_rows
from dpfast.mechanisms.selection.candidates import borrow_candidates
from dpfast.mechanisms.selection.exact_argmax import exact_order
from dpfast.mechanisms.selection.noisy_max import report_noisy_max
from dpfast.mechanisms.selection.noisy_max_with_gap import gap_steps
from dpfast.mechanisms.selection.ranking import rank_rows
from dpfast.randomness import Keystream
from dpfast.testing import SeededRandom

from .oracles import KINDS, REST, ChosenKeystream, noise_of

every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@every_kind
def test_many_winners_are_in_the_exact_order(kind, seed, monkeypatch):
    """By mpmath, from 1,055 bits, with a fifth of equal words; in one chunk and in several, few winners and all."""
    generator = np.random.default_rng(seed)
    words = generator.integers(0, 2**32, 1500)
    words[generator.random(words.size) < 0.2] = 77_777
    extensions = [int.from_bytes(generator.bytes(128), "big") for _ in words]
    scores = np.round(generator.standard_normal(words.size), 1)
    keystream = ChosenKeystream(words, dict(enumerate(extensions)))
    with mpmath.workprec(1200):
        keys = [
            mpmath.mpf(score) + noise_of(kind, ((word & REST) << 1024) | more, 1055, word > REST)
            for score, word, more in zip(scores.tolist(), words.tolist(), extensions, strict=True)
        ]
        expected = sorted(range(words.size), key=keys.__getitem__, reverse=True)
    for chunk in (65_536, 256):
        monkeypatch.setattr(selection, "CHUNK", chunk)
        for wanted in (48, 49, 700, words.size):
            won, _ = rank_rows(borrow_candidates(scores), 1.0, kind, wanted, keystream)
            assert won[0].tolist() == expected[:wanted], (chunk, wanted)


@every_kind
@pytest.mark.parametrize("offset", [0, 2**62])
def test_fast_path_is_the_exact_path(kind, offset, seed, monkeypatch):
    """On the same bits: rows shorter and longer than the number wanted, in several chunks, tied scores."""
    monkeypatch.setattr(selection, "CHUNK", 512)
    generator = np.random.default_rng(seed)
    scores = generator.integers(-6, 7, 2800) + offset
    lists = pl.Series(pa.LargeListArray.from_arrays(np.array([0, 3, 3, 90, 800, 801, 2000, 2800]), scores))
    for given in (scores.reshape(4, 700), lists):
        candidates = borrow_candidates(given)
        for wanted in (49, 300, 900):
            fast, words = rank_rows(candidates, 0.7, kind, wanted, Keystream(bytes(32)))
            exact, own = rank_rows(candidates, 0.7, kind, wanted, Keystream(bytes(32)), refine_all=True)
            assert np.array_equal(fast, exact)
            assert np.array_equal(words, own)


def test_most_ties_are_decided_before_balls(monkeypatch):
    """Words of 31 equal bits that differ in the next 17 need no ball arithmetic; those that agree there do."""
    seen = []

    def spy(kind, gaps, signs, bits):
        seen.append(len(gaps))
        return exact_order(kind, gaps, signs, bits)

    monkeypatch.setattr(ranking, "exact_order", spy)
    words = [500, 500, 90_000, 90_000]
    for kind in KINDS.values():
        keystream = ChosenKeystream(words, {0: 2 << 1010, 1: 1 << 1010, 2: 2 << 800, 3: 1 << 800})
        won, _ = rank_rows(borrow_candidates(np.zeros(4)), 1.0, kind, 4, keystream)
        assert won.tolist() == [[1, 0, 3, 2]]
    assert seen == [2, 2, 2]


def test_the_threshold_of_the_largest(seed):
    """At least as many as wanted reach it, and an eighth more at most, equal ones apart."""
    generator = np.random.default_rng(seed)
    for size in (1, 2, 50, 5000):
        for keys in (
            generator.integers(-(2**63), 2**63 - 1, size),
            generator.integers(0, 3, size),
            np.array([ordered(x) for x in generator.standard_normal(size).tolist()], np.int64),
            np.array([ordered(1e9 + x) for x in generator.standard_normal(size).tolist()], np.int64),
            np.full(size, -(2**63)),
            np.full(size, 2**63 - 1),
        ):
            for wanted in {1, size // 3 + 1, size}:
                threshold = threshold_of_largest(keys, wanted, np.empty(2048, np.int64))
                exact = np.sort(keys)[size - wanted]
                reach = int((keys >= threshold).sum())
                assert wanted <= reach
                assert threshold <= exact
                assert int(((keys >= threshold) & (keys < exact)).sum()) <= wanted // 8 + 16


def test_sorting(seed):
    generator = np.random.default_rng(seed)
    edges = [np.inf, -np.inf, 0.0, 5e-324, -5e-324, 1e308, -1e308, 1.0, 1.0]
    for values in (generator.standard_normal(3000), np.array(edges), 1e12 + generator.random(500), np.zeros(4)):
        lows, highs, places = values.copy(), values + 1, np.arange(values.size)
        sort_descending(lows, highs, places)
        assert np.array_equal(np.sort(places), np.arange(values.size))
        keys = np.array([ordered(x) for x in lows.tolist()], np.int64).astype(object)
        nearly = max(int(keys.max() - keys.min()) >> 39, 0)
        assert all(later <= before + nearly for before, later in itertools.pairwise(keys.tolist()))
        assert np.array_equal(lows, values[places])
        assert np.array_equal(highs, (values + 1)[places])


@pytest.mark.parametrize("width", [2, 3, 10, 100, 700])
@pytest.mark.parametrize("dtype", ["int64", "float64", "float32", "uint32"])
def test_gaps_of_the_kernel_are_the_exact_ones(width, dtype, seed, monkeypatch):
    """Winner, runner-up and gap of the one pass over a chunk, beside ball arithmetic for all; several chunks."""
    monkeypatch.setattr(selection, "CHUNK", 512)
    generator = np.random.default_rng(seed)
    rows = 1400 // width
    scores = generator.integers(0, 9, (rows, width)).astype(dtype)
    if dtype == "int64":
        scores += 2**62
    candidates, a = borrow_candidates(scores), 0.5
    for grid in (2.0**-9, np.full(rows, 0.1)):
        steps = np.full(rows, float(OPEN))
        keystream = Keystream(bytes(32))
        fast, words = rank_rows(candidates, a, EXPONENTIAL, 2, keystream, gaps=(grid, steps))
        exact, own = rank_rows(candidates, a, EXPONENTIAL, 2, keystream, refine_all=True)
        assert np.array_equal(fast, exact)
        assert np.array_equal(words, own)
        gaps = gap_steps(candidates, a, grid, np.arange(rows), exact, own, keystream, refine_all=True)
        decided = steps != OPEN
        assert np.array_equal((steps * grid)[decided], gaps[decided])
        first = np.arange(rows) * width
        whole = first // 512 == (first + width - 1) // 512
        assert not (decided & ~whole).any()
        assert decided[whole].sum() >= whole.sum() - 2, "what a chunk holds whole, it decides but for one in millions"


def test_gaps_of_rows_without_a_runner_up():
    lists = pl.Series([[5], [0, 10**6], None, [], [7, 7]])
    won, gaps = dpf.noisy_max_with_gap(lists, 1e3)
    assert won.to_list()[:4] == [0, 1, None, None]
    assert [gap is None for gap in gaps.to_list()] == [True, False, True, True, False]


SELECTIONS = {
    "exponential": lambda scores, source: dpf.exponential(scores, 1.0, random=source),
    "permute_and_flip": lambda scores, source: dpf.permute_and_flip(scores, 1.0, random=source),
    "report_noisy_max": lambda scores, source: report_noisy_max(scores, 1.0, random=source),
    "noisy_top_k": lambda scores, source: dpf.noisy_top_k(scores, 3, 1.0, random=source),
    "noisy_max_with_gap": lambda scores, source: np.stack(dpf.noisy_max_with_gap(scores, 1.0, random=source)),
}


@pytest.mark.parametrize("select", SELECTIONS.values(), ids=SELECTIONS)
@pytest.mark.parametrize("shape", [(3000, 7), (300, 100), (3, 70_000)], ids=str)
def test_large_integers_are_small_ones_that_were_shifted(select, shape, seed):
    """The same words and the same differences: the same answers, to the bit, wherever integers lie."""
    small = np.random.default_rng(seed).integers(-9, 10, shape)
    expected = select(small, SeededRandom(seed))
    for offset in (2**53 + 1, 2**62, -(2**63) + 9, 2**63 - 10):
        assert np.array_equal(select(small + offset, SeededRandom(seed)), expected)


@every_kind
def test_no_size_of_score_leaves_more_to_decide(kind, monkeypatch):
    """Rows of large scores are compared by their differences: no more rows are open than of small ones."""
    opened = []
    original = selection._settle
    monkeypatch.setattr(selection, "_settle", lambda *given: (opened.append(given[5].size), original(*given))[1])
    small = np.random.default_rng(5).integers(-9, 10, (20_000, 10))
    for scores in (small, small + 2**62, (small + 2.0**50), small * 2.0**900):
        a = 0.5 if scores.max() < 2.0**900 else 2.0**-901
        select_rows(borrow_candidates(scores), a, kind, FixedKey(bytes(32)))
    assert sum(opened) <= 4 * 40, "a hundred-thousandth of the rows, not all of them"
