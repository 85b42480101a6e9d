"""The sparse vector technique as it is drawn: exact probabilities, every comparison, every word once.

Frequencies are held to exact binomial tails (noise/goodness.py): each test fails by chance with probability at most
1e-12.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from noise.goodness import rejects
from noise.oracles import FixedKey, continued

import dpfast as dpf
from dpfast.columns import borrow
from dpfast.kernels.selection import thresholds as kernels
from dpfast.mechanisms.thresholds import runs as threshold_runs
from dpfast.mechanisms.thresholds.above_threshold import find_above
from dpfast.mechanisms.thresholds.runs import Runs, calibrate
from dpfast.randomness import Words

from .sparse_oracles import events, is_above, transcripts, variant_of

DRAWS = 400_000
DTYPES = ("int64", "int32", "uint32", "float64", "float32")


def counted(values, epsilon, count, monotonic=False, draws=DRAWS, threshold=0.0):
    rows = np.broadcast_to(values, (draws, len(values)))
    places = dpf.above_threshold(rows, threshold, epsilon, 1.0, monotonic, count=count)
    assert places.shape == (draws, min(count, len(values)))
    return {
        answers: int((places == np.array(padded)).all(axis=1).sum())
        for answers in transcripts(len(values), count)
        for padded in [([i for i, above in enumerate(answers) if above] + [-1] * count)[: places.shape[1]]]
    }


@pytest.mark.parametrize(
    ("values", "epsilon", "count", "monotonic"),
    [
        ([0.0], 1.0, 1, False),
        ([-1.0, 0.0, 2.0], 1.0, 1, False),
        ([1.0, -4.0, 0.5], 2.0, 2, False),
        ([3.0, 0.0, -2.0, 1.0], 3.0, 2, True),
        ([0.0, 0.0, 0.0], 0.7, 5, False),
    ],
)
def test_every_transcript_as_often_as_it_should_be(values, epsilon, count, monotonic):
    """False-failure rate 1e-12; with one or two positives also the mutants: fresh threshold noise, Laplace noise."""
    counts = counted(np.array(values), epsilon, count, monotonic)
    assert sum(counts.values()) == DRAWS
    noise = calibrate(epsilon, 1.0, monotonic, count, None)
    assert not rejects(events(counts, variant_of(noise), values))
    assert rejects(events(counts, variant_of(noise, one_sided=False), values))
    if len(values) > 2 and count > 1:
        assert rejects(events(counts, variant_of(noise, restarts=True), values))


@pytest.mark.parametrize("dtype", DTYPES)
def test_types_and_thresholds(dtype):
    """Integers and floats of every width, a threshold that is not 0. False-failure rate 1e-12."""
    values = np.array([1, 3, 0], dtype)
    counts = counted(values, 2.0, 1, draws=100_000, threshold=2.5)
    noise = calibrate(2.0, 1.0, False, 1, None)
    assert not rejects(events(counts, variant_of(noise), [-1.5, 0.5, -2.5]))


def test_one_value_by_the_formula():
    """The probability of "above" at a distance d, as the docstring gives it."""
    noise = calibrate(1.0, 2.0, False, 3, None)
    b0, b = noise.scales
    variant = variant_of(noise)
    for d in (-30.0, -1.0, 0.0, 0.5, 7.0):
        formula = 1 - math.exp(-d / b0) * b0 / (b0 + b) if d >= 0 else math.exp(d / b) * b / (b0 + b)
        assert variant.probability([d], (True,)) == pytest.approx(formula, rel=1e-11)


def test_scales_are_rounded_toward_more_noise(seed):
    generator = np.random.default_rng(seed)
    for _ in range(300):
        epsilon = float(generator.choice([0.1, 0.3, 1e-9, 1e5, generator.uniform(0.01, 10)]))
        sensitivity = float(generator.choice([1.0, 3.0, 0.1, 2.0**-500, 1e250]))
        count, monotonic = int(generator.integers(1, 100)), bool(generator.integers(2))
        numeric = [None, 0.5, 0.1, Fraction(1, 3)][generator.integers(4)]
        noise = calibrate(epsilon, sensitivity, monotonic, count, numeric)
        written = Fraction(repr(epsilon))
        assert noise.epsilon == written
        spent = Fraction(sensitivity) / (Fraction(noise.ratio) / Fraction(noise.slope))
        spent += Fraction(noise.slope) * Fraction(sensitivity) * count * (1 if monotonic else 2)
        if numeric is not None:
            spent += count * Fraction(sensitivity) / Fraction(noise.answer_scale)
        assert written * (1 - Fraction(1, 2**49)) < spent <= written


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 3000), (60, 50)])
def test_the_exact_path_agrees(dtype, shape, seed):
    """Every comparison in ball arithmetic gives the same places, from the same words."""
    generator = np.random.default_rng(seed)
    values = generator.integers(0, 40, shape).astype(dtype)
    column = borrow(values)
    noise = calibrate(0.8, 1.0, False, 4, None)
    thresholds = generator.uniform(30, 60, shape[0])
    fast, slow = (
        find_above(column, shape[1], noise, thresholds, 4, FixedKey(), refine_all=exact) for exact in (False, True)
    )
    assert np.array_equal(fast, slow)
    assert (fast >= 0).any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_doubt_changes_nothing(dtype, seed, monkeypatch):
    """A threshold known to within nothing: the kernel decides what is certain, ball arithmetic the rest."""
    generator = np.random.default_rng(seed)
    values = generator.integers(0, 30, (40, 60)).astype(dtype)
    noise = calibrate(1.0, 1.0, True, 3, None)
    arguments = (borrow(values), 60, noise, np.full(40, 25.0), 3, FixedKey())
    expected = find_above(*arguments)

    def no_bounds(words, ratio, lows, highs):
        lows[:], highs[:] = 0.0, math.inf

    decided = []
    monkeypatch.setattr(threshold_runs, "bound_thresholds", no_bounds)
    exact = threshold_runs.reaches_threshold
    monkeypatch.setattr(threshold_runs, "reaches_threshold", lambda *a: decided.append(exact(*a)) or decided[-1])
    assert np.array_equal(find_above(*arguments), expected)
    assert len(decided) >= 40  # at least once a run


def test_values_next_to_the_noisy_threshold(seed):
    """Adversarial values: the exact tie, moved by a few units in the last place, is decided as mpmath does."""
    generator = np.random.default_rng(seed)
    key = bytes(generator.bytes(32))
    noise = calibrate(1.0, 1.0, False, 1, None)
    words = np.empty(64, np.uint32)
    reader = Words(key, 0)
    rest, threshold_rest = 0x7FFFFFFF, np.empty(1, np.uint32)
    reader.fill(0, threshold_rest)
    reader.fill(1, words)
    threshold_bits = continued(key, 0, int(threshold_rest[0]) & rest, 31)
    outcomes = set()
    for i in range(64):
        bits = continued(key, 1 + i, int(words[i]) & rest, 31)
        e, e0 = (-math.log((each(120) + 0.5) / 2**120) for each in (bits, threshold_bits))
        tie = 7.0 + (noise.ratio * e0 - e) / noise.slope
        for steps in (-2, -1, 0, 1, 2):
            value = tie + steps * math.ulp(tie)
            values = np.full(64, -1e9)
            values[i] = value
            places = find_above(borrow(values), 64, noise, np.array([7.0]), 1, FixedKey(key))
            expected = is_above(noise.slope, noise.ratio, value, 7.0, bits(400), threshold_bits(400), 400)
            assert (places[0, 0] == i) == expected
            outcomes.add(expected)
    assert outcomes == {True, False}


@pytest.mark.parametrize("dtype", DTYPES)
def test_upper_bounds_of_values(dtype, seed):
    """a (q - T) + E is never above the kernel's bound, and mostly less than 0.07 below; every scale, edge words."""
    generator = np.random.default_rng(seed)
    edges = [0, 1, 2, 3, 2**24 - 1, 2**24 + 1, 2**31 - 1, 2**31, 2**32 - 1]
    words = np.concatenate([edges, generator.integers(0, 2**32, 500)]).astype(np.uint32)
    for a, threshold in ((0.25, 7.0), (1e-300, -3.5), (2.0**40, 123.25), (1e-12, 2.0**62)):
        if dtype.startswith("f"):
            values = (generator.normal(threshold, 3 / a, words.size)).clip(-1e38, 1e38).astype(dtype)
        else:
            lowest, highest = np.iinfo(dtype).min, np.iinfo(dtype).max
            values = generator.integers(lowest, highest, words.size, dtype=dtype, endpoint=True)
            values[::2] = np.clip(generator.normal(threshold, min(3 / a, 2.0**30), values[::2].size), lowest, 2.0**30)
        margin = 1 + abs(a * threshold) * (1 + 2.0**-50) if dtype == "int64" else 1.0
        bounds = np.empty(words.size)
        kernels._bound_above(values, words, a, threshold, margin, bounds)
        for value, word, bound in zip(values.tolist(), words.tolist(), bounds.tolist(), strict=True):
            r = word & 0x7FFFFFFF
            if r == 0:
                assert bound == math.inf
                continue
            with mpmath.workprec(300):
                product = Fraction(a) * (Fraction(value) - Fraction(threshold))
                true = mpmath.mpf(product.numerator) / product.denominator - mpmath.log(mpmath.mpf(r) / 2**31)
                assert true <= bound
                assert product < -(2**1000) or bound - true < 0.07 + 2.0**-48 * (abs(float(product)) + margin)


