"""Frequency oracles: privacy of every neighbour by enumeration, laws, variances, intervals, and kinds of columns."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpfast as dpf
from dpfast.errors import ColumnError, ParameterError
from dpfast.kernels.local.hashing import PRIME, count_range, count_values, hash_rows
from dpfast.local.oracle import truth_threshold
from dpfast.testing import SeededRandom

getcontext().prec = 80
KINDS = {
    "response": dpf.RandomizedResponse,
    "encoding": dpf.OptimizedUnaryEncoding,
    "hashing": dpf.OptimizedLocalHashing,
    "hadamard": dpf.HadamardResponse,
    "subset": dpf.SubsetSelection,
}
EVERY = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@pytest.mark.parametrize(
    ("epsilon", "size", "total"),
    [
        ("1e-18", 1, 2),
        ("1e-18", PRIME // 2, PRIME),
        ("1e-18", 144_388_000, PRIME),
        ("1e-18", 30, 64),
        ("1e-17", 5, 11),
        ("0.001", 32, 65),
        ("1", 5, 20),
        ("1", 144_387_964, PRIME),
        ("21", 1, PRIME),
        ("43.9", 1, 2),
        ("44.4", 1, PRIME),
        ("99.9", 1, PRIME),
        ("100", 1, 2**16),
        ("1000000", 1, 2),
    ],
)
def test_the_chance_of_the_truth_is_private(epsilon, size, total):
    """Soundness rule 10: both ratios of an outcome's probabilities are at most e, in 80 digits, and nearly reach it."""
    truth = truth_threshold(Fraction(epsilon), size, total)
    assert 0 < truth < 2**64
    e = Decimal(epsilon).exp()
    ratio = Decimal(truth) * (total - size) / (Decimal(2**64 - truth) * size)
    assert 1 / e <= ratio <= e
    if Decimal("0.001") <= Decimal(epsilon) < 20:
        assert ratio > e * (1 - Decimal(2) ** -30)
    # With one more it would be too much, but where epsilon is so small that rounding up is allowed.
    more = Decimal(truth + 1) * (total - size) / (Decimal(2**64 - truth - 1) * size) if truth < 2**64 - 1 else None
    assert more is None or more > e or Decimal(epsilon) < Decimal("1e-15")


@pytest.mark.parametrize(("k", "epsilon"), [(3, 0.5), (5, 1.0), (6, 2.0), (7, 0.01)])
def test_subsets_are_private_by_enumeration(k, epsilon):
    """Every set for every content; a row of no category lies in between."""
    oracle = dpf.SubsetSelection(k, epsilon)
    truth, m = Fraction(truth_threshold(oracle.exactly, oracle.members, k), 2**64), oracle.members
    sets = list(itertools.combinations(range(k), m))
    laws = [
        [truth / math.comb(k - 1, m - 1) if v in one else (1 - truth) / math.comb(k - 1, m) for one in sets]
        for v in range(k)
    ] + [[Fraction(1, len(sets))] * len(sets)]
    assert all(sum(law) == 1 for law in laws)
    largest = max(max(column) / min(column) for column in zip(*laws, strict=True))
    assert 0.999999 * math.exp(epsilon) < largest
    assert Decimal(largest.numerator) / Decimal(largest.denominator) <= Decimal(str(epsilon)).exp()


@pytest.mark.parametrize(("k", "epsilon"), [(2, 0.5), (4, 1.0), (6, 3.0)])
def test_encodings_are_private_by_enumeration(k, epsilon):
    """Every bitset for every content, nulls among them; with q where the own bit should be fair it would be less."""
    e = Decimal(str(epsilon)).exp()
    q, half = 1 / (e + 1), Decimal("0.5")

    def law(v):
        chances = [half if u == v else q for u in range(k)]
        return [
            math.prod(chance if bit else 1 - chance for chance, bit in zip(chances, bits, strict=True))
            for bits in itertools.product((0, 1), repeat=k)
        ]

    laws = [law(v) for v in range(-1, k)]
    largest = max(max(column) / min(column) for column in zip(*laws, strict=True))
    assert abs(largest / e - 1) < Decimal("1e-70")


