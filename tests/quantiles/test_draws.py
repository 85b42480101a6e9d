"""What is drawn: the fast path against ball arithmetic sample by sample, both against mpmath, and frequencies."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from noise.goodness import rejects

import dpfast as dpf
from dpfast.aggregation import grouped_points
from dpfast.aggregation.grouped_points import GroupedPoints
from dpfast.columns.ranks import PARTS
from dpfast.mechanisms.quantiles import nodes as quantile_nodes
from dpfast.mechanisms.quantiles import quantiles as quantiles_module
from dpfast.mechanisms.quantiles import tree as nodes
from dpfast.mechanisms.quantiles.nodes import draw_quantiles
from dpfast.mechanisms.quantiles.tree import Calibration, quantile_tree
from dpfast.testing import SeededRandom

from .oracles import chosen, distribution, transcripts


def grouped(lists, dtype=np.int32):
    sizes = np.array([len(values) for values in lists], np.int64)
    stops = np.cumsum(sizes)
    joined = np.concatenate([np.asarray(values, dtype) for values in lists]) if lists else np.empty(0, dtype)
    return GroupedPoints(joined.astype(dtype), stops - sizes, stops)


@pytest.fixture
def refined(monkeypatch):
    """Return a list that grows by one for every node that ball arithmetic decides."""
    seen = []
    exact = quantile_nodes.exact_draw

    def spy(*arguments):
        seen.append(arguments)
        return exact(*arguments)

    monkeypatch.setattr(quantile_nodes, "exact_draw", spy)
    return seen


def shapes(generator, points):
    """Return groups of values of every shape: empty, one, few, tied, spread, at the ends, many."""
    anywhere = generator.integers(1, points + 1, 700)
    return [
        [],
        [1],
        [points],
        [1, points],
        [points // 2 + 1] * 9,
        generator.integers(1, points + 1, 7),
        generator.integers(1, min(points, 4) + 1, 300),
        np.clip(np.rint(generator.normal(points / 3, points / 50, 900)), 1, points),
        anywhere,
        np.where(anywhere % 3 == 0, points // 2, anywhere),
        np.full(1500, 1),
        np.repeat([1, points // 3 + 1, points], [400, 300, 500]),
    ]


TREES = {"median": [0.5], "ends": [0.0, 1.0], "low": [0.0123456], "five": [0.05, 0.25, 0.5, 0.9, 0.99]}


def tree_of(quantiles):
    return quantile_tree([round(q * PARTS) for q in quantiles])


def calibrated(tree, epsilon=Fraction(1)):
    return Calibration(tree, epsilon, 1, "add_remove", alone=True)


@pytest.mark.parametrize("points", [2, 5, 661, 5000, 2**20 + 7, 2**33, 2**60 + 5])
@pytest.mark.parametrize("quantiles", TREES.values(), ids=TREES)
@pytest.mark.parametrize("epsilon", [Fraction(1, 10**9), Fraction(1, 20), Fraction(2), Fraction(300)])
def test_fast_and_exact_paths_agree_sample_by_sample(refined, points, quantiles, epsilon, seed):
    """Soundness rules 4, 5 and 8: the same words give the same points where every node goes to ball arithmetic.

    A node of B blocks is in doubt with a probability below 2 B (4000 + 2 B) 2**-53, here below 2**-27; two of 60 nodes
    are with one below 1e-13.
    """
    generator = np.random.default_rng(seed)
    lists = shapes(generator, points)
    dtype = np.int32 if points < 2**31 else np.int64
    tree = tree_of(quantiles)
    drawn = []
    for refine_all in (False, True):
        data = grouped(lists, dtype)
        arguments = (points, calibrated(tree, epsilon), SeededRandom(seed))
        drawn.append(draw_quantiles(data, *arguments, refine_all=refine_all))
        if not refine_all:
            assert len(refined) <= 1
            refined.clear()
    assert np.array_equal(*drawn)
    assert len(refined) == len(lists) * len(quantiles)
    assert drawn[0].min() >= 1
    assert drawn[0].max() <= points
    assert (np.diff(drawn[0], axis=1) >= 0).all(), "quantiles rise"


@pytest.mark.parametrize("quantiles", TREES.values(), ids=TREES)
@pytest.mark.parametrize("spread", [2, 10**3, 2**40])
def test_narrow_values_in_wide_bounds(refined, quantiles, spread, seed):
    """20,000 values in few of the first buckets, which are divided again: the same points as in ball arithmetic.

    Two of five nodes are in doubt with a probability below 1e-14: see above.
    """
    generator, points = np.random.default_rng(seed), 2**60 + 5
    values = points // 3 + np.rint(generator.normal(0, spread, 20_000)).astype(np.int64)
    values[:3] = 1, points, points // 3 + 2**50
    tree, drawn = tree_of(quantiles), []
    for refine_all in (False, True):
        data = grouped([values], np.int64)
        drawn.append(draw_quantiles(data, points, calibrated(tree), SeededRandom(seed), refine_all=refine_all))
        if not refine_all:
            assert len(refined) <= 1
    assert np.array_equal(*drawn)


class ChosenWords:
    """Stands in for `Keystream`: the words of each node's call, then what a test says they are continued by."""

    def __init__(self, words, extensions=None) -> None:
        self.chosen = np.asarray(words, np.uint64)
        self.extensions = extensions or {}
        self.read = []

    def __call__(self, key):
        return self

    def words(self, purpose):
        return self

    def fill(self, chunk, buffer):
        buffer[:] = self.chosen[chunk * buffer.size : (chunk + 1) * buffer.size]

    def extension(self, indices, depth):
        (index,) = indices
        self.read.append((index, depth))
        return ((self.extensions.get(index, 0) >> (1024 - 128 * (depth + 1))) % 2**128).to_bytes(16, "big")


