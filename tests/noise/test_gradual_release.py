"""Gradual release: coarse noise has its exact distribution, and fine noise after it costs no more than fine noise."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import dpfast as dpf
from dpfast.errors import ParameterError
from dpfast.mechanisms.noise.gradual_release import LARGEST_SCALE, _stays, coarsened, share_kept
from dpfast.testing import SeededRandom

from .goodness import joint_events, rejects, tail_events
from .oracles import discrete_laplace_tail

SCALES = [(0.4, 0.7), (1.0, 1.5), (2.0, 7.1), (0.3, 9.0), (12.0, 13.0)]


def masses(scale: float, reach: int) -> np.ndarray:
    """Return the probabilities of discrete Laplace noise from -reach to reach."""
    a = math.exp(-1 / scale)
    return (1 - a) / (1 + a) * a ** np.abs(np.arange(-reach, reach + 1.0))


def added(kept: float, coarse: float, reach: int) -> np.ndarray:
    """Return the probabilities of what is added: 0, or coarse noise."""
    result = (1 - kept) * masses(coarse, reach)
    result[reach] += kept
    return result


def kept(fine: float, coarse: float) -> float:
    return float(share_kept(fine, coarse)[0].mid())


@pytest.mark.parametrize(("fine", "coarse"), SCALES)
def test_fine_noise_and_what_is_added_make_coarse_noise(fine, coarse):
    reach = 400
    together = np.convolve(masses(fine, reach), added(kept(fine, coarse), coarse, reach))[reach:-reach]
    near = slice(reach - 20, reach + 21)
    assert np.allclose(together[near], masses(coarse, reach)[near], rtol=1e-10)
    mutant = np.convolve(masses(fine, reach), added((fine / coarse) ** 2, coarse, reach))[reach:-reach]
    if coarse < 10:
        assert not np.allclose(mutant[near], masses(coarse, reach)[near], rtol=1e-5), "the share of continuous noise"


@pytest.mark.parametrize(("fine", "coarse"), SCALES)
def test_both_together_cost_what_the_fine_one_costs(fine, coarse):
    """P(coarse = y, fine = x) for neighbouring counts 0 and 1: the ratio is at most e^(1 / fine), and comes close."""
    reach = 60
    noise, step = masses(fine, 4 * reach), added(kept(fine, coarse), coarse, 4 * reach)
    worst_both = worst_coarse = 0.0
    for y in range(-8, 9):
        alone = []
        for count in (0, 1):
            x = np.arange(-reach, reach + 1)
            alone.append(noise[4 * reach + x - count] * step[4 * reach + y - x])
        ratio = alone[0] / alone[1]
        worst_both = max(worst_both, ratio.max(), (1 / ratio).max())
        coarse_ratio = masses(coarse, reach)[reach + y] / masses(coarse, reach)[reach + y - 1]
        worst_coarse = max(worst_coarse, coarse_ratio, 1 / coarse_ratio)
    assert worst_both == pytest.approx(math.exp(1 / fine), rel=1e-9)
    assert worst_coarse == pytest.approx(math.exp(1 / coarse), rel=1e-9)
    assert worst_both < math.exp(1 / fine + 1 / coarse) * (1 - 1e-6), "less than two measurements apart would cost"


@pytest.mark.parametrize(("fine", "coarse"), [*SCALES, (1e-5, 1e-4), (1e-3, 30.0), (2.0**24, 2.0**24 * 1.5)])
def test_the_share_is_right_to_its_64th_bit(fine, coarse):
    with mpmath.workdps(60):
        x, y = (mpmath.mpf(1) / (2 * mpmath.mpf(scale)) for scale in (coarse, fine))
        expected = (mpmath.sinh(x) / mpmath.sinh(y)) ** 2 * mpmath.mpf(2) ** 64
        assert share_kept(fine, coarse)[1] == int(mpmath.floor(expected))


class Bits:
    """The bits of a rational number."""

    def __init__(self, number: Fraction) -> None:
        self.number = number
        self.read = 0

    def leading(self, count: int) -> int:
        self.read = max(self.read, count)
        return math.floor(self.number * 2**count)


@pytest.mark.parametrize(("fine", "coarse"), SCALES)
def test_what_64_bits_do_not_decide_is_decided_by_more(fine, coarse):
    """No cap: a number that agrees with the share in 300 bits is told from it all the same."""
    with mpmath.workdps(150):
        share = (mpmath.sinh(1 / (2 * mpmath.mpf(coarse))) / mpmath.sinh(1 / (2 * mpmath.mpf(fine)))) ** 2
        near = int(mpmath.floor(share * mpmath.mpf(2) ** 300))
    for beside, expected in ((near - 1, True), (near + 1, False)):
        bits = Bits(Fraction(beside, 2**300))
        assert _stays(bits, fine, coarse) is expected
        assert bits.read > 256


@pytest.mark.statistical
@pytest.mark.parametrize(("fine", "coarse"), SCALES)
def test_coarse_samples_have_their_distribution_and_share_the_fine_ones(seed, fine, coarse):
    """Fails falsely at most once in 10**12. The mutant that draws afresh is found by what both have in common."""
    samples, count = 300_000, 41
    random = SeededRandom(seed)
    values = np.full(samples, count, np.int64)
    noisy = dpf.laplace(values, fine, random=random)
    coarse_ones = coarsened(noisy, np.full(samples, fine), np.full(samples, coarse), random)

    def tail(scale):
        return lambda k: (
            discrete_laplace_tail(scale, int(k)) if k >= 1 else 1 - discrete_laplace_tail(scale, 1 - int(k))
        )

    near = np.unique(np.concatenate([np.arange(-3, 4), np.round(np.linspace(-6, 6, 9) * coarse).astype(int)]))
    assert not rejects(tail_events(coarse_ones - count, near, tail(coarse)))
    added_ones, steps = coarse_ones - noisy, added(kept(fine, coarse), coarse, 1000)
    cumulative = np.cumsum(steps[::-1])[::-1]
    few = near[::3]
    assert not rejects(tail_events(added_ones, near, lambda k: float(min(cumulative[1000 + int(k)], 1.0))))
    one, other = added_ones, noisy - count
    events = joint_events(one, other, few, lambda k: 1.0)
    expected = [float(cumulative[1000 + int(s)]) * tail(fine)(t) for s, t in itertools.product(few, few)]
    independent = [
        (name, happened, size, min(probability, 1.0))
        for (name, happened, size, _), probability in zip(events, expected, strict=True)
    ]
    assert not rejects(independent), "what is added knows nothing of the fine noise"


def test_equal_scales_change_nothing_and_threads_do_not_matter():
    values = np.arange(5000)
    fine, coarse = np.linspace(0.5, 3, 5000), np.linspace(0.5, 3, 5000) * np.tile([1.0, 2.5], 2500)
    one, two = (coarsened(values, fine, coarse, SeededRandom(3), threads) for threads in (1, 2))
    assert one.tolist() == two.tolist()
    assert (one[::2] == values[::2]).all()
    assert (one[1::2] != values[1::2]).mean() > 0.3
    assert coarsened(values[:0], fine[:0], coarse[:0], SeededRandom(3)).size == 0


@pytest.mark.parametrize(("fine", "coarse"), [(2.0, 1.0), (0.0, 1.0), (1.0, LARGEST_SCALE), (math.nan, 1.0)])
def test_scales_that_it_is_not_about_are_refused(fine, coarse):
    with pytest.raises(ParameterError, match="at least as large as the fine one"):
        coarsened(np.zeros(1, np.int64), np.array([fine]), np.array([coarse]), SeededRandom(1))