def test_bounds_of_the_threshold(seed):
    """ratio * E0 lies between the kernel's bounds, for random words and the outermost ones."""
    generator = np.random.default_rng(seed)
    words = np.concatenate([[0, 1, 2**31 - 1, 2**31, 2**32 - 1], generator.integers(0, 2**32, 3000)]).astype(np.uint32)
    lows, highs = np.empty(words.size), np.empty(words.size)
    ratio = 0.629960524947437
    kernels.bound_thresholds(words, ratio, lows, highs)
    with mpmath.workprec(200):
        for word, low, high in zip(words.tolist(), lows.tolist(), highs.tolist(), strict=True):
            r = word & 0x7FFFFFFF
            upper = mpmath.inf if r == 0 else -mpmath.log(mpmath.mpf(r) / 2**31) * ratio
            lower = -mpmath.log(mpmath.mpf(r + 1) / 2**31) * ratio
            assert low <= lower <= upper <= high
            assert r == 0 or high - low <= ratio * (5 / r + 1e-14)


@pytest.mark.filterwarnings("error")
def test_extreme_values_are_decided():
    """Sums that overflow, a threshold beside which the noise is nothing, int64 at its ends."""
    assert dpf.above_threshold([-1e308, 1e308], -1e308, 1.0, 1e280, count=2).tolist() in ([1], [0, 1])
    assert dpf.above_threshold([-1e308] * 5 + [1e308], 1e308, 1e6, 1e-200).tolist() in ([5], [])
    assert dpf.above_threshold([-1e308, 1e308] * 3, 0, 1e6, 1e-280, count=2).tolist() == [1, 3]
    lowest, highest = -(2**63), 2**63 - 1
    assert dpf.above_threshold(np.array([lowest, highest]), 0, 1.0).tolist() == [1]
    near = np.array([2**62 - 10**6, 2**62 + 10**6])
    assert dpf.above_threshold(near, 2**62, 1e3).tolist() == [1]
    assert dpf.above_threshold(np.array([1, highest, lowest]), 9e18, 1e6, 2.0**-960).tolist() == [1]