def test_a_fair_coin_for_the_own_bit_and_a_smaller_one_for_others_is_caught():
    """With 1 / (e + 2) for others the enumeration above sees a ratio above e."""
    e = Decimal(1).exp()
    q = 1 / (e + 2)
    assert (Decimal("0.5") / q) * ((1 - q) / Decimal("0.5")) > e


@pytest.mark.parametrize("k", [1, 2, 3, 5, 8, 9])
def test_hadamard_matrices_are_orthogonal(k):
    from dpfast.kernels.local.hadamard import transform

    size = 2 ** (k - 1)
    rows = np.eye(size, dtype=np.int64)
    for row in rows:
        transform(row)
    assert np.array_equal(rows @ rows.T, size * np.eye(size))
    signs = [[(-1) ** (i & j).bit_count() for j in range(size)] for i in range(size)]
    assert np.array_equal(rows, signs)


def test_lines_are_pairwise_independent():
    """In a field of 13 elements: over all slopes, every pair of hashes of two values comes up equally often."""
    p = 13
    for u, v in itertools.permutations(range(4), 2):
        for w in range(p):
            hashes = sorted((a * u + (w - a * v)) % p for a in range(p))
            assert hashes == list(range(p))


def test_hashes_are_those_of_the_definition_word_by_word():
    """Soundness rules 2 and 5: at words next to thresholds; what is undecided has two hashes in its interval."""
    generator = np.random.default_rng(11)
    domain, truth, width = 1000, 2**63 + 12345, 144_387_964
    words = generator.integers(0, 2**64, (4000, 3), dtype=np.uint64)
    words[:1500, 0] = [truth + near for near in generator.integers(-3, 3, 1500).tolist()]
    bounds = np.array([width, PRIME - width, PRIME])
    steps = [(int(j) << 64) // int(bound) for bound in bounds for j in generator.integers(1, bound, 500)]
    words[:1500, 1] = [step + int(near) for step, near in zip(steps, generator.integers(-1, 2, 1500), strict=True)]
    words[-8:, 2] = np.array([0, 2**64 - 1, 2**35, 2**64 - 2**35, 2**64 - 2**36, 2**64 - 2**37, 2**36, 1], np.uint64)
    values = generator.integers(-3, domain + 3, 4000)
    reports = np.empty(4000, np.int64)
    values.setflags(write=False)
    hash_rows(words.reshape(-1), values, np.uint64(domain), np.uint64(truth), np.uint64(width), reports)
    undecided = 0
    for (first, second, third), value, report in zip(words.tolist(), values.tolist(), reports.tolist(), strict=True):
        inside = 0 <= value < domain
        start, bound = (0, width) if inside and first < truth else (width, PRIME - width) if inside else (0, PRIME)
        ends = {bound * second >> 64, (bound * (second + 1) - 1) >> 64}
        if len(ends) > 1:
            assert report == -1
            undecided += 1
            continue
        a, c = report >> 29, report & (2**29 - 1)
        assert a == (third >> 35) % PRIME
        assert c < PRIME
        assert (a * (value if inside else 0) + c) % PRIME == start + ends.pop()
    assert undecided > 100


def test_undecided_hashes_are_finished_from_the_same_word(monkeypatch):
    """A kernel that decides nothing: every row is finished in Python, and most agree with the kernel's own."""
    oracle, values = dpf.OptimizedLocalHashing(50, 1.0), np.arange(400) % 52
    fast = oracle.randomize(values, random=SeededRandom(3))

    def undecided(words, values, domain, truth, width, released):
        released[:] = -1
        return 1

    monkeypatch.setattr("dpfast.local.local_hashing.hash_rows", undecided)
    assert np.array_equal(oracle.randomize(values, random=SeededRandom(3)), fast)


def test_reports_are_counted_as_the_definition_says():
    generator = np.random.default_rng(2)
    a, c = generator.integers(0, PRIME, (2, 3000))
    a[:4], c[:4] = [0, PRIME - 1, PRIME - 1, 1], [0, PRIME - 1, 0, PRIME - 1]
    width = 10**8
    values = np.array([0, 1, 2, 77, PRIME - 1, 2**28])
    wanted = [((a * v + c) % PRIME < width).sum() for v in values]
    counts = np.zeros(6, np.int64)
    count_values((a << 29) | c, values.astype(np.uint64), np.uint64(width), counts)
    assert counts.tolist() == wanted
    for first in (0, PRIME - 50):
        ranged = np.zeros(50, np.int64)
        count_range((a << 29) | c, np.uint64(first), np.uint64(width), ranged)
        assert ranged.tolist() == [((a * v + c) % PRIME < width).sum() for v in range(first, first + 50)]


@pytest.mark.statistical
@EVERY
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 5.0])
def test_estimates_are_unbiased_with_the_variance_that_they_say(kind, epsilon):
    """Forty runs of 20 frequencies, one of them large; means within 5.5 standard errors, variances within 30 %.

    By the normal law a mean fails once in 10**6 runs; the pooled variance of 800 values (sd 5 %) once in 10**8.
    """
    n, k = 6000, 20
    values = np.where(np.arange(n) % 3 == 0, 4, np.arange(n) % k)
    truth = np.bincount(values, minlength=k) / n
    oracle = kind(k, epsilon)
    frames = [oracle.estimate(oracle.randomize(values, random=SeededRandom(seed))) for seed in range(40)]
    scores = np.array([(f["frequency"].to_numpy() - truth) / f["standard_error"].to_numpy() for f in frames])
    assert np.abs(scores.mean(axis=0)).max() * 40**0.5 < 5.5
    assert 0.7 < scores.var() < 1.3
    held = np.mean([((f["low"].to_numpy() <= truth) & (truth <= f["high"].to_numpy())).mean() for f in frames])
    assert held > 0.9


