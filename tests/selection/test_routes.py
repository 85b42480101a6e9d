"""Three routes to one distribution: by keys, by partial sums and by an alias table.

Frequencies are held to exact binomial tails (noise/goodness.py): each such test fails by chance with probability at
most 1e-12.
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
from noise.oracles import FixedKey, Tape, TapeEndsError, continued, noise_bytes

import dpfast as dpf
from dpfast.errors import ColumnError, DataError, ParameterError
from dpfast.kernels.selection.argmax import GUMBEL
from dpfast.kernels.weights.exponential_weights import BLOCK
from dpfast.mechanisms.selection import alias_table, exponential_routes
from dpfast.mechanisms.selection import inversion as partial_sums
from dpfast.mechanisms.selection.alias_table import AliasTable
from dpfast.mechanisms.selection.argmax import select_rows
from dpfast.mechanisms.selection.candidates import borrow_candidates
from dpfast.mechanisms.selection.exact_inversion import ExactSums
from dpfast.mechanisms.selection.inversion import draw_from_sums
from dpfast.mechanisms.selection.probabilities import selection_probabilities
from dpfast.testing import SeededRandom

from .oracles import MARITAL, ChosenKeystream

EXTENSION = 1024


class ChosenWords(ChosenKeystream):
    """Stands in for `Keystream` with words of 64 bits."""

    def __init__(self, words, extensions=None) -> None:
        super().__init__([], extensions)
        self.chosen = np.asarray(words, np.uint64)

    def fill(self, chunk, buffer):
        start = chunk * alias_table.BLOCK_ROWS
        buffer[:] = self.chosen[start : start + buffer.size]


def by_keys(scores, a, draws, source):
    rows = np.broadcast_to(np.asarray(scores), (draws, len(scores)))
    candidates = borrow_candidates(rows)
    return candidates.places(select_rows(candidates, a, GUMBEL, source))


def by_sums(scores, a, draws, source):
    return draw_from_sums(borrow_candidates(np.asarray(scores)), a, draws, source)


def by_alias(scores, a, draws, source):
    return AliasTable(borrow_candidates(np.asarray(scores)), a).draw(draws, source)


ROUTES = {"keys": by_keys, "sums": by_sums, "alias": by_alias}
every_route = pytest.mark.parametrize("route", ROUTES.values(), ids=ROUTES)


def upto_of(scores, a):
    """Return the exact cumulated probabilities by mpmath, under the working precision."""
    exact = [Fraction(a) * Fraction(score) for score in np.asarray(scores).tolist()]
    weights = [mpmath.exp(mpmath.mpf((x - max(exact)).numerator) / (x - max(exact)).denominator) for x in exact]
    upto = list(itertools.accumulate(weights, initial=mpmath.mpf(0)))
    return [partial / upto[-1] for partial in upto]


def drawn_by_mpmath(upto, word, extension):
    u = mpmath.mpf(((word << EXTENSION) | extension) * 2 + 1) / mpmath.mpf(2) ** (64 + EXTENSION + 1)
    return sum(1 for end in upto[1:-1] if end <= u)


def rejected(counts, expected):
    pairs = zip(counts.tolist(), expected.tolist(), strict=True)
    return rejects([(f"candidate {i}", count, int(counts.sum()), p) for i, (count, p) in enumerate(pairs)])


@every_route
@pytest.mark.parametrize(
    "scores", [MARITAL, [0.0, 0.0, 0.0], [0.0, 10.0], [5.0], [1, 2, 2, 0], np.linspace(-4, 4, 700)], ids=len
)
def test_frequencies(route, scores):
    """Every route draws with the probabilities of `selection_probabilities`. False-failure rate 1e-12."""
    expected, draws = selection_probabilities(scores, 1.0), 100_000
    counts = np.bincount(route(scores, 0.5, draws, SeededRandom(3)), minlength=len(scores))
    events = [
        (f"candidate {i}", int(count), draws, p) for i, (count, p) in enumerate(zip(counts, expected, strict=True))
    ]
    assert not rejects(events)


def test_frequencies_over_several_blocks():
    """The same where sums are of five blocks of unequal weight. False-failure rate 1e-12."""
    scores = np.sin(np.arange(9000) / 700) * 6
    p = np.exp(0.5 * (scores - scores.max()))
    p /= p.sum()
    for route, draws in ((by_sums, 20_000), (by_alias, 400_000)):
        drawn = route(scores, 0.5, draws, SeededRandom(5))
        events = [
            (f"from {low}", int(((drawn >= low) & (drawn < low + 300)).sum()), draws, float(p[low : low + 300].sum()))
            for low in range(0, 9000, 300)
        ]
        assert not rejects(events)


@pytest.mark.parametrize("scale", [1, 2**5])
def test_every_toy_tape(scale):
    """All tapes of 10 bits: those decided bracket the exact probabilities, with words taken away or without."""
    scores, a = np.array([0.0, 1.5, 1.5, -2.0]), 0.7
    with mpmath.workprec(100):
        upto = upto_of(scores, a)
        shares = [scale * (high - low) for low, high in itertools.pairwise(upto)]
        taken = [0] * 4 if scale == 1 else [int(mpmath.floor(share)) - (i == 1) for i, share in enumerate(shares)]
        exact = [float((share - own) / (scale - sum(taken))) for share, own in zip(shares, taken, strict=True)]
    sums = ExactSums(scores, a, scale=scale, taken=taken if scale > 1 else ())
    won, undecided = [0] * 4, 0
    for bits in range(2**10):
        try:
            won[sums.place(Tape(bits, 10))] += 1
        except TapeEndsError:
            undecided += 1
    assert undecided == 3
    assert all(count / 2**10 <= p <= (count + 2) / 2**10 for count, p in zip(won, exact, strict=True))


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint32", "float64", "float32"])
@pytest.mark.parametrize("size", [1, 2, 3, 200, 5000])
def test_sums_are_the_exact_path(dtype, size, seed):
    """Sample by sample on the same bits."""
    generator = np.random.default_rng(seed)
    for spread in (0.0, 5.0, 900.0):
        scores = (1000 + generator.uniform(0, 1, size) * spread).astype(dtype)
        candidates = borrow_candidates(scores)
        draws = 300 if size <= 200 else 40
        fast = draw_from_sums(candidates, 0.5, draws, SeededRandom(seed))
        exact = draw_from_sums(candidates, 0.5, draws, SeededRandom(seed), refine_all=True)
        assert np.array_equal(fast, exact)


@pytest.mark.parametrize("coarse", [2.0**-53, 2.0**-22, 2.0**-14])
def test_sums_are_the_exact_path_next_to_every_boundary(coarse, seed, monkeypatch):
    """Words at the boundaries, one below, one above, with any bits after them; and bounds far too wide: by mpmath."""
    monkeypatch.setattr(partial_sums, "_U", coarse)
    generator = np.random.default_rng(seed)
    scores = generator.normal(0, 4, 60)
    scores[[7, 8]] = -1500.0  # two of weight e**-750 and less, whose parts are far thinner than a word
    with mpmath.workprec(1400):
        upto = upto_of(scores, 0.5)
        words = [int(mpmath.floor(end * 2**64)) + move for end in upto for move in (-1, 0, 1)]
        words = [word for word in words if 0 <= word < 2**64] * 3
        extensions = [int.from_bytes(generator.bytes(EXTENSION // 8), "big") for _ in words]
        extensions[: len(words) // 3] = [0] * (len(words) // 3)
        expected = [drawn_by_mpmath(upto, word, more) for word, more in zip(words, extensions, strict=True)]
    monkeypatch.setattr(partial_sums, "Keystream", ChosenWords(words, dict(enumerate(extensions))))
    drawn = by_sums(scores, 0.5, len(words), SeededRandom(0))
    assert drawn.tolist() == expected
    assert len(set(expected)) >= 58


def test_contenders_in_two_blocks(monkeypatch):
    """Soundness rule 8: a draw at the end of a block may be of either, and is decided among all in doubt."""
    bit = 1 << 500
    for word, more, expected in ((2**63 - 1, 2**EXTENSION - 1 - bit, BLOCK - 1), (2**63, bit, BLOCK)):
        monkeypatch.setattr(partial_sums, "Keystream", ChosenWords([word], {0: more}))
        assert by_sums(np.zeros(2 * BLOCK), 1.0, 1, SeededRandom(0)).tolist() == [expected]


@pytest.mark.parametrize("route", [by_sums, by_alias], ids=["sums", "alias"])
def test_a_gap_of_800_makes_no_candidate_impossible(route, monkeypatch):
    """A weight of e**-400 wins where U's first 577 bits say so, and not before: 2**-577.08 is its probability."""
    home = partial_sums if route is by_sums else alias_table
    for scores, ones, expected in (([800.0, 0.0], 600, 1), ([800.0, 0.0], 500, 0), ([0.0, 800.0], 600, 0)):
        # The residual of an alias table is 2**20 words of 2**64: its own U needs 44 bits less.
        extension = ((1 << ones) - 1) << (EXTENSION - ones) if scores[1] == 0 else 1 << (EXTENSION - ones)
        word = (2**64 - 1) if scores[1] == 0 else 0
        if route is by_alias:
            table = AliasTable(borrow_candidates(np.array(scores)), 0.5)
            word = word_of(table, table.size)
        monkeypatch.setattr(home, "Keystream", ChosenWords([word], {0: extension}))
        assert route(scores, 0.5, 1, SeededRandom(0)).tolist() == [expected]


