"""Bits of any probability against their definition, bit for bit, and randomized response of Booleans of every kind."""

from __future__ import annotations

from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpfast as dpf
from dpfast.columns import BLOCK_ROWS
from dpfast.kernels.noise.random_bits import align_bits, compare_planes, settle_ties
from dpfast.local.bits import BitDraws, lie_chance
from dpfast.randomness import Keystream, Purpose
from dpfast.testing import SeededRandom

getcontext().prec = 120
EPSILONS = ["1e-18", "0.001", "1", "2.5", "5.55", "11", "43.3", "48", "700", "1000000"]


def lie(epsilon):
    return 1 / (Decimal(epsilon).exp() + 1)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_first_72_bits_of_the_chance_of_a_lie(epsilon):
    chance = lie_chance(Fraction(epsilon))
    assert chance.first << 64 | chance.following == int(lie(epsilon) * 2**72)


@pytest.mark.parametrize("first", range(256))
def test_planes_compare_as_numbers_do(first):
    """Soundness rule 5: all 256 first bytes against every threshold byte; a tie is neither below nor above."""
    numbers = np.arange(256)
    planes = np.packbits(
        (numbers[None, :] >> np.arange(7, -1, -1)[:, None] & 1).astype(bool), axis=1, bitorder="little"
    )
    masks = np.array([2**64 - 1 if first >> (7 - place) & 1 else 0 for place in range(8)], np.uint64)
    ones, ties = np.zeros(4, np.uint64), np.zeros(4, np.uint64)
    compare_planes(planes.view(np.uint64).reshape(-1), masks, ones, ties)
    as_bits = [np.unpackbits(words.view(np.uint8), bitorder="little").astype(bool) for words in (ones, ties)]
    assert np.array_equal(as_bits[0], numbers < first)
    assert np.array_equal(as_bits[1], numbers == first)


def test_ties_are_settled_by_the_word_that_is_theirs_and_the_rest_are_left():
    following = np.uint64(2**63 + 5)
    ties = np.array([0, 1 << 63 | 1, 0b1010], np.uint64)
    ones, left = np.zeros(3, np.uint64), np.zeros(10, np.int64)
    words = np.array([2**63 + 4, 2**63 + 5, 2**63 + 6], np.uint64)
    assert settle_ties(ones, ties, words, following, left) == 2
    assert ones.tolist() == [0, 1, 0]
    assert left[:4].tolist() == [127, 1, 131, -1]