@pytest.mark.statistical
@EVERY
def test_rows_of_no_category_count_for_none_or_evenly(kind):
    """Nulls alone: every frequency is within 6 standard errors of 0, or of 1 / k."""
    oracle, k = kind(12, 1.0), 12
    frame = oracle.estimate(oracle.randomize(pl.Series([None] * 50_000, dtype=pl.Int64), random=SeededRandom(1)))
    wanted = 1 / k if kind in (dpf.RandomizedResponse, dpf.SubsetSelection) else 0.0
    assert ((frame["frequency"] - wanted) / frame["standard_error"]).abs().max() < 6


@pytest.mark.parametrize(("k", "epsilon"), [(2, 1.0), (5, 1.0), (70, 0.7), (130, 3.0), (300, 6.5)])
def test_subsets_have_their_size_and_all_values_alike(k, epsilon):
    """Chi-squared of the members beside the own value: below 6 standard deviations of its mean."""
    oracle, n = dpf.SubsetSelection(k, epsilon), 20_000
    bits = np.unpackbits(oracle.randomize(np.full(n, 1), random=SeededRandom(k)), axis=1, bitorder="little")
    assert (bits.sum(axis=1) == oracle.members).all()
    assert not bits[:, k:].any()
    own, other, _ = oracle.support
    assert abs(bits[:, 1].mean() - own) < 6 * (own * (1 - own) / n) ** 0.5
    others = np.delete(bits[:, :k].sum(axis=0), 1)
    spread = max(n * other * (1 - other), 1)
    assert ((others - n * other) ** 2).sum() / spread < (k - 1) + 6 * (2 * (k - 1)) ** 0.5 + 12


def test_every_subset_is_as_probable_as_any_other():
    """All C(6, 3) sets of a row of no category: chi-squared with 19 degrees of freedom below 70, once in 10**7."""
    oracle = dpf.SubsetSelection(7, 0.3)
    sets = oracle.randomize(pl.Series([None] * 100_000, dtype=pl.Int64), random=SeededRandom(9)).to_numpy()[:, 0]
    counts = np.unique(sets, return_counts=True)[1]
    cells = math.comb(7, oracle.members)
    assert counts.size == cells
    assert ((counts - 1e5 / cells) ** 2 / (1e5 / cells)).sum() < cells + 51


GOLD = {2: 0.92067, 16: 5.6624, 128: 43.596, 1024: 347.07}


