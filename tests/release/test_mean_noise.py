"""Intervals and errors of means: by the exact laws of both noises they hold at least as often as is said."""

from __future__ import annotations

import itertools
import math

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.mechanisms.noise.joint_widths import Noise
from dpfast.releases.mean_noise import MeanNoise

SCALES = [(0.02, 0.02), (0.5, 3.0), (3.0, 0.5), (2.0, 2.0), (6.0, 6.0), (1.0, 12.0), (12.0, 1.0)]


def law_of(mechanism, scale):
    """Return integers and their probabilities, which lack less than 1e-12."""
    most = math.ceil(scale * 29) + 2
    numbers = np.arange(-most, most + 1)
    if mechanism == "laplace":
        q = math.exp(-1 / scale)
        return numbers, (1 - q) / (1 + q) * q ** np.abs(numbers)
    below = np.array([math.erfc(-x / scale / math.sqrt(2)) / 2 for x in np.arange(-most, most + 2) - 0.5])
    return numbers, np.diff(below)


def both(mechanism, scales, worth):
    """Return all pairs of noises, the first worth so much each, and their probabilities."""
    (s, of_s), (t, of_t) = (law_of(mechanism, scale) for scale in scales)
    sums, counts = np.meshgrid(s * worth, t, indexing="ij")
    return sums.reshape(-1), counts.reshape(-1).astype(float), np.multiply.outer(of_s, of_t).reshape(-1)


def noise_of(mechanism, scales, worth, beyond):
    return MeanNoise((Noise(mechanism, scales[0], worth),), (Noise(mechanism, scales[1], 1.0),), beyond)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("worth", [0.25, 10.0])
def test_an_interval_holds_the_mean_with_the_probability_that_is_said(mechanism, scales, worth):
    """For every mean within the bounds, and every number of rows, by the exact law of both noises."""
    s, t, chances = both(mechanism, scales, worth)
    noise = noise_of(mechanism, scales, worth, 10.0)
    for rows, mean, miss in itertools.product((1, 3, 20, 200), (-10.0, -9.9, -4.0, 0.0, 0.3, 10.0), (0.05, 0.3)):
        lower, upper = noise.interval(mean * rows + s, rows + t, miss)
        assert (lower <= upper).all()
        outside = (lower > mean + 1e-9) | (upper < mean - 1e-9)
        assert chances[outside].sum() <= miss


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("scales", [one for one in SCALES if min(one) > 0.4])
def test_an_interval_is_not_wider_than_by_a_union_bound(mechanism, scales):
    """Where rows are many; that of Laplace noise is a third narrower, and Gaussian a tenth, where both count alike."""
    noise = noise_of(mechanism, scales, 1.0, 1.0)
    apart = sum(one.reach(0.025) for one in (*noise.summed, *noise.counted))
    for mean in (-0.9, 0.0, 0.9):
        lower, upper = noise.interval(np.array([mean * 1e6]), np.array([1e6]), 0.05)
        assert (upper - lower)[0] * 1e6 / 2 <= apart * (1 + 1e-4)
    if scales == (6.0, 6.0):
        assert noise.together(0.05) < apart * (0.66 if mechanism == "laplace" else 0.93)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("rows", [1, 5, 30, 200])
def test_means_are_off_by_no_more_than_is_said(mechanism, scales, rows):
    """Exactly, at every mean; means that may be replaced by another count as wrong. The worst is nearly as said."""
    worth, beyond, miss = 1.0, 10.0, 0.05
    noise = noise_of(mechanism, scales, worth, beyond)
    error = noise.error(rows, miss)
    if error >= beyond:
        assert not noise.is_within(beyond * 0.99, rows, miss) or error <= beyond
        return
    assert noise.is_within(error * (1 + 1e-9), rows, miss)
    s, t, chances = both(mechanism, scales, worth)
    worst = 0.0
    for mean in np.linspace(-beyond, beyond, 41):
        counts = rows + t
        shown = np.clip((mean * rows + s) / np.maximum(counts, 1), -beyond, beyond)
        wrong = (np.abs(shown - mean) > error * (1 + 1e-12)) | (counts <= noise.replaced_below)
        worst = max(worst, chances[wrong].sum())
    assert worst <= miss
    if rows == 200 and min(scales) >= 2:
        # The number of rows may be rounded by half a row, which is a fifth of the deviation of the least noise here.
        assert worst > 0.02


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_a_wish_for_a_mean_costs_what_it_needs(mechanism):
    """A union bound asked for 1.9 times the epsilon by Laplace noise: its half widths, at the least sum of shares.

    The least a + b with (D / a) z + h (1 / b) z <= E n, D = h = 30, z = ln(1 / 0.025): 4 h z / (E n).
    """
    given = {"mechanism": mechanism, **({"delta": 1e-6} if mechanism == "gaussian" else {})}
    data = pl.DataFrame({"k": ["a"], "v": [1.0]})
    plan = dpf.plan(
        data, "k", keys=data.select("k"), privacy_unit="row", error={"late": ("mean", 2.0, 200)},
        late=dpf.mean("v", bounds=(0, 60)), **given,
    )  # fmt: skip
    if mechanism == "laplace":
        assert plan.epsilon < 4 * 30 * math.log(40) / 400 * 0.6


def test_means_of_many_groups_that_are_empty_are_not_thrown_out():
    """What is shown of a group that noise hides is within the bounds, however many empty groups there are beside it.

    The mean of all groups has a noisy number of rows that may be near 0 or below. At an epsilon of 5 the noise on the
    full group's number of 10,000 rows is beyond 1,000 with probability e**-2500.
    """
    keys = pl.DataFrame({"k": range(3_000)})
    data = pl.DataFrame({"k": [0] * 10_000, "v": [58.0] * 10_000})
    shown = dpf.release(
        data, "k", keys=keys, ledger=dpf.Ledger(epsilon=5), epsilon=5, privacy_unit="row",
        late=dpf.mean("v", bounds=(0, 60)),
    ).frame  # fmt: skip
    assert shown["late"].is_between(0, 60).all()
    assert abs(shown["late"][0] - 58) < 1
