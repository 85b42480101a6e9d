"""Soundness rule 4: the kernel's bounds on keys against Arb, over random, edge and adversarial words.

Each bound must hold over the whole cell of a word (rule 2). Where it is written as a formula, the test prints the
largest share of it that it saw.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numba
import numpy as np
import pytest
from flint import arb, ctx, fmpq

from dpfast.kernels.selection import differences, key_bounds
from dpfast.kernels.selection.key_bounds import EXPONENTIAL, GUMBEL, LAPLACE

from .oracles import KINDS, REST

U = 2.0**-53
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@pytest.fixture(autouse=True)
def precision():
    with ctx.workprec(300):
        yield


def rational(x) -> arb:
    x = Fraction(x)
    return arb(fmpq(x.numerator, x.denominator))


def adversarial_words(kind: int, seed: int, count: int) -> np.ndarray:
    """Return words next to powers of two and sqrt(1/2) times one, at the ends, and random ones of all sizes.

    Also those with E next to a power of two or sqrt(1/2) times one, where the Gumbel's outer logarithm reduces.
    """
    generator = np.random.default_rng(seed)
    near = np.arange(-6, 7)
    powers = 2 ** np.arange(32, dtype=np.int64)
    roots = np.array([math.isqrt(2 ** (2 * k - 1)) for k in range(1, 32)], np.int64)
    outer = np.exp2(np.arange(-60, 9) / 2)
    inner = (-np.expm1(-outer) * 2**31).astype(np.int64)
    crude = (2.0 ** np.arange(31) / math.log(2)).astype(np.int64)  # where log2 is farthest above its chord
    words = np.concatenate(
        [
            *((centre[:, None] + near).ravel() for centre in (powers, roots, inner, crude, REST - powers)),
            [7 << 28, (7 << 28) - 1, (7 << 28) - 2],
            generator.integers(0, 2**31, count),
            np.exp2(generator.uniform(0, 31, count)).astype(np.int64),
            REST - np.exp2(generator.uniform(0, 31, count)).astype(np.int64),
        ]
    )
    words = np.unique(words[(words >= 0) & (words <= REST)])
    if kind == LAPLACE:
        words = np.concatenate([words, words | (1 << 31)])
    return words.astype(np.uint32)


def noise_at(kind: int, u: Fraction, negative: bool) -> arb:
    if kind == GUMBEL:
        return -(-(1 - rational(u)).log()).log()
    return rational(u).log() if negative else -rational(u).log()


def ends(kind: int, word: int) -> tuple[arb | None, arb | None]:
    """Return the smallest and the largest noise of a word's cell, None for unbounded."""
    r, negative = word & REST, word > REST
    low, high = Fraction(r, 2**31), Fraction(r + 1, 2**31)
    at_low = None if r == 0 else noise_at(kind, low, negative)
    at_high = None if r == REST and kind == GUMBEL else noise_at(kind, high, negative)
    return (at_low, at_high) if negative else (at_high, at_low)


@every_kind
def test_noise_is_within_its_formula(kind, seed):
    """EXPONENTIAL and LAPLACE: 5.1u E. GUMBEL: 1.3u |G| + 6.5u; the code's 16u (|noise| + 1) is twice that."""
    worst = 0.0
    for word in adversarial_words(kind, seed, 3000).tolist():
        r = word & REST
        if r in (0, REST):
            continue
        noise, _, _ = key_bounds.noise_of(np.uint32(word), kind)
        exact = noise_at(kind, Fraction(2 * r + 1, 2**32), word > REST)
        formula = 1.3 * U * abs(exact) + 6.5 * U if kind == GUMBEL else 5.1 * U * abs(exact)
        worst = max(worst, float(abs(rational(noise) - exact) / formula))
    print(f"worst error {worst:.3f} of the formula")
    assert worst <= 1


