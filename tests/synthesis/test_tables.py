"""Marginals whose noise is taken out: cells that have them, whatever the tables, and less error than the noise's."""

from __future__ import annotations

import numpy as np
import pytest

import dpfast as dpf
from dpfast.mechanisms.noise.integer_noise import gaussian_of_scale, laplace_of_scale
from dpfast.synthesis.histograms.denoising import denoised
from dpfast.synthesis.histograms.tables import _total as total_of
from dpfast.synthesis.histograms.tables import _variance_of_sum as variance_of_sum
from dpfast.synthesis.histograms.tables import cells_of_tables
from dpfast.synthesis.histograms.totals import nearest_of_total
from dpfast.testing import SeededRandom

NEXT_TO_NONE = laplace_of_scale(0.01, 1)


def tables(shape, sets, weights=None):
    return dpf.strategies.marginals(shape, sets, weights=weights)


@pytest.mark.parametrize(
    ("shape", "sets"),
    [((6, 5), [(0,), (1,)]), ((6, 5), [(), (0,), (1,)]), ((4, 1, 3), [(0, 2), (1,)]), ((4, 3, 2), [(2,)])],
    ids=str,
)
@pytest.mark.parametrize("records", [None, (7.0, 1e9), (10.0, 0.0)])
def test_tables_of_different_attributes_are_multiplied(shape, sets, records):
    """Without noise the cells have the tables, or the nearest with the number of records if that is known exactly."""
    generator = np.random.default_rng(3)
    counts = generator.integers(0, 9, shape)
    strategy = tables(shape, sets, [3, 2, 5][: len(sets)])
    cells = cells_of_tables(strategy, strategy.measure(counts), NEXT_TO_NONE, records)
    assert (cells >= 0.0).all()
    total = 10.0 if records == (10.0, 0.0) else counts.sum()
    for kept in sets:
        rest = tuple(axis for axis in range(len(shape)) if axis not in kept)
        table = counts.sum(axis=rest)
        expected = nearest_of_total(table.reshape(-1).astype(np.float64), total).reshape(table.shape)
        assert cells.sum(axis=rest) == pytest.approx(expected, rel=1e-4, abs=1e-9)


def test_tables_that_share_attributes_meet_in_their_least_squares():
    counts = np.random.default_rng(5).integers(0, 50, (4, 3, 5))
    strategy = tables((4, 3, 5), [(0, 1), (1, 2)], [2, 1])
    cells = cells_of_tables(strategy, strategy.measure(counts), NEXT_TO_NONE, None)
    assert cells.sum(axis=2) == pytest.approx(counts.sum(axis=2))
    assert cells.sum(axis=0) == pytest.approx(counts.sum(axis=0))


@pytest.mark.parametrize("records", [None, (0.0, 0.0), (-5.0, 1.0)])
@pytest.mark.parametrize("value", [0, -40])
def test_nothing_measured_is_nothing(records, value):
    strategy = tables((8, 4), [(0,), (1,)])
    with np.errstate(all="raise"):
        cells = cells_of_tables(strategy, [np.full(8, value), np.full(4, value)], laplace_of_scale(20.0, 1), records)
    assert cells.shape == (8, 4)
    assert (cells == 0.0).all()


@pytest.mark.parametrize("noise_of", [laplace_of_scale, gaussian_of_scale])
def test_a_weight_is_as_much_less_noise(noise_of):
    """But for what rounding the noise to whole numbers adds to it."""
    noisy = np.random.default_rng(1).normal(50.0, 30.0, 64)
    expected = denoised(noisy, noise_of(10.0, 1))
    assert denoised(noisy, noise_of(40.0, 1), weight=4) == pytest.approx(expected, rel=1e-3, abs=0.05)