def segments(table):
    """Return the alias table's segments (first word, length, item), by its documented layout."""
    slot = 2 ** (64 - table.bits)
    for place, entry in enumerate(table.table.tolist()):
        threshold, alias = entry >> table.bits, entry & (2**table.bits - 1)
        yield place * slot, threshold, place
        yield place * slot + threshold, slot - threshold, alias


def word_of(table, item):
    return next(first for first, length, owner in segments(table) if owner == item and length)


def owned(table):
    words = [0] * (table.size + 1)
    for _, length, item in segments(table):
        if length:
            words[item] += length
    return words


def is_exact(scores, a, words, residual_is_sampled=True):
    """Whether words and the residual's split give every candidate exactly its probability.

    With a sampled residual, candidate i gets words[i] + R * (2**64 p_i - words[i]) / R: exact if no words[i] is above
    2**64 p_i and all add up. Without it, words[i] must be 2**64 p_i itself, an irrational number.
    """
    with mpmath.workprec(400):
        shares = [2**64 * (high - low) for low, high in itertools.pairwise(upto_of(scores, a))]
        if not residual_is_sampled:
            return all(abs(share - own) < mpmath.mpf(2) ** -200 for share, own in zip(shares, words, strict=True))
        return sum(words) == 2**64 and all(own <= share for share, own in zip(shares, words, strict=False))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 1000])