@pytest.mark.parametrize("cells", [0, 8])
def test_words_choose_what_the_formula_says(monkeypatch, cells, seed):
    """U chooses the block and V the point, along the grid: against mpmath, for random words, data and slopes."""
    generator = np.random.default_rng(seed)
    monkeypatch.setattr(nodes, "CELLS", 8)
    for _ in range(120):
        points = int(generator.integers(2, 9))
        values = generator.integers(1, points + 1, int(generator.integers(0, 12))).tolist()
        parts = [int(generator.integers(0, PARTS + 1))]
        if cells:
            parts = sorted({*parts, int(generator.integers(0, PARTS + 1))})
        tree = quantile_tree(parts)
        words = [int.from_bytes(generator.bytes(8), "big") for _ in range(3 * len(parts))]
        monkeypatch.setattr(quantile_nodes, "Keystream", ChosenWords(words))
        drawn = draw_quantiles(grouped([values]), points, calibrated(tree), SeededRandom(1))
        node = tree.root
        slope = Fraction(calibrated(tree).slope(node)) * node.d
        u, v = (words[0] + Fraction(1, 2)) / 2**64, ((words[1] << 64 | words[2]) + Fraction(1, 2)) / 2**128
        y, _ = chosen(values, 1, points, Fraction(node.p, node.d), node.cells, slope, u, v)
        assert drawn[0, node.quantile] == y


@pytest.mark.parametrize("refine_all", [False, True])
def test_a_word_at_a_boundary_reads_on(monkeypatch, refined, refine_all):
    """Soundness rule 2: at U = 1/2 between two equal blocks the next bits decide, as deep as they are equal."""
    # One value of two points, rank 1/2: scores +1/2 and -1/2; two values, one at each: three blocks? No: both points.
    values, points = [1, 2], 2
    tree = tree_of([0.5])
    for bit, expected in ((0, 1), (1, 2)):
        # U = 2**63 2**-64 = 1/2 exactly is the boundary; just below it, all bits are ones.
        words = [2**63 - 1, 0, 0] if bit == 0 else [2**63, 0, 0]
        extension = {0: (2**1024 - 1) ^ (1 << 100) if bit == 0 else 1 << 100}
        keystream = ChosenWords(words, extension)
        monkeypatch.setattr(quantile_nodes, "Keystream", keystream)
        data = grouped([values])
        drawn = draw_quantiles(data, points, calibrated(tree), SeededRandom(1), refine_all=refine_all)
        assert drawn[0, 0] == expected
        assert max(depth for _, depth in keystream.read) >= 6
    assert len(refined) == 2


def test_a_place_at_a_boundary_reads_on(monkeypatch, refined):
    """V next to a third of three equal points: 128 bits leave it open, the 129th and later ones decide."""
    third = (2**128 - 1) // 3
    for word, extension, expected in ((third, 0, 1), (third, 2**1024 - 1, 2), (third + 1, 0, 2)):
        keystream = ChosenWords([12345, word >> 64, word % 2**64], {1: extension})
        monkeypatch.setattr(quantile_nodes, "Keystream", keystream)
        drawn = draw_quantiles(grouped([[]]), 3, calibrated(tree_of([0.5])), SeededRandom(1))
        assert drawn[0, 0] == expected
    assert len(refined) == 2


@pytest.mark.parametrize("groups", [1, 3, 1000])
@pytest.mark.parametrize("points", [50, 2**60])
def test_rows_are_sorted_by_group_whatever_waits(monkeypatch, groups, points, seed):
    """Points wait in rows of eight before they are written: as without, for full, part and empty rows."""
    generator = np.random.default_rng(seed)
    rows, blocks = [0, 1, 7, 8, 9, 3000], []
    for size in rows:
        slots = generator.integers(0, groups + 1, size).astype(np.uint32)
        blocks.append((slots, generator.integers(0, points, size)))

    def joined(most):
        monkeypatch.setattr(grouped_points, "_MOST_STAGED", most)
        collectors = [grouped_points.Collector(groups, points) for _ in range(2)]
        for i, (slots, numbers) in enumerate(blocks):
            collectors[i % 2].add(slots, numbers)
        return grouped_points.Collector.join(collectors)

    plain, staged = joined(0), joined(10**6)
    assert np.array_equal(plain.points, staged.points)
    assert np.array_equal(plain.stops, staged.stops)
    for group in range(groups):
        expected = [
            p for block in (blocks[0::2], blocks[1::2]) for slots, numbers in block for p in numbers[slots == group]
        ]
        own = staged.points[staged.starts[group] : staged.stops[group]].tolist()
        assert own == [p for p in expected if p]


