"""An auditor of sparse vector techniques: exact losses on worst-case neighbours, for ours and for the broken ones.

The variants of Lyu, Su, Li (2017), figure 1, by their numbers there, with the noise and the split of epsilon that
each has; neighbours' values differ by at most 1, epsilon is 1.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dpfast.mechanisms.thresholds.runs import calibrate

from .sparse_oracles import Noise, Variant, loss, transcripts

EPSILON = 1.0
#: So many values that lie below make the neighbours' shift of the threshold sure.
MANY = 3000


def ours(count, monotonic=False, epsilon=EPSILON):
    threshold, query = calibrate(epsilon, 1, monotonic, count, None).scales
    return Variant(Noise(threshold, True), Noise(query, True))


def lyu_su_li(count, monotonic=False):
    """Algorithm 7 of the paper with its optimal split: Laplace noise of the scales that ours has."""
    threshold, query = calibrate(EPSILON, 1, monotonic, count, None).scales
    return Variant(Noise(threshold), Noise(query))


def dwork_roth(count):
    """Algorithm 2: half of epsilon each, and threshold noise of scale 2c that is drawn again after each positive."""
    return Variant(Noise(2 * count / EPSILON), Noise(4 * count / EPSILON), restarts=True)


def extremes(count, monotonic=False):
    """Worst cases: values below that rise as those above fall, near the threshold and far below."""
    for height, base in itertools.product((-40.0, -3.0, 0.0, 2.0), (-40.0, -2.0, 0.0, 3.0)):
        for down in (0.0, 1.0) if monotonic else (0.0, -1.0):
            one = [base] + [height] * count
            other = [base + 1.0] + [height + down] * count
            yield one, other, (False,) + (True,) * count, [MANY] + [1] * count


def worst(variant, count, monotonic=False):
    return max(
        loss(variant, one, other, answers, times=times) for one, other, answers, times in extremes(count, monotonic)
    )


PRIVATE = {"ours": ours, "algorithm 7": lyu_su_li}


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize("name", PRIVATE)
def test_worst_cases_lose_at_most_epsilon_and_nearly_all_of_it(name, count, monotonic):
    lost = worst(PRIVATE[name](count, monotonic), count, monotonic)
    print(f"{name}, count {count}: {lost:.6f} of {EPSILON}")
    assert lost <= EPSILON * (1 + 1e-9)
    assert lost > 0.999 * EPSILON  # wider noise would be safe, but less than what is claimed


def test_the_book_s_variant_passes_too():
    for count in (1, 2):
        assert worst(dwork_roth(count), count) <= EPSILON * (1 + 1e-9)


@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_every_transcript_of_random_neighbours(count, monotonic, seed):
    generator = np.random.default_rng(seed)
    variant = ours(count, monotonic, 1.7)
    largest = 0.0
    for _ in range(6):
        one = np.round(generator.uniform(-6, 6, 3), 2)
        moves = generator.choice([-1.0, 0.0, 1.0], 3)
        other = one + (np.abs(moves) * generator.choice([-1, 1]) if monotonic else moves)
        total = 0.0
        for answers in transcripts(3, count):
            own = slice(0, len(answers))
            total += variant.probability(one[own].tolist(), answers)
            largest = max(largest, loss(variant, one[own].tolist(), other[own].tolist(), answers))
        assert total == pytest.approx(1, abs=1e-11)
    print(f"largest loss {largest:.4f} of 1.7")
    assert largest <= 1.7 * (1 + 1e-9)


def test_monotonic_scales_are_wrong_for_other_values():
    """The mutant: a factor of 1 where values may move in opposite directions."""
    assert worst(ours(3, monotonic=True), 3) > 1.3 * EPSILON


def test_no_noise_on_the_threshold():
    """The mutant: with a fixed threshold every value below it costs as much as one above."""
    variant = Variant(Noise(0.0), ours(1).query)
    assert loss(variant, [-1.0, 0.0], [0.0, 0.0], (False, True), times=[20, 1]) > 2 * EPSILON


def test_algorithm_3_publishes_the_noisy_value():
    """Roth's lecture notes: the value that was compared, which says that the threshold lay below it."""
    count = 1
    for one_sided in (False, True):
        variant = Variant(Noise(2 / EPSILON, one_sided), Noise(2 * count / EPSILON, one_sided))
        losses = [
            loss(variant, [0.0, 0.0], [1.0, 0.0], (False, True), times=[40, 1], published=[None, v]) for v in (1.5, 3.0)
        ]
        assert max(losses) > 2 * EPSILON
        # The same answers without the number lose no more than epsilon and a half.
        assert loss(variant, [0.0, 0.0], [1.0, 0.0], (False, True), times=[40, 1]) < 1.5 * EPSILON


