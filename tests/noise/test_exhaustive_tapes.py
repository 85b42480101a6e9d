"""Every random tape: the kernel on all 2**31 words, and the exact path on every tape of a toy length.

Nothing here is random: what these tests assert holds for every word they name.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpq, fmpz

from dpfast.kernels.noise.laplace import LARGEST_SHORT_SCALE, UNDECIDED
from dpfast.mechanisms.noise.exact import discrete_offset, exact_gaussian, exact_laplace

from .drawing import draw_narrow, draw_normal, draw_wide, offsets_per_row
from .oracles import (
    Tape,
    TapeEndsError,
    continuous_thresholds,
    discrete_laplace_tail,
    discrete_threshold,
    discrete_thresholds,
    magnitudes,
    normal_tail,
)

SCALES_F32 = [0.01, 0.3, 1.0, 2.5, 10.0, 117.3, LARGEST_SHORT_SCALE]
SCALES_F64 = [0.01, 1.0, 37.7, 1024.0]
NEAR = np.arange(-1000, 1001)


def near_thresholds(thresholds, bits, most=400):
    """Return the words within 1000 of thresholds (of ``most`` of them, the first and the last among them)."""
    if not len(thresholds):
        return np.empty(0, np.uint64)
    chosen = thresholds[np.unique(np.linspace(0, len(thresholds) - 1, most).astype(int))]
    words = (chosen.astype(np.int64)[:, None] + NEAR).ravel()
    return words[(words >= 0) & (words < 2**bits)].astype(np.uint64)


def spread_words(bits, count):
    """Return words over the whole range: evenly, by powers of two, and the ends."""
    powers = (np.uint64(1) << np.arange(bits, dtype=np.uint64))[:, None] + np.arange(-3, 4).astype(np.uint64)
    even = np.arange(count, dtype=np.uint64) * np.uint64(2**bits // count)
    ends = np.arange(3000, dtype=np.uint64)
    words = np.concatenate([powers.ravel(), even, ends, np.uint64(2**bits - 1) - ends])
    return words[words < np.uint64(2**bits)]


def assert_certified(noise, words, thresholds, bits, slack):
    """Every decided sample is right; an undecided one lies within ``slack`` (relative) of a threshold, or is 0."""
    expected, certain = magnitudes(words, thresholds)
    decided = noise != UNDECIDED
    assert (noise[decided] == expected[decided]).all()
    # A word whose own cell straddles a threshold, and r = 0, can be decided by no one.
    assert not (decided & ~certain).any()
    doubtful = words[~decided & (words > 0)].astype(np.float64)
    # Nothing lies beyond the first threshold or below the last but r = 0.
    ascending = np.concatenate([[0.0], thresholds[::-1].astype(np.float64)])
    place = np.searchsorted(ascending, doubtful)
    above = np.abs(ascending[np.minimum(place, len(ascending) - 1)] - doubtful)
    below = np.abs(ascending[np.maximum(place - 1, 0)] - doubtful)
    assert (np.minimum(above, below) <= 2 + slack * doubtful).all()


def slack(scale, bits, unit):
    """Return twice the kernels' bound, as a relative distance in r; the bound's own width counts in ``2 +``."""
    return 2 * unit * (8 * bits * math.log(2) + 6 + 4 / scale)


@pytest.mark.parametrize("per_row", [False, True])
@pytest.mark.parametrize("scale", SCALES_F32)
def test_narrow_kernel_near_every_threshold(scale, per_row):
    """Soundness rules 2 and 4: words around the exact thresholds, and over the whole range, in float32."""
    thresholds = discrete_thresholds(scale, 31)
    words = np.concatenate([near_thresholds(thresholds, 31), spread_words(31, 500_000)])
    noise = draw_narrow(words.astype(np.uint32), scale, per_row)
    assert_certified(noise, words, thresholds, 31, slack(scale, 31, 2.0**-24))
    assert noise[words == 0].tolist() == [UNDECIDED] * int((words == 0).sum())
    negative = draw_narrow((words | np.uint64(1 << 31)).astype(np.uint32), scale, per_row)
    decided = noise != UNDECIDED
    assert np.array_equal(negative[decided], -noise[decided])
    assert (negative[~decided] == UNDECIDED).all()


@pytest.mark.parametrize("scale", SCALES_F64)
def test_wide_kernel_near_every_threshold(scale):
    """Soundness rules 2 and 4: the same in float64, for discrete noise with offsets of both origins."""
    thresholds = discrete_thresholds(scale, 47)
    words = np.concatenate([near_thresholds(thresholds, 47), spread_words(47, 300_000)])
    for offset in (discrete_offset(scale), float(offsets_per_row(np.array([scale]))[0])):
        noise = draw_wide(words, scale, offset)
        assert_certified(noise, words, thresholds, 47, slack(scale, 47, 2.0**-53))


@pytest.mark.parametrize("scale", [5e4, 1234567.8, 2.0**24 + 0.5, 2.0**25])
def test_wide_kernel_near_thresholds_of_large_scales(scale):
    """Soundness rule 4: 300 thresholds from the first on, as long as they lie more than 3000 words apart."""
    last = scale * math.log(2**47 / (3000 * scale))
    chosen = [*range(1, 30), *map(int, np.geomspace(30, last, 270))]
    offset = discrete_offset(scale)
    for k in chosen:
        threshold = discrete_threshold(scale, 47, k)
        words = (threshold + NEAR).astype(np.uint64)
        noise = draw_wide(words, scale, offset)
        decided = noise != UNDECIDED
        expected = np.where(threshold < words, k - 1, k)
        assert (noise[decided] == expected[decided]).all()
        assert noise[1000] == UNDECIDED
        doubtful = np.abs(words[~decided].astype(np.int64) - threshold)
        assert doubtful.max() <= 2 + slack(scale, 47, 2.0**-53) * threshold


@pytest.mark.parametrize("fraction", [0.0, 0.25, -0.5, 0.5, -0.123456789, 2.0**-60])
@pytest.mark.parametrize("negative", [False, True])
def test_wide_kernel_with_fractions_near_every_threshold(fraction, negative):
    """Soundness rules 2, 4 and 7: continuous noise rounded, the value's fraction taken with the noise's sign."""
    scale = 300.7
    thresholds = continuous_thresholds(scale, -fraction if negative else fraction, 47)
    words = np.concatenate([near_thresholds(thresholds, 47), spread_words(47, 200_000)])
    signed = words | np.uint64(negative << 47)
    noise = draw_wide(signed, scale, 0.0, np.full(words.size, fraction))
    noise[noise != UNDECIDED] *= -1 if negative else 1
    assert_certified(noise, words, thresholds, 47, slack(scale, 47, 2.0**-53))


def check_every_word(scale):
    """Feed all 2**31 words to the narrow kernel and return how many it leaves undecided."""
    thresholds = discrete_thresholds(scale, 31).astype(np.int64)
    # The words of |K| = k lie strictly between two thresholds; those equal to one are certain for nobody.
    edges = np.concatenate([[2**31], thresholds, [-1]])
    block = 1 << 23
    undecided = 0
    counts = np.zeros(len(edges) - 1, np.int64)
    for start in range(0, 2**31, block):
        noise = draw_narrow(np.arange(start, start + block, dtype=np.uint32), scale)
        undecided += int(np.count_nonzero(noise == UNDECIDED))
        first = np.searchsorted(-edges, -(start + block), side="right") - 1
        for k in range(max(first, 0), len(edges) - 1):
            low, high = max(edges[k + 1] + 1, start), min(edges[k], start + block)
            if edges[k] <= start:
                break
            if low < high:
                part = noise[low - start : high - start]
                right = int(np.count_nonzero(part == k))
                assert right + int(np.count_nonzero(part == UNDECIDED)) == high - low
                counts[k] += right
            if start <= edges[k + 1] < start + block:
                assert noise[edges[k + 1] - start] == UNDECIDED
    assert counts.sum() + undecided == 2**31
    # Of every outcome, all but the words around its two thresholds are decided.
    widths = np.maximum(edges[:-1] - edges[1:] - 1, 0)
    assert (widths - counts >= 0).all()
    return undecided


def pairs_near_boundaries(bits, scale, seed, count=500):
    """Return pairs of words whose cosine's value lies within a few cells of half an integer."""
    generator = np.random.default_rng(seed)
    angle = generator.integers(0, 2**bits, count, dtype=np.uint64)
    direction = np.cos(2 * np.pi * (angle + 0.5) / 2.0**bits)
    # Radii from 0.05 to 5 sigma: the boundary nearest to one of those, and the word that reaches it.
    boundary = np.round(scale * generator.uniform(0.05, 5, count) * direction) + 0.5
    radius = boundary / (scale * direction)
    word = 2.0**bits * np.exp(-(radius**2) / 2)
    usable = (radius > 0.01) & (word > 5) & (word < 2.0**bits - 100)
    # One word more moves the value by scale / (word * radius), one angle more by at most scale * radius * 2 pi cells:
    # float64 finds the boundary to within a few words, the steps reach across what the kernel leaves undecided.
    steps = np.round(np.linspace(-1, 1, 21) ** 3 * 2000).astype(np.int64)
    near = (word[usable, None] + steps).ravel()
    angle = np.repeat(angle[usable], steps.size)
    inside = (near >= 1) & (near < 2.0**bits - 1)
    return near[inside].astype(np.uint64), angle[inside]


