"""Soundness rule 4 for weights: the exponential, the weights and their partial sums against Arb.

Each bound is a formula in the source; the test prints the largest share of it that it saw.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import accumulate

import numba
import numpy as np
import pytest
from flint import arb, ctx, fmpq

from dpfast.kernels.selection.differences import best_score
from dpfast.kernels.weights import exponential_weights as kernels
from dpfast.kernels.weights.exponential_weights import BLOCK, POLYNOMIAL, exp_f64, locate, sum_halves, weigh
from dpfast.mechanisms.selection.alias_table import LOWERED, AliasTable
from dpfast.mechanisms.selection.candidates import borrow_candidates
from dpfast.mechanisms.selection.inversion import Weights

U = 2.0**-53
ONE = 2**62


@pytest.fixture(autouse=True)
def precision():
    with ctx.workprec(300):
        yield


def rational(x) -> arb:
    x = Fraction(x)
    return arb(fmpq(x.numerator, x.denominator))


def test_the_polynomial_in_ball_arithmetic():
    """|1 + r Q(r) - exp(r)| <= 0.09u exp(r) on all of [-0.3466, 0.3466]: Taylor's formula around 400 centres."""
    exact = [arb(1), *(rational(c) for c in POLYNOMIAL)]
    half = rational(Fraction(3466, 10_000)) / 400
    worst = 0.0
    for step in range(-399, 400, 2):
        centre = half * step
        # The polynomial's coefficients in r - centre, by repeated synthetic division.
        shifted, left = [], exact
        while left:
            remainder, quotient = arb(0), []
            for c in reversed(left):
                quotient.append(remainder)
                remainder = c + centre * remainder
            shifted.append(remainder)
            left = quotient[::-1][:-1]
        at_centre = centre.exp()
        difference = sum((abs(c - at_centre / math.factorial(k)) * half**k for k, c in enumerate(shifted)), arb(0))
        difference += (centre + half).exp() * half ** len(exact) / math.factorial(len(exact))
        worst = max(worst, float((difference / (centre - half).exp()).upper()))
    print(f"worst error {worst / U:.4f}u")
    assert worst <= 0.09 * U


@numba.njit(error_model="numpy", fastmath=False)
def exponentials(y, values):
    for i in range(y.size):
        values[i] = exp_f64(y[i])


def test_exponential(seed):
    """At most 2.5u, at random and next to the ends of every reduction; at -708 what lies below."""
    generator = np.random.default_rng(seed)
    ends = (np.arange(-1021, 1) - 0.5) * math.log(2)
    y = np.concatenate(
        [
            -generator.uniform(0, 708, 20_000),
            -np.exp2(generator.uniform(-60, 9.4, 10_000)),
            *(np.nextafter(ends, side) for side in (-800, 0)),
            np.arange(-1021, 1) * math.log(2),
            [0.0, -0.0, -5e-324, -708.0],
        ]
    )
    y = y[y >= -708]
    values = np.empty(y.size)
    exponentials(y, values)
    pairs = zip(y.tolist(), values.tolist(), strict=True)
    worst = max(float(abs(rational(value) / rational(x).exp() - 1)) for x, value in pairs)
    print(f"worst error {worst / U:.2f}u of 2.5u")
    assert 0.5 * U < worst <= 2.5 * U
    below = np.array([-708.5, -1e300, -np.inf])
    exponentials(below, values[:3])
    assert (values[:3] <= 2.0**-1021).all()
    assert (values[:3] > 0).all()


def gaps_of(scores, a) -> list[arb]:
    best = max(Fraction(score) for score in scores.tolist())
    return [rational(a) * rational(Fraction(score) - best) for score in scores.tolist()]


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32", "uint32"])
def test_weights(dtype, seed):
    """A relative error of (2.01 x + 2.6) u, whatever the scores' size."""
    generator = np.random.default_rng(seed)
    worst = 0.0
    for a, spread in ((0.3, 100.0), (1e-7, 1e9), (2.0**-40, 2.0**45), (40.0, 3.0)):
        spread = min(spread, 2**31) if dtype in ("int32", "uint32") else spread
        scores = (spread * generator.uniform(0, 1, 1500)).astype(dtype)
        if dtype == "int64":
            scores += 2**62 + 1
        scores.setflags(write=False)  # as columns give them: else the kernels would be compiled anew
        values = np.empty(scores.size)
        assert not weigh(scores, best_score(scores), a, values)
        for x, value in zip(gaps_of(scores, a), values.tolist(), strict=True):
            if -x < 708:
                worst = max(worst, float(abs(rational(value) / x.exp() - 1) / ((2.01 * -x + 2.6) * U)))
            else:
                assert value <= 2.0**-1021
    print(f"worst error {worst:.3f} of the formula")
    assert worst <= 1


def test_extreme_scores():
    """Overflow of a product is a weight below 2**-1021; an infinity, a NaN of either sign is found anywhere."""
    values = np.empty(3)
    for scores, a in (([1e308, -1e308, 1e308], 2.0**979), ([0.0, -5e-324, 0.0], 2.0**980)):
        scores = np.array(scores)
        scores.setflags(write=False)
        assert not weigh(scores, best_score(scores), a, values)
        assert values[0] == values[2] == 1.0
        assert values[1] <= 2.0**-1021 or scores[1] > -1
    for bad in (math.inf, -math.inf, math.nan, -math.nan):
        for place in range(3):
            scores = np.zeros(3)
            scores[place] = bad
            scores.setflags(write=False)
            assert weigh(scores, best_score(scores), 1.0, values)
    for scores, largest in (([-3, 2**63 - 1, -(2**63)], 2**63 - 1), (np.array([3.5, -1.0], np.float32), 3.5)):
        scores = np.array(scores)
        scores.setflags(write=False)
        assert best_score(scores) == largest


