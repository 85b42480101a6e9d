"""Rows of every shape: dense, lists of Polars and Arrow, flat columns with offsets or groups; one word a candidate."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from noise.goodness import rejects

import dpfast as dpf
from dpfast.errors import DataError
from dpfast.mechanisms.selection import argmax as selection
from dpfast.mechanisms.selection.argmax import select_rows
from dpfast.mechanisms.selection.candidates import borrow_candidates
from dpfast.mechanisms.selection.noisy_max import report_noisy_max
from dpfast.mechanisms.selection.probabilities import selection_probabilities
from dpfast.testing import SeededRandom

from .oracles import KINDS, MARITAL, ChosenKeystream

MECHANISMS = [dpf.exponential, dpf.permute_and_flip, report_noisy_max]
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def ragged(lengths, seed, spread=3.0):
    """Return scores and offsets of rows of these lengths."""
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return np.random.default_rng(seed).standard_normal(offsets[-1]) * spread, offsets


def as_lists(scores, offsets, kind):
    small, large = pa.array(offsets, pa.int32()), pa.array(offsets, pa.int64())
    array = pa.LargeListArray.from_arrays(large, scores)
    half = len(array) // 2
    return {
        "arrow list": pa.ListArray.from_arrays(small, scores),
        "arrow large list": array,
        "arrow chunks": pa.chunked_array([array[:half], array[half:]]),
        "arrow slice": pa.concat_arrays([array[:2], array])[2:],
        "polars": pl.Series("scores", array),
        "polars chunks": pl.concat([pl.Series(array[:half]), pl.Series(array[half:])], rechunk=False),
    }[kind]


LISTS = ["arrow list", "arrow large list", "arrow chunks", "arrow slice", "polars", "polars chunks"]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("kind", LISTS)
def test_lists_select_as_flat_columns_do(mechanism, kind, seed):
    """The same words, whatever holds the scores; the kind given comes back."""
    lengths = np.random.default_rng(seed).integers(1, 40, 500)
    scores, offsets = ragged(lengths, seed)
    flat = mechanism(scores, 1.0, offsets=offsets, random=SeededRandom(seed))
    lists = as_lists(scores, offsets, kind)
    won = mechanism(lists, 1.0, random=SeededRandom(seed))
    assert type(won) is (pa.Int64Array if kind == "arrow slice" or isinstance(lists, pa.Array) else type(lists))
    assert np.array_equal(np.asarray(won) + offsets[:-1], flat)
    if kind == "polars":
        assert won.name == "scores"
        assert won.dtype == pl.Int64


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_rows_of_equal_length(mechanism, seed):
    rows = np.random.default_rng(seed).standard_normal((300, 7))
    expected = mechanism(rows, 1.0, random=SeededRandom(seed))
    flat = pa.array(rows.ravel())
    for given in (
        pl.Series(rows.tolist()),
        pl.Series(rows.tolist(), dtype=pl.Array(pl.Float64, 7)),
        pa.FixedSizeListArray.from_arrays(flat, 7),
        pa.concat_arrays([pa.FixedSizeListArray.from_arrays(flat, 7)] * 2)[300:],
    ):
        assert np.array_equal(mechanism(given, 1.0, random=SeededRandom(seed)), expected)
    numbers = np.arange(300) * 7 + expected
    assert np.array_equal(mechanism(rows.ravel(), 1.0, offsets=np.arange(301) * 7, random=SeededRandom(seed)), numbers)
    groups = np.repeat(np.arange(300), 7)
    assert np.array_equal(mechanism(rows.ravel(), 1.0, groups=groups, random=SeededRandom(seed)), numbers)


@every_kind
@pytest.mark.parametrize("longest", [3, 20, 30, 300, 9000])
def test_fast_path_is_the_exact_path_on_ragged_rows(kind, longest, seed, monkeypatch):
    """Rows of 0 to many candidates, over the ends of blocks and chunks, with a slope a row and few distinct scores."""
    monkeypatch.setattr(selection, "CHUNK", 4096)
    generator = np.random.default_rng(seed)
    lengths = generator.integers(0, longest + 1, max(8, 12_000 // longest))
    scores, offsets = ragged(lengths, seed)
    for given, a in ((scores, 1.0), (np.round(scores), np.exp2(generator.uniform(-9, 9, lengths.size)))):
        candidates = borrow_candidates(pl.Series(given), offsets=offsets)
        fast = select_rows(candidates, a, kind, SeededRandom(seed))
        assert np.array_equal(fast, select_rows(candidates, a, kind, SeededRandom(seed), refine_all=True))
        assert np.array_equal(fast < 0, lengths == 0)
        assert ((fast >= offsets[:-1]) & (fast < offsets[1:]) | (lengths == 0)).all()


@every_kind
def test_results_do_not_depend_on_chunks(kind, monkeypatch, seed):
    generator = np.random.default_rng(seed)
    words = generator.integers(0, 2**32, 30_000)
    words[generator.random(words.size) < 0.01] = 99
    lengths = generator.integers(0, 100, 2000)
    offsets = np.concatenate([[0], np.minimum(np.cumsum(lengths), words.size)])
    offsets[-1] = words.size
    scores = pl.Series(generator.integers(0, 3, words.size))
    monkeypatch.setattr(selection, "Keystream", ChosenKeystream(words))
    results = set()
    for chunk in (64, 999, 4096, 65_536):
        monkeypatch.setattr(selection, "CHUNK", chunk)
        candidates = borrow_candidates(scores, offsets=offsets)
        results.add(tuple(select_rows(candidates, 1.0, kind, SeededRandom(0)).tolist()))
    assert len(results) == 1


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_results_do_not_depend_on_threads(mechanism, seed):
    scores = np.random.default_rng(seed).standard_normal(900_000)
    for given in (scores, scores.reshape(-1, 100), pl.Series(scores.reshape(-1, 3))):
        won = [mechanism(given, 1.0, random=SeededRandom(seed), threads=threads) for threads in (1, 2, 8, None)]
        assert all(np.array_equal(won[0], other) for other in won)
    scores[700_000] = np.nan
    for threads in (1, 8):
        with pytest.raises(DataError, match=r"row 7000, candidate 0 is NaN"):
            mechanism(scores.reshape(-1, 100), 1.0, threads=threads)


@pytest.mark.parametrize("kind", LISTS)
def test_rows_without_candidates_are_null(kind):
    """Null lists, empty lists, lists of nulls; what lies under a null list is no candidate."""
    rows = [[1.0, None, 900.0], None, [], [None, None], [None, 7.0], [5.0]]
    lists = pa.array(rows, pa.large_list(pa.float64()))
    if kind == "arrow list":
        lists = lists.cast(pa.list_(pa.float64()))
    if "chunks" in kind:
        lists = pa.chunked_array([lists[:2], lists[2:]])
    if "slice" in kind:
        lists = pa.concat_arrays([lists[3:], lists])[3:]
    won = dpf.exponential(pl.Series(lists) if "polars" in kind else lists, 1.0)
    assert (won.to_list() if "polars" in kind else won.to_pylist()) == [2, None, None, None, 1, 0]


def test_memory_under_null_lists_is_not_read(seed):
    elements = pa.array([1.0, 2.0, np.nan, 1e300, 5.0, 4.0])
    mask = pa.array([False, True, False])
    lists = pa.LargeListArray.from_arrays(pa.array([0, 2, 4, 6], pa.int64()), elements, mask=mask)
    fixed = pa.FixedSizeListArray.from_arrays(elements, 2, mask=mask)
    for given in (lists, fixed, pl.Series(lists), pl.Series(fixed)):
        candidates = borrow_candidates(given)
        assert candidates.offsets.tolist() == [0, 2, 2, 4]
        assert candidates.block(0, 4).tolist() == [1.0, 2.0, 5.0, 4.0]
        assert list(dpf.exponential(given, 100.0)) == [1, None, 0] if isinstance(given, pl.Series) else True


def test_elements_without_nulls_are_read_in_place():
    scores, offsets = ragged([3, 4, 5], 1)
    lists = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), scores)
    for given in (lists, pa.chunked_array([lists]), pl.Series(lists)):
        block = borrow_candidates(given).block(0, 12)
        address = pa.chunked_array(given).chunk(0).values.buffers()[1].address if isinstance(given, pl.Series) else 0
        assert np.shares_memory(block, scores) or block.ctypes.data == address


def test_groups_in_any_order(seed):
    """Ascending numbers, the rows of each in their order; sparse and negative numbers as well."""
    generator = np.random.default_rng(seed)
    numbers = generator.integers(-30, 50, 2000)
    scores = generator.standard_normal(2000) * 3
    order = np.argsort(numbers, kind="stable")
    expected = order[dpf.exponential(scores[order], 1.0, groups=numbers[order], random=SeededRandom(seed))]
    for groups in (numbers, numbers * 10**12, pl.Series(numbers), pa.array(numbers, pa.int32()), numbers.tolist()):
        won = dpf.exponential(scores, 1.0, groups=groups, random=SeededRandom(seed))
        assert np.array_equal(won, expected)
        assert np.array_equal(numbers[won], np.unique(numbers))
    assert isinstance(dpf.exponential(pl.Series(scores), 1.0, groups=numbers), pl.Series)


def test_epsilon_and_sensitivity_of_each_row(seed):
    """At epsilon 1000 the best wins, at epsilon 1e-9 anyone does: by row, for rows of any length."""
    lengths = np.random.default_rng(seed).integers(2, 60, 20_000)
    scores, offsets = ragged(lengths, seed)
    sharp = np.arange(lengths.size) % 2 == 0
    lists = as_lists(np.round(scores), offsets, "polars")
    best = (lists.list.arg_max() == dpf.exponential(lists, np.where(sharp, 1e6, 1e-9))).to_numpy()
    top = lists.list.max()
    alone = (lists.explode() == top.gather(np.repeat(np.arange(lengths.size), lengths))).to_numpy()
    unique = np.add.reduceat(alone, offsets[:-1]) == 1
    assert best[sharp & unique].all()
    assert 0.02 < best[~sharp].mean() < 0.2
    width = np.where(sharp, 1e-6, 1e9)
    assert (lists.list.arg_max() == dpf.exponential(lists, 1.0, width)).to_numpy()[sharp & unique].all()


@pytest.mark.parametrize("name", ["exponential", "permute_and_flip"])
def test_probabilities_in_ragged_rows(name):
    """The book's seven candidates, between rows of other lengths: the exact probabilities. False-failure rate 1e-12."""
    draws = 150_000
    row = [*MARITAL.tolist()]
    pattern = [row, [3.0], row[:2], row[::-1], [], row]
    lists = pl.Series(pattern * (draws // len(pattern)))
    won = getattr(dpf, name)(lists, 1.0).to_numpy()
    exact = selection_probabilities(MARITAL, 1.0, mechanism=name)
    for start, expected in ((0, exact), (3, exact[::-1]), (2, selection_probabilities(row[:2], 1.0, mechanism=name))):
        counts = np.bincount(won[start :: len(pattern)].astype(np.int64), minlength=len(expected))
        trials = int(counts.sum())
        events = [
            (f"candidate {i}", int(n), trials, float(p)) for i, (n, p) in enumerate(zip(counts, expected, strict=True))
        ]
        assert not rejects(events)
    assert np.isnan(won[4 :: len(pattern)]).all()
    assert (won[1 :: len(pattern)] == 0).all()


def test_every_candidate_uses_a_word_whatever_the_scores(monkeypatch):
    """Draw counts depend on the shape alone, for lists as for arrays."""
    drawn = []
    fill = selection.Keystream(bytes(32)).words(0).__class__.fill

    def spy(self, chunk, buffer):
        drawn.append((chunk, buffer.size))
        fill(self, chunk, buffer)

    monkeypatch.setattr("dpfast.randomness.Words.fill", spy)
    counts = set()
    offsets = np.arange(0, 70_001, 7)
    for scores in (np.zeros(70_000), np.arange(70_000.0), np.full(70_000, -1e300)):
        for call in (
            lambda given: dpf.exponential(given, 1.0, threads=1),
            lambda given: dpf.noisy_top_k(given, 3, 1.0, threads=1),
            lambda given: dpf.noisy_max_with_gap(given, 1.0, threads=1),
        ):
            drawn.clear()
            call(as_lists(scores, offsets, "polars"))
            counts.add(tuple(drawn))
    assert counts == {((0, 65_536), (1, 70_000 - 65_536))}


class TestCandidates:
    """The winners' values, in the kind that these were given in."""

    names = ("a", "b", "c", "d", "e")

    def test_of_one_column(self):
        scores = [0.0, 0.0, 1e6, 0.0, 0.0]
        for values in (list(self.names), self.names, np.array(self.names), pl.Series(self.names), pa.array(self.names)):
            assert dpf.exponential(scores, 1.0, candidates=values) == "c"
        assert dpf.exponential(pl.Series(scores), 1.0, candidates=pd.Series(self.names).to_numpy()) == "c"
        for index in ([4, 3, 2, 1, 0], [1, 2, 3, 4, 0], [9] * 5, list("vwxyz")):
            assert dpf.exponential(scores, 1.0, candidates=pd.Series(self.names, index=index)) == "c"

    def test_shared_by_rows(self):
        scores = np.array([[0, 1e6, 0], [1e6, 0, 0]])
        assert dpf.exponential(scores, 1.0, candidates=pl.Series(["a", "b", "c"])).to_list() == ["b", "a"]
        assert dpf.exponential(scores, 1.0, candidates=np.array([5, 6, 7])).tolist() == [6, 5]
        assert dpf.exponential(scores, 1.0, candidates=["a", "b", "c"]) == ["b", "a"]
        lists = pl.Series([[0, 10**6], None, [10**6, 0, 0]])
        assert dpf.exponential(lists, 1.0, candidates=pl.Series(["a", "b", "c"])).to_list() == ["b", None, "a"]

    def test_of_each_row(self):
        scores = np.array([[0, 1e6, 0], [1e6, 0, 0]])
        assert dpf.exponential(scores, 1.0, candidates=np.arange(6).reshape(2, 3)).tolist() == [1, 3]
        nested = [["a", "b", "c"], ["d", "e", "f"]]
        assert dpf.exponential(scores, 1.0, candidates=nested) == ["b", "d"]
        assert dpf.noisy_top_k(scores, 1, 1.0, candidates=nested) == [["b"], ["d"]]
        pairs = [(1, 2), (3, 4), (5, 6)]
        assert dpf.exponential(scores, 1.0, candidates=pairs) == [(3, 4), (1, 2)]
        names = [["a", "b"], None, ["c"], [], ["d", None]]
        lists = pl.Series([[0, 10**6], None, [5], [], [0, 10**6]])
        won = dpf.exponential(lists, 1.0, candidates=pl.Series("names", names))
        assert won.to_list() == ["b", None, "c", None, None]
        assert won.name == "names"
        assert dpf.exponential(lists, 1.0, candidates=pa.array(names)).to_pylist() == ["b", None, "c", None, None]
        days = pl.Series([[1, 2], [3]]).cast(pl.List(pl.Date))
        assert dpf.exponential(pl.Series([[0, 10**6], [1]]), 1.0, candidates=days).dtype == pl.Date

    def test_of_a_flat_column(self):
        scores = [0, 10**6, 5, 10**6, 0]
        for groups, expected in (([0, 0, 0, 1, 1], ["b", "d"]), ([1, 0, 0, 1, 1], ["b", "d"])):
            won = dpf.exponential(scores, 1.0, groups=groups, candidates=pl.Series(self.names))
            assert won.to_list() == expected
        assert dpf.exponential(scores, 1.0, offsets=[0, 3, 5], candidates=list(self.names)) == ["b", "d"]
        assert dpf.exponential(scores, 1.0, groups=[0] * 5, candidates=pd.Series(self.names)).isin(["b", "d"]).all()