@pytest.mark.parametrize("k", GOLD)
def test_variances_of_the_reference_table(k):
    """Reference 8, epsilon 1: (k - 2 + e) / (e - 1)**2 for randomized response, 4 e / (e - 1)**2 for the others.

    One bit of a Hadamard matrix has ((e + 1) / (e - 1))**2, which is 1 more.
    """
    assert dpf.RandomizedResponse(k, 1.0).variance == pytest.approx(GOLD[k], rel=2e-5)
    assert dpf.OptimizedUnaryEncoding(k, 1.0).variance == pytest.approx(3.68269, rel=2e-6)
    assert dpf.OptimizedLocalHashing(k, 1.0).variance == pytest.approx(3.68269, rel=2e-6)
    assert dpf.HadamardResponse(k, 1.0).variance == pytest.approx(4.68269, rel=2e-6)
    assert dpf.SubsetSelection(k, 1.0).variance < 3.6827


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 4.0])
def test_the_choice_of_an_oracle_follows_the_variances(epsilon):
    """Reference 8: randomized response if and only if k < 3 e + 2."""
    limit = 3 * math.exp(epsilon) + 2
    for k in (2, math.floor(limit), math.floor(limit) + 1, 400, 5000):
        oracle = dpf.frequency_oracle(k, epsilon)
        assert isinstance(oracle, dpf.RandomizedResponse) == (k < limit)
        rivals = [dpf.RandomizedResponse(k, epsilon), dpf.OptimizedLocalHashing(k, epsilon)]
        assert oracle.variance <= min(rival.variance for rival in rivals) * 1.000001
        fast = dpf.frequency_oracle(k, epsilon, fast=True)
        assert fast.variance <= min(kind(k, epsilon).variance for kind in (KINDS["response"], KINDS["hadamard"]))


def test_the_estimator_of_warners_coins():
    """Row 2.3-2: with p = 3/4, q = 1/4 a share of 0.4 estimates 0.3, with variance 4 y (1 - y) / n."""
    oracle = dpf.RandomizedResponse(["yes", "no"], 1.0986122886681098)
    for yes in (400, 250, 750, 0):
        frame = oracle.estimate(["yes"] * yes + ["no"] * (1000 - yes), population=True)
        y = yes / 1000
        assert frame["frequency"][0] == pytest.approx(2 * y - 0.5, abs=1e-12)
        if 0.25 <= y <= 0.75:
            assert frame["standard_error"][0] ** 2 == pytest.approx(4 * y * (1 - y) / 1000, rel=1e-9)
    wrong = 2 * (1 / 4 + 0.3 / 2) - 1 / 4
    assert wrong != pytest.approx(0.3)


def test_intervals_are_wilsons_where_the_reports_are_the_values():
    """At epsilon 60 a report is the truth: the interval for the population is Wilson's score interval."""
    oracle, z = dpf.RandomizedResponse(2, 60.0), 1.959963984540054
    frame = oracle.estimate([1] * 7 + [0] * 13, population=True)
    y, n = 7 / 20, 20
    centre, root = y + z**2 / (2 * n), z * math.sqrt(y * (1 - y) / n + z**2 / (4 * n**2))
    assert frame["low"][1] == pytest.approx((centre - root) / (1 + z**2 / n), rel=1e-9)
    assert frame["high"][1] == pytest.approx((centre + root) / (1 + z**2 / n), rel=1e-9)
    rows = oracle.estimate([1] * 7 + [0] * 13)
    assert rows["standard_error"].to_list() == pytest.approx([0, 0], abs=1e-9)


ROWS = ["b", None, "c", "a", "z", "b"]
COLUMNS = {
    "list": ROWS,
    "polars": pl.Series("x", ROWS),
    "polars, categorical": pl.Series("x", ROWS, dtype=pl.Categorical),
    "array": pa.array(ROWS),
    "chunked": pa.chunked_array([ROWS[:2], ROWS[2:]]),
    "pandas": pd.Series(ROWS, index=range(6, 0, -1), name="x"),
    "numpy": np.array([["a", "b"], ["c", "q"]]),
    "one": "b",
    "empty": pl.Series("x", [], dtype=pl.String),
    "no rows": [],
}


