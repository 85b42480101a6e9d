"""DAWA: exact deviations, the partition of least cost, and what neighbours do to both."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpfast as dpf
from dpfast.errors import DataError, ParameterError
from dpfast.mechanisms.noise import integer_noise as noise
from dpfast.mechanisms.noise.half_widths import grid_of_integers
from dpfast.synthesis.histograms import dawa as module
from dpfast.synthesis.histograms.dawa import interval_deviations, partition, partition_scale
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


def naive_partition(costs: np.ndarray, cells: int, penalty: int) -> list[int]:
    """Return the edges of the best partition, of equals the one with the shorter last interval, by trying all."""
    ending: dict[int, list[tuple[int, int]]] = {}
    for (start, length), cost in zip(intervals(cells), costs.tolist(), strict=True):
        ending.setdefault(start + length, []).append((start, cost + penalty))

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


@given(st.integers(1, 12), st.integers(0, 6), st.data())
@settings(deadline=None, max_examples=80)
def test_the_partition_is_the_best_and_ties_go_by_a_fixed_order(cells, penalty, data):
    lengths = [length for _, length in intervals(cells)]
    costs = np.array(data.draw(st.lists(st.integers(-5, 5), min_size=len(lengths), max_size=len(lengths))))
    firsts = np.array([lengths.index(2**level) for level in range(cells.bit_length())])
    assert partition(costs, firsts, cells, penalty).tolist() == naive_partition(costs, cells, penalty)


def moved_noise(noise: np.ndarray, edges: np.ndarray, cells: list[int], shift: int) -> np.ndarray:
    """Lower the noise of the buckets that hold some cells, once for each."""
    places = {interval: place for place, interval in enumerate(intervals(int(edges[-1])))}
    lowered = noise.copy()
    for cell in cells:
        bucket = np.searchsorted(edges, cell, side="right") - 1
        lowered[places[edges[bucket], edges[bucket + 1] - edges[bucket]]] -= shift
    return lowered


def alignments(seed: int, shift: int, neighbors: str, noisy_singles: bool = True) -> tuple[int, int]:
    """Count how often the neighbour's partition is the same once the noise is moved as the proof says, and how not."""
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
        noise = generator.integers(-3, 4, costs.size)
        if not noisy_singles:
            noise[:cells] = 0
        edges = partition(costs + noise, firsts, cells, 1)
        lowered = moved_noise(noise, edges, changed.tolist(), shift)
        if not noisy_singles:
            lowered[:cells] = 0
        if partition(others + lowered, firsts, cells, 1).tolist() == edges.tolist():
            same += 1
        else:
            other += 1
    return same, other


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
def test_noise_moved_by_two_hides_a_record(seed, neighbors):
    """The proof of `partition_scale`, held to small counts and noise, where ties are common."""
    assert alignments(seed, 2, neighbors)[1] == 0


def test_less_would_not_do(seed):
    """The mutants: noise for a sensitivity of half as much, and single cells without noise."""
    assert alignments(seed, 1, "add_remove")[1] > 0
    assert alignments(seed, 2, "add_remove", noisy_singles=False)[1] > 0


@pytest.mark.parametrize(("neighbors", "moved"), [("add_remove", 1), ("replace", 2)])
def test_the_noise_is_what_the_proof_asks_for(monkeypatch, neighbors, moved):
    """Soundness rules 10 and 25: scales in rationals, on integers; the shares make no more than the whole."""
    drawn = []

    def recorded(values, scale, **keywords):
        drawn.append((values, scale))
        return dpf.laplace(values, scale, **keywords)

    monkeypatch.setattr(module, "laplace", recorded)
    monkeypatch.setattr(noise, "laplace", recorded)
    counts = np.repeat([3, 500, 9], [100, 60, 96])
    estimate = dpf.dawa(counts, dpf.workloads.prefix(256), epsilon=0.3, neighbors=neighbors, random=SeededRandom(1))
    (costs, scale), *measured = drawn
    assert costs.dtype == np.int64
    assert costs.tolist() == interval_deviations(counts)[0].tolist()
    spent = 2 * moved / Fraction(scale)
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
    assert estimate.rounds.height < 400
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
    smallest = 1.2e-7
    assert grid_of_integers(partition_scale(0.5 * smallest, 1)) == 1
    dpf.dawa([5, 5, 5], epsilon=smallest)
    with pytest.raises(ParameterError, match="epsilon must be larger"):
        dpf.dawa([5, 5, 5], epsilon=9.0e-8)
