"""The fast path against the exact one on the same bits, and both against mpmath, NumPy and the documented layout."""

from __future__ import annotations

import mpmath
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from flint import ctx
from noise.oracles import FixedKey, continued, noise_bytes

import dpfast as dpf
from dpfast.kernels.selection.argmax import EXPONENTIAL, GUMBEL, LAPLACE
from dpfast.mechanisms.selection import argmax as selection
from dpfast.mechanisms.selection.argmax import select_rows, slopes
from dpfast.mechanisms.selection.candidates import borrow_candidates
from dpfast.mechanisms.selection.exact_argmax import noise_ball
from dpfast.testing import SeededRandom

from .oracles import KINDS, REST, ChosenKeystream, noise_of, winner_of

every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def both_paths(scores, a, kind, seed):
    candidates = borrow_candidates(scores)
    fast = select_rows(candidates, a, kind, SeededRandom(seed))
    exact = select_rows(candidates, a, kind, SeededRandom(seed), refine_all=True)
    return candidates.places(fast), candidates.places(exact)


def places_of(scores, a, kind, source, **options):
    candidates = borrow_candidates(scores)
    return candidates.places(select_rows(candidates, a, kind, source, **options))


def scores_of(dtype, shape, spread, seed):
    generator = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return (generator.standard_normal(shape) * spread).astype(dtype)
    low = 0 if np.dtype(dtype).kind == "u" else -int(spread) - 1
    return generator.integers(low, int(spread) + 2, shape).astype(dtype)


@every_kind
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint32", "float64", "float32"])
@pytest.mark.parametrize("shape", [(900, 2), (150, 13), (13, 150)])
def test_fast_path_is_the_exact_path(kind, dtype, shape, seed):
    for spread in (0.0, 3.0, 800.0):
        fast, exact = both_paths(scores_of(dtype, shape, spread, seed), 1.0, kind, seed)
        assert np.array_equal(fast, exact)


@every_kind
@pytest.mark.parametrize("a", [2.0**-1000, 1e-6, 0.3, 1e6, 2.0**960])
def test_fast_path_is_the_exact_path_at_every_scale(kind, a, seed):
    """Scores whose keys differ by a few units of noise, on top of a common one 2**20 times as large."""
    scores = np.random.default_rng(seed).standard_normal((200, 5)) / max(a, 1e-300) * 2 + 2.0**20 / max(a, 1e-300)
    scores[~np.isfinite(scores)] = 1.0
    fast, exact = both_paths(scores, a, kind, seed)
    assert np.array_equal(fast, exact)
    assert np.unique(fast).size > 1


@every_kind
def test_fast_path_is_the_exact_path_with_a_slope_per_row(kind, seed):
    rows = 300
    a = np.exp2(np.random.default_rng(seed).uniform(-10, 10, rows))
    fast, exact = both_paths(scores_of("float64", (rows, 7), 2.0, seed), a, kind, seed)
    assert np.array_equal(fast, exact)


@every_kind
@pytest.mark.parametrize(
    "row",
    [
        [1e308, -1e308],
        [-1e308, 1e308, 1e308],
        [np.finfo(float).max, np.finfo(float).min, 0.0],
        [-1e308, -1e308, -1e308],
        [5e-324, -5e-324, 0.0, -0.0],
        [1e300, 1e300 * (1 + 2.0**-52), 1e300],
        [7.0],
        [2.0**60, 2.0**60 + 256, 2.0**60],
    ],
    ids=str,
)
def test_fast_path_is_the_exact_path_on_extreme_floats(kind, row, seed):
    for a in (2.0**-1021, 2.0**-960, 1.0, 3e100, 2.0**979):
        fast, exact = both_paths(np.array([row] * 20), a, kind, seed)
        assert np.array_equal(fast, exact)


@every_kind
@pytest.mark.parametrize("top", [2**63 - 1, 2**53, -(2**63) + 40])
def test_integers_are_not_rounded(kind, top, seed):
    """Soundness rule 16 for scores: int64 near its ends differ by 1, which float64 could not tell."""
    scores = top - np.random.default_rng(seed).integers(0, 4, (300, 4))
    fast, exact = both_paths(scores, 1.0, kind, seed)
    assert np.array_equal(fast, exact)
    ends = np.array([[2**63 - 1, -(2**63)], [-(2**63), 2**63 - 1]] * 50)
    fast, exact = both_paths(ends, 1e-19, kind, seed)
    assert np.array_equal(fast, exact)


