"""Soundness rule 8: every candidate whose upper end reaches the best lower end is refined, three as well as two."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import dpfast as dpf
from dpfast.kernels.selection.argmax import EXPONENTIAL, GUMBEL, LAPLACE
from dpfast.mechanisms.selection import argmax as selection
from dpfast.mechanisms.selection import exact_argmax as exact_selection
from dpfast.mechanisms.selection.noisy_max import report_noisy_max

from .oracles import KINDS, REST, ChosenKeystream, winner_of

MECHANISMS = {GUMBEL: dpf.exponential, EXPONENTIAL: dpf.permute_and_flip, LAPLACE: report_noisy_max}
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@pytest.fixture
def refined(monkeypatch):
    """Return a list that fills with the number of contenders of every row that is refined."""
    seen = []

    def spy(kind, gaps, signs, bits):
        seen.append(len(gaps))
        return exact_selection.exact_winner(kind, gaps, signs, bits)

    monkeypatch.setattr(selection, "exact_winner", spy)
    return seen


def select(monkeypatch, kind, scores, words, extensions, epsilon=1.0):
    keystream = ChosenKeystream(words, extensions)
    monkeypatch.setattr(selection, "Keystream", keystream)
    return MECHANISMS[kind](scores, epsilon, 0.5), keystream


#: A word whose noise is high: V small, U small.
HIGH = 123_457
#: A word whose noise is low.
LOW = {GUMBEL: REST - 5, EXPONENTIAL: REST - 5, LAPLACE: REST - 5}


@every_kind
@pytest.mark.parametrize("count", [2, 3, 5])
def test_candidates_with_equal_words_are_all_refined(monkeypatch, refined, kind, count):
    """Same score, same 31 bits: the next bits decide, and the smallest V or U wins, wherever it stands."""
    for winner in range(count):
        words, extensions = [LOW[kind]], {}
        for place in range(count):
            words.append(HIGH)
            extensions[place + 1] = (5 if place == winner else 9 + place) << 1000
        words.append(LOW[kind])
        won, keystream = select(monkeypatch, kind, np.zeros(count + 2), words, extensions)
        assert won == winner + 1
        assert refined[-1] == count
        assert {index for index, _ in keystream.read} == set(range(1, count + 1))


@every_kind
def test_three_contend_at_different_scores(monkeypatch, refined, kind):
    """Three keys within the width that unread bits leave, and any order of them: the exact winner, by mpmath."""
    generator = np.random.default_rng(8)
    winners = set()
    for _ in range(60):
        words = [int(generator.integers(50, 3000)) for _ in range(3)] + [LOW[kind]]
        # -ln(-ln(1 - V)) and -ln U are both about -ln((r + 1/2) 2**-31): scores that make up for the words.
        scores = [math.log(word + generator.uniform(0.2, 0.8)) for word in words[:3]] + [-5.0]
        extensions = [int.from_bytes(generator.bytes(128), "big") for _ in words]
        won, _ = select(monkeypatch, kind, scores, words, dict(enumerate(extensions)))
        assert won == winner_of(kind, 1.0, scores, words, extensions)
        winners.add(won)
    assert winners == {0, 1, 2}
    assert refined.count(3) > 20


@every_kind
def test_refining_only_two_of_three_would_be_wrong(monkeypatch, refined, kind):
    """The mutant: the best upper and the best lower end alone miss a winner between them."""
    # A key's width is about 1 / r: one candidate has a wide interval, one the best lower end, the third is in between.
    words = [20, 2000, 400]
    target = math.log(20.5)
    scores = [0.0, math.log(2000.5) - target, math.log(400.5) - target]
    extensions = [(1 << 1024) - 1, 1 << 1023, 1]
    won, _ = select(monkeypatch, kind, scores, words, dict(enumerate(extensions)))
    assert won == winner_of(kind, 1.0, scores, words, extensions) == 2
    assert refined == [3]
    ends = {}
    for place, (score, word) in enumerate(zip(scores, words, strict=True)):
        ball = exact_selection.noise_ball(kind, word, 31, False)
        ends[place] = (score + float(ball.lower()), score + float(ball.upper()))
    best_low, best_high = max(ends, key=lambda i: ends[i][0]), max(ends, key=lambda i: ends[i][1])
    assert {best_low, best_high} == {0, 1}


@every_kind
def test_bits_are_read_as_long_as_they_leave_it_open(monkeypatch, kind):
    """Soundness rule 2, no cap: two words that agree in 31 + 900 bits, and differ then."""
    for winner in (0, 1):
        extensions = {place: (77 << 1000) | ((1 if place == winner else 2) << 100) for place in (0, 1)}
        won, keystream = select(monkeypatch, kind, np.zeros(2), [HIGH, HIGH], extensions)
        assert won == winner
        assert max(depth for _, depth in keystream.read) >= 6


@every_kind
def test_a_gap_of_800_makes_no_candidate_impossible(monkeypatch, refined, kind):
    """A word of zeros, and 700 zeros after it, beats a gap of 400 units of noise; with one 1 earlier it does not."""
    for zeros, expected in ((700, 1), (400, 0)):
        extensions = {0: 1 << 1023, 1: 1 << (1024 - zeros)}
        won, _ = select(monkeypatch, kind, np.array([800.0, 0.0]), [1 << 30, 0], extensions, epsilon=0.5)
        assert won == expected
    assert refined == [2, 2]


@every_kind
@pytest.mark.parametrize("words", list(itertools.product([0, 1, 2, REST - 1, REST], repeat=2)))
@pytest.mark.parametrize("sign", [0, 1])
def test_words_at_the_edges(monkeypatch, kind, words, sign):
    """The outermost cells have no smallest or largest noise; the winner is exact whatever comes next."""
    words = [words[0], words[1] | (sign << 31)]
    generator = np.random.default_rng(sum(words))
    for gap in (0.0, 0.3, 25.0):
        extensions = [int.from_bytes(generator.bytes(128), "big") for _ in words]
        won, _ = select(monkeypatch, kind, np.array([0.0, gap]), words, dict(enumerate(extensions)))
        assert won == winner_of(kind, 1.0, [0.0, gap], words, extensions)


def test_a_row_in_several_chunks_is_compared_whole(monkeypatch, refined):
    """Contenders in three chunks: each is the only one left in its own, and they are refined together."""
    monkeypatch.setattr(selection, "CHUNK", 64)
    words = np.full(200, REST - 9)
    for winner in (3, 70, 199):
        words[[3, 70, 199]] = HIGH
        extensions = {place: (1 if place == winner else 2) << 1000 for place in (3, 70, 199)}
        won, _ = select(monkeypatch, GUMBEL, np.zeros(200), words, extensions)
        assert won == winner
    assert refined == [3, 3, 3]