@pytest.mark.parametrize(("bits", "scale"), [(32, 0.3), (32, 10.0), (32, 128.0), (48, 40.0), (48, 1e5), (48, 2.0**25)])
def test_gaussian_kernel_near_boundaries(bits, scale, seed):
    """Soundness rules 2 and 4: a decided value is the value at all four corners of its two words' cells."""
    radius, angle = pairs_near_boundaries(bits, scale, seed)
    noise = draw_normal(radius, angle, bits, scale)
    decided = noise[0] != UNDECIDED
    assert 0.01 < decided.mean() < 1
    with ctx.workprec(160):
        b, unit = arb(fmpq(*scale.as_integer_ratio())), arb(2) ** bits
        for u, v, n in zip(radius[decided].tolist(), angle[decided].tolist(), noise[0][decided].tolist(), strict=True):
            roots = [(-2 * (arb(fmpz(r)) / unit).log()).sqrt() for r in (u, u + 1)]
            for turn in (v, v + 1):
                direction = (arb(fmpz(2 * turn)) / unit).cos_pi()
                assert all(abs(b * root * direction - n) < 0.5 for root in roots), (u, v, n)


EVERY_WORD = [
    (1.0, 2.0**-25),
    pytest.param(0.3, 2.0**-27, marks=pytest.mark.long),
    pytest.param(10.0, 2.0**-22, marks=pytest.mark.long),
    pytest.param(100.0, 2.0**-19, marks=pytest.mark.long),
    pytest.param(LARGEST_SHORT_SCALE, 2.0**-17.7, marks=pytest.mark.long),
]