@every_kind
def test_width_covers_the_cell(kind, seed):
    """Rule 2: noise - below and noise + above hold every number that the unread bits may make."""
    widest, loosest = 0.0, 0.0
    for word in adversarial_words(kind, seed, 3000).tolist():
        noise, below, above = key_bounds.noise_of(np.uint32(word), kind)
        low, high = ends(kind, word)
        error = 16 * U * (abs(noise) + 1)
        assert low is not None or below == math.inf
        assert high is not None or above == math.inf
        if low is not None:
            assert rational(noise) - rational(error) <= low + rational(below) if below < math.inf else True
        if low is not None and high is not None and (word & REST) not in (0, REST):
            assert rational(noise) + rational(above + error) >= high
            half = max(float(rational(noise) - low), float(high - rational(noise)))
            widest = max(widest, half / (above + error))
            loosest = max(loosest, above / (float(high - low) / 2))
    print(f"widest half cell {widest:.3f} of the bound; loosest bound {loosest:.2f} half cells")
    assert widest <= 1
    assert loosest < 3.1


CASES = [
    (1.0, [0.0, 5.0, -700.0, 1e17]),
    (2.0**-1021, [1.7e308, -1e308, 0.0]),
    (2.0**979, [1e-294, 1e20, -1e20]),
    (0.1, [1e300]),
]


def unordered(keys: np.ndarray) -> np.ndarray:
    return (keys ^ ((keys >> 63) & np.int64(2**63 - 1))).view(np.float64)


