"""Randomized response: its law word by word, its privacy by enumeration, and every kind of column."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal, getcontext
from fractions import Fraction
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpfast as dpf
from dpfast.columns import borrow
from dpfast.errors import ColumnError, ParameterError
from dpfast.local.responses import answer_exactly, answer_rows, weights_of
from dpfast.testing import SeededRandom

getcontext().prec = 120
UNDECIDED = -1

CASES = [(2, "1"), (2, "0.000001"), (2, "1e-18"), (2, "11.5"), (3, "0.5"), (17, "2.25"), (1000, "4"), (4096, "8.9")]
LONG = [(4097, "1"), (2**16, "0.1"), (10**6, "12"), (2**31, "20"), (2**31, "1e-18")]
WIDE = [(2, "21.4"), (5, "22"), (3, "22.18"), (3, "40"), (3, "700"), (5000, "44.3"), (5000, "45"), (5000, "1000000")]


@cache
def total(k, epsilon):
    """W = exp(epsilon) + k - 1, to 120 digits."""
    return Decimal(epsilon).exp() + k - 1


def words_near_thresholds(k, epsilon, bits, spread=9, most=60):
    """Words around X = j and k U = j, for up to ``most`` numbers j, and at both ends."""
    points = sorted({*np.linspace(1, k - 1, most).astype(int).tolist(), 1, k - 1})
    centres = [0, 2**bits - 1]
    centres += [int(Decimal(j) * 2**bits / total(k, epsilon)) for j in points]
    centres += [j * 2**bits // k for j in points]
    words = {centre + near for centre in centres for near in range(-spread, spread + 1)}
    return np.array(sorted(word for word in words if 0 <= word < 2**bits), dtype=np.uint64)


def answer_at(word, bits, code, k, epsilon):
    """The answer of both ends of a word's interval by the definition, None where they differ."""
    ends = []
    for end in (Decimal(word), Decimal(word + 1) - Decimal(10) ** -60):
        u = end / Decimal(2**bits)
        if not 0 <= code < k:
            ends.append(int(u * k))
            continue
        x = u * total(k, epsilon)
        ends.append(code if x >= k - 1 else int(x) + (int(x) >= code))
    return ends[0] if ends[0] == ends[1] else None