@every_kind
def test_exact_path_against_mpmath(kind, seed, monkeypatch):
    """The second oracle: 300 selections among 4, same words and continuations."""
    generator = np.random.default_rng(seed)
    scores = generator.standard_normal((300, 4)) * 2
    words = generator.integers(0, 2**32, 1200)
    words[generator.random(1200) < 0.1] = 77
    extensions = [int.from_bytes(generator.bytes(128), "big") for _ in words]
    monkeypatch.setattr(selection, "Keystream", ChosenKeystream(words, dict(enumerate(extensions))))
    fast, exact = both_paths(scores, 1.0, kind, seed)
    assert np.array_equal(fast, exact)
    for row in range(300):
        own = slice(4 * row, 4 * row + 4)
        assert fast[row] == winner_of(kind, 1.0, scores[row], words[own].tolist(), extensions[own])


@every_kind
@pytest.mark.parametrize("count", [31, 95, 223])
def test_exact_noise_against_mpmath(kind, count, seed):
    """The ball holds the noise at both ends of its cell and in the middle, and is hardly wider than the cell."""
    generator = np.random.default_rng(seed)
    for trial in range(300):
        bits = max(1, int.from_bytes(generator.bytes(32), "big") >> (256 - count) >> (trial % count))
        bits = (1 << count) - 1 - bits if trial % 4 == 3 else bits
        bits = min(max(bits, 1), (1 << count) - 2)
        negative = bool(trial % 2)
        with ctx.workprec(count + 80), mpmath.workprec(count + 400):
            ball = noise_ball(kind, bits, count, negative)
            low, high = (mpmath.mpf(str(end.mid().str(200, radius=False))) for end in (ball.lower(), ball.upper()))
            ends = [noise_of(kind, (bits << 300) + more, count + 300, negative) for more in (0, 2**299, 2**300 - 1)]
            assert low <= min(ends)
            assert max(ends) <= high
            assert high - low <= 4 * (max(ends) - min(ends))


def keys_by_numpy(kind, a, scores, words):
    """Return keys in float64, and half the width that unread bits leave them."""
    u = ((words & np.uint32(REST)).astype(np.float64) + 0.5) * 2.0**-31
    if kind == GUMBEL:
        return a * scores - np.log(-np.log1p(-u)), 2.0**-30 / (u * (1 - u))
    noise = -np.log(u)
    return a * scores + (np.where(words > REST, -noise, noise) if kind == LAPLACE else noise), 2.0**-30 / u