@every_kind
@pytest.mark.parametrize("close", [False, True])
@pytest.mark.parametrize(("a", "scores"), CASES)
def test_upper_bounds_of_step_1(kind, close, a, scores, seed):
    """No key of a candidate lies above its crude bound, nor (where finite) far below it."""
    words = adversarial_words(kind, seed, 400)
    for score in scores:
        keys = np.empty(words.size, np.int64)
        assert not key_bounds.bound_above(np.full(words.size, score / 2), words, a, kind, close, keys)
        product = rational(a) * rational(score)
        for word, bound in zip(words.tolist(), unordered(keys).tolist(), strict=True):
            _, high = ends(kind, word)
            assert not math.isnan(bound)
            if bound == math.inf:
                assert high is None or product > rational(1.7e308)
                continue
            assert high is not None
            assert product + high <= rational(bound)
            # Not far above: 0.06 for the chord, 0.014 for a bent one; a negative sign counts as 0.
            late = kind == GUMBEL and (word > REST // 4 or not close)
            if not late and word <= REST and product > -(2**999):
                slack = (0.014 if close else 0.0598) + (0.02 if kind == GUMBEL else 0.0)
                slack += 2.0**-47 * abs(float(product))
                assert rational(bound) - (product + high) <= rational(slack)


@every_kind
@pytest.mark.parametrize(("a", "scores"), CASES)
def test_lower_bounds_of_step_2(kind, a, scores, seed):
    """The threshold is not above any key that the candidate's cell allows."""
    words = adversarial_words(kind, seed, 400)
    for score in scores:
        product = rational(a) * rational(score)
        for word in words.tolist():
            low, _ = ends(kind, word)
            bound = float(unordered(np.array([key_bounds.lower_bound(score / 2, a, np.uint32(word), kind)]))[0])
            assert not math.isnan(bound)
            assert bound < math.inf
            if bound > -math.inf:
                assert low is not None
                assert rational(bound) <= product + low


DIFFERENCES = [
    (np.float64, 1e308, -1e308),
    (np.float64, -1e308, 1e308),
    (np.float64, 0.1, 0.3),
    (np.float64, 1e17 + 16, 1e17),
    (np.float64, 5e-324, 0.0),
    (np.float32, 0.1, 3e38),
    (np.int64, 2**63 - 1, -(2**63)),
    (np.int64, -(2**63), 2**63 - 1),
    (np.int64, 2**62 + 1, 2**62),
    (np.int32, -(2**31), 2**31 - 1),
    (np.uint32, 0, 2**32 - 1),
    (np.uint32, 7, 7),
]


@every_kind
@pytest.mark.parametrize(("dtype", "score", "reference"), DIFFERENCES, ids=str)
def test_intervals_of_step_3(kind, dtype, score, reference, seed):
    """The interval holds every key of the cell, for exact differences of scores of every type."""
    score, reference = dtype(score), dtype(reference)
    words = adversarial_words(kind, seed, 60)
    for a in (2.0**-1021, 2.0**-960, 1e-3, 1.0, 77.7, 2.0**979):
        d = rational(a) * rational(Fraction(score.item()) - Fraction(reference.item()))
        for word in words[::3].tolist():
            low, high = key_bounds.interval(half_of(score, reference), a, np.uint32(word), kind)
            exact_low, exact_high = ends(kind, word)
            assert low < math.inf
            assert high > -math.inf
            if low > -math.inf:
                assert exact_low is not None
                assert rational(low) <= d + exact_low
            if high < math.inf:
                assert exact_high is not None
                assert d + exact_high <= rational(high)


def halved(scores: np.ndarray) -> np.ndarray:
    """Return what the kernel makes of one row of scores."""
    halves = np.empty(scores.size)
    differences.halve_below(scores, 0, np.array([0, scores.size]), 0, 0, differences.best_score(scores[:1]), halves)
    return halves


@pytest.mark.parametrize(("dtype", "score", "reference"), DIFFERENCES, ids=str)
def test_halves_of_differences(dtype, score, reference):
    """Relative to the best one: exact for integers but for one rounding to float64, 2u and 2**-1074 for floats."""
    scores = np.array([score, reference, reference], dtype)
    best = max(scores.tolist())
    for given, half in zip(scores.tolist(), halved(scores).tolist(), strict=True):
        exact = (Fraction(given) - Fraction(best)) / 2
        assert abs(Fraction(half) - exact) <= 2 * Fraction(U) * abs(exact) + Fraction(1, 2**1074)


def test_every_row_has_its_own_best(seed):
    """Empty rows, rows that begin before the block or end after it; a block of a row keeps the row's best score."""
    generator = np.random.default_rng(seed)
    for dtype in ("int64", "float64", "uint32", "float32"):
        scores = generator.integers(0, 1000, 60).astype(dtype)
        offsets = np.sort(np.append(generator.integers(0, 61, 9), [0, 60]))
        expected = np.empty(60)
        for begin, end in itertools.pairwise(offsets):
            if end > begin:
                expected[begin:end] = (scores[begin:end].astype(float) - float(scores[begin:end].max())) / 2
        halves, best = np.empty(60), differences.best_score(scores[:1])
        for start in range(0, 60, 7):
            row = int(np.searchsorted(offsets, start, side="right")) - 1
            best = differences.halve_below(scores, 0, offsets, row, start, best, halves[start : start + 7])
        assert np.array_equal(halves, expected)


def half_of(score, reference) -> float:
    """Return half the difference as the kernel has it, of either sign."""
    return _half_difference(score, reference)


@numba.njit
def _half_difference(score, reference):
    return differences.half_difference(score, reference)


@every_kind
def test_words_of_48_bits(kind, seed):
    """As of 31 bits: the middle within its formula, the cell within the width, and the outermost cells unbounded."""
    generator = np.random.default_rng(seed)
    powers = 2 ** np.arange(48)
    last = 2**48 - 1
    numbers = np.unique(
        np.concatenate(
            [powers, powers - 1, last - powers, np.exp2(generator.uniform(0, 48, 400)).astype(np.int64), [0, last]]
        )
    )
    for r in numbers[(numbers >= 0) & (numbers <= last)].tolist():
        for negative in (False, True) if kind == LAPLACE else (False,):
            noise, below, above = key_bounds.noise_of(np.uint64(r | (int(negative) << 63)), kind)
            error = 16 * U * (abs(noise) + 1)
            for u in (Fraction(r, 2**48), Fraction(2 * r + 1, 2**49), Fraction(r + 1, 2**48)):
                if u in (0, 1) and not (u == 1 and kind != GUMBEL):
                    outer = (above if not negative else below) if u == 0 else below
                    assert outer == math.inf
                    continue
                exact = noise_at(kind, u, negative)
                assert rational(noise) - rational(error) - exact <= rational(below) if below < math.inf else True
                assert exact <= rational(noise) + rational(error) + rational(above) if above < math.inf else True


@pytest.mark.parametrize("close", [False, True])
def test_scores_that_are_not_finite_are_reported(close):
    """Soundness rule 5: at any place, of either sign, beside an upper bound of any kind."""
    words = np.arange(1, 101, dtype=np.uint32)
    keys = np.empty(100, np.int64)
    for dtype in (np.float64, np.float32):
        for bad in (math.nan, -math.nan, math.inf, -math.inf):
            for place in (0, 7, 63, 99):
                scores = np.zeros(100, dtype)
                scores[place] = bad
                assert key_bounds.bound_above(halved(scores), words, 1.0, GUMBEL, close, keys)
    assert not key_bounds.bound_above(halved(np.tile([1.7e308, -1.7e308], 50)), words, 1e300, GUMBEL, close, keys)
    assert not key_bounds.bound_above(halved(np.tile([2**63 - 1, -(2**63)], 50)), words, 1.0, GUMBEL, close, keys)


def test_ordered_integers_are_ordered_as_floats():
    values = np.array([-math.inf, -1e300, -1.0, -5e-324, 0.0, 5e-324, 1.0, 1e300, math.inf])
    keys = np.array([differences.ordered(value) for value in values.tolist()], np.int64)
    assert (np.diff(keys) > 0).all()
    assert np.array_equal(unordered(keys), values)


def test_constants_of_the_bent_chord_and_of_the_series():
    """What the kernel's docstring says of them, in ball arithmetic over a fine grid; equality at the ends."""
    at_0, rise = Fraction("0.41888"), Fraction("-0.15825")
    for written, used in ((at_0, key_bounds._BEND_AT_0), (rise, key_bounds._BEND_RISE)):
        assert abs(Fraction(float(used)) - written) < Fraction(1, 2**25)
    below = []
    for k in range(1, 4000):
        f = rational(Fraction(k, 4000))
        below.append((1 + f).log() / arb(2).log() - f - f * (1 - f) * (rational(at_0) + rational(rise) * f))
    assert all(each > 0 for each in below)
    assert all(each < rational(Fraction("0.001276")) for each in below)
    # The line above them touches at one point, where the second derivative is positive; it is negative at both ends.
    touch = rational(Fraction("0.465679135"))
    ln2, g = arb(2).log(), (1 + touch).log() / arb(2).log() - touch
    slope = 1 / (ln2 * (1 + touch)) - 1
    square = touch * (1 - touch)
    line_rise = (slope * square - g * (1 - 2 * touch)) / square**2
    line_at_0 = g / square - line_rise * touch
    assert line_at_0 > rational(at_0) + rational(Fraction(1, 2**23))
    assert line_at_0 + line_rise > rational(at_0 + rise) + rational(Fraction(1, 2**23))

    def curvature(f):
        return -1 / (ln2 * (1 + f) ** 2) + 2 * (line_at_0 - line_rise) + 6 * line_rise * f

    assert curvature(arb(0)) < 0 < curvature(touch)
    assert curvature(arb(1)) < 0
    last = arb(0)
    for k in range(1, 201):
        v = rational(Fraction(7 * k, 1600))
        ratio = ((-(1 - v).log() / v).log() - v / 2 - 5 * v**2 / 24) / v**3
        assert ratio > last
        last = ratio
    assert last < rational(Fraction("0.4012"))


def test_the_naive_double_logarithm_is_worse(seed):
    """Soundness rule 4, the mutant: -ln(-ln U) in float64 for U next to 1 errs far beyond the formula."""
    word = 3
    exact = noise_at(GUMBEL, Fraction(2 * word + 1, 2**32), False)
    naive = -math.log(-math.log(float(np.float32(1) - np.float32((word + 0.5) * 2.0**-31)) - 2.0**-30))
    assert abs(float(rational(naive) - exact)) > 0.1
    noise, _, _ = key_bounds.noise_of(np.uint32(word), GUMBEL)
    assert abs(float(rational(noise) - exact)) < 30 * U


def test_the_best_of_many_has_a_width_of_its_own():
    """Rule 4: half-widths grow as 1 / r; a constant would be wrong by orders of magnitude at one end."""
    widths = [
        key_bounds.noise_of(np.uint32(r), kind)[1] * r for kind in (GUMBEL, EXPONENTIAL) for r in (10, 10**4, 10**7)
    ]
    assert max(widths) < 2
    assert min(widths) > 0.4