def frequencies(values, points, q, epsilon, draws, **parameters):
    """Return how often each point is drawn for equal groups."""
    ids = np.repeat(np.arange(draws), len(values))
    column = np.tile(np.asarray(values, np.int64), draws)
    return dpf.quantiles(column, q, bounds=(1, points), epsilon=epsilon, groups=ids, group_count=draws, **parameters)


@pytest.mark.statistical
@pytest.mark.parametrize("values", [[], [2], [1, 1, 4], [2, 2, 2, 2, 5, 5]])
@pytest.mark.parametrize("q", [0.5, 0.0, 0.9])
def test_frequencies_of_one_quantile(values, q):
    """Exact probabilities of a grid of six points. False-failure rate 1e-12."""
    draws, points, epsilon = 60_000, 6, 1.5
    drawn = frequencies(values, points, q, epsilon, draws)
    exact = Fraction(str(q))
    slope = Fraction(3, 2) / max(exact, 1 - exact) / (1 if q == 0 else 2)
    expected = distribution(values, 1, points, exact, 0, slope)
    counts = np.bincount(drawn, minlength=points + 1)
    assert not rejects([(f"point {y}", int(counts[y]), draws, p) for (y, _), p in expected])


@pytest.mark.statistical
def test_frequencies_of_three_quantiles(monkeypatch):
    """Every outcome of three quantiles drawn by halves, cells among them. False-failure rate 1e-12."""
    monkeypatch.setattr(nodes, "CELLS", 4)
    values, points, draws = [1, 2, 2, 4], 4, 60_000
    drawn = frequencies(values, points, [0.25, 0.5, 0.75], 2.0, draws)
    tree = tree_of([0.25, 0.5, 0.75])
    share = Fraction(2) / len(tree.levels)
    expected = {}
    slopes = lambda node: Fraction(calibrated(tree, share).slope(node))  # noqa: E731
    for transcript, p in transcripts(values, 1, points, tree.root, slopes).items():
        outcome = tuple(y for _, y, _ in sorted(transcript))
        expected[outcome] = expected.get(outcome, 0) + p
    found, counts = np.unique(drawn, axis=0, return_counts=True)
    happened = {tuple(outcome): int(count) for outcome, count in zip(found.tolist(), counts, strict=True)}
    assert set(happened) <= set(expected)
    assert not rejects([(str(outcome), happened.get(outcome, 0), draws, p) for outcome, p in expected.items()])


def words_read(monkeypatch, module, quantiles):
    """Return the sequences of calls to a module's keystream over groups of values of every kind."""
    calls = []
    real = module.Keystream

    class Spy(real):
        def words(self, purpose):
            reader = super().words(purpose)

            class Reader:
                def fill(self, chunk, buffer):
                    calls.append((chunk, buffer.size, buffer.dtype))
                    reader.fill(chunk, buffer)

            return Reader()

    monkeypatch.setattr(module, "Keystream", Spy)
    seen = set()
    for values in (np.zeros(5), np.arange(2000.0), np.full(2000, np.nan), np.empty(0)):
        calls.clear()
        ids = np.arange(values.size) % 3
        dpf.quantiles(values, quantiles, bounds=(0, 100), epsilon=1, groups=ids, group_count=5)
        seen.add(tuple(calls))
    return seen


def test_words_do_not_depend_on_the_values(monkeypatch):
    """Three words a node and group, whatever is in the groups: the calls to the keystream are the same."""
    seen = words_read(monkeypatch, quantile_nodes, [0.1, 0.5, 0.9])
    assert seen == {tuple((chunk, 15, np.dtype(np.uint64)) for chunk in range(3))}


def test_results_do_not_depend_on_order_threads_or_chunks(monkeypatch, seed):
    """A group's points are a set: the order of rows and the number of threads change nothing."""
    generator = np.random.default_rng(seed)
    values, ids = generator.normal(0, 50, 600_000), generator.integers(0, 40, 600_000)
    order = generator.permutation(600_000)
    results = []
    for column, groups, threads in ((values, ids, None), (values[order], ids[order], 1)):
        if threads:
            for module in (quantile_nodes, quantiles_module):
                monkeypatch.setattr(module, "thread_count", lambda given, rows: 1)
        parameters = {"bounds": (-90, 200), "epsilon": 0.5, "groups": groups, "group_count": 40}
        results.append(dpf.quantiles(column, [0.1, 0.5, 0.6], **parameters, random=SeededRandom(seed)))
    assert np.array_equal(*results)