@pytest.mark.parametrize("one_sided", [False, True])
def test_algorithm_4_does_not_scale_with_the_count(one_sided):
    """Lee, Clifton (2014): a quarter of epsilon for the threshold; the loss is (1 + 6 c) / 4 times epsilon."""
    losses = []
    for count in (1, 2, 4):
        variant = Variant(Noise(4 / EPSILON, one_sided), Noise(4 / (3 * EPSILON), one_sided))
        losses.append(worst(variant, count))
        assert losses[-1] <= (1 + 6 * count) / 4 * EPSILON * (1 + 1e-9)
    assert losses[0] > 1.2 * EPSILON
    assert losses[-1] > 4 * EPSILON
    # Their claim holds for monotonic values and a single positive.
    assert worst(Variant(Noise(4 / EPSILON), Noise(4 / (3 * EPSILON))), 1, monotonic=True) <= EPSILON * (1 + 1e-9)


def test_algorithm_5_has_no_noise_on_the_values():
    """Stoddard, Chen, Machanavajjhala (2014): one answer is possible here and impossible there."""
    variant = Variant(Noise(2 / EPSILON), Noise(0.0))
    assert variant.probability([0.0, 1.0], (False, True)) > 0.1
    assert variant.probability([1.0, 0.0], (False, True)) == 0.0


@pytest.mark.parametrize("one_sided", [False, True])
def test_algorithm_6_never_stops(one_sided):
    """Chen, Xiao, Zhang, Xu (2015): noise for one positive, and no limit to their number."""
    variant = Variant(Noise(2 / EPSILON, one_sided), Noise(2 / EPSILON, one_sided))
    losses = [worst(variant, positives) for positives in (1, 4, 16)]
    assert losses[1] > 2 * EPSILON
    assert losses[2] > 6 * EPSILON


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_positive_too_many(count):
    """The mutant: noise for ``count`` positives, one more answered."""
    assert worst(ours(count), count + 1) > (1 + 0.2 / count) * EPSILON


def test_the_split_is_the_best():
    """The variance of the difference of the two noises is least at 1 : (m c)**(2/3), and below restarting."""
    for count, monotonic in itertools.product((1, 2, 10, 1000), (False, True)):
        factor = count * (1 if monotonic else 2)

        def variance(share, factor=factor):
            return (1 / share) ** 2 + (factor / (1 - share)) ** 2

        threshold, query = calibrate(1, 1, monotonic, count, None).scales
        share = 1 / threshold
        assert query == pytest.approx(factor / (1 - share), rel=1e-12)
        assert variance(share) <= min(variance(share * 0.99), variance(share * 1.01))
        assert variance(share) == pytest.approx((1 + factor ** (2 / 3)) ** 3, rel=1e-9)
        restarting = count**2 * (1 + (factor / count) ** (2 / 3)) ** 3
        assert variance(share) <= restarting * (1 + 1e-12)
    assert math.isclose(10**2 * (1 + 2 ** (2 / 3)) ** 3 / (1 + 20 ** (2 / 3)) ** 3, 2.957, rel_tol=1e-3)