@pytest.mark.parametrize("first", range(8))
@pytest.mark.parametrize("size", [1, 2, 9])
def test_bits_are_aligned(first, size):
    source = np.random.default_rng(first).integers(0, 256, size).astype(np.uint8)
    target = np.empty(size, np.uint8)
    align_bits(source, first, target)
    wanted = np.append(np.unpackbits(source, bitorder="little")[first:], np.zeros(first, np.uint8))
    assert np.array_equal(np.unpackbits(target, bitorder="little"), wanted)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_bits_are_those_of_the_definition(epsilon):
    """The same words read one row after the other, with rational arithmetic."""
    rows, block, q = 4000, 3, lie(epsilon)
    draws = BitDraws(Keystream(bytes(range(32))), lie_chance(Fraction(epsilon)))
    draws.fill(block, rows)
    size = -(-rows // 64)
    words = np.empty(8 * size + BLOCK_ROWS // 128, np.uint64)
    Keystream(bytes(range(32))).words(Purpose.NOISE).fill(block, words)
    planes = np.unpackbits(words[: 8 * size].view(np.uint8), bitorder="little").reshape(8, -1)
    further = iter(words[8 * size :].tolist())
    wanted = []
    for row in range(64 * size):
        u = sum(int(planes[place, row]) << (7 - place) for place in range(8))
        if u == int(q * 256):
            u = u << 64 | next(further)
            assert u != int(q * 2**72), "another key"
            wanted.append(u < int(q * 2**72))
        else:
            wanted.append(u < int(q * 256))
    assert np.unpackbits(draws.ones.view(np.uint8), bitorder="little").tolist() == wanted
    assert np.array_equal(draws.fair, words[:size])


@pytest.mark.parametrize("epsilon", ["0.3", "4"])
def test_rows_without_a_further_word_are_finished_exactly(epsilon, monkeypatch):
    """With no words for ties all of them take the exact path: about one row in 256, and as many ones as the law says.

    A binomial share six standard deviations away fails once in 5 * 10**8 runs.
    """
    monkeypatch.setattr("dpfast.local.bits._FURTHER", 0)
    n = 200_000
    answers = dpf.randomized_response(np.zeros(n, bool), [False, True], float(epsilon), random=SeededRandom(5))
    q = float(lie(epsilon))
    assert abs(answers.mean() - q) < 6 * (q * (1 - q) / n) ** 0.5


def truth(values):
    series = values if isinstance(values, pl.Series) else pl.Series(values)
    return series.to_list()


PATTERN = [True, False, None, True, True, False, False, None, True] * 30
KINDS = {
    "polars": pl.Series("a", PATTERN),
    "polars, chunks": pl.concat([pl.Series("a", PATTERN[:7]), pl.Series("a", PATTERN[7:])], rechunk=False),
    "polars, sliced": pl.Series("a", PATTERN)[13:],
    "polars, empty": pl.Series("a", [], dtype=pl.Boolean),
    "polars, all null": pl.Series("a", [None] * 70, dtype=pl.Boolean),
    "array": pa.array(PATTERN),
    "array, sliced": pa.array(PATTERN)[3:200],
    "array, empty": pa.array([], pa.bool_()),
    "chunked": pa.chunked_array([PATTERN[:5], [], PATTERN[5:]]),
    "chunked, none": pa.chunked_array([], pa.bool_()),
    "numpy": np.array([True, False, True] * 50),
    "numpy, strided": np.array([[True, False], [False, False]] * 50)[::2, ::-1],
    "numpy, empty": np.zeros((0, 3), bool),
    "pandas": pd.Series([True, False] * 40, index=range(80, 0, -1), name="q"),
    "pandas, nullable": pd.Series([True, None] * 40, dtype="boolean"),
}


@pytest.mark.parametrize("categories", [[False, True], [True, False]])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_boolean_column_tells_the_truth_where_it_must(kind, categories):
    """At epsilon 60 a row lies with probability 1e-26, and a null answers either."""
    values = KINDS[kind]
    answers = dpf.randomized_response(values, categories, 60.0, random=SeededRandom(1))
    assert type(answers) is type(values)
    if isinstance(values, np.ndarray):
        assert answers.dtype == bool
        assert np.array_equal(answers, values)
        return
    told, given = truth(answers), truth(values)
    assert len(told) == len(given)
    assert None not in told
    assert all(one == other for one, other in zip(told, given, strict=True) if other is not None)
    nulls = [one for one, other in zip(told, given, strict=True) if other is None]
    assert len(nulls) < 20 or 0 < sum(nulls) < len(nulls)


def test_names_and_indices_stay():
    assert dpf.randomized_response(KINDS["polars"], [False, True], 1.0).name == "a"
    answers = dpf.randomized_response(KINDS["pandas"], [False, True], 1.0)
    assert answers.index.equals(KINDS["pandas"].index)


def test_no_bit_of_the_input_leaves_beside_the_answers():
    """Soundness rule 20: not what lies under nulls, before a slice, or after the last row."""
    data = np.full(8, 255, np.uint8)
    hidden = pa.Array.from_buffers(pa.bool_(), 11, [pa.py_buffer(np.zeros(8, np.uint8)), pa.py_buffer(data)], -1, 5)
    answers = dpf.randomized_response(hidden, [False, True], 60.0, random=SeededRandom(2))
    assert answers.offset == 0
    assert answers.buffers()[1].size == 2
    assert answers.buffers()[1].to_pybytes()[1] < 8
    assert 0 < answers.to_pylist().count(True) < 11


@pytest.mark.parametrize("length", [1, 63, 64, 65, BLOCK_ROWS - 1, BLOCK_ROWS + 1, 3 * BLOCK_ROWS + 77])
def test_packed_bits_bytes_and_numbers_agree_and_threads_do_not_matter(length):
    bits = np.random.default_rng(length).integers(0, 2, length)

    def ask(values, categories, threads=None):
        return dpf.randomized_response(values, categories, 0.7, random=SeededRandom(8), threads=threads)

    wanted = ask(bits, 2).tolist()
    assert ask(bits.astype("int32"), 2, 2).tolist() == wanted
    assert ask(bits.astype("uint32"), [0, 1], 2).tolist() == wanted
    assert ask(bits.astype(bool), [False, True], 2).tolist() == wanted
    for series in (pl.Series(bits.astype(bool)), pl.Series([False, *bits.astype(bool)])[1:]):
        assert ask(series, [False, True], 2).cast(pl.Int64).to_list() == wanted


def test_the_warner_coin_version_of_the_book():
    """Row 2.3-1: at epsilon = ln 3 a row tells the truth with probability 3/4."""
    chance = lie_chance(Fraction("1.098612288668109691"))
    assert abs(float(Fraction(chance.first << 64 | chance.following, 2**72)) - 0.25) < 1e-15
    n = 400_000
    answers = dpf.randomized_response(np.ones(n, int), 2, 1.0986122886681098, random=SeededRandom(4))
    assert abs(answers.mean() - 0.75) < 6 * (3 / 16 / n) ** 0.5


def test_numbers_that_are_no_bit_answer_either():
    """Also those that are 0 or 1 in their lowest byte alone."""
    values = np.array([256, -1, 2**40, -(2**63), 257] * 2000)
    answers = dpf.randomized_response(values, 2, 60.0, random=SeededRandom(4))
    assert set(answers.tolist()) == {0, 1}
    assert abs(answers.mean() - 0.5) < 0.03
