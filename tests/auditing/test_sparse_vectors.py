"""The six variants of the sparse vector technique of Lyu, Su, Li (2017), figure 1, told apart by their outputs alone.

Algorithms 1 and 2 are private and pass, 3 to 6 are not and are caught; and so is ours told apart from ours with wrong
parameters. The threshold is 0, epsilon is 1, and values of neighbours differ by at most 1. A false alarm has
probability at most 1e-9; what is caught costs at least 1.25 times what is claimed, on events of probability above .01.
What it must show at least lies 6 deviations below what it showed in five runs.
"""

from __future__ import annotations

import numpy as np
import pytest

import dpfast as dpf

from .mechanisms import noise

SAMPLES = 40_000
BELOW, ABOVE, NOT_REACHED = 0, 1, 2


def answers(values, size, threshold, query, count=None, restarts=None, publishes=False):
    """Return answers of many runs: a row each; scales of the noise, and the number of positives that ends a run."""
    bar, seen = noise(size, threshold), np.zeros(size, np.int64)
    columns = []
    for value in values:
        noisy = value + (noise(size, query) if query else np.zeros(size))
        above = noisy >= bar
        ended = seen >= count if count else np.zeros(size, bool)
        said = np.where(above, noisy, -np.inf) if publishes else np.where(above, ABOVE, BELOW)
        columns.append(np.where(ended, np.nan if publishes else NOT_REACHED, said))
        seen += above & ~ended
        if restarts is not None:
            bar = np.where(above, noise(size, restarts), bar)
    return np.column_stack(columns)


def audited(mechanism, x, neighbour, epsilon=1.0, samples=SAMPLES):
    given = {"samples": samples, "batched": True, "confidence": 1 - 1e-9}
    found = dpf.audit(mechanism, np.array(x), np.array(neighbour), epsilon, **given)
    print(found.explain())
    return found


#: Values that lie near each other, and move towards each other: some rise, some fall.
RISING_AND_FALLING = [0.0] * 8 + [1.0] * 2, [1.0] * 8 + [0.0] * 2
PAIRS = [
    RISING_AND_FALLING,
    ([0.0] * 5, [1.0] * 5),
    ([0.0, 2.0, -1.0, 3.0], [1.0, 1.0, 0.0, 2.0]),
    ([-3.0] * 20 + [0.0], [-2.0] * 20 + [-1.0]),
]


@pytest.mark.parametrize("pair", PAIRS, ids=range(len(PAIRS)))
@pytest.mark.parametrize("count", [1, 3])
def test_algorithm_1_of_lyu_su_and_li_passes(pair, count):
    assert audited(lambda x, n: answers(x, n, 2.0, 4.0 * count, count), *pair).passed


@pytest.mark.parametrize("pair", PAIRS, ids=range(len(PAIRS)))
def test_algorithm_2_of_dwork_and_roth_passes(pair):
    assert audited(lambda x, n: answers(x, n, 4.0, 8.0, 2, restarts=4.0), *pair).passed


def test_algorithm_3_of_roths_lecture_notes_is_caught():
    """It publishes the noisy value that was compared, which says that the threshold lay below it.

    Rounded to whole numbers, so that few events are to be told apart: seen 2.93 with a deviation of .1, from 2.77 on.
    """
    pair = [-0.5] * 8 + [0.5], [0.5] * 8 + [0.5]

    def published(x, size):
        return np.round(answers(x, size, 1.0, 1.0, 1, publishes=True))

    assert audited(published, *pair, epsilon=2.0, samples=160_000).epsilon_lower > 2.0


def test_algorithm_4_of_lee_and_clifton_is_caught():
    """Its noise does not grow with the number of positives: it costs (1 + 6 c) / 4 times epsilon."""
    pair = [0.0] * 6 + [1.0] * 6, [1.0] * 6 + [0.0] * 6
    assert audited(lambda x, n: answers(x, n, 4.0, 4 / 3, 6), *pair).epsilon_lower > 1.3


def test_algorithm_5_of_stoddard_and_others_is_caught():
    """It adds no noise to the values: what is possible here is impossible there."""
    found = audited(lambda x, n: answers(x, n, 2.0, 0.0), [0.0, 1.0], [1.0, 0.0])
    assert found.epsilon_lower > 4
    assert found.happened_elsewhere == 0


def test_algorithm_6_of_chen_and_others_is_caught():
    """It never stops, and its noise does not grow."""
    pair = [0.0] * 6 + [1.0] * 6, [1.0] * 6 + [0.0] * 6
    assert audited(lambda x, n: answers(x, n, 2.0, 2.0), *pair, samples=3 * SAMPLES).epsilon_lower > 1.3


@pytest.mark.parametrize("pair", PAIRS, ids=range(len(PAIRS)))
def test_ours_passes_and_with_a_false_parameter_it_is_caught(pair):
    """Runs of ours, one by one: told that values have a sensitivity of .1, it loses more than epsilon."""

    def ours(values):
        return dpf.above_threshold(values, threshold=0.0, epsilon=1.0, count=2)

    def less(values):
        return dpf.above_threshold(values, threshold=0.0, epsilon=1.0, count=2, sensitivity=0.1)

    def run(mechanism):
        return dpf.audit(lambda x: list(mechanism(x)), *map(np.array, pair), 1.0, samples=4000, confidence=1 - 1e-9)

    assert run(ours).passed
    if pair is RISING_AND_FALLING:
        assert not run(less).passed
