"""Transcripts of private multiplicative weights, audited: what comparisons and measurements cost, to the last digit."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dpfast as dpf
from dpfast.mechanisms.thresholds.runs import calibrate
from dpfast.synthesis.fitted import private_multiplicative_weights as module

from .transcripts import loss, replay, transcript

EPSILON, PRIOR = 1.0, [4.0, 6.0, 90.0]


class Scripted:
    """A sparse vector that answers as a script says, and keeps what it was asked."""

    script: tuple[bool, ...] = ()
    made: list[Scripted]

    def __init__(self, threshold, epsilon, sensitivity, *, count, random):
        self.threshold, self.count, self.remaining = threshold, count, count
        self.scales = calibrate(epsilon, sensitivity, False, count, None).scales
        self.values, self.above = [], []
        Scripted.made.append(self)

    def test(self, values, *, most):
        assert most == 1
        answers = []
        for value in values.tolist():
            if self.remaining == 0 or (answers and answers[-1]):
                break
            self.values.append(value)
            answers.append(self.script[len(self.above)])
            self.above.append(answers[-1])
            self.remaining -= answers[-1]
        return np.array(answers)

    @property
    def log_probability(self):
        """The logarithm of the probability of these answers, an integral over the threshold's noise, but a constant."""
        base, scale = self.scales
        noise = np.linspace(0.0, 60.0 * base, 60_001)
        density = -noise / base
        for value, above in zip(self.values, self.above, strict=True):
            tail = -np.maximum(self.threshold + noise - value, 0.0) / scale
            with np.errstate(divide="ignore"):
                density = density + (tail if above else np.log(-np.expm1(tail)))
        most = density.max()
        # By Simpson's rule.
        weights = np.ones(noise.size)
        weights[1:-1:2], weights[2:-1:2] = 4.0, 2.0
        return most + math.log(float(np.exp(density - most) @ weights))


def asked(counts, relation, above):
    """Return what is released of a stream of queries whose comparisons come out as ``above`` says, with noise real."""
    Scripted.script = above
    online = dpf.PrivateMultiplicativeWeights(
        counts, epsilon=EPSILON, updates=1, threshold=50.0, neighbors=relation, total=100, prior=PRIOR, test_share=0.5
    )
    # The first query is asked again and again, and stays below; the second is above.
    rows = np.array([[1, 0, 0]] * (len(above) - 1) + [[1, 0, 1]])
    frame = online.answer_all(dpf.workloads.matrix(rows))
    return frame["value"].to_numpy(), online.histogram


def cost(monkeypatch, one, other, relation, seed, above=(False,) * 400 + (True,)):
    """Return the privacy loss of a transcript, that of its comparisons and that of its measurement."""
    monkeypatch.setattr(module, "SparseVector", Scripted)
    Scripted.made = []

    def run(counts):
        return asked(counts, relation, above)

    released, steps = transcript(monkeypatch, run, one, seed)
    again, twin = replay(monkeypatch, run, other, steps)
    for first, second in zip(released, again, strict=True):
        np.testing.assert_array_equal(first, second)
    here, there = Scripted.made
    assert (here.scales, here.threshold, here.above) == (there.scales, there.threshold, there.above)
    return abs(here.log_probability - there.log_probability), loss(steps, twin).pure


#: The first query's error is 50, as large as the threshold, and grows; the second's is -37 or -34, and shrinks.
PAIRS = {
    "add_remove": ([54, 40, 3], [55, 40, 3]),
    "replace": ([54, 40, 6], [55, 39, 6]),
}


@pytest.mark.parametrize("relation", PAIRS)
def test_no_transcript_costs_more_than_its_shares_and_the_worst_nearly_does(relation, monkeypatch, seed):
    """The comparisons' half of epsilon is all lost where many values at the threshold rise and one far below falls."""
    one, other = (np.array(counts) for counts in PAIRS[relation])
    comparisons, measurement = cost(monkeypatch, one, other, relation, seed)
    assert comparisons <= EPSILON / 2 * (1 + 1e-6)
    assert measurement <= EPSILON / 2 * (1 + 1e-9)
    assert measurement == pytest.approx(EPSILON / 2, rel=1e-6)
    back = cost(monkeypatch, other, one, relation, seed)
    assert sum(back) <= EPSILON * (1 + 1e-6)


def test_comparisons_said_to_move_half_as_far_are_caught(monkeypatch, seed):
    """A mutant whose sparse vector is told half the sensitivity loses more than its half of epsilon."""
    one, other = (np.array(counts) for counts in PAIRS["add_remove"])
    right, _ = cost(monkeypatch, one, other, "add_remove", seed)
    assert right > 0.9 * EPSILON / 2
    whole = Scripted.__init__

    def halved(self, threshold, epsilon, sensitivity, **rest):
        whole(self, threshold, epsilon, sensitivity / 2, **rest)

    monkeypatch.setattr(Scripted, "__init__", halved)
    wrong, _ = cost(monkeypatch, one, other, "add_remove", seed)
    assert wrong > 1.8 * EPSILON / 2
