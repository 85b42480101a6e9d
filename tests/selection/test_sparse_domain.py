"""The exponential mechanism over domains that are not listed: the same probabilities as over a list.

Frequencies are held to exact binomial tails (noise/goodness.py): each test fails by chance with probability at most
1e-12.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import polars as pl
import pytest
from noise.goodness import rejects
from noise.oracles import Tape, TapeEndsError

import dpfast as dpf
from dpfast.errors import ColumnError, DataError, ParameterError
from dpfast.mechanisms.noise.exact import whole_number_below
from dpfast.mechanisms.selection import unlisted_domain as sparse_domain
from dpfast.mechanisms.selection.probabilities import selection_probabilities
from dpfast.mechanisms.selection.unlisted_domain import accepts, zero_score
from dpfast.testing import SeededRandom

DRAWS = 6_000


@pytest.mark.parametrize(
    ("indices", "scores", "size", "epsilon"),
    [
        ([2, 5], [3.0, -2.0], 8, 1.3),
        ([7, 0, 3], [1, 2, 0], 9, 0.8),
        ([0], [4.0], 2, 1.0),
        ([], [], 5, 1.0),
        ([3, 2, 1, 0], [0, 1, 2, 3], 4, 1.0),
    ],
)
def test_as_often_as_over_the_whole_list(indices, scores, size, epsilon, seed):
    """False-failure rate 1e-12."""
    random = SeededRandom(seed)
    won = [dpf.exponential_sparse(indices, scores, size, epsilon, random=random) for _ in range(DRAWS)]
    full = np.zeros(size)
    full[indices] = scores
    exact = selection_probabilities(full, epsilon)
    counts = np.bincount(won, minlength=size)
    assert not rejects([(str(i), int(counts[i]), DRAWS, float(exact[i])) for i in range(size)])


def test_a_coarse_score_for_the_zeros_is_mended_by_rejection(monkeypatch, seed):
    """The candidate of all zeros made e times too heavy: rejection gives the same probabilities. Rate 1e-12."""
    exact_score = sparse_domain.zero_score
    monkeypatch.setattr(sparse_domain, "zero_score", lambda a, zeros: exact_score(a, zeros) + 1 / a)
    test_as_often_as_over_the_whole_list([2, 5], [3.0, -2.0], 8, 1.3, seed)
    # The mutant: without the rejection the frequencies are seen to be wrong.
    monkeypatch.setattr(sparse_domain, "accepts", lambda *arguments: True)
    with pytest.raises(AssertionError):
        test_as_often_as_over_the_whole_list([2, 5], [3.0, -2.0], 8, 1.3, seed)


def test_a_domain_of_2_to_the_63(seed):
    """The best one wins with probability w / (w + M), the zeros evenly. False-failure rate 1e-12."""
    random = SeededRandom(seed)
    size, draws, best = 2**63, 2_000, 2**62 + 12345
    score = 2 * math.log(size)  # at epsilon 1 it weighs as much as all others
    won = np.array([dpf.exponential_sparse([5, best], [0.0, score], size, 1.0, random=random) for _ in range(draws)])
    others = won[won != best]
    events = [("best", int((won == best).sum()), draws, 0.5)]
    events += [(f"bit {bit}", int(((others >> bit) & 1).sum()), others.size, 0.5) for bit in (0, 20, 50, 62)]
    assert not rejects(events)


def test_the_same_whatever_order_and_type():
    indices, scores = np.array([9, 4, 1_000]), np.array([5, 900, 7])
    for permutation in itertools.permutations(range(3)):
        order = list(permutation)
        for kind, dtype in itertools.product((np.asarray, pl.Series, list), ("int64", "int32", "uint32")):
            chosen = kind(indices[order].astype(dtype)), kind(scores[order].astype(dtype))
            assert dpf.exponential_sparse(*chosen, 10**9, 1.0) == 4


def test_the_zeros_are_numbered_around_the_others():
    scored = np.array([0, 1, 2, 5, 9])
    others = [i for i in range(12) if i not in scored]
    assert [sparse_domain._nth_other(scored, n) for n in range(7)] == others


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 7, 8])
def test_whole_numbers_on_every_tape(bound):
    """Each number is decided by a share of all tapes of 9 bits that brackets 1 / bound."""
    counts, undecided = [0] * bound, 0
    for value in range(2**9):
        try:
            counts[whole_number_below(bound, Tape(value, 9))] += 1
        except TapeEndsError:
            undecided += 1
    assert undecided < bound
    for count in counts:
        assert count <= 2**9 / bound <= count + undecided
    tape = Tape((1 << 200) - 1, 200, 64)
    assert whole_number_below(2**63 - 25, tape) == 2**63 - 26


def test_the_weight_of_the_zeros(seed):
    """M <= exp(a v) with v a few units above, and the coin's probability between, in mpmath."""
    generator = np.random.default_rng(seed)
    for _ in range(200):
        a, zeros = float(np.exp(generator.uniform(-600, 600))), int(generator.integers(2, 2**63))
        v = zero_score(a, zeros)
        with mpmath.workprec(500):
            weight = zeros * mpmath.exp(-mpmath.mpf(a) * mpmath.mpf(v))
            assert 1 - mpmath.mpf(2) ** -43 < weight <= 1
            below, above = (int(mpmath.floor(weight * mpmath.mpf(2) ** 320)) + step for step in (-1, 1))
            assert accepts(a, v, zeros, Tape(below, 320, 64))
            if above < 2**320:
                assert not accepts(a, v, zeros, Tape(above, 320, 64))
    assert zero_score(0.5, 1) == 0.0
    assert accepts(0.5, 0.0, 1, Tape(2**64 - 1, 64))
    assert Fraction(zero_score(1.0, 2)) >= Fraction(0.6931471805599453)


@pytest.mark.parametrize(
    ("indices", "scores", "kind"),
    [
        ([1, 2], [1.0, math.nan], DataError),
        ([1, 2], [1.0, math.inf], DataError),
        ([1, 2], [1], ColumnError),
    ],
)
def test_bad_columns(indices, scores, kind):
    with pytest.raises(kind, match=r"^(indices|scores) must") as error:
        dpf.exponential_sparse(indices, scores, 10, 1.0)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("scored", [0, 19_000, 20_000])
def test_an_overflow_is_refused(scored):
    """By the size of the domain: how many candidates have a score is private, and no error may tell of it."""
    with pytest.raises(ParameterError, match=r"^sensitivity must be smaller"):
        dpf.exponential_sparse([1], [1], 2**62, 1e-18, 2.0**960)
    indices = np.arange(scored)
    with pytest.raises(ParameterError, match=r"^sensitivity must be smaller"):
        dpf.exponential_sparse(indices, np.zeros(scored), 20_000, 1e-18, 2.0**960)