@EVERY
@pytest.mark.parametrize("name", COLUMNS)
def test_reports_come_back_in_the_kind_that_was_given(kind, name):
    values = COLUMNS[name]
    oracle = kind(["a", "b", "c"], 60.0)
    reports = oracle.randomize(values, random=SeededRandom(1))
    if isinstance(values, pa.Array):
        assert isinstance(reports, pa.Array)
    elif not isinstance(values, (list, str)):
        assert type(reports) is type(values)
    if isinstance(values, pl.Series):
        assert reports.name == "x"
    if isinstance(values, pd.Series):
        assert reports.index.equals(values.index)
    frame = oracle.estimate(reports)
    assert frame["value"].to_list() == ["a", "b", "c"]
    assert frame.columns == ["value", "frequency", "standard_error", "low", "high"]
    if name in ("empty", "no rows"):
        assert frame["frequency"].null_count() == 3
        assert (frame["low"] == 0).all()
        assert (frame["high"] == 1).all()
        return
    if kind in (dpf.OptimizedUnaryEncoding, dpf.RandomizedResponse):
        return
    assert oracle.estimate(reports, values=["c", "a"])["value"].to_list() == ["c", "a"]


@EVERY
def test_reports_are_read_from_any_library(kind):
    oracle = kind(9, 1.0)
    values = np.arange(700) % 9
    wanted = oracle.estimate(oracle.randomize(values, random=SeededRandom(4)))
    for column in (pl.Series(values), pa.array(values), pa.chunked_array([values[:3], values[3:]]), pd.Series(values)):
        reports = oracle.randomize(column, random=SeededRandom(4))
        assert oracle.estimate(reports).equals(wanted)
        assert oracle.estimate(pl.Series(reports) if not isinstance(reports, pl.Series) else reports).equals(wanted)
    assert oracle.estimate(list(oracle.randomize(values, random=SeededRandom(4)))).equals(wanted)


@EVERY
@pytest.mark.parametrize("length", [1, 5000, 140_000])
def test_threads_do_not_matter(kind, length):
    oracle, values = kind(30, 1.0), np.arange(length) % 31
    one = oracle.randomize(values, random=SeededRandom(4), threads=1)
    assert np.array_equal(one, oracle.randomize(values, random=SeededRandom(4), threads=2))
    assert oracle.estimate(one, threads=1).equals(oracle.estimate(one, threads=2))


@EVERY
def test_reports_that_are_none_are_refused(kind):
    oracle = kind(9, 1.0)
    wrong = [[-1], [2**62], pl.Series([1, None]), ["a"], np.zeros((3, 5), np.uint8), [0.5]]
    for reports in wrong:
        with pytest.raises(ColumnError, match=r"^reports must"):
            oracle.estimate(reports)


def test_too_many_categories_are_refused():
    for kind in (dpf.OptimizedUnaryEncoding, dpf.SubsetSelection, dpf.OptimizedLocalHashing, dpf.HadamardResponse):
        kind(kind.most, 1.0)
        with pytest.raises(ParameterError, match="at most"):
            kind(kind.most + 1, 1.0)
    assert isinstance(dpf.frequency_oracle(2**29 - 3, 1.0), dpf.OptimizedLocalHashing)
    with pytest.raises(ParameterError, match="at most"):
        dpf.frequency_oracle(2**30, 1.0)


@EVERY
@pytest.mark.parametrize("epsilon", [1e-18, 1e-9, 43.0, 45.0, 101.0, 1e6])
def test_extreme_epsilons(kind, epsilon):
    oracle, values = kind(20, epsilon), np.arange(2000) % 20
    frame = oracle.estimate(oracle.randomize(values, random=SeededRandom(3)))
    assert frame["low"].is_between(0, 1).all()
    assert frame["high"].is_between(0, 1).all()
    if epsilon > 40:
        assert (frame["frequency"] - 0.05).abs().max() < 6 * max(oracle.variance / 2000, 0.06 / 2000) ** 0.5


def test_oracles_are_values():
    assert dpf.HadamardResponse(5, 1.0) == dpf.HadamardResponse(5, 1.0)
    assert dpf.HadamardResponse(["a", "b"], 1.0) != dpf.SubsetSelection(["a", "b"], 1.0)
    assert hash(dpf.SubsetSelection(["a", "b"], 1.0)) == hash(dpf.SubsetSelection(("a", "b"), 1.0))
    with pytest.raises(AttributeError):
        dpf.HadamardResponse(5, 1.0).epsilon = 2.0
