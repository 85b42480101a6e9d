"""DAWA: exact deviations, the partition of least cost, and what neighbours do to both."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import dpfast as dpf
from dpfast.errors import DataError, ParameterError
from dpfast.kernels.histograms.joined_buckets import join_buckets
from dpfast.mechanisms.noise import integer_noise as noise
from dpfast.mechanisms.noise.half_widths import grid_of_integers
from dpfast.mechanisms.noise.one_sided import lowered
from dpfast.synthesis.histograms import dawa as module
from dpfast.synthesis.histograms.dawa import interval_deviations, partition, partition_scale
from dpfast.synthesis.histograms.joining import joined
from dpfast.testing import SeededRandom

counts_of_cells = st.lists(st.integers(0, 40), min_size=1, max_size=40).map(lambda cells: np.array(cells, np.int64))


def intervals(cells: int) -> list[tuple[int, int]]:
    """Give (start, length) of every interval, in the order of the costs."""
    found = [(start, 1) for start in range(cells)]
    length = 2
    while length <= cells:
        found += [(start, length) for start in range(0, cells - length + 1, length // 2)]
        length *= 2
    return found


def naive_partition(costs: np.ndarray, cells: int, prices: list[int]) -> list[int]:
    """Return the edges of the best partition, of equals the one with the shorter last interval, by trying all."""
    ending: dict[int, list[tuple[int, int]]] = {}
    for (start, length), cost in zip(intervals(cells), costs.tolist(), strict=True):
        ending.setdefault(start + length, []).append((start, cost + prices[length.bit_length() - 1]))

    def best(end: int) -> tuple[int, list[int]]:
        if end == 0:
            return 0, [0]
        options = [(total + cost, end - start, edges) for start, cost in ending[end] for total, edges in [best(start)]]
        total, _, edges = min(options, key=lambda option: option[:2])
        return total, [*edges, end]

    return best(cells)[1]


@given(counts_of_cells)
@settings(deadline=None, max_examples=60)
def test_deviations_are_the_distances_from_the_median(counts):
    costs, firsts = interval_deviations(counts)
    expected = [
        int(np.abs(counts[start : start + length] - np.sort(counts[start : start + length])[length // 2]).sum())
        for start, length in intervals(counts.size)
    ]
    assert costs.tolist() == expected
    lengths = [length for _, length in intervals(counts.size)]
    assert firsts.tolist() == [lengths.index(2**level) for level in range(len(firsts))]


@given(counts_of_cells, st.data())
@settings(deadline=None, max_examples=60)
def test_one_record_moves_a_deviation_by_one_and_only_where_it_is(counts, data):
    """The sensitivity that the scale is made for, by brute force: at most 1, of single cells 0."""
    cell = data.draw(st.integers(0, counts.size - 1))
    more = counts.copy()
    more[cell] += 1
    moved = interval_deviations(more)[0] - interval_deviations(counts)[0]
    within = [start <= cell < start + length for start, length in intervals(counts.size)]
    longer = np.array([length > 1 for _, length in intervals(counts.size)])
    assert (np.abs(moved) == np.where(within & longer, 1, 0)).all(), "an even number of cells: exactly 1"


@given(st.integers(1, 12), st.lists(st.integers(0, 6), min_size=4, max_size=4), st.data())
@settings(deadline=None, max_examples=80)
def test_the_partition_is_the_best_and_ties_go_by_a_fixed_order(cells, prices, data):
    lengths = [length for _, length in intervals(cells)]
    costs = np.array(data.draw(st.lists(st.integers(-5, 5), min_size=len(lengths), max_size=len(lengths))))
    firsts = np.array([lengths.index(2**level) for level in range(cells.bit_length())])
    assert partition(costs, firsts, cells, np.array(prices)).tolist() == naive_partition(costs, cells, prices)


def moved_noise(noise: np.ndarray, edges: np.ndarray, cells: list[int], shift: int, single: int) -> np.ndarray:
    """Lower the noise of the buckets that hold some cells, once for each, that of single cells by less."""
    places = {interval: place for place, interval in enumerate(intervals(int(edges[-1])))}
    lowered = noise.copy()
    for cell in cells:
        bucket = np.searchsorted(edges, cell, side="right") - 1
        length = edges[bucket + 1] - edges[bucket]
        lowered[places[edges[bucket], length]] -= shift if length > 1 else single
    return lowered


def alignments(seed: int, shift: int, single: int, neighbors: str, *, floor: bool = False) -> tuple[int, int]:
    """Count how often the neighbour's partition is the same once the noise is moved as the proof says, and how not.

    With a floor noisy costs below 0 count as 0, which no proof allows for.
    """
    generator = np.random.default_rng(seed)
    same = other = 0
    for _ in range(4_000):
        cells = int(generator.integers(2, 11))
        counts = generator.integers(0, 4, cells)
        neighbour = counts.copy()
        changed = generator.permutation(cells)[: 1 if neighbors == "add_remove" else 2]
        neighbour[changed[0]] += 1
        if neighbors == "replace":
            counts[changed[1]] += 1
        elif generator.integers(2):
            counts, neighbour = neighbour, counts
        (costs, firsts), (others, _) = interval_deviations(counts), interval_deviations(neighbour)
        noise, prices = generator.integers(-6, 1, costs.size), generator.integers(0, 4, firsts.size)
        least = 0 if floor else -100
        edges = partition(np.maximum(costs + noise, least), firsts, cells, prices)
        moved = moved_noise(noise, edges, changed.tolist(), shift, single)
        if partition(np.maximum(others + moved, least), firsts, cells, prices).tolist() == edges.tolist():
            same += 1
        else:
            other += 1
    return same, other


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
def test_noise_moved_by_two_hides_a_record(seed, neighbors):
    """The proof of `partition_scale` on small counts and noise, where ties are common; for single cells 1 is enough."""
    assert alignments(seed, 2, 1, neighbors)[1] == 0


def test_less_would_not_do(seed):
    """The mutants: noise for half the sensitivity, single cells without noise, noisy costs below 0 taken for 0."""
    assert alignments(seed, 1, 1, "add_remove")[1] > 0
    assert alignments(seed, 2, 0, "add_remove")[1] > 0
    assert alignments(seed, 2, 1, "add_remove", floor=True)[1] > 0


def test_what_is_lowered_is_lowered_by_geometric_numbers(seed):
    """The law of `lowered`, by a chi-square test at 1e-9, which the magnitudes of Laplace noise do not pass."""
    drawn = {
        "geometric": -lowered(np.zeros(200_000, np.int64), 3.0, random=SeededRandom(seed)),
        "laplace": np.abs(dpf.laplace(np.zeros(200_000, np.int64), 3.0, random=SeededRandom(seed))),
    }
    q, bins = np.exp(-1 / 3.0), 25
    expected = 200_000 * np.append((1 - q) * q ** np.arange(bins), q**bins)
    found = {
        name: ((np.bincount(np.minimum(draws, bins), minlength=bins + 1) - expected) ** 2 / expected).sum()
        for name, draws in drawn.items()
    }
    assert drawn["geometric"].min() == 0
    assert found["geometric"] < stats.chi2.isf(1e-9, bins) < found["laplace"]


def test_single_cells_that_are_certain_lose_more_than_is_claimed():
    """Why single cells need noise: the exact privacy loss of the partition into single cells where they have none.

    It is chosen if no longer interval costs less than its cells, with Laplace noise of the original's scale. These are
    independent events, so that every interval with the record adds to the loss.
    """
    cells, epsilon, price = 16, 1.0, 1.0
    counts = np.full(cells, 5)
    more = counts + (np.arange(cells) == 8)

    def log_probability(counts: np.ndarray) -> float:
        total = 0.0
        for start in range(cells):
            for length in (2, 4, 8, 16):
                if start + length <= cells:
                    part = counts[start : start + length]
                    scale = (2 - 1 / length - 1 / cells) / epsilon
                    cost = np.abs(part - part.mean()).sum()
                    total += stats.laplace.logsf(price * (length - 1) - cost, scale=scale)
        return total

    assert log_probability(more) - log_probability(counts) == pytest.approx(13.67 * epsilon, abs=0.01)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 5)), min_size=1, max_size=12), st.floats(0.1, 20))
@settings(deadline=None, max_examples=80)
def test_joined_buckets_are_the_cut_of_least_cost(buckets, price):
    counts, widths = (np.array(column, float) for column in zip(*buckets, strict=True))
    best, back, means = np.empty(counts.size + 1), np.empty(counts.size + 1, np.int64), np.empty(counts.size + 1)
    join_buckets(counts, widths, price, 256, best, back, means)

    def cost(first: int, last: int) -> tuple[float, float]:
        part, wide = counts[first:last], widths[first:last]
        height = part @ wide / (wide @ wide)
        return float(((part - height * wide) ** 2).sum()) + price, height

    least = [0.0]
    for end in range(1, counts.size + 1):
        least.append(min(least[start] + cost(start, end)[0] for start in range(end)))
    assert best[1:] == pytest.approx(least[1:], rel=1e-9, abs=1e-9)
    end = counts.size
    while end:
        assert means[end] == pytest.approx(cost(back[end], end)[1], abs=1e-9)
        end = back[end]


def test_even_cells_that_were_measured_apart_are_joined():
    """A level line of 300 buckets with noise becomes one or a few, and a step of 40 deviations stays where it is."""
    noise = np.random.default_rng(1).laplace(0, 1, 300)
    counts = np.round(np.repeat([1_000.0, 1_400.0], [200, 100]) + 10 * noise)
    edges, heights = joined(counts, np.arange(301), 10 * np.sqrt(2))
    assert edges[0] == 0
    assert edges[-1] == 300
    assert 200 in edges
    assert edges.size <= 12
    assert abs(np.repeat(heights, np.diff(edges))[:200].mean() - 1_000) < 5


@pytest.mark.parametrize(("neighbors", "moved"), [("add_remove", 1), ("replace", 2)])
def test_the_noise_is_what_the_proof_asks_for(monkeypatch, neighbors, moved):
    """Soundness rules 10 and 25: scales in rationals, on integers; the shares make no more than the whole."""
    drawn = []

    def recorded(values, scale, **keywords):
        drawn.append((values, scale))
        return dpf.laplace(values, scale, **keywords)

    def recorded_costs(values, scale, **keywords):
        drawn.append((values, scale))
        return lowered(values, scale, **keywords)

    monkeypatch.setattr(module, "lowered", recorded_costs)
    monkeypatch.setattr(noise, "laplace", recorded)
    counts = np.repeat([3, 500, 9], [100, 60, 96])
    estimate = dpf.dawa(counts, dpf.workloads.prefix(256), epsilon=0.3, neighbors=neighbors, random=SeededRandom(1))
    looked = [drawn.pop(0)] if neighbors == "add_remove" else []  # else the number of records is public
    assert [column.tolist() for column, _ in looked] == [[31_164]] * len(looked)
    (singles, half), (costs, scale), *measured = drawn
    assert costs.dtype == singles.dtype == np.int64
    assert [*singles.tolist(), *costs.tolist()] == interval_deviations(counts)[0].tolist()
    assert singles.size == 256
    assert 2 * half == scale, "single cells are lowered by 1 where others are by 2"
    spent = 2 * moved / Fraction(scale) + sum(1 / Fraction(of_records) for _, of_records in looked)
    levels = len(measured)
    assert all(column.dtype == np.int64 for column, _ in measured)
    assert {scale for _, scale in measured} == {measured[0][1]}
    spent += moved * levels / Fraction(measured[0][1])
    assert Fraction(299, 1000) < spent <= Fraction(3, 10)
    assert estimate.rounds["cells"].sum() == 256
    assert estimate.rounds.columns == ["start", "cells", "estimate"]


def test_zcdp_budgets_make_the_partition_pure():
    estimate = dpf.dawa(np.full(64, 900), dpf.workloads.prefix(64), rho=0.5, random=SeededRandom(2))
    assert estimate.spent.rho == 0.5
    assert abs(estimate.answers[-1] - 64 * 900) < 400


def test_a_level_histogram_becomes_a_few_buckets(seed):
    counts = np.repeat([0, 4_000, 100], [300, 100, 624])
    estimate = dpf.dawa(counts, epsilon=1.0, random=SeededRandom(seed))
    assert estimate.histogram.shape == (1024,)
    assert estimate.histogram.min() >= 0
    assert estimate.rounds.height < 100
    assert np.abs(estimate.histogram - counts).mean() < 10


def test_the_same_seed_gives_the_same_estimate_whatever_the_threads():
    counts = np.random.default_rng(3).poisson(9, 2048)
    one, two = (dpf.dawa(counts, epsilon=1.0, random=SeededRandom(5), threads=threads) for threads in (1, 2))
    assert one.histogram.tolist() == two.histogram.tolist()


def test_a_ledger_is_charged_the_whole_budget_and_counts_out_of_range_are_no_error():
    ledger = dpf.Ledger(epsilon=1.0)
    estimate = dpf.dawa(np.array([-4, 2**62, 7, 7]), epsilon=0.25, ledger=ledger)
    assert ledger.spent.epsilon == 0.25
    assert estimate.spent.epsilon == 0.25
    assert np.isfinite(estimate.histogram).all()
    rho = dpf.Ledger(epsilon=4.0, delta=1e-6, accountant="zcdp")
    dpf.dawa(np.full(8, 5), rho=0.25, ledger=rho)
    assert 0.24 < rho.spent.rho <= 0.25


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": None}, "epsilon"),
        ({"epsilon": 1, "rho": 1}, "rho"),
        ({"epsilon": 1e-7}, "epsilon"),
        ({"epsilon": 1, "workload": dpf.workloads.prefix(5)}, "histogram"),
        ({"epsilon": 1, "histogram": np.ones((2, 2), int)}, "workload"),
    ],
)
def test_mistakes_are_named(arguments, named):
    with pytest.raises(ParameterError) as caught:
        dpf.dawa(**{"histogram": pl.Series([1, 2, 3, 4]), **arguments})
    assert str(caught.value).startswith(named)
    assert "\n" not in str(caught.value)


def test_negative_counts_are_refused_without_a_ledger():
    with pytest.raises(DataError, match="from 0 to"):
        dpf.dawa([1, -2, 3], epsilon=1.0)


def test_scales_stay_where_noise_is_of_whole_numbers():
    """On a coarser grid a record could move a cost by a step of it, which the proof does not allow for."""
    smallest = 2.1e-7
    assert grid_of_integers(partition_scale(0.3 * smallest, 1)) == 1
    dpf.dawa([5, 5, 5], epsilon=smallest)
    with pytest.raises(ParameterError, match="epsilon must be larger"):
        dpf.dawa([5, 5, 5], epsilon=1.9e-7)