def test_the_alias_tables_probabilities_are_exact(size, seed):
    """Slot by slot: the table gives out each candidate's mass to the word, and the rest to the residual."""
    generator = np.random.default_rng(seed)
    for spread in (0.0, 3.0, 100.0):
        scores = generator.normal(0, 1, size) * spread
        table = AliasTable(borrow_candidates(scores), 0.5)
        words = owned(table)
        assert words[:size] == table.masses().tolist()
        assert words[size] == table.residual
        assert is_exact(scores, 0.5, words)


def test_mutants_of_the_alias_table_are_found(seed):
    """Floors whose rest goes to a candidate, floats scaled and rounded, and Vose's construction in floats."""
    scores = np.random.default_rng(seed).normal(0, 3, 100)
    table = AliasTable(borrow_candidates(scores), 0.5)
    floors = table.masses().tolist()
    floors[0] += table.residual
    assert not is_exact(scores, 0.5, floors, residual_is_sampled=False)
    assert not is_exact(scores, 0.5, floors)
    p = np.exp(0.5 * (scores - scores.max()))
    p /= p.sum()
    rounded = [int(x * 2.0**64) for x in p.tolist()]
    assert not is_exact(scores, 0.5, rounded)
    assert not is_exact(scores, 0.5, [int(x * 2**64) for x in vose_in_floats(p)])