@every_kind
@pytest.mark.parametrize("shape", [(1, 1_000_000), (10_000, 100), (7, 30_011), (200_000, 2), (100_000, 1)])
def test_a_million_candidates_against_numpy(kind, shape, seed):
    """Many chunks and rows that lie in two of them: the argmax that NumPy finds from the same words."""
    scores = np.random.default_rng(seed).standard_normal(shape) * 3
    key = np.random.default_rng(seed).bytes(32)
    winners = places_of(scores, 1.0, kind, FixedKey(key))
    size, chunk = scores.size, selection.CHUNK
    pieces = [noise_bytes(key, start // chunk, 4 * min(chunk, size - start)) for start in range(0, size, chunk)]
    words = np.frombuffer(b"".join(pieces), np.uint32).reshape(shape)
    keys, width = keys_by_numpy(kind, 1.0, scores, words)
    chosen = np.take_along_axis(keys, winners[:, None], 1)
    chosen_width = np.take_along_axis(width, winners[:, None], 1)
    assert (chosen + chosen_width + 1e-12 >= (keys - width).max(1, keepdims=True)).all()
    assert (np.argmax(keys, 1) == winners).mean() > 0.99


@every_kind
def test_whole_route_against_the_documented_layout(kind):
    """Which bits serve which candidate: AES block by block, words as documented, continuations, mpmath."""
    key = bytes(range(50, 82))
    rows, width = 40, 2000
    scores = np.random.default_rng(3).integers(0, 4, (rows, width))
    winners = places_of(scores, 1.0, kind, FixedKey(key))
    pieces = [noise_bytes(key, 0, 4 * 65_536), noise_bytes(key, 1, 4 * (rows * width - 65_536))]
    words = np.frombuffer(b"".join(pieces), np.uint32).reshape(rows, width)
    for row in range(rows):
        keys, _ = keys_by_numpy(kind, 1.0, scores[row], words[row])
        best = np.argsort(keys)[-6:]
        extensions = []
        for place in best.tolist():
            word = int(words[row, place])
            leading = continued(key, row * width + place, word & REST, 31)
            extensions.append((leading(31 + 384) & (2**384 - 1)) << 640)
        won = winner_of(kind, 1.0, scores[row, best].tolist(), words[row, best].tolist(), extensions)
        assert winners[row] == best[won]


@every_kind
def test_results_do_not_depend_on_chunks(kind, monkeypatch, seed):
    """A word belongs to a candidate: with the same words, chunks of any size select the same."""
    generator = np.random.default_rng(seed)
    words = generator.integers(0, 2**32, 40_000)
    words[generator.random(words.size) < 0.01] = 99
    scores = generator.integers(0, 3, words.size).astype(np.float64)
    results = []
    for chunk in (64, 999, 4096, 65_536):
        monkeypatch.setattr(selection, "CHUNK", chunk)
        monkeypatch.setattr(selection, "Keystream", ChosenKeystream(words))
        for width in (8, 100, 5000, 40_000):
            results.append((width, places_of(scores.reshape(-1, width), 1.0, kind, SeededRandom(0)).tolist()))
    for width in (8, 100, 5000, 40_000):
        assert len({tuple(winners) for w, winners in results if w == width}) == 1


def test_every_candidate_uses_a_word_whatever_the_scores(monkeypatch):
    """The number of words depends on the shape alone."""
    drawn = []
    fill = selection.Keystream(bytes(32)).words(0).__class__.fill

    def spy(self, chunk, buffer):
        drawn.append((chunk, buffer.size))
        fill(self, chunk, buffer)

    monkeypatch.setattr("dpfast.randomness.Words.fill", spy)
    counts = set()
    for scores in (np.zeros(70_000), np.arange(70_000.0), np.full(70_000, -1e300)):
        drawn.clear()
        dpf.exponential(scores, 1.0)
        counts.add(tuple(drawn))
    assert counts == {((0, 65_536), (1, 70_000 - 65_536))}


def test_every_call_has_a_fresh_key():
    """Soundness rule 1."""
    source = SeededRandom(5)
    first = [dpf.exponential(np.zeros((100, 5)), 1.0, random=source) for _ in range(2)]
    assert not np.array_equal(*first)
    # Two of five answers about nine rows of ten thousand agree with probability 1e-35.
    rows = np.zeros((9, 10**4))
    assert len({tuple(dpf.permute_and_flip(rows, 1.0).tolist()) for _ in range(5)}) == 5


def test_kinds_of_columns(seed):
    values = [3.5, 1.25, -2.0, 3.0]
    expected = dpf.exponential(np.array(values), 1.0, random=SeededRandom(seed))
    for column in (
        values,
        tuple(values),
        pl.Series(values),
        pa.array(values),
        pa.chunked_array([values[:1], values[1:]]),
    ):
        won = dpf.exponential(column, 1.0, random=SeededRandom(seed))
        assert type(won) is int
        assert won == expected
    rows = np.array([values] * 9)
    expected = dpf.exponential(rows, 1.0, random=SeededRandom(seed))
    assert expected.dtype == np.int64
    for array in (rows.tolist(), np.asfortranarray(rows), rows.astype(">f8"), np.repeat(rows, 2, 1)[:, ::2]):
        assert np.array_equal(dpf.exponential(array, 1.0, random=SeededRandom(seed)), expected)


def test_nulls_are_no_candidates(seed):
    """Whatever lies under them; the others keep their places, over several chunks."""
    generator = np.random.default_rng(seed)
    size = 150_000
    values = generator.integers(0, 5, size).astype(np.float64)
    null = generator.random(size) < 0.5
    under = values.copy()
    under[null] = np.nan
    dense = np.flatnonzero(~null)
    expected = int(dense[dpf.exponential(values[~null], 1.0, random=SeededRandom(seed))])
    masked = pa.array(under, mask=null)
    for column in (masked, pl.Series(masked), pa.chunked_array([masked[:40_000], masked[40_000:]])):
        assert dpf.exponential(column, 1.0, random=SeededRandom(seed)) == expected
    assert dpf.permute_and_flip(pl.Series([None, None, 7]), 1.0) == 2


def test_empty_arrays_of_rows():
    assert dpf.exponential(np.empty((0, 5)), 1.0).tolist() == []
    assert dpf.exponential(np.empty((0, 0)), 1.0).tolist() == []
    assert dpf.exponential(np.ones((3, 1)), 1.0).tolist() == [0, 0, 0]


def test_slopes_of_a_column_are_those_of_its_entries():
    """A row's own epsilon and sensitivity: one selection each, up to the rounding down."""
    epsilon, sensitivity = np.array([0.1, 1.0, 7.5]), np.array([1.0, 3.0, 0.2])
    together = slopes(epsilon, sensitivity, False, 3)
    for row in range(3):
        assert together[row] == pytest.approx(slopes(epsilon[row], sensitivity[row], False, 1), rel=1e-15)


def test_kinds_differ():
    """The mutant that takes one noise for another would show."""
    scores = np.zeros((2000, 3))
    drawn = {kind: places_of(scores, 1.0, kind, FixedKey()) for kind in KINDS.values()}
    assert not np.array_equal(drawn[EXPONENTIAL], drawn[LAPLACE])
    # Without scores the smallest word wins for both.
    assert np.array_equal(drawn[GUMBEL], drawn[EXPONENTIAL])
