"""Whole numbers with rare noise: what each is expected to be, by how often each is seen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpfast as dpf
from dpfast.mechanisms.noise.integer_noise import gaussian_of_scale, laplace_of_scale
from dpfast.synthesis.histograms.denoising import denoised
from dpfast.synthesis.histograms.whole_numbers import expected_wholes, is_rare
from dpfast.testing import SeededRandom

RARE = laplace_of_scale(0.25, 1)  # a 1 is put on 1.8% of all numbers, and taken from as many


def with_noise(counts, noise, seed, weight=1):
    draw = dpf.laplace if noise.mechanism == "laplace" else dpf.gaussian
    return np.asarray(draw(counts * weight, noise.scale, random=SeededRandom(seed)), np.float64) / weight


@pytest.mark.parametrize(
    ("noise", "weight", "rare"),
    [
        (laplace_of_scale(0.25, 1), 1, True),
        (laplace_of_scale(1.0, 1), 1, False),
        (laplace_of_scale(1.0, 1), 4, True),
        (gaussian_of_scale(0.2, 1), 1, True),
        (gaussian_of_scale(0.6, 1), 1, False),
    ],
    ids=str,
)
def test_noise_is_rare_by_its_deviation(noise, weight, rare):
    assert is_rare(noise, weight) is rare


def test_ones_are_noise_where_most_cells_are_empty_and_records_where_many_have_one():
    """10^4 cells; the noise puts a 1 on 180 of them. At the seeds given."""
    empty = np.zeros(10_000, np.int64)
    empty[[3, 77]] = [900, 31]
    found = expected_wholes(with_noise(empty, RARE, 1), RARE)
    assert np.linalg.norm(found - empty) < 4.0, "a fifth of the noise"
    alone = np.random.default_rng(2).integers(0, 2, 10_000)
    found = expected_wholes(with_noise(alone, RARE, 2), RARE)
    assert np.linalg.norm(found - alone) < np.linalg.norm(with_noise(alone, RARE, 2) - alone)
    assert np.median(found[alone == 1]) > 0.9


@pytest.mark.parametrize("noise", [RARE, gaussian_of_scale(0.35, 1)], ids=str)
def test_it_is_the_mean_by_the_law_that_makes_the_noisy_numbers_likeliest(noise):
    """Two numbers, 0 and 1, in known shares of many cells: the mean by Bayes' rule, written out, within 3%."""
    counts = (np.random.default_rng(3).random(200_000) < 0.3).astype(np.int64)
    noisy = with_noise(counts, noise, 3)
    found = expected_wholes(noisy, noise)
    for value in (0.0, 1.0):
        truth = counts[noisy == value].mean()
        assert found[noisy == value] == pytest.approx(truth, abs=0.03)


@pytest.mark.parametrize("weight", [4, 5, 16])
def test_numbers_measured_times_a_weight_become_whole_again(weight):
    """All but those that the noise moves by half of the weight or more. At the seeds given."""
    counts = np.random.default_rng(weight).integers(0, 30, 4096)
    noise = laplace_of_scale(weight / 10.0, 1)
    noisy = with_noise(counts, noise, weight, weight)
    found = denoised(noisy, noise, weight=weight)
    assert np.linalg.norm(found - counts) < 0.75 * np.linalg.norm(noisy - counts)
    told = np.abs(noisy - counts) <= 0.25
    assert np.abs(found - counts)[told].max() < 0.1


@given(
    st.lists(st.sampled_from([-1e18, -70.0, -33.0, -2.0, -1.0, 0.0, 1.0, 2.0, 31.0, 32.0, 33.0, 1e15]), max_size=40),
    st.sampled_from([1e-6, 0.01, 0.2, 0.35]),
    st.sampled_from(["laplace", "gaussian"]),
)
def test_any_numbers_give_numbers_near_them(values, scale, mechanism):
    noise = laplace_of_scale(scale, 1) if mechanism == "laplace" else gaussian_of_scale(scale, 1)
    noisy = np.array(values)
    with np.errstate(all="raise"):
        found = expected_wholes(noisy, noise)
    assert found.shape == noisy.shape
    assert (found >= 0.0).all()
    near = np.abs(noisy) <= 32
    assert (found[~near] == np.maximum(noisy[~near], 0.0)).all()
    assert (np.abs(found - np.maximum(noisy, 0.0))[near] <= 9.0).all()


@pytest.mark.parametrize("epsilon", [2.7, 5.0])
def test_ones_are_kept_where_others_are_around(epsilon):
    """A block of single records in an empty plane; at the seeds given, one law errs 1.25 times as much."""
    counts = np.zeros((64, 64), np.int64)
    counts[20:36, 20:36] = np.random.default_rng(1).poisson(1.0, (16, 16))
    noise, errors = laplace_of_scale(1.0 / epsilon, 1), np.zeros(2)
    for seed in range(10):
        noisy = with_noise(counts.reshape(-1), noise, seed).reshape(64, 64)
        shuffled = np.random.default_rng(seed).permutation(4096)
        scattered = expected_wholes(noisy.reshape(-1)[shuffled].reshape(64, 64), noise).reshape(-1)
        errors += [
            np.linalg.norm(expected_wholes(noisy, noise) - counts),
            np.linalg.norm(scattered - counts.reshape(-1)[shuffled]),
        ]
    assert errors[0] < errors[1] / 1.25


@pytest.mark.parametrize("shape", [(0,), (1,), (3, 2)])
def test_any_shape(shape):
    assert expected_wholes(np.zeros(shape), RARE).shape == shape


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [3.0, 5.0])
def test_a_sparse_histogram_errs_less_than_its_noise(seed, epsilon):
    """100 cells of 65,536 are full. Of 150 runs each the share of the noise's error was .06 on average, with deviations
    of .013 and .031, and .15 at most: .4 is eleven deviations off.
    """
    generator = np.random.default_rng(seed)
    counts = np.zeros((256, 256), np.int64)
    counts.flat[generator.choice(counts.size, 100, replace=False)] = generator.integers(1, 500, 100)
    random = SeededRandom(seed)
    own = dpf.estimate_histogram(counts, epsilon=epsilon, random=random)
    noisy = dpf.laplace(counts.reshape(-1), 1.0 / epsilon, random=random)
    assert own.rounds["method"].to_list() == ["cells without noise"]
    assert np.linalg.norm(own.histogram - counts) < 0.4 * np.linalg.norm(noisy - counts.reshape(-1))