class Recorder(FixedKey):
    """Notes the words and the continuations that are read."""

    def __init__(self, monkeypatch):
        super().__init__()
        self.pieces, self.continuations = [], []
        monkeypatch.undo()
        monkeypatch.setattr(threshold_runs, "CHUNK", 100)
        monkeypatch.setattr("dpfast.mechanisms.thresholds.above_threshold.CHUNK", 100)
        fill, extension = Words.fill, threshold_runs.Keystream.extension

        def noted_fill(words, chunk, buffer):
            self.pieces.append((chunk, buffer.size))
            fill(words, chunk, buffer)

        def noted_extension(stream, indices, depth):
            self.continuations.append((tuple(indices), depth, extension(stream, indices, depth)))
            return self.continuations[-1][2]

        monkeypatch.setattr(Words, "fill", noted_fill)
        monkeypatch.setattr(threshold_runs.Keystream, "extension", noted_extension)


def test_words_depend_on_the_shape_and_on_where_it_stopped(monkeypatch):
    """Soundness rules 1 and 2: chunks are not read twice, and their number tells no more than the answers."""
    pieces = {}
    for name, values in {
        "low": np.zeros(1000),
        "lower": np.full(1000, -99.0),
        "early": np.eye(1, 1000, 130)[0] * 1e9,
    }.items():
        recorder = Recorder(monkeypatch)
        dpf.above_threshold(values, 1e6, 1.0, random=recorder)
        pieces[name] = recorder.pieces
        assert len({chunk for chunk, _ in recorder.pieces}) == len(recorder.pieces)
    assert pieces["low"] == pieces["lower"] == [(0, 1)] + [(k, 100) for k in range(1, 11)]
    assert pieces["early"] == [(0, 1), (1, 100), (2, 100)]
    recorder = Recorder(monkeypatch)
    dpf.above_threshold(np.zeros((7, 30)), 1e6, 1.0, random=recorder)
    assert recorder.pieces == [(0, 7), (1, 90), (2, 90), (3, 30)]


def test_a_stream_reads_one_threshold_word(monkeypatch):
    """Soundness rule 2: every call refines the same word of the threshold, by the same bits; values have their own."""
    recorder = Recorder(monkeypatch)
    noise = calibrate(1.0, 1.0, False, 30, None)
    runs = Runs(noise, np.zeros(1), recorder, refine_all=True)
    for _ in range(10):
        runs.scan(0, np.zeros(3), 0, np.zeros(1, np.int64), np.empty((1, 3), np.int64))
    threshold_runs.reaches_threshold(Fraction(0), Fraction(1), runs._bits(5, 1), runs._bits(0, runs._words[0]))
    assert len({chunk for chunk, _ in recorder.pieces}) == len(recorder.pieces) == 11
    assert runs._index == 31
    deep = [Runs._bits(runs, 0, runs._words[0]).leading(500) for _ in range(3)]
    assert len(set(deep)) == 1
    by_index = {}
    for indices, depth, block in recorder.continuations:
        assert by_index.setdefault((indices, depth), block) == block
    assert len(set(by_index.values())) == len(by_index)


def test_transcripts_of_the_oracle():
    assert len(list(transcripts(3, 1))) == 4
    assert len(list(transcripts(3, 5))) == 8
    assert sorted(map(len, transcripts(3, 2))) == [2, 3, 3, 3, 3, 3, 3]
    assert len(set(itertools.chain(transcripts(4, 2)))) == 1 + 4 + 6