@pytest.mark.parametrize(("scale", "most"), EVERY_WORD)
def test_narrow_kernel_on_every_word(scale, most):
    """Soundness rules 2 and 4, exhaustively: all 2**31 words against exact integer thresholds."""
    undecided = check_every_word(scale)
    print(f"scale {scale}: {undecided} of 2**31 words undecided, 2**{math.log2(undecided / 2**31):.2f}")
    assert undecided <= most * 2**31


TOY_BITS = 12


def toy_pmf(scale):
    """Return by |K| how many of the toy tapes decide it, and how many tapes end undecided, from the exact path."""
    counts, open_tapes = {}, []
    for word in range(2**TOY_BITS):
        try:
            k = exact_laplace(False, Tape(word, TOY_BITS), scale, Fraction(0), True)
        except TapeEndsError:
            open_tapes.append(word)
        else:
            counts[k] = counts.get(k, 0) + 1
    return counts, open_tapes


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(1), Fraction(10, 3)])
def test_every_toy_tape_of_the_exact_path_brackets_the_formula(scale):
    """Decided tapes count P(|K| = k) = 2 q**k / (1 + q) from below, with the open ones from above; and exactly as
    many tapes stay open as there are thresholds to straddle (no cap, no early end: soundness rule 2)."""
    counts, open_tapes = toy_pmf(scale)
    thresholds = discrete_thresholds(float(scale), TOY_BITS) if scale != Fraction(10, 3) else None
    b = float(scale)
    q = math.exp(-1 / b)
    for k in range(max(counts) + 1):
        exact = 2**TOY_BITS * (1 - q) / (1 + q) * (2 * q**k if k else 1)
        assert counts.get(k, 0) <= exact <= counts.get(k, 0) + 2 if k < max(counts) else exact <= len(open_tapes) + 2
    if thresholds is not None:
        assert open_tapes == sorted({0, *thresholds.tolist()})