@pytest.mark.parametrize("noise_of", [laplace_of_scale, gaussian_of_scale])
@pytest.mark.parametrize("full", [1, 256])
def test_the_sum_of_a_table_is_known_by_what_is_full_in_it(noise_of, full):
    """One full cell among 255 empty ones; or all full. At the seeds given, claims are within a factor of four."""
    noise, cells = noise_of(10.0, 1), np.zeros(256, np.int64)
    cells[:full] = np.linspace(1_000, 10_000, full)
    errors, claims, random = [], [], SeededRandom(7)
    for _ in range(30):
        noisy = np.asarray(noise.add(cells, random), np.float64)
        errors.append(denoised(noisy, noise).sum() - cells.sum())
        claims.append(variance_of_sum(noisy, noise, 1, 1))
    measured, claimed = float(np.mean(np.square(errors))), float(np.median(claims))
    assert measured / 4.0 < claimed < max(4.0 * measured, 8.0 * noise.deviation**2)
    assert full == 256 or claimed < 256 * noise.deviation**2 / 4.0


def test_a_table_that_lost_its_records_counts_for_less_than_a_number_of_them():
    """Sums of expected cells that are far below all that is unbiased, and sure of themselves."""
    known, noisy = (400.0, 70.0**2), (390.0, 200.0**2)
    assert abs(total_of([known], [noisy, noisy], [20.0, 5.0], [30.0**2] * 2) - 400.0) < 80.0
    assert total_of([(400.0, 0.0)], [noisy], [20.0], [1.0]) == 400.0
    assert total_of([(-400.0, 0.0)], [], [], []) == 0.0
    near = total_of([known], [noisy], [430.0], [5.0**2])
    assert abs(near - 430.0) < 2.0, "a sure one that agrees decides"
    assert total_of([(30.0, 70.0**2)], [], [], []) == 0.0


def test_one_table_alone_keeps_its_own_sum():
    """Nothing else tells how many records there are, and the sum of many noisy cells does not know it better."""
    assert total_of([], [(900.0, 300.0**2)], [100.0], [5.0**2]) == 100.0
    assert total_of([], [(900.0, 300.0**2)], [-1.0], [5.0**2]) == 0.0


@pytest.mark.parametrize("variance", [5e-324, 1e-310, 1e-200, 0.0])
def test_noise_of_next_to_no_variance_leaves_a_total(variance):
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        total = total_of([(7.0, 1.0)], [(2e9, variance)] * 2, [2e9] * 2, [variance] * 2)
    assert total == pytest.approx(2e9)


@pytest.mark.statistical
def test_few_records_in_one_cell_keep_their_number(seed):
    """60 scales of noise: of 60 means of 9 runs the mean was .09, the deviation .05; of 25 runs .3 is 7 of these off.

    While a table's sum was taken to have the noise of all its cells, it was .49.
    """
    counts, random, wrong = np.zeros((256, 256), np.int64), SeededRandom(seed), 0.0
    counts[31, 200] = 600
    for _ in range(25):
        estimate = dpf.estimate_histogram(counts, dpf.workloads.marginals((256, 256), k=1), epsilon=0.1, random=random)
        wrong += abs(estimate.histogram.sum() - 600.0) / 600.0 / 25.0
    assert wrong <= 0.3


@pytest.mark.statistical
def test_less_is_wrong_than_by_the_noise(seed):
    """Nine runs each; of 120 shares the mean was 0.73 and the deviation 0.026: 0.9 is more than six of these off."""
    place = np.arange(128) / 128
    bell = np.exp(-0.5 * ((place - 0.4) / 0.1) ** 2)
    counts = np.rint(100.0 * np.outer(bell, place < 0.5)).astype(np.int64)
    workload, random, errors = dpf.workloads.marginals((128, 128), k=1), SeededRandom(seed), np.zeros(2)
    truth = workload.answer(counts)
    for _ in range(9):
        for place, method in enumerate((dpf.estimate_histogram, dpf.matrix_mechanism)):
            answers = method(counts, workload, epsilon=0.1, random=random).answers
            errors[place] += np.linalg.norm(answers - truth)
    assert errors[0] <= 0.9 * errors[1]
