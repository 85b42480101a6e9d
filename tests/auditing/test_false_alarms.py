"""Private mechanisms are refuted as seldom as the confidence says, however many events there are to choose from."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

import dpfast as dpf

RUNS = 50
MISS = 0.1


def most_alarms(runs, miss, rate=1e-9):
    return int(binom.isf(rate, runs, miss))


def tight(bit, size, generator, others):
    """Randomized response of exactly epsilon 1, beside numbers that tell nothing but look as if they might."""
    answer = generator.random(size) < (math.e if bit else 1.0) / (1 + math.e)
    return np.column_stack([answer, generator.normal(size=(size, others)), generator.integers(0, 50, size)])


@pytest.mark.statistical
@pytest.mark.parametrize("others", [0, 3])
def test_a_tight_mechanism_is_rarely_refuted(others, seed):
    """False-failure rate 1e-9: 50 audits with confidence .9, of a mechanism that costs exactly what it claims."""
    generator = np.random.default_rng(seed)
    alarms, lowers = 0, []
    for _ in range(RUNS):
        found = dpf.audit(
            lambda x, n: tight(x, n, generator, others), 0, 1, 1.0, samples=400, confidence=1 - MISS, batched=True
        )
        alarms += not found.passed
        lowers.append(found.epsilon_lower)
    print(f"{alarms} alarms of {RUNS}, the largest lower bound {max(lowers):.3f}, the median {np.median(lowers):.3f}")
    assert alarms <= most_alarms(RUNS, MISS)


@pytest.mark.statistical
def test_equal_outputs_show_nothing(seed):
    """False-failure rate 1e-9: 50 audits with confidence .9 of noise that does not depend on the input."""
    generator = np.random.default_rng(seed)
    alarms = 0
    for _ in range(50):
        found = dpf.audit(
            lambda x, n: generator.laplace(size=(n, 4)), 0, 1, 0.0, samples=400, confidence=1 - MISS, batched=True
        )
        alarms += not found.passed
    assert alarms <= most_alarms(50, MISS)


@pytest.mark.statistical
def test_a_delta_is_allowed_for(seed):
    """False-failure rate 1e-9: 50 audits with confidence .9; the data are shown with probability exactly delta."""
    generator = np.random.default_rng(seed)
    alarms = 0
    for _ in range(50):
        found = dpf.audit(
            lambda x, n: np.where(generator.random(n) < 0.2, x, -1), 0, 1, 0.0, 0.2,
            samples=400, confidence=1 - MISS, batched=True,
        )  # fmt: skip
        alarms += not found.passed
    assert alarms <= most_alarms(50, MISS)
    assert not dpf.audit(
        lambda x, n: np.where(generator.random(n) < 0.2, x, -1), 0, 1, 0.0, 0.1, samples=4000, batched=True
    ).passed


@pytest.mark.statistical
def test_a_mutant_that_measures_with_what_it_chose_by_is_seen(seed, monkeypatch):
    """The mutant: without held-out outputs, more alarms than the confidence allows. It lies 20 deviations away."""
    from dpfast.auditing import events

    monkeypatch.setattr(events.Parts, "choose", events.Parts.measure)
    monkeypatch.setattr(events.Parts, "teach", events.Parts.measure)
    generator = np.random.default_rng(seed)
    alarms = 0
    for _ in range(60):
        found = dpf.audit(
            lambda x, n: generator.integers(0, 200, n), 0, 1, 0.0, samples=400, confidence=1 - MISS, batched=True
        )
        alarms += not found.passed
    assert alarms > most_alarms(60, MISS)