def exceeds(scale, epsilon):
    """Whether the toy tapes prove that moving the input by 1 changes some outcome's probability by more."""
    counts, _ = toy_pmf(scale)
    # |K| = 0 has one sign, the others two.
    half = {k: count / (2 if k else 1) for k, count in counts.items()}
    return any(math.log(half[k] / (half[k + 1] + 2)) > epsilon for k in half if k + 1 in half and half[k + 1] > 100)


def test_toy_tapes_never_exceed_epsilon_and_a_narrower_scale_does():
    """The exact log-ratio of neighbouring outputs is at most 1 / scale; a scale that is 0.8 of it is found out."""
    assert not exceeds(Fraction(2), 0.5)
    assert exceeds(Fraction(2) * Fraction(4, 5), 0.5)


def test_every_toy_tape_of_the_exact_gaussian_brackets_the_formula():
    """6 bits for the radius, 6 for the angle, U = 0 apart: counts of n >= 1 lie within what is left open."""
    scale, bits = Fraction(1, 2), 6
    decided, open_tapes = {}, 0
    for radius in range(2**bits):
        for angle in range(2**bits):
            try:
                n = exact_gaussian(Tape(radius, bits), Tape(angle, bits), False, scale, Fraction(0))
            except TapeEndsError:
                open_tapes += 1
            else:
                decided[n] = decided.get(n, 0) + 1
    assert open_tapes < 0.25 * 4**bits
    for k in (-1, 0, 1):
        low = normal_tail(2 * (k - 0.5)) - normal_tail(2 * (k + 0.5))
        assert decided[k] <= low * 4**bits <= decided[k] + open_tapes


def test_tails_of_the_thresholds_are_the_formula():
    """The oracle against itself: thresholds are 2 P(K >= k)."""
    for scale in (0.3, 1.0, 10.0):
        thresholds = discrete_thresholds(scale, 47)
        for k in (1, 2, 3):
            assert thresholds[k - 1] / 2**47 == pytest.approx(2 * discrete_laplace_tail(scale, k), rel=1e-12)


def test_a_threshold_shifted_by_one_cell_is_found_out():
    """The mutant: a kernel that reads 2**-20 too much into its words fails the same check."""
    thresholds = discrete_thresholds(10.0, 31)
    words = near_thresholds(thresholds, 31)
    noise = draw_narrow(words.astype(np.uint32), 10.0 * (1 + 2.0**-20))
    with pytest.raises(AssertionError):
        assert_certified(noise, words, thresholds, 31, 1.0)