def vose_in_floats(p):
    """Return the probabilities of an alias table made in floats, exactly."""
    scaled = (p * p.size).tolist()
    small = [i for i, x in enumerate(scaled) if x < 1]
    large = [i for i, x in enumerate(scaled) if x >= 1]
    got = [Fraction(0)] * p.size
    while small and large:
        i, giver = small.pop(), large[-1]
        got[i] += Fraction(scaled[i])
        got[giver] += 1 - Fraction(scaled[i])
        scaled[giver] -= 1 - scaled[i]
        if scaled[giver] < 1:
            small.append(large.pop())
    for i in small + large:
        got[i] += 1
    return [x / p.size for x in got]


def test_alias_draws_are_the_exact_path(monkeypatch, seed):
    """Masses lowered by a quarter, so that the residual is drawn often: sample by sample, and in frequency.

    The exact path takes a word's segment in integers and the residual in mpmath. False-failure rate 1e-12.
    """
    monkeypatch.setattr(alias_table, "LOWERED", 0.25)
    scores, draws = np.random.default_rng(seed).normal(0, 2, 20), 20_000
    key = np.random.default_rng(seed).bytes(32)
    table = AliasTable(borrow_candidates(scores), 0.5)
    drawn = table.draw(draws, FixedKey(key))
    words = np.frombuffer(noise_bytes(key, 0, 8 * draws), np.uint64)
    cut = sorted(segment for segment in segments(table) if segment[1])
    items = np.array([item for _, _, item in cut])
    found = items[np.searchsorted([first for first, _, _ in cut], [int(word) for word in words], side="right") - 1]
    ordinary = found < table.size
    assert np.array_equal(found[ordinary], drawn[ordinary])
    residual = np.flatnonzero(~ordinary)
    assert abs(residual.size - draws / 4) < 7.2 * math.sqrt(draws * 3 / 16)
    with mpmath.workprec(600):
        upto = upto_of(scores, 0.5)
        taken = list(itertools.accumulate(table.masses().tolist(), initial=0))
        ends = [2**64 * end - own for end, own in zip(upto, taken, strict=True)]
        for i in residual[:1000].tolist():
            target = mpmath.mpf(continued(key, i, 0, 0)(384)) / mpmath.mpf(2) ** 384 * table.residual
            assert drawn[i] == sum(1 for end in ends[1:-1] if end <= target)
    expected = selection_probabilities(scores, 1.0)
    assert not rejected(np.bincount(drawn, minlength=20), expected)
    # The mutant: what is left over goes to one candidate.
    assert rejected(np.bincount(np.where(ordinary, found, 0), minlength=20), expected)


@pytest.mark.parametrize("dtype", ["float64", "int32"])
@pytest.mark.parametrize("size", [2, 3, 2048, 2049, 10**6, 10**7])
def test_ties_of_2_to_ten_million(dtype, size):
    """Equal scores: the draw is floor(U n), known without any logarithm."""
    source = FixedKey(bytes(range(7, 39)))
    scores = np.full(size, 7, dtype)
    words = np.frombuffer(noise_bytes(bytes(range(7, 39)), 0, 8 * 20), np.uint64)
    expected = [int(word) * size >> 64 for word in words]
    assert all((int(word) + 1) * size >> 64 == place for word, place in zip(words, expected, strict=True))
    assert by_sums(scores, 0.5, 20, source).tolist() == expected
    won = dpf.exponential(scores, 1.0, random=source)
    assert won == expected[0] if size >= exponential_routes.LONG else 0 <= won < size