def draw(words, values, k, epsilon):
    """Answers of the kernel on chosen words, undecided ones as -1."""
    from dpfast.kernels.noise.randomized_response import respond_long, respond_short

    weights = weights_of(Fraction(epsilon), k)
    values = np.array(values)
    values.setflags(write=False)
    released = np.zeros(len(values), values.dtype)
    respond = respond_short if weights.bits == 32 else respond_long
    word_type = np.uint32 if weights.bits == 32 else np.uint64
    flag = respond(words.astype(word_type), values, *weights.arguments, released)
    signed = released.view(np.int32) if released.dtype == np.uint32 else released
    assert bool(flag) == bool((signed == UNDECIDED).any())
    return signed, weights


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint32"])
@pytest.mark.parametrize(("k", "epsilon"), [*CASES, *LONG, *WIDE])
def test_the_kernel_answers_as_the_definition_near_every_threshold(k, epsilon, dtype):
    """Soundness rules 2 and 5: what is decided is right at both ends of the word's interval."""
    bits = weights_of(Fraction(epsilon), k).bits
    words = words_near_thresholds(k, epsilon, bits, most=12)
    outside = -5 if dtype != "uint32" else 2**32 - 5
    for code in (0, 1, k // 2, k - 1, outside):
        answers, weights = draw(words, np.full(words.size, code, dtype), k, epsilon)
        expected = [answer_at(int(word), bits, code, k, epsilon) for word in words]
        for word, answer, right in zip(words.tolist(), answers.tolist(), expected, strict=True):
            assert answer in (right, UNDECIDED)
            if right is not None and answer == UNDECIDED and weights.certain:
                # What is left undecided lies within a few words of a threshold.
                near = {answer_at(max(word + by, 0), bits, code, k, epsilon) for by in (-4, 4)}
                assert near != {right}


@pytest.mark.parametrize(("k", "epsilon"), [(2, "1"), (3, "0.5"), (7, "2")])
def test_few_words_are_left_undecided(k, epsilon):
    """Over 2**18 evenly spaced words none is, beside those whose interval holds a threshold."""
    words = np.arange(2**18, dtype=np.uint64) * np.uint64(2**14) + np.uint64(77)
    for code in (0, k - 1, -1):
        answers, _ = draw(words, np.full(words.size, code, np.int64), k, epsilon)
        assert (answers == UNDECIDED).sum() <= 1


class Tape:
    """Random bits that a test chooses, and no more of them."""

    def __init__(self, bits, length):
        self.bits, self.known = bits, 1
        self.length = length

    def leading(self, count):
        if count > self.length:
            # The rest is 106 / 257 again and again: a point inside the interval that is no threshold.
            more = count - self.length
            return self.bits << more | int("0110100110010110" * more, 2) >> 15 * more
        return self.bits >> (self.length - count)


@pytest.mark.parametrize(("k", "epsilon"), [(2, "1"), (3, "0.25"), (5, "2"), (4, "0.01")])
def test_the_exact_path_has_the_law_on_every_tape(k, epsilon):
    """Every tape of 10 bits, as a point of its interval: counts are the law's, but for one tape a threshold."""
    length = 10
    w = total(k, epsilon)
    for code in (*range(k), -1, k):
        counts = np.zeros(k, int)
        for bits in range(2**length):
            counts[answer_exactly(Tape(bits, length), code, Fraction(epsilon), k)] += 1
        inside = 0 <= code < k
        law = [float((Decimal(epsilon).exp() if c == code else 1) / w) if inside else 1 / k for c in range(k)]
        assert (np.abs(counts / 2**length - law) <= 2 / 2**length).all()


@pytest.mark.parametrize(("k", "epsilon"), [(2, "1"), (3, "0.25"), (6, "2"), (4, "0.01"), (300, "3")])
def test_privacy_by_enumeration(k, epsilon):
    """Exact lengths of intervals of U: for any two contents of a row, ratios reach exp(epsilon) and never pass it."""
    w, truth = total(k, epsilon), Decimal(epsilon).exp()
    laws = [[truth / w if c == code else 1 / w for c in range(k)] for code in range(k)] + [[Decimal(1) / k] * k]
    largest = max(max(row[c] for row in laws) / min(row[c] for row in laws) for c in range(k))
    assert abs(largest / truth - 1) < Decimal(10) ** -100
    for row in laws:
        assert abs(sum(row) - 1) < Decimal(10) ** -100


def test_a_lie_that_may_be_the_truth_is_caught():
    """The mechanism that lies uniformly over all k: its ratio passes exp(epsilon), and the word test above sees it."""
    k, epsilon = 3, "1"
    words = words_near_thresholds(k, epsilon, 32)
    answers, _ = draw(words, np.zeros(words.size, np.int64), k, epsilon)
    wrong = [int(Decimal(int(word)) / 2**32 * total(k, epsilon)) for word in words]
    wrong = [other if other < k else 0 for other in wrong]
    decided = answers != UNDECIDED
    assert (answers[decided] != np.array(wrong)[decided]).any()


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint32"])
@pytest.mark.parametrize(("k", "epsilon"), [(2, "1"), (5, "0.3"), (5000, "2"), (3, "45"), (3, "30")])
def test_fast_and_exact_agree(k, epsilon, dtype):
    """The same rows, every one finished in ball arithmetic: the same answers."""
    values = np.arange(3000) % (k + 1)
    column = borrow(values.astype(dtype))
    weights = weights_of(Fraction(epsilon), k)
    fast = answer_rows(column, weights, SeededRandom(3))
    slow = answer_rows(column, weights, SeededRandom(3), refine_all=True)
    assert np.array_equal(fast, slow)


@pytest.mark.statistical
@pytest.mark.parametrize("categories", [4, ["a", "b", "c", "d"]])
def test_frequencies(categories):
    """Chi-squared with 3 degrees of freedom below 40 for each of 5 contents: fails by chance once in 1e7 runs."""
    n, epsilon = 200_000, 1.5
    w = math.exp(epsilon) + 3
    contents = [0, 1, 2, 3, 9] if categories == 4 else ["a", "b", "c", "d", "z"]
    for place, content in enumerate(contents):
        answers = dpf.randomized_response(pl.Series([content] * n), categories, epsilon, random=SeededRandom(place))
        known = range(4) if categories == 4 else categories
        counts = np.array([(answers == category).sum() for category in known])
        expected = n * np.array([math.exp(epsilon) / w if c == place else 1 / w for c in range(4)])
        if place == 4:
            expected = np.full(4, n / 4)
        assert ((counts - expected) ** 2 / expected).sum() < 40


KINDS = [
    pl.Series("a", ["yes", "no", None, "else"]),
    pl.Series("a", ["yes", "no", None, "else"], dtype=pl.Categorical),
    pl.Series("a", ["yes", None, "no", "no"], dtype=pl.Enum(["no", "other", "yes"])),
    pa.array(["yes", None, "no", "else"]),
    pa.array(["yes", None, "no", "else"], pa.large_string()),
    pa.chunked_array([["yes"], [], [None, "no", "else"]]),
    pd.Series(["yes", None, "no", "else"], index=[7, 5, 3, 1], name="q"),
    pd.Series(["yes", "no", "no", "yes"], dtype="category"),
    np.array([["yes", "no"], ["els", "no"]]),
    np.array(["yes", None, "no", "else"], object),
]


@pytest.mark.parametrize("values", KINDS, ids=lambda values: type(values).__name__)
def test_the_same_kind_comes_back(values):
    noisy = dpf.randomized_response(values, ["yes", "no"], 50.0, random=SeededRandom(1))
    assert type(noisy) is type(values)
    before, after = (str(getattr(x, "dtype", getattr(x, "type", None))) for x in (values, noisy))
    assert after == ("Enum(categories=['yes', 'no'])" if before.startswith("Enum") else before)
    before, after = (
        (np.array(x.to_numpy(), object) if hasattr(x, "to_numpy") else x for x in (values, noisy))
        if not (isinstance(values, (pa.Array, pa.ChunkedArray)))
        else (np.array(x.to_pylist(), object) for x in (values, noisy))
    )
    assert before.shape == after.shape
    # With epsilon = 50 a listed value is kept but for once in 1e21 rows; others become one of the list.
    listed = np.isin(before.astype(str), ["yes", "no"])
    assert (before[listed] == after[listed]).all()
    assert np.isin(after.astype(str), ["yes", "no"]).all()
    if hasattr(values, "name"):
        assert noisy.name == values.name
    if isinstance(values, pd.Series):
        assert noisy.index.equals(values.index)


@pytest.mark.parametrize(
    ("values", "categories"),
    [
        (pl.Series([True, None, False]), [False, True]),
        (pl.Series([3, 900, None]), [3, 900]),
        (pl.Series([3, 90, None], dtype=pl.UInt8), [3, 90]),
        (pl.Series([2**63, 0], dtype=pl.UInt64), [0, 2**63]),
        (pl.Series([datetime.date(2020, 2, 29), None]), [datetime.date(2020, 2, 29), datetime.date(2021, 1, 1)]),
    ],
)
def test_booleans_integers_and_dates(values, categories):
    noisy = dpf.randomized_response(values, categories, 50.0, random=SeededRandom(1))
    assert noisy.dtype == values.dtype
    assert noisy.is_in(categories).all()
    assert (noisy == values).drop_nulls().all()


@pytest.mark.parametrize("values", [pl.Series([0, None, 2, 7, -1]), pa.array([0, None, 2, 7, -1])])
def test_nulls_of_numbers_become_answers(values):
    noisy = pl.Series(dpf.randomized_response(values, 3, 50.0, random=SeededRandom(1)))
    assert noisy.null_count() == 0
    assert noisy.is_between(0, 2).all()
    assert (noisy[0], noisy[2]) == (0, 2)


def test_null_may_be_a_category():
    values = pl.Series(["a", None, "z"] * 2000)
    noisy = dpf.randomized_response(values, ["a", None], 50.0, random=SeededRandom(1))
    assert noisy[0] == "a"
    assert noisy[1] is None
    others = noisy.gather_every(3, 2)
    assert 800 < others.null_count() < 1200  # 2,000 fair coins: fails by chance once in 1e18 runs


@pytest.mark.parametrize("values", [pl.Series([], dtype=pl.Int64), np.zeros((0, 3), np.int32), [], pl.Series([1])[:0]])
def test_empty_columns(values):
    noisy = dpf.randomized_response(values, 3, 1.0)
    assert len(noisy) == 0
    assert noisy.dtype == getattr(values, "dtype", np.int64)


def test_chunks_slices_and_threads_do_not_matter():
    values = np.arange(400_000) % 5
    whole = dpf.randomized_response(values, 4, 1.0, random=SeededRandom(5), threads=1)
    assert np.array_equal(whole, dpf.randomized_response(values, 4, 1.0, random=SeededRandom(5), threads=2))
    pieces = pl.concat(
        [pl.Series(values[:7]), pl.Series(values[7:300_001]), pl.Series(values[300_001:])], rechunk=False
    )
    assert np.array_equal(whole, dpf.randomized_response(pieces, 4, 1.0, random=SeededRandom(5)).to_numpy())
    longer = pl.Series(np.concatenate([[1, 2, 3], values]))
    assert np.array_equal(whole, dpf.randomized_response(longer[3:], 4, 1.0, random=SeededRandom(5)).to_numpy())


def test_what_stood_in_a_row_is_not_in_the_buffers():
    """A slice's parent and the bytes under nulls stay behind; so do strings of no category."""
    values = pl.Series(["a secret of more than twelve bytes", "no", "yes"])[1:]
    noisy = dpf.randomized_response(values, ["yes", "no"], 1.0)
    assert b"secret" not in b"".join(bytes(b) for b in noisy.to_arrow().buffers() if b is not None)


@pytest.mark.parametrize(
    ("values", "categories", "error"),
    [
        (pl.Series([1.5]), 3, ColumnError),
        (pl.Series([1.5]), ["a", "b"], ColumnError),
        (pl.Series([1]), ["a", "b"], ColumnError),
        (pl.Series(["1"]), [1, 2], ColumnError),
        (pl.Series([1], dtype=pl.Int8), [1, 300], ParameterError),
        (np.zeros(3, np.int8), [1, 300], ParameterError),
        (pd.DataFrame({"a": ["a"]}), ["a", "b"], ColumnError),
        (pl.DataFrame({"a": ["a"]}), ["a", "b"], ColumnError),
        (pa.table({"a": ["a"]}), ["a", "b"], ColumnError),
        (pl.Series([["a"]]), ["a", "b"], ColumnError),
        (np.ma.masked_array(["a"], [True]), ["a", "b"], ColumnError),
        (pl.Series(["a"], dtype=pl.Enum(["a"])), [1, 2], ColumnError),
        (pd.Series(["a"], dtype=pd.ArrowDtype(pa.string_view())), ["a", "b"], ParameterError),
        (object(), ["a", "b"], ColumnError),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(values, categories, error):
    with pytest.raises(error) as raised:
        dpf.randomized_response(values, categories, 1.0)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 300
    assert raised.value.__cause__ is None