@pytest.mark.parametrize("size", [1, 2, 3, 1000, 2047, 2048])
def test_sums_of_halves(size, seed):
    """1.01u for each of ceil(log2 n) levels."""
    numbers = np.exp(-np.random.default_rng(seed).uniform(0, 30, size))
    exact = sum(map(Fraction, numbers.tolist()))
    error = abs(Fraction(float(sum_halves(numbers.copy()))) / exact - 1)
    assert error <= Fraction(1.01 * U) * math.ceil(math.log2(size))


def columns(seed):
    """Return (scores, slope) that strain the bounds: long tails, a peak among many, integers, blocks far apart."""
    generator = np.random.default_rng(seed)
    peak = np.zeros(9000)
    peak[7777] = 9.1
    far = generator.normal(0, 1, 5 * BLOCK) - 300 * (np.arange(5 * BLOCK) // BLOCK % 3)
    return {
        "normal": (generator.normal(0, 3, 7000), 0.5),
        "peak": (peak, 1.0),
        "equal": (np.full(4097, 1e300), 0.1),
        "falling": (-np.arange(3 * BLOCK) / 100, 1.0),
        "entropy": (-np.log(np.arange(1.0, 6001)), 1.01),
        "integers": (2**62 + generator.integers(0, 30, 5000), 0.3),
        "far": (far, 1.0),
        "one": (np.array([4.0]), 1.0),
        "two": (np.array([0.0, 800.0]), 0.5),
    }


def exact_upto(scores, a) -> list[arb]:
    """Return the exact cumulated probabilities, times 2**62."""
    upto = list(accumulate((gap.exp() for gap in gaps_of(scores, a)), initial=arb(0)))
    return [partial / upto[-1] * ONE for partial in upto]


@pytest.mark.parametrize("name", columns(0))
def test_ends_of_blocks_and_candidates(name, seed):
    """Every end of a block's part lies within `doubt` of where it is said to be, and so does every candidate's."""
    scores, a = columns(seed)[name]
    weights = Weights(borrow_candidates(scores), a)
    exact, ends, doubt = exact_upto(scores, a), weights.ends().tolist(), weights.doubt
    worst = max(float(abs(end - exact[min(b * BLOCK, scores.size)])) for b, end in enumerate(ends)) / doubt
    unit = weights.factors * (2.0**62 / weights.total)
    scratch = np.empty(BLOCK)
    inner = 0.0
    for block in range(len(ends) - 1):
        own = scores[block * BLOCK : (block + 1) * BLOCK]
        own.setflags(write=False)
        weigh(own, weights.references[block], a, scratch)
        upto = np.cumsum(scratch[: own.size]) * unit[block]
        more = doubt + (BLOCK + 8) * U * float(ends[block + 1] - ends[block] + doubt)
        for j in range(0, own.size, 37):
            error = abs(ends[block] + rational(upto[j]) - exact[block * BLOCK + j + 1])
            inner = max(inner, float(error) / more)
    print(f"worst error of blocks {worst:.3f}, of candidates {inner:.3f} of the doubt")
    assert worst < 1
    assert inner < 1


@pytest.mark.parametrize("name", columns(0))
def test_masses_are_at_most_the_candidates_shares(name, seed):
    """Soundness rule 8: exact integers, none above 2**64 p, and what is left over is less than 2**21 words."""
    scores, a = columns(seed)[name]
    table = AliasTable(borrow_candidates(scores), a)
    masses = table.masses().tolist()
    exact = [gap.exp() for gap in gaps_of(scores, a)]
    total = sum(exact, arb(0))
    for mass, weight in zip(masses, exact, strict=True):
        share = weight / total * 2**64
        assert 0 <= mass <= share
        assert share - mass < 1.01 + share * 2 * LOWERED
    assert sum(masses) + table.residual == 2**64
    assert 0 < table.residual < 2**21 + 2 * scores.size


@pytest.mark.parametrize(("size", "exponent"), [(10**6, 25), (10**7, 21)])
def test_how_often_a_draw_is_left_open(size, exponent):
    """Rule 3's rate: n ends of parts, each within `doubt` of U with a probability of twice that."""
    weights = Weights(borrow_candidates(np.zeros(size, np.float32)), 1.0)
    inner = size * 2 * (BLOCK + 8) * U * BLOCK / size
    rate = size * 2 * weights.doubt / ONE + inner
    print(f"2**{math.log2(rate):.2f}")
    assert rate < 2.0**-exponent


def test_locating_returns_every_candidate_in_doubt():
    scores, scratch = np.zeros(8), np.empty(8)
    ranges = {
        (target, doubt): locate(scores, 0.0, 1.0, 10.0, target, doubt, scratch)
        for target in (0.0, 5.0, 10.0, 79.9, 85.0)
        for doubt in (0.5, 11.0)
    }
    assert ranges[5.0, 0.5] == (0, 0)
    assert ranges[10.0, 0.5] == (0, 1)
    assert ranges[79.9, 0.5] == ranges[85.0, 0.5] == (7, 7)
    assert ranges[0.0, 11.0] == (0, 1)
    assert ranges[5.0, 11.0] == (0, 1)
    assert ranges[10.0, 11.0] == (0, 2)
    assert kernels.BLOCK == 2048