def test_which_route_is_public(monkeypatch):
    """By the number of candidates and of draws alone."""
    seen = []
    for name in ("draw_from_sums", "select_rows"):
        original = getattr(exponential_routes, name)
        monkeypatch.setattr(exponential_routes, name, lambda *rest, f=original, n=name: [seen.append(n), f(*rest)][1])
    original = AliasTable.draw
    monkeypatch.setattr(AliasTable, "draw", lambda *rest: [seen.append("alias"), original(*rest)][1])
    generator = np.random.default_rng(0)
    for scores in (np.zeros(150_000), generator.normal(0, 1e5, 150_000), np.arange(150_000)):
        seen.clear()
        dpf.exponential(scores, 1.0)
        dpf.exponential(scores[:100_000], 1.0)
        dpf.exponential(scores.reshape(1, -1), 1.0)
        dpf.exponential_draws(scores, 1.0, 585)
        dpf.exponential_draws(scores, 1.0, 586)
        dpf.exponential_draws(scores[:256], 1.0, 1)
        assert seen == ["draw_from_sums", "select_rows", "select_rows", "draw_from_sums", "alias", "alias"]


def test_a_draw_uses_a_word_whatever_the_scores(monkeypatch):
    drawn = []
    fill = partial_sums.Keystream(bytes(32)).words(0).__class__.fill

    def spy(self, chunk, buffer):
        drawn.append((chunk, buffer.size, buffer.dtype.itemsize))
        fill(self, chunk, buffer)

    monkeypatch.setattr("dpfast.randomness.Words.fill", spy)
    counts = set()
    for scores in (np.zeros(140_000), np.arange(140_000.0), np.full(140_000, -1e300)):
        drawn.clear()
        dpf.exponential(scores, 1.0)
        dpf.exponential_draws(scores, 1.0, 10)
        dpf.exponential_draws(scores[:1000], 1.0, 140_000, threads=1)
        counts.add(tuple(drawn))
    assert counts == {((0, 1, 8), (0, 10, 8), (0, 131_072, 8), (1, 140_000 - 131_072, 8))}


def test_every_call_has_a_fresh_key_and_no_word_serves_twice():
    """Soundness rule 1."""
    source = SeededRandom(5)
    first, second = (dpf.exponential_draws(np.zeros(10**6), 1.0, 300_000, random=source) for _ in range(2))
    assert not np.array_equal(first, second)
    for chunk in (first[:131_072], first[131_072:262_144]):
        assert np.unique(chunk).size > 120_000
    assert not np.array_equal(first[:131_072], first[131_072:262_144])


def test_draws_do_not_depend_on_threads(seed):
    scores = np.random.default_rng(seed).normal(0, 3, 500)
    results = [dpf.exponential_draws(scores, 1.0, 600_000, threads=n, random=SeededRandom(seed)) for n in (1, 2, 5)]
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])


def test_nulls_are_no_candidates(seed):
    """Whatever the route, the others keep their places."""
    generator = np.random.default_rng(seed)
    values = generator.integers(0, 5, 300_000).astype(np.float64)
    null = generator.random(values.size) < 0.5
    column = pl.Series(np.where(null, np.nan, values)).fill_nan(None)
    dense = np.flatnonzero(~null)
    one = dpf.exponential(values[~null], 1.0, random=SeededRandom(seed))
    assert dpf.exponential(column, 1.0, random=SeededRandom(seed)) == dense[one]
    for draws in (5, 2000):
        expected = dense[dpf.exponential_draws(values[~null], 1.0, draws, random=SeededRandom(seed))]
        assert np.array_equal(dpf.exponential_draws(column, 1.0, draws, random=SeededRandom(seed)), expected)


def test_bad_parameters_and_scores_of_draws():
    with pytest.raises(ParameterError, match="length of epsilon must be 1"):
        dpf.exponential_draws([1, 2], [1.0, 1.0], 5)
    with pytest.raises(ColumnError, match=r"^scores must be one column"):
        dpf.exponential_draws(np.zeros((2, 2)), 1.0, 5)
    with pytest.raises(DataError, match="at least one candidate"):
        dpf.exponential_draws([], 1.0, 5)
    for size, place, draws in ((1000, 77, 10), (700_000, 600_001, 1)):
        scores = np.zeros(size)
        scores[place] = math.nan
        with pytest.raises(DataError, match=f"^scores must be finite, but candidate {place} is NaN"):
            dpf.exponential_draws(scores, 1.0, draws)
    assert dpf.exponential_draws([1, 2], np.array([1.0]), np.int64(5)).dtype == np.int64
